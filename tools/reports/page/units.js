// Numbers as people read them, with their units, and back: what a filter says, as a number.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});

  // The steps of each unit, largest first: [factor, name].
  const seconds = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
    [1e-9, "ns"],
  ];
  const binary = [
    [2 ** 50, "PiB"],
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
    [1, "bytes"],
  ];
  const decimal = (name) =>
    [
      [1e18, "E"],
      [1e15, "P"],
      [1e12, "T"],
      [1e9, "G"],
      [1e6, "M"],
      [1e3, "k"],
      [1, ""],
    ].map(([factor, prefix]) => [factor, prefix + name]);
  const plainThenSi = (name) => decimal(name).map(([factor, text]) => [factor, text]);
  const steps = {
    s: seconds,
    bytes: binary,
    share: [[0.01, "%"]],
    "flop/s": decimal("FLOP/s"),
    flop: decimal("FLOP"),
    "bytes/s": decimal("B/s"),
    "flop/byte": [[1, "FLOP/byte"]],
    "samples/s": plainThenSi(" samples/s"),
    "tokens/s": plainThenSi(" tokens/s"),
  };

  // The step in which a unit's largest magnitude reads best; of a plain number none: [1, ""].
  function stepOf(unit, magnitude) {
    const list = steps[unit];
    if (!list) return [1, unit === "currency" ? "" : unit || ""];
    const size = Math.abs(magnitude);
    if (size === 0 || !Number.isFinite(size))
      return unit === "s" ? seconds[0] : list[list.length - 1];
    // 0.9995 ms would round to 1000 µs: such a number goes one step up.
    return list.find(([factor]) => size >= factor * 0.9995) || list[list.length - 1];
  }

  // "71.7", "4,096", "0.00123": `digits` significant ones, of whole numbers all, unless they are
  // `measured`: then "42.0", so that a column of them reads evenly.
  function plain(value, digits = 3, measured = false) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (Number.isInteger(value) && size < 1e15 && !measured) return value.toLocaleString("en-US");
    if (size < 1e-6 || size >= 1e15) return value.toExponential(digits - 1);
    if (size >= 10 ** digits) return Math.round(value).toLocaleString("en-US");
    const text = value.toPrecision(digits);
    return text.includes("e") ? String(Number(text)) : text;
  }

  // A cell for people: "446 ms", "4.14 GiB", "42.3 %", "yes", "–" where there is nothing.
  function format(value, unit) {
    if (value === null || value === undefined || value === "") return "–";
    if (value === true) return "yes";
    if (value === false) return "no";
    if (typeof value !== "number") return String(value);
    if (!Number.isFinite(value)) return String(value);
    const [factor, name] = stepOf(unit, value);
    const measured = unit in steps && name !== "bytes";
    const text = plain(value / factor, unit === "currency" ? 4 : 3, measured);
    if (!name) return text;
    return name.startsWith(" ") ? text + name : `${text} ${name}`;
  }

  // Whether numbers of the unit read best in different units: ms and s, KiB and GiB.
  const hasSteps = (unit) => Boolean(steps[unit]) && steps[unit].length > 1;

  // At an axis: as short as can be, "1 ms", "512 GiB".
  function tick(value, unit) {
    const [factor, name] = stepOf(unit, value);
    return `${Number((value / factor).toPrecision(3))} ${name.trim()}`.trim();
  }

  // The same number with all its digits, in the unit itself.
  function exact(value, unit) {
    if (typeof value !== "number") return format(value, unit);
    const text =
      Number.isInteger(value) && Math.abs(value) < 1e15
        ? value.toLocaleString("en-US")
        : String(value);
    if (unit === "share") return `${text} (a share of 1)`;
    return unit && unit !== "currency" ? `${text} ${unit}` : text;
  }

  // "446 ms (0.446123 s)"; of numbers that read the same only one.
  function both(value, unit) {
    const short = format(value, unit),
      long = exact(value, unit);
    return short === long || typeof value !== "number" ? short : `${short} (${long})`;
  }

  // What a suffix of a number multiplies it by, or NaN.
  function suffixFactor(suffix) {
    const si = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, p: 1e15 };
    const text = suffix.trim().toLowerCase();
    const time = { s: 1, ms: 1e-3, us: 1e-6, µs: 1e-6, ns: 1e-9, min: 60, h: 3600 };
    if (text in time) return time[text];
    if (text === "%") return 0.01;
    const bytes = /^([kmgtp])ib$/.exec(text);
    if (bytes) return 1024 ** ("kmgtp".indexOf(bytes[1]) + 1);
    const rate =
      /^([kmgtp]?)(b|bytes|b\/s|bytes\/s|flop|flop\/s|flops|samples\/s|tokens\/s)?$/.exec(text);
    return rate ? si[rate[1]] : NaN;
  }

  // "8", "400 ms", "4GiB", "40%" as a number in the unit itself; NaN of anything else.
  function parse(text) {
    const match = /^\s*([-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([^\d\s.,]*)\s*$/i.exec(
      text,
    );
    if (!match) return NaN;
    return Number(match[1].replace(/,/g, "")) * suffixFactor(match[2]);
  }

  parts.units = { stepOf, plain, format, tick, hasSteps, exact, both, parse };
})();
