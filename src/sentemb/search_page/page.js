// The search page. It asks `engine`, which page.py describes, and draws the answers.

const PAUSE = 80; // milliseconds without a key before a search begins
const SETTLED = 1500; // milliseconds after which a query becomes an entry of the history
const ROW = 18; // pixels, as the labels of a map in the style sheet
const COUNTS = [10, 20, 50, 100];
// From 0 to 1; the others have both signs, and their mean is that of their sizes.
const SIGMOIDS = ["input", "forget", "output"];
const GATES = {
  input: "input gate",
  forget: "forget gate",
  output: "output gate",
  candidate: "candidate",
  cell: "cell state",
  y: "output y",
};
const SIDES = ["query", "title"];
// What a confidence is called, from the highest down.
const SURE = [
  [0.9, "almost certain"],
  [0.7, "likely"],
  [0.4, "uncertain"],
  [0, "unlikely"],
];

const dark = matchMedia("(prefers-color-scheme: dark)");
const state = { query: "", count: 10, open: null };
let shown = null; // the answer that is on the page
let asked = 0; // numbers the searches: an answer to any but the last is dropped
let searching = null; // the AbortController of the last search
let explaining = null; // that of the open explanation
let pause = 0;
let settling = 0;
let settled = true; // whether the next query gets an entry of its own in the history
let maps = []; // heat maps to draw again when the colours or the width change

// -- small things --------------------------------------------------------------------------------

