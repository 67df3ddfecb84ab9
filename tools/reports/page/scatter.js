// The candidates' scatter: step time over memory, the feasible ones as points, the front as a line.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { units, axes } = parts;
  const xName = "peak_memory_bytes",
    yName = "step_time_s";

  class Scatter {
    // `chosen()` → [[letter, row]] of A and B; `pick(row, event)` on a click.
    constructor(candidates, search, chosen, pick) {
      Object.assign(this, { candidates, chosen, pick });
      this.x = candidates.column(xName);
      this.y = candidates.column(yName);
      this.fits = candidates.column("fits");
      this.withRun = (search.runs || []).map((run) => run.row);
      this.front = (search.front || [])
        .filter((row) => this.isDrawn(row))
        .sort((a, b) => this.x.number(a) - this.x.number(b));
      this.rows = [];
      if (!this.x || !this.y) return;
      const all = candidates.base.filter((row) => this.isDrawn(row));
      if (all.length === 0) return;
      this.scales(all);
      this.makeFrame();
    }

    isDrawn(row) {
      return (
        this.x &&
        this.y &&
        this.x.number(row) > 0 &&
        this.y.number(row) > 0 &&
        (!this.fits || this.fits.value(row) === true)
      );
    }

    scales(rows) {
      const values = (column) => Array.from(rows, (row) => column.number(row));
      const isWide = (list) =>
        list.reduce((a, b) => Math.max(a, b), 0) >
        15 * list.reduce((a, b) => Math.min(a, b), Infinity);
      const xs = values(this.x),
        ys = values(this.y);
      this.xScale = axes.makeScale(
        { name: this.x.title, unit: this.x.unit, log: isWide(xs) },
        xs,
        false,
      );
      this.yScale = axes.makeScale(
        { name: this.y.title, unit: this.y.unit, log: isWide(ys) },
        ys,
        false,
      );
    }

    makeFrame() {
      this.frame = new parts.ChartFrame({
        title: "Step time over memory",
        level: 3,
        zooms: true,
        subtitle:
          `${this.yScale.name}, over ${this.xScale.name}: candidates that fit and that the ` +
          "filters keep. A click on a larger point shows its configuration.",
        description:
          "Step time over peak memory of the candidates that fit. The Pareto front is a line. " +
          "The button below shows the numbers as a table.",
        legend: [
          { name: "candidates", hue: "sky" },
          { name: "Pareto front", hue: "vermillion" },
          { name: "with a configuration", hue: "blue" },
        ],
        build: (theme, width) => this.build(theme, width),
        numbers: () => this.numbers(),
        onclick: (event) =>
          this.pick(
            this.rowOf(event.seriesIndex, event.dataIndex),
            event.event && event.event.event,
          ),
      });
    }

    // Which candidates the filters keep now.
    show(kept) {
      if (!this.frame) return;
      this.rows = kept.filter((row) => this.isDrawn(row));
      this.frame.redraw();
      this.frame.numbers.refresh();
    }

    pairs(rows) {
      return Array.from(rows, (row) => [
        this.xScale.toPlot(this.x.number(row)),
        this.yScale.toPlot(this.y.number(row)),
      ]);
    }

    // Pairs one after another, as ECharts wants them of very many points.
    flatPairs(rows) {
      const flat = new Float64Array(2 * rows.length);
      for (let i = 0; i < rows.length; ++i) {
        flat[2 * i] = this.xScale.toPlot(this.x.number(rows[i]));
        flat[2 * i + 1] = this.yScale.toPlot(this.y.number(rows[i]));
      }
      return flat;
    }

    build(theme, width) {
      const kept = new Set(this.rows);
      this.shownRuns = this.withRun.filter((row) => kept.has(row));
      const axisOf = (scale) => axes.valueAxis(scale, theme, true);
      const name = { name: this.xScale.name, nameLocation: "middle", nameGap: 30 };
      return {
        height: width < 520 ? 300 : 400,
        option: {
          grid: { left: 8, right: 20, top: 14, bottom: 40, containLabel: true },
          xAxis: { ...axisOf(this.xScale), ...name },
          yAxis: { ...axisOf(this.yScale), axisLine: { show: false } },
          dataZoom: [axes.wheelZoom("filter")],
          tooltip: {
            trigger: "item",
            formatter: (params) => this.tip(this.rowOf(params.seriesIndex, params.dataIndex)),
          },
          series: [this.pointSeries(theme), this.frontSeries(theme), this.runSeries(theme)],
        },
      };
    }

    pointSeries(theme) {
      const many = this.rows.length > 2000;
      return {
        name: "candidates",
        type: "scatter",
        data: many ? this.flatPairs(this.rows) : this.pairs(this.rows),
        large: many,
        dimensions: ["x", "y"],
        symbolSize: many ? 3 : 8,
        itemStyle: { color: theme.hues.sky, opacity: many ? 0.5 : 0.85 },
      };
    }

    frontSeries(theme) {
      return {
        name: "Pareto front",
        type: "line",
        data: this.pairs(this.front),
        symbol: "diamond",
        symbolSize: 8,
        z: 3,
        lineStyle: { width: 2, color: theme.hues.vermillion },
        itemStyle: { color: theme.hues.vermillion },
      };
    }

    // Those with a configuration; A and B have their letters.
    runSeries(theme) {
      const letters = new Map(this.chosen().map(([letter, row]) => [row, letter]));
      return {
        name: "with a configuration",
        type: "scatter",
        data: this.pairs(this.shownRuns),
        symbolSize: 15,
        z: 4,
        labelLayout: { moveOverlap: "shiftX" },
        itemStyle: { color: theme.hues.blue, borderColor: theme.surface, borderWidth: 2 },
        label: {
          show: true,
          position: "top",
          color: theme.text,
          fontWeight: 700,
          fontSize: 13,
          textBorderColor: theme.surface,
          textBorderWidth: 3,
          formatter: (params) => letters.get(this.shownRuns[params.dataIndex]) || "",
        },
      };
    }

    rowOf(series, index) {
      return [this.rows, this.front, this.shownRuns || []][series][index];
    }

    tip(row) {
      if (row === undefined) return "";
      const axesOf = this.candidates.columns
        .filter((column) => column.axis && !column.isSame)
        .map((column) => [null, column.title, units.format(column.value(row), column.unit)]);
      return parts.tip(null, [
        [null, this.y.title, units.both(this.y.value(row), this.y.unit)],
        [null, this.x.title, units.both(this.x.value(row), this.x.unit)],
        ...axesOf,
      ]);
    }

    numbers() {
      const shown = this.candidates.columns.filter((column) => column.axis && !column.isSame);
      return {
        columns: [this.y, this.x, ...shown].map((column) => ({
          name: column.title,
          unit: column.unit,
        })),
        rows: Array.from(this.rows, (row) =>
          [this.y, this.x, ...shown].map((column) => column.value(row)),
        ),
      };
    }
  }

  parts.Scatter = Scatter;
})();
