"""Where a model ranks badly: the numbers of `triage` against the evaluation and naive rankings."""

import numpy as np
import pytest
from helpers import made_up_judged_set, made_up_log, made_up_model, made_up_pair_model

from sentemb import ClickLog, Index, SentembError
from sentemb.analysis import dev_rankings
from sentemb.analysis.report_slices import by_score, count_words
from sentemb.analysis.triage import Evidence, RankedTitle, triage
from sentemb.data.judged_set import JudgedSet
from sentemb.evaluation.catalogue import in_tie_order
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import evaluate_clicks
from sentemb.evaluation.metrics import ndcg
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.nearest import TitleVectors
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe


@pytest.fixture(scope="module")
def log():
    return made_up_log(80)


@pytest.fixture(scope="module")
def encoder(log):
    return made_up_model(("lstm", {}), [*log.queries, *log.titles], dtype="float32")


@pytest.fixture(scope="module")
def judged(log):
    """Grades 0 to 3; the first query has no relevant title."""
    made = made_up_judged_set(log)
    grade = (np.arange(made.grade.size) % 4).astype(np.int32)
    grade[:4] = [0, -1, 0, 0]
    return JudgedSet(**{**vars(made), "grade": grade})


def judged_of(queries, titles, grades):
    """All titles judged for each query; ``grades`` has a row per query."""
    n, k = np.shape(grades)
    return JudgedSet(
        [f"q{number}" for number in range(n)],
        queries,
        [f"t{number}" for number in range(k)],
        titles,
        np.arange(n + 1) * k,
        np.tile(np.arange(k, dtype=np.int32), n),
        np.ravel(grades).astype(np.int32),
    )


def ranked(model, query, titles):
    """Titles by score, equal scores in the order of a catalogue."""
    titles = in_tie_order(set(titles))
    scores = model.score(query, titles)
    return [titles[k] for k in np.argsort(-scores, kind="stable")]


class TestJudgedTitles:
    def test_the_figures_are_those_of_evaluate(self, encoder, judged):
        found = triage(encoder, judged, worst=3)
        measured = evaluate_model(encoder, judged, (10,))
        np.testing.assert_array_equal(found.values, measured.values[:, 0])
        assert found.mean == measured.mean[0]
        assert (found.metric, found.kind, found.n_titles) == ("ndcg@10", "judged", None)
        assert len(found.order) == len(judged.queries) - 1 and 0 not in found.order
        assert found.best[0] is None and len(found.worst) == 3

    @pytest.mark.parametrize("kind", ["towers", "pair"])
    def test_titles_grades_and_the_rank_of_the_best(self, encoder, judged, kind):
        model = encoder if kind == "towers" else made_up_pair_model(judged.titles)
        found = triage(model, judged, worst=1000, top=2)
        for one in found.worst:
            start, stop = judged.offsets[one.number : one.number + 2]
            titles = [judged.titles[t] for t in judged.title_index[start:stop]]
            scores = model.score(judged.queries[one.number], titles)
            order = np.argsort(-scores)
            grades = judged.grade[start:stop]
            shown = [
                RankedTitle(titles[k], grades[k], rank, pytest.approx(scores[k], abs=1e-6))
                for rank, k in enumerate(order[:2], 1)
            ]
            assert one.titles == shown and one.n_titles == 4
            best = max(order, key=grades.__getitem__)
            assert (one.best.title, one.best.grade) == (titles[best], grades[best])
            assert one.best.rank == list(order).index(best) + 1
            assert found.first[one.number] == shown[0]

    def test_the_worst_come_first_and_of_these_the_surest(self, encoder, judged):
        found = triage(encoder, judged)
        keys = [(found.values[q].round(9), -found.first[q].score) for q in found.order]
        assert keys == sorted(keys)

    def test_several_titles_of_the_highest_grade(self, encoder):
        titles = ["abba", "cddc", "dada"]
        query = "abba dada"
        order = np.argsort(-encoder.score(query, titles))
        grades = [2, 2, 2]
        grades[order[0]] = 0
        (one,) = triage(encoder, judged_of([query], titles, [grades])).worst
        assert (one.best.title, one.best.rank) == (titles[order[1]], 2)


