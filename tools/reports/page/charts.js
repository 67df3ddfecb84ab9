// Charts of views: lines, points, bars, stacked bars, areas and steps, alone or as panels that
// share their scales.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { units, axes } = parts;
  const { isBars, isStacked, styleOf, prepare, numbers } = parts.chartData;
  const shapes = ["circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect"];

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

  // The axis of x, or of what bars are of.
  function acrossAxis(prepared, theme, width, lying) {
    const { view, xScale, shared } = prepared;
    const gutter = lying ? gutterOf(view.categories, width) - 10 : undefined;
    if (view.categories) return axes.categoryAxis(view.categories, theme, gutter);
    const isTime = view.x.unit === "s" && view.style !== "points";
    const axis = isTime ? axes.tightAxis(xScale, theme) : axes.valueAxis(xScale, theme, shared);
    return { ...axis, splitLine: { show: false } };
  }

  function acrossName({ view, xScale }) {
    if (view.panels.length > 1) return "";
    return view.categories ? view.x.name || "" : xScale.name;
  }

  function panelTitles(panels, places, theme) {
    if (panels.length < 2) return [];
    return places.map((place, at) => ({
      text: panels[at].title || "",
      left: place.left,
      top: place.top - 28,
      textStyle: { fontSize: 13, fontWeight: 600, color: theme.text },
    }));
  }

  function build(prepared, theme, width, zooms) {
    const { view, yScale, shared } = prepared;
    const lying = liesDown(prepared, width);
    const { places, height } = layout(view.panels.length, width, lying ? view.categories : null);
    const across = {
      ...acrossAxis(prepared, theme, width, lying),
      ...(lying
        ? { inverse: true }
        : { name: acrossName(prepared), nameLocation: "middle", nameGap: 30 }),
    };
    const upward = { ...axes.valueAxis(yScale, theme, shared), axisLine: { show: false } };
    const inEach = (axis) => places.map((_, at) => ({ ...axis, gridIndex: at }));
    return {
      height,
      option: {
        grid: places.map((place) => ({ containLabel: true, ...place })),
        title: panelTitles(view.panels, places, theme),
        xAxis: inEach(lying ? upward : across),
        yAxis: inEach(lying ? across : upward),
        series: makeSeries(prepared, theme, lying),
        tooltip: tooltip(prepared, theme),
        dataZoom: zooms ? [axes.wheelZoom(view.style === "points" ? "filter" : "none")] : [],
      },
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
        ? `${dropped} ${dropped === 1 ? "point is" : "points are"} not shown: ` +
          "a logarithmic axis has no place for zero or less."
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
