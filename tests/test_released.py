"""What a release wrote is read by every later version, with the same results."""

import importlib.util
import json
import shutil
from pathlib import Path

import pytest
from helpers import assert_same_output

from sentemb import Index, PreparedLog, Recipe, fit_ranker, load, load_ranker, train

RELEASED = Path(__file__).with_name("released")
RELEASES = sorted(path.parent for path in RELEASED.glob("*/expected.json"))


def test_there_is_a_release_and_it_is_small():
    assert RELEASES
    for folder in RELEASES:
        assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 450_000


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: folder.name)
def test_what_a_release_wrote_gives_the_same_results(folder, tmp_path):
    spec = importlib.util.spec_from_file_location("make", RELEASED / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    expected = (folder / "expected.json").read_text("utf-8")
    shutil.copytree(folder, tmp_path / "copy")  # reading it makes SQLite add files next to it
    found = make.results(tmp_path / "copy")
    assert_same_output(expected, json.dumps(found, indent=1), tolerance=1e-4)


def test_scripts_without_blanks_are_read_as_the_first_release_read_them(tmp_path):
    """In pairs: their letters alone are in no vocabulary, list or statistics of version 1.0."""
    folder = RELEASED / "1.0"
    text = "東京都 ｶﾞﾗｽ"
    pairs = ["東京", "京都", "ガラ", "ラス"]
    shutil.copytree(folder / "index", tmp_path / "index")
    index = Index.open(tmp_path / "index")
    index.add(["東京都の宿", "大阪の宿"], ["T", "O"])
    ranker = load_ranker(folder / "model")
    for recipe in (index.recipe, ranker.recipe, Recipe.of(ranker.recipe.as_dict())):
        assert recipe.words(text) == pairs and not recipe.letters
    for model in (index.model, load(folder / "model")):
        assert model.vocabulary.split(text) == pairs
    assert load(folder / "pairs").vocabulary.split(text) == pairs
    index.save(tmp_path / "again")
    assert not Index.open(tmp_path / "again").recipe.letters
    prepared = PreparedLog.open(folder / "prepared")
    assert train(prepared, epochs=1, cells=2, threads=1).vocabulary.split(text) == pairs
    fitted = fit_ranker(index.model, folder / "log.tsv", folder / "dev.tsv")
    assert fitted.recipe.letters and len(fitted.recipe.words(text)) == 10
