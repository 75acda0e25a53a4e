"""Random sequences of changes of an index, each step against an index that is newly made.

After each step the index finds what an index of the same titles, ids, fields and ranker finds, with
the same confidence; what is refused is refused with the same words, and changes nothing. Segments
are joined late, so that there are many. A writer that is killed leaves the old folder or the new
one. A step is one change of any kind, or `CHANGES` that add, remove and sync titles.
"""

import copy
import os
import pickle
import random
import sys
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from helpers import made_up_model

from reliability.count import Count
from reliability.indexes import QUERIES, WORDS
from reliability.samples import ALL_PARTS
from sentemb import Index, SentembError
from sentemb.data.click_log import ClickLog
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search import segment
from sentemb.search.index_tuning import calibrate, tune
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE
from sentemb.search.sharded_index import ShardedIndex

_STEPS = 20
CHANGES = 50
_TITLES, _FEW_LEFT = 50, 8
_WEIGHTS = (-0.5, 0.0, 0.3, 1.0, 2.0)


def sequences(n: int, seed: int = 0) -> Count:
    """``n`` sequences of `_STEPS` steps."""
    return _run(Count("steps of random sequences of changes"), n, seed, _Sequence.step, 1)


def changes(n: int, seed: int = 0) -> Count:
    """At least ``n`` changes of titles, compared after every `CHANGES`."""
    count = Count("random changes of titles")
    n_steps = -(-n // CHANGES)
    n_sequences = -(-n_steps // _STEPS)
    return _run(count, n_sequences, seed, _Sequence.changes, CHANGES, min(_STEPS, n_steps))


def _run(count, n, seed, step, changes_of_step, n_steps=_STEPS):
    seen: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as place:
        for number in range(n):
            sequence = _Sequence(random.Random(f"{seed}:{number}"), Path(place) / str(number))
            steps = []
            for _ in range(n_steps):
                with mock.patch.multiple(segment, _FEW=0, _TIMES=sequence.times):
                    wrong = step(sequence)
                steps.append(sequence.said)
                count.tried += changes_of_step
                seen[sequence.said] = seen.get(sequence.said, 0) + 1
                if wrong:
                    count.failures.append(f"seed {seed}, {number}: {', '.join(steps)}: {wrong}")
                    break
    count.notes.append(", ".join(f"{name} {times}" for name, times in sorted(seen.items())))
    return count


class _Sequence:
    """An index, and what it must hold."""

    def __init__(self, rng, folder):
        self._rng, self._folder = rng, folder
        self.said = ""
        self._dtype = rng.choice(("float32", "float16", "int8"))
        # From segments that are joined at once to such that are joined late.
        self.times = rng.choice((0.2, 1, 3, 10))
        self._made, self._seasons = 0, {}
        self._rows = dict(self._new() for _ in range(_TITLES))
        titles = [*self._rows.values()]
        model = made_up_model(("bag", {}), WORDS, cells=6, dtype=np.float32)
        clicks = ClickedQueries.of(self._clicks(titles))
        ranker = HybridRanker(model, ALL_PARTS, clicks, threads=1)
        self._index = Index.build(
            ranker, titles, [*self._rows], self._fields(), dtype=self._dtype, threads=1
        )
        self._confidence = None

    def step(self):
        """Make a change; what is wrong then, or None."""
        change = self._rng.choice(
            (self._add, self._remove, self._sync, self._tune, self._calibrate, self._calibrate,
             self._weigh, self._save, self._copy, self._kill, self._add, self._remove, self._sync)
        )  # fmt: skip
        self.said = change.__name__[1:]
        anew = self._anew()
        wrong = change(anew)
        return wrong or self._differing(self._anew())

    def changes(self):
        """Make `CHANGES` changes of titles; what is wrong then, or None."""
        for _ in range(CHANGES):
            change = self._rng.choice((self._add, self._remove, self._sync))
            (change if len(self._rows) >= _FEW_LEFT else self._add)(None)
        self.said = self._rng.choice(("changes", "changes, saved", "changes, copied"))
        if self.said != "changes":
            (self._save if self.said == "changes, saved" else self._copy)(None)
        return self._differing(self._anew())

    def _anew(self):
        """An index of what must be there."""
        made = Index.build(
            self._index.ranker,
            [*self._rows.values()],
            [*self._rows],
            self._fields(),
            dtype=self._dtype,
            threads=1,
        )
        made.confidence = self._confidence
        return made

    def _differing(self, other):
        index = self._index
        if dict(zip(index.ids, index.titles, strict=True)) != self._rows:
            return "other titles"
        if [*index.ids] != [*self._rows]:
            return "the titles in another order"
        if index.confidence != self._confidence:
            return f"the confidence {index.confidence}, not {self._confidence}"
        half = len(index) // 2
        halves = copy.copy(index), copy.copy(index)
        halves[0].remove([*index.ids][half:])
        halves[1].remove([*index.ids][:half])
        both = ShardedIndex(dict(zip("ab", halves, strict=True)), 1)
        limits = {"where": "price < 30", "sort": "price", "facets": ["brand", "price"]}
        for how in ({}, limits, {"everything": True}, {"cosine": True}):
            expected = _told(other, how)
            if _told(index, how) != expected:
                return f"other results, {how}"
            if _told(both, how) != expected:
                return f"other results of two indexes, {how}"
        if (index.n_empty, index.fields.facets) != (other.n_empty, other.fields.facets):
            return "other numbers of titles without known words, or facets"
        ids = [*self._rows][:3]
        if index.explain(QUERIES[0], ids) != other.explain(QUERIES[0], ids):
            return "other explanations"
        return None

    # -- what there is --------------------------------------------------------------------

    def _new(self):
        """An id that no title had, and a text that another may have."""
        self._made += 1
        words = self._rng.choices(WORDS, k=self._rng.randrange(1, 5))
        return f"p{self._made}", " ".join(words)

    def _fields(self, rows=None):
        rows = self._rows if rows is None else rows
        numbers = [7 * self._seasons.get(id, 0) + int(id[1:]) for id in rows]
        return {
            "price": [float(number % 60) for number in numbers],
            "brand": [("Acme", "Bolt", None)[number % 3] for number in numbers],
        }

    def _clicks(self, titles):
        """Queries of a title's words and others, some of them clicked elsewhere."""
        return ClickLog.from_pairs(
            [
                (
                    " ".join(self._rng.sample(title.split(), 1) + self._rng.choices(WORDS, k=2)),
                    title if self._rng.random() < 0.7 else self._rng.choice(titles),
                )
                for title in self._rng.choices(titles, k=60)
            ]
        )

    # -- changes --------------------------------------------------------------------------

    def _add(self, anew):
        rows = dict(self._new() for _ in range(self._rng.randrange(1, 6)))
        self._index.add([*rows.values()], [*rows], fields=self._fields(rows))
        self._rows |= rows

    def _remove(self, anew):
        most = min(6, len(self._rows) - 1)
        gone = self._rng.sample([*self._rows], self._rng.randrange(1, most + 1))
        self._index.remove(gone)
        for id in gone:
            del self._rows[id]

    def _sync(self, anew):
        old = dict(self._rows)
        for id in self._rng.sample([*old], min(4, len(old) - 1)):
            del old[id]
        given = list(old.items())
        self._rng.shuffle(given)
        changed = {id: self._new()[1] for id, _ in given[: self._rng.randrange(4)]}
        wanted = dict(given) | changed | dict(self._new() for _ in range(self._rng.randrange(6)))
        for id in self._rng.sample([*wanted], self._rng.randrange(3)):
            self._seasons[id] = self._seasons.get(id, 0) + 1
        self._index.sync([*wanted.values()], [*wanted], fields=self._fields(wanted))
        stays = {id: title for id, title in self._rows.items() if wanted.get(id) == title}
        self._rows = stays | {id: title for id, title in wanted.items() if id not in stays}

    def _tune(self, anew):
        clicks = self._clicks([*self._rows.values()])
        wrong = self._both(tune, anew, clicks)
        if self._index.ranker.recipe.weights != anew.ranker.recipe.weights:
            return "other weights than of the index newly made"
        if not self.said.endswith("refused"):
            self._confidence = None
        return wrong

    def _calibrate(self, anew):
        wrong = self._both(calibrate, anew, self._clicks([*self._rows.values()]))
        if not self.said.endswith("refused"):
            self._confidence = anew.confidence
        return wrong

    def _both(self, change, anew, clicks):
        """Make a change to both indexes: both are changed or both refuse."""
        refusals = []
        for index in (self._index, anew):
            try:
                change(index, clicks)
                refusals.append(None)
            except SentembError as error:
                refusals.append(str(error))
        if refusals[0] is not None:
            self.said += " refused"
        return None if refusals[0] == refusals[1] else f"refused otherwise: {refusals}"

    def _weigh(self, anew):
        index, recipe = self._index, ALL_PARTS
        if self._rng.random() < 0.2:
            recipe = MODEL_ALONE
        else:
            weights = {name: self._rng.choice(_WEIGHTS) for name in ("cosine", "memory", "bm25")}
            recipe = ALL_PARTS.weighted({**weights, "clicks": 0.5})
        before = index.snapshot
        ranker = HybridRanker(index.model, recipe, index.ranker.clicks, threads=1)
        index.adopt(index.ranked_by(ranker), before)
        self._confidence = None

    def _save(self, anew):
        self._index.save(self._folder, force=True)
        Index.verify(self._folder)
        self._index = Index.open(self._folder, 1)

    def _kill(self, anew):
        """Save in another process that is killed."""
        before = Index.open(self._folder, 1) if self._folder.exists() else None
        left = self._rng.randrange(4000)

        def count(frame, event, _):
            nonlocal left
            left -= "/sentemb/" in frame.f_code.co_filename
            if left < 0:
                os._exit(1)

        child = os.fork()
        if not child:
            sys.setprofile(count)
            self._index.save(self._folder, force=True)
            os._exit(0)
        is_done = not os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if not self._folder.exists():
            return "nothing was written" if is_done or before else None
        Index.verify(self._folder)
        found = Index.open(self._folder, 1)
        if before is not None and found.snapshot.source == before.snapshot.source and not is_done:
            return None
        self._index = found
        return None

    def _copy(self, anew):
        make = self._rng.choice((copy.copy, lambda index: pickle.loads(pickle.dumps(index))))
        left, self._index = self._index, make(self._index)
        left.remove([*left.ids][:1])  # changes nothing for the copy


def _told(index, how):
    """All that a search says."""
    return [
        (list(hits), hits.reason, hits.facets, hits.did_you_mean, list(hits.nearest))
        for hits in index.search([*QUERIES, "redd hat", "coat gown"], 60, **how)
    ]
