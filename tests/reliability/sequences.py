"""Random sequences of changes of an index, each step against an index that is newly made.

After each step the index finds what an index of the same titles, ids, fields and ranker finds, with
the same confidence; what is refused is refused with the same words, and changes nothing.
"""

import copy
import pickle
import random
import tempfile
from pathlib import Path

import numpy as np
from helpers import made_up_model

from reliability.count import Count
from reliability.indexes import QUERIES, WORDS
from reliability.samples import ALL_PARTS
from sentemb import Index, SentembError
from sentemb.data.click_log import ClickLog
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index_tuning import calibrate, tune
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE

_STEPS = 20
_TITLES = 50
_WEIGHTS = (-0.5, 0.0, 0.3, 1.0, 2.0)


def sequences(n: int, seed: int = 0) -> Count:
    """``n`` sequences of `_STEPS` steps."""
    count = Count("steps of random sequences of changes")
    seen: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as place:
        for number in range(n):
            sequence = _Sequence(random.Random(f"{seed}:{number}"), Path(place) / str(number))
            steps = []
            for _ in range(_STEPS):
                wrong = sequence.step()
                steps.append(sequence.said)
                count.tried += 1
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
        self._texts = [""]
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
             self._weigh, self._save, self._copy)
        )  # fmt: skip
        self.said = change.__name__[1:]
        anew = self._anew()
        wrong = change(anew)
        return wrong or self._differing(self._anew())

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
        for how in ({}, {"where": "price < 30", "sort": "price"}, {"everything": True}):
            if index.search(QUERIES, 60, **how) != other.search(QUERIES, 60, **how):
                return f"other results, {how}"
        ids = [*self._rows][:3]
        if index.explain(QUERIES[0], ids) != other.explain(QUERIES[0], ids):
            return "other explanations"
        return None

    # -- what there is --------------------------------------------------------------------

    def _new(self):
        """An id and a text that no title had: of two with one text the first has the clicks."""
        text = ""
        while text in self._texts:
            text = " ".join(self._rng.choices(WORDS, k=self._rng.randrange(1, 5)))
        self._texts.append(text)
        return f"p{len(self._texts)}", text

    def _fields(self, rows=None):
        rows = self._rows if rows is None else rows
        return {"price": [float(int(id[1:]) % 60) for id in rows]}

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

    def _copy(self, anew):
        make = self._rng.choice((copy.copy, lambda index: pickle.loads(pickle.dumps(index))))
        left, self._index = self._index, make(self._index)
        left.remove([*left.ids][:1])  # changes nothing for the copy
