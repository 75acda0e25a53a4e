"""NDCG: by hand, by a slow twin written from the definition, and against ir-measures."""

import math
import shutil

import ir_measures
import numpy as np
import pytest

from sentemb import SentembError
from sentemb.data.judged_set import JudgedSet
from sentemb.evaluation.metrics import JudgedScores, ndcg, tie_ranks

CUTOFFS = (1, 3, 10)


def judged_set(qrels, n_unjudged=0):
    """A `JudgedSet` of a dict of dicts, query id -> title id -> grade."""
    title_ids = sorted({id for grades in qrels.values() for id in grades})
    title_ids += [f"unjudged{number}" for number in range(n_unjudged)]
    title_of = {id: index for index, id in enumerate(title_ids)}
    lengths = [len(grades) for grades in qrels.values()]
    return JudgedSet(
        query_ids=list(qrels),
        queries=["query"] * len(qrels),
        title_ids=title_ids,
        titles=["title"] * len(title_ids),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        title_index=np.array(
            [title_of[id] for grades in qrels.values() for id in grades], np.int32
        ),
        grade=np.array([g for grades in qrels.values() for g in grades.values()], np.int32),
    )


def twin(grades, scores, cutoff, gain):
    """NDCG of one query from the definition; None without a relevant title."""

    def gain_of(grade):
        grade = max(grade, 0)
        return 2**grade - 1 if gain == "exponential" else grade

    def dcg(ranked):
        return sum(
            gain_of(grade) / math.log2(rank + 1) for rank, grade in enumerate(ranked[:cutoff], 1)
        )

    best = dcg(sorted(grades.values(), reverse=True))
    ranking = sorted(scores, key=lambda id: (scores[id], id), reverse=True)
    return dcg([grades.get(id, 0) for id in ranking]) / best if best else None


def random_case(random):
    """A few queries with ties, titles missing from the run, unjudged and irrelevant ones."""
    n_titles = int(random.integers(1, 25))
    ids = [f"d{number}" for number in random.permutation(200)[:n_titles]]
    qrels, run = {}, {}
    for number in range(int(random.integers(1, 6))):
        highest = random.choice([0, 1, 4])
        judged = random.permutation(ids)[: random.integers(1, n_titles + 1)]
        qrels[f"q{number}"] = {str(id): int(random.integers(0, highest + 1)) for id in judged}
        ranked = random.permutation(ids)[: random.integers(0, n_titles + 1)]
        # Few distinct values, so that most rankings have ties.
        run[f"q{number}"] = {str(id): float(random.integers(-2, 3)) / 2 for id in ranked}
    run = {query_id: scores for query_id, scores in run.items() if scores}
    run["not judged"] = {"d1": 1.0}
    return qrels, run


def cases(seed, n_cases):
    random = np.random.default_rng(seed)
    made = 0
    while made < n_cases:
        qrels, run = random_case(random)
        if any(grade > 0 for grades in qrels.values() for grade in grades.values()):
            made += 1
            yield qrels, run


def test_by_hand():
    judged = judged_set({"q": {"a": 3, "b": 0, "c": 1}})
    result = ndcg(judged, {"q": {"a": 1.0, "b": 2.0, "c": 0.5}})
    best = 7 + 1 / math.log2(3)
    reached = 7 / math.log2(3) + 1 / math.log2(4)
    np.testing.assert_allclose(result.mean, [0, reached / best, reached / best])
    linear = ndcg(judged, {"q": {"a": 1.0, "b": 2.0, "c": 0.5}}, cutoffs=[2], gain="linear")
    np.testing.assert_allclose(linear.values, [[3 / math.log2(3) / (3 + 1 / math.log2(3))]])


