// The page of a report: opens the document, lays out what it says, tells what went wrong.
(function () {
  "use strict";
  const parts = window.orreryParts;
  const { element, painted } = parts.dom;
  const byId = (id) => document.getElementById(id);

  // The document from the page: base64 of gzip of JSON.
  async function openDocument() {
    const text = byId("document").textContent.trim();
    const packed = Uint8Array.fromBase64
      ? Uint8Array.fromBase64(text)
      : Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const opened = await new Response(unpacked).json().catch(() => {
      throw new Error("the data cannot be unpacked");
    });
    if (opened.schema !== 1)
      throw new Error(`the document is of version ${opened.schema}, and this page reads version 1`);
    return opened;
  }

  function fail(problem) {
    byId("status").replaceChildren("This report could not be shown.");
    byId("content").append(
      element("p", {
        class: "problem",
        role: "alert",
        text:
          `What went wrong: ${problem && problem.message ? problem.message : problem}. ` +
          "The file may be cut short, or the browser too old: " +
          "Chrome 80, Firefox 113 or Safari 16.4 is the least.",
      }),
    );
  }

  function copyButton(text) {
    const copy = parts.dom.button(
      "Copy",
      { class: "button small", "aria-label": "Copy the command" },
      async () => {
        try {
          await navigator.clipboard.writeText(text);
        } catch {
          // Without leave to write there, the old way: select the text and copy the selection.
          getSelection().selectAllChildren(byId("command"));
          document.execCommand("copy");
        }
        copy.textContent = "Copied";
        setTimeout(() => (copy.textContent = "Copy"), 1500);
      },
    );
    return copy;
  }

  function note(text) {
    const match = /^(\w+):\s*(.*)$/s.exec(text);
    const kind = match ? match[1].toLowerCase() : "note";
    return element(
      "li",
      { class: kind === "warning" ? "note warning" : "note" },
      element("span", { class: "note-kind", text: kind }),
      element("span", { text: match ? match[2] : text }),
    );
  }

  function showHeader(opened) {
    byId("title").textContent = opened.title || document.title;
    byId("program").textContent = ["Orrery", opened.program, opened.version]
      .filter(Boolean)
      .join(" · ");
    const notes = (opened.notes || []).map(note);
    const list = element("ul", { class: "notes" }, notes);
    byId("about").append(
      ...[
        opened.command
          ? element(
              "div",
              { class: "command" },
              element("code", {
                id: "command",
                tabindex: "0",
                role: "group",
                "aria-label": "Command",
                text: opened.command,
              }),
              copyButton(opened.command),
            )
          : null,
        notes.length === 0
          ? null
          : notes.length <= 4
            ? list
            : element(
                "details",
                { class: "note-box" },
                element("summary", { text: `${notes.length} notes` }),
                list,
              ),
      ].filter(Boolean),
    );
  }

  // Links to all sections; that of the section on the screen is marked.
  function showContents(sections) {
    const links = sections.map((section) =>
      element("a", { href: `#${section.id}`, text: section.dataset.title }),
    );
    byId("contents").replaceChildren(
      element("p", { class: "contents-title", text: "Contents" }),
      element(
        "ul",
        {},
        links.map((link) => element("li", {}, link)),
      ),
    );
    byId("contents").hidden = sections.length < 2;
    const watcher = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          if (!entry.isIntersecting) continue;
          links.forEach((link) => link.removeAttribute("aria-current"));
          links[sections.indexOf(entry.target)].setAttribute("aria-current", "true");
        }
      },
      { rootMargin: "-20% 0px -70% 0px" },
    );
    sections.forEach((section) => watcher.observe(section));
  }

  // A run that stands alone: its figures, then its sections, each a section of the page.
  function runSections(run, isOnly) {
    const prefix = isOnly ? "" : `${run.name}: `;
    const summary =
      (run.figures || []).length > 0 || run.flags
        ? [
            parts.sections.topSection(`${prefix}Figures`, "figures", [
              run.flags
                ? element("p", { class: "flags" }, element("code", { text: run.flags }))
                : null,
              parts.sections.figureTiles(run.figures),
            ]),
          ]
        : [];
    return [
      ...summary,
      ...(run.sections || []).map((section) =>
        parts.sections.topSection(
          prefix + (section.title || section.id),
          section.id,
          parts.sections.sectionBody(section, { level: 3 }),
        ),
      ),
    ];
  }

  function searchTitle(search, isOnly) {
    return isOnly || !search.title ? "Candidates" : `Candidates: ${search.title}`;
  }

  async function show(opened, explorers) {
    showHeader(opened);
    const searches = opened.searches || [],
      runs = opened.runs || [];
    const sections = (opened.sections || []).map((section) =>
      parts.sections.topSection(
        section.title || section.id,
        section.id,
        parts.sections.sectionBody(section, { level: 3 }),
      ),
    );
    for (const run of runs) sections.push(...runSections(run, runs.length === 1));
    for (const search of searches) {
      const explorer = new parts.Explorer(search, searchTitle(search, searches.length === 1));
      explorers.push(explorer);
      sections.push(explorer.element);
      if (explorer.runs) sections.push(explorer.runs.element);
    }
    byId("status").remove();
    byId("content").append(...sections);
    if (sections.length === 0)
      byId("content").append(
        element("p", { class: "quiet", text: "This report has no sections." }),
      );
    showContents(sections);
    for (const explorer of explorers) if (explorer.runs) explorer.runs.draw();
    await Promise.all(explorers.map((explorer) => explorer.start()));
  }

  // What tests ask of a search.
  function handle(explorer) {
    return {
      columns: explorer.candidates.columns.map((column) => column.name),
      rows: () => Array.from(explorer.candidates.kept),
      value: (name, row) => explorer.candidates.column(name).value(row),
      setFilter: (name, text) => explorer.table.setHeaderFilterValue(name, text),
      resetFilters: () => explorer.reset(),
      sort: (name, direction) => explorer.table.setSort(name, direction),
      select: (letter, index) => explorer.runs.select(letter, index),
      selected: () =>
        explorer.runs
          ? Object.fromEntries(explorer.runs.chosen().map(([letter, run]) => [letter, run.name]))
          : {},
    };
  }

  async function start() {
    await painted();
    const explorers = [];
    const opened = await openDocument();
    window.orrery.document = opened;
    await show(opened, explorers);
    window.orrery.searches = explorers.map(handle);
    await painted();
  }

  window.orrery = {
    document: null,
    searches: [],
    failed: null,
    drawAll: parts.drawAll,
    ready: null,
  };
  window.orrery.ready = start().catch((problem) => {
    window.orrery.failed = String(problem && problem.message ? problem.message : problem);
    fail(problem);
  });
})();
