"""A model or an index at a glance: its making, its size, its ranking, the figures it reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import chain
from typing import Any

from sentemb.analysis.next_step import next_step
from sentemb.data.prepared_log import is_prepared
from sentemb.errors import SentembError
from sentemb.models.face import Face
from sentemb.models.files.history import best_epoch, shown_figure
from sentemb.models.files.model_folder import CONFIG, is_model
from sentemb.models.loading import load
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.parameters import stored_parameters, trained_parameters
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.search.index import Index
from sentemb.search.index_description import DESCRIPTION
from sentemb.search.index_files import is_index
from sentemb.search.index_tuning import KINDS
from sentemb.search.ranking.opening import load_ranker
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.ranker_files import has_ranker
from sentemb.search.ranking.recipe import MEANINGS, PARTS
from sentemb.system.files import path_of, size_and_time
from sentemb.system.paths import AnyPath
from sentemb.system.tables import aligned

_TOWERS, _PAIR, _INDEX = "model with two towers", "pair model", "index"
# Settings that say how a model was trained in few words.
_SHOWN = ("objective", "optimiser", "learning_rate", "epochs", "batch_size", "seed")
_OF_PARTS = ("parts", "meetings")


@dataclass(frozen=True)
class Overview:
    """Facts about the model or the index in a folder, from `overview`.

    Attributes
    ----------
    folder : str
        Its name.
    kind : str
        "model with two towers", "pair model" or "index".
    model : str
        The name of the model.
    settings : dict
        Its shape.
    written : str
        When the folder was written, in the time zone of this machine.
    training : dict
        The settings and the log of the training, as the model has them; empty without training.
    dev : dict
        Metrics of the best epoch; empty without a dev set.
    trained_parameters, stored_parameters : int
        See `sentemb.models.parameters`.
    trigrams, words, vectors : int
        Features of the vocabulary: letter trigrams, words of their own, words with a word vector.
    disk_bytes, memory_bytes : int
        Size of the files; size of the arrays of the model and, of an index, of those it maps.
    weights : dict or None
        Weights of the parts of the ranking; None for a pair model.
    ranking : str or None
        The same with the parameters of BM25, in one line.
    ranker_dev : dict
        The dev figures of the ranker: metrics of the sum and of each part.
    clicks : dict
        Numbers of clicked queries, titles and pairs that the ranking knows.
    titles : int or None
        Titles of an index, with the type of their vectors in ``dtype``.
    dtype : str or None
    calibrated : bool or None
        Whether an index knows how sure it is of its first title.
    confidence : dict of str to bool
        Whether the confidence is shown, by the kind of query that the index is calibrated for.
    floor : bool or None
        Whether the ranking finds nothing for random letters; None without a ranking.
    embedding : str or None
        The embedding of the ranking; None if none of its parts is one.
    clusters : str or None
        How many clusters an index has and a query meets, and the recall; None without any.
    next : str
        The command that is useful next.
    """

    folder: str
    kind: str
    model: str
    settings: dict[str, Any]
    written: str
    training: dict[str, Any]
    dev: dict[str, float]
    trained_parameters: int
    stored_parameters: int
    trigrams: int
    words: int
    vectors: int
    disk_bytes: int
    memory_bytes: int
    next: str
    weights: dict[str, float] | None = None
    ranking: str | None = None
    ranker_dev: dict[str, dict[str, float]] = field(default_factory=dict)
    clicks: dict[str, int] = field(default_factory=dict)
    titles: int | None = None
    dtype: str | None = None
    calibrated: bool | None = None
    confidence: dict[str, bool] = field(default_factory=dict)
    floor: bool | None = None
    embedding: str | None = None
    clusters: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.folder}: {self.kind}, written {self.written}"
        yield ""
        yield from aligned([[name, text] for name, text in self._facts()], left=2)
        if self.weights is not None:
            yield ""
            yield "The ranker scores a title by the sum of these parts, each times its weight:"
            rows = [
                [f"{weight:+8.3g}", PARTS[part], MEANINGS[part]]
                for part, weight in self.weights.items()
            ]
            yield from aligned(rows, left=3)
        if self.ranker_dev:
            yield ""
            yield from aligned(_figure_rows(self.ranker_dev))
        yield ""
        yield f"next: {self.next}"

    def _facts(self) -> Iterator[tuple[str, str]]:
        if self.titles is not None:
            yield "titles", f"{self.titles:,}, vectors in {self.dtype}"
            yield "confidence", self._confidence()
        if self.clusters is not None:
            yield "clusters", self.clusters
        shape = ", ".join(_spelt(name, value) for name, value in self.settings.items())
        yield "model", f"{self.model}: {shape}" if shape else self.model
        yield "trained", self._training()
        if self.dev:
            named = (f"{shown_figure(name)} {value:.3f}" for name, value in self.dev.items())
            yield "best on dev", ", ".join(named)
        yield (
            "parameters",
            f"{self.trained_parameters:,} trained, {self.stored_parameters:,} stored",
        )
        vectors = f", {self.vectors:,} words with a word vector" if self.vectors else ""
        yield (
            "vocabulary",
            f"{self.trigrams:,} letter trigrams, {self.words:,} words{vectors}",
        )
        yield "size", f"{_size(self.disk_bytes)} on disk, {_size(self.memory_bytes)} in memory"
        if self.floor is not None:
            yield "floor", "random letters find nothing" if self.floor else "none"
        if self.embedding is not None:
            yield "embedding", self.embedding
        if self.clicks:
            counts = ", ".join(f"{count:,} {name}" for name, count in self.clicks.items())
            yield "clicks", f"{counts} of the log, as plain text"

    def _confidence(self) -> str:
        states = {
            kind: "calibrated" if is_shown else "not shown, as a constant is as good"
            for kind, is_shown in self.confidence.items()
        }
        if len(set(states.values())) == 1:
            return next(iter(states.values()))
        by_kind = (f"{state} for queries {kind}" for kind, state in states.items())
        return "; ".join(by_kind) or "not calibrated: sentemb calibrate"

    def _training(self) -> str:
        if not self.training:
            return "no"
        parts = [f"on {self.training['pairs']:,} pairs"] if "pairs" in self.training else []
        names = (*_SHOWN, *_OF_PARTS) if self.training.get("parts", 1) > 1 else _SHOWN
        shown = {name: self.training.get(name) for name in names}
        parts += [_spelt(name, value) for name, value in shown.items() if value is not None]
        return ", ".join(parts)


def overview(folder: AnyPath, verify: bool = False) -> Overview:
    """Say what the model or the index in a folder is.

    Parameters
    ----------
    folder : path
        A folder that `train`, `Index.save` or a command wrote.
    verify : bool
        Read every file of an index and compare the checksums, as is always done for a model;
        otherwise sizes and samples are compared.

    Returns
    -------
    Overview

    Raises
    ------
    SentembError
        If the folder holds neither, or is damaged.
    """
    if is_prepared(folder):
        raise SentembError(f"{folder}: is a prepared log; open it with PreparedLog.open")
    if is_index(folder):
        if verify:
            Index.verify(folder)
        index = Index.open(folder)
        segments = index.snapshot.segments
        parts = chain.from_iterable(each.catalogue.parts.values() for each in segments)
        return _overview(
            folder,
            DESCRIPTION,
            index.model,
            index.ranker,
            kind=_INDEX,
            titles_bytes=sum(array.nbytes for part in parts for array in part.arrays().values()),
            titles=len(index),
            dtype=index.dtype,
            calibrated=index.confidence is not None,
            confidence=_shown_confidence(index),
            clusters=None if index.clusters is None else str(index.clusters),
            next=next_step(str(folder)),
        )
    if not is_model(folder):
        raise SentembError(
            f"{folder}: this folder holds no model, index or prepared log; make one with "
            "`sentemb train`, `sentemb index` or `sentemb prepare`"
        )
    model = load(folder)
    if isinstance(model, PairScorer):
        return _overview(folder, CONFIG, model, None, kind=_PAIR, next=next_step(str(folder)))
    ranker = load_ranker(folder) if has_ranker(folder) else None
    suggested = next_step(str(folder))
    if ranker is None:
        suggested = f"sentemb tune {folder} DEV --log LOG"
    return _overview(folder, CONFIG, model, ranker, kind=_TOWERS, next=suggested)


def _overview(
    folder: AnyPath,
    description: str,
    model: Face,
    ranker: HybridRanker | None,
    titles_bytes: int = 0,
    **facts: Any,
) -> Overview:
    """The facts that models and indexes share; ``description`` is the file that is written last."""
    best, vocabulary = best_epoch(model.history), model.vocabulary
    memory_bytes = sum(array.nbytes for arrays in model.weight_sets() for array in arrays.values())
    if ranker is not None:
        recipe, clicks = ranker.recipe, ranker.clicks
        facts |= {
            "weights": {part: recipe.weight(part) for part in recipe.parts},
            "ranking": str(recipe),
            "ranker_dev": ranker.dev.get("figures", {}),
            "floor": ranker.floor is not None,
        }
        if ranker.embedding is not None:
            facts["embedding"] = ranker.embedding.name or "an object in Python"
        if recipe.needs_clicks and clicks.queries:
            facts["clicks"] = {"queries": len(clicks.queries), "titles": len(clicks.titles)}
    disk_bytes, written = size_and_time(path_of(folder), description)
    towers = {"shared_towers": model.shared_towers} if isinstance(model, SentenceEncoder) else {}
    return Overview(
        folder=str(folder),
        model=model.shape.name,
        settings=model.shape.settings() | towers,
        written=written,
        training=dict(model.training),
        dev=dict(best["dev"]) if best is not None else {},
        trained_parameters=trained_parameters(model),
        stored_parameters=stored_parameters(model),
        trigrams=len(vocabulary.trigrams),
        words=len(vocabulary.words),
        vectors=0 if vocabulary.vectors is None else len(vocabulary.vectors),
        disk_bytes=disk_bytes,
        memory_bytes=memory_bytes + titles_bytes,
        **facts,
    )


def _shown_confidence(index: Index) -> dict[str, bool]:
    """Whether the confidence says more than a constant, by kind of query."""
    known = index.confidence
    fits = {} if known is None else {False: known, True: known.typed}
    return {
        KINDS[is_typed]: fitted.is_better
        for is_typed, fitted in fits.items()
        if fitted is not None and fitted.n_queries
    }


def _figure_rows(figures: Mapping[str, Mapping[str, float]]) -> Iterator[list[str]]:
    """A table of metrics: the sum of the ranker, then each part alone."""
    metrics = list(figures["sum"])
    yield ["on dev", *map(shown_figure, metrics)]
    for part, values in figures.items():
        name = "the sum" if part == "sum" else f"{PARTS[part]} alone"
        yield [name, *(f"{values[metric]:.3f}" for metric in metrics)]


def _spelt(name: str, value: object) -> str:
    words = ("yes" if value else "no") if isinstance(value, bool) else value
    return f"{name.replace('_', ' ')} {words}"


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
