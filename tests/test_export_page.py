"""``--to page``: what the page computes equals what the package computes.

In Chromium, or in Node where there is none.
"""

import base64
import gzip
import json
import re
import sys
import warnings

import numpy as np
import pytest
from browsers import CHROMIUM, NodePage, chromium, needs_chromium, needs_engine, opened
from helpers import (
    FEED_FORWARD,
    VARIANTS,
    made_up_model,
    made_up_texts,
    made_up_word_features,
    variant_name,
)

from sentemb import Index, SentembError, SentenceEncoder
from sentemb.analysis.explanation import explain
from sentemb.bridges.export.targets import export
from sentemb.bridges.page import exported_page as page_module
from sentemb.bridges.page.arrays import _coarse_rows
from sentemb.bridges.page.stem_forms import forms_of_stems
from sentemb.data.click_log import ClickLogBuilder
from sentemb.models.sentence_encoder import GateTrace
from sentemb.models.vectors.sif import SIF
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.int8_rows import LARGEST
from sentemb.retrieval.similarity import unit_rows
from sentemb.search.confidence import Confidence
from sentemb.search.ranking.floor import Floor, Letters
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import JOINER, SPLITTINGS

needs_browser = needs_chromium

RNG = np.random.default_rng(5)
OTHERS = [
    "Hotels in Shanghai",
    "ΟΔΟΣ Σίσυφος ΣΑΣ",
    "فنادق في شنغهاي",
    "上海 酒店 🏨 预订",
    "cafe\u0301 café Straße İstanbul",
    "(cheap) «rooms», 50%! c++",
    "ＦＵＬＬ Ⅷ ½ ²",
    "a\u2003b\x1fc\u200bd\ufeffe",
    "<b>bold</b> & \u2028 \\ `${1}`",
    "𐐀𐐁 𝒳 👩\u200d👩\u200d👧",
]
TITLES = [*made_up_texts(RNG, (1, 3, 7, 2, 5, 12)), *OTHERS, OTHERS[0]]
QUERIES = [*made_up_texts(RNG, (4, 1, 6)), *OTHERS, "qqqq", "abc qqqq", "  ", "HOTELS in ΣΑΣ café"]
QUERIES += ["жюы", "жюы hotels"]  # words of which no model here knows a trigram
TOLERANCE = 2e-6  # of scores; vectors are float32


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    """A page in a browser, for all tests."""
    blank = tmp_path_factory.mktemp("tab") / "blank.html"
    blank.write_text("<!doctype html><link rel=icon href=data:,><title>blank</title>")
    with chromium() as browser, opened(browser, blank.as_uri()) as page:
        yield page


@pytest.fixture
def show(request, tmp_path):
    """A function that exports an index and opens the page; it returns what `ask` asks."""
    tab = None if CHROMIUM is None else request.getfixturevalue("tab")

    def opened_page(index, **options):
        path = tmp_path / "page.html"
        export(index, path, "page", force=True, **options)
        if tab is None:
            return NodePage(path)
        tab.goto(path.as_uri())
        return tab

    return opened_page


def model_of(variant, texts=TITLES, splitting="white-space", shared=False, seed=0, vectors=False):
    """A model in float32 that knows the trigrams of ``texts``, and whole words."""
    made = made_up_model(variant, texts, dtype=np.float32, shared=shared, seed=seed)
    tokens = tokenize(texts, SPLITTINGS[splitting])
    vocabulary = Vocabulary.collect(tokens, word_features=1, splitting=splitting)
    if vectors:
        known = made_up_word_features([*tokens.words, "rooms", "qqqq", "жюы"])
        vocabulary = vocabulary.with_vectors(known)
    rng = np.random.default_rng(seed + 1)
    weights = {side: dict(made.weights[side]) for side in made.towers.each}
    for own in weights.values():
        width = own["table"].shape[1]
        own["table"] = 0.4 * rng.standard_normal((len(vocabulary), width), np.float32)
        own["table"][::7] = 0  # features that the tower never met
    weights.setdefault("document", weights["query"])
    return SentenceEncoder(made.encoder, vocabulary, weights, threads=1)


def ask(tab, script, argument):
    """What an asynchronous function in the page returns.

    As one text in both directions: Playwright takes long for many small values.
    """
    told = tab.evaluate(
        f"async (told) => JSON.stringify(await ({script})(JSON.parse(told)))", json.dumps(argument)
    )
    return json.loads(told)


