"""Several indexes that are searched as one find what one index with all titles does."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import WordSums, made_up_model
from test_ranker_index import (
    IDS,
    QUERIES,
    RECIPES,
    TITLES,
    WORDS,
    made_up_texts,
    opened_index,
)

from sentemb import Index, SentembError
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder
from sentemb.kernels.compiling.ahead import NOTE
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.confidence import Confidence
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE
from sentemb.search.sharded_index import ShardedIndex

N = len(TITLES)
PARTS = (slice(0, 40), slice(40, 41), slice(41, 41), slice(41, N))
FIELDS = {
    "price": [None if k % 7 == 0 else float(k % 11) for k in range(N)],
    "brand": [("Acme", "Bolt", "Cuff", None)[k * k % 4] for k in range(N)],
}
LIMITS = [
    {},
    {"cosine": True},
    {"only": IDS[::3]},
    {"where": "price > 3 and brand = 'Acme'"},
    {"where": "price > 99"},
    {"sort": "-price", "facets": ["brand", "price"]},
    {"sort": "brand", "min_score": 0.4},
    {"everything": True},
]


def of(index, part):
    """The titles of one shard."""
    fields = {name: values[part] for name, values in FIELDS.items()}
    return Index.build(index, TITLES[part], IDS[part], fields, threads=1)


@pytest.fixture(scope="module")
def bag():
    return made_up_model(("bag", {}), made_up_texts(60, WORDS), cells=12, dtype=np.float32)


@pytest.fixture(scope="module")
def rankers(bag):
    """A function that makes the ranker of a recipe, with clicks that belong to ids."""
    builder, rng = ClickLogBuilder(), np.random.default_rng(5)
    for query in [*made_up_texts(70, WORDS, seed=2), "x7", "q9 q9"]:
        for place in rng.integers(0, N - 1, rng.integers(1, 4)):
            builder.add(query, TITLES[place], int(rng.integers(1, 9)))
    clicks = ClickedQueries.of(builder.build())
    embedding = Embedding.of(WordSums())
    return lambda recipe: HybridRanker(bag, recipe, clicks, threads=1, embedding=embedding)


@pytest.mark.parametrize("name", RECIPES)
def test_shards_find_what_one_index_finds_to_the_bit(rankers, name, tmp_path):
    ranker = rankers(RECIPES[name])
    of(ranker, slice(0, N)).save(tmp_path / "whole")
    whole = opened_index(tmp_path / "whole")
    for k, part in enumerate(PARTS):
        of(ranker, part).save(tmp_path / str(k))
    shards = ShardedIndex({str(k): opened_index(tmp_path / str(k)) for k in range(len(PARTS))}, 1)
    assert len(shards) == N
    queries = [*QUERIES, "p41", "p0", "redd hat"]
    for k in (0, 1, 7, N + 5):
        assert all(map(np.array_equal, shards.find(queries, k), whole.find(queries, k)))
        # Every number with every limit for one recipe, and each of both for the others.
        for limits in LIMITS if k == 7 or name == "all" else LIMITS[:1]:
            expected = whole.search(queries, k, **limits)
            found = shards.search(queries, k, **limits)
            assert found == expected
            for one, other in zip(found, expected, strict=True):
                assert (one.reason, one.facets) == (other.reason, other.facets)
                assert one.did_you_mean == other.did_you_mean
    assert shards.similar("p40", 9) == whole.similar("p40", 9)
    assert shards.similar("p40", where="price < 5") == whole.similar("p40", where="price < 5")
    assert shards.explain("red x7", IDS) == whole.explain("red x7", IDS)
    assert np.array_equal(shards.mask_of(IDS[::7]), whole.mask_of(IDS[::7]))
    assert shards.suggest("r") == whole.suggest("r")
    with pytest.raises(SentembError, match="the id nowhere is not in the index"):
        shards.similar("nowhere")


def test_equal_scores_are_in_the_order_of_the_shards(rankers):
    ranker = rankers(RECIPES["all"])
    titles, ids = [*TITLES, *TITLES], [*IDS, *(f"again-{id}" for id in IDS)]
    whole = Index.build(ranker, titles, ids, threads=1)
    halves = {
        str(start): Index.build(ranker, TITLES, ids[start : start + N], threads=1)
        for start in (0, N)
    }
    assert ShardedIndex(halves, 1).search(QUERIES, 30) == whole.search(QUERIES, 30)
    swapped = ShardedIndex({name: halves[name] for name in (str(N), "0")}, 1)
    first, second = swapped.search("red hat", 2)
    assert first.score == second.score and first.id == f"again-{second.id}"


def test_a_calibration_counts_if_all_have_it(rankers):
    pair = {str(k): of(rankers(RECIPES["all"]), part) for k, part in enumerate(PARTS[:2])}
    calibration = Confidence(-1.0, 2.0, 50, 0.2, 0.25)
    pair["0"].confidence = calibration
    assert ShardedIndex(pair, 1).search("red hat", 1)[0].confidence is None
    pair["1"].confidence = calibration
    assert ShardedIndex(pair, 1).search("red hat", 1)[0].confidence is not None


def test_indexes_that_rank_otherwise_are_refused(rankers, bag):
    ranker = rankers(RECIPES["all"])
    first = of(ranker, PARTS[0])
    other = made_up_model(("bag", {}), made_up_texts(30, WORDS), cells=12, dtype=np.float32, seed=4)
    fewer = ClickLogBuilder()
    fewer.add("red hat", TITLES[0], 1)
    clicks = ClickedQueries.of(fewer.build())
    other_statistics = HybridRanker(
        bag, ranker.recipe, ranker.clicks, HybridRanker(bag, ranker.recipe, clicks).fields
    )
    wrong = {
        "model": HybridRanker(other, RECIPES["all"], clicks),
        "ranker": rankers(RECIPES["memory"]),
        "ranker ": HybridRanker(bag, ranker.recipe, clicks),
        "ranker  ": other_statistics,
    }
    for what, second in wrong.items():
        with pytest.raises(SentembError, match=f"b: has another {what.strip()} than a"):
            ShardedIndex({"a": first, "b": of(second, PARTS[3])})
    without_fields = Index.build(ranker, TITLES[50:], IDS[50:])
    with pytest.raises(SentembError, match="b: has another set of fields than a"):
        ShardedIndex({"a": first, "b": without_fields})
    repeated = of(ranker, slice(39, 50))
    with pytest.raises(SentembError, match="b: has the id p39, which is in a too; remove it"):
        ShardedIndex({"a": first, "b": repeated})
    with pytest.raises(SentembError, match="no index to search"):
        ShardedIndex.open([])


def test_a_field_that_is_empty_in_an_index_has_the_type_of_the_others(rankers):
    ranker, limits = rankers(RECIPES["all"]), {"sort": "-price", "facets": ["price", "brand"]}
    prices = [None] * 41 + [float(k) for k in range(N - 41)]
    kept = {"price": prices, "brand": [None] * 40 + FIELDS["brand"][40:], "size": [None] * N}

    def shard(part, **more):
        fields = {name: values[part] for name, values in {**kept, **more}.items()}
        return Index.build(ranker, TITLES[part], IDS[part], fields, threads=1)

    whole, empty = shard(slice(0, N)), Index.build(ranker, [], [], threads=1)
    blank, one, rest = (shard(part) for part in (PARTS[0], PARTS[1], PARTS[3]))
    shards = ShardedIndex({"e": empty, "a": blank, "b": one, "c": rest}, 1)
    assert len(shards) == N
    for more in ({}, {"where": "price > 4 and size is null"}, {"where": "brand = 'Acme'"}):
        expected = whole.search("red hat", 20, **limits, **more)
        found = shards.search("red hat", 20, **limits, **more)
        assert found == expected and found.facets == expected.facets
    assert list(found.facets["price"]) == list(expected.facets["price"])
    text = shard(PARTS[3], price=["4"] * N)
    with pytest.raises(SentembError, match="d: has another set of fields than c"):
        ShardedIndex({"e": empty, "a": blank, "c": shard(slice(41, 50)), "d": text})
    assert len(ShardedIndex({"e": empty, "f": empty}, 1).search("red hat")) == 0


def test_the_command_searches_several_folders(rankers, tmp_path):
    ranker = rankers(MODEL_ALONE)
    of(ranker, slice(0, N)).save(tmp_path / "whole")
    for k, part in enumerate(PARTS):
        of(ranker, part).save(tmp_path / str(k))
    (tmp_path / "queries.tsv").write_text("q1\tred hat\nq2\tlarge woollen coat\n")
    (tmp_path / "only.txt").write_text("p3\np44\nnowhere\n")
    folders = [str(tmp_path / str(k)) for k in range(len(PARTS))]

    def run(*arguments):
        result = CliRunner().invoke(main, ["search", *map(str, arguments)])
        assert result.exit_code == 0, result.output
        return result.stdout, result.stderr.replace(f"{NOTE}\n", "")  # if no test came before

    for options in (
        ["red hat"],
        ["red hat", "--json", "--facets", "brand", "--sort", "price"],
        ["red hat", "--only", tmp_path / "only.txt", "--tsv"],
        ["--queries", tmp_path / "queries.tsv", "--trec"],
        ["--like", "p41", "-k", 3],
    ):
        assert run(*folders, *options) == run(tmp_path / "whole", *options)
    hits = json.loads(run(*folders, "p41", "--json")[0])["titles"]
    assert hits[0]["id"] == "p41"
