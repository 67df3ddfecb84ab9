// Colours: those of Okabe and Ito, which people with colour-blindness tell apart. What is of one
// kind (forward, optimizer, bubbles …) has one colour in every chart.
(function () {
  "use strict";
  const parts = (window.orreryParts = window.orreryParts || {});

  const hues = {
    light: {
      blue: "#0072b2",
      orange: "#e69f00",
      green: "#009e73",
      sky: "#56b4e9",
      vermillion: "#d55e00",
      purple: "#cc79a7",
      yellow: "#f0e442",
      ink: "#3d444d",
      grey: "#8b949e",
      grey2: "#a8b0b9",
      grey3: "#c3c9d0",
      grey4: "#dbdfe4",
    },
    dark: {
      blue: "#3b97d3",
      orange: "#e69f00",
      green: "#1fb58a",
      sky: "#7cc7f2",
      vermillion: "#e8702a",
      purple: "#d68fb6",
      yellow: "#f0e442",
      ink: "#d0d7de",
      grey: "#8b949e",
      grey2: "#6e7681",
      grey3: "#565e68",
      grey4: "#424952",
    },
  };
  // For series of no known kind, in this order.
  const sequence = ["blue", "vermillion", "green", "purple", "orange", "sky", "ink", "yellow"];
  // The first pattern that a name matches says its colour.
  const kinds = [
    [/bubble.*warm|warm-?up/, "grey"],
    [/bubble.*steady|steady/, "grey2"],
    [/bubble.*cool|cool-?down/, "grey3"],
    [/imbalance/, "grey4"],
    [/bubble|idle|wait/, "grey2"],
    [/recomput/, "yellow"],
    [/backward/, "orange"],
    [/forward/, "blue"],
    [/exposed/, "vermillion"],
    [
      /commun|all-?reduce|all-?gather|reduce-?scatter|all-?to-?all|broadcast|send|collective/,
      "purple",
    ],
    [/update|optimi[sz]er/, "green"],
    [/gradient/, "orange"],
    [/parameter|weight/, "blue"],
    [/activation/, "sky"],
    [/buffer/, "purple"],
    [/^product|matmul|gemm/, "blue"],
    [/attention/, "sky"],
    [/^other$|^rest$/, "grey3"],
    [/capacity|limit/, "ink"],
  ];

  function schemeName() {
    if (parts.printing) return "light";
    return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }

  // What charts need to know of the look of the page.
  function theme() {
    const dark = schemeName() === "dark";
    return {
      dark,
      hues: hues[dark ? "dark" : "light"],
      text: dark ? "#e6e8eb" : "#1f2328",
      muted: dark ? "#a3abb5" : "#57606a",
      axis: dark ? "#59616b" : "#b4bbc3",
      grid: dark ? "#2b3038" : "#e9ecef",
      surface: dark ? "#1a1d23" : "#ffffff",
      font: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
    };
  }

  function hueOfKind(name) {
    const text = String(name).toLowerCase();
    const found = kinds.find(([pattern]) => pattern.test(text));
    return found ? found[1] : null;
  }

  // The hue of each name: of its kind, or the next in the sequence that none of the others has.
  function assignHues(names) {
    const byName = new Map(),
      used = new Set();
    for (const name of names) {
      const hue = hueOfKind(name);
      if (hue === null || used.has(hue)) continue;
      byName.set(name, hue);
      used.add(hue);
    }
    const free = sequence.filter((hue) => !used.has(hue));
    let next = 0;
    for (const name of names) {
      if (byName.has(name)) continue;
      byName.set(
        name,
        free.length > 0 ? free[next++ % free.length] : sequence[next++ % sequence.length],
      );
    }
    return byName;
  }

  // Black or white, whichever reads better on a colour.
  function inkOn(color) {
    const channels = [1, 3, 5]
      .map((at) => parseInt(color.slice(at, at + 2), 16) / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    const luminance = 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2];
    return luminance > 0.18 ? "#111111" : "#ffffff";
  }

  parts.colors = { theme, assignHues, inkOn };
})();
