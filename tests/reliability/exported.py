"""Exported pages in int8, as they are by default, against the index they are made of."""

import json
import random
import tempfile
import warnings
from pathlib import Path

import numpy as np
from browsers import NodePage
from helpers import made_up_log, made_up_model

from reliability.count import Count
from sentemb import Index
from sentemb.bridges.export.targets import export
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.confidence import Confidence
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

# Of a cosine: int8 turns the vector of a query so that its cosine with its own is at least 0.999.
_TURNED = 0.045
_MODELS = ("lstm", "rnn", "bag", "dssm", "bilstm")
_K = 1000
_ASK = """async (told) => {
  const answers = [];
  for (const query of JSON.parse(told)) answers.push(await engine.search(query, 1000));
  return JSON.stringify(answers);
}"""


def exported(n: int, seed: int = 0) -> Count:
    """``n`` pages in int8, of indexes of any type: every score of the page is near the index's."""
    count = Count("queries of pages in int8")
    furthest, shared = 0.0, []
    for number in range(n):
        rng = random.Random(f"{seed}:{number}")
        index = _made(rng)
        asked = _asked(rng, index)
        with tempfile.TemporaryDirectory() as place:
            page = Path(place, "page.html")
            export(index, page, "page", min_queries=1)
            answers = json.loads(NodePage(page).evaluate(_ASK, json.dumps(asked)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some texts have no words
            expected = index.search(asked, _K)
        weights = index.recipe.weights
        most = _TURNED * sum(abs(weights.get(name, 0)) for name in ("cosine", "memory")) + 1e-6
        for query, answer, hits in zip(asked, answers, expected, strict=True):
            count.tried += 1
            wrong, off = _differing(answer["hits"], hits, most)
            furthest = max(furthest, off / most * _TURNED)
            if wrong:
                count.failures.append(f"seed {seed}, {number}, {query!r}: {wrong}")
            first = [{one["id"] for one in answer["hits"][:10]}, {hit.id for hit in hits[:10]}]
            shared.append(len(first[0] & first[1]) / max(1, len(first[1])))
    count.notes.append(
        f"scores differ by at most {furthest:.4f} per weight, {_TURNED} allowed; "
        f"{np.mean(shared):.4f} of the first ten titles are the same"
    )
    return count


def _made(rng):
    log = made_up_log(rng.choice((60, 150)), seed=rng.randrange(1000))
    variant = rng.choice(_MODELS), {}
    made = made_up_model(variant, [*log.queries, *log.titles], cells=24, dtype=np.float32)
    weights = {"cosine": 1.0}
    if rng.random() < 0.8:
        weights = {"cosine": 1.0, "memory": 0.8, "bm25": 0.3, "clicks": 0.5, "name": 0.7}
    ranker = HybridRanker(made, Recipe(weights), ClickedQueries.of(log), threads=1)
    titles = [*log.titles, "...", "\u6771\u4eac \u30db\u30c6\u30eb"]
    dtype = rng.choice(("int8", "int8", "float16", "float32"))
    index = Index.build(ranker, titles, dtype=dtype, threads=1)
    index.confidence = Confidence(-2.0, 3.5, 100, 0.1, 0.2)
    return index


def _asked(rng, index):
    """Queries of the log, of titles, of no words, and of an id."""
    known = rng.sample(index.ranker.clicks.queries, 10)
    titles = rng.sample([*index.titles], 5)
    return [*known, *titles, f"{titles[0]} {known[0]}", "qqqq", "", index.ids[3]]


def _differing(answers, hits, most):
    """What of a page's answer is not that of the index, and by how much scores differ."""
    own = {hit.id: hit for hit in hits}
    if {one["id"] for one in answers} != own.keys():
        return f"{len(answers)} titles, not the {len(hits)} of the index", 0.0
    off = max((abs(one["score"] - own[one["id"]].score) for one in answers), default=0.0)
    if off > most:
        return f"a score is {off:.4f} from that of the index", off
    for one, hit in zip(answers, hits, strict=True):
        # Titles that change places have scores as near.
        if abs(own[one["id"]].score - hit.score) > 2 * most:
            return f"{one['id']} in the place of {hit.id}", off
    if hits and (answers[0]["confidence"] is None) != (hits[0].confidence is None):
        return "a confidence of one alone", off
    return None, off
