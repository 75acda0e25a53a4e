"""The ranking: its parts against their definitions, its engine against scoring every pair."""

import re
import warnings
from dataclasses import dataclass, replace

import naive
import numpy as np
import pytest
from helpers import WordSums

from sentemb.data.click_log import ClickLog
from sentemb.data.examinations import Examinations, Shown
from sentemb.kernels import dense
from sentemb.retrieval import bm25
from sentemb.retrieval.bm25 import count_words
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.rows_of_texts import PackedTexts
from sentemb.retrieval.similarity import unit_rows
from sentemb.retrieval.words_and_stems import tokens_of, words_of
from sentemb.search.ranking import engine
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.part import Asked, Bound, Fields
from sentemb.search.ranking.parts import PART_TYPES, Cosine, Memory, stored_rows
from sentemb.search.ranking.ranker import HybridRanker, shares
from sentemb.search.ranking.recipe import DIRECT, PARTS, Recipe
from sentemb.search.ranking.weights import Candidates, fit_weights, losses_of
from sentemb.system.parallel import Workers

WORDS = ("hotels", "in", "shanghai", "resorts", "fix", "a", "bath", "tub", "repair", "and", "red")
OF_MODEL = {"cosine": 0.5, "memory": 2.0, "bm25": 0.7, "clicked_bm25": -0.3, "unclicked": 0.4}
ALL = Recipe({**OF_MODEL, "clicks": 0.9, "name": 1.7, "examined": 0.4}, k1=1.2, b=0.6)
# All parts that need nothing but a model and a log, and one by an embedding.
EVERY = ALL.weighted({**ALL.weights, "embedding": 1.1})
QUERIES = ["hotels in shanghai", "red tub", "a a bath", "nothing known", "qqqq zzzz", "fix tub xyz"]
# Queries of the log of `made_log`, in another spelling and in another order.
TYPED = ["Resorts a?", "a resorts", "tub  TUB", "jjjj"]


def made_texts(rng, count):
    """Distinct texts of two to five words."""
    found = {}
    while len(found) < count:
        found[" ".join(rng.choice(WORDS, rng.integers(2, 6)))] = None
    return list(found)


def made_log(seed=0, n_queries=60, n_titles=25):
    """Clicks on titles that share a word with the query, mostly; queries share titles unequally."""
    rng = np.random.default_rng(seed)
    titles = made_texts(rng, n_titles)
    pairs = []
    for query in made_texts(rng, n_queries):
        near = [title for title in titles if set(title.split()) & set(query.split())]
        clicked = rng.choice(near or titles, 2)
        pairs += [(query, str(title), int(rng.integers(1, 20))) for title in clicked]
    return ClickLog.from_pairs(pairs)


@pytest.fixture(scope="module")
def bag(make_model):
    return make_model("bag")


@pytest.fixture(scope="module")
def log():
    """Some titles have clicks only for a query of which the model knows nothing."""
    log = made_log()
    pairs = zip(log.query_index, log.title_index, log.clicks.tolist(), strict=True)
    known = [(log.queries[q], log.titles[t], count) for q, t, count in pairs]
    more = ["tub tub", "resorts resorts", "and a repair", "shanghai bath"]
    return ClickLog.from_pairs([*known, *(("jjjj", title) for title in more)])


@pytest.fixture(scope="module")
def titles(log):
    return [*log.titles, "never clicked tub", "zzzz qqqq", "in a red bath", " red  tub"]


def shown_of(log):
    """Clicked titles, and others, as a record shows them for queries in several spellings."""
    pairs = zip(log.query_index.tolist(), log.title_index.tolist(), strict=True)
    for k, (q, t) in enumerate(pairs):
        yield Shown(log.queries[q].upper() + "?", f"p{t}", log.titles[t], 1 + k % 7, 1 + k % 4)
        yield Shown(log.queries[q], f"p{t}", log.titles[t], 2, 1)
    for query in ("red tub", "jjjj", TYPED[1]):
        yield Shown(query, "p-1", "never clicked tub", 3, 5)
        yield Shown(query, "p-2", "gone since", 1, 9)


def made_ranker(model, log, titles, recipe=ALL, threads=1):
    clicks = replace(ClickedQueries.of(log), examinations=Examinations.of(shown_of(log)))
    words = words_of(recipe.stem)
    queries = tokens_of(clicks.queries, words)
    fields = Fields.of(count_words(titles, clicks.of_titles(titles), queries, words))
    embedding = Embedding.of(WordSums())
    return HybridRanker(model, recipe, clicks, fields, titles, threads=threads, embedding=embedding)


