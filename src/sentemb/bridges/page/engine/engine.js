// The engine of a page that searches by itself; sentemb.bridges.page.search_page describes what it answers.

const HEADER = JSON.parse(document.getElementById("header").textContent);
const PIECE = 5 << 16; // characters that are decoded at a time: each 5 are 4 bytes in base 85
const DIGIT = new Uint8Array(128); // what each character stands for
[...HEADER.alphabet].forEach((letter, digit) => (DIGIT[letter.charCodeAt(0)] = digit));
const SLICE = 30; // milliseconds of work before the page may draw
const DIGITS = 1000; // gates are rounded to this part of 1
const FAR = 700; // as in sentemb.search.confidence

/** A function to await in a long job: it lets the page draw when that is due. */
function breather(signal) {
  let start = performance.now();
  return async () => {
    if (performance.now() - start < SLICE) return;
    await new Promise((done) => setTimeout(done));
    signal?.throwIfAborted();
    start = performance.now();
  };
}

/** The bytes of some characters in base 85, each 4 of them the highest first. */
function decode(text) {
  const bytes = new Uint8Array((text.length / 5) * 4);
  for (let at = 0, k = 0; at < text.length; k += 4) {
    let number = 0;
    for (let j = 0; j < 5; j++) number = number * 85 + DIGIT[text.charCodeAt(at++)];
    bytes[k] = number >>> 24;
    bytes[k + 1] = number >>> 16;
    bytes[k + 2] = number >>> 8;
    bytes[k + 3] = number;
  }
  return bytes;
}

/** The bytes that the page holds as gzip in base 85. */
async function unpack() {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser cannot decompress the model; use one of 2023 or later");
  }
  const packed = document.getElementById("packed");
  const text = packed.textContent;
  packed.remove();
  const breathe = breather();
  const stream = new DecompressionStream("gzip");
  const writer = stream.writable.getWriter();
  const write = async () => {
    for (let at = 0; at < text.length; at += PIECE) {
      const bytes = decode(text.slice(at, at + PIECE));
      const end = HEADER.packed - (at / 5) * 4; // what follows fills up the last 4 bytes
      await writer.write(bytes.subarray(0, end));
      await breathe();
    }
    await writer.close();
  };
  const whole = new Uint8Array(HEADER.bytes);
  const read = async () => {
    let at = 0;
    for (const reader = stream.readable.getReader(); ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      whole.set(value, at);
      at += value.length;
    }
  };
  await Promise.all([write(), read()]);
  return whole.buffer;
}

/** Everything that a search needs, from the arrays of the page. */
async function open() {
  const buffer = await unpack();
  const breathe = breather();
  const array = (name) => {
    const { type, at, length } = HEADER.arrays[name];
    return new globalThis[type](buffer, at, length);
  };
  const texts = (name) => {
    const joined = new TextDecoder("utf-8", { ignoreBOM: true }).decode(array(name));
    return joined ? joined.split("\n") : [];
  };
  const table = (name, width) => {
    const scales = `${name} scales` in HEADER.arrays ? array(`${name} scales`) : null;
    return new Table(array(name), scales, width);
  };
  const sets = { known: array("known"), cased: array("cased"), ignored: array("ignored") };
  const splittings = splittingsOf(texts("signs"));
  const split = splitterOf(splittings[HEADER.splitting], sets);
  const vectors = HEADER.vectors
    ? {
        words: texts("vector words"),
        table: table("vector numbers", HEADER.vectors),
        withoutEdges: splittings.withoutEdges,
      }
    : null;
  const vocabulary = new Vocabulary(texts("trigrams"), texts("words"), split, vectors);
  await breathe();
  const towers = {};
  for (const side of ["query", "document"]) {
    const own = HEADER.shared ? "query" : side;
    const encoder = encoderOf(HEADER.encoder, (name) => array(`${own} ${name}`));
    towers[side] = new Tower(encoder, vocabulary, places(array(`${own} rows`)), table(`${own} table`, encoder.width));
    await breathe();
  }
  const [ids, titles] = [texts("ids"), texts("titles")];
  await breathe();
  const fields = Object.fromEntries(Object.keys(HEADER.facts.fields).map((name) => [name, fieldValues(array(`field ${name}`))]));
  const titlesOf = new Map();
  for (const [place, title] of titles.entries()) {
    const searched = HEADER.search_fields.map((name) => fields[name][place] ?? "");
    for (const word of new Set(splittings.foldedWords([title, ...searched].join(" ")))) {
      if (!titlesOf.has(word)) titlesOf.set(word, []);
      titlesOf.get(word).push(place);
    }
    await breathe();
  }
  const { dim } = towers.query.encoder;
  return {
    vocabulary,
    towers,
    ids,
    titles,
    fields,
    frequent: new FrequentQueries(texts("queries"), splittings.folded),
    place: new Map(ids.map((id, place) => [id, place])),
    empty: new Set(array("empty")),
    splittings,
    ...openParts(array, texts, (name) => table(name, dim), splittings, splitterOf(splittings[HEADER.searched], sets), titlesOf),
  };
}

