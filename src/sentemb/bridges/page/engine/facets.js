// The order of the values of a facet, the same in every engine and in sentemb.search.product_fields.

/** Values with their counts: the most frequent first, equal counts by the numbers of their letters. */
function facetsInOrder(counts) {
  return [...counts].sort(([x, n], [y, m]) => m - n || byLetters(x, y));
}

/** Which of two texts comes first by letters; JavaScript itself compares halves of surrogate pairs. */
function byLetters(x, y) {
  const [first, second] = [x, y].map((text) => Array.from(text, (letter) => letter.codePointAt(0)));
  const at = first.findIndex((code, k) => code !== second[k]);
  return at < 0 ? first.length - second.length : first[at] - (second[at] ?? -1);
}