def test_queries_of_one_grade_are_counted():
    """With nothing to tell apart every order is perfect; a query without a right title has none."""
    qrels = {"a": {"x": 1, "y": 1}, "b": {"x": 2}, "c": {"x": 1, "y": 2}, "d": {"x": 0, "y": 0}}
    result = ndcg(judged_set(qrels), {id: dict.fromkeys(of, 1.0) for id, of in qrels.items()})
    assert (result.n_equal, result.n_evaluated) == (2, 3)
    assert result.values[:2].tolist() == [[1.0] * 3] * 2
    for seed in range(20):
        ((qrels, run),) = cases(seed, 1)
        kinds = [(len(set(of.values())), max(of.values())) for of in qrels.values()]
        equal = sum(n == 1 and best > 0 for n, best in kinds)
        assert ndcg(judged_set(qrels), run).n_equal == equal


def test_policies_and_counts():
    judged = judged_set(
        {
            "good": {"a": 1},
            "hopeless": {"a": 0, "b": -2},
            "missing": {"b": 2},
            "also missing": {"a": 1},
            "none": {},
        }
    )
    result = ndcg(judged, {"good": {"a": 1.0}, "hopeless": {"a": 1.0}, "other": {"a": 1.0}})
    np.testing.assert_array_equal(result.values[:, 0], [1, np.nan, 0, 0, np.nan])
    np.testing.assert_allclose(result.mean, [1 / 3, 1 / 3, 1 / 3])
    assert result.n_evaluated == 3
    assert result.n_without_relevant == 2
    assert result.n_missing == 2
    assert result.n_unknown == 1


def test_ties_break_by_falling_document_id_whatever_the_order_of_the_input():
    # Document ids fall as grades rise, so that a constant scorer gets the worst order.
    ids = [f"d{number:02}" for number in range(12)]
    grades = {id: max(0, 3 - number) for number, id in enumerate(ids)}
    for order in (ids, ids[::-1]):
        judged = judged_set({"q": {id: grades[id] for id in order}})
        result = ndcg(judged, {"q": dict.fromkeys(order, 0.0)}, cutoffs=(1, 9, 10))
        np.testing.assert_array_equal(result.values[0, :2], [0, 0])
        assert result.values[0, 2] > 0


def test_an_unjudged_title_keeps_its_rank():
    judged = judged_set({"q": {"a": 1}}, n_unjudged=1)
    run = {"q": {"a": 1.0, "unjudged0": 2.0, "nowhere": 3.0}}
    np.testing.assert_allclose(ndcg(judged, run).mean, [0, 0.5, 0.5])


def test_tie_ranks():
    assert tie_ranks(["b", "é", "a", "z"]).tolist() == [2, 0, 3, 1]
    assert tie_ranks([]).tolist() == []


@pytest.mark.parametrize("gain", ["exponential", "linear"])
def test_against_the_twin(gain):
    for qrels, run in cases(seed=1, n_cases=150):
        result = ndcg(judged_set(qrels), run, CUTOFFS, gain)
        for row, (query_id, grades) in zip(result.values, qrels.items(), strict=True):
            for value, cutoff in zip(row, CUTOFFS, strict=True):
                expected = twin(grades, run.get(query_id, {}), cutoff, gain)
                assert math.isnan(value) if expected is None else value == pytest.approx(expected)


# trec_eval's gain is the grade itself; ir-measures can map grades to other gains before.
EXPONENTIAL = {grade: 2**grade - 1 for grade in range(5)}


