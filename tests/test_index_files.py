"""The files of an index: parts come back as they were, and nothing else is used."""

import contextlib
import itertools
import json
from itertools import pairwise

import numpy as np
import pytest
from helpers import list_again, made_up_model
from hypothesis import given, settings
from hypothesis import strategies as st
from reliability import indexes
from reliability.indexes import VALUES, answers, fault_of_mutation, leaves, made_index, with_value
from reliability.samples import ALL_PARTS

from sentemb import Index, SentembError
from sentemb.data.click_log import ClickLog
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index_files import read_description
from sentemb.search.ranking import engine
from sentemb.search.ranking.part import Unfit
from sentemb.search.ranking.parts import PART_TYPES, stored_rows
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe
from sentemb.search.segment import Segment
from sentemb.search.snapshot import Snapshot
from sentemb.system.parallel import Workers

DTYPES = ["float32", "float16", "int8"]
WORDS = ["red", "blue", "hat", "bag", "coat", "x7"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
QUERIES = ["red hat", "x7 bag", "nowhere"]
MODEL = made_up_model(("bag", {}), WORDS[:-1], cells=5, dtype=np.float32)


def made_catalogue(titles, pairs, dtype):
    log = ClickLog.from_pairs([*pairs, ("red hat", "coat"), ("blue", "coat x7")])
    ranker = HybridRanker(MODEL, ALL_PARTS, ClickedQueries.of(log), threads=1)
    rows = stored_rows(MODEL.unit_vectors(titles, "document"), dtype)
    return ranker, ranker.catalogue(titles, vectors=rows)


def scores(ranker, parts, n_titles, queries=QUERIES):
    asked, workers = ranker.asked(queries), Workers(1)
    q, t = np.divmod(np.arange(len(queries) * n_titles), max(n_titles, 1))
    of_pairs, _ = engine.of_pairs(parts, ranker.recipe, asked, q, t, workers)
    is_empty = np.zeros(n_titles, np.bool_)
    found = engine.best(parts, ranker.recipe, asked, 3, is_empty, workers)
    return of_pairs, found.titles, found.scores


# -- parts ------------------------------------------------------------------------------------


PAIRS = st.lists(st.tuples(TEXTS.filter(bool), TEXTS.filter(bool), st.integers(1, 9)), max_size=9)


@given(st.lists(TEXTS, max_size=8), PAIRS, st.sampled_from(DTYPES))
def test_arrays_of_every_part_make_the_part_again(titles, pairs, dtype):
    ranker, catalogue = made_catalogue(titles, pairs, dtype)
    again = {
        part.name: part.of_arrays(catalogue.parts[part.name].arrays(), len(titles), MODEL.dim)
        for part in PART_TYPES
        if part.name in catalogue.parts
    }
    for name, part in catalogue.parts.items():
        for array_name, array in part.arrays().items():
            other = again[name].arrays()[array_name]
            assert np.array_equal(array, other) and array.dtype == other.dtype
    found, expected = (scores(ranker, one, len(titles)) for one in (again, catalogue.parts))
    assert all(map(np.array_equal, found, expected))


# Parts that are lists of titles, and their array with a value for each entry.
LISTS = {"bm25": "weights", "clicked_bm25": "weights", "clicks": "clicks", "name": None}
LISTS |= {"examined": "times"}


def n_words(arrays):
    return len(arrays["keys"]) if "keys" in arrays else arrays["words"].tobytes().count(b"\n")


def is_within_bounds(name, arrays, n, dim):
    """Whether no kernel can read or write beyond an array, whatever it is asked."""
    entries = {"memory": "texts", **dict.fromkeys(LISTS, "titles")}
    if name in entries:
        size, offsets = len(arrays[entries[name]]), arrays["offsets"].tolist()
        n_lists = n if name == "memory" else n_words(arrays)
        if len(offsets) != n_lists + 1 or not all(
            0 <= low <= high <= size for low, high in pairwise(offsets)
        ):
            return False
    if name in LISTS:
        titles, values = arrays["titles"].tolist(), arrays.get(LISTS[name], arrays["titles"])
        return len(values) == len(titles) and all(0 <= t < n for t in titles)
    if name == "unclicked":
        return arrays["values"].shape == (n,)
    if "vectors" in arrays:
        return arrays["vectors"].shape == (n, dim)
    rows = len(arrays["texts"]) if name == "memory" else n
    return arrays["codes"].shape == (rows, dim) and arrays["scales"].shape == (rows,)


NUMBERS = [-(2**63), -(2**31), -3, -1, 0, 1, 2, 3, 7, 40, 128, 2**31 - 1, 2**62]


def changed(array, data):
    """The array with other entries, or of another shape or type."""
    how = data.draw(st.sampled_from(["entry", "entry", "entry", "rows", "dtype", "axis"]))
    if how == "entry" and array.size:
        own = array.copy()
        place = data.draw(st.integers(0, array.size - 1))
        wrong = [np.nan, np.inf, -np.inf, 0.5] if array.dtype.kind == "f" else []
        value = data.draw(st.sampled_from([*NUMBERS, *wrong]))
        own.ravel()[place] = np.array(value).astype(array.dtype)
        return own
    if how == "rows":
        repeats = data.draw(st.lists(st.integers(0, 2), min_size=len(array), max_size=len(array)))
        return np.repeat(array, repeats, axis=0)
    if how == "axis":
        return array[..., None]
    return array.astype(data.draw(st.sampled_from(["i1", "u1", "i4", "i8", "f2", "f4", "f8"])))


MADE = {}  # catalogues by type of the vectors; no example changes their arrays


@pytest.mark.filterwarnings("ignore:.*encountered in cast", "ignore:overflow")
@settings(max_examples=6 * settings().max_examples)
@given(st.data())
def test_no_kernel_reads_beyond_arrays_that_are_accepted(data):
    titles = ["red hat", "blue", "x7 x7", "", "coat bag red"]
    pairs = [("red", "red hat", 3), ("hat bag", "red hat", 1), ("red", "blue", 2)]
    dtype = data.draw(st.sampled_from(DTYPES))
    if dtype not in MADE:
        MADE[dtype] = made_catalogue(titles, pairs, dtype)
    ranker, catalogue = MADE[dtype]
    part = data.draw(st.sampled_from(PART_TYPES).filter(lambda part: part.name in catalogue.parts))
    arrays = dict(catalogue.parts[part.name].arrays())
    for name in data.draw(st.sets(st.sampled_from(sorted(arrays)), min_size=1)):
        arrays[name] = changed(arrays[name], data)
    try:
        with np.errstate(all="ignore"):
            made = part.of_arrays(arrays, len(titles), MODEL.dim)
    except Unfit:
        return
    assert is_within_bounds(part.name, arrays, len(titles), MODEL.dim)
    with np.errstate(all="ignore"):
        scores(ranker, {**catalogue.parts, part.name: made}, len(titles))


def with_entry(place, value):
    def change(array):
        own = array.copy()
        own.ravel()[place] = value
        return own

    return change


REFUSED = {
    "cosine/codes": [lambda a: a[1:], lambda a: a.astype(np.int32), lambda a: a[:, 1:]],
    "cosine/scales": [
        lambda a: a[1:], with_entry(2, np.nan), with_entry(0, -1), with_entry(-1, np.inf),
        with_entry(1, 0.1), lambda a: a.astype(np.float64),
    ],
    "memory/offsets": [
        lambda a: a[1:], lambda a: a + 1, lambda a: a[::-1], with_entry(1, 2**40),
        with_entry(2, -1), with_entry(-1, 2**40), lambda a: a.astype(np.int32),
    ],
    "memory/codes": [lambda a: a[1:], lambda a: a[:, 1:]],
    "memory/scales": [lambda a: a[1:], with_entry(0, np.nan)],
    "memory/texts": [lambda a: a[1:], lambda a: a.astype(np.int64), lambda a: a[:, None]],
    "bm25/words": [
        lambda a: a[1:3], with_entry(0, 0xFF), with_entry(1, 10),
        lambda a: np.frombuffer(b"same\n" * a.tobytes().count(b"\n"), np.uint8),
    ],
    "bm25/offsets": [
        lambda a: a[1:], lambda a: a[::-1], with_entry(1, 2**40), with_entry(1, 0),
        with_entry(0, -1), lambda a: a.astype(np.int32),
    ],
    "bm25/titles": [lambda a: a[1:], lambda a: a + 40, lambda a: a - 1, with_entry(0, 40)],
    "bm25/weights": [lambda a: a[1:], with_entry(0, np.nan), with_entry(-1, np.inf)],
    "clicked_bm25/titles": [with_entry(0, -1)],
    "unclicked/values": [lambda a: a[1:], with_entry(0, 0.5), with_entry(0, np.nan)],
}  # fmt: skip


def described(folder, name):
    """Let ``index.json`` say what array ``name`` is now."""
    path = folder / "index.json"
    told = json.loads(path.read_text())
    part, array_name = name.split("/")
    array = np.load(folder / f"{name}.npy")
    told["parts"][part][array_name] = [array.dtype.name, *array.shape]
    path.write_text(json.dumps(told))
    list_again(folder)


@pytest.mark.parametrize("name", REFUSED)
def test_arrays_that_kernels_could_not_use_are_refused(name, tmp_path):
    """Also where sizes and checksums fit, as a hostile sender would have it."""
    folder = tmp_path / "index"
    made_index(dtype="int8").save(folder)
    file, told = folder / f"{name}.npy", (folder / "index.json").read_bytes()
    whole = np.load(file)
    part = name.partition("/")[0]
    for number, change in enumerate(REFUSED[name]):
        np.save(file, change(whole))
        with pytest.raises(SentembError, match="the index is damaged"):
            Index.open(folder)
        described(folder, name)
        with pytest.raises(SentembError, match=rf'{part}.*index is damaged|"parts" is') as caught:
            Index.open(folder)
        assert "\n" not in str(caught.value), number
        (folder / "index.json").write_bytes(told)
    file.unlink()
    with pytest.raises(SentembError, match="it is missing"):
        Index.open(folder)


def test_a_memory_with_more_texts_than_rows_is_refused():
    _, catalogue = made_catalogue(["red hat", "blue"], [("red", "red hat", 3)], "float32")
    arrays = dict(catalogue.parts["memory"].arrays())
    arrays["texts"] = np.repeat(arrays["texts"], 2)
    arrays["offsets"] = arrays["offsets"] * 2
    with pytest.raises(Unfit):
        PART_TYPES[1].of_arrays(arrays, 2, MODEL.dim)


def test_the_recipe_of_the_description_is_that_of_the_ranker(tmp_path):
    made_index().save(tmp_path / "index")
    path = tmp_path / "index/index.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"recipe": told["recipe"] | {"k1": 0.7}}))
    with pytest.raises(SentembError, match=r"its ranker is another one than index.json says"):
        Index.open(tmp_path / "index")


def test_queries_that_the_ranker_does_not_have_are_refused(tmp_path):
    folder = tmp_path / "index"
    made_index().save(folder)
    whole = np.load(folder / "memory/texts.npy")
    expected = answers(Index.open(folder, 1))[0]
    for wrong in (10**6, -3):
        np.save(folder / "memory/texts.npy", np.full_like(whole, wrong))
        list_again(folder)
        index = Index.open(folder, 1)
        assert index.search(indexes.QUERIES, 60) == expected, "no search reads the texts"
        with pytest.raises(SentembError, match=r"the memory names query .*the index is damaged"):
            index.explain("red hat", ["p1"])


@pytest.mark.parametrize(("value", "k"), [(np.nan, 1), (np.nan, 60), (np.inf, 1), (9.0, 60)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_vector_that_is_not_of_unit_length_is_never_searched(tmp_path, value, k, dtype):
    folder = tmp_path / "index"
    made_index(dtype=dtype).save(folder)
    vectors = np.load(folder / "cosine/vectors.npy")
    vectors[5] = value
    np.save(folder / "cosine/vectors.npy", vectors)
    list_again(folder)
    index = Index.open(folder, 1)
    for queries in (["red hat"], ["red hat", "blue", "coat", "bag", "hat shoe"]):
        with pytest.raises(SentembError, match=r"vectors.npy: .*not of unit length"):
            index.search(queries, k)
        with pytest.raises(SentembError, match=r"row 5 of the titles|not of unit length"):
            index.search(queries, k, cosine=True)


# -- index.json -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mutated") / "index"
    made_index().save(folder)
    told = json.loads((folder / "index.json").read_text())
    return folder, told, answers(Index.open(folder, 1))


@given(st.data())
def test_another_value_in_the_description_is_refused_or_harmless(saved, data):
    """`make reliability` takes every value in every place."""
    folder, told, expected = saved
    path = data.draw(st.sampled_from([*leaves(told)]))
    value = data.draw(st.sampled_from([..., *VALUES]))
    assert fault_of_mutation(folder, told, path, value, expected) is None


def test_a_description_with_another_value_is_read_or_refused_in_one_line(saved):
    folder, told, _ = saved
    paths = [path for path in leaves(told) if path[0] == "parts" and path[1:2] != ("memory",)]
    for path, value in itertools.product(paths, (..., *VALUES)):
        (folder / "index.json").write_text(json.dumps(with_value(told, path, value)))
        with contextlib.suppress(SentembError):
            read_description(folder)
    (folder / "index.json").write_text(json.dumps(told))


def test_the_description_tells_all_that_is_there(saved):
    folder, told, _ = saved
    files = {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
    assert {name for name in files if not name.startswith("model/")} == {
        "index.json",
        *told["files"],
    }
    assert told["recipe"] == ALL_PARTS.as_dict() and told["titles"] == 40
    for part, arrays in told["parts"].items():
        for name, (dtype, *shape) in arrays.items():
            array = np.load(folder / part / f"{name}.npy")
            assert (array.dtype.name, [*array.shape]) == (dtype, shape)


def test_the_files_of_a_part_may_be_left_out_only_if_no_weight_asks_for_them(saved, tmp_path):
    folder, told, _ = saved
    index = Index.open(folder, 1)
    for part in told["parts"]:
        index.save(tmp_path / part)
        parts = {name: arrays for name, arrays in told["parts"].items() if name != part}
        files = {n: file for n, file in told["files"].items() if not n.startswith(f"{part}/")}
        path = tmp_path / part / "index.json"
        path.write_text(json.dumps(told | {"parts": parts}))
        with pytest.raises(SentembError, match=r'lists other files|"parts" is missing or wrong'):
            Index.open(tmp_path / part)
        path.write_text(json.dumps(told | {"parts": parts, "files": files}))
        why = '"parts" is missing or wrong' if part == "cosine" else f"the part {part} is missing"
        with pytest.raises(SentembError, match=why):
            Index.open(tmp_path / part)


@pytest.mark.parametrize("weights", [{"cosine": 1.0}, {"cosine": 1.0, "memory": 0.5}, {"bm25": 1}])
def test_only_parts_with_a_weight_and_the_vectors_are_stored(weights, tmp_path):
    index = made_index()
    ranker = HybridRanker(index.model, Recipe(weights), index.ranker.clicks)
    catalogue = ranker.catalogue(index.titles, index.ids)
    segment = Segment.of(index.ids, catalogue, index.fields.as_one())
    Index(Snapshot(ranker, (segment,))).save(tmp_path / "i")
    told = json.loads((tmp_path / "i/index.json").read_text())
    assert told["parts"].keys() == {"cosine", *weights}
    assert (tmp_path / "i/model/ranker").exists() == (weights != {"cosine": 1.0})
