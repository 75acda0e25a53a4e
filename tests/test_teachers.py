"""Hard negatives of pair models: the lists of a teacher, and the titles drawn from them."""

import numpy as np
import pytest
from helpers import made_up_log, made_up_model, made_up_pair_model
from naive import bm25_scores

from sentemb.comparison.baselines.bm25 import BM25
from sentemb.data.click_log import ClickLogBuilder
from sentemb.errors import SentembError
from sentemb.system.parallel import Workers
from sentemb.training.negative_options import HARD_AMONG
from sentemb.training.negatives import hard_negatives, teachers
from sentemb.training.negatives.hard_negatives import draw
from sentemb.training.negatives.teachers import Teacher


def lists_of(teacher, log, threads=2, stopped=lambda: False):
    """The lists of a teacher, and what it notes."""
    notes = []
    with Workers(threads) as workers:
        return Teacher.of(teacher, 1).lists(log, workers, stopped, notes.append), notes


def large_log():
    """More than `HARD_AMONG` titles, many of them as good as each other for BM25."""
    rng = np.random.default_rng(5)
    words = np.array([f"w{k}" for k in range(12)])
    builder = ClickLogBuilder()
    for number in range(90):
        query, title = (" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(2))
        builder.add(query, f"{title} only{number}" if number % 3 else f"{title}: {title}!")
    builder.add("w1 nowhere w1", "w2, w3")
    builder.add("nowhere", "w4")
    return builder.build()


def clicked_titles(log, query):
    return set(log.title_index[log.query_index == query].tolist())


def test_bm25_lists_the_best_unclicked_titles_in_order():
    log = large_log()
    lists, notes = lists_of("bm25", log)
    assert lists.shape == (len(log.queries), HARD_AMONG) and lists.dtype == np.int32
    shorter = 0
    for q, query in enumerate(log.queries):
        scores = bm25_scores(query, log.titles, k1=0.9, b=0.4)
        left = [t for t in range(len(log.titles)) if t not in clicked_titles(log, q)]
        # Rounding must not decide between titles of the same words.
        ranked = sorted((-round(scores[t], 5), t) for t in left if scores[t] > 0)
        expected = [title for _, title in ranked][:HARD_AMONG]
        found = lists[q][lists[q] >= 0].tolist()
        assert found == expected, query
        assert (lists[q, len(found) :] == -1).all()
        shorter += len(found) < HARD_AMONG
    assert shorter > 1, "some queries have fewer titles than places"
    assert notes == ["1 of 70 queries get no hard negatives from the teacher"]


def test_bm25_is_that_of_the_baseline():
    log = large_log()
    lists, _ = lists_of("bm25", log)
    q, t = (some.ravel() for some in np.meshgrid(*map(np.arange, lists.shape), indexing="ij"))
    q, t = q[lists[q, t] >= 0], lists[q, t][lists[q, t] >= 0]
    scores = BM25().score_pairs(log.queries, log.titles, q, t)
    same_query = np.diff(q) == 0
    assert (np.diff(scores)[same_query] <= 1e-5).all()
    everything = np.arange(len(log.titles))
    for query in range(len(log.queries)):
        every = BM25().score_pairs(
            log.queries, log.titles, np.full(everything.size, query), everything
        )
        every[list(clicked_titles(log, query))] = 0
        best = np.sort(every)[::-1][: np.count_nonzero(q == query)]
        np.testing.assert_allclose(scores[q == query], best, rtol=1e-5)


@pytest.mark.parametrize("from_folder", [False, True])
def test_a_model_lists_the_unclicked_titles_with_the_highest_cosines(tmp_path, from_folder):
    log = large_log()
    model = made_up_model(("bag", {}), [*log.queries, *log.titles], dtype=np.float32)
    model.save_pretrained(tmp_path / "two")
    lists, notes = lists_of(tmp_path / "two" if from_folder else model, log)
    assert notes == []
    cosines = model.similarity(model.encode_query(log.queries), model.encode_document(log.titles))
    for q in range(len(log.queries)):
        assert clicked_titles(log, q).isdisjoint(lists[q].tolist())
        cosines[q, list(clicked_titles(log, q))] = -2
        best = np.sort(cosines[q])[: -HARD_AMONG - 1 : -1]
        np.testing.assert_allclose(np.sort(cosines[q, lists[q]])[::-1], best, atol=1e-5)


def test_a_model_lists_no_text_that_it_cannot_read():
    builder = ClickLogBuilder()
    for query, title in [("ab", "ab cd"), ("cd", "cd"), ("ab cd", "..."), ("???", "ab")]:
        builder.add(query, title)
    log = builder.build()
    model = made_up_model(("bag", {}), ["ab cd"], dtype=np.float32)
    lists, notes = lists_of(model, log)
    found = [set(row[row >= 0].tolist()) for row in lists]
    titles = {title: number for number, title in enumerate(log.titles)}
    everything = set(titles.values()) - {titles["..."]}
    assert found == [everything - {titles["ab cd"]}, everything - {titles["cd"]}, everything, set()]
    assert notes == ["1 of 4 queries get no hard negatives from the teacher"]


@pytest.mark.parametrize("teacher", ["bm25", "model"])
def test_lists_do_not_depend_on_threads_or_portions(monkeypatch, teacher):
    log = large_log()
    if teacher == "model":
        teacher = made_up_model(("bag", {}), [*log.queries, *log.titles], dtype=np.float32)
    expected, _ = lists_of(teacher, log, threads=1)
    assert np.array_equal(lists_of(teacher, log, threads=3)[0], expected)
    monkeypatch.setattr(hard_negatives, "_PORTION", 7)
    monkeypatch.setattr(teachers, "_PORTION", 11)
    assert np.array_equal(lists_of(teacher, log)[0], expected)
    asked = iter([False] * (2 if teacher == "bm25" else 20) + [True] * 99)
    stopped, notes = lists_of(teacher, log, stopped=lambda: next(asked))
    assert (stopped[-7:] == -1).all() and (stopped != expected).any() and notes == []
    assert np.array_equal(stopped[:7], expected[:7])


def test_a_record_tells_teachers_apart(tmp_path):
    log = made_up_log()
    one, other = (
        made_up_model(("bag", {}), log.titles, dtype=np.float32, seed=seed) for seed in (0, 1)
    )
    one.save_pretrained(tmp_path / "one")
    records = [Teacher.of(t).record() for t in (one, tmp_path / "one", other, "bm25")]
    assert [record["name"] for record in records] == ["", "one", "", "bm25"]
    hashes = [record["sha256"] for record in records]
    assert hashes[0] == hashes[1] and len(set(hashes)) == 3
    assert all(len(digest) == 64 for digest in hashes)


def test_what_cannot_be_a_teacher(tmp_path):
    with pytest.raises(SentembError, match="there is no model here"):
        Teacher.of(tmp_path)
    with pytest.raises(SentembError, match="bm25, a model folder or a SentenceEncoder, not 3"):
        Teacher.of(3)
    made_up_pair_model(["ab cd"]).save_pretrained(tmp_path / "pair")
    with pytest.raises(SentembError, match="pair: a pair model cannot look through all titles"):
        Teacher.of(tmp_path / "pair")


def test_titles_are_drawn_once_and_depend_on_seed_epoch_and_step():
    lists = np.full((3, HARD_AMONG), -1, np.int32)
    lists[0] = np.arange(HARD_AMONG)
    lists[1, :2] = 7, 0
    queries = np.array([0, 1, 2, 0, 0])
    offsets, titles = draw(lists, queries, 3, 1, 2, 3)
    assert offsets.tolist() == [0, 3, 5, 5, 8, 11]
    for pair, query in enumerate(queries):
        drawn = titles[offsets[pair] : offsets[pair + 1]].tolist()
        assert len(set(drawn)) == len(drawn) and set(drawn) <= set(lists[query].tolist())
    assert sorted(titles[3:5].tolist()) == [0, 7]
    drawn = [draw(lists, queries, 3, *key)[1].tolist() for key in [(1, 2, 3), (0, 2, 3), (1, 0, 3)]]
    drawn.append(draw(lists, queries, 3, 1, 2, 4)[1].tolist())
    assert drawn[0] == titles.tolist() and len({tuple(some) for some in drawn}) == 4
    # Every title of a list is drawn about equally often: 3 of 30, 6,000 times.
    counts = np.bincount(draw(lists, np.zeros(6_000, int), 3, 0, 0, 0)[1])
    assert counts.size == HARD_AMONG and abs(counts - 600).max() < 120
