// BM25 from an inverted index, as sentemb.baselines.inverted_index computes it.

class Bm25 {
  /**
   * `facts` is {n, k1, b, weight}. List w holds the entries `offsets[w]` to `offsets[w + 1]` of
   * `titles` and `counts`; `listOf` maps a word to its list.
   */
  constructor(facts, listOf, split, offsets, titles, counts) {
    Object.assign(this, { ...facts, listOf, split, offsets, titles });
    this.weights = this.weigh(counts);
  }

  weigh(counts) {
    const { n, k1, b, offsets, titles } = this;
    const lengths = new Float64Array(n);
    let total = 0;
    for (let e = 0; e < counts.length; e++) {
      lengths[titles[e]] += counts[e];
      total += counts[e];
    }
    const mean = (total || 1) / Math.max(n, 1);
    const weights = new Float32Array(counts.length);
    for (let w = 0; w + 1 < offsets.length; w++) {
      const holding = offsets[w + 1] - offsets[w];
      const idf = Math.log(1 + (n - holding + 0.5) / (holding + 0.5));
      for (let e = offsets[w]; e < offsets[w + 1]; e++) {
        const saturation = k1 * (1 - b + (b * lengths[titles[e]]) / mean);
        weights[e] = (idf * counts[e]) / (counts[e] + saturation);
      }
    }
    return weights;
  }

  /** The score of every title, 0 without a common word. */
  scores(query) {
    const sums = new Float32Array(this.n);
    for (const word of this.split(query)) {
      const w = this.listOf.get(word);
      if (w === undefined) continue;
      for (let e = this.offsets[w]; e < this.offsets[w + 1]; e++) {
        sums[this.titles[e]] += this.weights[e];
      }
    }
    return sums;
  }
}
