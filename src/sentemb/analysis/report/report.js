"use strict";
// The page of `sentemb report`. All it shows is in the JSON of #data; texts are only ever set as
// text, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const PAIR_MODEL = data.kind === "pair"; // or else two towers
const HAS_CELLS = data.cells.length > 0; // a recurrent model
const SIDES = data.pairs.some((pair) => pair.title) ? ["query", "title"] : ["query"];
const ROW = 20; // pixels, as --row in the style sheet
const GAP = 10; // between the rows of the query and those of the title
const NARROWEST = 2; // pixels of a cell, below which a map scrolls sideways
const EDGE = 2; // pixels around a map, for the frame of the chosen value
const STOPS = {
  light: ["#2166ac", "#92c5de", "#ffffff", "#f4a582", "#b2182b"],
  dark: ["#9fd0ff", "#2f6fb0", "#1c2025", "#b2543d", "#ffb8a1"],
};
const ORDERS = [
  ["number", "by number"],
  ["share", "by share of the score"],
];
const dark = matchMedia("(prefers-color-scheme: dark)");
const state = { query: 0, pair: 0, cell: 0, side: "query", word: 0, gate: "y", order: "number" };

// -- small things --------------------------------------------------------------------------------

function $(id) {
  return document.getElementById(id);
}

/** An element with properties (attributes, where it has no such property) and children. */
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function makeSvg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Text of the user's, in whatever script. */
function words(text, tag = "bdi", className = "") {
  return make(tag, { dir: "auto", className }, text);
}

function fixed(value, digits) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

function signed(value) {
  const text = fixed(value, 3);
  return value > 0 && Number(text) !== 0 ? `+${text}` : text;
}

function table(heads, rows) {
  return make(
    "table",
    {},
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    ...(rows.length ? [make("tbody", {}, ...rows)] : []),
  );
}

/** A table of words with a part for each side of a pair; `cells(side, t)` are those of word t. */
function wordTable(some, heads, cells) {
  const made = table(["Word", ...heads], []);
  for (const name of sidesOf(some)) {
    const side = some[name];
    const heading = make("th", { colSpan: heads.length + 1, scope: "rowgroup", className: "part" });
    heading.textContent = capital(name);
    const rows = side.words.map((word, t) => {
      const label = words(word, "bdi", side.keyword?.[t] ? "keyword" : "");
      return make("tr", {}, make("th", { scope: "row" }, label), ...cells(side, t));
    });
    made.append(make("tbody", {}, make("tr", {}, heading), ...rows));
  }
  return made;
}

/** Give the columns of a table classes, for their widths. */
function nameColumns(made, ...names) {
  made.prepend(make("colgroup", {}, ...names.map((className) => make("col", { className }))));
}

/** The matrix [row][column] that the report packed as base64 of little-endian 16-bit integers. */
function unpack(packed, columns) {
  const bytes = Uint8Array.from(atob(packed.values), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  const rows = [];
  for (let at = 0; at < bytes.length; at += 2 * columns) {
    rows.push(
      Float64Array.from(
        { length: columns },
        (_, k) => view.getInt16(at + 2 * k, true) * packed.unit,
      ),
    );
  }
  return rows;
}

function values(side, gate) {
  // The second pair of a query has the gates of the query with the first.
  if (typeof side.gates === "number") return values(data.pairs[side.gates].query, gate);
  const cache = (side.unpacked ??= {});
  return (cache[gate] ??= unpack(side.gates[gate], data.cells.length));
}

function pair() {
  return data.pairs[state.pair];
}

/** Whether the page has the gates of a pair. */
function hasGates(some) {
  return HAS_CELLS && some !== undefined && sidesOf(some).every((name) => some[name].gates != null);
}

function sidesOf(some) {
  return SIDES.filter((name) => some[name]);
}

function cellName(cell) {
  if (data.halves === 1) return `cell ${cell}`;
  const half = cell < data.cells.length / 2 ? "left to right" : "right to left";
  return `cell ${cell} (reads ${half})`;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// -- model ---------------------------------------------------------------------------------------

function showModel() {
  $("name").textContent = data.model.name;
  $("summary").textContent = data.model.summary;
  for (const [name, value] of data.model.facts) {
    $("facts").append(make("dt", {}, name), make("dd", {}, value));
  }
  const settings = data.model.training.map(([name, value]) =>
    make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)),
  );
  $("settings").append(table(["Setting", "Value"], settings));
  $("settings-box").hidden = !settings.length;
  showHistory();
  $("made").textContent = data.made;
}

