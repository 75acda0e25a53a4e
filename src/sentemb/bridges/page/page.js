// The search page. It asks `engine`, which page.py describes, and draws the answers.

const PAUSE = 80; // milliseconds without a key before a search begins
const SETTLED = 1500; // milliseconds after which a query becomes an entry of the history
const COUNTS = [10, 20, 50, 100];
const MOST_OFFSET = 10000; // as the server allows

const dark = matchMedia("(prefers-color-scheme: dark)");
const state = { query: "", count: 10, offset: 0, open: null, filters: {}, sort: "" };
let shown = null; // the answer that is on the page
let asked = 0; // numbers the searches: an answer to any but the last is dropped
let searching = null; // the AbortController of the last search
let explaining = null; // that of the open explanation
let pause = 0;
let settling = 0;
let settled = true; // whether the next query gets an entry of its own in the history
let recorded = null; // the last search that the engine recorded: what it was, a promise of its name
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
    const { filters, sort, offset } = state;
    const found = await engine.search(state.query, state.count, searching.signal, { filters, sort, offset });
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
  $("pages").hidden = true;
  $("problem-text").textContent = `The search failed: ${message(error)}`;
  $("problem").hidden = false;
}

function show(found, milliseconds) {
  shown = found;
  maps = [];
  explaining?.abort();
  const hits = titlesOf(found);
  $("results").replaceChildren(...hits.map(result));
  showStatus(found, milliseconds);
  showRemark(found);
  showFilters(state.filters, state.sort, found.facets);
  showPages(hits.length);
  const open = hits.findIndex((hit) => hit.id === state.open);
  if (open >= 0) expand(open);
}

/** The titles of an answer that are shown: those nearest to a query that has no good match. */
function titlesOf({ hits, nearest = [] }) {
  return hits.length ? hits : nearest;
}

/** Buttons for the results before and after those that are shown. */
function showPages(count) {
  const { offset } = state;
  $("earlier").disabled = !offset;
  $("later").disabled = count < state.count || offset + state.count > MOST_OFFSET;
  $("pages").hidden = $("earlier").disabled && $("later").disabled;
}

function turn(pages) {
  state.offset = Math.max(0, state.offset + pages * state.count);
  state.open = null;
  remember(true);
  search();
  $("query").scrollIntoView();
}

function showStatus(found, milliseconds) {
  const { facts } = engine;
  const end = found.nearest?.length ? "; nearest:" : ".";
  let status = found.no_match ? `No good match: ${found.no_match}${end}` : "Nothing found.";
  if (state.offset && end === ".") status = "No more results.";
  if (!found.query.trim()) status = `Type to search ${counted(facts.titles, "title")}.`;
  else if (found.hits.length) {
    const time = milliseconds < 1 ? "under 1" : Math.round(milliseconds).toLocaleString("en");
    const { offset } = state;
    const shown = offset ? `${offset + 1} to ${offset + found.hits.length}` : found.hits.length;
    status = `${shown} of ${counted(facts.titles, "title")} · ${time} ms`;
  }
  $("status").textContent = status;
}

function showRemark(found) {
  const remark = $("remark");
  const { unknown, did_you_mean: meant } = found;
  remark.hidden = !unknown.length && !meant;
  remark.replaceChildren();
  if (unknown.length && knowsNone(found)) {
    const rest = titlesOf(found).length ? " What follows was found by its words alone." : "";
    remark.append(`The model knows none of the words of this query.${rest} `);
  } else if (unknown.length) {
    remark.append("The model does not know ", ...listed(unknown), ". ");
  }
  if (meant) {
    const button = make("button", { type: "button", className: "meant" }, isolated(meant));
    button.addEventListener("click", () => searchFor(meant));
    remark.append("Did you mean ", button, "?");
  }
}

/** Begin at the first result, with none open: what is searched for is another. */
function startAnew() {
  state.open = null;
  state.offset = 0;
}

