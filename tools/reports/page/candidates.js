// The explorer of a search's candidates: Tabulator shows a page of rows at a time, our columns sort
// and filter them.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { element, button } = parts.dom;
  const { units } = parts;
  const main = new Set([
    "step_time_s",
    "throughput_samples_per_s",
    "mfu",
    "bubble_fraction",
    "exposed_communication_s",
    "peak_memory_bytes",
    "fits",
    "reason",
    "price_per_sample",
    "run_days",
    "run_price",
  ]);
  const count = (number) => number.toLocaleString("en-US");

  class Explorer {
    constructor(search, title) {
      this.search = search;
      this.title = title;
      this.candidates = new parts.columns.Candidates(search);
      this.says = element("p", { class: "count", role: "status" });
      if ((search.runs || []).length > 0) {
        this.runs = new parts.Runs(
          search,
          this.candidates,
          title.replace("Candidates", "Configurations"),
          () => this.chose(),
        );
      }
      this.element = parts.sections.topSection(title, title, this.body());
    }

    body() {
      if (this.candidates.count === 0)
        return [element("p", { class: "quiet", text: "This search has no candidates." })];
      this.scatter = new parts.Scatter(
        this.candidates,
        this.search,
        () => this.chosenRows(),
        (row, event) => this.pick(row, event),
      );
      this.place = element("div", {});
      this.paper = element("div", { class: "paper" });
      this.pager = element("div", {
        class: "pager",
        role: "group",
        "aria-label": "Pages of candidates",
      });
      return [
        this.aboutSame(),
        element(
          "div",
          { class: "toolbar" },
          this.says,
          this.onlyBoxes(),
          button("Reset filters", {}, () => this.reset()),
          this.chooser(),
        ),
        this.help(),
        element("div", { class: "candidates" }, this.place, this.pager),
        this.paper,
        this.scatter.frame
          ? this.scatter.frame.element
          : element("p", {
              class: "quiet",
              text: "No candidate fits and was played: there is no step time over memory to draw.",
            }),
      ];
    }

    aboutSame() {
      const same = this.candidates.columns.filter(
        (column) => column.isSame && column.few[0] !== null && column.few[0] !== "",
      );
      if (same.length === 0) return null;
      return element(
        "p",
        { class: "same" },
        element("span", { class: "quiet", text: "The same in all: " }),
        same
          .map((column, at) => [
            at > 0 ? ", " : "",
            `${column.title} `,
            element("b", {
              text: units.format(column.few[0], column.unit),
              title: units.exact(column.few[0], column.unit),
            }),
          ])
          .flat(),
      );
    }

    help() {
      return element("p", {
        class: "quiet help",
        text: "Filters: text that a cell holds; of numbers 8, <8, >=400 ms, 2..8, <4 GiB, >40%.",
      });
    }

    // Boxes for the rows people ask for most.
    onlyBoxes() {
      const choices = [
        ["front", "Pareto front only", this.search.front || []],
        ["runs", "With a configuration only", (this.search.runs || []).map((run) => run.row)],
      ];
      this.boxes = choices
        .filter(([, , rows]) => rows.length > 0)
        .map(([name, text, rows]) => {
          const box = element("input", {
            type: "checkbox",
            onchange: () => {
              if (box.checked) this.candidates.only.set(name, rows);
              else this.candidates.only.delete(name);
              this.table.setPage(1);
            },
          });
          return { box, label: element("label", { class: "check" }, box, text) };
        });
      return this.boxes.map(({ label }) => label);
    }

    shownColumns() {
      return this.candidates.columns.filter((column) => !column.isSame);
    }

    isMain(column) {
      return column.axis || main.has(column.name);
    }

    chooser() {
      const boxes = this.shownColumns().map((column) => {
        const box = element("input", {
          type: "checkbox",
          checked: this.isMain(column),
          onchange: () => this.showColumn(column, box.checked),
        });
        return element("label", { class: "check" }, box, column.title);
      });
      return element(
        "details",
        { class: "chooser" },
        element("summary", { class: "button", text: "Columns" }),
        element("fieldset", {}, element("legend", { text: "Columns of the table" }), boxes),
      );
    }

    // Columns that are not shown are none of Tabulator's: it would make cells for them too.
    showColumn(column, show) {
      if (!show) {
        if (this.candidates.filters.has(column.name))
          this.table.setHeaderFilterValue(column.name, "");
        setTimeout(() => this.table.deleteColumn(column.name), 0); // after the rows that this loads
        return;
      }
      const names = this.table.getColumns().map((one) => one.getField());
      const after = this.candidates.columns
        .slice(this.candidates.columns.indexOf(column) + 1)
        .find((one) => names.includes(one.name));
      this.table.addColumn(
        this.tableColumn(column),
        Boolean(after),
        after ? after.name : undefined,
      );
    }

    // Wide enough for its title and the first of its cells: Tabulator need not measure them.
    widthOf(column) {
      const cells = Array.from(
        this.candidates.base.subarray(0, 50),
        (row) => units.format(column.value(row), column.unit).length,
      );
      return Math.min(
        230,
        Math.max(84, column.title.length * 8 + 50, Math.max(...cells) * 7.8 + 26),
      );
    }

    tableColumn(column) {
      const align = column.kind === "number" ? "right" : "left";
      return {
        title: column.title,
        field: column.name,
        hozAlign: align,
        headerHozAlign: align,
        width: column.name === "reason" ? 320 : this.widthOf(column),
        titleFormatter: parts.tables.sortTitle(column.title),
        formatter: parts.tables.cellFormatter(column.unit),
        headerFilter: parts.columnFilter(column, this.element),
        headerFilterLiveFilter: false,
        headerFilterPlaceholder: "filter",
        headerSortTristate: true,
        resizable: "header",
      };
    }

    tableColumns() {
      const own = this.shownColumns()
        .filter((column) => this.isMain(column))
        .map((column) => this.tableColumn(column));
      if (!this.runs) return own;
      const show = {
        title: "show",
        field: "row of the run",
        headerSort: false,
        resizable: false,
        width: 84,
        formatter: (cell) => this.showButtons(cell.getData().id),
      };
      return [show, ...own];
    }

    // Of a row with a configuration: buttons that show it as A or as B.
    showButtons(row) {
      const index = this.runs.indexOfRow(row);
      if (index < 0) return element("span", {});
      const make = (letter) =>
        button(
          letter,
          {
            class: `button small pick pick-${letter.toLowerCase()}`,
            "aria-label": `Show configuration ${this.runs.runs[index].name} as ${letter}`,
            "data-run": index,
            "data-letter": letter,
            "aria-pressed": String((letter === "A" ? this.runs.a : this.runs.b) === index),
          },
          (event) => {
            event.stopPropagation();
            this.runs.select(letter, letter === "B" && this.runs.b === index ? null : index);
          },
        );
      return element("span", { class: "picks" }, make("A"), make("B"));
    }

    // A click on a row or a point chooses its configuration, with shift as B.
    pick(row, event) {
      const index = this.runs && row !== undefined ? this.runs.indexOfRow(row) : -1;
      if (index >= 0) this.runs.select(event && event.shiftKey ? "B" : "A", index);
    }

    chosenRows() {
      return this.runs ? this.runs.chosen().map(([letter, run]) => [letter, run.row]) : [];
    }

    chose() {
      if (this.place) {
        this.place
          .querySelectorAll("[data-run]")
          .forEach((pick) =>
            pick.setAttribute(
              "aria-pressed",
              String(
                (pick.dataset.letter === "A" ? this.runs.a : this.runs.b) ===
                  Number(pick.dataset.run),
              ),
            ),
          );
      }
      if (this.scatter && this.scatter.frame) this.scatter.frame.redraw();
    }

    // What Tabulator asks for: a page of rows under filters and an order.
    page(params) {
      const { candidates } = this;
      const [sort] = params.sort || [];
      candidates.filters = new Map(
        (params.filter || []).map(({ field, value }) => [field, String(value)]),
      );
      candidates.sort = sort ? { name: sort.field, down: sort.dir === "desc" } : null;
      const kept = candidates.refresh(),
        size = params.size || 25,
        start = ((params.page || 1) - 1) * size;
      const data = Array.from(kept.subarray(start, start + size), (row) => {
        const made = { id: row };
        for (const column of candidates.columns) made[column.name] = column.value(row);
        return made;
      });
      this.tell(kept);
      return { last_page: Math.max(1, Math.ceil(kept.length / size)), last_row: kept.length, data };
    }

    // Says how many there are; the scatter follows when the rows stand.
    tell(kept) {
      const beyond =
        this.search.all_rows > this.candidates.count
          ? ` (the search had ${count(this.search.all_rows)}; the page holds the first)`
          : "";
      const all = count(this.candidates.count);
      this.says.textContent = `${count(kept.length)} of ${all} candidates${beyond}`;
      if (kept === this.drawn) return;
      this.drawn = kept;
      clearTimeout(this.drawing);
      this.drawing = setTimeout(() => this.scatter.show(kept), 150);
    }

    reset() {
      this.candidates.only.clear();
      for (const { box } of this.boxes) box.checked = false;
      // One of them alone: each loads the rows, and Tabulator warns of two loads at once.
      if (this.candidates.filters.size > 0) this.table.clearHeaderFilter();
      else this.table.setPage(1);
    }

    // On paper: a plain table of the first candidates that filters keep, Tabulator scrolls.
    preparePrint() {
      const shown = this.table
        .getColumns()
        .map((one) => this.candidates.column(one.getField()))
        .filter((column) => column && column.name !== "reason")
        .slice(0, 13); // as many as a sheet is wide
      const rows = Array.from(this.candidates.kept.subarray(0, 50), (row) =>
        shown.map((column) => column.value(row)),
      );
      this.paper.replaceChildren(
        parts.tables.plainTable(
          "Candidates, the first of those that the filters keep",
          shown.map((column) => ({ name: column.title, unit: column.unit })),
          rows,
        ),
      );
    }

    markRow(row) {
      const hasRun = Boolean(this.runs) && this.runs.indexOfRow(row.getData().id) >= 0;
      row.getElement().classList.toggle("has-run", hasRun);
    }

    // To be called when it stands in the page; a promise of the first rows.
    start() {
      if (!this.place) return Promise.resolve();
      this.scatter.show(this.candidates.refresh());
      return new Promise((resolve) => {
        this.table = new Tabulator(this.place, {
          columns: this.tableColumns(),
          layout: "fitColumns",
          rowHeight: 35,
          height: Math.min(640, 35 * this.candidates.count + 90),
          nestedFieldSeparator: false,
          dataLoader: false,
          pagination: true,
          paginationElement: this.pager,
          paginationMode: "remote",
          paginationSize: 25,
          paginationSizeSelector: [25, 50, 100],
          sortMode: "remote",
          filterMode: "remote",
          placeholder: parts.tables.emptyRow("No candidate is left: the filters keep none."),
          // The address is never asked for: the function answers from the document.
          ajaxURL: "document",
          ajaxRequestFunc: (url, config, params) => Promise.resolve(this.page(params)),
          columnHeaderSortMulti: false,
          langs: { default: { pagination: { page_size: "Rows a page" } } },
          rowFormatter: (row) => this.markRow(row),
        });
        this.table.on("rowClick", (event, row) => this.pick(row.getData().id, event));
        this.table.on("tableBuilt", () => parts.tables.mendRoles(this.table, this.title));
        this.table.on("dataProcessed", resolve);
        window.addEventListener("beforeprint", () => this.preparePrint());
      });
    }
  }

  parts.Explorer = Explorer;
})();