function showHistory() {
  $("history-box").hidden = !data.history.length;
  if (!data.history.length) {
    $("curves").append(make("p", { className: "note" }, "This model has no training history."));
    return;
  }
  const measures = [...new Set(data.history.flatMap((line) => Object.keys(line.dev)))];
  const kinds = [...new Set(measures.map((name) => figureName(name).split("@")[0]))];
  const ranked = data.ranked.filter((epoch) => data.history.some((line) => line.epoch === epoch));
  $("curves").append(
    curve("Loss per pair", [["loss", (line) => line.loss]], 0, ranked),
    ...(measures.length
      ? [
          curve(
            `${capital(kinds.join(", "))} on the dev set`,
            measures.map((name) => [figureName(name), (line) => line.dev[name]]),
          ),
        ]
      : []),
  );
  if (ranked.length) {
    const note = "Filled dots: new hard negatives are ranked before this epoch, so its loss is not "
      + "comparable with the loss of the epoch before.";
    $("curves").firstChild.append(make("p", { className: "note" }, note));
  }
  const rows = data.history.map((line) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, String(line.epoch)),
      make("td", {}, fixed(line.loss, 4)),
      ...measures.map((name) => make("td", {}, name in line.dev ? fixed(line.dev[name], 3) : "")),
    ),
  );
  $("history").append(
    table(["Epoch", "Loss", ...measures.map(figureName)], rows),
  );
}

function figureName(name) {
  return name.replace("ndcg", "NDCG").replace("mrr", "MRR");
}

