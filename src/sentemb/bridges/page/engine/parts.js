// The parts of a score, as sentemb.search.ranking.parts has them. Each scores all titles, and says where
// the score of one title comes from.

class Cosine {
  isEvidence = true;

  /** `rows` is the `Table` of the titles by the document tower. */
  constructor(rows) {
    this.rows = rows;
  }

  scores({ vector }) {
    return vector ? this.rows.products(vector) : new Float64Array(this.rows.length);
  }

  source() {
    return {};
  }
}

/** A title is as good as its best row. */
class Memory {
  isEvidence = true;

  /**
   * The rows of title t are the entries `ends[t - 1]` to `ends[t]`: row `rows[e]` of `table` times
   * `scales[e]`, of a clicked query where `isClicked[e]` is 1.
   */
  constructor(table, ends, rows, scales, isClicked) {
    Object.assign(this, { table, ends, rows, scales, isClicked });
  }

  /** The best entry of each title, -1 without rows, and its score, then 0. */
  best({ vector }) {
    const { ends, rows, scales } = this;
    const found = { values: new Float64Array(ends.length), entries: new Int32Array(ends.length).fill(-1) };
    const products = vector ? this.table.products(vector) : new Float64Array(this.table.length);
    for (let t = 0, e = 0; t < ends.length; t++) {
      for (; e < ends[t]; e++) {
        const value = scales[e] * products[rows[e]];
        if (found.entries[t] < 0 || value > found.values[t]) {
          found.values[t] = value;
          found.entries[t] = e;
        }
      }
    }
    return found;
  }

  scores(asked) {
    return this.best(asked).values;
  }

  /** The page does not have the texts of clicked queries. */
  source(asked, title, text) {
    const { values, entries } = this.best(asked);
    if (entries[title] < 0) return {};
    const isClicked = this.isClicked[entries[title]] === 1;
    const nearest = { text: isClicked ? null : text, value: values[title], is_clicked: isClicked };
    return { nearest };
  }
}

class Bm25 {
  isEvidence = true;

  /**
   * `numberOf` maps words to numbers. Word w is in the entries `ends[w - 1]` to `ends[w]` of
   * `titles`, ascending, and of `weights`: what it adds.
   */
  constructor(n, split, numberOf, { ends, titles, weights }) {
    Object.assign(this, { n, split, numberOf, ends, titles, weights });
  }

  /** Call `add` with each word of a query, each title that has it, and what it adds. */
  read(query, add) {
    for (const word of this.split(query)) {
      const w = this.numberOf.get(word);
      if (w === undefined) continue;
      for (let e = w ? this.ends[w - 1] : 0; e < this.ends[w]; e++) {
        add(word, this.titles[e], this.weights[e]);
      }
    }
  }

  scores({ query }) {
    const sums = new Float64Array(this.n);
    this.read(query, (word, title, weight) => (sums[title] += weight));
    return sums;
  }

  source({ query }, title) {
    const words = new Map();
    this.read(query, (word, other, weight) => {
      if (other === title) words.set(word, (words.get(word) ?? 0) + weight);
    });
    return words.size ? { words: Object.fromEntries(words) } : {};
  }
}

/** A constant for titles without clicks. */
class Unclicked {
  isEvidence = false;

  constructor(values) {
    this.values = values;
  }

  scores() {
    return this.values;
  }

  source() {
    return {};
  }
}

/** Titles with a number for exactly this query, as sentemb.search.ranking.direct_parts has them. */
class OfQuery {
  /**
   * Query k, by the hash `keys[k]` of its key, has the entries `ends[k - 1]` to `ends[k]` of
   * `titles` and of `numbers`.
   */
  constructor(n, keyOf, keys, { ends, titles, numbers }) {
    Object.assign(this, { n, keyOf, ends, titles, numbers });
    this.numberOf = new Map(Array.from(keys, (key, k) => [key, k]));
  }

  /** The place of a query among the keys. */
  place({ query }) {
    return this.numberOf.get(hashOf(this.keyOf(query)));
  }

  /** Its titles, each with its number. */
  of(asked) {
    const k = this.place(asked);
    if (k === undefined) return [];
    const [first, end] = [k ? this.ends[k - 1] : 0, this.ends[k]];
    return Array.from(this.titles.subarray(first, end), (title, e) => [title, this.numbers[first + e]]);
  }

  /** The number of a title, 0 where it has none. */
  ofTitle(asked, title) {
    return this.of(asked).find(([other]) => other === title)?.[1] ?? 0;
  }