function counted(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** Texts with commas between them, each in its own direction. */
function listed(words) {
  return words.flatMap((word, k) => (k ? [", ", isolated(word)] : [isolated(word)]));
}

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

/** A translucent colour for a share from -1 to 1. */
function shade(share) {
  const strength = 0.5 * Math.min(Math.abs(share), 1);
  return `rgb(var(${share < 0 ? "--minus" : "--plus"}) / ${strength.toFixed(3)})`;
}

function message(error) {
  return error instanceof Error && error.message ? error.message : String(error);
}

// -- searching -----------------------------------------------------------------------------------

/** Search for what is in the box, now; answers to earlier searches are dropped. */
async function search() {
  clearTimeout(pause);
  const number = ++asked;
  searching?.abort();
  searching = new AbortController();
  $("problem").hidden = true;
  const query = state.query.trim();
  document.title = query ? `${query} – ${engine.facts.name}` : engine.facts.name;
  if (!query) {
    show({ query: state.query, unknown: [], hits: [] });
    return;
  }
  const waiting = setTimeout(() => $("results").classList.add("old"), 250);
  const start = performance.now();
  try {
    const found = await engine.search(state.query, state.count, searching.signal);
    if (number === asked) show(found, performance.now() - start);
  } catch (error) {
    if (number === asked) fail(error);
  } finally {
    clearTimeout(waiting);
    if (number === asked) $("results").classList.remove("old");
  }
}

function fail(error) {
  shown = null;
  $("results").replaceChildren();
  $("remark").hidden = true;
  $("status").textContent = "";
  $("problem-text").textContent = `The search failed: ${message(error)}`;
  $("problem").hidden = false;
}

function show(found, milliseconds) {
  shown = found;
  maps = [];
  explaining?.abort();
  const hits = found.hits;
  // Shares of one scale for all results; a score below 0 has no bar.
  const highest = Math.max(1, ...hits.map((hit) => hit.score));
  $("results").replaceChildren(...hits.map((hit, k) => result(hit, k, highest)));
  showStatus(found, milliseconds);
  showRemark(found);
  const open = hits.findIndex((hit) => hit.id === state.open);
  if (open >= 0) expand(open);
}

function showStatus(found, milliseconds) {
  const { facts } = engine;
  let status = "Nothing found.";
  if (!found.query.trim()) status = `Type to search ${counted(facts.titles, "title")}.`;
  else if (found.hits.length) {
    const time = milliseconds < 1 ? "under 1" : Math.round(milliseconds).toLocaleString("en");
    status = `${found.hits.length} of ${counted(facts.titles, "title")} · ${time} ms`;
  }
  $("status").textContent = status;
}

function showRemark(found) {
  const remark = $("remark");
  remark.hidden = !found.unknown.length;
  if (remark.hidden) return;
  if (knowsNone(found)) {
    const rest = found.hits.length
      ? engine.facts.bm25 && found.hits[0].bm25
        ? " What follows shares words with it."
        : " What follows is not about it."
      : "";
    remark.textContent = `The model knows no word of this query.${rest}`;
  } else {
    remark.replaceChildren("The model does not know ", ...listed(found.unknown), ".");
  }
}

/** Whether every word is unknown. Words are split as the model does it, perhaps without commas. */
function knowsNone(found) {
  const unknown = new Set(found.unknown);
  const isUnknown = (word) => {
    const runs = word.match(/[\p{L}\p{N}_]+/gu);
    return unknown.has(word) || (runs !== null && runs.every((run) => unknown.has(run)));
  };
  return found.query.normalize("NFC").toLowerCase().trim().split(/\s+/u).every(isUnknown);
}

function result(hit, k, highest) {
  const lexical = hit.bm25 === null ? 0 : hit.score - hit.cosine;
  const parts = make("span", { className: "parts quiet" });
  if (hit.confidence !== null) {
    const sure = make("span", { className: "sure" }, nameOf(hit.confidence));
    parts.append(make("span", {}, sure, `, confidence ${fixed(hit.confidence, 2)}`));
  }
  if (engine.facts.bm25) {
    parts.append(make("span", { className: "of-cosine" }, `cosine ${fixed(hit.cosine, 3)}`));
    if (lexical) {
      parts.append(make("span", { className: "of-words" }, `BM25 ${signed(lexical, 3)}`));
    }
  }
  const meter = make(
    "span",
    { className: "meter", "aria-hidden": "true" },
    bar("cosine", Math.max(hit.cosine, 0) / highest),
    bar("words", lexical / highest),
  );
  const button = make(
    "button",
    {
      type: "button",
      className: "hit",
      "aria-expanded": "false",
      "aria-controls": `panel-${k}`,
      id: `hit-${k}`,
    },
    make("span", { className: "rank", "aria-hidden": "true" }, String(k + 1)),
    isolated(hit.title, "span", "title"),
    make("span", { className: "score" }, fixed(hit.score, 3)),
    parts,
    meter,
  );
  button.addEventListener("click", () => {
    if (button.getAttribute("aria-expanded") === "true") collapse();
    else {
      expand(k);
      remember(false);
    }
  });
  const panel = make("div", { className: "panel", id: `panel-${k}`, role: "region", hidden: true });
  panel.setAttribute("aria-labelledby", `hit-${k}`);
  return make("li", {}, button, panel);
}

function bar(className, share) {
  const element = make("i", { className });
  element.style.width = `${(100 * share).toFixed(1)}%`;
  return element;
}

function nameOf(confidence) {
  return SURE.find(([least]) => confidence >= least)[1];
}

// -- an explanation ------------------------------------------------------------------------------

function panelOf(k) {
  return $(`panel-${k}`);
}

/** Close the open explanation and forget it. */
function collapse() {
  close();
  state.open = null;
  remember(false);
}

function close() {
  explaining?.abort();
  explaining = null;
  maps = [];
  for (const button of document.querySelectorAll('.hit[aria-expanded="true"]')) {
    button.setAttribute("aria-expanded", "false");
    button.nextElementSibling.hidden = true;
  }
}

async function expand(k) {
  const hit = shown.hits[k];
  close();
  state.open = hit.id;
  $(`hit-${k}`).setAttribute("aria-expanded", "true");
  const panel = panelOf(k);
  panel.hidden = false;
  panel.setAttribute("aria-busy", "true");
  panel.replaceChildren(make("p", { className: "quiet" }, "Computing …"));
  const own = (explaining = new AbortController());
  try {
    const found = await engine.explain(shown.query, hit.id, own.signal);
    if (own === explaining && panel.isConnected) fill(panel, hit, found);
  } catch (error) {
    if (own === explaining && panel.isConnected) {
      const why = `This cannot be explained: ${message(error)}`;
      panel.replaceChildren(make("p", { className: "problem", role: "alert" }, why));
    }
  } finally {
    panel.removeAttribute("aria-busy");
  }
}

function fill(panel, hit, found) {
  const largest = Math.max(
    1e-9,
    ...SIDES.flatMap((side) => found[side].words.map((word) => Math.abs(word.effect))),
  );
  panel.replaceChildren(
    make("p", {}, ...account(hit)),
    make("h2", {}, "What each word does"),
    make(
      "p",
      { className: "quiet" },
      "Effect of a word: the cosine minus the cosine without the word. ",
      "Blue words raise the score, orange words lower it.",
    ),
    ...SIDES.flatMap((side) => effects(side, found[side], largest)),
    ...(found.nearest_queries ? evidence(found.nearest_queries) : []),
    ...(engine.facts.gates ? [gatesButton(panel, hit)] : []),
  );
}

/** How the score came about. */
function account(hit) {
  const parts = [`Score ${fixed(hit.score, 3)}`];
  if (hit.bm25 === null) parts.push(": the cosine of the query and the title.");
  else {
    const share = fixed(hit.score - hit.cosine, 3);
    parts.push(` = cosine ${fixed(hit.cosine, 3)} + ${share} for shared words `);
    parts.push(`(BM25 ${fixed(hit.bm25, 2)}).`);
  }
  if (hit.confidence !== null) {
    const percent = fixed(100 * hit.confidence, 0);
    parts.push(` For ${percent} % of the queries with such a score, the best title is a clicked one.`);
  }
  parts.push(" Id ", isolated(hit.id), ".");
  return parts;
}

function effects(side, some, largest) {
  const unknown = new Set(some.unknown);
  const items = some.words.map(({ word, effect }) => {
    const item = make(
      "li",
      {},
      isolated(word, "span", unknown.has(word) ? "word unknown" : "word"),
      make("span", { className: "number" }, signed(effect, 3)),
    );
    item.style.background = shade(effect / largest);
    return item;
  });
  const name = side === "query" ? "Query" : "Title";
  const list = make("ul", { className: "effects", dir: "auto", "aria-label": `${name}, effects` });
  list.append(...items);
  const remarks = [];
  if (some.unknown.length) remarks.push(["The model knows nothing of ", some.unknown]);
  if (some.never_in_log?.length) {
    remarks.push([`In no ${side} of the log: `, some.never_in_log]);
  }
  return [
    make("p", { className: "side" }, name),
    list,
    ...remarks.map(([before, words]) =>
      make("p", { className: "quiet" }, before, ...listed(words), "."),
    ),
  ];
}

function evidence(nearest) {
  const heads = ["Cosine", "Query", "Clicked"].map((head) => make("th", { scope: "col" }, head));
  const rows = nearest.map((one) => {
    const clicked = one.clicked.slice(0, 3).flatMap(({ title, clicks }, k) => {
      const times = clicks > 1 ? [make("span", { className: "clicks" }, ` × ${clicks}`)] : [];
      return [...(k ? [make("br")] : []), isolated(title), ...times];
    });
    if (one.clicked.length > 3) {
      const more = ` and ${one.clicked.length - 3} more`;
      clicked.push(make("br"), make("span", { className: "clicks" }, more));
    }
    return make(
      "tr",
      {},
      make("td", {}, fixed(one.score, 3)),
      make("td", {}, isolated(one.query)),
      make("td", {}, ...clicked),
    );
  });
  return [
    make("h2", {}, "The nearest queries of the log, and what was clicked for them"),
    make(
      "table",
      { className: "log" },
      make("thead", {}, make("tr", {}, ...heads)),
      make("tbody", {}, ...rows),
    ),
  ];
}

// -- gates ---------------------------------------------------------------------------------------

function gatesButton(panel, hit) {
  const box = make("div", { id: "gates", hidden: true });
  const button = make(
    "button",
    { type: "button", className: "plain", "aria-expanded": "false", "aria-controls": "gates" },
    "Show the gates",
  );
  button.addEventListener("click", async () => {
    const opening = box.hidden;
    box.hidden = !opening;
    button.setAttribute("aria-expanded", String(opening));
    button.textContent = opening ? "Hide the gates" : "Show the gates";
    maps = [];
    if (!opening) return;
    const own = explaining;
    box.replaceChildren(make("p", { className: "quiet" }, "Computing …"));
    try {
      const found = await engine.gates(shown.query, hit.id, own?.signal);
      if (own === explaining && box.isConnected) showGates(box, found);
    } catch (error) {
      if (own !== explaining || !box.isConnected) return;
      const why = `The gates cannot be shown: ${message(error)}`;
      box.replaceChildren(make("p", { className: "problem", role: "alert" }, why));
    }
  });
  return make("div", {}, make("p", { className: "actions" }, button), box);
}

function showGates(box, found) {
  if (found === null) {
    box.replaceChildren(make("p", { className: "quiet" }, "This model has no gates."));
    return;
  }
  const names = Object.keys(GATES).filter((name) => found.query.gates[name]);
  const choice = make(
    "select",
    {},
    ...names.map((name) => make("option", { value: name }, GATES[name])),
  );
  const drawn = make("div", {});
  const draw = () => {
    maps = [];
    drawn.replaceChildren(...heatMaps(found, choice.value));
    drawMaps();
  };
  choice.addEventListener("change", draw);
  box.replaceChildren(
    make("h2", {}, "What the cells do at each word"),
    make(
      "p",
      { className: "quiet" },
      "Means over all cells; of values with both signs, the mean size.",
    ),
    ...SIDES.map((side) => means(side, found[side], names)),
    make(
      "div",
      { className: "maps" },
      make("label", { className: "quiet" }, "Every cell of the ", choice),
      drawn,
    ),
  );
  draw();
}

function meanOf(name, row) {
  const value = SIGMOIDS.includes(name) ? (x) => x : Math.abs;
  return row.reduce((sum, x) => sum + value(x), 0) / row.length;
}

/** A table of the words of a text and the mean of each gate. */
function means(side, some, names) {
  const heads = [side === "query" ? "Query" : "Title", ...names];
  const values = names.map((name) => some.gates[name].map((row) => meanOf(name, row)));
  const largest = names.map((name, j) =>
    SIGMOIDS.includes(name) ? 1 : Math.max(1e-9, ...values[j]),
  );
  const rows = some.words.map((word, t) => {
    const cells = names.map((_, j) => {
      const cell = make("td", { className: "number" }, fixed(values[j][t], 2));
      cell.style.background = shade(values[j][t] / largest[j]);
      return cell;
    });
    return make("tr", {}, make("th", { scope: "row" }, isolated(word)), ...cells);
  });
  return make(
    "table",
    { className: "gates" },
    make(
      "thead",
      {},
      make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head))),
    ),
    make("tbody", {}, ...rows),
  );
}

