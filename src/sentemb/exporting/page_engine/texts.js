// Texts to words and features, as sentemb.text does it in Python.

// What Python's str.split takes for white space; \s of JavaScript is something else.
const WHITE_SPACE =
  /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;
const RUN = /[\p{L}\p{N}_]+/gu; // \w of Python: without marks
const BEFORE = "\"'`([{<\u00ab\u2039\u201c\u201e\u2018\u201a\u00bf\u00a1";
const AFTER = "\"'`)]}>\u00bb\u203a\u201d\u201c\u2019\u2018.,;:!?\u2026";
const HIDDEN = "\ufffe"; // a code point that will never be a character

const splitWords = (text) => text.toLowerCase().split(WHITE_SPACE).filter(Boolean);
const plainWords = (text) => text.toLowerCase().match(RUN) || [];
const bareWords = (text) => splitWords(text.normalize("NFC")).map(withoutEdges);

function withoutEdges(word) {
  let [first, end] = [0, word.length];
  while (first < end && BEFORE.includes(word[first])) first++;
  while (end > first && AFTER.includes(word[end - 1])) end--;
  return word.slice(first, end) || word;
}

const SPLITTINGS = { "white-space": splitWords, words: plainWords, bare: bareWords };

/**
 * A function that splits as the Python does that wrote the page.
 *
 * A browser may know a newer Unicode than that Python and change letters which Python left alone.
 * Characters that Python did not know are hidden meanwhile.
 *
 * `known` holds code points in ascending order, at which characters that Python knows begin and
 * end in turn.
 */
function splitterOf(split, known) {
  const isKnown = (letter) => {
    const code = letter.codePointAt(0);
    let [low, high] = [0, known.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (known[middle] <= code) low = middle + 1;
      else high = middle;
    }
    return low % 2 === 1;
  };
  return (text) => {
    const hidden = [];
    const visible = text.replace(/[^\0-\x7f]/gu, (letter) => {
      if (isKnown(letter)) return letter;
      hidden.push(letter);
      return HIDDEN;
    });
    const words = split(visible);
    // A splitting keeps the order, and keeps such characters or drops all of them.
    return hidden.length
      ? words.map((word) => word.replaceAll(HIDDEN, () => hidden.shift()))
      : words;
  };
}

/** The letter trigrams of #word#, by code points. */
function letterTrigrams(word) {
  const letters = [...`#${word}#`];
  return letters.slice(2).map((last, k) => letters[k] + letters[k + 1] + last);
}

class Vocabulary {
  /** Features are numbered as in Python: trigrams, then words. */
  constructor(trigrams, words, split) {
    this.split = split;
    this.trigrams = new Map(trigrams.map((trigram, id) => [trigram, id]));
    this.words = new Map(words.map((word, k) => [word, trigrams.length + k]));
  }

  /** The known features of a word, repeats included. */
  features(word) {
    const found = [];
    if (this.trigrams.size) {
      for (const trigram of letterTrigrams(word)) {
        const id = this.trigrams.get(trigram);
        if (id !== undefined) found.push(id);
      }
    }
    const id = this.words.get(word);
    if (id !== undefined) found.push(id);
    return found;
  }

  /** The distinct words of which no feature is known. */
  unknown(words) {
    return [...new Set(words)].filter((word) => !this.features(word).length);
  }
}