def check_page(tab, index, tolerance=TOLERANCE):
    """Compare vectors, rankings and explanations with those of the package."""
    model = index.model
    found = ask(
        tab,
        """async ([queries, titles]) => {
          const { towers, vocabulary } = await engine.ready;
          const vectors = (side, texts) =>
            texts.map((text) => [...towers[side].embed(vocabulary.split(text))]);
          const answers = [];
          for (const query of queries) answers.push(await engine.search(query, 1000));
          const [query, document] = [vectors("query", queries), vectors("document", titles)];
          return { query, document, answers };
        }""",
        [QUERIES, TITLES],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for side, texts in (("query", QUERIES), ("document", TITLES)):
            units = unit_rows(model.encode(texts, side=side))
            np.testing.assert_allclose(found[side], units, atol=tolerance)
        expected = index.search(QUERIES, 1000)
    for query, answer, hits in zip(QUERIES, found["answers"], expected, strict=True):
        check_hits(answer["hits"], hits, tolerance)
        words = dict.fromkeys(model.vocabulary.split(query))
        assert answer["unknown"] == [word for word in words if not model.vocabulary.features(word)]


def check_hits(answers, hits, tolerance):
    """The same titles with the same scores; equal scores may be in another order."""
    assert {one["id"] for one in answers} == {hit.id for hit in hits}
    by_id = {hit.id: hit for hit in hits}
    for rank, (one, hit) in enumerate(zip(answers, hits, strict=True)):
        own = by_id[one["id"]]
        assert one["title"] == own.title and one["marks"] == own.marks
        assert list(one["parts"]) == list(own.parts)
        for part, of_part in own.parts.items():
            # Sums of BM25 have the same bits; vectors are float32.
            allowed = tolerance if part in ("cosine", "memory") else 0
            assert abs(one["parts"][part]["value"] - of_part["value"]) <= allowed, part
        added = sum(part["added"] for part in one["parts"].values())
        assert abs(one["score"] - added) <= 1e-9
        assert abs(one["score"] - own.score) <= 3 * tolerance
        assert abs(one["score"] - hit.score) <= 3 * tolerance
        assert (one["confidence"] is None) == (hit.confidence is None), rank
        if hit.confidence is not None:
            assert abs(one["confidence"] - hit.confidence) <= 100 * tolerance


def check_explanation(tab, index, query, id, tolerance=TOLERANCE):
    """Compare word effects, and gates if there are any, with those of the package."""
    model = index.model
    title = index[id]["title"]
    mine, gates = ask(
        tab,
        "async (pair) => [await engine.explain(...pair), await engine.gates(...pair)]",
        [query, id],
    )
    expected = explain(model, query, title).as_dict()
    assert abs(mine["score"] - expected["score"]) <= tolerance
    assert mine["effects_of"] == "cosine"
    for side in ("query", "title"):
        assert mine[side]["text"] == expected[side]["text"]
        assert mine[side]["unknown"] == expected[side]["unknown"]
        words, effects = (
            [[one[key] for one in told[side]["words"]] for key in ("word", "effect")]
            for told in (mine, expected)
        )
        assert words[0] == effects[0]
        np.testing.assert_allclose(words[1], effects[1], atol=2 * tolerance)
    (shares,) = index.explain(query, [id])
    for one, share in zip(mine["ranker"]["parts"], shares, strict=True):
        check_share(one, share.as_dict(), tolerance)
    total = sum(share.added for share in shares)
    assert abs(mine["ranker"]["score"] - total) <= 3 * tolerance
    assert (gates is None) == (not model.encoder.recurrent)
    if gates is not None:
        for side, (name, text) in {"query": ("query", query), "document": ("title", title)}.items():
            check_gates(gates[name], model.trace(text, side))


def check_share(one, own, tolerance):
    """The same, but that a page does not have the texts of clicked queries."""
    assert one.keys() == own.keys()
    assert (one["part"], one["weight"]) == (own["part"], own["weight"])
    assert abs(one["value"] - own["value"]) <= tolerance
    assert one.get("words") == own.get("words")
    if "nearest" in own:
        is_clicked = own["nearest"]["is_clicked"]
        assert one["nearest"]["is_clicked"] == is_clicked
        assert one["nearest"]["text"] == (None if is_clicked else own["nearest"]["text"])


def check_gates(told, trace: GateTrace):
    names = {"input": "i", "forget": "f", "output": "o", "candidate": "y_g", "cell": "c", "y": "y"}
    there = {name: getattr(trace, own) for name, own in names.items()}
    assert told["words"] == trace.words
    assert set(told["gates"]) == {name for name, values in there.items() if values is not None}
    for name, rows in told["gates"].items():
        np.testing.assert_allclose(rows, there[name], atol=6e-4)
        assert np.array_equal(np.round(rows, 3), rows)


# Together they have every part of every encoder; the others are combinations of these parts.
QUICK = [
    ("rnn", {}),
    ("irnn", {"bag_dim": 3}),
    ("lstm", {"forget_gate": False, "peepholes": "none"}),
    ("lstm", {"forget_gate": True, "peepholes": "diagonal"}),
    ("lstm", {"output_gate": False, "forget_gate": True, "peepholes": "full"}),
    ("bilstm", {"forget_gate": True, "peepholes": "full", "bag_dim": 3}),
    ("clsm", {"hidden": 7, "window": 3}),
    ("dan", {"hidden": 7, "activation": "linear"}),
    ("dan", {"hidden": 7, "layers": 3}),
]
ENCODERS = [
    pytest.param(one, marks=[] if one in QUICK else pytest.mark.slow, id=variant_name(one))
    for one in (*VARIANTS, *FEED_FORWARD)
]


@needs_engine
@pytest.mark.parametrize("variant", ENCODERS)
def test_every_encoder_is_the_one_of_the_package(show, variant):
    index = Index.build(model_of(variant), TITLES)
    tab = show(index, dtype="float32", min_queries=1)
    check_page(tab, index)
    check_explanation(tab, index, "hotels in qqqq", "0")


def average():
    models = [model_of(("lstm", {"bag_dim": 3})), model_of(("dssm", {"hidden": 7}), seed=3)]
    return SentenceEncoder.average(models)


def sif():
    words = sorted({word for title in TITLES for word in SPLITTINGS["words"](title)})
    vectors = np.random.default_rng(0).standard_normal((len(words), 6)).astype(np.float32)
    counts = np.arange(1, len(words) + 1)
    return SIF(WordVectors(words, vectors, counts)).fit(titles=TITLES, threads=1)


@needs_engine
@pytest.mark.parametrize(
    "make",
    [
        average,
        sif,
        lambda: model_of(("lstm", {}), shared=True),
        lambda: model_of(("bilstm", {}), splitting="bare"),
        lambda: model_of(("lstm", {}), splitting="bare-letters"),
        lambda: model_of(("lstm", {}), vectors=True),
    ],
    ids=["average", "sif", "shared", "bare", "letters", "vectors"],
)
def test_other_models_are_those_of_the_package(show, make):
    index = Index.build(make(), TITLES)
    tab = show(index, dtype="float32", min_queries=1)
    check_page(tab, index)
    check_explanation(tab, index, "hotels in 上海", "9")


def clicks():
    builder = ClickLogBuilder()
    for number, query in enumerate(QUERIES):
        if query.strip():
            builder.add(query, TITLES[number % len(TITLES)], 2)
    return builder.build()


# Every part, with weights of either sign, and others.
WEIGHTS = {"cosine": 1.5, "memory": 2.0, "bm25": 0.5, "clicked_bm25": -0.3, "unclicked": 0.2}
WEIGHTS |= {"clicks": 0.8, "name": 1.1}
# Without known words, a bag has no vector and an lstm has one.
LONGER = [*TITLES, "\ufeffжюы", "жюы", "hotels hotels rooms " * 20]


def ranker_of(model, weights, log, stem=None):
    return HybridRanker(model, Recipe(weights, 1.3, 0.6, stem), ClickedQueries.of(log))


@needs_engine
@pytest.mark.parametrize("stored", ["float32", "int8", "float16"])
def test_words_and_confidence_are_those_of_the_package(show, stored):
    model = model_of(("bag" if stored == "float16" else "lstm", {}))
    index = Index.build(ranker_of(model, WEIGHTS, clicks()), LONGER, dtype=stored)
    # Queries of the log have another one; that of float16 is not shown.
    typed = Confidence(-1.0, 0.7, 100, 0.1, 0.1 if stored == "float16" else 0.2)
    index.confidence = Confidence(-2.0, 3.5, 100, 0.1, 0.2, typed)
    confidences = [index.search(query, 1)[0].confidence for query in ("hotels 上海", QUERIES[0])]
    assert [value is None for value in confidences] == [False, stored == "float16"]
    # int8 vectors stay as they are in both.
    check_page(show(index, dtype="float32", min_queries=1), index)


@needs_engine
def test_the_page_refuses_the_queries_that_the_package_refuses(show):
    ranker = ranker_of(model_of(("bag", {})), WEIGHTS, clicks())
    fields = {"kind": ["b" if k % 5 else "a" for k in range(len(LONGER))]}
    index = Index.build(ranker, LONGER, fields=fields)
    whole = index.ranker.fields.whole
    # The threshold is between two of the queries, so that some are refused and some are not.
    queries = [*QUERIES, *TITLES, "zqx wv", "hotel zqx", "", "..."]
    weights = (-0.4, 0.9, 1.1, 0.7, 0.2, 0.5)
    for threshold in (-9.0, -4.0, -3.0, -2.0, -1.0, 9.0):
        index.ranker.floor = Floor(weights, threshold, Letters.of(whole))
        tab = show(index, dtype="float32", min_queries=1)
        for filters, where in (({}, None), ({"kind": "a"}, "kind = 'a'")):
            answers = ask(
                tab,
                """async ([queries, filters]) => {
                  const answers = [];
                  for (const query of queries)
                    answers.push(await engine.search(query, 3, undefined, { filters }));
                  const ids = (hits) => hits.map(({ id }) => id);
                  return answers.map(({ hits, no_match, nearest }) => [
                    ids(hits), no_match ?? null, ids(nearest ?? [])
                  ]);
                }""",
                [queries, filters],
            )
            found = index.search(queries, 3, where=where)
            for query, answer, hits in zip(queries, answers, found, strict=True):
                nearest = [hit.id for hit in hits.nearest]
                assert answer == [[hit.id for hit in hits], hits.reason, nearest], query


@needs_engine
@pytest.mark.parametrize(
    "weights",
    [
        WEIGHTS,
        {"cosine": -1.0, "memory": 0.7, "bm25": 0.45},
        {"memory": 2.0, "bm25": 0.5},
        {"memory": 1.0},
        {"bm25": 1.0},
        {"clicked_bm25": 3.0, "unclicked": -1.0},
        {"clicks": 1.0},
        {"cosine": 0.1, "name": 2.0},
    ],
    ids="-".join,
)
def test_sums_of_parts_are_those_of_the_package(show, weights):
    model = model_of(("bag", {}))
    index = Index.build(ranker_of(model, weights, clicks()), LONGER)
    tab = show(index, dtype="float32", min_queries=1)
    check_page(tab, index)
    for query, id in ((QUERIES[0], "0"), (QUERIES[0], "17"), ("жюы", "3"), (QUERIES[3], "16")):
        check_explanation(tab, index, query, id)


@needs_engine
def test_a_ranker_without_clicks_is_that_of_the_package(show):
    ranker = ranker_of(model_of(("lstm", {})), WEIGHTS, ClickLogBuilder().build())
    index = Index.build(ranker, LONGER)
    check_page(show(index, dtype="float32", min_queries=1), index)


@needs_engine
def test_scores_lack_nothing_but_the_words_that_are_withheld(show):
    log = typed("often one", "often two", "often three", "often four", "seldom hotels")
    model = model_of(("bag", {}), [*TITLES, "often one two three four seldom"])
    index = Index.build(ranker_of(model, {"bm25": 1.0, "clicked_bm25": 0.5}, log), TITLES)
    tab = show(index, dtype="float32", min_queries=4)
    (shares,) = index.explain("often seldom hotels", ["0"])
    found = ask(tab, "(pair) => engine.explain(...pair)", ["often seldom hotels", "0"])
    for one, share in zip(found["ranker"]["parts"], shares, strict=True):
        words = {word: value for word, value in share.words if word != "seldom"}
        assert one["words"] == words and "often" in words and len(words) < len(share.words)
        assert one["value"] == pytest.approx(sum(words.values()), rel=1e-12)


@needs_browser
def test_a_result_shows_what_its_parts_add(show):
    index = Index.build(ranker_of(model_of(("bag", {})), WEIGHTS, clicks()), LONGER)
    tab = show(index, dtype="float32", min_queries=1)
    tab.fill("input[type=search]", QUERIES[0])
    tab.click("#hit-0")
    tab.wait_for_selector("#panel-0 .shares")
    shares = tab.text_content("#panel-0 .shares")
    assert "a clicked query" in shares and "2 clicks for this query" in shares


@needs_engine
def test_stems_are_those_that_the_stemmer_gives(show):
    pytest.importorskip("Stemmer", reason="stems need PyStemmer")
    titles = ["cheap flights", "flying lessons", "the fly", "hotels and flies", "a hotel room"]
    model = model_of(("bag", {}), titles)
    ranker = ranker_of(model, {"cosine": 1.0, "bm25": 0.5}, typed("hotelling"), "english")
    index = Index.build(ranker, titles)
    tab = show(index, dtype="float32", min_queries=1)
    # "rooms" and "lesson" are in no title, but their endings are; "hotelling" was asked for.
    for query in ("flight", "flies", "hotel", "rooms", "Flights and flying", "lesson", "hotelling"):
        found = ask(tab, "(query) => engine.search(query, 10)", query)
        check_hits(found["hits"], index.search(query, 10), TOLERANCE)
    exported = export(index, "-", "page")
    assert "BM25 compares stems" in exported.notes[0]


def test_forms_of_stems_are_only_those_that_the_stemmer_confirms():
    def cut(words):
        return [word.removesuffix("s").removesuffix("e") for word in words]

    found = forms_of_stems(cut, ["box", "hous"], ["box", "boxes", "house", "cats"])
    assert found == {
        "box": 0,
        "boxe": 0,
        "boxes": 0,
        "boxs": 0,
        "house": 1,
        "houses": 1,
        "houss": 1,
    }


@needs_engine
def test_int8_is_near(show):
    rng = np.random.default_rng(2)
    titles = made_up_texts(rng, rng.integers(1, 12, 400), n_words=300)
    queries = made_up_texts(rng, rng.integers(1, 6, 100), n_words=300)
    model = made_up_model(("lstm", {}), titles, cells=48, dtype=np.float32)
    ranker = ranker_of(model, {"cosine": 1.0, "bm25": 0.1}, typed())
    index = Index.build(ranker, titles)
    tab = show(index)
    vectors, answers = ask(
        tab,
        """async (queries) => {
          const { towers, vocabulary } = await engine.ready;
          const vectors = queries.map((text) => [...towers.query.embed(vocabulary.split(text))]);
          return [vectors, await Promise.all(queries.map((query) => engine.search(query, 10)))];
        }""",
        queries,
    )
    units = unit_rows(model.encode_query(queries))
    assert 1 - np.sum(np.array(vectors) * units, axis=1).min() <= 1e-3
    hits = index.search(queries, 10)
    shared = [
        len({one["id"] for one in answer["hits"]} & {hit.id for hit in own})
        for answer, own in zip(answers, hits, strict=True)
    ]
    assert np.mean(shared) >= 9.8


def test_no_row_of_int8_is_zero_and_steps_have_a_floor():
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((200, 9)) * 10.0 ** rng.integers(-9, 3, (200, 1))).astype("f4")
    coded = _coarse_rows(rows)
    assert coded.codes.any(axis=1).all()
    usual = np.abs(rows).max(axis=1) / LARGEST
    assert (coded.scales >= usual * (1 - 1e-6)).all()
    assert (coded.scales > 1.5 * usual).any()
    assert np.abs(coded.vectors() - rows).max(axis=1) == pytest.approx(
        coded.scales / 2, rel=1, abs=0
    )


