"""The arrays of an index in a search page, one after the other, and where each of them is.

engine/engine.js reads them.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sentemb.bridges.export.final_sigma import cased_and_ignored
from sentemb.bridges.page.public_words import WITHHELD, PublicWords
from sentemb.bridges.page.stem_forms import forms_of_stems
from sentemb.models.towers.towers import Towers
from sentemb.retrieval.bm25 import Lists, Statistics
from sentemb.retrieval.int8_rows import LARGEST, Int8Rows
from sentemb.retrieval.memory import MemoryRows
from sentemb.retrieval.postings import Postings
from sentemb.retrieval.words_and_stems import Stems
from sentemb.search.product_fields import ProductFields
from sentemb.search.ranking.direct_parts import EXAMINATIONS, KAPPA, Clicks, Examined
from sentemb.search.ranking.floor import Letters
from sentemb.search.ranking.parts import Bm25, Cosine, Memory, Unclicked
from sentemb.search.searcher import BELOW_FLOOR, NO_PRODUCT, NOTHING_KNOWN
from sentemb.text.words import SIGNS

if TYPE_CHECKING:
    from sentemb.search.index import Index

# Typed arrays of JavaScript begin at multiples of the size of their numbers.
_ALIGNED = 8
_TYPES = {
    np.dtype("uint8"): "Uint8Array",
    np.dtype("int8"): "Int8Array",
    np.dtype("<u2"): "Uint16Array",
    np.dtype("<u4"): "Uint32Array",
    np.dtype("<i8"): "BigInt64Array",
    np.dtype("<f4"): "Float32Array",
    np.dtype("<f8"): "Float64Array",
}
# No row of the input weights is stored in smaller steps than the median row times this. Rows are
# added up, so the steps of small rows may be those of larger ones, and gzip packs small integers
# well.
_COARSEST = 2.0


class Arrays:
    """Named arrays in one string of bytes, little-endian.

    ``entries`` has the type in JavaScript, the first byte and the length of each array by name.
    """

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self._content = bytearray()

    def add(self, name: str, array: np.ndarray) -> None:
        """Append an array, flat."""
        flat = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        self._content += bytes(-len(self._content) % _ALIGNED)
        entry = {"type": _TYPES[flat.dtype], "at": len(self._content), "length": flat.size}
        self.entries[name] = entry
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

    The result is the description of the arrays for engine.js, and remarks for the user.
    """
    towers, whole = index.model.towers, index.snapshot.as_one
    arrays.add_texts("ids", whole.ids)
    arrays.add_texts("titles", whole.titles)
    _add_fields(arrays, whole.fields)
    arrays.add("empty", np.flatnonzero(whole.catalogue.is_empty).astype("<u4"))
    for name, edges in _code_points().items():
        arrays.add(name, edges)
    arrays.add_texts("signs", SIGNS.values())
    model_words = public.of_model(towers.vocabulary.words)
    _add_towers(arrays, towers, whole.titles, model_words, dtype)
    known = towers.vocabulary.vectors
    if known is not None:
        arrays.add_texts("vector words", known.words)
        numbers = known.vectors.astype(np.float32)
        arrays.add_rows("vector numbers", Int8Rows.of(numbers) if dtype == "int8" else numbers)
    header: dict[str, Any] = {
        "encoder": {"model": towers.encoder.name, **towers.encoder.settings()},
        "shared": towers.shared,
        "splitting": towers.vocabulary.splitting,
        "searched": "searched" if index.recipe.letters else "searchedPairs",
        "vectors": 0 if known is None else known.dim,
        "confidence": None,
        "floor": None,
        "kappa": KAPPA,
        "examinations": EXAMINATIONS,
        "search_fields": list(index.search_fields),
        "no_match": {"nothing": NOTHING_KNOWN, "below": BELOW_FLOOR, "product": NO_PRODUCT},
    }
    notes: list[str] = []
    if index.confidence is not None:
        of_kinds = {"never": index.confidence, "typed": index.confidence.typed}
        header["confidence"] = {
            kind: {"intercept": fitted.intercept, "slope": fitted.slope}
            for kind, fitted in of_kinds.items()
            if fitted is not None and fitted.is_better
        }
    fields = _add_parts(arrays, index, dtype)
    if fields:
        words = _add_words(arrays, fields, index, model_words, public, notes)
        header["floor"] = _add_floor(arrays, index, words)
    return header, notes


def _add_parts(arrays: Arrays, index: Index, dtype: str) -> dict[str, Lists]:
    """Append the parts of the score; those of BM25 are returned, for `_add_words`."""
    fields: dict[str, Lists] = {}
    for name in index.recipe.parts:
        part = index.snapshot.as_one.catalogue.parts[name]
        if isinstance(part, Cosine):
            arrays.add_rows("vectors", _vectors(index, dtype))
        elif isinstance(part, Memory):
            _add_memory(arrays, part.memory)
        elif isinstance(part, Bm25):
            fields[name] = part.lists
        elif isinstance(part, Unclicked):
            arrays.add(name, part.values.astype(np.uint8))
        elif isinstance(part, Clicks):
            _add_of_query(arrays, name, part.queries, part.clicks)
            arrays.add("clicks totals", part.totals.astype("<f8"))
        elif isinstance(part, Examined):
            _add_of_query(arrays, name, part.queries, part.times)
    return fields


