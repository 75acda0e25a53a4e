"""Result pages, what they depend on, and the numbers that README and docs state."""

import os
import shutil
import subprocess
from pathlib import Path

import evidence
import pytest
from evidence import DOCS, MEASURED, ROOT, files_of, fingerprint, page_of, prose, unmeasured
from pages import sections_of


@pytest.fixture(scope="module", autouse=True)
def code_by_text():
    """Files that are the same in several trees are parsed once."""
    codes, whole = {}, evidence.code_of.__wrapped__

    def code_of(path):
        text = path.read_bytes()
        if text not in codes:
            codes[text] = whole(path)
        return codes[text]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(evidence, "code_of", code_of)
        yield


def test_every_result_page_is_measured_by_a_script_that_exists():
    assert {page_of(name) for name in MEASURED} >= {*(DOCS / "results").glob("*.md")}
    assert all(page_of(name).exists() for name in MEASURED)
    for name, declared in MEASURED.items():
        assert all((ROOT / used).exists() for used in declared.get("uses", ())), name
        assert (ROOT / "benchmarks" / declared.get("script", "evidence.py")).exists(), name
        assert files_of(name), name
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = [declared["command"].partition("make ")[2] for declared in MEASURED.values()]
    assert all(f"\n{target}:" in makefile for target in targets if target)
    rows = evidence.recorded()
    assert rows.keys() == MEASURED.keys() and all(rows[name]["commit"] for name in rows)


def test_every_figure_is_drawn_by_a_measurement_or_for_the_readme():
    drawn = [figure for declared in MEASURED.values() for figure in declared.get("figures", ())]
    of_readme = ["gates.png", "figures/words.png", "figures/search.png"]
    figures = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.png")}
    assert sorted(drawn + of_readme) == sorted(figures)


@pytest.mark.parametrize("page", sorted({page_of(name) for name in MEASURED}), ids=lambda p: p.name)
def test_each_page_shows_its_records(page):
    assert sections_of(page)["record"] == evidence.record_of(page)


