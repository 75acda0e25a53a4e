"""Result pages, what they depend on, and the numbers that README and docs state."""

import os
import shutil
import subprocess
from pathlib import Path

import evidence
import pytest
from evidence import DOCS, MEASURED, ROOT, fingerprint, page_of, prose, rooms_of, unmeasured


def test_every_result_page_is_measured_by_a_script_that_exists():
    assert {page_of(name) for name in MEASURED} >= {*(DOCS / "results").glob("*.md")}
    assert all(page_of(name).exists() for name in MEASURED)
    for name, declared in MEASURED.items():
        assert all((ROOT / room).is_dir() for room in rooms_of(name)), name
        assert (ROOT / "benchmarks" / declared.get("script", "evidence.py")).exists(), name
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = [declared["command"].partition("make ")[2] for declared in MEASURED.values()]
    assert all(f"\n{target}:" in makefile for target in targets if target)
    rows = evidence.recorded()
    assert rows.keys() <= MEASURED.keys() and all(rows[name]["commit"] for name in rows)


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
    for folder in ("src", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    names = ("ranking", "import-speed")
    before = {name: fingerprint(name, tmp_path) for name in names}
    assert before == {name: fingerprint(name) for name in names}

    def after(path, old, new):
        file = Path(tmp_path / path)
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new, 1), "utf-8")
        evidence.code_of.cache_clear()
        return [name for name in names if fingerprint(name, tmp_path) != before[name]]

    settings = "src/sentemb/training/towers/settings.py"
    assert after(settings, '"""', '"""Now and then: ') == []
    assert after(settings, "def ", "# Why.\ndef ") == []
    assert after(settings, "SOFTMAX: 512", "SOFTMAX: 511") == ["ranking"]
    script = "benchmarks/import_speed.py"
    assert after(script, "def main", "def main_") == ["ranking", "import-speed"]


def test_what_is_stale_is_named(tmp_path, monkeypatch):
    record = {"commit": "abc", "code": fingerprint("filters"), "data": ""}
    assert evidence.why_stale("filters", record) == ""
    assert "before" in evidence.why_stale("filters", None)
    assert "abc" in evidence.why_stale("filters", record | {"code": "other"})
    monkeypatch.setattr(evidence, "data_digest", lambda name: "new")
    row = record | {"code": fingerprint("languages"), "data": "languages=old"}
    assert "data have changed since abc" in evidence.why_stale("languages", row)