/** A line chart over epochs; series are [name, value of a line of the history]. */
function curve(title, series, lowest, marked = []) {
  const [width, height, left, right, top, bottom] = [320, 190, 34, 66, 8, 24];
  const epochs = data.history.map((line) => line.epoch);
  const known = series.map(([name, value]) => [
    name,
    data.history.map((line) => [line.epoch, value(line)]).filter((point) => point[1] != null),
  ]);
  const all = known.flatMap(([, points]) => points.map((point) => point[1]));
  const ticks = niceTicks(lowest ?? Math.min(...all), Math.max(...all));
  const digits = Math.max(...ticks.map((tick) => (String(tick).split(".")[1] || "").length));
  const [low, high] = [ticks[0], ticks[ticks.length - 1]];
  const first = Math.min(...epochs);
  const span = Math.max(...epochs) - first;
  const x = (epoch) => left + (span ? (epoch - first) / span : 0.5) * (width - left - right);
  const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - top - bottom);
  const last = known.map(([name, points]) => `${name} ${fixed(points.at(-1)[1], 3)}`).join(", ");
  const svg = makeSvg("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `${title}, epochs ${first} to ${first + span}; at the end ${last}`,
  });
  for (const tick of ticks) {
    svg.append(
      makeSvg("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }),
      makeSvg("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, tick.toFixed(digits)),
    );
  }
  for (const epoch of new Set([first, first + Math.round(span / 2), first + span])) {
    const at = { x: x(epoch), y: height - 6, "text-anchor": "middle" };
    svg.append(makeSvg("text", at, epoch === first ? `epoch ${epoch}` : String(epoch)));
  }
  const colours = ["var(--minus)", "var(--plus)", "var(--third)"];
  const ends = known.map(([, points]) => y(points.at(-1)[1]) + 4);
  const order = ends.map((_, k) => k).sort((a, b) => ends[a] - ends[b]);
  order.forEach((k, place) => {
    if (place) ends[k] = Math.max(ends[k], ends[order[place - 1]] + 13);
  });
  known.forEach(([name, points], k) => {
    const colour = colours[k % colours.length];
    const places = points.map((point) => `${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}`);
    const line = makeSvg("polyline", { class: "curve", points: places.join(" ") });
    line.style.stroke = colour;
    svg.append(line);
    const dots = points.length <= 12 ? points : points.slice(-1);
    for (const point of points) {
      const isMarked = marked.includes(point[0]);
      if (!isMarked && !dots.includes(point)) continue;
      const dot = makeSvg("circle", { cx: x(point[0]), cy: y(point[1]), r: isMarked ? 4 : 3 });
      dot.classList.toggle("hollow", marked.length > 0 && !isMarked);
      dot.style.stroke = colour;
      dot.style.fill = dot.classList.contains("hollow") ? "var(--ground)" : colour;
      svg.append(dot);
    }
    const label = makeSvg("text", { x: x(points.at(-1)[0]) + 8, y: ends[k] }, name);
    label.style.fill = colour;
    svg.append(label);
  });
  return make("figure", {}, make("figcaption", {}, title), svg);
}

function niceTicks(low, high) {
  const rough = (high - low || Math.abs(high) || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((some) => some >= rough);
  const ticks = [];
  const end = Math.ceil(high / step - 1e-9);
  for (let k = Math.floor(low / step + 1e-9); k <= end; k++)
    ticks.push(Number((k * step).toPrecision(6)));
  return ticks.length > 1 ? ticks : [ticks[0], ticks[0] + step];
}

// -- lists to choose from ------------------------------------------------------------------------

/** Make `list` a list box of `options`; `choose(number)` is called on every change of choice.
 *
 * Options may be hidden and put into another order later: keys follow what is seen. */
function listBox(list, options, choose) {
  options.forEach((option, number) => {
    option.id = `${list.id}-${number}`;
    option.setAttribute("role", "option");
    option.addEventListener("click", () => choose(number));
  });
  list.append(...options);
  list.addEventListener("keydown", (event) => {
    const seen = [...list.children].filter((option) => !option.hidden);
    if (!seen.length) return;
    const at = seen.findIndex((option) => option.getAttribute("aria-selected") === "true");
    const below = seen.findIndex((option) => option.offsetTop !== seen[0].offsetTop);
    const row = below < 0 ? seen.length : below;
    const moves = {
      ArrowDown: row,
      ArrowUp: -row,
      ArrowRight: row > 1 ? 1 : 0,
      ArrowLeft: row > 1 ? -1 : 0,
      PageDown: 10 * row,
      PageUp: -10 * row,
      Home: -seen.length,
      End: seen.length,
    };
    const move = moves[event.key];
    if (move === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const clamped = Math.min(Math.max(at + move, 0), seen.length - 1);
    // A step down from the last whole row stays where it is rather than jumping sideways.
    if (at >= 0 && Math.abs(move) === row && row > 1 && clamped !== at + move) return;
    choose(Number(seen[clamped].id.slice(list.id.length + 1)));
  });
}

function markChosen(list, number) {
  list.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
  const option = $(`${list.id}-${number}`);
  option.setAttribute("aria-selected", "true");
  list.setAttribute("aria-activedescendant", option.id);
  keepInView(list);
}

function keepInView(list) {
  const option = list.querySelector('[aria-selected="true"]');
  if (!option || option.hidden) return;
  // Only the list scrolls, never the page.
  const above = option.offsetTop - list.offsetTop - list.clientTop;
  if (above < list.scrollTop) list.scrollTop = above;
  const below = above + option.offsetHeight - list.clientHeight;
  if (below > list.scrollTop) list.scrollTop = below;
}

/** A choice of how the maps are drawn: `state[name]`, one of [value, label]. */
function radios(box, name, options) {
  for (const [value, label] of options) {
    const input = make("input", { type: "radio", name, value, checked: state[name] === value });
    input.addEventListener("change", () => {
      state[name] = value;
      showHeat();
      remember();
    });
    box.append(make("label", {}, input, label));
  }
}

// -- pairs ---------------------------------------------------------------------------------------

function showPairs() {
  $("pairs-note").textContent = "Choose a pair from the list, with the mouse or the arrow keys.";
  const options = data.pairs.map((some) => {
    const option = make("div", { "aria-selected": "false" }, words(some.query.text, "div"));
    if (some.title) {
      option.append(
        make("div", { className: "score" }, fixed(some.score, 3)),
        words(some.title.text, "div", "title"),
      );
      if (some.grade != null)
        option.append(make("div", { className: "grade" }, `grade ${some.grade}`));
    }
    return option;
  });
  listBox($("pair-list"), options, (number) => {
    markChosen($("pair-list"), number);
    const some = data.pairs[number];
    $("pair-heading").replaceChildren(
      ...sidesOf(some).flatMap((name) => [
        make("span", { className: "side" }, capital(name)),
        words(some[name].text, "span", "text"),
      ]),
    );
    $("pair-facts").replaceChildren(...pairFacts(some));
    showEffects([some], ["Left out"]);
    choosePair(number);
  });
  $("title-box").hidden = true;
}

/** The choices of what the maps show. */
function showChoices() {
  if (!HAS_CELLS) return;
  const names = data.gates.map((gate) => [gate.key, gate.name]);
  radios($("gate-choice"), "gate", [...names, ["all", "all"]]);
  radios($("order-choice"), "order", ORDERS);
}

/** Show what is inside the model for a pair. */
function choosePair(number) {
  state.pair = number;
  const some = pair();
  state.side = "query";
  state.word = some.query.words.length - 1;
  $("words-note").textContent = wordsNote(some);
  showWords(some);
  showWindows(some);
  if (HAS_CELLS) {
    const known = hasGates(some);
    $("heat-box").hidden = !known;
    $("no-gates").hidden = known;
    $("gate-box").hidden = data.gates.length === 1;
    $("order-box").hidden = !some.share;
    showHeat();
    showCellValues();
  }
  remember();
}

function pairFacts(some) {
  if (!some.title) return ["A query without a title, and so without a score."];
  const facts = [PAIR_MODEL ? "Score " : "Cosine ", make("strong", {}, fixed(some.score, 3))];
  if (some.grade != null) facts.push(` · grade ${some.grade}`);
  if (some.rank != null)
    facts.push(` · place ${some.rank} of ${some.titles} titles judged for this query`);
  return facts;
}

// -- what words do -------------------------------------------------------------------------------

/** The effect of leaving out each word: a column for each of some pairs of one query. */
function showEffects(some, heads) {
  const shown = some.filter((one) => one.title);
  $("effects-box").hidden = !shown.length;
  if (!shown.length) return;
  const what = PAIR_MODEL || data.triage === null ? "score" : "cosine";
  $("effects-note").textContent =
    `The ${what} minus the ${what} without the word. A bar to the right: the word raises it. ` +
    "All bars share one scale.";
  const all = shown.flatMap((one) => SIDES.flatMap((name) => one[name].left_out));
  const largest = Math.max(...all.map(Math.abs), 1e-9);
  const bar = (value) => make("td", {}, effectBar(value, largest));
  const row = (word, cells) =>
    make("tr", {}, make("th", { scope: "row" }, words(word)), ...cells);
  const part = (text, rows) => {
    const heading = make("th", { colSpan: heads.length + 1, scope: "rowgroup", className: "part" });
    heading.append(...text);
    return make("tbody", {}, make("tr", {}, heading), ...rows);
  };
  const made = table(["Word", ...heads], []);
  const query = shown[0].query.words.map((word, t) =>
    row(word, shown.map((one) => bar(one.query.left_out[t]))),
  );
  made.append(part(["Query"], query));
  shown.forEach((one, k) => {
    const rows = one.title.words.map((word, t) =>
      row(
        word,
        shown.map((_, column) => (column === k ? bar(one.title.left_out[t]) : make("td"))),
      ),
    );
    const name = shown.length > 1 ? [`${heads[k]}: `, words(one.title.text)] : ["Title"];
    made.append(part(name, rows));
  });
  nameColumns(made, "", ...shown.map(() => "effect"));
  $("effects").replaceChildren(made);
}

function wordsNote(some) {
  const gradient =
    "Gradient × input is the derivative of the score with respect to the word’s input, times that " +
    "input: a linear view of small changes at this point. Read the table above for what a word " +
    "does; this one can differ from it, even in sign, because a saturated gate hardly answers a " +
    "small change and because the cosine divides by the length of the vector. ";
  if (PAIR_MODEL) {
    const cut = SIDES.filter((name) => some[name].cut).map(
      (name) => `The last ${some[name].cut} words of the ${name} are not read. `,
    );
    const rest = some.rest ? ` with a rest of ${signed(some.rest)}` : "";
    return (
      "Gradient × input is the derivative of the score with respect to the word’s input, times " +
      `that input. These shares and ${signed(some.biases)} from biases add up to the score${rest}. ` +
      "Read the table above for what a word does; this one can differ from it because the words " +
      `behind a word that is left out move up, and other values become the largest. ${cut.join("")}`
    );
  }
  const { asked } = some.query;
  const ways = data.halves === 2 ? ", reading left to right, right to left" : "";
  const keywords =
    `Declared by: how many of the ${asked} cells that are most active at the end of the text ` +
    `change markedly at this word${ways}; ● is a keyword, with more than ` +
    `${100 * data.keyword_share} % of them. The first word that is read is marked –: there is ` +
    "nothing before it to compare with.";
  return some.title ? gradient + keywords : keywords;
}

/** Keywords and gradient × input of the chosen pair, for models that have them. */
function showWords(some) {
  const hasGradient = some.query.gradient !== undefined;
  $("words-box").hidden = !hasGradient && !HAS_CELLS;
  if ($("words-box").hidden) return;
  // A query alone has no other table.
  if (!some.title) $("words-box").open = true;
  const names = [...(HAS_CELLS ? ["Keywords"] : []), ...(hasGradient ? ["gradient × input"] : [])];
  $("words-summary").textContent = capital(names.join(" and "));
  const all = sidesOf(some).flatMap((name) => some[name].gradient ?? []);
  const largest = Math.max(...all.map(Math.abs), 1e-9);
  const heads = [
    ...(HAS_CELLS ? ["Declared by"] : []),
    ...(hasGradient ? ["Gradient × input"] : []),
  ];
  const made = wordTable(some, heads, (side, t) => [
    ...(HAS_CELLS ? [make("td", { className: "declared" }, ...declaredBy(side, t))] : []),
    ...(hasGradient ? [make("td", {}, effectBar(side.gradient[t], largest))] : []),
  ]);
  const columns = [...(HAS_CELLS ? ["declared"] : []), ...(hasGradient ? ["effect"] : [])];
  nameColumns(made, "", ...columns);
  made.classList.toggle("narrow", !hasGradient);
  $("words").replaceChildren(made);
}

/** How many cells declare a word, in each direction that reads it, and a dot for a keyword. */
function declaredBy(side, t) {
  const counts = side.declared[t].map((count) => count ?? "–").join(", ");
  const verdict = side.keyword[t];
  if (verdict === null) return [counts];
  const mark = make("span", { role: "img", "aria-label": verdict ? "keyword" : "no keyword" });
  mark.textContent = verdict ? " ●" : " ○";
  return [counts, mark];
}

/** A number, and a bar from the middle to the left or the right. */
function effectBar(value, largest) {
  const fill = make("i", { className: value < 0 ? "minus" : "plus" });
  const length = (50 * Math.abs(value)) / largest;
  fill.style.width = `${length}%`;
  fill.style.insetInlineStart = value < 0 ? `${50 - length}%` : "50%";
  return make(
    "div",
    { className: "effect" },
    make("span", { className: "number" }, signed(value)),
    make("span", { className: "bar", "aria-hidden": "true" }, fill),
  );
}

// -- pairs of windows ----------------------------------------------------------------------------

/** What each pair of windows adds to the score of an ARC-II, as a table of colours. */
function showWindows(some) {
  $("windows-box").hidden = !some.windows;
  if (!some.windows) return;
  const { words: long, begin, shares, biases } = some.windows;
  $("windows-note").textContent =
    `The part of the score that flows through each cell of layer 1, which reads ${long} words of ` +
    "the query and of the title, down and across, from the word that is named. The cells and " +
    `${signed(biases)} from the biases above them add up to the score. Point at a cell to see its value.`;
  const names = ["query", "title"].map((name, side) => (k) => {
    if (k >= begin[side]) return "behind the end";
    return some[name].words.slice(k, k + long).join(" ");
  });
  const first = ["query", "title"].map((name, side) => (k) =>
    k < begin[side] ? some[name].words[k] : "(end)",
  );
  const largest = Math.max(...shares.flat().map(Math.abs), 1e-9);
  const colours = palette();
  const heads = shares[0].map((_, j) => {
    const label = words(first[1](j), "bdi");
    return make("th", { scope: "col", title: names[1](j) }, label);
  });
  const rows = shares.map((row, i) => {
    const cells = row.map((share, j) => {
      const said = `${names[0](i)} × ${names[1](j)}: ${signed(share)}`;
      const cell = make("td", { title: said }, make("span", {}, signed(share)));
      cell.style.background = colours(share / largest);
      return cell;
    });
    const label = words(first[0](i), "bdi");
    return make("tr", {}, make("th", { scope: "row", title: names[0](i) }, label), ...cells);
  });
  const head = make("thead", {}, make("tr", {}, make("td", {}), ...heads));
  const made = make("table", { className: "windows" }, head, make("tbody", {}, ...rows));
  $("windows").replaceChildren(made);
}

// -- heat maps -----------------------------------------------------------------------------------

let maps = []; // what is drawn now: {canvas, draw}
let cellOrder = []; // the cell in every column

function showHeat() {
  const some = pair();
  maps = [];
  if (!hasGates(some)) {
    $("heat").replaceChildren();
    return;
  }
  cellOrder = data.cells.map((_, cell) => cell);
  if (state.order === "share" && some.share)
    cellOrder.sort((a, b) => some.share[b] - some.share[a]);
  const gates = data.gates.filter((gate) => state.gate === "all" || state.gate === gate.key);
  $("heat").replaceChildren(
    ...(some.share ? [shareFigure(some)] : []),
    ...gates.map((gate) => gateFigure(some, gate)),
  );
  drawHeat();
}

function figure(name, extra, labels, canvas, label) {
  const plot = make("div", { className: "plot" }, make("div", {}, canvas, axis(label)));
  plot.addEventListener("scroll", () => scrollMaps(plot.scrollLeft));
  return make(
    "figure",
    { className: "heat" },
    make("figcaption", {}, make("b", {}, name), extra),
    make("div", { className: "map" }, labels, plot),
  );
}

/** Under a map: numbers of cells, or how they are ordered. */
function axis(label) {
  const n = data.cells.length;
  const line = make("div", { className: "axis", "aria-hidden": "true" });
  const put = (text, share, shift) => {
    const mark = make("span", {}, text);
    mark.style.left = `${100 * share}%`;
    if (shift) mark.style.transform = shift;
    line.append(mark);
  };
  if (!label) return line;
  if (state.order === "share" && pair().share) {
    put("largest share", 0, "none");
    put("smallest", 1, "translateX(-100%)");
  } else if (data.halves === 2) {
    put("read left to right", 0.25);
    put("read right to left", 0.75);
  } else {
    const step = [1, 2, 5, 10, 20, 50, 100].find((some) => n / some <= 10);
    for (let cell = 0; cell < n; cell += step) {
      put(String(cell), (cell + 0.5) / n);
    }
  }
  return line;
}

function shareFigure(some) {
  const height = 72;
  const canvas = make("canvas", {
    role: "img",
    "aria-label": `Share of each cell in the score of ${fixed(some.score, 3)}`,
  });
  const [low, high] = [Math.min(...some.share, 0), Math.max(...some.share, 1e-9)];
  const y = (value) => EDGE + ((high - value) / (high - low)) * (height - 2 * EDGE);
  const labels = make("div", { className: "labels share" });
  for (const value of low < -0.4 * high ? [high, 0, low] : [high, 0]) {
    const label = make("div", {}, value ? signed(value) : "0");
    label.style.top = `${y(value) - ROW / 2}px`;
    labels.append(label);
  }
  maps.push({
    canvas,
    height,
    rowAt: () => null,
    draw(pen, x) {
      const style = getComputedStyle(document.documentElement);
      cellOrder.forEach((cell, column) => {
        const [top, bottom] = [y(Math.max(some.share[cell], 0)), y(Math.min(some.share[cell], 0))];
        pen.fillStyle = style.getPropertyValue(some.share[cell] < 0 ? "--minus" : "--plus");
        const gap = x(1) - x(0) > 4 ? 1 : 0;
        pen.fillRect(x(column), top, x(column + 1) - x(column) - gap, bottom - top);
      });
      pen.fillStyle = style.getPropertyValue("--third");
      pen.fillRect(x(0), y(0) - 0.5, x(data.cells.length) - x(0), 1);
    },
  });
  watch(maps.at(-1));
  const note = make("span", {}, "query × title, both of length 1; the sum is the cosine");
  return figure("Share of each cell in the score", note, labels, canvas, false);
}

function gateFigure(some, gate) {
  const rows = sidesOf(some).flatMap((name) =>
    some[name].words.map((word, t) => ({ name, word, t })),
  );
  const top = (k) => EDGE + k * ROW + (rows[k].name === "title" ? GAP : 0);
  const height = top(rows.length - 1) + ROW + EDGE;
  const labels = make("div", { className: "labels" });
  rows.forEach((row, k) => {
    const label = words(row.word, "div");
    label.title = row.word;
    if (row.name === "title" && row.t === 0) label.style.marginTop = `${GAP}px`;
    row.label = label;
    labels.append(label);
  });
  const canvas = make("canvas", {
    tabIndex: 0,
    role: "application",
    "aria-roledescription": "heat map",
    "aria-label": `${capital(gate.name)}: words down, cells across; move with the arrow keys`,
    "aria-describedby": "readout",
  });
  const map = {
    canvas,
    height,
    rows,
    gate,
    rowAt(y) {
      const k = rows.findIndex((_, number) => y < top(number) + ROW);
      return rows[k < 0 ? rows.length - 1 : k];
    },
    draw(pen, x, colours) {
      rows.forEach((row, k) => {
        const cells = values(some[row.name], gate.key)[row.t];
        cellOrder.forEach((cell, column) => {
          pen.fillStyle = colours(scaled(cells[cell], gate));
          pen.fillRect(x(column), top(k), x(column + 1) - x(column), ROW - 1);
        });
        const here = row.name === state.side && row.t === state.word;
        row.label.classList.toggle("here", here);
      });
      if (data.halves === 2 && cellOrder[1] === 1) {
        pen.fillStyle = getComputedStyle(document.body).color;
        pen.fillRect(x(data.cells.length / 2) - 0.5, EDGE, 1, height - 2 * EDGE);
      }
      const k = rows.findIndex((row) => row.name === state.side && row.t === state.word);
      const column = cellOrder.indexOf(state.cell);
      const wide = Math.max(x(column + 1) - x(column), 3);
      pen.strokeStyle = getComputedStyle(document.body).color;
      pen.lineWidth = 2;
      pen.strokeRect(x(column) - 1, top(k) - 1, wide + 2, ROW + 1);
    },
  };
  maps.push(map);
  watch(map);
  return figure(capital(gate.name), legend(gate), labels, canvas, true);
}

/** Where a value lies between the ends of its gate's scale: -1 to 1. */
function scaled(value, gate) {
  return Math.min(Math.max((value - gate.middle) / gate.reach, -1), 1);
}

function legend(gate) {
  const bar = make("canvas", { width: 112, height: 1, "aria-hidden": "true" });
  maps.push({
    draw(_, __, colours) {
      const pen = bar.getContext("2d");
      for (let k = 0; k < 112; k++) {
        pen.fillStyle = colours(k / 55.5 - 1);
        pen.fillRect(k, 0, 1, 1);
      }
    },
  });
  const [low, high] = [gate.middle - gate.reach, gate.middle + gate.reach];
  const ends = [fixed(low, 2), fixed(high, 2)];
  if (gate.beyond) ends.splice(0, 2, `≤ ${ends[0]}`, `≥ ${ends[1]}`);
  return make("span", { className: "scale" }, ends[0], bar, ends[1]);
}

/** A function from -1..1 to a colour of the present theme. */
function palette() {
  const stops = STOPS[dark.matches ? "dark" : "light"].map((stop) =>
    [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)),
  );
  const steps = Array.from({ length: 257 }, (_, k) => {
    const place = (k / 256) * (stops.length - 1);
    const below = Math.min(Math.floor(place), stops.length - 2);
    const mix = stops[below].map((c, j) =>
      Math.round(c + (place - below) * (stops[below + 1][j] - c)),
    );
    return `rgb(${mix.join(" ")})`;
  });
  return (value) => steps[Math.round((value + 1) * 128)];
}

function drawHeat() {
  const colours = palette();
  const n = data.cells.length;
  for (const map of maps) {
    if (!map.canvas) {
      map.draw(null, null, colours);
      continue;
    }
    const wide = map.canvas.parentElement;
    wide.style.minWidth = `${n * NARROWEST}px`;
    const width = wide.clientWidth;
    const ratio = devicePixelRatio || 1;
    map.canvas.style.height = `${map.height}px`;
    map.canvas.width = Math.round(width * ratio);
    map.canvas.height = Math.round(map.height * ratio);
    const pen = map.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    // Columns end on whole pixels of the screen, so that none is blurred.
    const x = (column) => EDGE + Math.round((column * (width - 2 * EDGE) * ratio) / n) / ratio;
    map.draw(pen, x, colours);
  }
  showReadout();
}

/** Scroll all maps, where they are wider than the page, to the same place. */
function scrollMaps(left) {
  for (const plot of document.querySelectorAll(".plot")) plot.scrollLeft = left;
}

function showColumn(column) {
  const plot = document.querySelector(".plot");
  const place = (column / data.cells.length) * plot.scrollWidth;
  if (place < plot.scrollLeft + 20 || place > plot.scrollLeft + plot.clientWidth - 20) {
    scrollMaps(place - plot.clientWidth / 2);
  }
}

function watch(map) {
  const place = (event) => {
    const box = map.canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - EDGE) / (box.width - 2 * EDGE);
    const column = Math.floor(share * data.cells.length);
    const cell = cellOrder[Math.min(Math.max(column, 0), data.cells.length - 1)];
    return [cell, map.rowAt(event.clientY - box.top)];
  };
  map.canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") showReadout(...place(event), map.gate);
  });
  map.canvas.addEventListener("pointerleave", () => showReadout());
  map.canvas.addEventListener("click", (event) => {
    const [cell, row] = place(event);
    if (row) [state.side, state.word] = [row.name, row.t];
    chooseCell(cell);
  });
  map.canvas.addEventListener("keydown", (event) => moveInMap(event, map));
}