# -- words -----------------------------------------------------------------------------------------


def texts_of_code_points(codes):
    """Each code point inside a word, at its edges, after a sigma and after letters that compose."""
    return [f"xΑΣ{c}Βe{c} {c}aΣ{c} I{c}\u0301 東{c}京" for c in map(chr, codes)]


UNSPACED_TEXT = [
    *"東京都毒ｶﾞー豆キノコ、。 aÉΣ.(ขกำนุខម\u17d2ា",
    JOINER,
    JOINER,
    " ",
    "\u3099",
    "\u200b",
    "\u2003",
]


@needs_engine
@pytest.mark.parametrize("every", [401, pytest.param(1, marks=pytest.mark.slow)])
def test_words_are_those_of_python_for_every_code_point(show, every):
    # Letters of alphabets with two cases, marks and spaces are nearly all below U+3100.
    codes = {*range(0x400), *range(0, 0x3100, min(every, 4)), *range(0, sys.maxunicode, every)}
    codes = sorted(codes - {*range(0xD800, 0xE000)})
    for splitting, split in SPLITTINGS.items():
        tab = show(Index.build(model_of(("bag", {}), splitting=splitting), TITLES))
        for first in range(0, len(codes), 50_000):
            texts = texts_of_code_points(codes[first : first + 50_000])
            found = ask(
                tab,
                """async (texts) => {
                  const { vocabulary } = await engine.ready;
                  return texts.map((text) => vocabulary.split(text));
                }""",
                texts,
            )
            assert found == [split(text) for text in texts]


