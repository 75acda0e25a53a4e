// Texts to words and features, as sentemb.text does it in Python.

// What Python's str.split takes for white space; \s of JavaScript is something else.
const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const WHITE_SPACE = new RegExp(`[${SPACE}]+`, "u");
const SOLID = `[^${SPACE}]`;
const RUN = /[\p{L}\p{N}_]+/gu; // \w of Python: without marks
const HIDDEN = "\ufffe"; // a code point that will never be a character
const JOINER = "\u2060"; // between two letters that are one word


/**
 * The ways to split a text into words, as functions of a text and of lower-casing.
 *
 * `signs` are those of sentemb.text.words, as ranges of regular expressions and, the last two, as
 * letters: one Unicode, that of the Python that wrote the page, decides about them.
 */
function splittingsOf(signs) {
  const [unspaced, separators, unchanged, silent, marks, before, after] = signs;
  const pattern = (source) => new RegExp(source, "gu");
  const changedRun = pattern(`[^${unchanged}]+`);
  const silentSign = pattern(`[${silent}]`);
  const wholeLetter = `[${unspaced}](?:\u17d2[${unspaced}]|[${marks}])*`;
  const letter = pattern(wholeLetter);
  const joined = new RegExp(`(?<!${SOLID})(${wholeLetter})${JOINER}(${wholeLetter})(?!${SOLID})`, "u");
  const paired = `[${unspaced}][${unspaced}${marks}]*`;
  const part = pattern(`${paired}|[^${unspaced}${separators}]+`);
  const searched = pattern(`${paired}|(?:(?![${unspaced}])[\\p{L}\\p{N}_${marks}])+`);
  const beginsUnspaced = new RegExp(`^[${unspaced}]`, "u");

  const composed = (text) =>
    text
      .replaceAll("\u200b", " ")
      .replace(silentSign, "")
      .normalize("NFC")
      .replace(changedRun, (run) => run.normalize("NFKC"))
      .replace(/[\u0130\u0131]/gu, "i");
  const withMarks = `[${marks}${silent}]`;
  const piece = pattern(`[${unspaced}](?:\u17d2[${unspaced}]|${withMarks})*|(?:(?![${unspaced}])[\\p{L}\\p{N}_]|${withMarks})+`);
  const pairs = (run) => {
    if (!beginsUnspaced.test(run)) return [run];
    const letters = run.match(letter);
    return letters.length > 1 ? letters.slice(1).map((last, k) => letters[k] + last) : letters;
  };
  const lettersAndPairs = (run) => {
    if (!beginsUnspaced.test(run)) return [run];
    const letters = run.match(letter);
    return letters.flatMap((first, k) => (k + 1 < letters.length ? [first, first + letters[k + 1]] : [first]));
  };
  const withoutSigns = (word) => {
    let [first, end] = [0, word.length];
    while (first < end && before.includes(word[first])) first++;
    while (end > first && after.includes(word[end - 1])) end--;
    return word.slice(first, end);
  };
  const partsOf = (word, cut) => {
    const parts = (word.match(part) || [])
      .flatMap((run) => (beginsUnspaced.test(run) ? cut(run) : [withoutSigns(run)]))
      .filter(Boolean);
    return parts.length ? parts : [word];
  };
  const withoutMarks = (text) =>
    text
      .normalize("NFKD")
      .toUpperCase()
      .toLowerCase()
      .replaceAll("ς", "σ")
      .normalize("NFKD")
      .replace(/[\p{M}\p{Cf}]/gu, "");
  const whiteSpace = (text, lower) => lower(text).split(WHITE_SPACE).filter(Boolean);
  const foldedWords = (text) =>
    (withoutMarks(composed(text)).replaceAll("_", " ").match(searched) || []).flatMap(pairs);
  const bare = (cut) => (text, lower) => {
    const words = whiteSpace(composed(text), lower).flatMap((word) => partsOf(word, cut));
    return words.length ? words : text.split(WHITE_SPACE).filter(Boolean);
  };
  const runs = (cut) => (text, lower) => (lower(composed(text)).match(searched) || []).flatMap(cut);
  const eachJoined = (read) => (text, lower) => {
    // Of every three, the last two are the letters of a word.
    return text.split(joined).flatMap((part, k, parts) => {
      if (k % 3 === 0) return read(part, lower);
      return k % 3 === 1 ? [part + parts[k + 1]] : [];
    });
  };
  return {
    "white-space": whiteSpace,
    words: (text, lower) => lower(text).match(RUN) || [],
    bare: bare(pairs),
    "bare-letters": eachJoined(bare(lettersAndPairs)),
    searched: eachJoined(runs(lettersAndPairs)),
    searchedPairs: runs(pairs),
    /** The runs of letters of a text, and the single letters of a script without blanks. */
    pieces: (text) => [...text.matchAll(piece)],
    withoutEdges: (word) => withoutSigns(word) || word,
    foldedWords,
    folded: (text) => foldedWords(text).join(" "),
    exactKey: (text) => bare(pairs)(withoutMarks(composed(text)), (letters) => letters).join(" "),
  };
}

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

/** A function that finds the places of a title that a query has, as sentemb.retrieval.marked_words does. */
function markerOf(query, { pieces, foldedWords }, words) {
  const [asked, asFolded] = [new Set(words(query)), new Set(foldedWords(query))];
  const isAsked = (...texts) => {
    const without = (split) => {
      const alone = new Set(texts.length > 1 ? texts.flatMap((text) => split(text)) : []);
      return split(texts.join("")).filter((word) => !alone.has(word));
    };
    const folded = without(foldedWords);
    return without(words).some((word) => asked.has(word)) || (folded.length > 0 && folded.every((word) => asFolded.has(word)));
  };
  return (title) => {
    const found = pieces(title).map(({ 0: text, index }) => ({ text, index, end: index + text.length }));
    const marked = found.map(({ text }) => isAsked(text));
    found.slice(1).forEach((piece, k) => {
      if (found[k].end === piece.index && isAsked(found[k].text, piece.text)) marked[k] = marked[k + 1] = true;
    });
    const places = [];
    for (const { index, end } of found.filter((_, k) => marked[k])) {
      if (places.at(-1)?.[1] === index) places.at(-1)[1] = end;
      else places.push([index, end]);
    }
    const inCodePoints = (place) => [...title.slice(0, place)].length;
    return places.map((place) => place.map(inCodePoints));
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
   * `vectors` has the words with a vector, the `Table` of these, and what drops the signs around
   * a word; or it is null.
   */
  constructor(trigrams, words, split, vectors) {
    this.split = split;
    this.firstNumber = trigrams.length + words.length;
    this.numbers = vectors?.table;
    this.withoutEdges = vectors?.withoutEdges;
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
    const place = this.places.get(word) ?? this.places.get(this.withoutEdges?.(word));
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
