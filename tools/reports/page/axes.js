// Axes of charts: the unit that reads best, ranges that several panels share, ECharts' settings.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});

  const isPowerOfTwo = (value) => value > 0 && Number.isInteger(Math.log2(value));

  // "step time (ms)"; of a unit that is part of the name, only that.
  function axisName(axis, unitName) {
    const name = axis.name || "";
    const unit = unitName.trim();
    return unit ? `${name} (${unit})` : name;
  }

  // 1, 2 or 5 times a power of ten, about as large as `rough`.
  function niceStep(rough) {
    const power = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  }

  // The scale of an axis {name, unit, log}: values are drawn divided by `factor`, so that ECharts'
  // round ticks are round in the unit that is shown. `fromZero`: bars and areas start at nothing.
  function makeScale(axis, values, fromZero) {
    const given = values.filter((value) => typeof value === "number" && Number.isFinite(value));
    const log = Boolean(axis.log) && given.some((value) => value > 0);
    const used = log ? given.filter((value) => value > 0) : given;
    const low = used.reduce((a, b) => Math.min(a, b), Infinity);
    const high = used.reduce((a, b) => Math.max(a, b), -Infinity);
    // A logarithmic axis has its unit at each tick: from KiB to GiB no one reads well for all.
    const ticksSayUnits = log && parts.units.hasSteps(axis.unit);
    const [factor, unitName] = ticksSayUnits
      ? [1, ""]
      : parts.units.stepOf(
          axis.unit || "",
          used.length ? Math.max(Math.abs(low), Math.abs(high)) : 0,
        );
    const zero = fromZero || (low >= 0 && low < 0.6 * high);
    return {
      unit: axis.unit || "",
      factor,
      log,
      ticksSayUnits,
      zero,
      low: low / factor,
      high: high / factor,
      empty: used.length === 0,
      dropped: given.length - used.length,
      whole: given.every(Number.isInteger),
      base: axis.unit === "bytes" || used.every(isPowerOfTwo) || high / low < 100 ? 2 : 10,
      name: axisName(axis, unitName),
      plainName: axis.name || "",
      toPlot: (value) => (typeof value !== "number" || (log && value <= 0) ? null : value / factor),
    };
  }

  // {min, max} for panels that have to agree; on a logarithmic axis whole powers of its base.
  function sharedRange(scale) {
    if (scale.empty) return {};
    if (scale.log) {
      const power = (value, round) => scale.base ** round(Math.log(value) / Math.log(scale.base));
      return {
        min: power(scale.low * 1.0001, Math.floor),
        max: power(scale.high * 0.9999, Math.ceil),
      };
    }
    const low = scale.zero ? Math.min(0, scale.low) : scale.low;
    const high = scale.zero ? Math.max(0, scale.high) : scale.high;
    const step = niceStep((high - low || Math.abs(high) || 1) / 4);
    return { min: Math.floor(low / step + 1e-9) * step, max: Math.ceil(high / step - 1e-9) * step };
  }

  function tickText(value) {
    const size = Math.abs(value);
    if (size >= 1e4) {
      const [factor, prefix] = [
        [1e12, "T"],
        [1e9, "G"],
        [1e6, "M"],
        [1e3, "k"],
      ].find(([f]) => size >= f);
      return `${Number((value / factor).toPrecision(4))}${prefix}`;
    }
    if (size > 0 && size < 1e-4) return value.toExponential(0);
    return String(Number(value.toPrecision(4)));
  }

  function look(theme) {
    return {
      axisLine: { show: true, lineStyle: { color: theme.axis } },
      axisTick: { show: false },
      axisLabel: { color: theme.muted, fontSize: 11, hideOverlap: true },
      splitLine: { show: true, lineStyle: { color: theme.grid } },
      nameTextStyle: { color: theme.muted, fontSize: 12 },
    };
  }

  function valueAxis(scale, theme, shared) {
    const base = look(theme);
    return {
      ...base,
      type: scale.log ? "log" : "value",
      logBase: scale.base,
      scale: !scale.zero,
      minInterval: scale.whole && scale.factor === 1 && !scale.log ? 1 : undefined,
      axisLabel: {
        ...base.axisLabel,
        formatter: scale.ticksSayUnits ? (value) => parts.units.tick(value, scale.unit) : tickText,
      },
      ...(shared || scale.log ? sharedRange(scale) : {}),
    };
  }

  // Over time nothing is drawn beyond the last moment: the axis ends there.
  function tightAxis(scale, theme) {
    const axis = valueAxis(scale, theme, false);
    if (scale.log || scale.empty || scale.low === scale.high) return axis;
    return {
      ...axis,
      min: scale.low,
      max: scale.high,
      axisLabel: { ...axis.axisLabel, showMinLabel: scale.low === 0, showMaxLabel: false },
    };
  }

  function categoryAxis(categories, theme, width) {
    const base = look(theme);
    return {
      ...base,
      type: "category",
      data: categories,
      splitLine: { show: false },
      axisLabel: { ...base.axisLabel, width, overflow: width ? "truncate" : "none" },
    };
  }

  // Zooming with Ctrl and the wheel, and moving by dragging; the wheel alone scrolls the page.
  function wheelZoom(filterMode) {
    return {
      type: "inside",
      xAxisIndex: 0,
      zoomOnMouseWheel: "ctrl",
      moveOnMouseWheel: false,
      preventDefaultMouseMove: false,
      filterMode,
    };
  }

  parts.axes = {
    makeScale,
    valueAxis,
    tightAxis,
    categoryAxis,
    sharedRange,
    look,
    tickText,
    wheelZoom,
  };
})();