function moveInMap(event, map) {
  const across = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 }[
    event.key
  ];
  const down = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if ((!across && !down) || !map.rows || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  if (down) {
    const k = map.rows.findIndex((row) => row.name === state.side && row.t === state.word) + down;
    const row = map.rows[Math.min(Math.max(k, 0), map.rows.length - 1)];
    [state.side, state.word] = [row.name, row.t];
  }
  const moved = cellOrder.indexOf(state.cell) + (across || 0);
  const column = Math.min(Math.max(moved, 0), data.cells.length - 1);
  chooseCell(cellOrder[column]);
  showColumn(column);
}

/** Say what is under the pointer, or else what is chosen. */
function showReadout(cell = state.cell, row = null, gate = null) {
  const some = pair();
  if (!hasGates(some)) return;
  const [name, t] = row ? [row.name, row.t] : [state.side, state.word];
  const gates = data.gates.filter((other) =>
    gate ? other === gate : state.gate === "all" || other.key === state.gate,
  );
  const word = words(some[name].words[t]);
  const parts = [capital(cellName(cell)), " after “", word, `” (${name}): `];
  parts.push(
    gates
      .map((other) => `${other.name} ${fixed(values(some[name], other.key)[t][cell], 3)}`)
      .join(", "),
  );
  if (some.share) parts.push(` · share of the score ${signed(some.share[cell])}`);
  const topic = data.cells[cell].slice(0, 3);
  if (topic.length) parts.push(" · topic: ");
  topic.forEach(([word], k) => parts.push(...(k ? [", ", words(word)] : [words(word)])));
  $("readout").replaceChildren(...parts);
}

