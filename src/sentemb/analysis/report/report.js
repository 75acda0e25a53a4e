// The page of `sentemb report`. All it shows is in the JSON of #data.

const data = JSON.parse(document.getElementById("data").textContent);
const PAIR_MODEL = data.kind === "pair"; // or else two towers
const HAS_CELLS = data.cells.length > 0; // a recurrent model
const SIDES = data.pairs.some((pair) => pair.title) ? ["query", "title"] : ["query"];
const ORDERS = [
  ["number", "by number"],
  ["share", "by share of the score"],
];
const dark = matchMedia("(prefers-color-scheme: dark)");
const state = { query: 0, pair: 0, cell: 0, side: "query", word: 0, gate: "y", order: "number" };

// -- small things --------------------------------------------------------------------------------

function makeSvg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
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
      const label = isolated(word, "bdi", side.keyword?.[t] ? "keyword" : "");
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
    const option = make("div", { "aria-selected": "false" }, isolated(some.query.text, "div"));
    if (some.title) {
      option.append(
        make("div", { className: "score" }, fixed(some.score, 3)),
        isolated(some.title.text, "div", "title"),
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
        isolated(some[name].text, "span", "text"),
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
    make("tr", {}, make("th", { scope: "row" }, isolated(word)), ...cells);
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
    const name = shown.length > 1 ? [`${heads[k]}: `, isolated(one.title.text)] : ["Title"];
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
  const fill = make("i", { className: value < 0 ? "lowers" : "raises" });
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
    const label = isolated(first[1](j), "bdi");
    return make("th", { scope: "col", title: names[1](j) }, label);
  });
  const rows = shares.map((row, i) => {
    const cells = row.map((share, j) => {
      const said = `${names[0](i)} × ${names[1](j)}: ${signed(share)}`;
      const cell = make("td", { title: said }, make("span", {}, signed(share)));
      cell.style.background = colours(share / largest);
      return cell;
    });
    const label = isolated(first[0](i), "bdi");
    return make("tr", {}, make("th", { scope: "row", title: names[0](i) }, label), ...cells);
  });
  const head = make("thead", {}, make("tr", {}, make("td", {}), ...heads));
  const made = make("table", { className: "windows" }, head, make("tbody", {}, ...rows));
  $("windows").replaceChildren(made);
}
