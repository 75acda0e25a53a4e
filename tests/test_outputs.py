"""No command replaces or removes what it did not write, or is reading."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model

from sentemb import SentembError
from sentemb.cli import main
from sentemb.search.index import Index
from sentemb.system.outputs import Output, check_outputs

TEXTS = ["cheap hotels", "hotels in rome", "maps of oslo"]


def run(line, *more):
    return CliRunner().invoke(main, [*line.split(), *more])


def fails(line, *more):
    """The error of a command that must fail without a traceback."""
    done = run(line, *more)
    assert done.exit_code, done.output
    assert isinstance(done.exception, SentembError | SystemExit), done.exception
    return f"{done.output}{done.exception}"


def files_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    model = made_up_model(("lstm", {}), TEXTS, cells=3, dtype=np.float32, seed=0)
    model.save_pretrained(folder / "model")
    Index.build(model, TEXTS, threads=1).save(folder / "index")
    (folder / "titles.tsv").write_text("".join(f"{k}\t{text}\n" for k, text in enumerate(TEXTS)))
    (folder / "queries.tsv").write_text("q\trome hotels\n")
    (folder / "log.tsv").write_text(
        "".join(f"{text} q{k}\t{text}\n" for k in range(40) for text in TEXTS)
    )
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A copy of the files, in which the command runs."""
    import shutil

    shutil.copytree(made, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


# -- the rule ---------------------------------------------------------------------------------


def test_an_output_is_not_an_input_by_any_name(tmp_path):
    (tmp_path / "log").write_text("x")
    os.link(tmp_path / "log", tmp_path / "second")
    os.symlink("log", tmp_path / "link")
    os.symlink(tmp_path, tmp_path / "folder")
    for name in ("log", "second", "link", "folder/log", "folder/../" + tmp_path.name + "/log"):
        with pytest.raises(SentembError, match="is read by the command"):
            check_outputs([Output(tmp_path / name)], [tmp_path / "log"], force=True)


def test_an_output_neither_holds_an_input_nor_is_inside_one(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "log").write_text("x")
    (tmp_path / "link").symlink_to("a/b")
    with pytest.raises(SentembError, match=r"holds .*log, which the command reads"):
        check_outputs([Output(tmp_path / "a", is_folder=True)], [tmp_path / "link/log"], True)
    with pytest.raises(SentembError, match=r"is inside .*a, which the command reads"):
        check_outputs([Output(tmp_path / "link/new/out")], [tmp_path / "a"], True)
    check_outputs([Output(tmp_path / "a/out", is_folder=True)], [tmp_path / "a/b"], True)


def test_a_file_is_replaced_with_force_alone(tmp_path):
    (tmp_path / "out").write_text("x")
    with pytest.raises(SentembError, match="exists; name another file or use --force"):
        check_outputs([Output(tmp_path / "out")], [], force=False)
    check_outputs([Output(tmp_path / "out")], [], force=True)
    check_outputs([Output("/dev/null")], ["/dev/null"], force=False)


def test_two_outputs_have_two_names(tmp_path):
    with pytest.raises(SentembError, match="two outputs"):
        check_outputs([Output(tmp_path / "out"), Output(f"{tmp_path}/./out")], [], force=True)
    check_outputs([Output("/dev/null"), Output("/dev/null")], [], force=True)


def test_standard_input_is_an_input_too(here):
    """Also where the shell opened it."""
    before = files_of(here)
    with open("queries.tsv", "rb") as queries:
        done = subprocess.run(
            [sys.executable, "-m", "sentemb", "search", "index", "--queries", "-"]
            + ["-o", "queries.tsv", "--force"],
            stdin=queries,
            capture_output=True,
            text=True,
        )
    assert done.returncode == 1 and "queries.tsv: is read by the command" in done.stderr
    assert files_of(here) == before


# -- the commands -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "search index --queries queries.tsv -o queries.tsv",
        "search index --queries queries.tsv --only titles.tsv -o titles.tsv",
        "rank model queries.tsv titles.tsv -o titles.tsv",
        "rank model titles.tsv --query rome -o titles.tsv",
        "diff model model --catalogue titles.tsv --queries queries.tsv -o queries.tsv",
        "synonyms model --log log.tsv -o log.tsv",
        "synonyms model -o model/words.txt",
        "encode model log.tsv -o model/log.npy",
        "split titles.tsv -o .",
        "prepare log.tsv -o .",
        "train log.tsv -o . --epochs 1",
        "index model titles.tsv -o .",
        "index index --add titles.tsv -o index",
        "export index -o index/page.html --to page",
    ],
)
def test_a_command_keeps_its_inputs(here, line):
    before = files_of(here)
    assert "which the command reads" in (said := fails(line, "--force")) or (
        "is read by the command" in said
    )
    assert files_of(here) == before


