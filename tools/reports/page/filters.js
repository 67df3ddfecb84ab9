// The filters in the heads of the candidates' columns: a list of few texts, else a text, which has
// the few numbers there are to choose from.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { element } = parts.dom;
  const { units } = parts;

  // What a filter says that keeps one value: "=text", so that no longer text passes; "–": nothing.
  function wishFor(column, value, text) {
    if (value === null) return "–";
    return column.kind === "text" ? `=${text}` : text;
  }

  function makeList(column, label) {
    const options = column.few.map((value) => {
      const text = units.format(value, column.unit);
      return element("option", { value: wishFor(column, value, text), text });
    });
    const any = element("option", { value: "", text: "any" });
    return element("select", { "aria-label": label }, any, options);
  }

  function makeText(column, label, host) {
    const input = element("input", {
      type: "text",
      "aria-label": label,
      autocomplete: "off",
      spellcheck: "false",
    });
    if (!column.few) return input;
    const id = parts.dom.uniqueId("hints");
    const hints = column.few.map((value) => element("option", { value: units.format(value, "") }));
    host.append(element("datalist", { id }, hints));
    input.setAttribute("list", id);
    return input;
  }

  // For Tabulator: makes the filter of a column. It does not wait for a pause in typing, as filters
  // are fast. `host`: where lists of hints may stand.
  function columnFilter(column, host) {
    return (cell, onRendered, success) => {
      const isList = column.few && column.kind !== "number";
      const label = `Filter ${column.title}`;
      const input = isList ? makeList(column, label) : makeText(column, label, host);
      input.value = cell.getValue() || "";
      input.addEventListener("input", () => {
        const wish = input.value;
        const unreadable = wish.trim() !== "" && parts.columns.condition(column, wish) === null;
        input.setAttribute("aria-invalid", String(unreadable));
        success(wish);
      });
      return input;
    };
  }

  parts.columnFilter = columnFilter;
})();
