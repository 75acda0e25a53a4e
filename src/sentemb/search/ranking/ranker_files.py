"""The ranker in a model folder: one file that is replaced in one step, and a copy for people.

``ranker/ranker.safetensors`` is the ranker: the recipe, the dev figures, the fingerprint of the
model that it was fitted for, the clicks that its parts read and the statistics of BM25.
``ranker/ranker.json`` repeats all but clicks and statistics. docs/formats.md describes both.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sentemb.data.examinations import Examinations
from sentemb.data.text_array import TextArray
from sentemb.errors import SentembError
from sentemb.models.files.model_folder import RANKER, RANKER_COPY, RANKER_FILE
from sentemb.models.files.tensor_files import Damaged, TensorFile, open_tensors, write_tensors
from sentemb.models.files.text_files import lines_of, text_of
from sentemb.retrieval.bm25 import Statistics
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.floor import FEATURES, Floor, Letters
from sentemb.search.ranking.part import Fields
from sentemb.search.ranking.recipe import EMBEDDING, Recipe
from sentemb.system.bounds import is_finite, is_integer
from sentemb.system.descriptions import check_format
from sentemb.system.files import is_file, make_folder, path_of, write_text
from sentemb.system.paths import AnyPath
from sentemb.version import __version__

_FORMAT = 1
# The tensor by which an embedding is known again: a unit vector, as far as float32 says, or zeros.
_PROBE, _NEARLY = "embedding_probe", 1e-4
# No catalogue has more titles.
_MOST = 2**31 - 1
# Attributes of a `ClickedQueries`, those that are texts and those that are numbers.
_TEXTS = ("keys", "queries", "titles")
_TEXTS_EXAMINED = ("queries", "ids", "titles")
_NUMBERS_EXAMINED: dict[str, type[np.generic]] = {
    "query_index": np.int32,
    "product_index": np.int32,
    "times": np.float64,
}
_NUMBERS = {"offsets": np.int64, "clicked": np.int32, "clicks": np.int64, "product_of": np.int32}


@dataclass(frozen=True, eq=False)
class StoredRanker:
    """A ranker as a model folder holds it.

    model_sha256 : the fingerprint of the model that it was fitted for
    dev : the dev figures
    clicks : its clicks; a stored ranker has a function, which reads them
    fields : the statistics of BM25, or a function that returns them
    embedding : the embedding of one of its parts, which may not be open
    """

    model_sha256: str
    recipe: Recipe
    dev: dict[str, Any]
    clicks: ClickedQueries | Callable[[], ClickedQueries] | None
    fields: Fields | Callable[[], Fields] | None
    floor: Floor | None = None
    embedding: Embedding | None = None


def has_ranker(folder: AnyPath) -> bool:
    """Whether a model folder has a ranker, of whatever model."""
    return is_file(path_of(folder) / RANKER / RANKER_FILE)


def write_ranker(folder: Path, stored: StoredRanker) -> None:
    """Write a ranker into a model folder, which the caller has locked."""
    description: dict[str, Any] = {
        "format": _FORMAT,
        "sentemb": __version__,
        "model": stored.model_sha256,
        "recipe": stored.recipe.as_dict(),
        "dev": stored.dev,
    }
    tensors: dict[str, np.ndarray] = {}
    clicks = stored.clicks() if callable(stored.clicks) else stored.clicks
    if clicks is not None:
        description["clicks"] = _add_clicks(tensors, clicks)
    fields = stored.fields() if callable(stored.fields) else stored.fields
    if fields is not None:
        description["fields"] = {}
        for name, statistics in fields._asdict().items():
            tensors[f"{name}_words"] = _bytes_of(statistics.words)
            tensors[f"{name}_holding"] = np.ascontiguousarray(statistics.holding, np.int64)
            description["fields"][name] = {
                "titles": statistics.n_titles,
                "mean_length": statistics.mean_length,
            }
    if stored.floor is not None:
        description["floor"] = stored.floor.as_dict()
        counts = stored.floor.letters.counts
        tensors["letters"] = _bytes_of(list(counts))
        tensors["letter_counts"] = np.array(list(counts.values()), np.int64)
    if stored.embedding is not None:
        description["embedding"] = stored.embedding.name
        tensors[_PROBE] = stored.embedding.probe
    path = make_folder(folder / RANKER)
    write_tensors(path / RANKER_FILE, tensors, description, singly=True)
    copy = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    write_text(path / RANKER_COPY, copy)


def _add_clicks(tensors: dict[str, np.ndarray], clicks: ClickedQueries) -> dict[str, int]:
    """Add the tensors of clicks; their numbers, for the description."""
    for name in _TEXTS:
        tensors[name] = _bytes_of(getattr(clicks, name))
    for name, dtype in _NUMBERS.items():
        tensors[name] = np.ascontiguousarray(getattr(clicks, name), dtype)
    numbers = {"products": len(clicks.keys), "queries": len(clicks.queries)}
    numbers["pairs"] = clicks.clicks.size
    examinations = clicks.examinations
    if examinations.times.size:
        for name in _TEXTS_EXAMINED:
            tensors[f"examined_{name}"] = _bytes_of(getattr(examinations, name))
        for name, dtype in _NUMBERS_EXAMINED.items():
            array = np.ascontiguousarray(getattr(examinations, name), dtype)
            tensors[f"examined_{name}"] = array
        numbers["examined"] = examinations.times.size
    return numbers


def _bytes_of(lines: Sequence[str]) -> np.ndarray:
    if isinstance(lines, TextArray):
        return lines.raw
    return np.frombuffer(text_of(list(lines)).encode("utf-8"), np.uint8)


def read_ranker(folder: Path, in_memory: bool = False) -> StoredRanker:
    """The ranker in a model folder.

    Its clicks and statistics are mapped, and checked, when they are asked for; ``in_memory`` reads
    them instead. Raises `SentembError` if the file is damaged, or a newer version wrote it.
    """
    path = folder / RANKER / RANKER_FILE
    with _naming_the_ranker(), open_tensors(path) as file:
        record = _checked(path, file)
        file.map()
        if not {"clicks", "fields"} & record.keys():
            # Otherwise it is checked together with them.
            file.check()
        floor, embedding = _floor(path, file, record), _embedding(file, record)

    def clicks() -> ClickedQueries:
        with _naming_the_ranker():
            return _clicks(file, in_memory)

    def fields() -> Fields:
        with _naming_the_ranker():
            return _fields(file, in_memory)

    return StoredRanker(
        str(record.get("model")),
        Recipe.of(record["recipe"]),
        record["dev"],
        clicks if "clicks" in record else None,
        fields if "fields" in record else None,
        floor,
        embedding,
    )


def _embedding(file: TensorFile, record: dict[str, Any]) -> Embedding | None:
    """The embedding of a ranker, if it has one."""
    if not Recipe.of(record["recipe"]).weight(EMBEDDING):
        return None
    is_right = isinstance(record.get("embedding"), str) and file.dtype(_PROBE) == np.float32
    probe = file[_PROBE] if is_right else np.empty(0, np.float32)
    length = float(np.linalg.norm(probe))
    if probe.ndim != 1 or not probe.size or not (length == 0 or abs(length - 1) < _NEARLY):
        raise file.damaged("its embedding is missing or wrong")
    return Embedding(record["embedding"], np.array(probe))


def _floor(path: Path, file: TensorFile, record: dict[str, Any]) -> Floor | None:
    """The floor of a ranker, if it has one."""
    if "floor" not in record:
        return None
    weights = record["floor"].get("weights") if isinstance(record["floor"], dict) else None
    if (
        not isinstance(weights, list)
        or len(weights) != len(FEATURES) + 1
        or not all(map(is_finite, weights))
        or not is_finite(record["floor"].get("threshold"))
        or "fields" not in record
        or not Recipe.of(record["recipe"]).reads_words
        or file.dtype("letters") != np.uint8
        or file.dtype("letter_counts") != np.int64
    ):
        raise file.damaged("its floor is wrong")
    letters = lines_of(path, file.mapped("letters").tobytes())
    counts = file.mapped("letter_counts")
    if counts.shape != (len(letters),) or (counts < 1).any() or any(len(s) != 3 for s in letters):
        raise file.damaged("its floor is wrong")
    return Floor(
        tuple(map(float, weights)),
        float(record["floor"]["threshold"]),
        Letters(dict(zip(letters, counts.tolist(), strict=True))),
    )


@contextlib.contextmanager
def _naming_the_ranker() -> Iterator[None]:
    """Let errors say that the ranker is damaged, and not the model, which still works."""
    try:
        yield
    except Damaged as error:
        text = str(error).replace("the model is damaged", "the ranker is damaged")
        remedy = "fit it again with `sentemb tune`, or use --cosine"
        raise Damaged(text.replace("train again", remedy)) from error


def _checked(path: Path, file: TensorFile) -> dict[str, Any]:
    record = file.metadata
    check_format(path, record, _FORMAT)
    if not (isinstance(record.get("recipe"), dict) and _are_dev_figures(record.get("dev"))):
        raise file.damaged("the recipe or the dev figures are missing or wrong")
    try:
        recipe = Recipe.of(record["recipe"])
    except SentembError as error:
        raise file.damaged(str(error).partition(";")[0]) from None
    if recipe.needs_clicks and "clicks" not in record:
        raise file.damaged("its clicks are missing")
    if recipe.reads_words and "fields" not in record:
        raise file.damaged("its statistics of words are missing")
    return record


def _are_dev_figures(dev: object) -> bool:
    figures = dev.get("figures", {}) if isinstance(dev, dict) else None
    return isinstance(figures, dict) and all(
        isinstance(of_part, dict) and all(map(is_finite, of_part.values()))
        for of_part in figures.values()
    )


def _clicks(file: TensorFile, in_memory: bool) -> ClickedQueries:
    """The clicks in a file, every byte checked."""
    values: dict[str, Any] = {name: _lines(file, name, in_memory) for name in _TEXTS}
    for name, dtype in _NUMBERS.items():
        values[name] = _numbers(file, name, dtype, in_memory)
    clicks = ClickedQueries(**values, examinations=_examinations(file, in_memory))
    if not _are_clicks(clicks):
        raise file.damaged("its clicks are not those of its queries and titles")
    return clicks


def _fields(file: TensorFile, in_memory: bool) -> Fields:
    """The statistics of words in a file, every byte checked."""
    fields = {}
    for name in Fields._fields:
        stored = file.metadata["fields"]
        facts = stored.get(name) if isinstance(stored, dict) else None
        words = _lines(file, f"{name}_words", in_memory)
        holding = _numbers(file, f"{name}_holding", np.int64, in_memory)
        statistics = _statistics(words, holding, facts)
        if statistics is None:
            raise file.damaged("its statistics of words are wrong")
        fields[name] = statistics
    return Fields(**fields)


def _numbers(file: TensorFile, name: str, dtype: DTypeLike, in_memory: bool) -> np.ndarray:
    if file.dtype(name) != np.dtype(dtype):
        raise file.damaged(f"{name} is missing or of another type")
    array = file.mapped(name)
    return array.copy() if in_memory else array


def _lines(file: TensorFile, name: str, in_memory: bool) -> TextArray:
    raw = _numbers(file, name, np.uint8, in_memory)
    try:
        return TextArray.of_lines(raw)
    except ValueError:
        raise file.damaged(f"{name} is not UTF-8 with line ends") from None


def _are_clicks(clicks: ClickedQueries) -> bool:
    offsets, n = clicks.offsets, clicks.clicked.size
    return bool(
        offsets.ndim == clicks.clicked.ndim == clicks.product_of.ndim == 1
        and clicks.clicks.shape == clicks.clicked.shape
        and offsets.size == len(clicks.keys) + 1
        and offsets[0] == 0
        and offsets[-1] == n
        and (np.diff(offsets) >= 0).all()
        and _are_places(clicks.clicked, len(clicks.queries))
        and (clicks.clicks > 0).all()
        and clicks.product_of.size == len(clicks.titles)
        and _are_places(clicks.product_of, len(clicks.keys))
    )


def _examinations(file: TensorFile, in_memory: bool) -> Examinations:
    """How often titles were looked at, as a ranker has it."""
    facts = file.metadata["clicks"]
    if not isinstance(facts, dict) or "examined" not in facts:
        return Examinations.nothing()
    values: dict[str, Any] = {
        name: _numbers(file, f"examined_{name}", dtype, in_memory)
        for name, dtype in _NUMBERS_EXAMINED.items()
    }
    for name in _TEXTS_EXAMINED:
        values[name] = _lines(file, f"examined_{name}", in_memory)
    examinations = Examinations(**values)
    if not _are_examinations(examinations):
        raise file.damaged("how often titles were looked at does not fit its queries")
    return examinations


def _are_examinations(examined: Examinations) -> bool:
    times = examined.times
    return bool(
        examined.query_index.shape == examined.product_index.shape == times.shape
        and times.ndim == 1
        and len(examined.ids) == len(examined.titles)
        and _are_places(examined.query_index, len(examined.queries))
        and _are_places(examined.product_index, len(examined.ids))
        and ((times > 0) & np.isfinite(times)).all()
    )


def _are_places(index: np.ndarray, size: int) -> bool:
    return not index.size or bool(0 <= index.min() <= index.max() < size)


def _statistics(words: TextArray, holding: np.ndarray, facts: object) -> Statistics | None:
    if not isinstance(facts, dict) or holding.shape != (len(words),):
        return None
    n, mean = facts.get("titles"), facts.get("mean_length")
    if not is_integer(n) or not 0 <= n <= _MOST or not is_finite(mean) or mean <= 0:
        return None
    if holding.size and not 0 < holding.min() <= holding.max() <= n:
        return None
    return Statistics(words, holding, n, float(mean))
