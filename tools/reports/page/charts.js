// Charts of views: lines, points, bars, stacked bars, areas and steps, alone or as panels that
// share their scales.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { units, axes } = parts;
  const shapes = ["circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect"];

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

  // Stacked areas need the same x in all series: ECharts stacks by index. Where they differ, all get
  // all, with values in between.
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

  // Long names of categories, or many: bars lie.
  function liesDown(prepared, width) {
    const { view } = prepared;
    if (!view.categories || !isBars(view.style) || view.panels.length > 1) return false;
    const longest = Math.max(0, ...view.categories.map((name) => String(name).length));
    return view.categories.length <= 40 && longest * 6.5 * view.categories.length > width - 80;
  }

  // `within`: a line through areas or bars, as that of a limit.
  function lineLook(style, index, color, count, within) {
    const marks = style === "line" && count <= 60 && !within;
    return {
      type: "line",
      step: style === "steps" ? "end" : false,
      symbol: shapes[index % shapes.length],
      symbolSize: 7,
      showSymbol: marks || count === 1,
      lineStyle: { width: 2, color, type: index >= 8 || within ? "dashed" : "solid" },
      itemStyle: { color },
    };
  }

  function seriesLook(style, index, color, theme, count, within) {
    if (style === "points") {
      return {
        type: "scatter",
        symbol: shapes[index % shapes.length],
        symbolSize: count > 500 ? 5 : 9,
        itemStyle: { color, opacity: 0.85 },
        large: count > 2000,
        emphasis: { scale: 1.4 },
      };
    }
    if (isBars(style)) {
      return {
        type: "bar",
        barMaxWidth: 52,
        barMinHeight: 0,
        stack: style === "stacked-bars" ? "all" : undefined,
        itemStyle: {
          color,
          borderColor: theme.surface,
          borderWidth: style === "stacked-bars" ? 1 : 0,
        },
      };
    }
    const line = lineLook(style, index, color, count, within);
    if (style !== "area") return line;
    return {
      ...line,
      stack: "all",
      areaStyle: { color, opacity: 1 },
      lineStyle: { width: 0.5, color: theme.surface },
    };
  }

  function makeSeries(prepared, theme, lying) {
    const { view, names, xScale, yScale, hues } = prepared;
    return view.panels.flatMap((panel, at) =>
      panel.series.map((one) => {
        const index = names.indexOf(one.name || ""),
          style = styleOf(view, one);
        const color = theme.hues[hues.get(one.name || "")];
        const dashed =
          one.style && one.style.dashed ? { lineStyle: { type: "dashed", width: 2, color } } : {};
        return {
          name: one.name || "",
          xAxisIndex: at,
          yAxisIndex: at,
          ...seriesLook(
            style,
            index,
            color,
            theme,
            one.points.length,
            style !== view.style && isStacked(view.style),
          ),
          ...dashed,
          data: one.points.map(([x, y]) => {
            const pair = [view.categories ? x : xScale.toPlot(x), yScale.toPlot(y)];
            return lying ? pair.reverse() : pair;
          }),
        };
      }),
    );
  }

  // Room for the names of bars that lie.
  function gutterOf(categories, width) {
    const longest = categories.reduce((most, name) => Math.max(most, String(name).length), 0);
    return Math.round(Math.min(230, width * 0.36, longest * 6.6 + 18));
  }

  // Where the panels stand: [{left, top, width, height}], and the height of all.
  function layout(count, width, lying) {
    const right = 18;
    if (lying) {
      const height = lying.length * 26;
      return {
        places: [
          {
            left: gutterOf(lying, width),
            top: 10,
            right,
            height,
            containLabel: false,
            outerBoundsMode: "none",
          },
        ],
        height: height + 38,
      };
    }
    if (count <= 1) {
      const height = width < 520 ? 240 : 300;
      return { places: [{ left: 8, top: 14, right, height }], height: height + 50 };
    }
    const columns = Math.max(1, Math.min(count, 4, Math.floor(width / 290)));
    const cell = width / columns,
      high = 190,
      row = high + 46;
    const places = Array.from({ length: count }, (_, at) => ({
      left: (at % columns) * cell + 8,
      top: Math.floor(at / columns) * row + 30,
      width: cell - 24,
      height: high,
    }));
    return { places, height: Math.ceil(count / columns) * row + 6 };
  }

  // Tooltip lines from what ECharts tells of the points under the pointer.
  function tooltip(prepared, theme) {
    const { view, hues } = prepared;
    const flat = view.panels.flatMap((panel) => panel.series.map((one) => ({ one, panel })));
    const line = (params) => {
      const { one } = flat[params.seriesIndex],
        point = one.points[params.dataIndex] || [];
      return [
        theme.hues[hues.get(one.name || "")],
        one.name || view.y.name || "",
        units.both(point[1], view.y.unit),
      ];
    };
    const head = (params) => {
      const { one, panel } = flat[params.seriesIndex],
        x = (one.points[params.dataIndex] || [])[0];
      const at = view.categories
        ? String(view.categories[x])
        : `${view.x.name || "x"} ${units.both(x, view.x.unit)}`;
      return panel.title && view.panels.length > 1 ? `${panel.title}, ${at}` : at;
    };
    const byPoint = flat.some(({ one }) => styleOf(view, one) === "points");
    return {
      trigger: byPoint ? "item" : "axis",
      axisPointer: { type: isBars(view.style) ? "shadow" : "line" },
      formatter: (given) => {
        const all = [].concat(given).filter((params) => flat[params.seriesIndex]);
        if (all.length === 0) return "";
        const texts = all
          .map((params) => (flat[params.seriesIndex].one.texts || [])[params.dataIndex])
          .filter(Boolean);
        return parts.tip(head(all[0]), [
          ...all.map(line),
          ...texts.map((text) => [null, text, ""]),
        ]);
      },
    };
  }

  function build(prepared, theme, width, zooms) {
    const { view, xScale, yScale, shared } = prepared;
    const several = view.panels.length > 1,
      lying = liesDown(prepared, width);
    const { places, height } = layout(view.panels.length, width, lying ? view.categories : null);
    const across = (at) => ({
      gridIndex: at,
      ...(view.categories
        ? axes.categoryAxis(
            view.categories,
            theme,
            lying ? gutterOf(view.categories, width) - 10 : undefined,
          )
        : {
            ...(view.x.unit === "s" && view.style !== "points"
              ? axes.tightAxis(xScale, theme)
              : axes.valueAxis(xScale, theme, shared)),
            splitLine: { show: false },
          }),
      ...(lying
        ? { inverse: true }
        : {
            name: several ? "" : view.categories ? view.x.name || "" : xScale.name,
            nameLocation: "middle",
            nameGap: 30,
          }),
    });
    const upward = (at) => ({
      gridIndex: at,
      ...axes.valueAxis(yScale, theme, shared),
      axisLine: { show: false },
    });
    const [xs, ys] = lying
      ? [places.map((_, at) => upward(at)), places.map((_, at) => across(at))]
      : [places.map((_, at) => across(at)), places.map((_, at) => upward(at))];
    return {
      height,
      option: {
        grid: places.map((place) => ({ containLabel: true, ...place })),
        title: several
          ? places.map((place, at) => ({
              text: view.panels[at].title || "",
              left: place.left,
              top: place.top - 28,
              textStyle: { fontSize: 13, fontWeight: 600, color: theme.text },
            }))
          : [],
        xAxis: xs,
        yAxis: ys,
        series: makeSeries(prepared, theme, lying),
        tooltip: tooltip(prepared, theme),
        dataZoom: zooms
          ? [
              {
                type: "inside",
                xAxisIndex: 0,
                zoomOnMouseWheel: "ctrl",
                moveOnMouseWheel: false,
                filterMode: view.style === "points" ? "filter" : "none",
              },
            ]
          : [],
      },
    };
  }

  // Its numbers: a row a point, or where series are few, a row an x and a column a series.
  function numbers(prepared) {
    const { view } = prepared,
      several = view.panels.length > 1;
    const xColumn = view.categories
      ? { name: view.x.name || "" }
      : { name: view.x.name || "x", unit: view.x.unit };
    const xOf = (x) => (view.categories ? view.categories[x] : x);
    const all = view.panels.flatMap((panel) => panel.series.map((one) => ({ one, panel })));
    if (all.length > 8 || view.style === "points") {
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

  function subtitle({ view, xScale, yScale }) {
    const across = view.categories ? view.x.name || "" : xScale.name;
    return [yScale.name, across].filter(Boolean).join(", over ");
  }

  // A chart's figure. `level`: of its heading.
  function chart(view, level, peer) {
    const prepared = prepare(view, peer),
      { names, hues, xScale, yScale } = prepared;
    if (!prepared.drawn) return emptyChart(view, level);
    const points = prepared.view.panels.reduce(
      (sum, panel) => sum + panel.series.reduce((count, one) => count + one.points.length, 0),
      0,
    );
    const dropped = (prepared.view.categories ? 0 : xScale.dropped) + yScale.dropped;
    const zooms =
      prepared.view.panels.length === 1 &&
      points > 30 &&
      (!prepared.view.categories || prepared.view.categories.length > 40);
    return new parts.ChartFrame({
      title: view.title || "Chart",
      level,
      subtitle: subtitle(prepared),
      zooms,
      description: `${view.title || "Chart"}: ${subtitle(prepared)}. ${
        names.length > 1 ? `${names.length} series: ${names.slice(0, 12).join(", ")}. ` : ""
      }${points} points; the button below shows them as a table.`,
      legend: names.map((name) => ({ name, hue: hues.get(name) })),
      note: dropped
        ? `${dropped} ${dropped === 1 ? "point is" : "points are"} not shown: a logarithmic axis has no place for zero or less.`
        : null,
      build: (theme, width) => build(prepared, theme, width, zooms),
      numbers: () => numbers(prepared),
    }).element;
  }

  function emptyChart(view, level) {
    return parts.dom.element(
      "div",
      { class: "chart" },
      level ? parts.dom.heading(level, view.title || "Chart", { class: "view-title" }) : null,
      parts.dom.element("p", { class: "quiet", text: "There is nothing to draw." }),
    );
  }

  Object.assign(parts, { chart, emptyChart });
})();
