// The candidates of a search, a column at a time: which rows a filter keeps, and in what order.
// Up to 100,000 rows: all is done in typed arrays, and what does not change is kept.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});
  const few = 12; // a column of so many values has a list of them as its filter

  function kindOfValues(values) {
    let kind = "number",
      seen = false;
    for (const value of values) {
      if (value === null || value === undefined) continue;
      seen = true;
      if (typeof value === "number") continue;
      if (typeof value !== "boolean") return "text";
      kind = "bool";
    }
    return seen ? kind : "empty";
  }

  class Column {
    constructor(raw, rowCount) {
      Object.assign(this, {
        name: raw.name,
        title: raw.title || raw.name,
        unit: raw.unit || "",
        axis: Boolean(raw.axis),
        rowCount,
        order: null,
      });
      if ("same" in raw) this.setDictionary([raw.same], new Uint8Array(rowCount));
      else if (raw.dictionary) this.setIndices(raw.dictionary, raw.indices || []);
      else this.setValues(raw.values || []);
      this.few = this.countFew();
      this.isSame = rowCount > 0 && this.few !== null && this.few.length <= 1;
    }

    setDictionary(dictionary, indices) {
      this.dictionary = dictionary;
      this.indices = indices;
      this.kind = kindOfValues(dictionary);
    }

    // An index that is no place in the dictionary is a cell with nothing in it.
    setIndices(dictionary, indices) {
      const known = dictionary.length,
        codes = new Uint32Array(this.rowCount);
      for (let row = 0; row < this.rowCount; ++row) {
        const index = indices[row];
        codes[row] = index >= 0 && index < known && index !== null ? index : known;
      }
      this.setDictionary([...dictionary, null], codes);
    }

    setValues(values) {
      const kind = kindOfValues(values);
      if (kind === "number" || kind === "empty") {
        this.kind = kind;
        this.numbers = new Float64Array(this.rowCount).fill(NaN);
        for (let row = 0; row < this.rowCount; ++row) {
          if (typeof values[row] === "number") this.numbers[row] = values[row];
        }
        return;
      }
      const places = new Map(),
        codes = new Uint32Array(this.rowCount);
      for (let row = 0; row < this.rowCount; ++row) {
        const value = values[row] === undefined ? null : values[row];
        let place = places.get(value);
        if (place === undefined) places.set(value, (place = places.size));
        codes[row] = place;
      }
      this.setDictionary([...places.keys()], codes);
    }

    value(row) {
      if (this.dictionary) return this.dictionary[this.indices[row]];
      const number = this.numbers[row];
      return Number.isNaN(number) ? null : number;
    }

    number(row) {
      const value = this.value(row);
      return typeof value === "number" ? value : NaN;
    }

    // Its values in order, nothing last, where they are few; else null.
    countFew() {
      const seen = new Set();
      if (this.dictionary) {
        const used = new Uint8Array(this.dictionary.length);
        for (let row = 0; row < this.rowCount; ++row) used[this.indices[row]] = 1;
        this.dictionary.forEach((value, place) => used[place] && seen.add(value));
      } else {
        for (let row = 0; row < this.rowCount && seen.size <= few; ++row) seen.add(this.value(row));
      }
      return seen.size > few ? null : [...seen].sort(compareValues);
    }

    // All rows by value, those with nothing in this column last: {rows, filled}.
    sorted(base) {
      if (this.order) return this.order;
      const ranks = this.dictionary ? this.rankDictionary() : this.numbers;
      const filledRows = base.filter((row) => this.value(row) !== null);
      filledRows.sort((a, b) => this.rankOf(ranks, a) - this.rankOf(ranks, b));
      const rows = new Uint32Array(base.length);
      rows.set(filledRows);
      rows.set(
        base.filter((row) => this.value(row) === null),
        filledRows.length,
      );
      this.order = { rows, filled: filledRows.length };
      return this.order;
    }

    rankOf(ranks, row) {
      return this.dictionary ? ranks[this.indices[row]] : ranks[row];
    }

    rankDictionary() {
      const places = this.dictionary
        .map((_, place) => place)
        .sort((a, b) => compareValues(this.dictionary[a], this.dictionary[b]));
      const ranks = new Float64Array(places.length);
      places.forEach((place, rank) => (ranks[place] = rank));
      return ranks;
    }

    // Clears the marks of the rows whose value `keeps` refuses.
    narrow(marks, keeps) {
      if (this.dictionary) {
        const kept = Uint8Array.from(this.dictionary, (value) => (keeps(value) ? 1 : 0));
        for (let row = 0; row < marks.length; ++row) marks[row] &= kept[this.indices[row]];
      } else {
        const { numbers } = this;
        for (let row = 0; row < marks.length; ++row) {
          const number = numbers[row]; // of nothing NaN, the one number that is not itself
          if (marks[row] === 1 && !keeps(number === number ? number : null)) marks[row] = 0;
        }
      }
    }
  }

  function compareValues(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }

  // One condition on numbers: "<8", ">= 400 ms", "!=2", "2..8", "8"; null where it makes no sense.
  function numberCondition(text) {
    const range = /^(.*?)\.\.(.*)$/.exec(text);
    if (range) {
      const low = range[1].trim() ? parts.units.parse(range[1]) : -Infinity;
      const high = range[2].trim() ? parts.units.parse(range[2]) : Infinity;
      return Number.isNaN(low) || Number.isNaN(high) ? null : (v) => v >= low && v <= high;
    }
    const match = /^(<=|>=|≤|≥|!=|≠|<|>|=)?(.*)$/.exec(text.trim());
    const limit = parts.units.parse(match[2]);
    if (Number.isNaN(limit)) return null;
    // Cells are shown with three digits: what reads the same is the same, but of whole numbers.
    const near = (v) =>
      v === limit || (!Number.isInteger(v) && Math.abs(v - limit) <= 0.005 * Math.abs(limit));
    const conditions = {
      "<": (v) => v < limit,
      ">": (v) => v > limit,
      "<=": (v) => v <= limit,
      "≤": (v) => v <= limit,
      ">=": (v) => v >= limit,
      "≥": (v) => v >= limit,
      "!=": (v) => !near(v),
      "≠": (v) => !near(v),
    };
    return conditions[match[1]] || near;
  }

  // What a filter's text keeps of a column; null where it cannot be read (it then keeps all).
  function condition(column, text) {
    const wish = text.trim();
    if (wish === "–" || wish === "-") return (value) => value === null || value === "";
    if (column.kind === "number") {
      const all = wish
        .split(/\s*[;&]\s*|\s+(?=[<>=!≤≥≠])/)
        .filter(Boolean)
        .map(numberCondition);
      if (all.length === 0 || all.includes(null)) return null;
      return (value) => value !== null && all.every((one) => one(value));
    }
    if (column.kind === "bool") return (value) => parts.units.format(value, "") === wish;
    if (wish.startsWith("=")) return (value) => String(value) === wish.slice(1);
    const lower = wish.toLowerCase();
    return (value) => value !== null && String(value).toLowerCase().includes(lower);
  }

  // A search's candidates under filters ("dp" → "<8"), of some rows only, in an order.
  class Candidates {
    constructor(search) {
      this.count = search.row_count || 0;
      this.columns = (search.columns || []).map((raw) => new Column(raw, this.count));
      this.byName = new Map(this.columns.map((column) => [column.name, column]));
      this.filters = new Map();
      this.only = new Map(); // name → the rows that it keeps
      this.sort = null;
      this.base = this.rankedFirst(search.ranked || []);
      this.kept = this.base;
    }

    column(name) {
      return this.byName.get(name);
    }

    // The order without any other: the best first, then the rest as they come.
    rankedFirst(ranked) {
      const rows = new Uint32Array(this.count),
        taken = new Uint8Array(this.count);
      let next = 0;
      for (const row of ranked) {
        if (row < this.count && !taken[row]) {
          rows[next++] = row;
          taken[row] = 1;
        }
      }
      for (let row = 0; row < this.count; ++row) if (!taken[row]) rows[next++] = row;
      return rows;
    }

    marks() {
      const marks = new Uint8Array(this.count).fill(1);
      for (const rows of this.only.values()) {
        const kept = new Uint8Array(this.count);
        for (const row of rows) kept[row] = 1;
        for (let row = 0; row < this.count; ++row) marks[row] &= kept[row];
      }
      for (const [name, text] of this.filters) {
        const column = this.column(name),
          keeps = column && condition(column, text);
        if (keeps) column.narrow(marks, keeps);
      }
      return marks;
    }

    // The rows that filters keep, in order; also kept as `this.kept`.
    refresh() {
      const marks = this.marks(),
        found = new Uint32Array(this.count);
      let next = 0;
      const add = (row) => {
        if (marks[row]) found[next++] = row;
      };
      const column = this.sort && this.column(this.sort.name);
      if (!column) {
        for (let i = 0; i < this.count; ++i) add(this.base[i]);
      } else {
        const { rows, filled } = column.sorted(this.base);
        if (this.sort.down) for (let i = filled - 1; i >= 0; --i) add(rows[i]);
        else for (let i = 0; i < filled; ++i) add(rows[i]);
        for (let i = filled; i < rows.length; ++i) add(rows[i]);
      }
      this.kept = found.subarray(0, next);
      return this.kept;
    }
  }

  parts.columns = { Candidates, condition };
})();