@pytest.mark.parametrize("target", ["paper", "sif", "arc"])
def test_make_measures_from_nothing_and_continues_what_was_stopped(target, tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    for folder in (".venv/bin", "build/glove/150d", results := f"docs/results/{target}"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("setup.cfg", "pyproject.toml", "constraints.txt", f"{results}/committed.csv"):
        (tmp_path / name).touch()
    for extras in ("dev", "dev,bench"):
        (tmp_path / ".venv" / f".with-{extras}").touch()
    # In the place of Python: note what there is, measure something, and stop the first time.
    python = tmp_path / ".venv/bin/python"
    python.write_text(
        f"#!/bin/sh\nls {results} >> seen; echo . >> seen; mkdir -p {results}; "
        f"touch {results}/measured.csv; test -f go-on\n"
    )
    python.chmod(0o755)

    def seen_by(*, stopped):
        (tmp_path / "seen").unlink(missing_ok=True)
        done = subprocess.run(
            ["make", target], cwd=tmp_path, env={"PATH": os.environ["PATH"]},
            capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode != 0) == stopped, done.stderr
        return (tmp_path / "seen").read_text().split(".\n")[0].split()

    assert seen_by(stopped=True) == []
    (tmp_path / "go-on").touch()
    assert seen_by(stopped=False) == ["measured.csv"]
    assert seen_by(stopped=False) == []


@pytest.mark.parametrize("page", prose(), ids=lambda page: page.name)
def test_numbers_in_prose_are_measured(page):
    assert not unmeasured(page.read_text("utf-8"))


def test_a_number_that_was_not_measured_is_noticed():
    assert unmeasured("A gain of 0.98765 over `0.98764` by arXiv 1502.06922.") == ["0.98765"]


def test_code_makes_a_measurement_stale_and_comments_do_not(tmp_path):
    for folder in ("src", "cli", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    names = ("ranking", "serve-speed")
    before = {name: fingerprint(name, tmp_path) for name in names}
    assert before == {name: fingerprint(name) for name in names}

    def after(path, old, new):
        file = Path(tmp_path / path)
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), "utf-8")
        return [name for name in names if fingerprint(name, tmp_path) != before[name]]

    settings = "src/sentemb/training/towers/settings.py"
    assert after(settings, '"""', '"""Now and then: ') == []
    assert after(settings, "def ", "# Why.\ndef ") == []
    assert after("src/sentemb/version.py", '"', '"9.') == []
    # The command that it runs, a module imported in a function, and the script.
    assert after("cli/serve.py", "def ", "def _") == ["serve-speed"]
    assert after("src/sentemb/models/towers/lstm.py", "return", "return +") == list(names)
    assert after(settings, "SOFTMAX: 512", "SOFTMAX: 511") == list(names)


def test_what_is_imported_on_first_use_is_used(tmp_path, monkeypatch):
    (tmp_path / "src/sentemb/far").mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    for name, code in {
        "src/sentemb/__init__.py": "if TYPE_CHECKING:\n    from sentemb.far.home import Public",
        "src/sentemb/far/__init__.py": "",
        "src/sentemb/far/home.py": "HOME = 'sentemb.far.named:Kind'",
        "src/sentemb/far/named.py": "def f():\n    from sentemb.far import inside",
        "src/sentemb/far/inside.py": "import unknown",
        "src/sentemb/far/apart.py": "",
        "benchmarks/script.py": "import made_charts\nimport sentemb\nsentemb.Public",
        "benchmarks/made_charts.py": "",  # draws what was measured
    }.items():
        (tmp_path / name).write_text(code, "utf-8")
    monkeypatch.setitem(MEASURED, "made-up", {"script": "script.py"})
    files = {path.relative_to(tmp_path).as_posix() for path in files_of("made-up", tmp_path)}
    assert files == {"benchmarks/script.py"} | {
        f"src/sentemb/far/{name}.py" for name in ("__init__", "home", "named", "inside")
    }


def test_what_is_stale_is_named(tmp_path, monkeypatch):
    record = {"commit": "abc", "code": fingerprint("filters"), "data": ""}
    assert evidence.why_stale("filters", record) == ""
    assert "no record" in evidence.why_stale("filters", None)
    assert "abc" in evidence.why_stale("filters", record | {"code": "other"})
    monkeypatch.setattr(evidence, "data_digest", lambda name: "new")
    row = record | {"code": fingerprint("languages"), "data": "languages=old"}
    assert "data have changed since abc" in evidence.why_stale("languages", row)
    monkeypatch.setitem(MEASURED, "filters", MEASURED["filters"] | {"figures": ["lost.png"]})
    assert evidence.why_stale("filters", record) == "lost.png is missing"


def test_what_other_code_or_data_kept_is_removed_before_measuring(tmp_path, monkeypatch):
    state = {"first": "old", "second": "old"}
    monkeypatch.setattr(evidence, "_state", state.__getitem__)
    for name in state:
        monkeypatch.setitem(MEASURED, name, {"keeps": ["build/models", "build/mark"]})
    models, mark = tmp_path / "build/models", tmp_path / "build/mark"

    def is_kept(name):
        models.mkdir(parents=True, exist_ok=True)
        mark.touch()
        evidence.remove_outdated(name, tmp_path, tmp_path / "build/kept.json")
        assert models.exists() == mark.exists()
        return mark.exists()

    assert not is_kept("first"), "nobody knows who made it"
    assert is_kept("first") and is_kept("second")
    state["first"] = "new"
    assert not is_kept("second"), "made by old code of another measurement too"
    assert is_kept("second") and is_kept("first")
    state["second"] = "new"
    assert not is_kept("second")


@pytest.mark.parametrize(
    ("bits", "script", "code"),
    [({"bag": "1"}, "same", 0), ({"bag": "2"}, "same", 1), ({"bag": "1"}, "other", 1)],
)
def test_the_same_bits_confirm_what_the_same_script_measured(
    bits, script, code, tmp_path, monkeypatch, capsys
):
    machine = {"confirmed": "", "processor": evidence.processor()}
    written = {name: {"commit": "abc", "code": "old", **machine} for name in ("rerank", "fresh")}
    written["slices"] = {"commit": "abc+", "code": "old", **machine}
    old = tmp_path / "abc"
    monkeypatch.setattr(evidence, "_tree_of", {"abc": old}.__getitem__)
    monkeypatch.setattr(evidence, "_bits", {old: {"bag": "1"}, ROOT: bits}.__getitem__)
    monkeypatch.setattr(
        evidence, "script", lambda name, root=ROOT: script if root == old else "same"
    )
    monkeypatch.setattr(evidence, "fingerprint", lambda name: "new")
    monkeypatch.setattr(evidence, "_git", lambda *arguments: "def")
    monkeypatch.setattr(evidence, "recorded", written.copy)
    monkeypatch.setattr(evidence, "write", written.update)
    assert evidence.confirm(["rerank", "fresh"]) == code
    for name in ("rerank", "fresh"):
        row = written[name]
        assert (row["code"], row["confirmed"]) == (("old", "") if code else ("new", "def"))
    told = capsys.readouterr().out
    assert ("other bits than abc: bag" in told) == (bits == {"bag": "2"})
    assert ("rerank: its script has changed" in told) == (script == "other")
    assert evidence.confirm(["slices"]) == 1 and written["slices"]["code"] == "old"
    assert "changes that no commit has" in capsys.readouterr().out


def test_the_code_of_a_commit_is_what_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "PROBED", tmp_path)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    if not commit:
        pytest.skip("a source archive has no commits to read")
    tree = evidence._tree_of(commit)
    assert {path.name for path in tree.iterdir()} == {"src", "cli", "benchmarks"}
    assert evidence.script("filters", tree)