class TestCatalogue:
    def test_clicks_are_measured_as_evaluate_does(self, encoder, log):
        titles = [*log.titles, *log.titles[:5], "another title"]
        found = triage(encoder, log, titles, worst=5)
        measured = evaluate_clicks(TitleVectors(encoder, titles), log, titles, ["mrr@10"])
        np.testing.assert_allclose(found.values, measured.values[:, 0], atol=1e-12)
        assert (found.metric, found.kind) == ("mrr@10", "clicked")
        assert found.n_titles == len(log.titles) + 1 and found.n_outside == 0
        assert found.clicks.sum() == log.clicks.sum()
        for one in found.worst:
            # A title without a known word is never found.
            order = ranked(encoder, log.queries[one.number], titles[:-1])
            assert [title.title for title in one.titles] == order[:10]
            assert one.best.rank == order.index(one.best.title) + 1
            own = log.title_index[log.query_index == one.number]
            clicked = {log.titles[t] for t in own}
            assert [title.grade for title in one.titles] == [
                1 if title in clicked else None for title in order[:10]
            ]

    def test_most_lost_clicks_come_first_and_slips_last(self, encoder, log, monkeypatch):
        monkeypatch.setattr(dev_rankings, "DEPTH", 12)
        clicks = log.clicks.copy()
        clicks[::3] = 1
        log = ClickLog(**{**vars(log), "clicks": clicks})
        found = triage(encoder, log)
        keys = []
        for q in found.order:
            is_slip = found.clicks[q] == 1 and found.best[q].rank is None
            lost = 0 if is_slip else found.clicks[q] * (1 - found.values[q])
            keys.append((-round(lost, 9), found.values[q].round(9), -found.first[q].score))
        assert keys == sorted(keys)
        assert any(found.best[q].rank is None for q in found.order)

    def test_titles_outside_the_catalogue_and_far_down(self, encoder, log, monkeypatch):
        monkeypatch.setattr(dev_rankings, "DEPTH", 12)
        found = triage(encoder, log, log.titles[10:], worst=1000)
        assert found.n_outside == 10
        known = set(log.titles[10:])
        for one in found.worst:
            own = [log.titles[t] for t in log.title_index[log.query_index == one.number]]
            order = ranked(encoder, log.queries[one.number], known)[:12]
            ranks = [order.index(title) + 1 for title in own if title in order]
            assert one.best.rank == min(ranks, default=None)
            assert (one.best.score is None) == (not ranks)
            reached = 1 / min(ranks, default=np.inf)
            assert found.values[one.number] == pytest.approx(reached * (reached >= 0.1))

    def test_a_judged_set_with_a_catalogue_has_titles_without_a_grade(self, encoder, judged):
        titles = [*judged.titles, "nobody judged this", judged.titles[0]]
        found = triage(encoder, judged, titles, worst=1000)
        distinct = in_tie_order(set(titles))
        number = {title: f"t{k}" for k, title in enumerate(distinct)}
        by_text = JudgedSet(
            judged.query_ids,
            judged.queries,
            [number[title] for title in judged.titles],
            judged.titles,
            judged.offsets,
            judged.title_index,
            judged.grade,
        )
        run = {
            id: {number[t]: -k for k, t in enumerate(ranked(encoder, query, titles))}
            for id, query in zip(judged.query_ids, judged.queries, strict=True)
        }
        np.testing.assert_allclose(found.values, ndcg(by_text, run, (10,)).values[:, 0])
        assert any(title.grade is None for one in found.worst for title in one.titles)

    def test_judgments_of_equal_titles_are_one(self, encoder):
        judged = judged_of(["abba"], ["cddc", "cddc", "dada"], [[0, 3, 1]])
        (one,) = triage(encoder, judged, ["dada", "cddc", "cddc"]).worst
        assert {(title.title, title.grade) for title in one.titles} == {("cddc", 3), ("dada", 1)}
        assert one.n_titles == 2

    def test_an_index_ranks_its_own_titles(self, encoder, log):
        index = Index.build(encoder, log.titles)
        recipe = Recipe({"cosine": 1, "memory": 0.5, "bm25": 0.3})
        ranker = HybridRanker(encoder, recipe, ClickedQueries.of(log))
        with_words = Index.build(ranker, log.titles)
        plain = triage(encoder, log, log.titles, worst=4)
        found = triage(index, log, worst=4)
        np.testing.assert_allclose(found.values, plain.values)
        assert all(title.cosine is None for one in found.worst for title in one.titles)
        hybrid = triage(with_words, log, worst=4, top=3)
        measured = evaluate_clicks(with_words, log, log.titles, ["mrr@10"])
        np.testing.assert_allclose(hybrid.values, measured.values[:, 0])
        for one in hybrid.worst:
            hits = with_words.search(log.queries[one.number], 3)
            assert [(hit.title, hit.score, hit.parts["cosine"]["value"]) for hit in hits] == [
                (title.title, title.score, title.cosine) for title in one.titles
            ]
        with pytest.raises(SentembError, match="leave the catalogue out"):
            triage(index, log, log.titles)

    def test_a_pair_model_ranks_a_catalogue(self, log):
        scorer = made_up_pair_model(log.titles)
        found = triage(scorer, log, worst=2)
        for one in found.worst:
            order = ranked(scorer, log.queries[one.number], log.titles)
            assert [title.title for title in one.titles] == order[:10]


