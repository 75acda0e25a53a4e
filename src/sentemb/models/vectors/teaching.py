"""Word vectors by an embedding of texts: what it knows of each word alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import numpy as np

from sentemb.data.click_log import ClickLog
from sentemb.models.text_encoder import TextEncoder, checked_vectors, open_encoder
from sentemb.models.vectors.principal_components import PrincipalComponents
from sentemb.models.vectors.vector_options import TAUGHT_DIM, VECTOR_WORDS
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.paths import AnyPath
from sentemb.text.words import NEW, SPLITTINGS

# Words that are encoded at a time.
_TOGETHER = 1024


def teach_word_vectors(
    embedding: AnyPath | TextEncoder,
    log: ClickLog,
    *,
    words: Iterable[str] = (),
    dim: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> WordVectors:
    """Word vectors by an embedding: of each word alone, for `train` to take as ``vectors``.

    Parameters
    ----------
    embedding : path, name or object
        As the ``teacher`` of two towers in `train`.
    log : ClickLog
        All words of its queries and titles get a vector.
    words : iterable of str
        More words, the most frequent first, of which those that the log lacks follow. A model of
        two towers keeps 100,000 words by default, so no more words than that are taken.
    dim : int, optional
        Length of a vector. The vectors are the first principal components of those by the
        embedding, without the mean of all words. By default 128, or as many directions as they
        span.
    on_progress : callable, optional
        Called with the numbers of words that are encoded and of all.

    Returns
    -------
    WordVectors
        float32; the words of the log first, the most frequent of them at the front.

    Raises
    ------
    SentembError
        If the embedding cannot be opened, or its vectors span fewer than ``dim`` directions.
    """
    TAUGHT_DIM.checked(dim)
    name, encoder = open_encoder(embedding)
    chosen = _words(log, words)
    blocks = []
    for first in range(0, len(chosen), _TOGETHER):
        portion = chosen[first : first + _TOGETHER]
        blocks.append(checked_vectors(encoder.encode_document(portion), len(portion), name))
        if on_progress is not None:
            on_progress(first + len(portion), len(chosen))
    encoded = WordVectors(chosen, np.concatenate(blocks))
    named = Path(name).name or "the embedding"
    components = PrincipalComponents.of(encoded, dim or TAUGHT_DIM.default)
    components.expect(dim or 1, named, TAUGHT_DIM.name)
    vectors = np.empty((len(chosen), len(components.directions)), np.float32)
    for first, rows in components.turned(encoded):
        vectors[first : first + len(rows)] = rows
    return WordVectors(chosen, vectors, name=named, source=f"{named}, each word alone")


def _words(log: ClickLog, words: Iterable[str]) -> list[str]:
    """Those of the log, the most frequent first, then the first of ``words`` that it lacks."""
    uses: Counter[str] = Counter()
    for texts in (log.queries, log.titles):
        for text in texts:
            uses.update(SPLITTINGS[NEW](text))
    of_log = sorted(uses, key=lambda word: (-uses[word], word))
    lacking = (word for word in dict.fromkeys(map(str.lower, words)) if word and word not in uses)
    return [*of_log, *islice(lacking, max(0, VECTOR_WORDS.default - len(of_log)))]
