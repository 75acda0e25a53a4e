// Texts to words and features, as sentemb.text does it in Python.

// What Python's str.split takes for white space; \s of JavaScript is something else.
const WHITE_SPACE =
  /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/u;
const RUN = /[\p{L}\p{N}_]+/gu; // \w of Python: without marks
const BEFORE = "\"'`([{<\u00ab\u2039\u201c\u201e\u2018\u201a\u00bf\u00a1";
const AFTER = "\"'`)]}>\u00bb\u203a\u201d\u201c\u2019\u2018.,;:!?\u2026";
const HIDDEN = "\ufffe"; // a code point that will never be a character

const splitWords = (text, lower) => lower(text).split(WHITE_SPACE).filter(Boolean);
const plainWords = (text, lower) => lower(text).match(RUN) || [];
const bareWords = (text, lower) => splitWords(text.normalize("NFC"), lower).map(withoutEdges);

function withoutEdges(word) {
  let [first, end] = [0, word.length];
  while (first < end && BEFORE.includes(word[first])) first++;
  while (end > first && AFTER.includes(word[end - 1])) end--;
  return word.slice(first, end) || word;
}

const SPLITTINGS = { "white-space": splitWords, words: plainWords, bare: bareWords };

/** Whether a character is between two of `edges`, where a set of code points begins and ends. */
function isIn(edges, letter) {
  const code = letter.codePointAt(0);
  let [low, high] = [0, edges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges[middle] <= code) low = middle + 1;
    else high = middle;
  }
  return low % 2 === 1;
}

/**
 * A function that splits as the Python does that wrote the page.
 *
 * A browser may know another Unicode than that Python. Characters that Python did not know are
 * hidden meanwhile, since a browser may change them; and which characters make a sigma final is
 * taken from Python. `sets` has the edges of three sets of code points: those that Python knows,
 * cased letters, and what is ignored in the search for one.
 */
function splitterOf(split, { known, cased, ignored }) {
  const lower = (text) => {
    if (!text.includes("Σ")) return text.toLowerCase();
    const letters = [...text];
    const next = (k, step) => {
      for (k += step; k in letters && isIn(ignored, letters[k]); k += step);
      return k in letters && isIn(cased, letters[k]);
    };
    const written = letters.map((letter, k) => {
      if (letter !== "Σ") return letter;
      return next(k, -1) && !next(k, 1) ? "ς" : "σ";
    });
    return written.join("").toLowerCase();
  };
  return (text) => {
    const hidden = [];
    const visible = text.replace(/[^\0-\x7f]/gu, (letter) => {
      if (isIn(known, letter)) return letter;
      hidden.push(letter);
      return HIDDEN;
    });
    const words = split(visible, lower);
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
  /**
   * Features are numbered as in Python: trigrams, then words, then the numbers of word vectors.
   * `vectors` has the words with a vector and the `Table` of these, or is null.
   */
  constructor(trigrams, words, split, vectors) {
    this.split = split;
    this.firstNumber = trigrams.length + words.length;
    this.numbers = vectors?.table;
    this.places = new Map(vectors?.words.map((word, place) => [word, place]));
    this.trigrams = new Map(trigrams.map((trigram, id) => [trigram, id]));
    this.words = new Map(words.map((word, k) => [word, trigrams.length + k]));
  }

  /** The known trigrams and words of a word, repeats included. */
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

  /** The vector of a word, or else of the word without the signs around it; or null. */
  vectorOf(word) {
    const place = this.places.get(word) ?? this.places.get(withoutEdges(word));
    if (place === undefined) return null;
    const vector = new Float64Array(this.numbers.width);
    this.numbers.addRow(place, vector);
    return vector;
  }

  /** The distinct words of which no feature is known. */
  unknown(words) {
    return [...new Set(words)].filter((word) => !this.features(word).length && !this.vectorOf(word));
  }
}
