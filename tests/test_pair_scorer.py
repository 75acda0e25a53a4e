"""The public face of pair models: scores, ranking, storage, threads."""

import copy
import pickle

import numpy as np
import pytest
from helpers import made_up_model

import sentemb
from sentemb import PairScorer, SentembError, SentenceEncoder
from sentemb.models.pairs import make_pair_model
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary

TEXTS = ["blue suede shoes", "hotels in shanghai", "shoes", "repair of bath tubs and showers", ""]


@pytest.fixture(scope="module")
def scorer():
    vocabulary = Vocabulary.collect(tokenize(TEXTS), word_features=1)
    model = make_pair_model("wordembed", embedding=5, mlp=4, max_words=4)
    weights = model.initialise(len(vocabulary), np.random.default_rng(0))
    return PairScorer(model, vocabulary, weights, threads=1)


def all_pairs(n_queries, n_titles):
    return (index.ravel() for index in np.indices((n_queries, n_titles)))


def test_the_score_is_that_of_the_definition(scorer):
    blocks = scorer.astype("float64").parameters()

    def vector(text):
        words = text.split()[:4]
        total = np.zeros(5)
        for word in words:
            for feature, count in scorer.vocabulary.features(word).items():
                total += count * blocks["W"][:, feature]
        return total

    query, title = TEXTS[0], TEXTS[3]
    features = np.concatenate([vector(query), vector(title)])
    hidden = np.maximum(0, blocks["M1"] @ features + blocks["c1"])
    expected = blocks["w"] @ hidden + blocks["c"][0]
    assert scorer.astype("float64").score(query, title) == pytest.approx(expected, rel=1e-12)
    assert scorer.score(query, title) == pytest.approx(expected, rel=1e-5)


def test_a_pair_has_the_same_bits_alone_and_among_others(scorer):
    index = list(all_pairs(5, 5))
    together = scorer.score_pairs(TEXTS, TEXTS, *index)
    assert together.dtype == np.float64
    threads = PairScorer.of(scorer.saved(), threads=3)
    assert threads.score_pairs(TEXTS, TEXTS, *index).tobytes() == together.tobytes()
    for q, t, score in zip(*index, together, strict=True):
        alone = scorer.score_pairs([TEXTS[q]], [TEXTS[t]], np.array([0]), np.array([0]))
        assert alone[0] == score


def test_many_texts_are_scored_in_portions(scorer, monkeypatch):
    index = list(all_pairs(5, 5))
    whole = scorer.score_pairs(TEXTS, TEXTS, *index)
    monkeypatch.setattr("sentemb.models.pair_scorer._TEXTS", 2)
    monkeypatch.setattr("sentemb.models.pair_scorer._PAIRS", 3)
    order = np.random.default_rng(0).permutation(25)
    in_portions = scorer.score_pairs(TEXTS, TEXTS, *(one[order] for one in index))
    assert in_portions.tobytes() == whole[order].tobytes()
    # Pairs of long texts take more memory, so fewer are scored at once.
    sizes = []
    score_tasks = type(scorer.model).score_tasks

    def noting(*arguments):
        sizes.append(arguments[2].query_index.size)
        return score_tasks(*arguments)

    monkeypatch.setattr(type(scorer.model), "score_tasks", noting)
    monkeypatch.setattr("sentemb.models.pair_scorer._PAIRS", 1024)
    monkeypatch.setattr("sentemb.models.pair_scorer._NUMBERS", 3 * scorer.model.numbers_per_pair)
    assert scorer.score_pairs(TEXTS, TEXTS, *index).tobytes() == whole.tobytes()
    assert max(sizes) == 3 and sum(sizes) == 25
    L32, L200 = (make_pair_model("arc2", max_words=n).numbers_per_pair for n in (32, 200))
    assert L32 == (7**2 + 2 * 3**2) * 200 + 200 < L200 / 30


@pytest.mark.parametrize(
    ("queries", "titles", "message"),
    [
        ([5], [0], "query_index has 5, and there are 5 texts, counted from 0"),
        ([0], [-1], "title_index has -1, and there are 5 texts"),
        ([2**70], [0], "query_index must be a list of integers"),
        ([0.7], [0], "query_index must be a list of integers"),
        ([0], ["0"], "title_index must be a list of integers"),
        ([True], [0], "query_index must be a list of integers"),
        ([[0]], [[0]], "query_index must be a list of integers"),
        ([[0], [1, 2]], [0], "query_index must be a list of integers"),
        (None, 0, "query_index must be a list of integers"),
        ([0, 1], [0], "query_index has 2 entries and title_index 1"),
    ],
    ids=str,
)
def test_pairs_that_are_none_are_refused(scorer, queries, titles, message):
    towers = made_up_model(("bag", {}), TEXTS)
    for model in (scorer, towers):
        with pytest.raises(SentembError, match=message):
            model.score_pairs(TEXTS, TEXTS, queries, titles)
    with pytest.raises(SentembError, match="top_k must be an integer of at least 1, not True"):
        scorer.rank("shoes", TEXTS, True)