@pytest.mark.parametrize(("gain", "gains"), [("exponential", EXPONENTIAL), ("linear", None)])
def test_against_ir_measures(gain, gains):
    options = {} if gains is None else {"gains": gains}
    measures = {cutoff: ir_measures.nDCG(**options) @ cutoff for cutoff in CUTOFFS}
    qrels, run = {}, {}
    for number, (some_qrels, some_run) in enumerate(cases(seed=2, n_cases=500)):
        qrels |= {f"{number}-{id}": grades for id, grades in some_qrels.items()}
        run |= {f"{number}-{id}": scores for id, scores in some_run.items()}
    result = ndcg(judged_set(qrels), run, CUTOFFS, gain)

    theirs = ir_measures.pytrec_eval.iter_calc(list(measures.values()), qrels, run)
    expected = {(metric.query_id, metric.measure): metric.value for metric in theirs}
    for row, (query_id, grades) in zip(result.values, qrels.items(), strict=True):
        for value, measure in zip(row, measures.values(), strict=True):
            # Theirs is 0 for a query without a relevant title.
            assert math.isnan(value) == (max(grades.values()) <= 0)
            ours = np.nan_to_num(value)
            assert ours == pytest.approx(expected[query_id, measure], abs=1e-12)
    assert result.n_missing > 100 and result.n_without_relevant > 100


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
def test_the_exponential_gain_against_gdeval():
    # Without ties, which gdeval breaks in a way of its own, and to its five digits.
    random = np.random.default_rng(3)
    ids = [f"d{number}" for number in range(30)]
    qrels = {f"{q}": {id: int(random.integers(0, 5)) for id in ids[:20]} for q in range(40)}
    run = {
        f"{q}": dict(zip(ids[5:], random.permutation(25).tolist(), strict=True)) for q in range(40)
    }
    measure = ir_measures.nDCG(dcg="exp-log2") @ 10
    expected = {m.query_id: m.value for m in ir_measures.gdeval.iter_calc([measure], qrels, run)}
    result = ndcg(judged_set(qrels), run, cutoffs=[10])
    for value, query_id in zip(result.values[:, 0], qrels, strict=True):
        assert value == pytest.approx(expected[query_id], abs=1e-5)


def test_negative_grades_gain_nothing_as_in_trec_eval():
    qrels = {"q": {"a": -1, "b": 1, "c": -2, "d": 2}}
    run = {"q": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    measure = ir_measures.nDCG @ 10
    (expected,) = ir_measures.pytrec_eval.iter_calc([measure], qrels, run)
    result = ndcg(judged_set(qrels), run, cutoffs=[10], gain="linear")
    assert result.mean[0] == pytest.approx(expected.value)


def test_single_precision_and_integer_scores():
    judged = judged_set({"q": {"a": 0, "b": 1, "c": 2}})
    for kind in (np.float32, np.float64, np.uint8, np.int64):
        run = {"q": dict(zip("abc", np.array([0, 1, 2], dtype=kind), strict=True))}
        np.testing.assert_array_equal(ndcg(judged, run).values, [[1, 1, 1]])


def test_infinite_scores_rank():
    judged = judged_set({"q": {"a": 1, "b": 0}})
    assert ndcg(judged, {"q": {"a": math.inf, "b": 1.0}}).mean[0] == 1
    assert ndcg(judged, {"q": {"a": -math.inf, "b": 1.0}}).mean[0] == 0


def test_errors():
    judged = judged_set({"p": {"a": 1}, "q": {"a": 1, "b": 0}})
    run = {"p": {"a": 1.0}, "q": {"a": 1.0, "b": 2.0}}
    with pytest.raises(
        SentembError, match="1 scores are NaN, the first for the query with index 1"
    ):
        ndcg(judged, {"p": {"a": 1.0}, "q": {"b": math.nan}})
    with pytest.raises(SentembError, match="1 scores are NaN, the first for the query with"):
        JudgedScores(judged).mean(np.array([1.0, 2.0, math.nan]))
    with pytest.raises(SentembError, match="cut-offs"):
        ndcg(judged, run, cutoffs=(0, 1))
    with pytest.raises(SentembError, match="cut-offs"):
        ndcg(judged, run, cutoffs=())
    with pytest.raises(SentembError, match='choose "exponential" or "linear"'):
        ndcg(judged, run, gain="squared")
    with pytest.raises(SentembError, match="no query of the judged set has a relevant"):
        ndcg(judged_set({"q": {"a": 0}}), run)
    with pytest.raises(SentembError, match="the grade 5000 is too high"):
        ndcg(judged_set({"q": {"a": 5000}}), run)
    high = ndcg(judged_set({"q": {"a": 5000}}), {"q": {"a": 1.0}}, gain="linear")
    assert high.mean[0] == 1
