// Frequent queries, as sentemb.search.frequent_queries has them.

const LETTERS = [3, 6]; // letters from which on a text may differ in one place, and in two

class FrequentQueries {
  /** `queries` are those that find something, the most frequent first. */
  constructor(queries, folded) {
    this.folded = folded;
    this.queryOf = new Map(queries.map((query) => [folded(query), query]));
  }

  /** At most k queries that begin with a text and continue it. */
  beginningWith(text, k) {
    const begun = this.folded(text);
    const all = begun ? [...this.queryOf.keys()] : [];
    const continuing = all.filter((key) => key.startsWith(begun) && key !== begun);
    return continuing.slice(0, k).map((key) => this.queryOf.get(key));
  }

  /** The query that differs least from a text, in at most two places; or undefined. */
  nearest(text) {
    const key = this.folded(text);
    const letters = [...key];
    let least = LETTERS.filter((enough) => letters.length >= enough).length + 1;
    let nearest;
    for (const [other, query] of this.queryOf) {
      const others = [...other];
      if (Math.abs(others.length - letters.length) >= least || other === key) continue;
      const differing = distance(letters, others);
      if (differing < least) [least, nearest] = [differing, query];
    }
    return nearest;
  }
}

/** The letters to insert, delete, replace or exchange with the next that make `b` of `a`. */
function distance(a, b) {
  let [before, last] = [[], [...b, ""].map((_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(last[j - 1] + (a[i - 1] !== b[j - 1]), last[j] + 1, row[j - 1] + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        row[j] = Math.min(row[j], before[j - 2] + 1);
      }
    }
    [before, last] = [last, row];
  }
  return last[b.length];
}