@pytest.mark.parametrize(
    "line",
    [
        "search index rome -o old.html",
        "rank model titles.tsv --query rome -o old.html",
        "diff model model --catalogue titles.tsv --queries queries.tsv -o old.html",
        "synonyms model -o old.html",
        "encode model queries.tsv -o old.npy",
        "plot-gates model rome -o old.svg",
        "plot-gates model rome -o new.svg --output-numbers old.npz",
        "plot-loss model -o old.svg",
        "report model queries.tsv -o old.html",
        "export index -o old.html --to page",
    ],
)
def test_a_file_that_exists_needs_force(here, line):
    for ending in ("html", "npy", "npz", "svg"):
        Path(f"old.{ending}").write_text("old")
    before = files_of(here)
    assert "exists; name another file or use --force" in fails(line)
    assert files_of(here) == before


def test_the_ids_of_embeddings_need_force_too(here):
    Path("new.ids").write_text("old")
    line = "encode model titles.tsv --ids -o new.npy"
    assert "new.ids: exists" in fails(line)
    assert Path("new.ids").read_text() == "old"
    assert run(line, "--force").exit_code == 0
    assert Path("new.ids").read_text() == "0\n1\n2\n"


@pytest.mark.parametrize(
    "line",
    [
        "index model titles.tsv -o -",
        "train log.tsv -o -",
        "average model model -o -",
        "split log.tsv -o -",
        "prepare log.tsv -o -",
        "simulate -o -",
        "plot-gates model rome -o new.svg --output-numbers -",
        "export model -o - --to sentence-transformers",
        "export model -o - --to onnx",
        "export index -o - --to parquet",
    ],
)
def test_standard_output_holds_neither_a_folder_nor_numbers(here, line):
    before = files_of(here)
    assert "standard output cannot hold this" in fails(line)
    assert files_of(here) == before


@pytest.mark.parametrize(
    "line",
    [
        "report model queries.tsv -o -",
        "diff model model --catalogue titles.tsv --queries queries.tsv -o -",
    ],
)
def test_a_page_goes_to_standard_output(here, line):
    done = run(line)
    assert done.stdout.startswith("<!doctype html>") and done.stdout.rstrip().endswith("</html>")
    assert not Path("-").exists()


# -- folders ----------------------------------------------------------------------------------

NOTES = {"notes.txt": "mine", "folder/deep/notes.txt": "mine too", "vectors.txt": "not vectors.npy"}


def add_notes(folder):
    """Files of the user, a link and an empty folder."""
    for name, text in NOTES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "link").symlink_to("folder")
    (folder / "empty").mkdir()


def check_notes(folder):
    assert {name: (folder / name).read_text() for name in NOTES} == NOTES
    assert os.readlink(folder / "link") == "folder" and (folder / "empty").is_dir()


@pytest.mark.parametrize(
    "line",
    [
        "index index --add new.tsv",
        "index index --remove gone.txt",
        "index index --sync new.tsv",
        "index model titles.tsv -o index --force",
        "tune index clicks.tsv",
        "calibrate index clicks.tsv",
    ],
)
def test_an_index_keeps_what_else_is_in_its_folder(here, line):
    Path("new.tsv").write_text("new\tnew hotels in oslo\n")
    Path("gone.txt").write_text("0\n")
    index = Index.open("index")
    queries = [f"{text} {k}" for k in range(30) for text in TEXTS]
    found = [hits[0].title for hits in index.search(queries, 1)]
    lines = zip(queries, [*found[:45], *(TEXTS * 15)], strict=True)
    Path("clicks.tsv").write_text("".join(f"{query}\t{title}\n" for query, title in lines))
    index.save("index/inside")
    (here / "index/inside/index.json").rename(here / "index/inside/kept.json")
    add_notes(here / "index")
    inside = files_of("index/inside")
    done = run(line)
    assert done.exit_code == 0, done.output
    check_notes(here / "index")
    assert files_of("index/inside") == inside
    Index.verify("index")


def test_an_index_does_not_take_a_name_of_the_user(here):
    """A folder that an index of the cosine does not have, and one with BM25 needs."""
    Path("dev.tsv").write_text("".join(f"{text} {k}\t{text}\n" for k in range(9) for text in TEXTS))
    (here / "index/bm25").mkdir()
    (here / "index/bm25/offsets.npy").write_text("mine")
    before = files_of(here)
    said = fails("tune index dev.tsv")
    assert "index/bm25/offsets.npy: would be replaced, and was not written by this" in said
    assert files_of(here) == before