@needs_engine
@pytest.mark.parametrize("letters", [False, True], ids=["pairs", "letters"])
def test_words_of_scripts_without_blanks_are_those_of_python(show, letters):
    splitting = "bare-letters" if letters else "bare"
    recipe = Recipe({"bm25": 1.0}, letters=letters)
    ranker = HybridRanker(
        model_of(("bag", {}), splitting=splitting), recipe, ClickedQueries.of(clicks())
    )
    tab, rng = show(Index.build(ranker, TITLES)), np.random.default_rng(6)
    texts = ["".join(rng.choice(UNSPACED_TEXT, rng.integers(1, 12))) for _ in range(5_000)]
    texts += [
        f"東{JOINER}京 都",
        f"東{JOINER}京都",
        f"ខ្ម{JOINER}ែ 京{JOINER}豆",
        JOINER,
        f" {JOINER} 東",
    ]
    found = ask(
        tab,
        """async (texts) => {
          const { vocabulary, parts } = await engine.ready;
          return texts.map((text) => [vocabulary.split(text), parts[0].own.split(text)]);
        }""",
        texts,
    )
    for text, both in zip(texts, found, strict=True):
        assert both == [SPLITTINGS[splitting](text), recipe.words(text)], text


@needs_engine
def test_trigrams_are_those_of_python(show):
    tab = show(Index.build(model_of(("bag", {})), TITLES))
    words = ["a", "good", "🏨", "👩\u200d👩", "𐐨b", "上海", "#", "x#y"]
    model = model_of(("bag", {}), words)
    tab = show(Index.build(model, words))
    found = ask(
        tab,
        "async (words) => { const { vocabulary } = await engine.ready;"
        " return words.map((word) => vocabulary.features(word).sort((a, b) => a - b)); }",
        words,
    )
    features = [model.vocabulary.features(word) for word in words]
    assert found == [[id for id, n in one.items() for _ in range(int(n))] for one in features]


