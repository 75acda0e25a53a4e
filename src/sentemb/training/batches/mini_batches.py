"""Mini-batches: the texts of some pairs, and the titles that compete with the clicked ones."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.negatives import draw_negatives
from sentemb.text.batch import TextBatch
from sentemb.training.batches.corpus import Corpus
from sentemb.training.negative_options import ALL
from sentemb.training.objectives.candidates import BatchCandidates, Candidates, ListedCandidates

if TYPE_CHECKING:
    from sentemb.training.towers.settings import Settings


class DrawSettings(Protocol):
    """Settings that say where negatives come from."""

    @property
    def negatives(self) -> str: ...
    @property
    def n_negatives(self) -> Any: ...
    @property
    def seed(self) -> int: ...


@dataclass(frozen=True)
class MiniBatch:
    """Texts, candidates and weights of one update.

    queries, titles : with shared towers the same object: all texts, queries first
    weights : (n_pairs,), the weight of each pair; they sum to 1
    """

    queries: TextBatch
    titles: TextBatch
    candidates: Candidates
    weights: NDArray[np.float64]


def mini_batch(
    corpus: Corpus,
    pairs: NDArray[np.integer],
    settings: "Settings",
    epoch: int,
    step: int,
    hard_titles: NDArray[np.int32] | None = None,
    leads: NDArray[np.bool_] | None = None,
) -> MiniBatch:
    """The mini-batch of some pairs. Seed, epoch and step decide its negatives.

    ``pairs`` (k,) are numbers in the log; ``epoch`` and ``step`` count from 0. Of ``hard_titles``
    (n_queries, m), the hard negatives of every query with -1 where there are fewer,
    ``settings.hard_negatives`` drawn for each pair join the titles, only where all titles are
    candidates. ``leads`` (k,) are the pairs that hard negatives are drawn for; by default all.
    """
    queries, pair_queries = corpus.query_numbers.distinct(corpus.query_index[pairs])
    clicked = corpus.title_index[pairs]
    candidates: Candidates
    if settings.n_negatives == ALL:
        competing = clicked
        if hard_titles is not None:
            drawing = pairs if leads is None else pairs[leads]
            drawn = _draw_hard(corpus, drawing, hard_titles, settings, epoch, step)
            competing = np.concatenate([clicked, drawn])
        titles, title_index = corpus.title_numbers.distinct(competing)
        offsets, excluded = corpus.other_clicks(pairs, titles)
        targets = None
        if corpus.teacher is not None:
            targets = corpus.teacher.targets(corpus.query_index[pairs], titles)
        candidates = BatchCandidates(
            pair_queries, title_index[: clicked.size], offsets, excluded, targets
        )
    else:
        offsets, drawn = draw_candidates(corpus, pairs, clicked, settings, epoch, step)
        titles, title_index = corpus.title_numbers.distinct(drawn)
        candidates = ListedCandidates(pair_queries, offsets, title_index)
    weights = corpus.weights[pairs]
    return MiniBatch(
        *corpus.texts_of_both(queries, titles),
        candidates,
        weights / weights.sum(),
    )


def _draw_hard(
    corpus: Corpus,
    pairs: NDArray[np.integer],
    hard_titles: NDArray[np.int32],
    settings: "Settings",
    epoch: int,
    step: int,
) -> NDArray[np.int32]:
    rng = np.random.default_rng([settings.seed, epoch, step])
    size = pairs.size, settings.hard_negatives
    columns = rng.integers(hard_titles.shape[1], size=size)
    drawn = np.take_along_axis(hard_titles[corpus.query_index[pairs]], columns, axis=1)
    return drawn[drawn >= 0]


def draw_candidates(
    corpus: Corpus,
    pairs: NDArray[np.integer],
    clicked: NDArray[np.int32],
    settings: DrawSettings,
    epoch: int,
    step: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw the negatives of some pairs.

    Returns offsets (k + 1,) and titles (n,): the candidates of each pair, its clicked title first.
    """
    pool = clicked
    if settings.negatives == "corpus":
        pool = np.arange(corpus.n_titles, dtype=np.int32)
    if settings.negatives == "log":
        spans = [np.arange(*corpus.skipped_offsets[[p, p + 1]]) for p in pairs]
        skipped_offsets = np.cumsum([0] + [span.size for span in spans], dtype=np.int64)
        skipped = corpus.skipped[np.concatenate(spans)]
    else:
        skipped_offsets = np.zeros(pairs.size + 1, np.int64)
        skipped = np.zeros(0, np.int32)
    seed = np.random.SeedSequence([settings.seed, epoch, step]).generate_state(1, np.uint64)[0]
    offsets, titles = draw_negatives(
        corpus.query_index[pairs],
        clicked,
        pool,
        skipped_offsets,
        skipped,
        settings.n_negatives,
        corpus.query_offsets,
        corpus.sorted_titles,
        seed,
    )
    return offsets, titles
