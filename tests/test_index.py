"""An index folder: what is stored, found, added, removed, and refused."""

import copy
import json
import multiprocessing
import pickle
import threading
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pytest
from helpers import list_again, made_up_model, made_up_pair_model, tree
from hypothesis import given
from hypothesis import strategies as st
from naive import highest_dots

from sentemb import Index, SentembError, explain
from sentemb.models.contracts import Retriever
from sentemb.search.searcher import Hit
from sentemb.system import checked_files

WORDS = [
    "red",
    "green",
    "blue",
    "small",
    "large",
    "cotton",
    "woollen",
    "hat",
    "bag",
    "coat",
    "shoe",
    "scarf",
]
BAG = ("bag", {})


def made_up_titles(n, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 5))) for _ in range(n)]


TITLES = made_up_titles(300)
IDS = [f"p{place}" for place in range(300)]
QUERIES = ["red hat", "large woollen coat", "blue"]


@pytest.fixture(scope="module")
def bag():
    return made_up_model(BAG, TITLES, cells=20, dtype=np.float32)


@pytest.fixture(scope="module")
def index(bag):
    return Index.build(bag, TITLES, IDS)


@pytest.fixture
def folder(index, tmp_path):
    index.save(tmp_path / "index")
    return tmp_path / "index"


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# -- what is found ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "error"), [("float32", 1e-6), ("float16", 2e-3), ("int8", 2e-2)])
def test_hits_are_the_titles_with_the_highest_cosines(bag, tmp_path, dtype, error):
    index = Index.build(bag, TITLES, IDS, dtype=dtype)
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index")
    cosines = unit(bag.encode_query(QUERIES)) @ unit(bag.encode_document(TITLES)).T
    for query, hits, own in zip(QUERIES, opened.search(QUERIES, 7), cosines, strict=True):
        assert [hit.title for hit in hits] == [TITLES[IDS.index(hit.id)] for hit in hits]
        scores = np.array([hit.score for hit in hits])
        assert np.abs(scores - [own[IDS.index(hit.id)] for hit in hits]).max() < error
        assert np.abs(scores - np.sort(own)[::-1][:7]).max() < error
        assert hits == opened.search(query, 7) == index.search(query, 7)
    assert opened.dtype == dtype and len(opened) == 300
    assert list(opened.ids) == IDS and list(opened.titles) == TITLES


def test_float32_hits_are_those_of_the_naive_twin(index, bag):
    _, scores = index.find(QUERIES, 20)
    queries, titles = bag.encode_query(QUERIES), bag.encode_document(TITLES)
    expected = highest_dots(unit(queries), unit(titles), 20)
    assert np.abs(scores - expected[1]).max() < 1e-6
    assert isinstance(index, Retriever)


def test_titles_without_words_are_kept_counted_and_never_found(bag, tmp_path):
    index = Index.build(bag, ["", "red hat", " ", "blue bag"], list("abcd"))
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index")
    assert opened.n_empty == 2 and len(opened) == 4
    assert {hit.id for hit in opened.search("red hat", 10)} == {"b", "d"}
    assert {hit.id for hit in opened.search("red hat", 10, only=["a", "b"])} == {"b"}
    assert opened.search("", 10) == [] and opened.search(["", "blue"], 1)[0] == []


def test_only_and_min_score_restrict(index):
    hits = index.search("red hat", 300)
    assert len(hits) == 300
    allowed = {hit.id for hit in hits[::3]}
    assert index.search("red hat", 300, only=allowed) == hits[::3]
    assert index.search("red hat", 300, only=[*allowed, "unknown"]) == hits[::3]
    assert index.search("red hat", 5, only=[]) == []
    least = hits[40].score
    found = index.search("red hat", 300, min_score=least)
    assert found == [hit for hit in hits if hit.score >= least]
    assert index.search("red hat", 0) == []


# -- adding and removing ---------------------------------------------------------------------------