# -- the file --------------------------------------------------------------------------------------


@needs_browser
def test_the_page_works_from_a_disk_and_asks_for_nothing(tab, tmp_path):
    index = Index.build(ranker_of(model_of(("lstm", {})), WEIGHTS, clicks()), TITLES)
    path = tmp_path / "Help pages.html"
    export(index, path, "page")
    requests = []
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(path.as_uri())
    tab.locator("#status", has_text="Type to search 17 titles.").wait_for()
    assert tab.title() == "Help pages"
    tab.keyboard.type("hotels shanghai")
    tab.locator(".hit").first.wait_for()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    tab.locator(".effects").first.wait_for()
    tab.get_by_text("Show the gates").click()
    tab.locator(".maps canvas").first.wait_for()
    assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]
    assert "connect-src 'none'" in path.read_text("utf-8")


@needs_browser
def test_what_is_typed_while_the_page_loads_counts(tab, tmp_path):
    path = tmp_path / "page.html"
    export(Index.build(model_of(("lstm", {})), TITLES), path, "page", heading="Help & <more>")
    tab.goto(f"{path.as_uri()}#q=hotels")
    tab.locator(".hit").first.wait_for()
    assert tab.title() == "hotels – Help & <more>"


@needs_browser
def test_an_old_browser_is_told(show):
    tab = show(Index.build(model_of(("bag", {})), TITLES))
    context = tab.context.browser.new_context()
    context.add_init_script("delete globalThis.DecompressionStream")
    page = context.new_page()
    page.goto(tab.url)
    page.get_by_text("this browser cannot decompress the model").wait_for()
    context.close()


