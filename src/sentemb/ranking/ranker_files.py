"""The ranker in a model folder: one file that is replaced in one step, and a copy for people.

``ranker/ranker.safetensors`` is the ranker: the recipe, the dev figures, the fingerprint of the
model that it was fitted for, and the pairs that its parts read. ``ranker/ranker.json`` repeats all
but the pairs. docs/formats.md describes both.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.ranking.clicked_pairs import log_of_pairs
from sentemb.ranking.recipe import Recipe
from sentemb.storage.folder import RANKER, RANKER_COPY, RANKER_FILE
from sentemb.storage.tensor_files import Damaged, TensorFile, open_tensors, write_tensors
from sentemb.storage.text_files import lines_of, text_of
from sentemb.system.descriptions import check_format
from sentemb.system.files import is_file, make_folder, path_of, write_text
from sentemb.system.paths import AnyPath
from sentemb.version import __version__

_FORMAT = 1
_TEXTS = ("queries", "titles")
_NUMBERS = ("query_index", "title_index")


@dataclass(frozen=True, eq=False)
class StoredRanker:
    """What a model folder holds of a ranker.

    Attributes
    ----------
    model_sha256 : str
        The fingerprint of the model that it was fitted for.
    recipe : Recipe
    dev : dict
        The dev figures.
    clicks : ClickLog, function that returns one, or None
        The pairs that the parts read. A stored ranker has a function, which reads them.
    """

    model_sha256: str
    recipe: Recipe
    dev: dict[str, Any]
    clicks: ClickLog | Callable[[], ClickLog] | None


def has_ranker(folder: AnyPath) -> bool:
    """Whether a model folder has a ranker, of whatever model."""
    return is_file(path_of(folder) / RANKER / RANKER_FILE)


def write_ranker(folder: Path, stored: StoredRanker) -> None:
    """Write a ranker into a model folder, which the caller has locked."""
    description = {
        "format": _FORMAT,
        "sentemb": __version__,
        "model": stored.model_sha256,
        "recipe": stored.recipe.as_dict(),
        "dev": stored.dev,
    }
    tensors: dict[str, np.ndarray] = {}
    clicks = stored.clicks() if callable(stored.clicks) else stored.clicks
    if clicks is not None:
        for name in _TEXTS:
            tensors[name] = np.frombuffer(text_of(getattr(clicks, name)).encode("utf-8"), np.uint8)
        for name in _NUMBERS:
            tensors[name] = np.ascontiguousarray(getattr(clicks, name))
        description["clicks"] = {
            "queries": len(clicks.queries),
            "titles": len(clicks.titles),
            "pairs": clicks.query_index.size,
        }
    place = make_folder(folder / RANKER)
    write_tensors(place / RANKER_FILE, tensors, description)
    copy = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    write_text(place / RANKER_COPY, copy)


def read_ranker(folder: Path) -> StoredRanker:
    """The ranker in a model folder. Its pairs are read, and checked, when they are asked for.

    Raises
    ------
    SentembError
        If the file is damaged, or a newer version wrote it.
    """
    path = folder / RANKER / RANKER_FILE
    with _naming_the_ranker(), open_tensors(path) as file:
        found = _checked(path, file)
        if "clicks" not in found:
            # Otherwise it is checked together with the pairs.
            file.check()
    clicks = (lambda: _clicks(path)) if "clicks" in found else None
    return StoredRanker(str(found.get("model")), Recipe.of(found["recipe"]), found["dev"], clicks)


@contextlib.contextmanager
def _naming_the_ranker() -> Iterator[None]:
    """Let errors say that the ranker is damaged, and not the model, which still works."""
    try:
        yield
    except Damaged as error:
        text = str(error).replace("the model is damaged", "the ranker is damaged")
        remedy = "fit it again with `sentemb tune`, or use --no-ranker"
        raise Damaged(text.replace("train again", remedy)) from error


def _checked(path: Path, file: TensorFile) -> dict[str, Any]:
    """What a file says of its ranker."""
    found = file.metadata
    check_format(path, found, _FORMAT)
    if not (isinstance(found.get("recipe"), dict) and isinstance(found.get("dev"), dict)):
        raise file.damaged("the recipe or the dev figures are missing")
    try:
        recipe = Recipe.of(found["recipe"])
    except SentembError as error:
        raise file.damaged(str(error).partition(";")[0]) from None
    if recipe.needs_clicks and "clicks" not in found:
        raise file.damaged("its pairs are missing")
    return found


def _clicks(path: Path) -> ClickLog:
    """The pairs in file ``path``, every byte checked."""
    with _naming_the_ranker(), open_tensors(path) as file:
        for name in (*_TEXTS, *_NUMBERS):
            if file.dtype(name) != np.dtype(np.uint8 if name in _TEXTS else np.int32):
                raise file.damaged(f"{name} is missing or of another type")
        arrays = dict(file.checked())
        queries, titles = (lines_of(path, arrays[name].tobytes()) for name in _TEXTS)
        query_index, title_index = (arrays[name] for name in _NUMBERS)
        is_right = (
            query_index.ndim == 1
            and query_index.shape == title_index.shape
            and _are_places(query_index, len(queries))
            and _are_places(title_index, len(titles))
        )
        if not is_right:
            raise file.damaged("its pairs are not pairs of its queries and titles")
        # A click counts for all titles that are equal, so equal ones take memory by the square.
        if len({title.strip() for title in titles}) < len(titles):
            raise file.damaged("it has a title twice")
    return log_of_pairs(queries, titles, query_index, title_index)


def _are_places(index: np.ndarray, size: int) -> bool:
    return not index.size or bool(0 <= index.min() <= index.max() < size)
