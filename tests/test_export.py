"""`sentemb export`: targets, the files of tables and other libraries, and what is refused."""

import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import list_again, made_up_model, made_up_pair_model, run_python, tree

from sentemb import Index, SentembError, export
from sentemb.bridges.export.targets import INDEX, MODEL, OPTIONS, TARGETS
from sentemb.cli import main

# "日本 9" has no trigram that the model knows.
TITLES = [
    "red hat",
    "blue bag",
    "日本 9",
    'a "quoted" \\ title',
    "green\u2028hat\r",
    "\U0001f600 red bag",
]
IDS = ["a", "b", "c", "d", "é", "f"]
UNKNOWN = 2


def run(source, *arguments, code=0):
    """Standard output and standard error of `sentemb export SOURCE -o OUT ...`."""
    named = ["-o"] if arguments and arguments[0] != "-o" else []
    result = CliRunner().invoke(main, ["export", str(source), *named, *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


@pytest.fixture(scope="module")
def model():
    return made_up_model(("bag", {}), TITLES[:2] + TITLES[3:], cells=12, dtype=np.float32)


@pytest.fixture(scope="module")
def place(model, tmp_path_factory):
    """A folder with a model, a pair model and an index."""
    place = tmp_path_factory.mktemp("export")
    model.save_pretrained(place / "model")
    made_up_pair_model(TITLES).save_pretrained(place / "pairs")
    Index.build(model, TITLES, IDS).save(place / "index")
    return place


def lines_of(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


# -- what the targets write ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_table_has_every_title_and_unit_vectors(model, tmp_path, dtype):
    index = Index.build(model, TITLES, IDS, dtype=dtype)
    exact = Index.build(model, TITLES, IDS).vectors
    made = export(index, tmp_path / "out", "parquet")
    assert all(path.is_file() for path in made.files)
    assert (made.titles, made.without_vector) == (6, 1)
    table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "out")
    assert table.schema.names == ["id", "title", "vector"]
    assert str(table.schema.field("vector").type) == "fixed_size_list<element: float>[12]"
    ids, titles, vectors = (table[name].to_pylist() for name in table.schema.names)
    assert (ids, titles) == (IDS, TITLES)
    for place, vector in enumerate(vectors):
        if place == UNKNOWN:
            assert vector is None
            continue
        assert float(np.linalg.norm(np.float64(vector))) == pytest.approx(1, abs=2e-6)
        assert np.float64(vector) @ exact[place] == pytest.approx(1, abs=1e-3)
        if dtype == "float32":
            assert np.allclose(vector, exact[place], atol=1e-7)


def test_a_table_has_the_fields_of_products(model, tmp_path):
    tables = pytest.importorskip("pyarrow.parquet")
    fields = {"price": [35.87, None] * 3, "stock": [2**60] * 6, "brand": ["Åkes", None, ""] * 2}
    export(Index.build(model, TITLES, IDS, fields=fields), tmp_path / "out", "parquet")
    table = tables.read_table(tmp_path / "out")
    assert table.schema.names == ["id", "title", "vector", *fields]
    assert {name: table[name].to_pylist() for name in fields} == fields
    assert [str(table.schema.field(name).type) for name in fields] == ["double", "int64", "string"]
    index = Index.build(model, TITLES, IDS, fields={"vector": [1] * 6})
    with pytest.raises(SentembError, match="field of the products is named vector"):
        export(index, tmp_path / "out", "parquet", force=True)
    assert tables.read_table(tmp_path / "out") == table


def test_parquet_in_half_the_space(place, tmp_path):
    tables = pytest.importorskip("pyarrow.parquet")
    run(place / "index", tmp_path / "t.parquet", "--to", "parquet", "--dtype", "float16")
    schema = tables.read_schema(tmp_path / "t.parquet")
    assert str(schema.field("vector").type) == "fixed_size_list<element: halffloat>[12]"


def pairs_of(folder, lines):
    """A click log in ``folder``."""
    path = folder / "pairs.tsv"
    path.write_text("".join(f"{query}\t{title}\n" for query, title in lines), encoding="utf-8")
    return path


def test_triplets_are_clicks_with_titles_that_nobody_clicked(place, model, tmp_path):
    titles = [f"{colour} {what}" for colour in ("red", "blue", "green") for what in ("hat", "bag")]
    clicks = [("red", titles[0]), ("red", titles[1]), ('a "hat"', titles[2]), ("日本 9", titles[3])]
    log = pairs_of(tmp_path, [*clicks, *(("bag", title) for title in titles[1:])])
    arguments = "--to", "triplets", "--log", log, "--negatives", 3
    _, err = run(place / "index", tmp_path / "out", *arguments)
    lines = list(map(json.loads, lines_of(tmp_path / "out")))
    names = ["anchor", "positive", "negative_1", "negative_2", "negative_3"]
    assert all(list(line) == names for line in lines)
    # The model knows no word of 日本 9, and one title is left for bag.
    assert [(line["anchor"], line["positive"]) for line in lines] == clicks[:3]
    assert "note: 3 pairs, each with 3 hard negatives" in err
    assert "note: 6 pairs left out: the query has fewer hard negatives" in err
    right = {query: {title for asked, title in clicks if asked == query} for query, _ in clicks}
    for line in lines:
        negatives = {line[name] for name in names[2:]}
        assert len(negatives) == 3 and negatives <= set(titles) - right[line["anchor"]]
    again, _ = run(place / "model", "-", *arguments)
    assert again.encode() == (tmp_path / "out").read_bytes()


def test_negatives_of_triplets_rank_high(model, tmp_path):
    titles = [f"red bag {n} " + "xyz"[n % 3] * (n + 1) for n in range(60)]
    made = made_up_model(("bag", {}), titles, cells=12, dtype=np.float32)
    made.save_pretrained(tmp_path / "model")
    log = pairs_of(tmp_path, [(f"bag {n}", title) for n, title in enumerate(titles)])
    export(tmp_path / "model", tmp_path / "out", "triplets", log=log, negatives=30)
    asked, columns = made.encode_query, [f"negative_{n}" for n in range(1, 31)]
    vectors = made.encode_document(titles, normalize_embeddings=True)
    for line in map(json.loads, lines_of(tmp_path / "out")):
        cosines = vectors @ asked(line["anchor"], normalize_embeddings=True)
        cosines[titles.index(line["positive"])] = -2
        found = [cosines[titles.index(line[name])] for name in columns]
        assert min(found) >= np.sort(cosines)[-30] - 1e-6


def test_triplets_say_what_is_wrong(place, tmp_path):
    log, out = pairs_of(tmp_path, [("red", "red hat")]), tmp_path / "out"
    _, err = run(place / "model", out, "--to", "triplets", code=2)
    assert "--log is missing; triplets needs it" in err
    _, err = run(place / "model", out, "--to", "onnx", "--log", log, code=2)
    assert "--log is not an option of onnx; only triplets can have it" in err
    for arguments, said in [
        (("--log", tmp_path / "nothing"), "nothing"),
        (("--log", log, "--negatives", 31), "negatives"),
        (("--log", log, "--negatives", 0), "negatives"),
    ]:
        _, err = run(place / "model", out, "--to", "triplets", *arguments, code=1)
        assert said in err and err.count("\n") == 1
    _, err = run(place / "model", log, "--to", "triplets", "--log", log, "--force", code=1)
    assert "is read by the command" in err
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


def test_the_page_of_all_targets_runs(place, tmp_path, monkeypatch, capsys):
    for module in ("pandas", "pyarrow"):
        pytest.importorskip(module)
    Index.open(place / "index").save(tmp_path / "index")
    pairs_of(tmp_path, [("red", "red hat"), ("bag", "blue bag"), ("hat", "green hat")])
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[1] / "docs/export.md").read_text(encoding="utf-8")
    names = {}
    for language, code in re.findall(r"^```(sh|python)\n(.*?)^```", page, re.M | re.S):
        if language == "python":
            exec(compile(code, "export.md", "exec"), names)
        for command in code.splitlines() if language == "sh" else ():
            words = shlex.split(command)
            assert words[:2] == ["sentemb", "export"]
            run(*words[2:])
    assert "titles.parquet" in capsys.readouterr().out and names["vectors"].shape == (5, 12)
    assert all(f"`{to}`" in page for to in TARGETS)


# -- the command -----------------------------------------------------------------------------------


def test_the_command_prints_files_and_titles(place, tmp_path):
    out, err = run(place / "index", tmp_path / "p", "--to", "parquet")
    told = "6 titles, 1 of them without a vector: the model knows none of their words"
    assert out.splitlines() == [str(tmp_path / "p"), told] and err == ""
    out, err = run(place / "index", tmp_path / "es", "--to", "elasticsearch", "--name", "shop")
    assert out.splitlines()[-1].startswith("6 titles, 1 of them without a vector: the model")
    assert (
        "vectors alone find titles" in err and "9200}/shop" in (tmp_path / "es/send.sh").read_text()
    )


def test_the_help_lists_every_target_and_option():
    text = run("--help")[0]
    for name, target in TARGETS.items():
        assert re.search(rf"^ +{name} +{re.escape(target.help[:40])}", text, re.M), name
    for name in OPTIONS:
        assert f"--{name.replace('_', '-')} " in text
    for target in TARGETS.values():
        assert target.takes in (MODEL, INDEX) and set(target.options) <= set(OPTIONS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "elastic"), "did you mean elasticsearch?"),
        (("--to", "opensaerch"), "did you mean opensearch"),
        (("--to", "xyz"), "choose one of elasticsearch"),
        (
            ("--to", "opensearch", "--dtype", "int8"),
            "--dtype is not an option of opensearch; only p",
        ),
        (("--to", "page", "--part-bytes", "9"), "--part-bytes is not an option of page; only el"),
        (("--to", "parquet", "--dtype", "int8"), "--dtype is 'int8'; parquet takes float32 or"),
        ((), "Missing option '--to'"),
    ],
)
def test_wrong_usage(place, tmp_path, arguments, said):
    _, err = run(place / "index", tmp_path / "out", *arguments, code=2)
    assert said in err and not (tmp_path / "out").exists()


