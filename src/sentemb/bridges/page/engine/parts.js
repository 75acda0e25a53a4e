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

  /** For a query, and what the memory and BM25 give its first title. */
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
