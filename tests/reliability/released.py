"""Folders that a released version wrote, damaged: each later version reads or refuses them.

What is read without a word about damage gives the results that the release gave.
"""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
from helpers import assert_same_output

from reliability.count import Count
from reliability.fuzz import Attack, Judge, Reader, attacked

RELEASED = Path(__file__).parents[1] / "released"
# As in tests/test_released.py: other processors round otherwise.
_TOLERANCE = 1e-4
QUERIES = ["cheap hotel in oslo", "rent a bike"]
TITLES = ["Affordable lodging in Oslo", "Bicycle hire in Ghent"]


def released(n: int, seed: int = 0, workers: int | None = None) -> Count:
    """``n`` damaged files of released versions, from ``seed``."""
    failures, tally = attacked(n, seed, kind="released", workers=workers)
    count = Count("damaged files of released versions", tried=n)
    count.failures = [f"seed {seed}, case {number}: {text}" for number, text in failures]
    count.notes = [f"{number} were {what}" for what, number in sorted(tally.items())]
    return count


class Released(Attack):
    """Copies of the folders of all releases, and what damages and reads them."""

    seconds = 5  # a prepared log is trained on

    def __init__(self, home):
        Judge.__init__(self, home)
        for path in RELEASED.iterdir():
            if path.is_dir():
                shutil.copytree(path, path.name)
        self.readers = [
            Reader(files, read, weight=len(files))
            for release in sorted(Path().iterdir())
            for name, read in (
                ("model", self._read_ranked),
                ("pairs", self._read_scores),
                ("sif", self._read_scores),
                ("index", self._read_index),
                ("prepared", self._read_prepared),
            )
            if (files := _files(release / name))
        ]
        self.pristine = {
            name: Path(name).read_bytes() for reader in self.readers for name in reader.files
        }
        self.others = [*self.pristine.values(), b"", b"\n", b"{}\n", gzip.compress(b"a\tb\n")]
        self.known = {}
        for reader in self.readers:
            wrong = reader.read(reader.files[0], False)
            assert wrong is None, wrong
        self.arm()

    def _same(self, folder, found):
        """What is wrong with what a folder gives, where its files have not said so."""
        if not all(np.isfinite(np.array(own, float)).all() for own in found["numbers"]):
            return "numbers that are not finite"
        told = json.dumps(found)
        try:
            assert_same_output(self.known.setdefault(folder, told), told, tolerance=_TOLERANCE)
        except AssertionError:
            return "other results, without a word"
        return None

    def _read_scores(self, name, repaired):
        from sentemb import load

        folder = Path(*Path(name).parts[:2])
        model = load(folder, threads=1)
        found = {"numbers": [model.score(query, TITLES).tolist() for query in QUERIES]}
        return None if repaired else self._same(folder, found)

    def _read_ranked(self, name, repaired):
        from sentemb import load_ranker

        folder = Path(*Path(name).parts[:2])
        found = {"numbers": [], "ranked": load_ranker(folder, threads=1).rank(QUERIES, TITLES)}
        wrong = None if repaired else self._same(f"{folder} ranked", found)
        return self._read_scores(name, repaired) or wrong

    def _read_index(self, name, repaired):
        from sentemb import Index, SentembError

        folder = Path(*Path(name).parts[:2])
        index = Index.open(folder, 1)
        found = [
            [hit for hits in index.search(QUERIES, 3, **more) for hit in hits]
            for more in ({}, {"where": "price < 20 and brand = 'Elm'", "sort": "price"})
        ]
        told = {
            "numbers": [[hit.score for hit in hits] for hits in found],
            "hits": [[(hit.id, hit.title, dict(hit.fields)) for hit in hits] for hits in found],
        }
        wrong = self._same(folder, told)
        if wrong is not None:
            try:
                Index.verify(folder)
            except SentembError:
                wrong = None
        index.add(["Oslo castles"], ["new"])
        index.save("saved-index", force=True)
        return None if repaired else wrong

    def _read_prepared(self, name, repaired):
        from sentemb import PreparedLog, train

        folder = Path(*Path(name).parts[:2])
        log = PreparedLog.open(folder)
        trained = train(log, cells=3, epochs=1, batch_size=16, threads=1)
        found = {"numbers": [[line["loss"] for line in trained.history]]}
        return None if repaired else self._same(folder, found)


def _files(folder):
    return tuple(str(path) for path in sorted(folder.rglob("*")) if path.is_file())
