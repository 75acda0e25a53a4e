"""The inputs of a training: its log, and all that may come with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sentemb.system.paths import AnyPath

if TYPE_CHECKING:
    from sentemb.data.click_log import Clicks
    from sentemb.data.labelled_pairs import LabelledPairs
    from sentemb.data.prepared_log import PreparedLog
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.models.text_encoder import TextEncoder
    from sentemb.models.vectors.word_vectors import WordVectors
    from sentemb.system.cluster import Dask
    from sentemb.training.batches.additions import Replayed, Titles
    from sentemb.training.dev import DevSource


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs of a training; `sentemb.train` describes the attributes."""

    pairs: Clicks | LabelledPairs | PreparedLog
    dev: DevSource | LabelledPairs | None = None
    start_from: AnyPath | SentenceEncoder | PairScorer | None = None
    vectors: AnyPath | WordVectors | None = None
    vector_dim: int | None = None
    vector_words: int | None = None
    teacher: AnyPath | TextEncoder | None = None
    replay: Replayed | None = None
    catalogue: Titles | None = None
    labels: bool = False
    seeds: int = 1
    skip_bad_lines: bool = False
    dask: Dask | None = None
