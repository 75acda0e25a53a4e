// The memory of the log, as sentemb.ranking.memory computes it.

class Memory {
  /** Clicked query c was clicked for `holding[c]` of `titles`, which are places among `n`. */
  constructor(weight, n, vectors, holding, titles) {
    Object.assign(this, { weight, vectors, holding, titles });
    this.hasClicks = new Uint8Array(n);
    for (const place of titles) this.hasClicks[place] = 1;
  }

  /** For every title the larger of its cosine and that of its nearest clicked query. */
  scores(vector, cosines) {
    const best = Float64Array.from(cosines);
    const products = this.vectors.products(vector);
    for (let c = 0, e = 0; c < products.length; c++) {
      for (const end = e + this.holding[c]; e < end; e++) {
        const place = this.titles[e];
        if (products[c] > best[place]) best[place] = products[c];
      }
    }
    return best;
  }
}