/** Search for a query that was suggested. */
function searchFor(query) {
  $("query").value = state.query = query;
  $("query").focus();
  startAnew();
  remember(true);
  settle();
  search();
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

/** A result as a shop shows it: picture, title, fields; "why?" opens how its score came about. */
function result(hit, k) {
  const panel = make("div", { className: "panel", id: `panel-${k}`, role: "region", hidden: true });
  panel.setAttribute("aria-labelledby", `title-${k}`);
  const why = make(
    "button",
    { type: "button", className: "hit plain", "aria-expanded": "false", "aria-controls": panel.id, id: `hit-${k}` },
    "why?",
  );
  why.setAttribute("aria-describedby", `title-${k}`);
  const address = webAddress(hit.fields?.[LINK]);
  // Without a link, to look into a title is all that a click on it can mean; keys have the button.
  const explain = () => {
    if (why.getAttribute("aria-expanded") === "true") return collapse();
    expand(k);
    remember(false);
    if (address === null) recordClick(hit);
  };
  why.addEventListener("click", explain);
  const title = markedTitle(hit, address);
  title.id = `title-${k}`;
  if (address === null) title.addEventListener("click", explain);
  else {
    title.addEventListener("click", () => recordClick(hit));
    title.addEventListener("auxclick", ({ button }) => button === 1 && recordClick(hit)); // the middle one
  }
  const found = hit.by_id ? [make("p", { className: "quiet" }, "found by its id")] : [];
  const what = make("div", { className: "what" }, title, ...found, ...fieldsOf(hit));
  return make("li", { className: "result" }, ...pictureOf(hit), what, why, panel);
}

/** The title with the words of the query marked; the places are counted in code points. */
function markedTitle({ title, marks }, address) {
  const letters = [...title];
  const text = (begin, end) => letters.slice(begin, end).join("");
  const link = { href: address, target: "_blank", rel: "noopener noreferrer" };
  const shown = address === null ? make("span") : make("a", link);
  shown.className = "title";
  shown.dir = "auto";
  let from = 0;
  for (const [begin, end] of marks) {
    shown.append(text(from, begin), make("mark", {}, text(begin, end)));
    from = end;
  }
  shown.append(text(from));
  return shown;
}

// -- recording -----------------------------------------------------------------------------------

/** Have the search that is on the page recorded, once; typing alone records nothing. */
function record() {
  if (!engine.record || !state.query.trim()) return null;
  const { query, count, filters, sort, offset } = state;
  const search = JSON.stringify([query, count, filters, sort, offset]);
  if (recorded?.search !== search) {
    const answered = engine.record(query, count, { filters, sort, offset });
    const name = answered.then((answer) => answer.search).catch(() => null);
    recorded = { search, name };
    name.then((made) => {
      if (!made && recorded?.name === name) recorded = null; // the next click tries again
    });
  }
  return recorded.name;
}

/** Have a click recorded; whether that works does not matter to the reader. */
async function recordClick(hit) {
  const name = await record();
  if (name) await engine.click(name, hit.id).catch(() => {});
}

// -- the address ---------------------------------------------------------------------------------

/** Write the state into the address; `isNew` makes an entry for the back button. */
function remember(isNew) {
  const parts = new URLSearchParams();
  if (state.query) parts.set("q", state.query);
  if (state.count !== COUNTS[0]) parts.set("k", state.count);
  if (state.offset) parts.set("from", state.offset + 1);
  if (state.sort) parts.set("sort", state.sort);
  for (const [name, value] of Object.entries(state.filters)) parts.set(`is-${name}`, value);
  if (state.open !== null) parts.set("open", state.open);
  const address = `#${parts}`;
  if (address === (location.hash || "#")) return;
  history[isNew ? "pushState" : "replaceState"](null, "", address);
}

function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  state.query = parts.get("q") || "";
  state.count = COUNTS.find((count) => String(count) === parts.get("k")) || COUNTS[0];
  const from = parts.get("from") ?? "";
  state.offset = /^[1-9][0-9]{0,4}$/.test(from) ? Math.min(Number(from) - 1, MOST_OFFSET) : 0;
  state.open = parts.get("open");
  state.sort = parts.get("sort") || "";
  const chosen = filterNames().map((name) => [name, parts.get(`is-${name}`)]);
  state.filters = Object.fromEntries(chosen.filter(([name, value]) => isFilter(name, value)));
  $("query").value = state.query;
  $("count").value = String(state.count);
  settled = true;
  return search();
}

function settle() {
  clearTimeout(settling);
  settled = true;
  record();
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
  if (at === box && keyOfSuggestions(event)) event.preventDefault();
  else if (event.key === "/" && at !== box) {
    event.preventDefault();
    box.focus();
    box.select();
  } else if (event.key === "Escape") {
    if (state.open !== null) {
      event.preventDefault();
      const open = shown && titlesOf(shown).findIndex((one) => one.id === state.open);
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
    startAnew();
    remember(settled);
    settled = false;
    clearTimeout(settling);
    settling = setTimeout(settle, SETTLED);
    clearTimeout(pause);
    pause = setTimeout(() => {
      search();
      suggest(searchFor);
    }, PAUSE);
  });
  $("query").addEventListener("blur", closeSuggestions);
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    closeSuggestions();
    settle();
    search();
  });
  $("count").addEventListener("change", () => {
    state.count = Number($("count").value);
    state.offset = 0;
    remember(false);
    search();
  });
  makeFilters((name, value) => {
    if (!name) state.sort = value;
    else if (value) state.filters[name] = value;
    else delete state.filters[name];
    state.offset = 0;
    remember(false);
    search();
  });
  $("earlier").addEventListener("click", () => turn(-1));
  $("later").addEventListener("click", () => turn(1));
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
  $("about").textContent = counted(facts.titles, "title");
  $("model").textContent = facts.model ?? "";
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
    startAnew();
    remember(false);
    await search();
  }
}

start();