def _add_of_query(arrays: Arrays, name: str, queries: Postings, numbers: np.ndarray) -> None:
    """Append a part that has a number for each title of a query."""
    arrays.add(f"{name} keys", queries.keys)
    arrays.add(f"{name} lengths", np.diff(queries.offsets).astype("<u4"))
    arrays.add(f"{name} titles", queries.titles.astype("<u4"))
    arrays.add(f"{name} numbers", numbers.astype("<f8"))


# -- vectors and weights ---------------------------------------------------------------------------


def _vectors(index: Index, dtype: str) -> np.ndarray | Int8Rows:
    """The vectors of the titles; what is int8 in the index stays as it is."""
    vectors = index.vectors
    if isinstance(vectors, Int8Rows):
        return vectors if dtype == "int8" else vectors.vectors()
    rows = np.asarray(vectors, np.float32)
    return Int8Rows.of(rows) if dtype == "int8" else rows


def _add_fields(arrays: Arrays, fields: ProductFields) -> None:
    """The values of each field of all titles, as JSON."""
    of_titles = fields.values(range(fields.count))
    for name in fields.types:
        arrays.add_texts(f"field {name}", [json.dumps([values[name] for values in of_titles])])


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
        is_stored = np.asarray(table.any(axis=1)) & ~is_left_out
        if side == "document":
            in_titles = np.zeros(len(table), np.bool_)
            in_titles[vocabulary.batch(titles).input_rows] = True
            is_stored &= in_titles
        arrays.add(f"{side} rows", is_stored.astype(np.uint8))
        rows = table[is_stored].astype(np.float32)
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

    ``known`` are all that are assigned; see `sentemb.bridges.export.final_sigma` for the others.
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


def _add_words(
    arrays: Arrays,
    fields: Mapping[str, Lists],
    index: Index,
    model_words: list[str],
    public: PublicWords,
    notes: list[str],
) -> list[str]:
    """The public words of BM25, which of them a word of a query is, and the lists of each field."""
    split = index.recipe.words
    every = sorted({word for lists in fields.values() for word in lists.words})
    stems_of = split.of_words if isinstance(split, Stems) else None
    words = public.of_bm25(every, stems_of)
    forms = {word: number for number, word in enumerate(words)}
    if isinstance(split, Stems):
        seen = {word for text in (*public.words, *model_words) for word in split.split(text)}
        forms = forms_of_stems(split.of_words, words, seen)
        notes.append(
            "BM25 compares stems, which a browser cannot compute: the page has the stems of "
            f"{len(forms):,} words, and BM25 ignores any other word of a query"
        )
    arrays.add_texts("words of bm25", forms)
    arrays.add("numbers of words", np.fromiter(forms.values(), "<u4", len(forms)))
    for name, lists in fields.items():
        _add_lists(arrays, name, lists, words)
    return words


def _add_floor(arrays: Arrays, index: Index, words: list[str]) -> dict[str, Any] | None:
    """Statistics of the public ``words`` for the floor; its weights are those of the index."""
    floor = index.ranker.floor
    if floor is None or not index.recipe.reads_words:
        return None
    whole = index.ranker.fields.whole
    public = Statistics(words, whole.held_by(words), whole.n_titles, whole.mean_length)
    letters = Letters.of(public).counts
    arrays.add("floor holding", public.holding.astype("<u4"))
    arrays.add_texts("floor letters", letters)
    arrays.add("floor counts", np.fromiter(letters.values(), "<u4", len(letters)))
    return {**floor.as_dict(), "titles": whole.n_titles}


def _add_lists(arrays: Arrays, name: str, lists: Lists, words: Sequence[str]) -> None:
    """The lists of ``words``, empty where the field has none."""
    index_of = {word: index for index, word in enumerate(lists.words)}
    indices = np.array([index_of.get(word, -1) for word in words], np.int64)
    lengths = np.diff(lists.offsets, append=lists.offsets[-1])[indices]
    ends = np.cumsum(lengths)
    entries = np.repeat(lists.offsets[indices] - (ends - lengths), lengths)
    entries += np.arange(entries.size)
    titles = lists.titles[entries]
    steps = np.diff(titles, prepend=0)
    first = (ends - lengths)[lengths > 0]
    steps[first] = titles[first]
    arrays.add(f"{name} lengths", lengths.astype("<u4"))
    arrays.add(f"{name} steps", steps.astype("<u2"))
    arrays.add(f"{name} weights", lists.weights[entries])


# -- memory ----------------------------------------------------------------------------------------


def _add_memory(arrays: Arrays, memory: MemoryRows) -> None:
    """The rows of each title, without the texts of clicked queries.

    A query that was clicked for several titles is a row of each, and only the scales differ: equal
    rows are stored once.
    """
    codes = np.ascontiguousarray(memory.rows.codes)
    whole = codes.view(f"V{codes.shape[1]}").ravel()
    _, first, row_of = np.unique(whole, return_index=True, return_inverse=True)
    arrays.add("memory lengths", np.diff(memory.offsets).astype("<u4"))
    arrays.add("memory rows", row_of.astype("<u4"))
    arrays.add("memory scales", memory.rows.scales)
    arrays.add("memory is clicked", (memory.texts >= 0).astype(np.uint8))
    arrays.add("memory codes", codes[first])