/** One map per text, words down and cells across, and the scale of both. */
function heatMaps(found, name) {
  // Gates are drawn from the middle of their range, one half, the others from 0.
  const middle = SIGMOIDS.includes(name) ? 0.5 : 0;
  const all = SIDES.flatMap((side) => found[side].gates[name].flat());
  const reach = Math.max(1e-9, ...all.map((x) => Math.abs(x - middle)));
  const scaled = (x) => (x - middle) / reach;
  const figures = SIDES.map((side) => {
    const { words, gates } = found[side];
    const canvas = make("canvas", {
      role: "img",
      "aria-label":
        `${GATES[name]} of ${counted(gates[name][0].length, "cell")} ` +
        `at ${counted(words.length, "word")} of the ${side}`,
    });
    maps.push({ canvas, rows: gates[name].map((row) => row.map(scaled)) });
    const labels = make("div", { className: "labels", "aria-hidden": "true" });
    labels.append(...words.map((word) => isolated(word, "div")));
    return make("figure", {}, make("div", { className: "map" }, labels, canvas));
  });
  const canvas = make("canvas", { "aria-hidden": "true" });
  maps.push({ canvas, rows: [Array.from({ length: 101 }, (_, k) => k / 50 - 1)], height: 8 });
  const ends = [fixed(middle - reach, 2), fixed(middle + reach, 2)];
  return [...figures, make("div", { className: "scale quiet" }, ends[0], canvas, ends[1])];
}

