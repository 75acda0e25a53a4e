"""Words of brand and tags find titles: the scores, changes of an index, files, page and server."""

import copy
import json
import math
import pickle
from collections import Counter

import numpy as np
import pytest
from browsers import NODE, NodePage
from click.testing import CliRunner
from helpers import made_up_model
from hypothesis import given
from hypothesis import strategies as st
from test_ranker_index import IDS, RECIPE, TITLES, WORDS, made_up_texts

import sentemb
from sentemb import Index, SentembError
from sentemb.bridges.export.targets import export
from sentemb.bridges.server.app import create_app
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index_files import DESCRIPTION
from sentemb.search.ranking.floor import Floor, Letters
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.sharded_index import ShardedIndex
from sentemb.text.words import folded_words, searched_words

N = len(TITLES)
BRANDS = ["Acme", "Müller & Söhne", "red", None]
TAGS = ["sale, Sale!", "hat new", "", "x7"]
FIELDS = {
    "brand": [BRANDS[k * k % 7 % 4] for k in range(N)],
    "Tags": [TAGS[k % 4] for k in range(N)],
    "price": list(range(N)),
}
WEIGHTS = {"brand": 1.0, "Tags": 0.25}
QUERIES = ["acme", "Muller sohne", "red hat", "sale", "acme hat sale", "hat hat", "x7", "zzz", ""]


@pytest.fixture(scope="module")
def ranker():
    model = made_up_model(("bag", {}), made_up_texts(60, WORDS), cells=12, dtype=np.float32)
    builder, rng = ClickLogBuilder(), np.random.default_rng(5)
    for query in [*made_up_texts(40, WORDS, seed=2), "acme hat"]:
        for place in rng.integers(0, N, rng.integers(1, 4)):
            builder.add(query, TITLES[place], int(rng.integers(1, 9)))
    return HybridRanker(model, RECIPE, ClickedQueries.of(builder.build()), threads=1)


def built(ranker, rows=range(N), weights=WEIGHTS, fields=FIELDS):
    chosen = {name: [values[row] for row in rows] for name, values in fields.items()}
    titles, ids = [TITLES[row] for row in rows], [IDS[row] for row in rows]
    return Index.build(ranker, titles, ids, chosen, search_fields=weights, threads=1)


@pytest.fixture(scope="module")
def index(ranker):
    return built(ranker)


def by_id(index, k=N):
    return [
        {hit.id: (hit.score, hit.parts, hit.fields) for hit in hits}
        for hits in index.search(QUERIES, k, everything=True)
    ]


def naive_values(ranker, query, row):
    """BM25 and name of a query and a title, word by word."""
    clicks, statistics = ranker.clicks, ranker.fields.whole
    counts = Counter(searched_words(TITLES[row]))
    of_title = clicks.of_titles([TITLES[row]], [IDS[row]])
    length = sum(counts.values())
    for number, share in zip(of_title.queries, of_title.shares, strict=True):
        words = searched_words(clicks.queries[number])
        length += share * len(words)
        for word in words:
            counts[word] += share
    texts = [TITLES[row]]
    for name, weight in WEIGHTS.items():
        texts.append(FIELDS[name][row] or "")
        for word in searched_words(texts[-1]):
            counts[word] += weight
    saturation = RECIPE.k1 * (1 - RECIPE.b + RECIPE.b * length / statistics.mean_length)
    holding = dict(zip(statistics.words, statistics.holding.tolist(), strict=True))
    bm25 = 0.0
    for word in searched_words(query):
        n = holding.get(word, 0)
        idf = math.log(1 + (statistics.n_titles - n + 0.5) / (n + 0.5))
        bm25 += idf * counts[word] / (counts[word] + saturation)
    asked = set(folded_words(query))
    return bm25, bool(asked) and asked <= {word for text in texts for word in folded_words(text)}


def test_words_of_fields_count_by_their_weights(index, ranker):
    for query in QUERIES:
        for hit in index.search(query, N, everything=True):
            bm25, is_named = naive_values(ranker, query, IDS.index(hit.id))
            assert hit.parts["bm25"]["value"] == pytest.approx(bm25, rel=1e-6, abs=1e-6)
            assert hit.parts["name"]["value"] == is_named, (query, hit)