class TestKinds:
    def test_every_kind_covers_all_queries(self, encoder, log):
        found = triage(encoder, log, log=ClickLog.from_pairs([("abba", log.titles[0])]))
        assert len(found.slices) >= 3
        for parts in found.slices.values():
            assert sum(part.count for part in parts) == len(found.order)
            assert sum(part.lost for part in parts) == pytest.approx(1)
            assert sorted(np.concatenate([part.queries for part in parts])) == sorted(found.order)
            for part in parts:
                assert part.count == len(part.queries)
                assert part.mean == pytest.approx(found.values[part.queries].mean())
        lengths = {part.label: part.queries for part in found.slices["Words in the query"]}
        assert set(lengths) == {"1", "2", "3"}
        for label, queries in lengths.items():
            assert {len(log.queries[q].split()) for q in queries} == {int(label)}
        seen = found.slices["Best title in the training log"][0]
        assert {found.best[q].title for q in seen.queries} == {log.titles[0]}

    def test_unknown_words(self, encoder):
        queries = ["abba cd", "abba 上海", "上海"]
        titles = ["abba", "cd"]
        found = triage(encoder, judged_of(queries, titles, [[1, 0]] * 3))
        assert (found.n_words.tolist(), found.n_unknown.tolist()) == ([2, 2, 1], [0, 1, 1])
        parts = found.slices["Words that the model knows nothing of"]
        assert [(part.label, part.queries.tolist()) for part in parts] == [
            ("none", [0]),
            ("some", [1]),
            ("all", [2]),
        ]

    def test_words_known_by_their_letters_only(self, encoder, log):
        # This model has trigrams only.
        assert triage(encoder, log).n_rare is None
        vocabulary = type(encoder.vocabulary)(["#ab", "ab#"], ["cd"])
        counts = count_words(vocabulary, ["ab cd", "ab ab", "x"])
        assert [array.tolist() for array in counts] == [[2, 2, 1], [0, 0, 1], [1, 2, 1]]

    def test_bands_of_scores(self):
        scores = np.array([-0.5, 0.3, 0.55, 0.9, -np.inf])
        bands = dict(by_score(scores, np.arange(5), True))
        held = {label: np.flatnonzero(own).tolist() for label, own in bands.items() if own.any()}
        assert held == {
            "nothing found": [4],
            "below 0.30": [0],
            "0.30 to 0.40": [1],
            "0.50 to 0.60": [2],
            "0.90 or more": [3],
        }
        fifths = dict(by_score(np.arange(10.0), np.arange(10), False))
        assert [int(own.sum()) for own in fifths.values()] == [0, 2, 2, 2, 2, 2]
        for is_cosine in (False, True):
            (band,) = by_score(np.full(3, -np.inf), np.arange(3), is_cosine)
            assert band[0] == "nothing found" and band[1].all()

    def test_evidence_of_the_log(self, encoder):
        pairs = [("q1", "abba", 2), ("q2", "abba", 9), ("q3", "abba"), ("q4", "abba"), ("q1", "x")]
        judged = judged_of(["abba dada"], ["abba", "dada"], [[1, 0]])
        found = triage(encoder, judged, log=ClickLog.from_pairs(pairs))
        assert found.evidence["abba"] == Evidence(13, 4, ["q2", "q1", "q3"])
        assert found.evidence.get("dada", Evidence(0, 0, [])) == Evidence(0, 0, [])
        assert found.seen.tolist() == [True]
        assert triage(encoder, judged).evidence == {} and triage(encoder, judged).seen is None


@pytest.mark.filterwarnings("ignore:.*have no word")
def test_queries_without_words(encoder):
    judged = judged_of([" ", "abba"], ["abba", "dada"], [[1, 0], [1, 0]])
    found = triage(encoder, judged)
    assert len(found.order) == 2 and found.n_words.tolist() == [0, 1]
    assert triage(Index.build(encoder, ["abba"]), judged).first[0] is None


def test_mistakes(encoder, log, judged):
    with pytest.raises(SentembError, match="the catalogue is empty"):
        triage(encoder, log, [])
    none = JudgedSet(**{**vars(judged), "grade": np.zeros_like(judged.grade)})
    for titles in (None, judged.titles):
        with pytest.raises(SentembError, match="no query of the judged set has a relevant title"):
            triage(encoder, none, titles)
    for settings in ({"worst": -1}, {"worst": 10**9}, {"top": 0}, {"top": 101}, {"top": 1.5}):
        with pytest.raises(SentembError, match=next(iter(settings))):
            triage(encoder, judged, **settings)
