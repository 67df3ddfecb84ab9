// The frame of every chart: title, legend of buttons, the drawing, zoom buttons, its numbers as a
// table. Charts are drawn when they come near the screen, again when the look or the width changes.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { element, button, heading } = parts.dom;
  const printWidth = 680; // px, what a sheet of paper has room for

  const frames = new Set(); // all that stand in the page
  const waiting = new Map(); // element → what to do when it comes near the screen
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) if (entry.isIntersecting) showNow(entry.target);
    },
    { rootMargin: "400px" },
  );

  function whenShown(place, action) {
    waiting.set(place, action);
    watcher.observe(place);
  }

  function showNow(place) {
    const action = waiting.get(place);
    waiting.delete(place);
    watcher.unobserve(place);
    if (action && place.isConnected) action();
  }

  function drawAll() {
    for (const place of [...waiting.keys()]) showNow(place);
  }

  // Before the elements in `box` go: their charts and tables free what they hold.
  function release(box) {
    for (const frame of [...frames]) {
      if (!box.contains(frame.element)) continue;
      frame.dispose();
      frames.delete(frame);
    }
    for (const place of [...waiting.keys()]) {
      if (!box.contains(place)) continue;
      waiting.delete(place);
      watcher.unobserve(place);
    }
    box
      .querySelectorAll(".tabulator")
      .forEach((table) => Tabulator.findTable(table).forEach((found) => found.destroy()));
  }

  // `spec`: title, subtitle, level of the heading (0: none), description for those who cannot see
  // it, legend [{name, hue}], build(theme, width) → {option, height}, numbers() → {columns, rows},
  // zooms (has buttons for it), onclick(what ECharts tells), note.
  class ChartFrame {
    constructor(spec) {
      this.spec = spec;
      this.hidden = new Set(); // names of the legend that are switched off
      this.range = { start: 0, end: 100 };
      this.place = element("div", { class: "drawing" });
      this.place.style.height = `${spec.height || 320}px`;
      const numbers = (this.numbers = parts.tables.tableToggle(
        spec.title || "chart",
        spec.numbers,
      ));
      this.element = element(
        "figure",
        { class: "chart" },
        element(
          "figcaption",
          {},
          spec.level ? heading(spec.level, spec.title, { class: "view-title" }) : null,
          spec.subtitle ? element("p", { class: "subtitle", text: spec.subtitle }) : null,
        ),
        this.makeLegend(),
        this.place,
        spec.note ? element("p", { class: "quiet", text: spec.note }) : null,
        element("div", { class: "actions" }, numbers.toggle, spec.zooms ? this.makeZoom() : null),
        numbers.place,
      );
      frames.add(this);
      whenShown(this.place, () => this.draw());
    }

    makeLegend() {
      const entries = this.spec.legend || [];
      this.swatches = new Map();
      if (entries.length < 2) return null;
      return element(
        "div",
        { class: "legend", role: "group", "aria-label": "Shown in the chart" },
        entries.map(({ name, hue }) => {
          const swatch = element("span", { class: "swatch", "aria-hidden": "true" });
          this.swatches.set(swatch, hue);
          swatch.style.background = parts.colors.theme().hues[hue];
          const toggle = element(
            "button",
            {
              type: "button",
              class: "key",
              "aria-pressed": "true",
              onclick: () => this.toggle(name, toggle),
            },
            swatch,
            name,
          );
          return toggle;
        }),
      );
    }

    makeZoom() {
      const zoom = (text, label, change) =>
        button(text, { class: "button small", "aria-label": label, title: label }, () =>
          this.zoom(change),
        );
      const width = (r) => r.end - r.start;
      return element(
        "div",
        { class: "zoom", role: "group", "aria-label": "Zoom" },
        zoom("◀", "Move to the left", (r) => [r.start - width(r) / 4, r.end - width(r) / 4]),
        zoom("▶", "Move to the right", (r) => [r.start + width(r) / 4, r.end + width(r) / 4]),
        zoom("+", "Zoom in", (r) => [r.start + width(r) / 4, r.end - width(r) / 4]),
        zoom("−", "Zoom out", (r) => [r.start - width(r) / 2, r.end + width(r) / 2]),
        zoom("All", "Show all", () => [0, 100]),
      );
    }

    toggle(name, key) {
      if (!this.hidden.delete(name)) this.hidden.add(name);
      key.setAttribute("aria-pressed", String(!this.hidden.has(name)));
      this.draw();
      this.chart.dispatchAction({
        type: this.hidden.has(name) ? "legendUnSelect" : "legendSelect",
        name,
      });
    }

    zoom(change) {
      this.draw();
      let [start, end] = change(this.range);
      const width = Math.min(100, Math.max(0.01, end - start));
      start = Math.min(Math.max(0, start), 100 - width);
      this.chart.dispatchAction({ type: "dataZoom", start, end: start + width });
    }

    draw() {
      if (this.chart) return;
      waiting.delete(this.place);
      watcher.unobserve(this.place);
      this.width = this.place.clientWidth || printWidth;
      this.chart = echarts.init(this.place, null, {
        renderer: "canvas",
        width: parts.printing ? printWidth : undefined,
      });
      this.chart.on("datazoom", (event) => this.keepRange(event.batch ? event.batch[0] : event));
      if (this.spec.onclick) this.chart.on("click", this.spec.onclick);
      this.redraw();
      this.resizing = new ResizeObserver(() => this.resized());
      this.resizing.observe(this.place);
    }

    keepRange(event) {
      if (typeof event.start === "number") this.range = { start: event.start, end: event.end };
    }

    redraw() {
      if (!this.chart) return;
      const theme = parts.colors.theme();
      for (const [swatch, hue] of this.swatches) swatch.style.background = theme.hues[hue];
      const width = parts.printing ? printWidth : this.width;
      const { option, height } = this.spec.build(theme, width);
      this.place.style.height = `${height}px`;
      this.chart.resize({ width: parts.printing ? printWidth : "auto", height });
      this.chart.setOption(this.dress(option, theme), { notMerge: true });
    }

    // What all charts have in common.
    dress(option, theme) {
      const names = (this.spec.legend || []).map(({ name }) => name);
      const zoom = [].concat(option.dataZoom || []).map((one) => ({ ...one, ...this.range }));
      return {
        animation: false,
        backgroundColor: "transparent",
        textStyle: { fontFamily: theme.font, color: theme.text, fontSize: 12 },
        aria: { enabled: true, label: { description: this.spec.description } },
        ...option,
        legend: {
          show: false,
          data: names,
          selected: Object.fromEntries(names.map((name) => [name, !this.hidden.has(name)])),
        },
        dataZoom: zoom,
        tooltip: {
          confine: true,
          backgroundColor: theme.surface,
          borderColor: theme.axis,
          padding: 10,
          textStyle: { color: theme.text, fontSize: 12 },
          transitionDuration: 0,
          ...option.tooltip,
        },
      };
    }

    resized() {
      const width = this.place.clientWidth;
      if (parts.printing || width === 0 || width === this.width) return;
      this.width = width;
      requestAnimationFrame(() => this.redraw());
    }

    dispose() {
      if (this.resizing) this.resizing.disconnect();
      if (this.chart) this.chart.dispose();
      this.chart = null;
    }
  }

  // What a tooltip says: a title and lines of [colour or null, name, value], all set as text.
  function tip(title, lines) {
    return element(
      "div",
      { class: "tip" },
      title ? element("div", { class: "tip-title", text: title }) : null,
      lines.map(([color, name, value]) => {
        const swatch = color ? element("span", { class: "swatch" }) : null;
        if (swatch) swatch.style.background = color;
        return element(
          "div",
          { class: "tip-line" },
          swatch,
          element("span", { text: name }),
          element("b", { text: value }),
        );
      }),
    );
  }

  function redrawAll() {
    for (const frame of frames) frame.redraw();
  }

  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  window.addEventListener("beforeprint", () => {
    parts.printing = true;
    drawAll();
    redrawAll();
  });
  window.addEventListener("afterprint", () => {
    parts.printing = false;
    redrawAll();
  });

  Object.assign(parts, { ChartFrame, whenShown, release, drawAll, tip });
})();