def test_scores_that_are_not_finite_are_refused(scorer):
    wild = copy.deepcopy(scorer)
    for block in wild.parameters().values():
        block[...] = 1e30
    for asked in (
        lambda: wild.score(TEXTS[0], TEXTS),
        lambda: wild.rank(TEXTS[0], TEXTS),
        lambda: wild.score_pairs(TEXTS, TEXTS, [0], [1]),
    ):
        with pytest.raises(SentembError, match=r"not a finite number, .* of the wordembed are too"):
            asked()


def test_ranking_sorts_by_score_and_keeps_the_order_of_equal_ones(scorer):
    with pytest.warns(UserWarning, match="1 of 6 texts have no words"):
        scores = scorer.score(TEXTS[0], TEXTS)
    with pytest.warns(UserWarning, match="no words"):
        ranking = scorer.rank(TEXTS[0], TEXTS, top_k=3)
    assert [place for place, _ in ranking] == np.argsort(-scores, kind="stable")[:3].tolist()
    with pytest.warns(UserWarning, match="2 of 3 texts have no word that the model knows; scores"):
        assert scorer.rank("shoes", ["a", "b"]) == scorer.rank("shoes", ["b", "a"])
    assert scorer.rank("shoes", []) == []
    with pytest.raises(SentembError, match="top_k"):
        scorer.rank("shoes", ["a"], top_k=0)


def test_lists_of_queries_have_a_row_each(scorer, monkeypatch):
    queries, titles = TEXTS[:3], TEXTS[1:4]
    scores = scorer.score(queries, titles)
    assert scores.shape == (3, 3) and scores.dtype == np.float64
    assert scores.tolist() == [scorer.score(query, titles).tolist() for query in queries]
    assert scorer.score(queries, titles[1]).tolist() == scores[:, 1].tolist()
    alone = [scorer.rank(query, titles, top_k=2) for query in queries]
    assert scorer.rank(queries, titles, top_k=2) == alone
    monkeypatch.setattr("sentemb.models.pair_scorer._RANKED", 4)
    with pytest.warns(UserWarning, match="no word") as caught:
        ranked = scorer.rank([*queries, ""], [*titles, "", "zz"], top_k=2)
    assert [str(warning.message) for warning in caught] == [
        "2 of 9 texts have no words; scores with them mean nothing",
        "1 of 9 texts have no word that the model knows; scores with them mean nothing",
    ]
    assert {warning.filename for warning in caught} == {__file__}
    assert len(ranked) == 4 and all(len(row) == 2 for row in ranked)
    assert scorer.rank([], titles) == [] and scorer.rank(queries, []) == [[]] * 3


def test_words_behind_max_words_are_not_read(scorer):
    long, cut = TEXTS[3], "repair of bath tubs"
    assert scorer.score("shoes", long) == scorer.score("shoes", cut)
    assert scorer.score(long, "shoes") == scorer.score(cut, "shoes")


def test_a_stored_model_gives_the_same_scores(scorer, tmp_path):
    scorer.save_pretrained(tmp_path / "m")
    index = list(all_pairs(5, 5))
    expected = scorer.score_pairs(TEXTS, TEXTS, *index)
    for again in (
        PairScorer.from_pretrained(tmp_path / "m"),
        sentemb.load(tmp_path / "m"),
        PairScorer(tmp_path / "m", threads=2),
        pickle.loads(pickle.dumps(scorer)),
        copy.deepcopy(scorer),
    ):
        assert isinstance(again, PairScorer)
        assert again.score_pairs(TEXTS, TEXTS, *index).tobytes() == expected.tobytes()
    assert "PairScorer.from_pretrained" in (tmp_path / "m" / "README.md").read_text()
    assert "wordembed" in repr(scorer) and "wordembed" in scorer._repr_html_()


def test_the_wrong_class_names_the_right_one(scorer, tmp_path):
    scorer.save_pretrained(tmp_path / "m")
    with pytest.raises(SentembError, match=r"m: the model wordembed scores pairs .* PairScorer"):
        SentenceEncoder.from_pretrained(tmp_path / "m")
    with pytest.raises(SentembError, match=r"m: the model wordembed scores pairs .* PairScorer"):
        SentenceEncoder(tmp_path / "m")
    for wrong in (
        lambda: PairScorer(scorer.model),
        lambda: PairScorer(tmp_path / "m", scorer.vocabulary),
        lambda: PairScorer(None),
    ):
        with pytest.raises(SentembError):
            wrong()


def test_changed_parameters_change_the_scores(scorer):
    changed = copy.deepcopy(scorer)
    before = changed.score("shoes", "blue")
    changed.parameters()["c"][0] += 1
    assert changed.score("shoes", "blue") == pytest.approx(before + 1, abs=1e-6)
    changed.parameters()["W"][:] = 0
    assert changed.score("shoes", "blue") == changed.score("hotels", "blue")