def test_the_same_index_gives_the_same_bytes(tmp_path):
    index = Index.build(ranker_of(model_of(("lstm", {})), WEIGHTS, clicks()), TITLES)
    index.save(tmp_path / "index")
    written = []
    for number, one in enumerate((index, index, Index.open(tmp_path / "index", 1))):
        path = tmp_path / f"{number}" / "page.html"
        exported = export(one, path, "page")
        written.append(path.read_bytes())
    assert len(set(written)) == 1
    assert exported.files == [path]
    assert exported.titles == len(TITLES)
    assert "its readers can see all titles" in exported.notes[-3]


def test_a_name_that_is_not_utf_8_is_shown_as_far_as_it_can_be(tmp_path):
    out = tmp_path / "page.html"
    export(Index.build(model_of(("bag", {})), TITLES), out, "page", heading="caf\udce9")
    assert "<title>caf\ufffd</title>" in out.read_text("utf-8")


def test_rows_that_no_text_needs_are_left_out(tmp_path):
    """The file grows with the features of the titles, not with those of the model."""
    model = model_of(("lstm", {}))
    sizes = []
    for titles in (TITLES[:1], TITLES):
        path = tmp_path / f"{len(titles)}.html"
        export(Index.build(model, titles), path, "page")
        sizes.append(path.stat().st_size)
    assert sizes[1] - sizes[0] > 0.5 * model.weights["document"]["table"].size


