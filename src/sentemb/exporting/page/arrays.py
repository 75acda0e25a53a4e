"""What a search page holds of an index: arrays one after the other, and where each of them is.

engine/engine.js reads them.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.inverted_index import Contents
from sentemb.baselines.words_and_stems import Stems
from sentemb.exporting.characters import cased_and_ignored
from sentemb.exporting.page.public_words import WITHHELD, PublicWords
from sentemb.exporting.page.stem_forms import forms_of_stems
from sentemb.models.int8_rows import LARGEST, Int8Rows
from sentemb.models.towers import Towers
from sentemb.text.words import plain_words

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.search.lexical import Lexical
    from sentemb.search.memory import Memory

# Typed arrays of JavaScript begin at multiples of the size of their numbers.
_ALIGNED = 8
_TYPES = {
    np.dtype("uint8"): "Uint8Array",
    np.dtype("int8"): "Int8Array",
    np.dtype("<u2"): "Uint16Array",
    np.dtype("<u4"): "Uint32Array",
    np.dtype("<f4"): "Float32Array",
    np.dtype("<f8"): "Float64Array",
}
# No row of the input weights is stored in smaller steps than the median row times this. Rows are
# added up, so the steps of small rows may be those of larger ones, and gzip packs small integers
# well.
_COARSEST = 2.0


class Arrays:
    """Named arrays in one string of bytes, little-endian.

    Attributes
    ----------
    places : dict
        The type in JavaScript, the first byte and the length of each array by name.
    """

    def __init__(self) -> None:
        self.places: dict[str, dict[str, Any]] = {}
        self._content = bytearray()

    def add(self, name: str, array: np.ndarray) -> None:
        """Append an array, flat."""
        flat = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        self._content += bytes(-len(self._content) % _ALIGNED)
        place = {"type": _TYPES[flat.dtype], "at": len(self._content), "length": flat.size}
        self.places[name] = place
        self._content += flat.tobytes()

    def add_texts(self, name: str, texts: Iterable[str]) -> None:
        """Append texts, none of which has a line end."""
        self.add(name, np.frombuffer("\n".join(texts).encode("utf-8", "replace"), np.uint8))

    def add_rows(self, name: str, rows: np.ndarray | Int8Rows) -> None:
        """Append rows of float32, or of int8 with their scales."""
        if isinstance(rows, Int8Rows):
            self.add(f"{name} scales", rows.scales)
            self.add(name, rows.codes)
        else:
            self.add(name, rows.astype(np.float32, copy=False))

    def content(self) -> bytes:
        """All arrays."""
        return bytes(self._content)


def add_index(
    arrays: Arrays, index: Index, dtype: str, public: PublicWords
) -> tuple[dict[str, Any], list[str]]:
    """Append all that a search in ``index`` needs, with no other words than ``public``.

    Returns
    -------
    header : dict
        What engine.js needs to know of the arrays.
    notes : list of str
        What the user should know.
    """
    towers = index.model.towers
    arrays.add_texts("ids", index.ids)
    arrays.add_texts("titles", index.titles)
    arrays.add("empty", np.flatnonzero(~_has_vector(index)).astype("<u4"))
    arrays.add_rows("vectors", _vectors(index, dtype))
    for name, edges in _code_points().items():
        arrays.add(name, edges)
    model_words = public.of_model(towers.vocabulary.words)
    _add_towers(arrays, towers, index.titles, model_words, dtype)
    known = towers.vocabulary.vectors
    if known is not None:
        arrays.add_texts("vector words", known.words)
        numbers = known.vectors.astype(np.float32)
        arrays.add_rows("vector numbers", Int8Rows.of(numbers) if dtype == "int8" else numbers)
    header: dict[str, Any] = {
        "encoder": {"model": towers.encoder.name, **towers.encoder.settings()},
        "shared": towers.shared,
        "splitting": towers.vocabulary.splitting,
        "vectors": 0 if known is None else known.dim,
        "bm25": None,
        "memory": None,
        "cosine": index.cosine_weight,
        "confidence": None,
    }
    notes: list[str] = []
    if index.confidence is not None:
        fitted = index.confidence
        header["confidence"] = {"intercept": fitted.intercept, "slope": fitted.slope}
    if index.bm25 is not None and index.bm25.weight > 0:
        header["bm25"] = _add_bm25(arrays, index.bm25, index, model_words, public, notes)
    if index.memory is not None and index.memory.weight > 0:
        header["memory"] = _add_memory(arrays, index.memory, dtype)
    return header, notes


# -- vectors and weights ---------------------------------------------------------------------------


def _has_vector(index: Index) -> NDArray[np.bool_]:
    vectors = index.vectors
    numbers = vectors.codes if isinstance(vectors, Int8Rows) else vectors
    return np.asarray(numbers.any(axis=1))


def _vectors(index: Index, dtype: str) -> np.ndarray | Int8Rows:
    """The vectors of the titles; what is int8 in the index stays as it is."""
    vectors = index.vectors
    if isinstance(vectors, Int8Rows):
        return vectors if dtype == "int8" else vectors.vectors()
    rows = np.asarray(vectors, np.float32)
    return Int8Rows.of(rows) if dtype == "int8" else rows


def _add_towers(
    arrays: Arrays, towers: Towers, titles: Iterable[str], words: list[str], dtype: str
) -> None:
    """The features, and the weights of each tower; words that are withheld have none.

    Of the input weights the query tower has all rows that are not zero, the title tower those among
    them that some title needs. One tower for both sides has the former.
    """
    vocabulary = towers.vocabulary
    arrays.add_texts("trigrams", vocabulary.trigrams)
    arrays.add_texts("words", words)
    is_left_out = np.zeros(len(vocabulary), np.bool_)
    first = len(vocabulary.trigrams)
    is_left_out[first : first + len(words)] = [word == WITHHELD for word in words]
    for side, weights in towers.each.items():
        table = weights["table"]
        kept = np.asarray(table.any(axis=1)) & ~is_left_out
        if side == "document":
            in_titles = np.zeros(len(table), np.bool_)
            in_titles[vocabulary.batch(titles).input_rows] = True
            kept &= in_titles
        arrays.add(f"{side} rows", kept.astype(np.uint8))
        rows = table[kept].astype(np.float32)
        arrays.add_rows(f"{side} table", _coarse_rows(rows) if dtype == "int8" else rows)
        for name, weight in weights.items():
            if name != "table":
                arrays.add(f"{side} {name}", weight.astype(np.float32))


def _coarse_rows(rows: NDArray[np.float32]) -> Int8Rows:
    """As `Int8Rows.of`, with larger steps for rows of small numbers; no row is zero."""
    scales = np.abs(rows).max(axis=1, initial=0) / LARGEST
    if len(rows):
        # Half of the largest number of a row is kept whatever the steps are: no row becomes zero.
        floor = np.minimum(_COARSEST * np.median(scales), 2 * LARGEST * scales / 3)
        scales = np.maximum(scales, floor)
    codes = np.rint(rows / scales[:, None]).astype(np.int8)
    return Int8Rows(codes, scales.astype(np.float32))


# -- words -----------------------------------------------------------------------------------------


@lru_cache
def _code_points() -> dict[str, NDArray[np.uint32]]:
    """Where sets of code points begin and end in turn, as this Python's Unicode has them.

    ``known`` are all that are assigned; see `sentemb.exporting.characters` for the others.
    """
    every = map(chr, range(sys.maxunicode + 1))
    known = [letter for letter in every if unicodedata.category(letter) != "Cn"]
    cased, ignored = cased_and_ignored()
    sets = {"known": known, "cased": cased, "ignored": ignored}
    return {name: _edges(letters) for name, letters in sets.items()}


def _edges(letters: Iterable[str]) -> NDArray[np.uint32]:
    """Where runs of code points begin, and where they end, in turn."""
    is_in = np.zeros(sys.maxunicode + 3, np.bool_)
    is_in[[ord(letter) + 1 for letter in letters]] = True
    return np.flatnonzero(np.diff(is_in)).astype("<u4")


def _add_bm25(
    arrays: Arrays,
    half: Lexical,
    index: Index,
    model_words: list[str],
    public: PublicWords,
    notes: list[str],
) -> dict[str, Any]:
    """The list of each public word, and which list a word of a query is compared with."""
    lists = half.lists
    contents = _of_words(
        lists.contents(),
        lambda words: public.of_bm25(
            words, lists.words if isinstance(lists.words, Stems) else None
        ),
    )
    forms = {word: place for place, word in enumerate(contents.words)}
    if isinstance(lists.words, Stems):
        seen = {word for title in index.titles for word in plain_words(title)}
        seen.update(word for text in model_words for word in plain_words(text))
        forms = forms_of_stems(lists.words, contents.words, seen)
        notes.append(
            "BM25 compares stems, which a browser cannot compute: the page has the stems of "
            f"{len(forms):,} words, and BM25 ignores any other word of a query"
        )
    arrays.add_texts("bm25 words", forms)
    arrays.add("bm25 lists", np.fromiter(forms.values(), "<u4", len(forms)))
    holding = np.diff(contents.offsets)
    arrays.add("bm25 holding", holding.astype("<u4"))
    steps = np.diff(contents.titles, prepend=0)
    first = contents.offsets[:-1]
    steps[first] = contents.titles[first]
    arrays.add("bm25 steps", steps.astype("<u2"))
    counts = contents.counts
    is_whole = (counts == np.rint(counts)).all()
    # With a weight of clicked queries counts are not integers.
    arrays.add("bm25 counts", counts.astype("<u4" if is_whole else "<f8"))
    return {"k1": lists.k1, "b": lists.b, "weight": half.weight}


def _of_words(contents: Contents, kept: Callable[[list[str]], list[str]]) -> Contents:
    """The lists of those words that ``kept`` does not withhold."""
    words = kept(contents.words)
    is_kept = np.array([word != WITHHELD for word in words], np.bool_)
    lengths = np.diff(contents.offsets)
    entries = np.repeat(is_kept, lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths[is_kept])])
    held = [word for word in words if word != WITHHELD]
    return Contents(held, offsets, contents.titles[entries], contents.counts[entries])


# -- memory ----------------------------------------------------------------------------------------


def _add_memory(arrays: Arrays, memory: Memory, dtype: str) -> dict[str, Any]:
    """The vectors of clicked queries and their titles; the page has no use for the queries."""
    lists = memory.lists
    assert lists.vectors is not None  # its weight is not 0
    rows = np.asarray(lists.vectors)
    arrays.add_rows("memory vectors", Int8Rows.of(rows) if dtype == "int8" else rows)
    arrays.add("memory holding", np.diff(lists.offsets).astype("<u4"))
    arrays.add("memory titles", lists.places.astype("<u4"))
    return {"weight": memory.weight}
