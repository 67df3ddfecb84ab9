// Sections: a heading, paragraphs and views.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { element, heading } = parts.dom;

  // One view; what cannot be drawn says so in its place and leaves the others alone. `options`:
  // level of headings, prefix of labels ("A: "), longest of timelines, peers: views
  // of the run beside.
  function makeView(view, options) {
    const level = view.title && view.title !== options.under ? options.level : 0;
    try {
      if (view.kind === "chart") return parts.chart(view, level, peerOf(view, options));
      if (view.kind === "timeline") return parts.timeline(view, level, options.longest);
      if (view.kind === "table") {
        return element(
          "div",
          { class: "view" },
          level ? heading(level, view.title, { class: "view-title" }) : null,
          parts.tables.viewTable(
            view,
            `${options.prefix || ""}${view.title || options.under || "Table"}`,
          ),
        );
      }
      throw new Error(`no view is of kind "${view.kind}"`);
    } catch (problem) {
      return element("p", {
        class: "problem",
        text: `“${view.title || view.kind}” could not be drawn: ${problem.message}`,
      });
    }
  }

  // The view of the other run that is drawn beside this one, if there is one like it.
  function peerOf(view, options) {
    return (options.peers || []).find(
      (other) =>
        other.kind === "chart" &&
        other.title === view.title &&
        other.style === view.style &&
        other.panels,
    );
  }

  // Charts that do with half of a wide page: of one panel, and not for many categories.
  function isNarrow(view) {
    return (
      view.kind === "chart" &&
      (view.panels || []).length === 1 &&
      (view.categories || []).length <= 12
    );
  }

  // Narrow charts that follow each other stand side by side where there is room.
  function placeViews(views, options) {
    const placed = [];
    let pairs = null;
    views.forEach((view, at) => {
      const made = makeView(view, options);
      if (!isNarrow(view)) pairs = null;
      else if (!pairs && at + 1 < views.length && isNarrow(views[at + 1]))
        placed.push((pairs = element("div", { class: "pairs" })));
      if (pairs) pairs.append(made);
      else placed.push(made);
    });
    return placed;
  }

  // What stands under a section's heading.
  function sectionBody(section, options) {
    return [
      ...(section.text || []).map((text) => element("p", { class: "text", text })),
      ...placeViews(section.views || [], { ...options, under: section.title }),
    ];
  }

  // A section of the page: its heading is in the contents.
  function topSection(title, wishedId, children) {
    const id = parts.dom.uniqueId(wishedId || title);
    return element(
      "section",
      { id, class: "card", "aria-labelledby": `${id}-title`, "data-title": title },
      heading(2, title, { id: `${id}-title` }),
      children,
    );
  }

  // Figures as tiles: [{title, value, unit}].
  function figureTiles(figures) {
    if (!figures || figures.length === 0) return null;
    return element(
      "dl",
      { class: "tiles" },
      figures.map((figure) =>
        element(
          "div",
          { class: "tile" },
          element("dt", { text: figure.title || figure.name }),
          element("dd", {
            text: parts.units.format(figure.value, figure.unit),
            title: parts.units.exact(figure.value, figure.unit),
          }),
        ),
      ),
    );
  }

  parts.sections = { sectionBody, topSection, figureTiles };
})();