// -- cells ---------------------------------------------------------------------------------------

function showCells() {
  $("cells-note").textContent =
    `What each cell collects over ${data.topic_queries} queries: the words at which it changes ` +
    "markedly while it is among the 5 most active cells of the query.";
  const options = data.cells.map((topic, cell) =>
    make(
      "div",
      {
        "aria-selected": "false",
        "aria-label": `${cellName(cell)}: ${topic.length ? topic[0][0] : "no words"}`,
      },
      make("b", {}, String(cell)),
      words(topic.length ? topic[0][0] : "–", "span"),
    ),
  );
  listBox($("cell-list"), options, chooseCell);
}

function chooseCell(cell) {
  state.cell = cell;
  markChosen($("cell-list"), cell);
  $("cell-heading").textContent = capital(cellName(cell));
  const topic = data.cells[cell];
  $("cell-note").textContent = topic.length
    ? "Words ranked by queries × share; the share is this cell’s part of all cells’ counts."
    : "This cell collects no words.";
  const largest = Math.max(...topic.map(([, count]) => count));
  const rows = topic.map(([word, count, share]) => {
    const fill = make("i", { className: "minus" });
    fill.style.width = `${(100 * count) / largest}%`;
    fill.style.insetInlineStart = "0";
    return make(
      "tr",
      {},
      make("th", { scope: "row" }, words(word)),
      make("td", { className: "number" }, String(count)),
      make("td", { className: "number" }, `${fixed(100 * share, 0)} %`),
      make("td", {}, make("span", { className: "bar whole", "aria-hidden": "true" }, fill)),
    );
  });
  const made = table(["Word", "Queries", "Share", ""], rows);
  nameColumns(made, "", "", "", "count");
  $("cell-words").replaceChildren(...(topic.length ? [made] : []));
  showCellValues();
  drawHeat();
  remember();
}

/** Every gate of the chosen cell, word by word: what the maps show, as a table. */
function showCellValues() {
  const known = hasGates(pair());
  $("cell-values-box").hidden = !known;
  if (!known) return;
  const heads = data.gates.map((gate) => capital(gate.name));
  const made = wordTable(pair(), heads, (side, t) =>
    data.gates.map((gate) =>
      make("td", { className: "number" }, fixed(values(side, gate.key)[t][state.cell], 3)),
    ),
  );
  $("cell-values").replaceChildren(made);
}