@given(st.data())
def test_added_and_removed_is_as_built_from_the_rest(bag, data):
    dtype = data.draw(st.sampled_from(["float32", "float16", "int8"]))
    number = st.integers(0, 40)
    first = data.draw(number)
    texts = dict(zip(IDS[:first], [*TITLES[:3], "", *TITLES[3:]][:first], strict=True))
    index = Index.build(bag, list(texts.values()), list(texts), dtype=dtype)
    for step in range(data.draw(st.integers(0, 3))):
        gone = data.draw(st.sets(st.sampled_from(sorted(texts)))) if texts else set()
        index.remove(gone)
        texts = {id: text for id, text in texts.items() if id not in gone}
        more = {f"n{step}-{place}": TITLES[-place] for place in range(data.draw(number))}
        index.add(list(more.values()), list(more))
        texts |= more
    rebuilt = Index.build(bag, list(texts.values()), list(texts), dtype=dtype)
    assert list(index.ids) == list(texts) and list(index.titles) == list(texts.values())
    assert index.n_empty == rebuilt.n_empty
    assert index.search(QUERIES, 200) == rebuilt.search(QUERIES, 200)


def test_an_id_is_added_once_and_removed_once(index, folder):
    changed = Index.open(folder)
    with pytest.raises(SentembError, match="the id p3 is in the index already"):
        changed.add(["a hat", "another hat"], ["new", "p3"])
    with pytest.raises(SentembError, match="the id new is not in the index"):
        changed.remove(["p3", "new"])
    with pytest.raises(SentembError, match="titles 0 and 1 have the same id, new"):
        changed.add(["a hat", "another hat"], ["new", "new"])
    assert changed.search(QUERIES) == index.search(QUERIES)


def test_a_changed_index_replaces_its_own_folder(folder, bag):
    changed = Index.open(folder)
    changed.remove(IDS[:100])
    changed.add(["a red hat"], ["new"])
    with pytest.raises(SentembError, match="is not empty"):
        changed.save(folder)
    changed.save(folder, force=True)
    again = Index.open(folder)
    assert again.search(QUERIES, 400) == changed.search(QUERIES, 400)
    Index.build(bag, [*TITLES[100:], "a red hat"], [*IDS[100:], "new"]).save(folder.parent / "new")
    assert tree(folder) == tree(folder.parent / "new")


# -- files -----------------------------------------------------------------------------------------


def test_equal_titles_and_model_give_equal_files(index, bag, tmp_path):
    index.save(tmp_path / "a")
    calls = []
    again = Index.build(bag, TITLES, IDS, threads=3, on_progress=lambda *now: calls.append(now))
    again.save(tmp_path / "b")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    assert calls == [(300, 300)]
    Index.verify(tmp_path / "a")


def test_other_types_leave_no_file_behind(index, bag, folder):
    Index.build(bag, TITLES, IDS, dtype="int8").save(folder, force=True)
    assert (folder / "cosine/scales.npy").exists()
    index.save(folder, force=True)
    assert not (folder / "cosine/scales.npy").exists()


DAMAGES = {
    "index.json": "",
    "ids.txt": "it has",
    "id-offsets.npy": "it has",
    "titles.txt": "it has",
    "title-offsets.npy": "it has",
    "cosine/vectors.npy": "it has",
    "empty.npy": "it has",
    "model/model.safetensors": "damaged",
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_missing_or_truncated_file_is_one_clear_error(folder, name):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-1] if name != "index.json" else whole[:-9])
    with pytest.raises(SentembError, match=f"{name}: .*{DAMAGES[name]}"):
        Index.open(folder)
    (folder / name).unlink()
    with pytest.raises(SentembError, match=f"{name}.* missing"):
        Index.open(folder)


@pytest.mark.parametrize("name", ["cosine/vectors.npy", "empty.npy", "id-offsets.npy"])
def test_a_header_that_is_not_python_is_one_clear_error(folder, name):
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole.replace(b")", b" ", 1))
    with pytest.raises(SentembError, match=f"{name}: .* not those that index.json lists"):
        Index.open(folder)
    list_again(folder)
    with pytest.raises(SentembError, match=f"{name}: .* is not a whole NumPy array"):
        Index.open(folder)


