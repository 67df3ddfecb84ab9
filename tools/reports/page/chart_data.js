// What a chart draws: its view made ready (categories, stacks that agree, scales), and its numbers
// as a table.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { units, axes } = parts;

  const isBars = (style) => style === "bars" || style === "stacked-bars";
  const isStacked = (style) => style === "stacked-bars" || style === "area";
  const styleOf = (view, series) =>
    typeof series.style === "string"
      ? series.style
      : (series.style && series.style.style) || view.style || "line";

  // Bars over numbers get categories: the numbers.
  function withCategories(view) {
    if (view.categories || !isBars(view.style)) return view;
    const all = [
      ...new Set(
        view.panels.flatMap((panel) =>
          panel.series.flatMap((series) => series.points.map(([x]) => x)),
        ),
      ),
    ].sort((a, b) => a - b);
    const place = new Map(all.map((x, index) => [x, index]));
    return {
      ...view,
      categories: all.map((x) => units.format(x, (view.x || {}).unit)),
      panels: view.panels.map((panel) => ({
        ...panel,
        series: panel.series.map((series) => ({
          ...series,
          points: series.points.map(([x, y]) => [place.get(x), y]),
        })),
      })),
    };
  }

  // Stacked areas need the same x in all series: ECharts stacks by index. Where they differ, all
  // get all, with values in between.
  function alignAreas(series) {
    const xs = (one) => one.points.map(([x]) => x);
    const first = series[0] ? xs(series[0]).join() : "";
    if (series.every((one) => xs(one).join() === first)) return series;
    const all = [...new Set(series.flatMap(xs))].sort((a, b) => a - b);
    return series.map((one) => ({
      ...one,
      texts: null,
      points: all.map((x) => [x, between(one.points, x)]),
    }));
  }

  function between(points, x) {
    const after = points.findIndex(([at]) => at >= x);
    if (after < 0 || points.length === 0) return 0;
    const [x1, y1] = points[after];
    if (x1 === x || after === 0) return x1 === x ? y1 : 0;
    const [x0, y0] = points[after - 1];
    return y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
  }

  // All that is drawn along y, stacks as their sums, so that scales hold it.
  function heights(view) {
    return view.panels.flatMap((panel) => {
      if (!isStacked(view.style))
        return panel.series.flatMap((one) => one.points.map(([, y]) => y));
      const sums = new Map(),
        loose = [];
      for (const one of panel.series) {
        const stacked = isStacked(styleOf(view, one));
        one.points.forEach(([x, y]) =>
          stacked ? sums.set(x, (sums.get(x) || 0) + (y || 0)) : loose.push(y),
        );
      }
      return [...sums.values(), ...loose];
    });
  }

  // The view with all that drawing it needs: scales, names of series and their hues. `peer`: a view
  // that stands beside it, with the same scales.
  function prepare(given, peer) {
    const panels = (given.panels || []).map((panel) => ({
      ...panel,
      series: (panel.series || []).map((one) => ({ ...one, points: one.points || [] })),
    }));
    const view = withCategories({ ...given, panels, x: given.x || {}, y: given.y || {} });
    if (view.style === "area") {
      for (const panel of view.panels) {
        const stacked = alignAreas(panel.series.filter((one) => styleOf(view, one) === "area"));
        panel.series = [...stacked, ...panel.series.filter((one) => styleOf(view, one) !== "area")];
      }
    }
    const names = [
      ...new Set(view.panels.flatMap((panel) => panel.series.map((one) => one.name || ""))),
    ];
    const across = view.panels.flatMap((panel) =>
      panel.series.flatMap((one) => one.points.map(([x]) => x)),
    );
    const fromZero = isBars(view.style) || view.style === "area";
    const beside = peer ? prepare(peer) : { high: [], across: [] },
      high = heights(view);
    const yScale = axes.makeScale(view.y, [...high, ...beside.high], fromZero);
    const xScale = axes.makeScale(view.x, [...across, ...beside.across], view.style === "area");
    return {
      view,
      names,
      xScale,
      yScale,
      high,
      across,
      shared: view.panels.length > 1 || Boolean(peer),
      drawn: high.some((y) => typeof y === "number"),
      hues: parts.colors.assignHues(names),
    };
  }

  // Its numbers: a row a point, or where series are few, a row an x and a column a series.
  function numbers(prepared) {
    const { view } = prepared;
    const table = {
      view,
      several: view.panels.length > 1,
      all: view.panels.flatMap((panel) => panel.series.map((one) => ({ one, panel }))),
      xColumn: view.categories
        ? { name: view.x.name || "" }
        : { name: view.x.name || "x", unit: view.x.unit },
      xOf: (x) => (view.categories ? view.categories[x] : x),
    };
    return table.all.length > 8 || view.style === "points" ? rowsOfPoints(table) : rowsOfX(table);
  }

  function rowsOfPoints({ view, several, all, xColumn, xOf }) {
    const rows = all.flatMap(({ one, panel }) =>
      one.points.map(([x, y], at) => [
        several ? panel.title : one.name || "",
        one.name || "",
        xOf(x),
        y,
        (one.texts || [])[at] || null,
      ]),
    );
    const columns = [
      { name: "panel" },
      { name: "series" },
      xColumn,
      { name: view.y.name || "y", unit: view.y.unit },
      { name: "note" },
    ];
    const kept = [several, true, true, true, all.some(({ one }) => one.texts)];
    return {
      columns: columns.filter((_, at) => kept[at]),
      rows: rows.map((row) => row.filter((_, at) => kept[at])),
    };
  }

  function rowsOfX({ view, several, all, xColumn, xOf }) {
    const byX = new Map();
    all.forEach(({ one }, at) =>
      one.points.forEach(([x, y]) => {
        if (!byX.has(x)) byX.set(x, new Array(all.length).fill(null));
        byX.get(x)[at] = y;
      }),
    );
    const keys = [...byX.keys()].sort((a, b) => a - b);
    return {
      columns: [
        xColumn,
        ...all.map(({ one, panel }) => ({
          unit: view.y.unit,
          name: several ? `${panel.title}: ${one.name || ""}` : one.name || view.y.name || "y",
        })),
      ],
      rows: keys.map((x) => [xOf(x), ...byX.get(x)]),
    };
  }

  parts.chartData = { isBars, isStacked, styleOf, prepare, numbers };
})();
