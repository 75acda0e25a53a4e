"""Open the ranker of a model folder."""

from collections.abc import Sequence
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.loading import load
from sentemb.pair_scorer import PairScorer
from sentemb.ranking.ranker import HybridRanker
from sentemb.ranking.ranker_files import has_ranker, read_ranker
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.storage.model_files import fingerprint
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
    return _opened(path_of(path), model, titles, threads)


def load_best(
    path: AnyPath, threads: int | None = None, use_ranker: bool = True
) -> SentenceEncoder | PairScorer | HybridRanker:
    """The ranker of a model folder that has one, otherwise the model.

    Parameters
    ----------
    path : path
        A model folder.
    threads : int, optional
        By default all processors.
    use_ranker : bool
        False for the model in any case.

    Raises
    ------
    SentembError
        As `load_ranker`, except for a folder without a ranker.
    """
    model = load(path, threads)
    if isinstance(model, PairScorer) or not (use_ranker and has_ranker(path)):
        return model
    return _opened(path_of(path), model, None, threads)


def with_two_towers(model: SentenceEncoder | PairScorer) -> SentenceEncoder:
    """``model``; a `SentembError` for a pair model."""
    if isinstance(model, PairScorer):
        raise SentembError(
            f"the pair model {model.model.name} cannot have a ranker: it has no vectors to rank a "
            "catalogue with; give a model with two towers"
        )
    return model


def _opened(
    folder: Path, model: SentenceEncoder, titles: Sequence[str] | None, threads: int | None
) -> HybridRanker:
    """The ranker in ``folder``, whose model is ``model``."""
    stored = read_ranker(folder)
    if stored.model_sha256 != fingerprint(model.saved()):
        raise SentembError(
            f"{folder}: the ranker there was fitted for another model; fit it again with "
            f"`sentemb tune {folder} DEV --log LOG`, or use --no-ranker"
        )
    return HybridRanker(model, stored.recipe, stored.clicks, titles, stored.dev, threads)