def test_a_brand_finds_its_products_and_explains_them(index):
    hits = index.search("acme", N)
    brands = [hit.fields["brand"] for hit in hits]
    of_brand = FIELDS["brand"].count("Acme")
    assert set(brands[:of_brand]) == {"Acme"} and hits.did_you_mean is None
    (share,) = (one for one in index.explain("acme", hits[0].id) if one.part == "bm25")
    assert dict(share.words).keys() == {"acme"}
    explained = sentemb.explain(index, "acme", hits[0].id)
    assert explained.score == pytest.approx(hits[0].score, abs=1e-6)
    client = create_app(index).test_client()
    told = client.get("/explain", query_string={"q": "acme", "id": hits[0].id}).get_json()
    assert told["ranker"]["score"] == pytest.approx(told["score"], abs=1e-6)


def test_a_floor_lets_words_of_fields_pass(ranker):
    """All words in one title and its fields: the titles answer the query."""
    letters = Letters.of(ranker.fields.whole)
    floor = Floor((0.0,) * 6, 1.0, letters)  # below it is every query
    strict = HybridRanker(ranker.model, RECIPE, ranker.clicks, floor=floor, threads=1)
    assert not built(strict, weights=()).search("acme")
    assert built(strict).search("acme") and not built(strict).search("acme nowhere")


def test_without_searched_fields_an_index_keeps_its_bytes(ranker, tmp_path):
    built(ranker, weights=()).save(tmp_path / "none")
    Index.build(ranker, TITLES, IDS, FIELDS, threads=1).save(tmp_path / "plain")
    for path in (tmp_path / "plain").rglob("*"):
        if path.is_file():
            twin = tmp_path / "none" / path.relative_to(tmp_path / "plain")
            assert path.read_bytes() == twin.read_bytes()
    assert "search_fields" not in json.loads((tmp_path / "none" / DESCRIPTION).read_text())


def test_a_title_whose_fields_have_no_word_of_the_query_keeps_its_score(ranker, index):
    before = {hit.id: hit for hit in built(ranker, weights=()).search("woollen coat", N)}
    assert before == {hit.id: hit for hit in index.search("woollen coat", N)}


def test_files_and_copies_keep_searched_fields(index, tmp_path):
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index")
    Index.verify(tmp_path / "index")
    for one in (opened, copy.deepcopy(index), pickle.loads(pickle.dumps(opened))):
        assert one.search_fields == WEIGHTS and one.search(QUERIES) == index.search(QUERIES)
    description = json.loads((tmp_path / "index" / DESCRIPTION).read_text())
    for wrong in ({"brand": 0}, {"brand": "1"}, ["brand"], {"brand": 1e9}):
        text = json.dumps({**description, "search_fields": wrong})
        (tmp_path / "index" / DESCRIPTION).write_text(text)
        with pytest.raises(SentembError, match='"search_fields" is missing or wrong'):
            Index.open(tmp_path / "index")


@given(st.data())
def test_changes_give_what_an_index_made_anew_gives(ranker, data):
    """Adding, removing, syncing with other fields, in any order."""
    rows = st.lists(st.integers(0, 30), unique=True, max_size=12)
    there = data.draw(rows)
    fields = copy.deepcopy(FIELDS)
    index = built(ranker, there)
    for _ in range(data.draw(st.integers(0, 3))):
        given_rows = data.draw(rows)
        chosen = {name: [values[row] for row in given_rows] for name, values in fields.items()}
        titles, ids = [TITLES[row] for row in given_rows], [IDS[row] for row in given_rows]
        kind = data.draw(st.sampled_from(["add", "remove", "sync"]))
        if kind == "sync" and given_rows:
            for name, values in (("brand", BRANDS), ("Tags", TAGS)):
                for k, row in enumerate(given_rows):
                    chosen[name][k] = data.draw(st.sampled_from(values))
                    fields[name][row] = chosen[name][k]
            index.sync(titles, ids, fields=chosen)
            there = given_rows
        elif kind == "remove":
            gone = [row for row in given_rows if row in there]
            index.remove(IDS[row] for row in gone)
            there = [row for row in there if row not in gone]
        elif kind == "add" and not set(given_rows) & set(there):
            index.add(titles, ids, fields=chosen)
            there = there + given_rows
    assert by_id(index) == by_id(built(ranker, there, fields=fields))


def test_a_changed_tag_is_a_changed_title(index):
    changed = copy.copy(index)
    tags = ["clearance", *FIELDS["Tags"][1:]]
    fields = {**FIELDS, "Tags": tags}
    assert changed.sync(TITLES, IDS, fields=fields) == (0, 1, 0)
    assert [hit.id for hit in changed.search("clearance")][:1] == ["p0"]
    assert changed.sync(TITLES, IDS, fields=fields) == (0, 0, 0)
    price = {**fields, "price": [7, *FIELDS["price"][1:]]}
    assert changed.sync(TITLES, IDS, fields=price) == (0, 1, 0)
    without = {"brand": FIELDS["brand"]}
    with pytest.raises(SentembError, match="search_fields: there is no column Tags"):
        changed.sync(TITLES, IDS, fields=without)
    assert changed.search("clearance")  # nothing was changed


