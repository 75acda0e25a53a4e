"""The public function that trains: two towers, or a pair model."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias, overload

from sentemb.data.click_log import Clicks
from sentemb.data.labelled_pairs import LabelledPairs
from sentemb.data.prepared_log import PreparedLog
from sentemb.models.files.model_files import stored_pair_model
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.text_encoder import TextEncoder
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.bounds import whole
from sentemb.system.cluster import Dask
from sentemb.system.paths import AnyPath
from sentemb.training.batches.additions import Replayed, Titles
from sentemb.training.dev import DevSource
from sentemb.training.families import FAMILIES, family_of
from sentemb.training.inputs import Inputs
from sentemb.training.progress import Progress
from sentemb.training.run import Run
from sentemb.training.towers.settings import MOST_SEEDS

PairModelName: TypeAlias = Literal[
    "arc1", "arc2", "wordembed", "senna", "senmlp", "deepmatch", "urae"
]


@overload
def train(
    pairs: Clicks | LabelledPairs | PreparedLog, *, model: PairModelName, **settings: Any
) -> PairScorer: ...
@overload
def train(pairs: Clicks | LabelledPairs | PreparedLog, **settings: Any) -> SentenceEncoder: ...


def train(
    pairs: Clicks | LabelledPairs | PreparedLog,
    *,
    output: AnyPath | None = None,
    dev: DevSource | LabelledPairs | None = None,
    start_from: AnyPath | SentenceEncoder | PairScorer | None = None,
    vectors: AnyPath | WordVectors | None = None,
    teacher: AnyPath | TextEncoder | None = None,
    replay: Replayed | None = None,
    catalogue: Titles | None = None,
    labels: bool = False,
    preset: str | None = None,
    resume: bool = False,
    force: bool = False,
    skip_bad_lines: bool = False,
    seeds: int = 1,
    threads: int | None = None,
    dask: Dask | None = None,
    checkpoint_seconds: float = 60.0,
    on_progress: Callable[[Progress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    **settings: Any,
) -> SentenceEncoder | PairScorer:
    """Train a model on a click log: two towers, or a pair model.

    Parameters
    ----------
    pairs : path, ClickLog, table, list of pairs, LabelledPairs or PreparedLog
        A path: see `read_click_log`, or, for two towers, the folder of `prepare_log`; with
        ``labels`` see `read_labelled_pairs`. A table of pandas, Polars or pyarrow has the columns
        query and title, and may have clicks; for other names see `ClickLog.from_frame`. A list has
        ``(query, title)`` or ``(query, title, clicks)``.
    output : path, optional
        The model folder to write. Without it nothing is written.
    dev : path, share, JudgedSet, ClickLog or LabelledPairs, optional
        Measures the model after every epoch; the result is the model of the best epoch.
        Without ``dev`` it is the model of the last epoch. A folder is a judged set, measured by
        NDCG@1. A file, or a `ClickLog`, holds held-out clicks, for which all titles of the log and
        of the file are ranked, measured by MRR@10. A share such as 0.05 or "5%" holds out the
        clicks of that share of the log's queries, those that ``split_log(pairs, dev, test=0)``
        holds out. A pair model needs a judged set. For labelled pairs it is another set of them,
        measured by accuracy.
    start_from : path, SentenceEncoder or PairScorer, optional
        A model whose weights and vocabulary the training starts from; it is not changed. Its
        settings are the defaults of ``model``, the model's shape and ``shared_towers``; separate
        towers may start from a shared one. If it is a ``bag`` and another ``model`` is trained, its
        rows are word vectors: the input weights start as ``rows Q``, where Q is random, from the
        seed, with the variance 1 / dim, or the identity for numbers that are only added up or
        averaged, if there are as many: ``bag_dim``, ``hidden`` of a ``dan``, ``cells`` of an
        ``irnn`` without ``bag_dim``. The word vectors and Q are then trained as one matrix.
        Features of the log that the word vectors lack are not read.

        A model with letter trigrams that trains the same encoder *continues*: features of the log
        that it lacks join its vocabulary, with rows that start at zero. A word needs
        ``word_features`` uses in this log: by default 3, or 0 (none are added) if the model has no
        words. With Adam the defaults are 3 epochs and a learning rate of 0.002. At the end
        ``on_note`` gets the dev figures before and after, and how many queries kept their first
        title.

        A pair model starts from a pair model and keeps its vocabulary, or takes the words of two
        towers as word vectors: those of both towers, one after the other, fixed unless
        ``train_vectors`` is set.
    vectors : path or WordVectors, optional
        Word vectors; see `read_word_vectors`. For two towers their principal components are
        features of a word, in addition to its trigrams. A word that the log lacks then still has a
        vector if it is in ``vectors``. Words are lower-cased; a word that has no vector takes that
        of the word without the quotes, brackets, commas and the like around it. A pair model reads
        words as these vectors, which are fixed unless ``train_vectors`` is set; without them, and
        without ``start_from``, words are read as trained letter trigrams.

        For two towers, ``vector_dim`` is the number of components, by default 48, or all dimensions
        if the vectors have fewer. ``vector_words``, by default 100,000, says how many words of
        ``vectors``, from the first on, the model keeps; it keeps the words of the log whatever
        their place.
    teacher : path, name or object, optional
        Another ranker or embedding that the model learns from besides the clicks.

        For two towers, an embedding whose cosines they learn: a model folder, anything that
        `fit_ranker` takes as an embedding, or an object with ``encode_query`` and
        ``encode_document``. It reads the queries and titles of the log once, before the first
        epoch; the trained model does without it. What the softmax of a pair should be is then in
        part the teacher's own softmax over the titles of the mini-batch, and for the rest the
        clicked title. The teacher's part is ``teacher_share`` times its probability of the clicked
        title. This needs the objective softmax and all titles of the mini-batch as negatives.

        For a pair model, what lists hard negatives before the first epoch: "bm25", a folder of two
        towers, or a `SentenceEncoder`.
    replay : path, ClickLog, table or list of pairs, or (one of these, float), optional
        An older click log, and the share of its pairs to train on too, above 0 and at most 1, by
        default 1. The seed draws them, once for all epochs. The clicks of a pair in both logs are
        summed. Lines of a file with the id of a title are clicks on the title that ``catalogue``
        has for it.
    catalogue : path, dict or sequence of str, optional
        Titles, {id: title}, or a file of ``id<TAB>title`` lines: ranked for held-out clicks
        together with the titles of the log. Titles without clicks are not trained on.
    labels : bool
        For a pair model: ``pairs`` is a file of labelled pairs.
    preset : {"paper", "large"}, optional
        Other defaults: the paper's, or those of a wider model that takes a few minutes to train.
        Pair models have ``"paper"`` only.
    resume : bool
        Continue from the newest checkpoint in ``output``, to the same bits as a run that was never
        stopped. Without a checkpoint, start from the beginning.
    force : bool
        Replace a model that is in ``output``.
    skip_bad_lines : bool
        Count malformed lines of the log instead of stopping at the first.
    seeds : int
        How many models are trained, from 1 to 8. The first has the setting ``seed``, every other
        the next seed. The result is their average, see `SentenceEncoder.average`; its ``history``
        is empty, and ``training`` has the dev figures of every member and of the average. All
        hold out the same queries, and replay the pairs that the first seed draws. Not for pair
        models.
    threads : int, optional
        By default one per processor. The result is the same for any number.
    dask : str or client of Dask, optional
        A cluster whose workers train the ``parts`` of the log or, with one part, several ``seeds``
        at the same time: "local", "local:N" or "tcp://HOST:PORT". The result is the same without
        it.
    checkpoint_seconds : float
        Seconds between checkpoints, and at least 20 times as many as the last one took; 0 writes
        one after every mini-batch.
    on_progress : function of a `Progress`, optional
        Called after every mini-batch and every epoch.
    on_note : function of a str, optional
        Called with each message about the training.
    **settings
        See `Settings`; for a pair model `PairSettings`.

    Returns
    -------
    SentenceEncoder or PairScorer

    Raises
    ------
    SentembError
        For bad settings or data, a place that cannot be written, or a training that diverges.
    sentemb.training.stopping.Interrupted
        After Ctrl-C or SIGTERM, once the checkpoint is written.
    """
    run = Run(
        output,
        resume,
        force,
        threads,
        checkpoint_seconds,
        on_progress or _ignore,
        on_note or _ignore,
    )
    is_labelled = labels or isinstance(pairs, LabelledPairs)
    inputs = Inputs(
        pairs,
        dev,
        start_from,
        vectors,
        settings.pop("vector_dim", None),
        settings.pop("vector_words", None),
        teacher,
        replay,
        catalogue,
        is_labelled,
        whole("seeds", seeds, 1, MOST_SEEDS),
        skip_bad_lines,
        dask,
    )
    name = settings.get("model") or model_of(start_from)
    family = FAMILIES[0] if name is None else family_of(name)
    # Labelled pairs for dev alone are for pair models too.
    labelled_dev = isinstance(dev, LabelledPairs)
    family.check(replace(inputs, labels=is_labelled or labelled_dev), settings)
    if name is not None:
        settings["model"] = name
    trained: Any = family.train(inputs, preset, settings, run)
    return trained


def model_of(start_from: object) -> str | None:
    """The name of the pair model that a training starts from; None for anything else.

    Two towers may start another model, whose name is then given.
    """
    if isinstance(start_from, PairScorer):
        return start_from.model.name
    if isinstance(start_from, str | os.PathLike):
        return stored_pair_model(start_from)
    return None


def _ignore(report: object) -> None:
    pass
