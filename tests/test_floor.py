"""The floor: what it refuses, that it is stored, and what a search says below it."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model

from sentemb import Index, SentembError
from sentemb.cli import main
from sentemb.data.click_log import read_click_log
from sentemb.data.examinations import Examinations, Shown
from sentemb.data.simulation.simulator import simulate
from sentemb.data.splitting import split_log
from sentemb.models.files.tensor_files import open_tensors, write_tensors
from sentemb.retrieval.bm25 import Statistics
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking import floor_fit
from sentemb.search.ranking.engine import Ranked
from sentemb.search.ranking.fitting import fit_weights_of
from sentemb.search.ranking.floor import FEATURES, Letters
from sentemb.search.ranking.floor_fit import (
    LEAST_QUERIES,
    LETTERS_REFUSED,
    QUERIES_REFUSED,
    fitted_floor,
    random_letters,
)
from sentemb.search.ranking.opening import load_ranker
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.searcher import BELOW_FLOOR, NOTHING_KNOWN
from sentemb.search.sharded_index import ShardedIndex
from sentemb.text.words import folded_words


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    """Clicks to learn from, to fit the floor to, and to test it."""
    folder = tmp_path_factory.mktemp("log")
    simulate(folder / "log", pairs=3000, dev_queries=20, test_queries=20, seed=1)
    return split_log(read_click_log(folder / "log" / "pairs.tsv"), dev=0.2, test=0.2)


@pytest.fixture(scope="module")
def ranker(sides):
    log, dev, _ = sides
    model = made_up_model(("bag", {}), [*log.queries, *log.titles], cells=16, dtype=np.float32)
    clicks = ClickedQueries.of(log)
    return fit_weights_of(model, dev, sorted({*log.titles, *dev.titles}), None, clicks, clicks)


@pytest.fixture(scope="module")
def folder(ranker, tmp_path_factory):
    """A model with its ranker, and an index."""
    folder = tmp_path_factory.mktemp("floor")
    ranker.model.save_pretrained(folder / "model")
    ranker.save(folder / "model")
    index = Index.build(ranker, sorted(set(ranker.clicks.titles)))
    index.save(folder / "index")
    return folder


def below(ranker, queries):
    over = ranker.over(sorted({*ranker.clicks.titles}))
    return over.is_below_floor(queries, over.ranked(queries, 1)) & ~over.are_answered(queries)


def test_it_refuses_random_letters_and_few_real_queries(ranker, sides):
    assert below(ranker, random_letters(99)).mean() >= LETTERS_REFUSED
    assert below(ranker, sides[2].queries).mean() < 0.03
    assert not below(ranker, ranker.clicks.queries).any(), "queries of the log"


def test_it_refuses_more_letters_where_no_dev_query_is_lost(ranker, sides):
    """Texts that it was not fitted to, so many that chance moves the share by 0.3 %."""
    assert below(ranker, random_letters(99, 1500)).mean() > 0.988
    assert below(ranker, sides[1].queries).mean() <= 0.004


def test_it_refuses_at_most_one_dev_query_in_fifty(ranker, sides):
    assert below(ranker, sides[1].queries).mean() <= QUERIES_REFUSED


def test_names_of_titles_are_not_refused(ranker):
    """Also words that one title alone has."""
    titles = sorted(set(ranker.clicks.titles))
    words = Counter(word for title in titles for word in set(folded_words(title)))
    rare = sorted(word for word, count in words.items() if count == 1)
    assert len(rare) > 20 and not below(ranker, rare).any()
    pairs = [" ".join(folded_words(title)[:2]) for title in titles]
    assert not below(ranker, pairs).any()


def test_random_letters_are_a_function_of_their_seed():
    made = [random_letters(seed) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
    words = [text.split() for text in made[0]]
    assert {*map(len, words)} == {1, 2, 3}
    assert {len(word) for text in words for word in text} == set(range(3, 10))


def test_there_is_no_floor_where_it_cannot_be_safe(ranker, sides):
    notes = []
    few = sides[1].queries[: LEAST_QUERIES - 1]
    assert fitted_floor(ranker, few, 0, notes.append) is None
    assert "199 dev queries are too few to tell, 200 are needed" in notes[-1]
    enough = sides[1].queries[:LEAST_QUERIES]
    assert fitted_floor(ranker, enough, 0, notes.append) is not None and len(notes) == 1
    # Nobody can tell these from random letters.
    assert fitted_floor(ranker, random_letters(5), 0, notes.append) is None
    assert "would refuse more than 2% of the dev queries" in notes[-1]


def test_recorded_queries_without_a_click_count(ranker, sides):
    """Those that look like random letters too, if they were searched twice."""
    log, dev, _ = sides
    odd = random_letters(5)[:40]
    titles = sorted({*log.titles, *dev.titles})
    for times, has_floor in ((1, True), (2, False)):
        shown = [Shown(query, "p0", titles[0], 1, times) for query in [*odd, log.queries[0]]]
        clicks = replace(ClickedQueries.of(log), examinations=Examinations.of(shown))
        notes = []
        fitted = fit_weights_of(
            ranker.model, dev, titles, None, clicks, clicks, on_note=notes.append
        )
        assert (fitted.floor is not None) == has_floor
        assert any("the record has without a click" in note for note in notes) != has_floor
    # As many as one in fifty may be refused, of both kinds together.
    queries = [*dev.queries, *dev.queries]
    for count, has_floor in ((6, True), (40, False)):
        floor = fitted_floor(ranker, queries, 0, notes.append, odd[:count])
        assert (floor is not None) == has_floor


def test_letters_have_the_probabilities_of_their_definition():
    letters = Letters.of(Statistics(["ab", "ac"], np.array([3, 1]), 4, 1.0))
    b, e = "\x02", "\x03"
    assert letters.counts == {f"{b}{b}a": 4, f"{b}ab": 3, f"ab{e}": 3, f"{b}ac": 1, f"ac{e}": 1}
    shares = [(4 + 0.1) / (4 + 4), (3 + 0.1) / (4 + 4), (3 + 0.1) / (3 + 4)]
    assert letters.log_probability("ab") == pytest.approx(np.log(shares).mean())
    assert letters.log_probability("qz") < letters.log_probability("ac")


def test_it_is_stored_with_the_ranker_and_the_index(ranker, folder, sides):
    queries = [*sides[2].queries, *random_letters(7)]
    expected = below(ranker, queries)
    stored = load_ranker(folder / "model")
    assert stored.floor.as_dict() == ranker.floor.as_dict()
    assert stored.floor.letters.counts == ranker.floor.letters.counts
    assert np.array_equal(below(stored, queries), expected)
    hits = Index.open(folder / "index").search(queries, 1)
    reasons = [found.reason for found in hits]
    assert set(reasons) == {None, BELOW_FLOOR, NOTHING_KNOWN}
    assert [bool(found) for found in hits] == [reason is None for reason in reasons]
    for reason, is_below in zip(reasons, expected, strict=True):
        assert is_below if reason == BELOW_FLOOR else reason == NOTHING_KNOWN or not is_below


def test_another_recipe_or_none_has_no_floor(ranker):
    assert ranker.alone("bm25").floor is None and ranker.over(["a"]).floor is ranker.floor
    bare = HybridRanker(ranker.model, ranker.recipe, ranker.clicks, ranker.fields)
    queries = ["qzx wvk"]
    assert not below(bare, queries).any()
    nothing = Ranked(np.zeros((1, 0), np.int64), np.zeros((1, 0)), {})
    assert not ranker.is_below_floor(queries, nothing).any()


def test_search_says_why_and_shows_the_nearest_titles(ranker, folder, sides):
    index = Index.open(folder / "index")
    texts = random_letters(7)
    query = next(
        text for text, hits in zip(texts, index.search(texts), strict=True)
        if hits.reason == BELOW_FLOOR
    )  # fmt: skip

    def search(*options):
        result = CliRunner().invoke(main, ["search", str(folder / "index"), query, *options])
        assert result.exit_code == 0, result.output
        return result.stdout

    reason, *listed = search().splitlines()
    assert reason == f"       no good match: {BELOW_FLOOR}; nearest:"
    assert listed == search("--all").splitlines() and len(listed) == 10
    assert search("--offset", "8", "-k", "2").splitlines()[1:] == listed[8:]
    found = json.loads(search("--json"))
    assert found["titles"] == [] and found["no_match"] == BELOW_FLOOR
    everything = json.loads(search("--json", "--all"))
    assert found["nearest"] == everything["titles"] == index.search(query).nearest
    assert "; nearest:" in index.search(query)._repr_html_()
    # What was asked for is left out, also of the nearest.
    assert index.search(query, min_score=1e9).nearest == []
    assert json.loads(search("--json", "--min-score", "1e9")).keys() == {
        "id", "query", "titles", "no_match"
    }  # fmt: skip
    assert len(everything["titles"]) == 10 and "no_match" not in everything
    assert [hit["id"] for hit in everything["titles"]] == [
        hit.id for hit in index.search(query, everything=True)
    ]
    assert len(json.loads(search("--json", "--cosine"))["titles"]) == 10


def test_the_floor_is_asked_after_the_filter(folder, sides):
    """What answers a query must be among the titles that may be found."""
    index = Index.open(folder / "index")
    title = next(title for title in index.titles if len(folded_words(title)) > 2)
    name = " ".join(folded_words(title)[:3])
    others = [
        id for id, text in zip(index.ids, index.titles, strict=True) if name not in text.lower()
    ]
    assert index.search(name).reason is None and index.search(name, 1)
    texts = random_letters(7)
    for only in (index.ids[::20], others):
        mask = index.mask_of(only)
        queries = [name, *sides[2].queries, *index.ranker.clicks.queries[:50], *texts]
        expected = index.ranker.is_below_floor(queries, index.ranked(queries, 1, mask))
        found = index.search(queries, only=only)
        clicked = index.ranker.clicks.of_titles(
            [t for t, kept in zip(index.titles, mask, strict=True) if kept]
        )
        answered = {index.ranker.clicks.queries[q] for q in clicked.queries.tolist()}
        for query, is_below, hits in zip(queries, expected, found, strict=True):
            if query in answered:
                assert hits and hits.reason is None, query
            elif hits.reason == BELOW_FLOOR:
                assert is_below, query
        assert BELOW_FLOOR in {hits.reason for hits in found}


def damage(path, old):
    """Change a letter of a file in place, of which ``old`` is a part."""
    raw = path.read_bytes()
    assert raw.count(old) == 1
    path.write_bytes(raw.replace(old, old.swapcase()))


def test_a_search_reads_no_clicks_and_statistics_only_below_a_floor(folder, ranker, tmp_path):
    """The clicks of a large log take more memory than all else of a search."""
    Index.open(folder / "index").save(tmp_path / "index")
    path = tmp_path / "index" / "model" / "ranker" / "ranker.safetensors"
    # A line of the queries and what follows them in the file.
    last = ranker.clicks.queries[-2:]
    damage(path, "".join(f"{text}\n" for text in last).encode())
    index = Index.open(tmp_path / "index")
    queries = [*random_letters(7), "", last[0]]
    assert index.search(queries) == Index.open(folder / "index").search(queries)
    for read in (lambda: index.ranker.clicks, lambda: Index.verify(tmp_path / "index")):
        with pytest.raises(SentembError, match="damaged: queries does not match its checksum"):
            read()
    words = ranker.fields.whole.words
    damage(path, "".join(f"{word}\n" for word in words[:30]).encode())
    with pytest.raises(SentembError, match="damaged: whole_words does not match its checksum"):
        Index.open(tmp_path / "index").search(queries)


def test_a_change_of_an_index_does_not_write_its_model_and_ranker_again(folder, tmp_path):
    Index.open(folder / "index").save(tmp_path / "index")
    files = [path for path in (tmp_path / "index/model").rglob("*") if path.is_file()]
    numbers = [path.stat().st_ino for path in files]
    written = {path: path.read_bytes() for path in files}
    index = Index.open(tmp_path / "index")
    for number in range(2):
        index.add([f"hat {number}"], [f"new {number}".replace(" ", "-")])
        index.save(tmp_path / "index", force=True)
        assert [path.stat().st_ino for path in files] == numbers
        assert all(path.stat().st_nlink == 1 for path in files)
    assert len(Index.open(tmp_path / "index")) == len(index)
    # Another folder has files of its own, and another floor is written.
    index.save(tmp_path / "other")
    index.ranker.floor = None
    index.save(tmp_path / "index", force=True)
    assert Index.open(tmp_path / "index").ranker.floor is None
    for path, raw in written.items():
        name = path.relative_to(tmp_path / "index")
        assert (tmp_path / "other" / name).read_bytes() == raw
        assert (tmp_path / "other" / name).stat().st_nlink == 1


def other_floor(folder, tmp_path, change):
    """A copy of the model whose floor ``change`` has changed, with a right checksum."""
    path = folder / "model" / "ranker" / "ranker.safetensors"
    with open_tensors(path) as file:
        contents = file.metadata
        tensors = {name: np.array(array) for name, array in file.checked()}
    change(contents, tensors)
    load_ranker(folder / "model").model.save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "ranker").mkdir()
    write_tensors(tmp_path / "model" / "ranker" / path.name, tensors, contents)
    return tmp_path / "model"


@pytest.mark.parametrize(
    "change",
    [
        lambda told, _: told.update(floor=None),
        lambda told, _: told["floor"].pop("weights"),
        lambda told, _: told["floor"].update(weights=[1.0] * len(FEATURES)),
        lambda told, _: told["floor"]["weights"].__setitem__(0, "1"),
        lambda told, _: told["floor"].update(threshold=None),
        lambda _, tensors: tensors.pop("letters"),
        lambda _, tensors: tensors.update(letter_counts=tensors["letter_counts"][1:]),
        lambda _, tensors: tensors["letter_counts"].__setitem__(0, 0),
        lambda _, tensors: tensors.update(letters=np.roll(tensors["letters"], 1)),
    ],
)
def test_a_damaged_floor_is_refused(folder, tmp_path, change):
    damaged = other_floor(folder, tmp_path, change)
    with pytest.raises(SentembError, match=r"the ranker is damaged.*sentemb tune"):
        load_ranker(damaged)
    other = other_floor(folder, tmp_path / "same", lambda *_: None)
    assert load_ranker(other).floor is not None


def test_indexes_that_are_searched_together_refuse_what_one_does(ranker, folder, sides):
    index = Index.open(folder / "index")
    queries = [*sides[2].queries[:50], *random_letters(7)[::9]]
    middle = len(index) // 2
    halves = {
        str(part): Index.build(index.ranker, index.titles[part], index.ids[part])
        for part in (slice(0, middle), slice(middle, len(index)))
    }
    expected = index.search(queries)
    found = ShardedIndex(halves).search(queries)
    assert found == expected
    reasons = [hits.reason for hits in expected]
    assert [hits.reason for hits in found] == reasons and BELOW_FLOOR in reasons


def test_the_weights_are_those_of_a_logistic_regression_with_a_ridge():
    rng = np.random.default_rng(0)
    real, unreal = rng.normal(1, 1, (40, 5)), rng.normal(0, 2, (60, 5))
    found = np.array(floor_fit._separating(real, unreal))
    x, y = np.concatenate([real, unreal]), np.repeat([1.0, 0.0], [40, 60])
    weights = found[1:]
    assert (weights > 0).all()
    p = 1 / (1 + np.exp(-found[0] - x @ weights))
    # In units of the deviation, where the ridge holds them; the intercept has one as well.
    w = np.array([found[0] + weights @ x.mean(axis=0), *(weights * x.std(axis=0))])
    z = np.concatenate([np.ones((100, 1)), (x - x.mean(axis=0)) / x.std(axis=0)], axis=1)
    np.testing.assert_allclose(z.T @ (p - y) + floor_fit._RIDGE * w, 0, atol=1e-5)
    # A feature that speaks against real queries is left out, and one that never changes.
    real[:, 2], real[:, 4], unreal[:, 4] = -5, 1, 1
    again = np.array(floor_fit._separating(real, unreal))
    assert again[3] == again[5] == 0 and (again[[1, 2, 4]] >= 0).all()
