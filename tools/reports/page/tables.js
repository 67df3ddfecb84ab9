// Tables of views: plain ones where they are short, Tabulator's, which sort, where they are long.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { element, button } = parts.dom;
  const shortest = 9; // so many rows are worth sorting

  const isNumberColumn = (rows, at) =>
    rows.some((row) => typeof row[at] === "number") &&
    rows.every((row) => typeof row[at] === "number" || row[at] === null || row[at] === undefined);

  // A box of its own to scroll in, so that the page never scrolls sideways.
  function scrollBox(label, ...children) {
    return element(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": label },
      children,
    );
  }

  // A plain table; the first column heads its rows. Numbers show with units, exactly in `title`.
  function plainTable(label, columns, rows) {
    const right = columns.map((_, at) => isNumberColumn(rows, at));
    const head = columns.map((column, at) =>
      element("th", {
        scope: "col",
        class: right[at] ? "number" : null,
        text: column.title || column.name,
      }),
    );
    const body = rows.map((row) =>
      element(
        "tr",
        {},
        columns.map((column, at) =>
          element(at === 0 ? "th" : "td", {
            scope: at === 0 ? "row" : null,
            class: right[at] ? "number" : null,
            title: typeof row[at] === "number" ? parts.units.exact(row[at], column.unit) : null,
            text: parts.units.format(row[at], column.unit),
          }),
        ),
      ),
    );
    return scrollBox(
      label,
      element(
        "table",
        { class: "plain" },
        element("caption", { class: "unseen", text: label }),
        element("thead", {}, element("tr", {}, head)),
        element("tbody", {}, body),
      ),
    );
  }

  // A cell's text, exactly in `title`.
  function cellFormatter(unit) {
    return (cell) => {
      const value = cell.getValue();
      return element("span", {
        title: typeof value === "number" ? parts.units.exact(value, unit) : value,
        text: parts.units.format(value, unit),
      });
    };
  }

  // A button as the title of a column: who has no mouse sorts with it.
  function sortTitle(title) {
    return () =>
      element("button", { type: "button", class: "sort", title: `Sort by ${title}`, text: title });
  }

  // Tabulator says that the grid owns its rows alone, which leaves its heads without a grid; and
  // the box that scrolls, which one can tab to, has no role.
  function mendRoles(table, label) {
    table.element.removeAttribute("aria-owns");
    table.element.setAttribute("aria-label", label);
    const rows = table.element.querySelector(".tabulator-table");
    const holder = table.element.querySelector(".tabulator-tableholder");
    rows.setAttribute("role", "presentation");
    holder.setAttribute("role", "rowgroup");
    holder.setAttribute("aria-label", `${label}: rows`);
  }

  // What stands in a grid without rows: a row that says so.
  function emptyRow(text) {
    return element(
      "div",
      { role: "row", class: "empty-row" },
      element("div", { role: "gridcell", text }),
    );
  }

  function longColumn(column, at, rows) {
    const right = isNumberColumn(rows, at);
    return {
      title: column.title || column.name,
      field: `c${at}`,
      hozAlign: right ? "right" : "left",
      headerHozAlign: right ? "right" : "left",
      sorter: right ? "number" : "alphanum",
      sorterParams: { alignEmptyValues: "bottom" },
      headerSortTristate: true,
      minWidth: 84,
      resizable: "header",
      titleFormatter: sortTitle(column.title || column.name),
      formatter: cellFormatter(column.unit),
    };
  }

  function longTable(label, columns, rows) {
    const place = element("div", {});
    const data = rows.map((row, id) =>
      Object.fromEntries([
        ["id", id],
        ...columns.map((_, at) => [`c${at}`, row[at] === undefined ? null : row[at]]),
      ]),
    );
    const pager = element("div", { class: "pager" });
    // The buttons of pages stand outside of the grid: they are no rows.
    const pages =
      rows.length > 200 ? { pagination: true, paginationSize: 50, paginationElement: pager } : {};
    // Tabulator measures its box: it has to stand in the page first.
    parts.whenShown(place, () => {
      const table = new Tabulator(place, {
        data,
        layout: "fitDataFill",
        nestedFieldSeparator: false,
        columns: columns.map((column, at) => longColumn(column, at, rows)),
        ...pages,
      });
      table.on("tableBuilt", () => mendRoles(table, label));
    });
    return element("div", { class: "long-table" }, place, pager);
  }

  function viewTable(view, label) {
    const columns = view.columns || [],
      rows = view.rows || [];
    if (rows.length === 0) return element("p", { class: "quiet", text: "No rows." });
    return rows.length < shortest
      ? plainTable(label, columns, rows)
      : longTable(label, columns, rows);
  }

  // A button that shows and hides the numbers of a chart, which are made when asked for. `refresh`
  // is for charts whose numbers change.
  function tableToggle(label, makeTable) {
    const id = parts.dom.uniqueId("numbers");
    const place = element("div", { id, hidden: true });
    const fill = () => {
      const { columns, rows } = makeTable();
      const total = rows.length.toLocaleString("en-US");
      const more = element("p", { class: "quiet", text: `The first 1,000 of ${total} rows.` });
      place.replaceChildren(plainTable(label, columns, rows.slice(0, 1000)));
      if (rows.length > 1000) place.append(more);
    };
    const flip = () => {
      place.hidden = !place.hidden;
      toggle.setAttribute("aria-expanded", String(!place.hidden));
      toggle.textContent = place.hidden ? "Show as table" : "Hide the table";
      if (!place.hidden) fill();
    };
    const toggle = button("Show as table", { "aria-expanded": "false", "aria-controls": id }, flip);
    return { toggle, place, refresh: () => place.hidden || fill() };
  }

  parts.tables = {
    plainTable,
    viewTable,
    tableToggle,
    cellFormatter,
    sortTitle,
    mendRoles,
    emptyRow,
  };
})();