def test_several_indexes_give_what_one_gives(ranker, index):
    parts = {name: built(ranker, rows) for name, rows in (("a", range(40)), ("b", range(40, N)))}
    both = ShardedIndex(parts, 1)
    assert both.search(QUERIES, 20) == index.search(QUERIES, 20)
    parts["b"] = built(ranker, range(40, N), weights={"brand": 1.0})
    with pytest.raises(SentembError, match="b: has another set of searched fields than a"):
        ShardedIndex(parts, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["size"], "there is no column size; there are brand, Tags, price"),
        (["price"], "price has numbers or true and false; only words of texts are searched"),
        ({"brand": 0}, "the weight of brand is 0; give a number above 0, at most 100"),
        ({"brand": math.nan}, "the weight of brand is nan"),
        ({"brand": True}, "the weight of brand is True"),
        ({"brand": "1"}, "the weight of brand is '1'"),
        ({1: 1.0}, "search_fields"),
        (3, "search_fields"),
        ("brand", "search_fields"),
    ],
)
def test_wrong_fields_are_refused(ranker, given, message):
    with pytest.raises(SentembError, match=message):
        built(ranker, weights=given)


def test_a_ranking_without_names_searches_no_fields(ranker):
    for source in (ranker.model, ranker.weighted({"bm25": 1.0})):
        with pytest.raises(SentembError, match="fit a ranker with `sentemb tune`"):
            built(source)


@pytest.mark.skipif(NODE is None, reason="no node runs the engine of a page")
def test_the_page_searches_fields(index, tmp_path):
    export(index, tmp_path / "page.html", "page", dtype="float32", min_queries=1)
    engine = NodePage(tmp_path / "page.html")
    ask = "async (query) => JSON.stringify(await engine.search(query, 150, null))"
    for query in QUERIES:
        answer = json.loads(engine.evaluate(ask, query))
        hits = index.search(query, 150)
        told = {hit["id"]: hit["score"] for hit in answer["hits"]}
        assert told == pytest.approx({hit.id: hit.score for hit in hits}, abs=2e-6), query
    of_brand = {IDS[row] for row in range(N) if FIELDS["brand"][row] == "Acme"}
    export(index, tmp_path / "page.html", "page", force=True)  # brands are public, as titles are
    first = json.loads(NodePage(tmp_path / "page.html").evaluate(ask, "acme"))["hits"]
    assert {hit["id"] for hit in first[: len(of_brand)]} == of_brand


def run(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.output


def test_the_command_searches_fields(ranker, tmp_path):
    ranker.model.save_pretrained(tmp_path / "model")
    ranker.save(tmp_path / "model")
    lines = ["id\ttitle\tbrand\tno:de", "a\tred hat\tAcme\tx12", "b\tblue hat\t4711\tx13"]
    (tmp_path / "titles.tsv").write_text("\n".join([*lines, ""]))

    def found(query):
        return (
            CliRunner().invoke(main, ["search", str(tmp_path / "index"), query]).stdout.split()[2]
        )

    arguments = ("index", tmp_path / "model", tmp_path / "titles.tsv", "-o", tmp_path / "index")
    told = run(*arguments, "--search-fields", "Brand:2, no:de")
    assert "words are searched in titles and brand:2, no:de:1" in told
    assert found("acme") == "a"
    assert found("4711") == "b"
    assert found("x13") == "b"
    numbers = "\n".join(lines).replace("Acme", "7").replace("4711", "99")  # stay texts
    (tmp_path / "titles.tsv").write_text(f"{numbers}\n")
    run("index", tmp_path / "index", "--sync", tmp_path / "titles.tsv")
    assert found("99") == "b"
    told = run("index", tmp_path / "index", "--add", tmp_path / "more.tsv", "--search-fields", "x",
               code=2)  # fmt: skip
    assert "--search-fields is for a new index; make the index again" in told
    wrong = run(*arguments, "--search-fields", "no:de,size", "--force", code=1)
    assert "search_fields: there is no column size" in wrong
    wrong = run(*arguments, "--search-fields", "brand:0", "--force", code=1)
    assert "search_fields: the weight of brand is 0" in wrong