def embedded(query, titles):
    """The cosines of the embedding, those of titles rounded to 8 bits."""
    (asked,) = unit_rows(np.array(WordSums().encode_query([query])))
    rows = unit_rows(np.float32(WordSums().encode_document(titles)))
    return Int8Rows.of(rows).vectors() @ asked


def naive_parts(model, recipe, query, titles, log):
    """What each part scores for all titles, by the definition."""

    def vector(text, side):
        known = any(word in WORDS for word in text.lower().split())
        found = model.encode(text, side=side) if known else np.zeros(model.dim, np.float32)
        return found / (np.linalg.norm(found) or 1)

    def rounded(row):
        return Int8Rows.of(np.asarray(row, np.float32)[None]).vectors()[0].astype(float)

    asked = vector(query, "query").astype(float)
    total = {q: sum(log.clicks[log.query_index == q]) for q in range(len(log.queries))}
    clicked = {title: [] for title in map(str.strip, titles)}
    for q, t, n in zip(log.query_index, log.title_index, log.clicks, strict=True):
        if log.titles[t] in clicked:
            clicked[log.titles[t]].append((log.queries[q], n / total[q]))
    of_titles = [clicked[title.strip()] for title in titles]
    rows = []
    for title, some in zip(titles, of_titles, strict=True):
        own = [(vector(title, "document"), 1), (vector(title, "query"), 1)]
        own += [(vector(text, "query"), share) for text, share in some]
        rows.append([rounded(row) @ asked * share**0.5 for row, share in own if row.any()])
    fields = [naive.word_counts(*one) for one in zip(titles, of_titles, strict=True)]
    lexical = []
    for field in zip(*fields, strict=True):
        statistics = naive.field_statistics(field)
        lexical.append(naive.bm25_of_fields(query, field, statistics, recipe.k1, recipe.b))
    cosines = [asked @ vector(title, "document") for title in titles]
    counts = [0] * len(titles)
    for q, t, n in zip(log.query_index, log.title_index, log.clicks.tolist(), strict=True):
        if naive_key(log.queries[q]) == naive_key(query):
            for place, title in enumerate(titles):
                counts[place] += n * (log.titles[t] == title.strip())
    words = set(re.findall("[a-z]+", query.lower()))
    names = [words <= set(title.split()) for title in titles]
    keys = list(map(naive_key, log.queries))
    of_query = [keys[q] == naive_key(query) for q in log.query_index]
    of_log = int(log.clicks[of_query].sum())
    looked = [0.0] * len(titles)
    for one in shown_of(log):
        if naive_key(one.query) == naive_key(query):
            for place, title in enumerate(titles):
                looked[place] += (one.title == title.strip()) * one.times / one.position**0.7
    clicked = [bool(some) for some in of_titles]
    near = embedded(query, titles)
    return cosines, rows, near, *lexical, clicked, counts, of_log, names, looked


def naive_key(query):
    return re.findall("[a-z]+", query.lower())


def all_pairs(ranker, queries, titles):
    q, t = np.divmod(np.arange(len(queries) * len(titles)), len(titles))
    return ranker.score_pairs(queries, titles, q, t).reshape(len(queries), len(titles))