  scores(asked) {
    const values = new Float64Array(this.n);
    for (const [title, number] of this.of(asked)) values[title] = this.valueOf(number);
    return values;
  }
}

/** The clicks for exactly this query. */
class Clicks extends OfQuery {
  isEvidence = true;

  /** Query k has `totals[k]` clicks on whatever title. */
  constructor(n, keyOf, keys, lists, totals, kappa) {
    super(n, keyOf, keys, lists);
    Object.assign(this, { totals, kappa });
  }

  /** Whether the log has clicks for a query, on whatever title. */
  knows(asked) {
    return this.place(asked) !== undefined;
  }

  /** All clicks of a query that the log has. */
  total(asked) {
    return this.totals[this.place(asked)];
  }

  valueOf(clicks) {
    return Math.log1p(clicks / this.kappa);
  }

  source(asked, title) {
    return { clicks: this.ofTitle(asked, title) };
  }
}

/** How often titles were looked at for exactly this query. */
class Examined extends OfQuery {
  isEvidence = false;

  valueOf(times) {
    return -Math.log1p(times / HEADER.examinations);
  }

  source(asked, title) {
    return { examined: this.ofTitle(asked, title) };
  }
}

/** Whether a title has all words of a query. */
class Name {
  isEvidence = true;

  /** `wordsOf` splits a text; `titlesOf` maps each word to its titles, ascending. */
  constructor(n, wordsOf, titlesOf) {
    Object.assign(this, { n, wordsOf, titlesOf });
  }

  /** The titles with all words of a query. */
  of({ query }) {
    const lists = [...new Set(this.wordsOf(query))].map((word) => this.titlesOf.get(word) ?? []);
    if (!lists.length) return [];
    const [first, ...others] = lists.sort((x, y) => x.length - y.length);
    const sets = first.length ? others.map((list) => new Set(list)) : [];
    return first.filter((title) => sets.every((set) => set.has(title)));
  }

  scores(asked) {
    const values = new Float64Array(this.n);
    for (const title of this.of(asked)) values[title] = 1;
    return values;
  }

  source() {
    return {};
  }
}

/** The 64-bit FNV-1a hash of a text, as sentemb.text.hashes has it. */
function hashOf(text) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(text)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return BigInt.asIntN(64, hash);
}

/**
 * Whether a query is one that the titles can answer, as sentemb.search.ranking.floor has it. The
 * page knows public words only: any other is one that no title holds.
 */
class Floor {
  /**
   * Of word w of `numberOf`, `holding[w]` titles hold it; `letters` are three letters in a row of
   * these words and `counts` how often.
   */
  constructor({ weights, threshold, titles }, split, numberOf, holding, letters, counts) {
    Object.assign(this, { weights, threshold, titles, split, numberOf, holding });
    this.threes = new Map(letters.map((three, k) => [three, counts[k]]));
    this.pairs = new Map();
    letters.forEach((three, k) => {
      const pair = [...three].slice(0, 2).join("");
      this.pairs.set(pair, (this.pairs.get(pair) ?? 0) + counts[k]);
    });
  }

  /** The mean log probability of the letters of a word, each given the two before. */
  logProbability(word) {
    const marked = ["\x02", "\x02", ...word, "\x03"];
    let sum = 0;
    for (let k = 0; k + 2 < marked.length; k++) {
      const [pair, three] = [marked[k] + marked[k + 1], marked[k] + marked[k + 1] + marked[k + 2]];
      sum += Math.log(((this.threes.get(three) ?? 0) + 0.1) / ((this.pairs.get(pair) ?? 0) + 4));
    }
    return sum / (marked.length - 2);
  }

  /** For a query, and what the memory and BM25, if they count, give its first title. */
  isBelow(query, memory, bm25) {
    const words = this.split(query);
    const n = Math.max(this.titles, 1);
    let features = [0, 0, this.logProbability(query.toLowerCase()), Math.log(0.1 / n), 0];
    if (words.length) {
      const held = words.map((word) => this.holding[this.numberOf.get(word)] ?? 0);
      const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;
      const limit = held.reduce((sum, h) => sum + Math.log(1 + (this.titles - h + 0.5) / (h + 0.5)), 0);
      features = [
        memory,
        bm25 / limit,
        mean(words.map((word) => this.logProbability(word))),
        mean(held.map((h) => Math.log((h + 0.1) / n))),
        mean(held.map((h) => (h > 0 ? 1 : 0))),
      ];
    }
    const sum = features.reduce((total, x, k) => total + this.weights[k + 1] * x, this.weights[0]);
    return sum < this.threshold;
  }
}
