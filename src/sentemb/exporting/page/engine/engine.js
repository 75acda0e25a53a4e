// The engine of a page that searches by itself; sentemb.search_page.page describes what it answers.

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
  const split = splitterOf(SPLITTINGS[HEADER.splitting], sets);
  const vectors = HEADER.vectors
    ? { words: texts("vector words"), table: table("vector numbers", HEADER.vectors) }
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
  return {
    vocabulary,
    towers,
    ids,
    titles,
    place: new Map(ids.map((id, place) => [id, place])),
    vectors: table("vectors", towers.query.encoder.dim),
    empty: new Set(array("empty")),
    bm25: HEADER.bm25 ? openBm25(array, texts, splitterOf(plainWords, sets)) : null,
    memory: HEADER.memory
      ? new Memory(
          HEADER.memory.weight,
          titles.length,
          table("memory vectors", towers.query.encoder.dim),
          array("memory holding"),
          array("memory titles"),
        )
      : null,
  };
}

/** The row of each feature in a table that holds those with a flag; -1 for all others. */
function places(flags) {
  let row = 0;
  return Int32Array.from(flags, (flag) => (flag ? row++ : -1));
}

function openBm25(array, texts, split) {
  const holding = array("bm25 holding");
  const offsets = new Uint32Array(holding.length + 1);
  for (let w = 0; w < holding.length; w++) offsets[w + 1] = offsets[w] + holding[w];
  // Places of titles are stored as steps from one to the next.
  const titles = Uint32Array.from(array("bm25 steps"));
  for (let w = 0; w < holding.length; w++) {
    for (let e = offsets[w] + 1; e < offsets[w + 1]; e++) titles[e] += titles[e - 1];
  }
  const listOf = new Map();
  const lists = array("bm25 lists");
  texts("bm25 words").forEach((word, k) => listOf.set(word, lists[k]));
  const facts = { ...HEADER.bm25, n: HEADER.facts.titles };
  return new Bm25(facts, listOf, split, offsets, titles, array("bm25 counts"));
}

/** The k places with the highest scores, equal scores in the order of the titles. */
function highest(scores, isFindable, k) {
  const best = [];
  for (let place = 0; place < scores.length; place++) {
    if (!isFindable(place)) continue;
    if (best.length === k && scores[place] <= scores[best[k - 1]]) continue;
    let at = best.length === k ? k - 1 : best.length;
    for (; at > 0 && scores[best[at - 1]] < scores[place]; at--) best[at] = best[at - 1];
    best[at] = place;
  }
  return best;
}

function confidenceOf(score) {
  const { intercept, slope } = HEADER.confidence;
  const x = Math.min(Math.max(intercept + slope * score, -FAR), FAR);
  return 1 / (1 + Math.exp(-x));
}

async function search(query, k) {
  const { vocabulary, towers, ids, titles, vectors, empty, bm25, memory } = await engine.ready;
  const words = vocabulary.split(query);
  const vector = towers.query.embed(words);
  const isKnown = vector.some((x) => x !== 0);
  const cosines = isKnown ? vectors.products(vector) : new Float64Array(titles.length);
  const remembered = memory && (isKnown ? memory.scores(vector, cosines) : cosines);
  const scores = cosines.map((cosine) => HEADER.cosine * cosine);
  if (memory) remembered.forEach((own, place) => (scores[place] += memory.weight * own));
  const sums = bm25 && bm25.weight ? bm25.scores(query) : null;
  if (sums) {
    const most = sums.reduce((one, other) => Math.max(one, other), 0) || 1;
    for (let place = 0; place < sums.length; place++) {
      scores[place] += bm25.weight * (sums[place] / most);
    }
  }
  const isNear = (place) => !empty.has(place) || (memory !== null && memory.hasClicks[place] > 0);
  const hasVectors = isKnown && (HEADER.cosine > 0 || memory !== null);
  const isFindable = (place) => (hasVectors && isNear(place)) || (sums !== null && sums[place] > 0);
  const hits = highest(scores, isFindable, k).map((place, rank) => ({
    id: ids[place],
    title: titles[place],
    score: scores[place],
    cosine: cosines[place],
    bm25: sums && sums[place],
    memory: remembered && remembered[place],
    confidence: rank === 0 && HEADER.confidence ? confidenceOf(scores[place]) : null,
  }));
  return { query, unknown: vocabulary.unknown(words), hits };
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
  const found = { score };
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

const engine = { facts: HEADER.facts, ready: open(), search, explain, gates };
globalThis.engine = engine;