def test_python_says_the_same(place, tmp_path):
    index = Index.open(place / "index")
    for to, options, said in [
        ("elastic", {}, "no such target: 'elastic'; did you mean elasticsearch"),
        ("opensearch", {"dtype": "int8"}, "dtype is not an option of opensearch"),
        ("parquet", {"speed": 3}, "speed is not an option of parquet"),
        ("parquet", {"dtype": "int8"}, "parquet takes float32 or float16"),
        ("elasticsearch", {"part_bytes": 0}, "part_bytes"),
        (["parquet"], {}, "no such target"),
    ]:
        with pytest.raises(SentembError, match=re.escape(said)):
            export(index, tmp_path / "out", to, **options)
    for source in (3, ["red hat"]):
        with pytest.raises(SentembError, match="a model or an index is needed, not"):
            export(source, tmp_path / "out", "page")
    assert not list(tmp_path.iterdir())


def test_a_model_where_an_index_is_needed(place, tmp_path):
    _, err = run(place / "model", tmp_path / "out", "--to", "page", code=1)
    assert "page needs an index, and this is a model" in err
    for to in ("page", "onnx"):
        _, err = run(place / "pairs", tmp_path / "out", "--to", to, code=1)
        assert "scores pairs and has no vector of a text" in err
    for missing in (place, place / "nothing", place / "model/config.json"):
        _, err = run(missing, tmp_path / "out", "--to", "page", code=1)
        assert err.startswith("Error: ") and err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_missing_package_is_named_before_anything_else(place, tmp_path, monkeypatch):
    for to, name, module in (("parquet", "pyarrow", "pyarrow.parquet"), ("onnx", "onnx", "onnx")):
        for missing in (name, module):
            monkeypatch.setitem(sys.modules, missing, None)
        _, err = run(tmp_path / "no index", tmp_path / "out", "--to", to, code=1)
        assert f"--to {to} needs {name}, which is not installed; pip install 'sentemb[{to}]'" in err
    assert not list(tmp_path.iterdir())