# -- parts ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def defined(bag, log, titles):
    """What the parts score by the definition, by query: the same for all weights."""
    queries = [*QUERIES, *TYPED, *log.queries[:8]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some texts have no known words
        return {query: naive_parts(bag, EVERY, query, titles, log) for query in queries}


@pytest.mark.parametrize(
    "weights",
    [
        EVERY.weights,
        {**EVERY.weights, "clicked_bm25": 0.3},
        *(
            {name: weight}
            for name in PARTS
            for weight in (1.0, -0.5)
            if weight > 0 or name not in DIRECT
        ),
    ],
    ids=lambda weights: "+".join(f"{name}{weight:g}" for name, weight in weights.items()),
)
def test_scores_are_those_of_the_definition(bag, log, titles, defined, weights):
    recipe = EVERY.weighted(weights)
    expected = [naive.ranker_scores(recipe.weights, *parts) for parts in defined.values()]
    found = all_pairs(made_ranker(bag, log, titles, recipe), list(defined), titles)
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_the_score_of_a_title_does_not_depend_on_others(bag, log, titles):
    ranker = made_ranker(bag, log, titles, EVERY)
    of_all = all_pairs(ranker, QUERIES, titles)
    some = [titles[t] for t in (3, 1, 27, 8)]
    assert np.array_equal(all_pairs(ranker, QUERIES, some), of_all[:, [3, 1, 27, 8]])


@pytest.mark.parametrize("portion", [1, 7, 65_536])
@pytest.mark.parametrize("counted", [None, ["tub", "red", "qqqq", "nowhere"], []])
def test_words_are_counted_as_by_a_loop(log, titles, counted, portion, monkeypatch):
    monkeypatch.setattr(bm25, "_TITLES", portion)
    clicks, words = ClickedQueries.of(log), words_of(None)
    queries = tokens_of(clicks.queries, words)
    found = count_words(titles, clicks.of_titles(titles), queries, words, counted)
    shares = log.clicks / np.bincount(log.query_index, log.clicks)[log.query_index]
    pairs = list(zip(log.query_index, log.title_index, shares, strict=True))
    expected = [
        naive.word_counts(
            title, [(log.queries[q], share) for q, t, share in pairs if log.titles[t] == title]
        )
        for title in map(str.strip, titles)
    ]
    for field, fields in zip(found, zip(*expected, strict=True), strict=True):
        np.testing.assert_allclose(field.lengths, [sum(of_title.values()) for of_title in fields])
        seen = {}
        for word, low, high in zip(field.words, field.offsets, field.offsets[1:], strict=False):
            for entry in range(low, high):
                seen[word, int(field.titles[entry])] = field.counts[entry]
        assert seen == pytest.approx({
            (word, t): count
            for t, of_title in enumerate(fields)
            for word, count in of_title.items()
            if counted is None or word in counted
        })  # fmt: skip


def test_given_titles_have_the_same_scores_whatever_else_is_asked(bag, log, titles):
    """BM25 counts the words of the queries alone, and all of them when titles come again."""
    of_all = all_pairs(made_ranker(bag, log, titles, EVERY), QUERIES, titles)
    ranker = made_ranker(bag, log, titles, EVERY)
    for query, row in zip(QUERIES, of_all, strict=True):
        assert np.array_equal(all_pairs(ranker, [query], titles)[0], row)
    for query, pairs in zip(QUERIES, best_by_pairs(ranker, QUERIES, titles, 100), strict=True):
        assert ranker.rank(query, titles) == pairs
        assert ranker.rank(query, titles, 3) == pairs[:3]
    assert ranker.rank("red tub", []) == [] and ranker.rank([], titles) == []


def test_a_stray_click_is_worth_its_share(bag):
    pairs = [("red tub", "fix a bath", 99), ("red tub", "hotels in shanghai", 1)]
    ranker = made_ranker(bag, ClickLog.from_pairs(pairs), ["fix a bath", "hotels in shanghai"])
    nearest = [
        next(share.nearest for share in ranker.explain("red tub", title) if share.nearest)
        for title in ranker.titles
    ]
    assert nearest[0].text == "red tub" and nearest[0].value == pytest.approx(0.99**0.5, abs=0.01)
    assert nearest[1].value < 0.99 and (
        not nearest[1].is_clicked or nearest[1].value == pytest.approx(0.1, abs=0.01)
    )


def test_every_part_bounds_its_errors(bag, log, titles):
    """The float32 scores of a part are no further from the exact ones than it says."""
    ranker = made_ranker(bag, log, titles, EVERY)
    catalogue, workers = ranker.catalogue(titles), Workers(1)
    q, t = np.divmod(np.arange(len(QUERIES) * len(titles)), len(titles))
    for queries in (QUERIES, QUERIES[:2]):
        asked = ranker.asked(queries)
        for name, part in catalogue.parts.items():
            total = np.zeros((len(queries), len(titles)), np.float32)
            bound = part.add(total, -1.5, asked, workers)
            assert isinstance(bound, Bound) and bound.steps >= 1, name
            own = q < len(queries)
            exact = -1.5 * part.of_pairs(asked, q[own], t[own], workers).reshape(total.shape)
            limit = np.broadcast_to(bound.error, len(queries))[:, None]
            limit = limit + 2 * bound.steps * 2.0**-24 * np.reshape(bound.reach, (-1, 1))
            assert (np.abs(total - exact) <= limit).all(), name
            assert (np.abs(exact).max(axis=1) <= np.broadcast_to(bound.reach, len(queries))).all()


# -- the engine -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rough:
    """Exact scores of one query, added with errors as large as the part says."""

    exact: np.ndarray
    errors: np.ndarray
    is_evidence = True

    def add(self, total, weight, asked, workers):
        total += (weight * (self.exact + self.errors)).astype(np.float32)
        return Bound(float(np.abs(self.errors).max()), 1.0, 1)

    def of_pairs(self, asked, query_index, title_index, workers):
        return self.exact[title_index]


def test_titles_within_twice_the_error_of_the_best_are_looked_at(bag):
    """The best title has the largest error to its disadvantage, another one to its advantage."""
    n, error, rng = 400, 0.01, np.random.default_rng(0)
    for _ in range(20):
        exact = rng.random(n) * 0.9
        first, second = rng.choice(n, 2, replace=False)
        exact[first], exact[second] = 0.95, 0.95 - 0.1 * error
        errors = np.zeros(n)
        errors[first], errors[second] = -error, error
        asked, recipe = Asked(["a"], bag.encode_query, EVERY), Recipe({"bm25": 1.0})
        parts = {"bm25": Rough(exact, errors)}
        found = engine.best(parts, recipe, asked, 1, np.zeros(n, bool), Workers(1))
        assert found.titles.tolist() == [[first]]


def best_by_pairs(ranker, queries, titles, k, mask=None):
    """What `engine.best` must find, from the scores of all pairs."""
    catalogue = ranker.catalogue(titles)
    scores = all_pairs(ranker, queries, titles)
    asked = ranker.asked(queries)
    found = []
    for q, row in enumerate(scores):
        names = [name for name in ranker.recipe.parts if catalogue.parts[name].is_evidence]
        pairs = np.full(len(titles), q), np.arange(len(titles))
        _, every = engine.of_pairs(catalogue.parts, ranker.recipe, asked, *pairs, Workers(1))
        has_evidence = np.any([every[name] for name in names], axis=0)
        unknown = not asked.rows.exact[q].any()
        allowed = np.where(unknown | catalogue.is_empty, has_evidence, True)
        if mask is not None:
            allowed &= mask
        order = [t for t in np.lexsort((np.arange(len(row)), -row)) if allowed[t]][:k]
        found.append([(t, row[t]) for t in order])
    return found


def as_pairs(places, scores):
    return [
        [(t, s) for t, s in zip(*rows, strict=True) if t >= 0]
        for rows in zip(places.tolist(), scores.tolist(), strict=True)
    ]


@pytest.mark.parametrize("share", [0, 1, 4])
@pytest.mark.parametrize(
    "weights",
    [EVERY.weights, OF_MODEL, {"cosine": 2.0}, {"bm25": 1.0}, {"memory": -1.0}, {"clicks": 1.0},
     {"cosine": -0.2, "memory": 0.1, "bm25": 2.0, "unclicked": -3.0}],
)  # fmt: skip
def test_the_best_titles_are_those_of_all_pairs_to_the_bit(
    bag, log, titles, weights, share, monkeypatch
):
    """Lists alone settle no query, all of them, or those for which they leave a quarter."""
    if share:
        for name, value in (("_MANY_TITLES", 1), ("_SHARE_LEFT", share), ("_FEW_TITLES", 0)):
            monkeypatch.setattr(engine, name, value)
    queries = [*QUERIES, *TYPED, *log.queries]
    ranker = made_ranker(bag, log, titles, EVERY.weighted(weights))
    ordered = best_by_pairs(ranker, queries, titles, len(titles))
    for k in (1, 4, 100):
        expected = [pairs[:k] for pairs in ordered]
        assert as_pairs(*ranker.find(queries, k)) == expected
        if k == 4:  # one by one
            assert [as_pairs(*ranker.find([query], k))[0] for query in queries] == expected


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_other_vectors_and_a_mask(bag, log, titles, dtype):
    ranker, workers = made_ranker(bag, log, titles, EVERY), Workers(1)
    vectors = stored_rows(bag.unit_vectors(titles, "document"), dtype)
    catalogue, asked = ranker.catalogue(titles, vectors=vectors), ranker.asked(QUERIES)
    mask = np.arange(len(titles)) % 3 > 0
    k = 6
    arguments = catalogue.parts, EVERY, asked
    found = engine.best(*arguments, k, catalogue.is_empty, workers, mask)
    q, t = np.divmod(np.arange(len(QUERIES) * len(titles)), len(titles))
    scores, _ = engine.of_pairs(*arguments, q, t, workers)
    scores = scores.reshape(len(QUERIES), -1)
    near = all_pairs(ranker, QUERIES, titles)
    assert np.abs(scores - near).max() < (1e-3 if dtype == "float16" else 0.02)
    for row, places, of_row in zip(scores, found.titles, found.scores, strict=True):
        there = places >= 0
        assert mask[places[there]].all() and np.array_equal(row[places[there]], of_row[there])
        assert not there.all() or (row[mask & ~catalogue.is_empty] > of_row[-1]).sum() < k


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("weights", [EVERY.weights, OF_MODEL, {"cosine": 1.0, "memory": 2.0}])
def test_a_filter_that_leaves_few_titles_finds_those_of_all_pairs(
    bag, log, titles, weights, k, monkeypatch
):
    """Of few titles the memory leaves out most, whose exact scores are not made."""
    titles = [*titles, "qqqq"]  # of which the model knows nothing
    monkeypatch.setattr(engine, "_FEW_TITLES", len(titles))
    monkeypatch.setattr(engine, "_ROOM", 0)
    queries = [*QUERIES, *TYPED, *log.queries, "red qqqq"]
    ranker = made_ranker(bag, log, titles, EVERY.weighted(weights))
    mask = np.arange(len(titles)) % 4 > 0
    expected = best_by_pairs(ranker, queries, titles, k, mask)
    catalogue, asked, scored = ranker.catalogue(titles), ranker.asked(queries), []
    real = Memory.of_pairs
    monkeypatch.setattr(
        Memory, "of_pairs", lambda *pairs: scored.append(pairs[2].size) or real(*pairs)
    )
    arguments = catalogue.parts, ranker.recipe, asked, k, catalogue.is_empty, Workers(3), mask
    ranked = engine.best(*arguments)
    assert as_pairs(ranked.titles, ranked.scores) == expected
    assert scored[-1] < 0.8 * len(queries) * np.count_nonzero(mask)


@pytest.mark.parametrize("n_wrong", [1, 30])
def test_a_filter_leaves_out_no_score_that_is_not_a_number(bag, log, titles, n_wrong, monkeypatch):
    """Such a score says that a file is damaged, which is not looked at when an index is opened."""
    monkeypatch.setattr(engine, "_FEW_TITLES", len(titles))
    monkeypatch.setattr(engine, "_ROOM", 0)
    ranker = made_ranker(bag, log, titles, EVERY)
    vectors = bag.unit_vectors(titles, "document").astype(np.float32)
    best = ranker.find(["red tub"], n_wrong)[0]
    vectors[best[best >= 0]] = np.nan
    catalogue = ranker.catalogue(titles)
    parts = catalogue.parts | {"cosine": Cosine(vectors)}
    arguments = parts, EVERY, ranker.asked(["red tub"]), 4, catalogue.is_empty
    assert np.isnan(engine.best(*arguments, Workers(1)).scores[0, 0])


def test_no_score_depends_on_threads_or_blocks(bag, log, titles, monkeypatch):
    queries = made_texts(np.random.default_rng(5), 40)
    expected = made_ranker(bag, log, titles, EVERY).find(queries, 7)
    monkeypatch.setattr(engine, "_CELLS", 3 * len(titles))
    found = made_ranker(bag, log, titles, EVERY, threads=3).find(queries, 7)
    assert all(map(np.array_equal, found, expected))


def test_vectors_of_titles_that_words_leave_out_are_not_read(bag, log, monkeypatch):
    monkeypatch.setattr(engine, "_MANY_TITLES", 1)
    titles = [f"fix a bath {number}" for number in range(300)]
    titles[7::10] = ["red tub"] * 30
    recipe = EVERY.weighted({"cosine": 0.3, "memory": 0.4, "bm25": 5.0, "unclicked": 0.1})
    ranker, queries = made_ranker(bag, log, titles, recipe), ["red tub", "repair", "tub"]
    expected = best_by_pairs(ranker, queries, titles, 3)
    scanned, real = [], Memory.add

    def noted(self, total, weight, asked, workers):
        scanned.append(asked.queries)
        return real(self, total, weight, asked, workers)

    monkeypatch.setattr(Memory, "add", noted)
    monkeypatch.setattr(engine, "_SHARE_LEFT", 10)
    assert as_pairs(*ranker.find(queries, 3)) == expected
    assert scanned == [["repair"]]


def test_words_that_settle_no_query_are_not_asked_for_the_next(bag, log, titles, monkeypatch):
    """Of many queries at once the words of the first ones say whether they are worth their time."""
    ranker, queries = made_ranker(bag, log, titles, EVERY.weighted(OF_MODEL)), log.queries[:20]
    expected = best_by_pairs(ranker, queries, titles, 3)
    tried, real = [], engine._added

    def noted(parts, recipe, weights, asked, *others):
        tried.extend([] if {"cosine", "memory"} & {*weights} else asked.queries)
        return real(parts, recipe, weights, asked, *others)

    monkeypatch.setattr(engine, "_added", noted)
    monkeypatch.setattr(engine, "_CELLS_OF_LISTS", 4 * len(titles))
    for room, n_tried in ((len(titles), 4), (1, 20)):  # one title in so many may be left
        for name, value in (("_MANY_TITLES", 1), ("_SHARE_LEFT", room), ("_FEW_TITLES", 0)):
            monkeypatch.setattr(engine, name, value)
        tried.clear()
        assert as_pairs(*ranker.find(queries, 3)) == expected
        assert tried == queries[:n_tried]


def test_a_few_titles_read_of_the_log_what_concerns_them(bag, log, monkeypatch):
    """From the second time on: what is of all queries is sorted and hashed once."""
    others = [(f"query{k} word{k}", f"other title {k}") for k in range(2000)]
    pairs = zip(log.query_index.tolist(), log.title_index.tolist(), strict=True)
    known = [(log.queries[q], log.titles[t]) for q, t in pairs]
    ranker = made_ranker(bag, ClickLog.from_pairs([*known, *others]), log.titles, EVERY)
    ranker.explain("red tub", log.titles[0])
    sizes, unique, rows = [], np.unique, PackedTexts.of
    monkeypatch.setattr(
        np,
        "unique",
        lambda *given, **kind: sizes.append(np.size(given[0])) or unique(*given, **kind),
    )
    monkeypatch.setattr(
        PackedTexts, "of", classmethod(lambda _, texts: sizes.append(len(texts)) or rows(texts))
    )
    ranker.explain(log.queries[0], log.titles[1])
    assert sizes and max(sizes) < 500


def test_many_equal_scores_fill_the_room_for_candidates(bag, log, monkeypatch):
    titles = ["red tub"] * 150 + ["blue tub"]
    monkeypatch.setattr(engine, "_ROOM", 1)
    places, scores = made_ranker(bag, log, titles, EVERY).find(["red tub"], 3)
    assert places.tolist() == [[0, 1, 2]] and len(set(scores[0])) == 1


def test_of_titles_without_a_word_of_the_query_only_the_first_are_scored(bag, log, monkeypatch):
    titles = [f"fix a bath {number}" for number in range(300)]
    titles[200] = "red tub"
    scored, real = [], engine.of_pairs

    def noted(*arguments):
        scored.append(arguments[4].size)
        return real(*arguments)

    monkeypatch.setattr(engine, "of_pairs", noted)
    found, scores = made_ranker(bag, log, titles).alone("bm25").find(["red", "hotels"], 4)
    assert found.tolist() == [[200, 0, 1, 2], [0, 1, 2, 3]]
    assert scores[0, 0] > 0 and not scores[0, 1:].any() and not scores[1].any()
    assert scored == [5 + 4]
    clicked = made_ranker(bag, log, titles).alone("clicks").find([*log.queries[:2], "red"], 4)
    assert clicked[0].tolist() == [[0, 1, 2, 3]] * 3 and scored[1:] == [3 * 4]


def test_titles_with_a_score_from_a_limit_on_are_kept():
    total = np.array([[5.0, 4.9, 4.0, 4.95, -np.inf]], np.float32)
    places, counts = np.empty((1, 5), np.int32), np.empty(1, np.int64)
    for limit, expected in [(5.0, [0]), (4.94, [0, 3]), (4.9, [0, 1, 3]), (-9.0, [0, 1, 2, 3])]:
        dense.titles_from(places, counts, total, np.array([limit]), 0, 1)
        assert places[0, : counts[0]].tolist() == expected


@pytest.mark.parametrize("n_titles", [64, 65, 300])
def test_titles_are_found_in_any_place_of_a_long_row(n_titles):
    total = np.random.default_rng(1).permutation(3 * n_titles).astype(np.float32)
    total = total.reshape(3, n_titles)
    total[0, -5:] += 3 * n_titles
    places, counts = np.empty((3, n_titles), np.int32), np.full(3, -1)
    limits = np.sort(total, axis=1)[:, -5] - np.array([0.0, 12.0, 0.0])
    for first, end in ((0, 1), (1, 3)):
        dense.titles_from(places, counts, total, limits, first, end)
    for row, limit, found, count in zip(total, limits, places, counts, strict=True):
        expected = np.flatnonzero(row >= limit)
        assert found[:count].tolist() == expected.tolist()


def test_unknown_words_find_nothing_and_unknown_titles_only_words(bag, log, titles):
    ranker = made_ranker(bag, log, titles)
    assert ranker.rank("gggg kkkk") == []
    place = titles.index("zzzz qqqq")
    assert [found for found, _ in ranker.rank("qqqq zzzz")] == [place]
    assert place not in [found for found, _ in ranker.rank("red tub")]
    # An embedding may know what the model does not; a query without words finds nothing.
    knowing = made_ranker(bag, log, titles, EVERY)
    assert len(knowing.rank("gggg kkkk")) == len(titles)
    assert place in [found for found, _ in knowing.rank("red tub")]
    assert knowing.rank("?!") == []


@pytest.mark.parametrize("seed", range(8))
def test_more_clicks_never_lower_a_title(bag, seed):
    """All else equal: weights of the signs that a fit gives them, and the statistics of words."""
    rng, log = np.random.default_rng(seed), made_log(seed)
    most = {"cosine": 6, "memory": 6, "bm25": 1, "clicked_bm25": -1, "unclicked": 0.5, "clicks": 3}
    weights = {part: rng.uniform(0.1, 1) * weight for part, weight in most.items()}
    recipe = Recipe(
        {**weights, "name": 10.0}, rng.choice([0.3, 0.9, 1.8]), rng.choice([0, 0.4, 0.9])
    )
    fields = made_ranker(bag, log, log.titles, recipe).fields
    pairs = zip(log.query_index, log.title_index, log.clicks.tolist(), strict=True)
    known = [(log.queries[q], log.titles[t], count) for q, t, count in pairs]

    def place(query, title, more):
        clicks = ClickedQueries.of(ClickLog.from_pairs([*known, *more]))
        ranker = HybridRanker(bag, recipe, clicks, fields, log.titles, threads=1)
        found = [log.titles[t] for t in ranker.find([query], len(log.titles))[0][0] if t >= 0]
        return found.index(title) if title in found else len(found)

    for query in [*rng.choice(log.queries, 5), " ".join(rng.choice(WORDS, 2))]:
        title = str(rng.choice(log.titles))
        more = [[], *([(str(query), title, count)] for count in (1, 2, 5, 20, 100))]
        places = [place(str(query), title, some) for some in more]
        assert places == sorted(places, reverse=True), (query, title)


# -- changes ----------------------------------------------------------------------------------


def test_titles_that_come_and_go_score_as_if_they_had_been_there(bag, log, titles):
    ranker, workers = made_ranker(bag, log, titles, EVERY), Workers(1)
    asked = ranker.asked(QUERIES)
    is_kept = np.arange(len(titles)) % 4 != 1
    kept = [title for title, stays in zip(titles, is_kept, strict=True) if stays]
    more = [*titles[1::4], "a new red hotel"]
    changed = ranker.catalogue(titles).without(is_kept, kept)
    changed = changed.joined(ranker.catalogue(more), [*kept, *more])
    again = ranker.catalogue([*kept, *more])
    assert list(changed.parts) == [part.name for part in PART_TYPES]
    for k in (1, 5, 50):
        found = [
            engine.best(one.parts, EVERY, asked, k, one.is_empty, workers)
            for one in (changed, again)
        ]
        assert np.array_equal(found[0].titles, found[1].titles)
        assert np.array_equal(found[0].scores, found[1].scores)


def test_all_titles_removed(bag, log, titles):
    ranker = made_ranker(bag, log, titles, EVERY)
    nothing = ranker.catalogue(titles).without(np.zeros(len(titles), bool), [])
    asked = ranker.asked(QUERIES)
    found = engine.best(nothing.parts, EVERY, asked, 3, nothing.is_empty, Workers(1))
    assert found.titles.shape == (len(QUERIES), 0)
    back = nothing.joined(ranker.catalogue(["red tub"]), ["red tub"])
    assert engine.best(
        back.parts, EVERY, ranker.asked(["red tub"]), 3, back.is_empty, Workers(1)
    ).titles.tolist() == [[0]]


# -- clicks -----------------------------------------------------------------------------------


def test_clicks_of_titles_and_their_shares():
    log = ClickLog.from_pairs([("a", "x", 3), ("b", "x"), ("a", "y", 1), ("c", "z")])
    clicks = ClickedQueries.of(log)
    clicks = clicks.without_queries(np.array([q == "c" for q in clicks.queries]))
    found = clicks.of_titles(["y", "nowhere", " x "])
    assert found.offsets.tolist() == [0, 1, 1, 3]
    assert [clicks.queries[q] for q in found.queries] == ["a", "a", "b"]
    assert found.shares.tolist() == [0.25, 0.75, 1.0]
    left = clicks.without_products(np.array([key == "x" for key in clicks.keys]))
    assert left.of_titles(["x", "y"]).shares.tolist() == [0.25]
    assert ClickedQueries.nothing().of_titles(["x"]).offsets.tolist() == [0, 0]
    assert clicks.of_titles([]).offsets.tolist() == [0]


# -- explanations -----------------------------------------------------------------------------


@pytest.mark.parametrize("title", [0, "never clicked tub", "zzzz qqqq"])
@pytest.mark.parametrize("query", ["a red bath", "qqqq zzzz"])
def test_shares_and_words_add_up_to_the_score(bag, log, titles, query, title):
    title = titles[title] if isinstance(title, int) else title
    ranker = made_ranker(bag, log, titles, EVERY)
    found = ranker.explain(query, title)
    (score,) = all_pairs(ranker, [query], [title])[0]
    assert sum(share.added for share in found) == pytest.approx(score, abs=1e-12)
    assert [share.part for share in found] == list(PARTS)
    for share in found:
        if share.part in ("bm25", "clicked_bm25"):
            assert sum(added for _, added in share.words) == pytest.approx(share.value, abs=1e-6)
            assert {word for word, _ in share.words} <= set(query.split())
    among_all = shares(
        ranker.catalogue(titles), EVERY, ranker.asked([query]), titles.index(title),
        ranker.clicks.queries, Workers(1),
    )  # fmt: skip
    assert among_all == found


# -- weights ----------------------------------------------------------------------------------


def made_candidates(seed=0, n_queries=40, n=12):
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n_queries), n)
    is_right = np.tile(np.arange(n) < 2, n_queries)
    features = rng.normal(size=(query.size, 3)) * [1, 5, 0.2]
    features[is_right] += [0.5, -1.0, 0.1]
    return features, Candidates(query, np.tile(np.arange(n), n_queries), is_right.astype(float))


