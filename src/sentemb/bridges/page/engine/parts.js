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