function drawMaps() {
  const [plus, minus] = [cssColour("--plus"), cssColour("--minus")];
  for (const { canvas, rows, height } of maps) {
    const width = canvas.clientWidth;
    const ratio = devicePixelRatio || 1;
    const tall = height || ROW;
    canvas.style.height = `${rows.length * tall}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(rows.length * tall * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    rows.forEach((row, t) => {
      // Columns end on whole pixels of the screen, so that none is blurred.
      const x = (k) => Math.round((k * width * ratio) / row.length) / ratio;
      row.forEach((value, k) => {
        pen.fillStyle = `rgb(${value < 0 ? minus : plus} / ${Math.abs(value).toFixed(3)})`;
        pen.fillRect(x(k), t * tall, x(k + 1) - x(k), height ? tall : tall - 1);
      });
    });
  }
}

// -- the address ---------------------------------------------------------------------------------

/** Write the state into the address; `isNew` makes an entry for the back button. */
function remember(isNew) {
  const parts = new URLSearchParams();
  if (state.query) parts.set("q", state.query);
  if (state.count !== COUNTS[0]) parts.set("k", state.count);
  if (state.open !== null) parts.set("open", state.open);
  const address = `#${parts}`;
  if (address === (location.hash || "#")) return;
  history[isNew ? "pushState" : "replaceState"](null, "", address);
}

function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  state.query = parts.get("q") || "";
  state.count = COUNTS.find((count) => String(count) === parts.get("k")) || COUNTS[0];
  state.open = parts.get("open");
  $("query").value = state.query;
  $("count").value = String(state.count);
  settled = true;
  return search();
}

