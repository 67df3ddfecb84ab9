// Small helpers to make elements. Text of the document goes through `textContent` only.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});

  // An element: `attributes` may hold `text`, `class`, listeners (`onclick: f`) and any attribute;
  // null, undefined and false leave an attribute out. Children are nodes, texts or nothing.
  function element(tag, attributes, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "text") made.textContent = value;
      else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children.flat()) {
      if (child === null || child === undefined || child === false) continue;
      made.append(child);
    }
    return made;
  }

  function button(text, attributes, onclick) {
    return element("button", { type: "button", class: "button", ...attributes, text, onclick });
  }

  // Headings go from h2 down to h6.
  function heading(level, text, attributes) {
    return element(`h${Math.min(level, 6)}`, { ...attributes, text });
  }

  // An id that no other element of the page has.
  const taken = new Map();
  function uniqueId(wish) {
    const base =
      String(wish || "part")
        .toLowerCase()
        .replace(/[^a-z0-9]+/g, "-")
        .replace(/^-+|-+$/g, "") || "part";
    const count = taken.get(base) || 0;
    taken.set(base, count + 1);
    const id = count === 0 ? base : `${base}-${count + 1}`;
    return document.getElementById(id) ? uniqueId(base) : id;
  }

  // A promise of the moment after the next picture stands on the screen. A page in the background
  // gets no pictures: a timer goes on without.
  function painted() {
    return new Promise((resolve) => {
      requestAnimationFrame(() => setTimeout(resolve, 0));
      setTimeout(resolve, 200);
    });
  }

  parts.dom = { element, button, heading, uniqueId, painted };
})();