def test_a_foreign_description_is_no_index(here):
    Path("site").mkdir()
    Path("site/index.json").write_text('{"pages": []}')
    Path("site/page.html").write_text("mine")
    before = files_of(here)
    assert "index.json cannot be read" in fails("index model titles.tsv -o site --force")
    assert files_of(here) == before


def test_the_model_of_an_index_is_not_replaced(here):
    before = files_of(here)
    for line in (
        "train log.tsv -o index/model --force --epochs 1",
        "average model model -o index/model --force",
        "export model -o index/model --to sentence-transformers --force",
    ):
        assert "index" in fails(line)
        assert files_of(here) == before


@pytest.mark.parametrize("name", ["README.md", "words.txt", "history.jsonl"])
def test_a_training_keeps_files_of_the_user(here, name):
    Path("out/checkpoints").mkdir(parents=True)
    (here / "out/checkpoints/step-000000001.safetensors").write_text("x")
    (here / "out" / name).write_text("mine")
    assert "other files" in fails("train log.tsv -o out --epochs 1 --force")
    assert (here / "out" / name).read_text() == "mine"


@pytest.mark.parametrize("name", ["titles.tsv", "pairs.tsv", "files.json"])
def test_a_split_keeps_files_of_the_user(here, name):
    Path("out").mkdir()
    (here / "out" / name).write_text("mine")
    assert "was not written by this command" in fails("split log.tsv -o out --force")
    assert files_of("out") == {name: b"mine"}


def test_a_split_replaces_the_files_of_an_earlier_one(here):
    assert run("split log.tsv -o out --dev 20% --test 20%").exit_code == 0
    add_notes(here / "out")
    done = run("split log.tsv -o out --dev 20% --test 0 --force")
    assert done.exit_code == 0, done.output
    assert not Path("out/test.tsv").exists() and Path("out/dev.tsv").exists()
    check_notes(here / "out")


def test_names_in_a_list_do_not_lead_out_of_the_folder(here):
    Path("out").mkdir()
    Path("out/files.json").write_text(
        json.dumps({"format": 1, "files": ["../titles.tsv", "sub/x", str(here / "log.tsv")]})
    )
    Path("out/sub").symlink_to(here / "model")
    Path("model/x").write_text("mine")
    before = files_of(here / "model"), Path("titles.tsv").read_bytes()
    assert run("split log.tsv -o out --dev 20% --test 20% --force").exit_code == 0
    assert (files_of(here / "model"), Path("titles.tsv").read_bytes()) == before
    assert Path("log.tsv").exists()


def test_an_export_replaces_only_an_export(here):
    Path("out").mkdir()
    Path("out/mapping.json").write_text("mine")
    line = "export index -o out --to elasticsearch --force"
    assert "holds other files than an export, such as mapping.json" in fails(line)
    Path("out/mapping.json").unlink()
    assert run(line).exit_code == 0
    add_notes(here / "out")
    assert run(line, "--name", "other").exit_code == 0
    check_notes(here / "out")


def test_a_foreign_description_is_no_prepared_log(here):
    Path("out").mkdir()
    Path("out/prepared.json").write_text('{"meal": "soup"}')
    fails("prepare log.tsv -o out --force")
    assert files_of("out") == {"prepared.json": b'{"meal": "soup"}'}


# -- names and stops --------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["parquet", "page", "elasticsearch"])
def test_a_folder_with_a_name_that_is_not_utf_8(here, to):
    out = os.fsdecode(b"caf\xe9")
    os.mkdir(out)
    done = run("export index -o", f"{out}/out", "--to", to)
    assert done.exit_code == 0, done.exception


def test_a_stop_leaves_no_empty_folder(here, monkeypatch):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("sentemb.models.files.model_files.write_tensors_of", stop)
    run("average model model -o new/average")
    assert not Path("new").exists()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "idna", "punycode", "undefined"])
@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_a_table_in_another_encoding_is_one_line(here, encoding, name):
    Path("log.csv").write_text("query,title\na,b\n")
    Path("log.jsonl").write_text('{"query": "a", "title": "b"}\n')
    said = fails(f"import {name} -o new.tsv --encoding {encoding}")
    assert f"Error: {name}:" in said and ("another --encoding" in said or "not JSON" in said)
    assert said.count("\n") == 1 and not Path("new.tsv").exists()
