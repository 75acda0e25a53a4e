"""Rankings by a model that scores pair by pair: of the candidates of a run, or of all titles."""

import itertools

import numpy as np
import pytest

from sentemb.errors import SentembError
from sentemb.evaluation import reranking
from sentemb.evaluation.fusion import fuse
from sentemb.evaluation.reranking import RunTitles, rank_pairs

QUERIES = {f"q{k}": f"query {k}" for k in range(7)}
TITLES = {f"t{k}": f"title {k}" for k in range(10)}


class Ranker:
    """Scores by the numbers in the texts, with ties; keeps which pairs it was asked for."""

    def __init__(self):
        self.asked = []

    def score_pairs(self, queries, titles, query_index, title_index):
        assert set(title_index) == set(range(len(titles))), "titles that no pair has"
        pairs = [(queries[q], titles[t]) for q, t in zip(query_index, title_index, strict=True)]
        self.asked.append(pairs)
        return np.array([score_of(query, title) for query, title in pairs])


def score_of(query, title):
    return (int(query.split()[1]) * 3 + int(title.split()[1]) * 7) % 5 / 2


def expected_ranking(wanted, top_k=None):
    """The run of the pairs in ``wanted``, query id -> title ids, by sorting in plain Python."""
    run = {}
    for query_id, title_ids in wanted.items():
        ranked = sorted((score_of(QUERIES[query_id], TITLES[t]), t) for t in title_ids)[::-1]
        if ranked:
            run[query_id] = [(id, score) for score, id in ranked][:top_k]
    return run


def as_lists(run):
    return {id: list(scores.items()) for id, scores in run.items()}


RUN = {
    "q1": {"t3": 1.0, "t2": 2.0, "t9": 1.0, "gone": 3.0, "t1": 1.0},
    "q0": {"t0": -5.0},
    "other": {"t1": 1.0, "t2": 1.0},
    "q4": {"gone": 1.0, "lost": 0.5},
    "q6": {f"t{k}": float(k) for k in range(10)},
}


def test_candidates_are_the_best_titles_of_a_run_that_have_a_text():
    found = RunTitles.of(RUN, list(QUERIES), list(TITLES), depth=3)
    lists = [
        [f"t{t}" for t in found.titles[low:high]]
        for low, high in itertools.pairwise(found.offsets.tolist())
    ]
    assert lists == [["t0"], ["t2", "t9", "t3"], [], [], [], [], ["t9", "t8", "t7"]]
    assert (found.n_without, found.n_unknown_queries, found.n_unknown_titles) == (4, 1, 3)
    assert RunTitles.of(RUN, list(QUERIES), list(TITLES), depth=99).titles.size == 15


def test_a_run_of_other_texts_is_refused():
    with pytest.raises(SentembError, match="none of the queries of the run has a text; give the q"):
        RunTitles.of(RUN, ["a", "b"], list(TITLES), 5)
    with pytest.raises(SentembError, match="none of the titles of the run has a text; give the t"):
        RunTitles.of(RUN, list(QUERIES), ["a", "b"], 5)


def test_depth_and_top_k_are_checked():
    with pytest.raises(SentembError, match="depth is 0; give an integer from 1"):
        RunTitles.of(RUN, list(QUERIES), list(TITLES), 0)
    with pytest.raises(SentembError, match="top_k is -1; give an integer from 0"):
        rank_pairs(Ranker(), QUERIES, TITLES, top_k=-1)


@pytest.mark.parametrize("top_k", [0, 1, 4])
@pytest.mark.parametrize("sizes", [None, (1, 1, 1), (25, 4, 3), (1, 3, 9)])
@pytest.mark.parametrize("depth", [None, 2])
def test_every_pair_is_scored_once_and_ranked_as_trec_eval_does(monkeypatch, top_k, sizes, depth):
    if sizes is not None:
        for name, size in zip(("_BLOCK", "_FIRST_PORTION", "_LARGEST_PORTION"), sizes, strict=True):
            monkeypatch.setattr(reranking, name, size)
    ranker, reports = Ranker(), []
    wanted = {id: list(TITLES) for id in QUERIES}
    candidates = None
    if depth is not None:
        candidates = RunTitles.of(RUN, list(QUERIES), list(TITLES), depth)
        wanted = {"q0": ["t0"], "q1": ["t2", "t9"], "q6": ["t9", "t8"]}
    run = rank_pairs(ranker, QUERIES, TITLES, candidates, top_k, reports.append)
    assert as_lists(run) == expected_ranking(wanted, top_k or None)
    pairs = [pair for portion in ranker.asked for pair in portion]
    assert pairs == [(QUERIES[q], TITLES[t]) for q, titles in wanted.items() for t in titles]
    if sizes is not None:
        assert max(map(len, ranker.asked)) <= max(sizes[1:])
    assert [report.done for report in reports] == np.cumsum(list(map(len, ranker.asked))).tolist()
    assert {report.total for report in reports} == {len(pairs)} and reports[-1].seconds_left == 0


def test_portions_grow_until_one_takes_a_while_and_shrink_if_it_takes_long(monkeypatch):
    monkeypatch.setattr(reranking, "_FIRST_PORTION", 4)
    monkeypatch.setattr(reranking, "_LARGEST_PORTION", 16)
    times = {4: 0.1, 8: 0.4, 16: 0.2}
    sizes, reports, now = [], [], [0.0]
    monkeypatch.setattr(reranking.time, "perf_counter", lambda: now[0])

    def scores_of(first, end):
        sizes.append(end - first)
        now[0] += times[end - first] if len(sizes) < 5 else 10.0
        return np.arange(first, end)

    portions = reranking._ScoredPortions(100, scores_of, reports.append)
    assert portions.score(0, 100).tolist() == list(range(100))
    assert sizes == [4, 8, 16, 16, 16, 8, 4, 2, 1, *[1] * 25]
    assert [report.pairs_per_second for report in reports[:3]] == pytest.approx([40, 20, 80])
    assert reports[2].seconds_left == pytest.approx(72 / 80)


def test_two_runs_are_added_up_query_by_query():
    first = {"q": {"a": 1.0, "b": 3.0}, "only first": {"a": 2.0, "c": 2.0}}
    second = {"only second": {"x": 5.0, "y": 7.0}, "q": {"b": 10.0, "c": 30.0, "a": 20.0}}
    plain = fuse(first, second, weight=0.1, standardise=False)
    assert list(plain) == ["q", "only first", "only second"]
    # Title c counts in the first run as much as its last title.
    assert plain["q"] == pytest.approx({"a": 1 + 2, "b": 3 + 1, "c": 1 + 3})
    assert plain["only first"] == first["only first"]
    assert plain["only second"] == pytest.approx({"x": 0.5, "y": 0.7})
    # Mean 2 and deviation 1; mean 20 and deviation sqrt(200 / 3).
    unit = 10 / np.sqrt(200 / 3)
    expected = {"a": -1, "b": 1 - 2 * unit, "c": -1 + 2 * unit}
    fused = fuse(first, second, weight=2)
    assert fused["q"] == pytest.approx(expected)
    assert fused["only first"] == {"a": 0, "c": 0}
    assert fused["only second"] == pytest.approx({"x": -2, "y": 2})
    assert fuse({"q": {"a": 0.1, "b": 0.1, "c": 0.1}}, {})["q"] == {"a": 0, "b": 0, "c": 0}
    for weight in (-1, float("nan"), float("inf"), "2"):
        with pytest.raises(SentembError, match="weight is"):
            fuse(first, second, weight)