def test_weights_are_at_the_minimum():
    features, candidates = made_candidates()
    fit = fit_weights(features, candidates)
    deviation = features.std(axis=0)

    def loss(weights):
        found = naive.softmax_loss(weights, features, candidates.query_index, candidates.right > 0)
        return found + 1e-4 / 2 * float(np.sum((weights * deviation) ** 2))

    assert fit.loss == pytest.approx(loss(fit.weights), rel=1e-9)
    for part in range(3):
        step = np.eye(3)[part] * 1e-4 / deviation[part]
        slope = (loss(fit.weights + step) - loss(fit.weights - step)) / 2e-4
        assert abs(slope) < 1e-5
    again = fit_weights(features, candidates, fit.weights * 3)
    np.testing.assert_allclose(again.weights, fit.weights, rtol=1e-4)


def test_losses_are_those_of_each_query():
    features, candidates = made_candidates()
    weights = np.array([0.3, -0.1, 2.0])
    losses = losses_of(features @ weights, candidates)
    for q in range(40):
        rows = candidates.query_index == q
        problem = features[rows], np.zeros(12, int), candidates.right[rows] > 0
        assert losses[q] == pytest.approx(naive.softmax_loss(weights, *problem), rel=1e-12)


def test_weights_follow_the_units_of_the_parts():
    features, candidates = made_candidates()
    fit = fit_weights(features, candidates)
    scaled = fit_weights(features * [1, 10, 0.01], candidates)
    np.testing.assert_allclose(scaled.weights * [1, 10, 0.01], fit.weights, rtol=1e-5)


def test_a_part_that_differs_by_rounding_alone_has_no_weight():
    features, candidates = made_candidates()
    features[:, 1] = 0.7 + 2.0**-53 * np.random.default_rng(1).integers(-1, 2, len(features))
    assert abs(fit_weights(features, candidates).weights[1]) < 1e-6


def test_a_part_that_separates_everything_has_a_finite_weight():
    features, candidates = made_candidates()
    features[:, 0] = candidates.right > 0
    assert np.isfinite(fit_weights(features, candidates).weights).all()
    features[:, 1] = 7
    assert abs(fit_weights(features, candidates).weights[1]) < 1e-9
