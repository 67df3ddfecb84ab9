// A timeline: what each rank does when, as bars coloured by kind. Up to about 20,000 slices.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { units, axes } = parts;

  // "F mb 3 of stage 0" where there is room, else "F3", else nothing.
  function fitting(text, width) {
    const room = (width - 6) / 6.2;
    if (text.length <= room) return text;
    const match = /^(\w+) mb (\d+)/.exec(text);
    const short = match ? match[1] + match[2] : text;
    return short.length <= room ? short : "";
  }

  function barOf(view, color) {
    const ink = parts.colors.inkOn(color);
    return (params, api) => {
      const row = api.value(0),
        start = api.coord([api.value(1), row]),
        end = api.coord([api.value(2), row]);
      const thick = api.size([0, 1])[1] * 0.76;
      // Bars thinner than a pixel stay so: together they give it the mean of their colours.
      const shape = echarts.graphic.clipRectByRect(
        {
          x: start[0],
          y: start[1] - thick / 2,
          width: Math.max(0.1, end[0] - start[0]),
          height: thick,
        },
        params.coordSys,
      );
      if (!shape) return null;
      // Between bars that are wide enough a gap tells them apart.
      if (shape.width > 4) shape.width -= 1;
      const text =
        thick >= 13 && shape.width > 16
          ? fitting(view.labels[api.value(3)] || "", shape.width)
          : "";
      return {
        type: "rect",
        shape,
        style: { fill: color },
        textContent: text ? { style: { text, fill: ink, fontSize: 11 } } : undefined,
        textConfig: text ? { position: "inside" } : undefined,
      };
    };
  }

  // One series a kind, so that a kind can be switched off; `at` says which slice it is. Numbers one
  // after another are what ECharts takes fastest.
  function makeSeries(view, scale, theme, hues) {
    const byKind = view.kinds.map(() => []);
    view.slices.forEach(([row, kind, start, end, label], at) => {
      if (byKind[kind]) byKind[kind].push(row, scale.toPlot(start), scale.toPlot(end), label, at);
    });
    return view.kinds.map((name, kind) => {
      const color = theme.hues[hues.get(name)];
      return {
        type: "custom",
        name,
        data: Float64Array.from(byKind[kind]),
        renderItem: barOf(view, color),
        clip: true,
        dimensions: ["row", "start", "end", "label", "slice"],
        encode: { x: [1, 2], y: 0 },
        itemStyle: { color },
        emphasis: { disabled: true },
        progressive: 0,
      };
    });
  }

  function tooltip(view, theme, hues) {
    return {
      trigger: "item",
      formatter: (params) => {
        const slice = view.slices[params.value[4]];
        if (!slice) return "";
        const [row, kind, start, end, label] = slice;
        return parts.tip(view.labels[label] || view.kinds[kind], [
          [theme.hues[hues.get(view.kinds[kind])], view.kinds[kind], ""],
          [null, "on", String(view.rows[row])],
          [null, "from", units.both(start, view.unit)],
          [null, "to", units.both(end, view.unit)],
          [null, "takes", units.both(end - start, view.unit)],
        ]);
      },
    };
  }

  const rowHeight = (count) =>
    count <= 16 ? 30 : count <= 40 ? 22 : Math.max(8, Math.floor(900 / count));

  function slider(gutter, theme) {
    return {
      type: "slider",
      xAxisIndex: 0,
      filterMode: "weakFilter",
      left: gutter,
      right: 16,
      bottom: 8,
      height: 20,
      showDetail: false,
      brushSelect: false,
      borderColor: theme.grid,
      fillerColor: theme.dark ? "#3b97d344" : "#0072b222",
      handleStyle: { color: theme.surface, borderColor: theme.axis },
      moveHandleSize: 0,
      showDataShadow: false,
      textStyle: { color: theme.muted },
    };
  }

  function build(view, scale, span, theme, width, hues) {
    const gutter = Math.min(190, Math.round(width * 0.27));
    const inner = Math.max(60, view.rows.length * rowHeight(view.rows.length));
    const base = axes.look(theme);
    return {
      height: inner + 88,
      option: {
        grid: {
          left: gutter,
          right: 16,
          top: 8,
          height: inner,
          containLabel: false,
          outerBoundsMode: "none",
        },
        xAxis: {
          ...base,
          type: "value",
          min: scale.toPlot(span.begin),
          max: scale.toPlot(span.end),
          name: scale.name,
          nameLocation: "middle",
          nameGap: 26,
          axisLabel: { ...base.axisLabel, showMaxLabel: false, formatter: axes.tickText },
        },
        yAxis: {
          ...axes.categoryAxis(view.rows.map(String), theme, gutter - 12),
          inverse: true,
          axisLine: { show: false },
        },
        series: makeSeries(view, scale, theme, hues),
        tooltip: tooltip(view, theme, hues),
        dataZoom: [axes.wheelZoom("weakFilter"), slider(gutter, theme)],
      },
    };
  }

  function numbers(view) {
    return {
      columns: [
        { name: "row" },
        { name: "kind" },
        { name: "what" },
        { name: "from", unit: view.unit },
        { name: "to", unit: view.unit },
        { name: "takes", unit: view.unit },
      ],
      rows: view.slices.map(([row, kind, start, end, label]) => [
        view.rows[row],
        view.kinds[kind],
        view.labels[label] || null,
        start,
        end,
        end - start,
      ]),
    };
  }

  // The figure of a timeline. `longest`: seconds that its axis holds at least, so that two of them
  // side by side compare.
  function timeline(given, level, longest) {
    const view = {
      title: "Timeline",
      unit: "s",
      rows: [],
      kinds: [],
      slices: [],
      labels: [],
      ...given,
    };
    if (view.slices.length === 0) return parts.emptyChart(view, level);
    const last = view.slices.reduce((most, slice) => Math.max(most, slice[3]), 0);
    const begin = view.begin || 0,
      span = { begin, end: Math.max(view.end || last, begin + (longest || 0)) };
    const scale = axes.makeScale({ name: "time", unit: view.unit }, [span.end], true);
    const hues = parts.colors.assignHues(view.kinds);
    return new parts.ChartFrame({
      title: view.title,
      level,
      zooms: true,
      subtitle: "Ctrl and the wheel zoom, dragging moves; so do the buttons below.",
      description:
        `${view.title}: ${view.rows.length} rows over ` +
        `${units.format(span.end - span.begin, view.unit)}, ` +
        `${view.slices.length} slices of ${view.kinds.join(", ")}. ` +
        "The button below shows them as a table.",
      legend: view.kinds.map((name) => ({ name, hue: hues.get(name) })),
      height: view.rows.length * rowHeight(view.rows.length) + 88,
      build: (theme, width) => build(view, scale, span, theme, width, hues),
      numbers: () => numbers(view),
    }).element;
  }

  parts.timeline = timeline;
})();
