// Configurations: one run of a search shown, or two beside each other.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const { element, heading } = parts.dom;
  const { units } = parts;

  // The longest timeline of runs, so that all have the same scale.
  function longestOf(runs) {
    const spans = runs.flatMap((run) =>
      (run.sections || []).flatMap((section) =>
        (section.views || [])
          .filter((view) => view.kind === "timeline")
          .map((view) => (view.end || 0) - (view.begin || 0)),
      ),
    );
    return spans.reduce((a, b) => Math.max(a, b), 0);
  }

  class Runs {
    // `onchange` hears of each new choice.
    constructor(search, candidates, title, onchange) {
      Object.assign(this, { runs: search.runs || [], candidates, onchange, a: 0, b: null });
      this.body = element("div", { class: "runs-body" });
      this.says = element("p", { class: "unseen", role: "status" });
      this.selectA = this.makeSelect("A", false);
      this.selectB = this.makeSelect("B", true);
      this.element = parts.sections.topSection(title, title, [
        element("p", {
          class: "quiet",
          text:
            "Choose one, or two to compare. " +
            "Rows of candidates that have a configuration choose it too.",
        }),
        element("div", { class: "choices" }, this.selectA.label, this.selectB.label),
        this.says,
        this.body,
      ]);
    }

    runTitle(run) {
      const step = (run.figures || []).find((figure) => figure.name === "step_time_s");
      return [run.name, step ? units.format(step.value, step.unit) : null, run.flags]
        .filter(Boolean)
        .join(" · ");
    }

    makeSelect(letter, mayBeNone) {
      const select = element(
        "select",
        { onchange: () => this.select(letter, select.value === "" ? null : Number(select.value)) },
        mayBeNone ? element("option", { value: "", text: "none" }) : null,
        this.runs.map((run, index) =>
          element("option", { value: index, text: this.runTitle(run) }),
        ),
      );
      const label = element(
        "label",
        { class: "choice" },
        element("span", { class: `letter letter-${letter.toLowerCase()}`, text: letter }),
        select,
      );
      return { select, label };
    }

    // `index` of the run, or null for none (of B only).
    select(letter, index) {
      if (letter === "A" && index === null) return;
      if (letter === "A") this.a = index;
      else this.b = index;
      this.draw();
      this.says.textContent =
        index === null ? `${letter}: none` : `${letter} is now ${this.runTitle(this.runs[index])}`;
      this.onchange();
    }

    // [[letter, run]] of what is chosen.
    chosen() {
      const b = this.b === null ? [] : [["B", this.runs[this.b]]];
      return [["A", this.runs[this.a]], ...b];
    }

    indexOfRow(row) {
      return this.runs.findIndex((run) => run.row === row);
    }

    draw() {
      parts.release(this.body);
      this.selectA.select.value = String(this.a);
      this.selectB.select.value = this.b === null ? "" : String(this.b);
      const chosen = this.chosen();
      this.body.replaceChildren(
        ...(chosen.length === 1
          ? this.single(chosen[0][1])
          : this.pair(chosen[0][1], chosen[1][1])),
      );
    }

    single(run) {
      return [
        this.flagsLine(run),
        parts.sections.figureTiles(run.figures),
        ...(run.sections || []).map((section) => this.runSection(section, { level: 4 })),
      ].filter(Boolean);
    }

    flagsLine(run) {
      return run.flags
        ? element("p", { class: "flags" }, element("code", { text: run.flags }))
        : null;
    }

    runSection(section, options) {
      return element(
        "div",
        { class: "run-section" },
        heading(3, section.title || "", { class: "run-title" }),
        parts.sections.sectionBody(section, options),
      );
    }

    // One run's share of a section that both are shown in; `beside` is the other's section.
    half(letter, run, section, beside, longest) {
      const options = {
        level: 4,
        longest,
        prefix: `${letter}: `,
        peers: beside ? beside.views : [],
      };
      return element(
        "div",
        { class: "half" },
        element(
          "p",
          { class: "half-name" },
          element("span", { class: `letter letter-${letter.toLowerCase()}`, text: letter }),
          ` ${run.name || ""}`,
        ),
        section
          ? parts.sections.sectionBody(section, options)
          : element("p", { class: "quiet", text: "Has no such section." }),
      );
    }

    pair(a, b) {
      const sectionsOf = (run) => run.sections || [];
      const ids = [...new Set([...sectionsOf(a), ...sectionsOf(b)].map((section) => section.id))];
      const longest = longestOf([a, b]);
      const both = ids.map((id) => {
        const [one, two] = [a, b].map((run) =>
          sectionsOf(run).find((section) => section.id === id),
        );
        return element(
          "div",
          { class: "run-section" },
          heading(3, (one || two).title || id, { class: "run-title" }),
          element(
            "div",
            { class: "halves" },
            this.half("A", a, one, two, longest),
            this.half("B", b, two, one, longest),
          ),
        );
      });
      const title = heading(3, "A and B in figures", { class: "run-title" });
      return [this.differences(a, b), title, this.figures(a, b), ...both];
    }

    // Which axes of the search A and B differ in.
    differences(a, b) {
      const columns = (this.candidates ? this.candidates.columns : []).filter(
        (column) =>
          column.axis &&
          Number.isInteger(a.row) &&
          Number.isInteger(b.row) &&
          column.value(a.row) !== column.value(b.row),
      );
      if (columns.length === 0)
        return element("p", { class: "text", text: "A and B agree in all that was searched." });
      return element(
        "div",
        {},
        heading(3, "Where A and B differ", { class: "run-title" }),
        element(
          "ul",
          { class: "differs" },
          columns.map((column) =>
            element(
              "li",
              {},
              element("span", { class: "quiet", text: `${column.title} ` }),
              element("b", { text: units.format(column.value(a.row), column.unit) }),
              " → ",
              element("b", { text: units.format(column.value(b.row), column.unit) }),
            ),
          ),
        ),
      );
    }

    // A figure of both: {cells, exact: what the numbers' titles say}.
    figureOfBoth(name, a, b) {
      const of = (run) => (run.figures || []).find((figure) => figure.name === name) || {};
      const one = of(a);
      const two = of(b);
      const unit = one.unit || two.unit || "";
      const numeric = typeof one.value === "number" && typeof two.value === "number";
      const change = numeric ? two.value - one.value : null;
      const sign = change > 0 ? "+" : "";
      return {
        cells: [
          one.title || two.title || name,
          units.format(one.value, unit),
          units.format(two.value, unit),
          numeric ? sign + units.format(change, unit).replace(/^-/, "−") : null,
          numeric && one.value !== 0 ? (two.value / one.value).toFixed(3) : null,
        ],
        exact: [one.value, two.value, change].map((value) => units.exact(value, unit)),
      };
    }

    figures(a, b) {
      const all = [...(a.figures || []), ...(b.figures || [])];
      const names = [...new Set(all.map((figure) => figure.name))];
      const rows = names.map((name) => this.figureOfBoth(name, a, b));
      const columns = ["figure", "A", "B", "B − A", "B / A"].map((name) => ({ name }));
      const cells = rows.map((row) => row.cells);
      const box = parts.tables.plainTable("Figures of A and B", columns, cells);
      box.classList.add("figures-of-two");
      box.querySelectorAll("tbody tr").forEach((line, at) => {
        rows[at].exact.forEach((exact, cell) => (line.cells[cell + 1].title = exact));
      });
      return box;
    }
  }

  parts.Runs = Runs;
})();
