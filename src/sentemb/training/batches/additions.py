"""Inputs of a training in addition to its click log: an older log to replay, and a catalogue.

Titles without clicks are ranked for held-out clicks, and not trained on. As negatives they fall
behind for the queries that they would answer (docs/results/fresh.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog, ClickLogBuilder, Clicks, clean_text
from sentemb.data.judged_set import read_texts
from sentemb.errors import SentembError
from sentemb.system.bounds import is_number
from sentemb.system.files import place_name
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_texts
from sentemb.training.run import read_log

Replayed: TypeAlias = Clicks | tuple[Clicks, float]
Titles: TypeAlias = AnyPath | Sequence[str] | Mapping[str, str]

# A part of the key of the random numbers, so that no other draw shares them.
_KEY = 0x7265


@dataclass(frozen=True, eq=False)
class Additions:
    """An older log and a catalogue.

    old : some of its pairs are mixed in
    share : which part of its pairs, above 0 and at most 1
    titles : a catalogue, ranked for held-out clicks together with the titles of the log
    ids : their ids, if the catalogue has them
    """

    old: Clicks | None = None
    share: float = 1.0
    titles: list[str] | None = None
    ids: list[str] | None = None

    @property
    def names(self) -> dict[str, str]:
        """The title of each id of the catalogue, if it has ids."""
        return dict(zip(self.ids, self.titles or (), strict=True)) if self.ids else {}

    @classmethod
    def of(cls, replayed: Replayed | None, catalogue: Titles | None) -> Self:
        """The additions that `sentemb.train` is given as ``replay`` and ``catalogue``.

        Raises `SentembError` for a wrong share, or a catalogue that cannot be read.
        """
        pair = replayed if isinstance(replayed, tuple) else (replayed, 1.0)
        if len(pair) != 2:
            raise SentembError(f"replay has {len(pair)} parts; give a log, or (log, share)")
        old, share = pair
        if not (is_number(share) and 0 < share <= 1):
            raise SentembError(
                f"the share of the log to replay is {share}; give a number above 0 and at most 1"
            )
        titles = ids = None
        if isinstance(catalogue, str | os.PathLike):
            ids, titles = read_texts(catalogue)
            if not titles:
                raise SentembError(f"{place_name(catalogue)}: is empty; write lines id<TAB>title")
        elif isinstance(catalogue, Mapping):
            ids, titles = as_texts(list(catalogue)), as_texts(list(catalogue.values()))
        elif catalogue is not None:
            titles = as_texts(catalogue)
        if titles is not None:
            titles = [
                clean_text(title, f"title {number} of the catalogue")
                for number, title in enumerate(titles, 1)
            ]
        return cls(old, share, titles, ids)

    def with_replay(
        self, log: ClickLog, seed: int, skip_bad_lines: bool, note: Callable[[str], None]
    ) -> ClickLog:
        """``log`` with the pairs of the older log; ``log`` itself is not changed.

        ``seed`` decides which pairs of the older log are drawn, once for the whole training.
        ``skip_bad_lines`` and ``note`` are for reading the older log.
        """
        if self.old is None:
            return log
        old = read_log(self.old, skip_bad_lines, "batch", note, "replay", self.names)
        count = max(1, round(self.share * old.clicks.size))
        drawn = np.random.default_rng([seed, _KEY]).permutation(old.clicks.size)[:count]
        return _joined(log, old, np.sort(drawn))


def _joined(log: ClickLog, old: ClickLog, drawn: NDArray[np.int64]) -> ClickLog:
    """``log``, then the pairs ``drawn`` of ``old``; the clicks of a pair in both are summed."""
    builder = ClickLogBuilder()
    for source, pairs in ((log, np.arange(log.clicks.size)), (old, drawn)):
        for pair in pairs.tolist():
            first, end = source.skipped_offsets[pair], source.skipped_offsets[pair + 1]
            builder.add(
                source.queries[source.query_index[pair]],
                source.titles[source.title_index[pair]],
                int(source.clicks[pair]),
                [source.titles[title] for title in source.skipped_index[first:end]],
            )
    return builder.build(log.bad_lines + old.bad_lines)
