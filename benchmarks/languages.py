"""Languages without blanks between words: at white space, in pairs of letters, with letters too.

Reads ``languages/*.tsv`` of the data, lines query<TAB>title, splits each log with some seeds,
trains the defaults, and ranks all titles for each test query. Writes docs/results/languages.md.
What is in ``build/languages`` is not trained again.

    python benchmarks/languages.py [--data DIR]
"""

import argparse
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import systems
from pages import DATA, ROOT, write_tables

from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_texts
from sentemb.data.splitting import split_file
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.retrieval import words_and_stems
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.nearest import TitleVectors
from sentemb.system.tables import markdown_table
from sentemb.text.words import (
    BARE,
    LETTERED,
    WHITE_SPACE,
    plain_words,
    searched_pairs,
    searched_words,
)

BUILD = ROOT / "build" / "languages"
SEEDS = (0, 1, 2)
SHARE = 0.1
# How the model and how BM25 split texts.
WAYS = {
    "at white space": (WHITE_SPACE, plain_words),
    "pairs of letters": (BARE, searched_pairs),
    "letters and pairs": (LETTERED, searched_words),
}
_LATIN = re.compile(r"[A-Za-z]")


@contextmanager
def bm25_splits_by(words):
    """Let the BM25 of rankers split texts by the function ``words``."""
    with mock.patch.object(words_and_stems, "searched_words", words):
        words_and_stems.words_of.cache_clear()
        yield
    words_and_stems.words_of.cache_clear()


def measured(path, seed, way):
    """MRR@10 of each query by system, and whether the query has no Latin letter."""
    splitting, words = WAYS[way]
    folder = BUILD / path.stem / str(seed)
    if not (folder / "titles.tsv").exists():
        split_file(path, folder, SHARE, SHARE, seed=seed)
    titles = read_texts(folder / "titles.tsv")[1]
    train, dev, test = (read_click_log(folder / f"{part}.tsv") for part in ("pairs", "dev", "test"))
    with bm25_splits_by(words):
        kept = folder / splitting
        model = systems.trained(
            kept, folder / "pairs.tsv", folder / "dev.tsv", splitting=splitting, threads=None
        )
        ranker = systems.ranker_of(kept, train, dev, None, catalogue=titles)
        held_out = HeldOutClicks(test, titles, ("mrr@10",))
        found = {
            "model": held_out.evaluate(TitleVectors(model, titles)),
            "BM25": held_out.evaluate(TitleWords(titles, words=words)),
            "ranker": held_out.evaluate(ranker.over(titles)),
        }
    is_unmixed = np.array([not _LATIN.search(query) for query in held_out.clicks.queries])
    return {name: result.values[:, 0] for name, result in found.items()}, is_unmixed


def table(paths):
    """A row for each language, system and way to split texts."""
    rows = [["language", "texts are read", "queries", "model", "BM25", "ranker"]]
    for path in paths:
        for way in WAYS:
            runs = [measured(path, seed, way) for seed in SEEDS]
            for which in ("all", "without Latin letters"):
                chosen = [(values, is_unmixed | (which == "all")) for values, is_unmixed in runs]
                means = [
                    np.mean([values[name][use].mean() for values, use in chosen])
                    for name in ("model", "BM25", "ranker")
                ]
                number = round(np.mean([use.sum() for _, use in chosen]))
                queries = f"{number:,}, {which}"
                rows.append([path.stem, way, queries, *(f"{mean:.3f}" for mean in means)])
    return list(markdown_table(rows, left=3))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    folder = parser.parse_args().data / "languages"
    paths = sorted(folder.glob("*.tsv"))
    if not paths:
        sys.exit(f"{folder} has no *.tsv")
    write_tables("languages", {"MRR@10": table(paths)})


if __name__ == "__main__":
    main()
