"""Open the ranker of a model folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.models.files.model_files import fingerprint
from sentemb.models.loading import load
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.ranker_files import has_ranker, read_ranker
from sentemb.search.ranking.recipe import MODEL_ALONE
from sentemb.system.files import path_of
from sentemb.system.paths import AnyPath


def load_ranker(
    path: AnyPath, titles: Sequence[str] | None = None, threads: int | None = None
) -> HybridRanker:
    """Read the ranker of a model folder.

    Parameters
    ----------
    path : path
        A model folder in which `sentemb train` or `sentemb tune` has written a ranker.
    titles : sequence of str, optional
        The catalogue that `HybridRanker.find` ranks. By default the titles of the ranker's clicks.
    threads : int, optional
        By default all processors.

    Returns
    -------
    HybridRanker
        The queries and titles that its parts read are read when they are first needed.

    Raises
    ------
    SentembError
        If the folder has no model or no ranker, the ranker was fitted for another model, a file is
        damaged, or a newer version wrote it.
    """
    model = with_two_towers(load(path, threads))
    if not has_ranker(path):
        raise SentembError(
            f"{path}: the model has no ranker; fit one with `sentemb tune {path} DEV --log LOG`, "
            "or take the model alone with sentemb.load"
        )
    return opened_ranker(path_of(path), model, titles, threads)


def load_best(
    path: AnyPath, threads: int | None = None, cosine: bool = False
) -> HybridRanker | PairScorer:
    """The ranking of a model folder: it scores pairs and finds titles.

    For two towers it is the ranker of the folder or, without one or with ``cosine``, the cosine of
    the model alone. ``threads`` are by default all processors. Raises `SentembError` as
    `load_ranker`, except for a folder without a ranker.
    """
    model = load(path, threads)
    if isinstance(model, PairScorer):
        return model
    if cosine or not has_ranker(path):
        return HybridRanker(model, MODEL_ALONE, threads=threads)
    return opened_ranker(path_of(path), model, None, threads)


def known_by_ids(ranker: Any, titles: Sequence[str], ids: Sequence[str]) -> Any:
    """``ranker``; one that knows products knows the titles of a catalogue by their ids."""
    return ranker.with_ids(titles, ids) if isinstance(ranker, HybridRanker) else ranker


def with_two_towers(model: SentenceEncoder | PairScorer) -> SentenceEncoder:
    """``model``; a `SentembError` for a pair model."""
    if isinstance(model, PairScorer):
        raise SentembError(
            f"the pair model {model.model.name} cannot have a ranker: it has no vectors to rank a "
            "catalogue with; give a model with two towers"
        )
    return model


def opened_ranker(
    folder: Path,
    model: SentenceEncoder,
    titles: Sequence[str] | None,
    threads: int | None,
    in_memory: bool = False,
) -> HybridRanker:
    """The ranker in ``folder``, whose model is ``model``; ``in_memory`` as for `read_ranker`."""
    stored = read_ranker(folder, in_memory)
    if stored.model_sha256 != fingerprint(model.saved()):
        raise SentembError(
            f"{folder}: the ranker there was fitted for another model; fit it again with "
            f"`sentemb tune {folder} DEV --log LOG`, or use --cosine"
        )
    return HybridRanker(
        model,
        stored.recipe,
        stored.clicks,
        stored.fields,
        titles,
        stored.dev,
        stored.floor,
        threads,
        stored.embedding,
    )