# -- where it is written ---------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["page", "elasticsearch"])
def test_nothing_is_written_into_an_index(place, tmp_path, to):
    other = tmp_path / "other"
    Index.open(place / "index").save(other)
    before = tree(place), tree(other)
    for out in (other, other / "model", other / "new/deeper"):
        for force in ((), ("--force",)):
            _, err = run(place / "index", out, "--to", to, *force, code=1)
            assert "is an index" in err or "is inside the index" in err
    (tmp_path / "link").symlink_to(other)
    _, err = run(place / "index", tmp_path / "link/new", "--to", to, code=1)
    assert "is inside the index" in err
    _, err = run(place / "index", place / "model", "--to", to, "--force", code=1)
    assert "is a model" in err and (tree(place), tree(other)) == before


def test_a_folder_of_other_files_is_left_alone(place, tmp_path):
    to = "elasticsearch"
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious.txt").write_text("mine")
    _, err = run(place / "index", out, "--to", to, code=1)
    assert "is not empty" in err
    _, err = run(place / "index", out, "--to", to, "--force", code=1)
    assert "holds other files than an export, such as precious.txt" in err
    assert tree(tmp_path) == {"out": None, "out/precious.txt": b"mine"}
    (out / "precious.txt").unlink()
    run(place / "index", out, "--to", to)  # an empty folder
    first = tree(out)
    _, err = run(place / "index", out, "--to", to, code=1)
    assert "use --force" in err
    run(place / "index", out, "--to", to, "--force")
    assert tree(out) == first
    _, err = run(place / "index", next(iter(out.iterdir())) / "x", "--to", to, code=1)
    assert err.startswith("Error: ") and tree(out) == first