def test_titles_are_counted_before_anything_is_written(tmp_path, monkeypatch):
    index = Index.build(model_of(("bag", {})), TITLES)
    out = tmp_path / "page.html"
    with pytest.raises(SentembError, match="dtype is 'float16'"):
        export(index, out, "page", dtype="float16")
    monkeypatch.setattr(page_module, "MAX_TITLES", 3)
    with pytest.raises(SentembError, match=r"at most 3 titles.*has 17; use `sentemb serve`"):
        export(index, out, "page")
    assert not out.exists()
    monkeypatch.undo()
    export(index, out, "page")
    with pytest.raises(SentembError, match="exists; name another file or use --force"):
        export(index, out, "page")


def typed(*queries):
    """A log in which each query was clicked for each title that has one of its words."""
    builder = ClickLogBuilder()
    for query in queries:
        builder.add(query, TITLES[0], 1)
    return builder.build()


def contents_of(page):
    """All that a page holds, unpacked."""
    found = page.read_text(encoding="utf-8")
    packed = re.search(r'id="packed">([^<]*)<', found)[1]
    content = gzip.decompress(base64.b85decode(packed.replace(",", "<")))
    return found, content


@pytest.mark.parametrize("splitting", SPLITTINGS)
def test_words_of_few_clicked_queries_are_not_published(tmp_path, splitting):
    often = [f"often {word}" for word in ("one", "two", "three", "four", "five")]
    # The same words are one query, whatever signs are between them.
    seldom = ["seldom", "Seldom!", "seldom ?", "seldom 1", "seldom 2", "seldom 3"]
    model = model_of(("bag", {}), [*TITLES, *often, *seldom], splitting)
    assert {"often", "seldom"} <= set(model.vocabulary.words)
    index = Index.build(ranker_of(model, WEIGHTS, typed(*often, *seldom)), TITLES)
    page = tmp_path / "page.html"
    notes = export(index, page, "page").notes
    text, content = contents_of(page)
    for word, is_there in (("often", True), ("seldom", False), ("three", False)):
        assert (f"\n{word}\n".encode() in content) == is_there
    told = re.search(r"([\d,]+) more that at least 5 .* have; ([\d,]+) words of fewer", notes[-2])
    assert told[1] == "1" and int(told[2]) >= 7 and "--min-queries" in notes[-2]
    assert notes[-2].removesuffix(" (--min-queries)")[1:] in text
    hashed = any("a hash of every clicked query" in note for note in notes)
    assert hashed == bool(index.recipe.weight("clicks"))
    assert not any(query.encode() in content for query in (*often, *seldom[3:]))
    export(index, page, "page", min_queries=4, force=True)
    assert b"\nseldom\n" in contents_of(page)[1]
    with pytest.raises(SentembError, match="min_queries is 0; give an integer from 1"):
        export(index, page, "page", min_queries=0, force=True)