def test_what_is_mapped_is_checked_by_verify(index, tmp_path, monkeypatch):
    monkeypatch.setattr(checked_files, "_SAMPLE", 64)
    folder = tmp_path / "index"
    index.save(folder)
    raw = bytearray((folder / "cosine/vectors.npy").read_bytes())
    for place in (0, -1, len(raw) - 64, (len(raw) - 64) // 15, (len(raw) - 64) // 15 + 63):
        raw[place] ^= 1
        (folder / "cosine/vectors.npy").write_bytes(raw)
        with pytest.raises(SentembError, match=r"vectors.npy: .* not those that index.json lists"):
            Index.open(folder)
        raw[place] ^= 1
    raw[(len(raw) - 64) // 15 + 64] ^= 1
    (folder / "cosine/vectors.npy").write_bytes(raw)
    Index.open(folder)
    with pytest.raises(SentembError, match=r"vectors.npy: .* do not match their checksum"):
        Index.verify(folder)


def test_a_vector_that_is_not_a_number_is_never_searched(folder):
    raw = bytearray((folder / "cosine/vectors.npy").read_bytes())
    raw[-4:] = np.float32("nan").tobytes()
    (folder / "cosine/vectors.npy").write_bytes(raw)
    list_again(folder)
    with pytest.raises(SentembError, match="row 299 of the titles"):
        Index.open(folder).search("hat")


def test_foreign_and_newer_folders_are_refused(index, folder, tmp_path, model_dir):
    with pytest.raises(SentembError, match="there is no index here"):
        Index.open(model_dir)
    with pytest.raises(SentembError, match="there is no index here"):
        Index.open(tmp_path / "nothing")
    told = json.loads((folder / "index.json").read_text())
    for number in (0, 2, "1", True, None):
        (folder / "index.json").write_text(json.dumps(told | {"format": number}))
        with pytest.raises(SentembError, match="and this version of sentemb reads format 1"):
            Index.open(folder)
    for name in told.keys() - {"format"}:
        rest = {key: value for key, value in told.items() if key != name}
        (folder / "index.json").write_text(json.dumps(rest))
        with pytest.raises(SentembError, match=f'"{name}" is missing or wrong'):
            Index.open(folder)
    (folder / "index.json").write_text(json.dumps(told | {"dim": 21}))
    with pytest.raises(SentembError, match="another model than that of the vectors"):
        Index.open(folder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(SentembError, match="holds other files than an index"):
        index.save(tmp_path / "mine", force=True)
    assert tree(tmp_path / "mine") == {"notes.txt": b"mine"}


def test_the_current_folder_is_filled_and_never_replaced(index, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    index.save(".")
    assert len(Index.open(".")) == len(index)
    before = tree(tmp_path)
    with pytest.raises(SentembError, match=r"\.: has the current folder, which would be removed"):
        index.save(".", force=True)
    assert tree(tmp_path) == before


def test_another_model_in_the_folder_is_refused(folder):
    other = made_up_model(BAG, TITLES, cells=20, dtype=np.float32, seed=1)
    other.save_pretrained(folder.parent / "other")
    (folder.parent / "other/model.safetensors").replace(folder / "model/model.safetensors")
    with pytest.raises(SentembError, match="another model than that of the vectors"):
        Index.open(folder)


@pytest.mark.parametrize(
    ("titles", "ids", "dtype", "message"),
    [
        (["a"], ["x", "y"], "float32", "1 titles and 2 ids"),
        (["a", "b"], ["x", "x"], "float32", "the same id, x"),
        (["a"], ["x y"], "float32", "no white space"),
        (["a"], [""], "float32", "no white space"),
        (["a\nb"], ["x"], "float32", "has a line end"),
        (["\ud800"], ["x"], "float32", "not valid Unicode"),
        (["a"], ["x"], "float64", "dtype is 'float64'"),
        ("a text", None, "float32", "give a list of texts"),
        (["a", None], None, "float32", "text"),
    ],
)
def test_what_cannot_be_stored_is_refused(bag, titles, ids, dtype, message):
    with pytest.raises(SentembError, match=message):
        Index.build(bag, titles, ids, dtype=dtype)


def test_a_pair_model_is_refused():
    with pytest.raises(SentembError, match="scores pairs and has no vector of a text"):
        Index.build(made_up_pair_model(TITLES), TITLES)
    with pytest.raises(SentembError, match="a model is needed, not str"):
        Index.build("model", TITLES)


def test_an_empty_index_finds_nothing(bag, tmp_path):
    Index.build(bag, []).save(tmp_path / "index")
    index = Index.open(tmp_path / "index")
    assert len(index) == 0 and index.search("hat") == []
    index.add(["a hat"], ["x"])
    assert index.search("hat")[0].id == "x"


# -- threads and processes -------------------------------------------------------------------------


def test_eight_threads_find_the_same(folder):
    index = Index.open(folder, threads=2)
    expected, found = index.search(QUERIES), []

    def search():
        found.extend(index.search(QUERIES) == expected for _ in range(5))

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 40


def test_pickles_and_copies_find_the_same(folder, index):
    opened = Index.open(folder)
    for one in (index, opened):
        for other in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
            assert other.search(QUERIES) == index.search(QUERIES)
    assert len(pickle.dumps(opened)) < 2000
    raw = pickle.dumps(opened)
    opened.remove(["p0"])
    assert len(pickle.loads(pickle.dumps(opened))) == 299
    opened.save(folder, force=True)
    with pytest.raises(SentembError, match="has changed since the object was pickled"):
        pickle.loads(raw)


def test_a_forked_child_searches(folder):
    index = Index.open(folder, threads=2)
    expected = index.search(QUERIES)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(index.search, (QUERIES,)).get(20) == expected


TABLE = {"ID": [7, 8, 9], "Title": TITLES[:3], "price": [1.5, None, 3.0], "brand": ["a", "b", None]}


def table_of(kind, columns):
    if kind == "dict":
        return columns
    package = pytest.importorskip("pyarrow" if kind == "pyarrow" else "pandas")
    return package.table(columns) if kind == "pyarrow" else package.DataFrame(columns)


@pytest.mark.parametrize("kind", ["pandas", "pandas with floats", "pyarrow", "dict"])
def test_an_index_takes_tables(bag, kind):
    ids = {"ID": [7.0, 8.0, 9.0]} if kind == "pandas with floats" else {}
    table = table_of(kind, TABLE | ids)
    index = Index.build(bag, table)
    fields = {name: TABLE[name] for name in ("price", "brand")}
    expected = Index.build(bag, TITLES[:3], ["7", "8", "9"], fields)
    assert list(index.ids) == list(expected.ids) and list(index.titles) == TITLES[:3]
    assert index.fields.types == expected.fields.types
    assert [index[id] for id in index] == [expected[id] for id in index]
    empty = Index.build(bag, [])
    empty.add(table)
    assert list(empty) == ["7", "8", "9"]
    assert empty.sync(table).changed == 0
    with pytest.raises(SentembError, match="come with ids; leave ids out"):
        Index.build(bag, table, ["1", "2", "3"])


@pytest.mark.parametrize("title", ["Product Name", "name", "Titel", "Title (en)", "商品名"])
@pytest.mark.parametrize("id", ["SKU", "product_id", "Artikelnummer", "index"])
def test_an_index_takes_tables_with_usual_names(bag, title, id):
    ids = ["7", "8", "9"]
    if id == "index":
        table = pytest.importorskip("pandas").DataFrame({title: TITLES[:3]}, index=ids)
        table.index.name = "sku"
    else:
        table = {"brand": ["a", "b", "c"], title: TITLES[:3], id: ids}
    index = Index.build(bag, table)
    assert list(index.ids) == ids and list(index.titles) == TITLES[:3]


def test_fields_of_tables_are_read_for_what_they_are(bag):
    columns = {
        "tags": [["a", "b"], []],
        "price": [Decimal("1.50"), None],
        "day": [date(2026, 1, 2), datetime(2026, 1, 3, 4)],
        "stock": np.array([1, 2]),
    }
    table = [
        {"sku": str(k), "name": TITLES[k], **{name: values[k] for name, values in columns.items()}}
        for k in range(2)
    ]
    index = Index.build(bag, table)
    assert index["0"]["fields"] == {"tags": "a, b", "price": 1.5, "day": "2026-01-02", "stock": 1}
    expected = {"tags": None, "price": None, "day": "2026-01-03T04:00:00", "stock": 2}
    assert index["1"]["fields"] == expected
    pandas = pytest.importorskip("pandas")
    with pytest.raises(SentembError, match="2 columns are named name; rename all but one"):
        Index.build(bag, pandas.DataFrame([["A", "x", "y"]], columns=["sku", "name", "name"]))


def test_an_index_takes_a_dict_of_titles_by_id(bag):
    index = Index.build(bag, {"x": "red hat", "y": "blue hat"})
    assert dict(index["x"]) == {"id": "x", "title": "red hat"}
    for titles, message in (
        ({"id": ["x"]}, "no column title; its columns are id: rename one"),
        ({"title": ["a"], "id": [None]}, "row 0: the id is None; give texts or"),
        ({"title": ["a"], "id": [1.5]}, "row 0: the id is 1.5"),
    ):
        with pytest.raises(SentembError, match=message):
            Index.build(bag, titles)
    with pytest.raises(SentembError, match="the titles have no ids; give ids"):
        index.add(["green hat"])


def test_an_index_is_a_mapping_of_ids(index, folder):
    opened = Index(folder)
    assert list(opened) == list(opened.ids) and len(opened) == len(index)
    id = opened.ids[3]
    assert id in opened and "nowhere" not in opened and 3 not in opened
    assert opened[id] == opened.get(id) == {"id": id, "title": opened.titles[3]}
    assert opened.get("nowhere") is None and opened.get("nowhere", "x") == "x"
    with pytest.raises(KeyError, match="nowhere"):
        opened["nowhere"]
    shares = opened.explain("red hat", id)
    assert [shares] == opened.explain("red hat", [id])
    assert pickle.loads(pickle.dumps(opened)).search("red hat") == opened.search("red hat")


def test_a_hit_is_a_dict_with_attributes_that_json_can_write(index):
    hits = index.search("red hat", 1)
    (hit,) = hits
    assert isinstance(hit, Hit) and hit.parts == {
        "cosine": {"value": hit.score, "added": hit.score}
    }
    assert [getattr(hit, name) for name in hit] == list(hit.values()) and hit.fields == {}
    assert json.loads(json.dumps(hits)) == [{**hit}]
    assert list(hit) == ["id", "title", "marks", "score", "parts", "confidence", "by_id"]
    with pytest.raises(AttributeError, match="a hit has no 'name'; it has id, title, marks, score"):
        hit.name  # noqa: B018
    for copied in (pickle.loads(pickle.dumps(hit)), copy.deepcopy(hit), copy.copy(hit)):
        assert type(copied) is Hit and copied == hit
    assert repr(hit).startswith(f"Hit(id={hit.id!r}, title={hit.title!r}, marks=")


def test_the_folder_of_a_shop_is_opened_as_its_index(index, tmp_path):
    index.save(tmp_path / "index")
    (tmp_path / "titles.tsv").write_text("id\ttitle\n")
    assert list(Index(tmp_path)) == list(Index.open(tmp_path)) == list(index)
    assert explain(str(tmp_path), "red hat").score == explain(index, "red hat").score


def test_a_hit_that_was_found_by_its_id_says_so(index):
    id = index.ids[7]
    first, *others = index.search(id, 5)
    assert first.id == id and first.by_id and not any(hit.by_id for hit in others)
    assert not any(hit.by_id for hit in index.search("red hat", 5))


def test_a_pickle_has_no_hashes_of_its_process(index):
    """Python hashes a text otherwise in every process."""
    changed = copy.copy(index)
    changed.add(["red cap"], ["new"])
    before = pickle.dumps(changed)
    assert changed.rows_of(["new"]).tolist() == [300]
    assert pickle.dumps(changed) == before