def test_the_check_names_what_is_stale_with_minutes_and_numbers_without_a_csv(
    tmp_path, monkeypatch, capsys
):
    page = tmp_path / "page.md"
    page.write_text("A gain of 0.98765.", "utf-8")
    rows = {name: {"commit": "abc", "code": "", "data": "", "minutes": ""} for name in MEASURED}
    rows["parts"]["minutes"], rows["reliability"]["minutes"] = "35", "62"
    monkeypatch.setattr(evidence, "recorded", lambda: rows)
    monkeypatch.setattr(evidence, "why_stale", lambda name, row: "old" if row["minutes"] else "")
    monkeypatch.setattr(evidence, "prose", lambda: [page])
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "page_of", lambda name: page)
    monkeypatch.setattr("sys.argv", ["evidence.py", "--check"])
    assert evidence.main() == 1
    assert capsys.readouterr().out.splitlines() == [
        "page.md, parts: old; 35 minutes",
        "page.md, reliability: old; 62 minutes",
        "97 minutes for 2 of 2, as recorded",
        "page.md: no CSV has the 0.98765 of its text",
        f"{len(MEASURED) - 2} of {len(MEASURED)} measurements are those of the present code",
    ]


@pytest.mark.parametrize(
    ("version", "stale", "number", "code"),
    [("1.0.0", "old", "", 1), ("1.1.0.dev0", "old", "", 0), ("1.1.0.dev0", "", "0.98765", 1)],
)
def test_lint_fails_a_release_with_stale_pages_and_any_version_with_a_number_without_a_csv(
    version, stale, number, code, tmp_path, monkeypatch
):
    page = tmp_path / "page.md"
    page.write_text(f"A gain {number}", "utf-8")
    monkeypatch.setattr(evidence, "__version__", version)
    monkeypatch.setattr(evidence, "why_stale", lambda name, row: stale)
    monkeypatch.setattr(evidence, "prose", lambda: [page])
    monkeypatch.setattr(evidence, "ROOT", tmp_path)
    monkeypatch.setattr(evidence, "page_of", lambda name: page)
    monkeypatch.setattr("sys.argv", ["evidence.py", "--lint"])
    assert evidence.main() == code