function settle() {
  clearTimeout(settling);
  settled = true;
}

// -- keys ----------------------------------------------------------------------------------------

function buttons() {
  return [...document.querySelectorAll(".hit")];
}

function moveTo(place) {
  const all = buttons();
  if (place < 0) $("query").focus();
  else all[Math.min(place, all.length - 1)]?.focus();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const box = $("query");
  const at = event.target;
  const hit = at.closest?.(".hit");
  if (event.key === "/" && at !== box) {
    event.preventDefault();
    box.focus();
    box.select();
  } else if (event.key === "Escape") {
    if (state.open !== null) {
      event.preventDefault();
      const open = shown?.hits.findIndex((one) => one.id === state.open);
      collapse();
      moveTo(open ?? -1);
    } else if (at !== box) {
      event.preventDefault();
      box.focus();
    }
  } else if (at === box && event.key === "ArrowDown") {
    event.preventDefault();
    moveTo(0);
  } else if (hit) {
    const all = buttons();
    const place = all.indexOf(hit);
    const to = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    moveTo(to);
  }
}

// -- start ---------------------------------------------------------------------------------------

function listen() {
  $("query").addEventListener("input", () => {
    state.query = $("query").value;
    state.open = null;
    remember(settled);
    settled = false;
    clearTimeout(settling);
    settling = setTimeout(settle, SETTLED);
    clearTimeout(pause);
    pause = setTimeout(search, PAUSE);
  });
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    settle();
    search();
  });
  $("count").addEventListener("change", () => {
    state.count = Number($("count").value);
    remember(false);
    search();
  });
  $("again").addEventListener("click", search);
  document.addEventListener("keydown", onKey);
  addEventListener("popstate", recall);
  dark.addEventListener("change", drawMaps);
  addEventListener("resize", drawMaps);
}

async function start() {
  const { facts } = engine;
  document.title = facts.name;
  $("name").textContent = facts.name;
  $("about").textContent = [counted(facts.titles, "title"), facts.model].filter(Boolean).join(" · ");
  $("status").textContent = "Loading …";
  $("query").value = new URLSearchParams(location.hash.slice(1)).get("q") || $("query").value;
  try {
    await engine.ready;
  } catch (error) {
    fail(error);
    $("again").hidden = true; // only a reload would try it again
    return;
  }
  // What was typed while the engine was loading counts.
  const typed = $("query").value;
  listen();
  await recall();
  if (typed && typed !== state.query) {
    $("query").value = state.query = typed;
    remember(false);
    await search();
  }
}

start();