@pytest.mark.parametrize("to", ["parquet", "elasticsearch"])
def test_only_pages_are_streams(place, tmp_path, monkeypatch, to):
    monkeypatch.chdir(tmp_path)
    _, err = run(place / "index", "-", "--to", to, code=1)
    assert "standard output cannot hold this output" in err and not list(tmp_path.iterdir())


def test_a_page_is_streamed_from_a_folder_that_is_an_index(place, monkeypatch):
    monkeypatch.chdir(place / "index")
    out, _ = run(".", "-", "--to", "page")
    assert out.startswith("<!doctype html>")


@pytest.mark.parametrize("to", ["page", "parquet"])
def test_a_file_is_replaced_only_with_force(place, tmp_path, to):
    out = tmp_path / "out"
    out.write_text("mine")
    _, err = run(place / "index", out, "--to", to, code=1)
    assert "exists; name another file or use --force" in err and out.read_text() == "mine"
    run(place / "index", out, "--to", to, "--force")
    assert out.stat().st_size > 100
    _, err = run(place / "index", tmp_path, "--to", to, "--force", code=1)
    assert "Is a directory" in err and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("to", ["parquet", "elasticsearch"])
def test_ctrl_c_leaves_everything_as_it_was(model, tmp_path, to):
    index = Index.build(model, TITLES * 2, [*IDS, *map(str, range(6))])
    export(Index.build(model, TITLES), tmp_path / "out", to)
    before = tree(tmp_path)

    def interrupt(done, total):
        assert done == total == 12
        os.kill(os.getpid(), signal.SIGINT)

    for out in ("out", "new"):
        with pytest.raises(KeyboardInterrupt):
            export(index, tmp_path / out, to, force=True, on_progress=interrupt)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_damaged_vector_is_not_exported(model, tmp_path, dtype):
    Index.build(model, TITLES, IDS, dtype=dtype).save(tmp_path / "index")
    name = "cosine/scales.npy" if dtype == "int8" else "cosine/vectors.npy"
    raw = bytearray((tmp_path / "index" / name).read_bytes())
    raw[-2:] = b"\x7f\x7f"
    (tmp_path / "index" / name).write_bytes(raw)
    list_again(tmp_path / "index")
    for to in ("parquet", "elasticsearch"):
        _, err = run(tmp_path / "index", tmp_path / "out", "--to", to, code=1)
        assert "is not of unit length" in err and len(err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_damaged_model_in_an_index(place, tmp_path):
    Index.open(place / "index").save(tmp_path / "index")
    path = tmp_path / "index/model/model.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    _, err = run(tmp_path / "index", tmp_path / "out", "--to", "page", code=1)
    assert "model.safetensors" in err and not (tmp_path / "out").exists()


# -- memory ----------------------------------------------------------------------------------------

MANY = """
import resource, sys
import numpy as np
from sentemb import export, Index, SentenceEncoder
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.search.snapshot import Contents, Snapshot
from sentemb.data.text_array import Texts
folder, n, to = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if to == "index":
    model = SentenceEncoder.from_pretrained(folder + "/model")
    rng = np.random.default_rng(0)
    codes = rng.integers(-127, 128, (n, model.dim), np.int8)
    rows = Int8Rows(codes, (1 / np.linalg.norm(codes, axis=1)).astype(np.float32))
    ids, titles = Texts.of(map(str, range(n))), Texts.of(f"title {i} of many" for i in range(n))
    contents = Contents(ids, titles, rows, np.empty(0, np.int64))
    Index(model, Snapshot(contents), Index.build(model, ["a"]).model_sha256).save(folder + "/index")
else:
    index = Index.open(folder + "/index")
    export(Index.build(index.model, ["a"]), folder + "/one-" + to, to)  # loads the library
    small = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = export(index, folder + "/" + to, to)
    assert made.titles == n
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(round((most - small) / 1024))
"""


@pytest.mark.slow
def test_a_million_titles_take_no_more_memory_than_the_index(tmp_path):
    model = made_up_model(("bag", {}), ["a", *TITLES], cells=96, dtype=np.float32)
    model.save_pretrained(tmp_path / "model")
    run_python(MANY, tmp_path, 1_000_000, "index", check=True)
    files = [path for path in (tmp_path / "index").iterdir() if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 2**20
    for to in ("parquet", "elasticsearch"):
        grown = int(run_python(MANY, tmp_path, 1_000_000, to, check=True).stdout)
        # The pages of the mapped index count too.
        assert grown < size + 64, f"{to}: {grown} MB for an index of {size:.0f} MB"