/** One value per title, from JSON. */
function fieldValues(bytes) {
  return JSON.parse(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
}

/** The row of each feature in a table that holds those with a flag; -1 for all others. */
function places(flags) {
  let row = 0;
  return Int32Array.from(flags, (flag) => (flag ? row++ : -1));
}

/** The floor, whether a query has a word without numbers, and the parts of the score with their weights in the order in which they are added. */
function openParts(array, texts, table, { exactKey, foldedWords }, split, titlesOf) {
  const makers = {
    cosine: () => new Cosine(table("vectors")),
    memory: () =>
      new Memory(
        table("memory codes"),
        ends("memory"),
        array("memory rows"),
        array("memory scales"),
        array("memory is clicked"),
      ),
    bm25: () => bm25("bm25"),
    clicked_bm25: () => bm25("clicked_bm25"),
    unclicked: () => new Unclicked(array("unclicked")),
    clicks: () => new Clicks(...ofQuery("clicks"), array("clicks totals"), HEADER.kappa),
    examined: () => new Examined(...ofQuery("examined")),
    name: () => new Name(HEADER.facts.titles, foldedWords, titlesOf),
  };
  const ends = (name) => {
    let end = 0;
    return Uint32Array.from(array(`${name} lengths`), (length) => (end += length));
  };
  const ofQuery = (name) => [
    HEADER.facts.titles,
    exactKey,
    array(`${name} keys`),
    { ends: ends(name), titles: array(`${name} titles`), numbers: array(`${name} numbers`) },
  ];
  const numberOf = new Map();
  if ("words of bm25" in HEADER.arrays) {
    const numbers = array("numbers of words");
    texts("words of bm25").forEach((word, k) => numberOf.set(word, numbers[k]));
  }
  const bm25 = (name) => {
    const own = ends(name);
    // Places of titles are stored as steps from one to the next.
    const titles = Uint32Array.from(array(`${name} steps`));
    own.forEach((end, w) => {
      for (let e = (w ? own[w - 1] : 0) + 1; e < end; e++) titles[e] += titles[e - 1];
    });
    const lists = { ends: own, titles, weights: array(`${name} weights`) };
    return new Bm25(HEADER.facts.titles, split, numberOf, lists);
  };
  const floor = HEADER.floor
    ? new Floor(HEADER.floor, split, numberOf, array("floor holding"), texts("floor letters"), array("floor counts"))
    : null;
  // With stems, all words of a stem have its number.
  const numbered = (text) => split(text).map((word) => numberOf.get(word) ?? word);
  const hasUnknown = (query) => numberOf.size > 0 && split(query).some((word) => !numberOf.has(word));
  return { floor, hasUnknown, numbered, parts: HEADER.facts.parts.map(({ part, weight }) => ({ part, weight, own: makers[part]() })) };
}

/** The k places with the highest scores, equal scores in the order of the titles. */
function highest(scores, isFound, k) {
  const best = [];
  for (let place = 0; place < scores.length; place++) {
    if (!isFound[place]) continue;
    if (best.length === k && scores[place] <= scores[best[k - 1]]) continue;
    let at = best.length === k ? k - 1 : best.length;
    for (; at > 0 && scores[best[at - 1]] < scores[place]; at--) best[at] = best[at - 1];
    best[at] = place;
  }
  return best;
}

/** The confidence of a first title; null where it says no more than a constant. */
function confidenceOf(score, isTyped) {
  const fitted = HEADER.confidence?.[isTyped ? "typed" : "never"];
  if (!fitted) return null;
  const x = Math.min(Math.max(fitted.intercept + fitted.slope * score, -FAR), FAR);
  return 1 / (1 + Math.exp(-x));
}

/** A query as words and as a vector, which is zero if the model knows none of them. */
function read(query, { vocabulary, towers }) {
  const words = vocabulary.split(query);
  const unknown = vocabulary.unknown(words);
  const isKnown = words.some((word) => !unknown.includes(word));
  return { query, unknown, isKnown, vector: isKnown ? towers.query.embed(words) : null };
}

/** Whether a title passes a filter: `>=price` and `<=price` limit a number, others give the value. */
function isWithin(fields, place, name, value) {
  const sign = name.match(/^[<>]=/)?.[0];
  const field = fields[sign ? name.slice(2) : name]?.[place] ?? null;
  if (field === null) return false;
  if (!sign) return String(field) === value;
  return sign === ">=" ? field >= Number(value) : field <= Number(value);
}

/** Places by a field, equal values as they are and none at the end; `-price` from the highest. */
function ordered(best, fields, sort) {
  const sign = sort.startsWith("-") ? -1 : 1;
  const values = fields[sort.replace(/^-/, "")];
  if (!values) return best;
  const compared = (x, y) => (values[x] > values[y]) - (values[x] < values[y]);
  const [there, none] = [true, false].map((has) => best.filter((place) => (values[place] !== null) === has));
  return [...there.sort((x, y) => sign * compared(x, y)), ...none];
}

/** The values of each facet among some places with their counts, the most frequent first. */
function counted(matches, fields) {
  const facets = HEADER.facts.facets.map((name) => {
    const counts = new Map();
    for (const place of matches) {
      const value = fields[name][place];
      if (value !== null) counts.set(String(value), (counts.get(String(value)) ?? 0) + 1);
    }
    return [name, facetsInOrder(counts).slice(0, HEADER.matches.values)];
  });
  return Object.fromEntries(facets);
}

/** The best places for sorting and facets: those with a share of the highest score. */
function matching(best, scores) {
  const highest = scores[best[0]];
  const least = highest - (1 - HEADER.matches.least_share) * Math.abs(highest);
  return best.slice(0, HEADER.matches.most).filter((place) => scores[place] >= least);
}

async function search(query, k, signal, { filters = {}, sort = "", offset = 0 } = {}) {
  const { ids, titles, fields, place: placeOf, empty, parts, floor, ...model } = await engine.ready;
  const { frequent, hasUnknown } = model;
  const asked = read(query, model);
  const values = valuesOf(parts, asked);
  const scores = new Float64Array(titles.length);
  const add = ({ part, weight }) => {
    for (let place = 0; place < scores.length; place++) scores[place] += weight * values[part][place];
  };
  parts.filter(({ own }) => own.isEvidence).forEach(add);
  // Titles and queries of which the model knows nothing are found only where there is evidence.
  const isFound = Array.from(scores, (score, place) => score !== 0 || (asked.isKnown && !empty.has(place)));
  parts.filter(({ own }) => !own.isEvidence).forEach(add);
  const passes = (place) => Object.entries(filters).every((filter) => isWithin(fields, place, ...filter));
  const isLeft = titles.map((_, place) => passes(place));
  isFound.forEach((is, place) => (isFound[place] = is && isLeft[place]));
  const hasFacets = HEADER.facts.facets.length > 0 || sort;
  const best = highest(scores, isFound, hasFacets ? Math.max(offset + k, HEADER.matches.most) : offset + k);
  const isNone = titles.length > 0 && !isLeft.includes(true);
  let no_match = isNone ? HEADER.no_match.product : reasonFor(floor, query, values, best, isAnswered(parts, asked, isLeft));
  const matches = no_match ? [] : hasFacets ? matching(best, scores) : best;
  const facets = counted(matches, fields);
  let shown = sort ? ordered(matches, fields, sort) : no_match ? [] : best;
  const name = query.replace(/^[\s\x1c-\x1f\x85]+|[\s\x1c-\x1f\x85]+$/g, ""); // as in sentemb.search.snapshot
  const named = placeOf.get([name, name.toUpperCase(), name.toLowerCase()].find((id) => placeOf.has(id)));
  if (named !== undefined && isLeft[named]) {
    shown = [named, ...shown.filter((place) => place !== named)];
    no_match = null;
  }
  const isSure = named !== undefined || !(no_match || hasUnknown(query));
  const unknown = named === undefined ? asked.unknown : []; // an id is no word
  const answer = { query, unknown, facets, did_you_mean: isSure ? undefined : frequent.nearest(query) };
  const isTyped = parts.find(({ part }) => part === "clicks")?.own.knows(asked) ?? false;
  const marksOf = markerOf(query, model.splittings, model.numbered);
  const hitOf = (place, rank) => ({
    id: ids[place],
    title: titles[place],
    marks: marksOf(titles[place]),
    score: scores[place],
    parts: Object.fromEntries(
      parts.map(({ part, weight }) => {
        const value = values[part][place];
        return [part, { value, added: weight * value }];
      }),
    ),
    confidence: offset + rank === 0 && place === best[0] ? confidenceOf(scores[place], isTyped) : null,
    by_id: offset + rank === 0 && named !== undefined && isLeft[named],
    fields: Object.fromEntries(Object.entries(fields).map(([name, column]) => [name, column[place]])),
  });
  if (!no_match) return { ...answer, hits: shown.slice(offset, offset + k).map(hitOf) };
  const nearest = best.slice(offset, offset + k).map(hitOf);
  return { ...answer, hits: [], no_match, nearest: nearest.map((hit) => ({ ...hit, confidence: null })) };
}

/**
 * What each part scores, with the rules of sentemb.search.ranking.engine for queries with clicks:
 * names count as far as most clicks are on a title, and BM25 of clicked queries does not count
 * against a title that was clicked.
 */
function valuesOf(parts, asked) {
  const values = Object.fromEntries(parts.map(({ part, own }) => [part, own.scores(asked)]));
  const clicks = parts.find(({ part }) => part === "clicks")?.own;
  if (!clicks?.knows(asked)) return values;
  const names = values.name;
  if (names) {
    values.name = new Float64Array(names.length);
    const total = clicks.total(asked);
    for (const [title, count] of clicks.of(asked)) {
      values.name[title] = names[title] * Math.max((2 * count) / total - 1, 0);
    }
  }
  if (parts.some(({ part, weight }) => part === "clicked_bm25" && weight < 0)) {
    for (const [title] of clicks.of(asked)) values.clicked_bm25[title] = 0;
  }
  return values;
}

/** Whether a title that is left has clicks for the query, or all its words. */
function isAnswered(parts, asked, isLeft) {
  const own = (name) => parts.find(({ part }) => part === name)?.own.of(asked) ?? [];
  return own("clicks").some(([title]) => isLeft[title]) || own("name").some((title) => isLeft[title]);
}

/** Why a query has no answer; null if it has one, which a rule may know. */
function reasonFor(floor, query, { memory, bm25 }, best, isKnown) {
  if (!best.length) return HEADER.no_match.nothing;
  const isBelow = !isKnown && floor?.isBelow(query, memory?.[best[0]] ?? 0, bm25?.[best[0]] ?? 0);
  return isBelow ? HEADER.no_match.below : null;
}

/** What each part adds to the score of a title, and where that comes from. */
async function sharesOf(query, id) {
  const { place, titles, parts, ...model } = await engine.ready;
  const [asked, title] = [read(query, model), place.get(id)];
  const values = valuesOf(parts, asked);
  const shares = parts.map(({ part, weight, own }) => {
    const value = values[part][title];
    const share = { part, weight, value, added: weight * value };
    // What does not count has no source either.
    return part === "clicked_bm25" && !value ? share : { ...share, ...own.source(asked, title, titles[title]) };
  });
  return { score: shares.reduce((sum, { added }) => sum + added, 0), parts: shares };
}

/** The words of the query and of a title. */
async function pairOf(query, id) {
  const { vocabulary, towers, titles, place } = await engine.ready;
  if (!place.has(id)) throw new Error(`there is no title with the id ${id}`);
  const title = titles[place.get(id)];
  const words = { query: vocabulary.split(query), title: vocabulary.split(title) };
  if (!words.query.length || !words.title.length) {
    throw new Error("a text without words cannot be explained");
  }
  return { vocabulary, towers: { query: towers.query, title: towers.document }, title, words };
}

const dot = (x, y) => x.reduce((sum, value, j) => sum + value * y[j], 0);

async function explain(query, id, signal) {
  const { vocabulary, towers, title, words } = await pairOf(query, id);
  const breathe = breather(signal);
  const vectors = { query: towers.query.embed(words.query), title: towers.title.embed(words.title) };
  const score = dot(vectors.query, vectors.title);
  // The file has no numbers for a title without a word but those of the towers.
  const found = { score, effects_of: "cosine", ranker: await sharesOf(query, id) };
  for (const [side, other, text] of [
    ["query", "title", query],
    ["title", "query", title],
  ]) {
    const effects = [];
    for (let t = 0; t < words[side].length; t++) {
      const rest = words[side].toSpliced(t, 1);
      const without = dot(towers[side].embed(rest), vectors[other]);
      effects.push({ word: words[side][t], effect: score - without });
      await breathe();
    }
    found[side] = { text, words: effects, unknown: vocabulary.unknown(words[side]) };
  }
  return found;
}

async function gates(query, id) {
  if (!HEADER.facts.gates) return null;
  const { towers, words } = await pairOf(query, id);
  const rounded = (row) => row.map((x) => Math.round(x * DIGITS) / DIGITS);
  const found = {};
  for (const side of ["query", "title"]) {
    const trace = Object.entries(towers[side].trace(words[side]));
    const own = Object.fromEntries(trace.map(([name, rows]) => [name, rows.map(rounded)]));
    found[side] = { words: words[side], gates: own };
  }
  return found;
}

async function suggest(query) {
  return (await engine.ready).frequent.beginningWith(query, HEADER.suggestions);
}

const engine = { facts: HEADER.facts, ready: open(), search, suggest, explain, gates };
globalThis.engine = engine;
