"""docs/extending.md: its code, added to a copy of the package, does what the page says."""

import re
import shutil
from pathlib import Path

import pytest
from helpers import run_forked

from sentemb.kernels.compiling.jit import CACHE_FOLDER

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/extending.md").read_text("utf-8")
BLOCK = re.compile(r"```python\n# src/(\S+)\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A folder with a copy of the package to which the page's code is added.

    The kernels of the package are those that are compiled already: the copy gets their files, and
    names them as the package does although it has more kernels.
    """
    folder = tmp_path_factory.mktemp("extended")
    no_caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src/sentemb", folder / "sentemb", ignore=no_caches)
    shutil.copytree(ROOT / "cli", folder / "sentemb/cli", ignore=no_caches, dirs_exist_ok=True)
    for name, code in BLOCK.findall(PAGE):
        with open(folder / name, "a", encoding="utf-8") as file:
            file.write(f"\n{code}")
    if CACHE_FOLDER is not None:
        (folder / "sentemb-kernels").mkdir(mode=0o700)
        shutil.copytree(CACHE_FOLDER, folder / "sentemb-kernels" / CACHE_FOLDER.name)
        cache = folder / "sentemb/kernels/compiling/cache.py"
        before = cache.read_text("utf-8")
        after = before.replace("stamp = _stamp()", f"stamp = {CACHE_FOLDER.name!r}")
        assert after != before
        cache.write_text(after, "utf-8")
    return folder


def sentemb(package, *arguments):
    return python(package, "from sentemb.cli import main\nmain()", *arguments)


def python(package, code, *arguments):
    code = f"import os, sys\nos.chdir({str(package)!r})\nsys.path.insert(0, os.getcwd())\n{code}"
    return run_forked(code, *arguments, cache=package)


def test_the_page_adds_files_and_a_registration_each():
    names = [name for name, _ in BLOCK.findall(PAGE)]
    encoder = "kernels/gru", "models/towers/gru", "models/towers/registry"
    pair_model = "kernels/ends", "models/pairs/word_ends", "models/pairs/registry"
    part = "kernels/first_word", "search/ranking/recipe", "search/ranking/parts"
    assert names == [f"sentemb/{name}.py" for name in (*encoder, *pair_model, *part)]
    kernels = ("gru", "ends", "first_word")
    assert not any((ROOT / f"src/sentemb/kernels/{name}.py").exists() for name in kernels)


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param((), marks=pytest.mark.ci),
        pytest.param(("--bag-dim", 4, "--lengths", "1,1"), marks=pytest.mark.slow),
        pytest.param(("--cells", 17, "--shared-towers"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_encoder_of_the_page_passes_the_gradient_check(package, settings):
    found = sentemb(package, "gradcheck", "--model", "gru", *settings)
    assert found.returncode == 0, found.stdout + found.stderr
    assert ".Wrech " in found.stdout
    assert "PASS" in found.stdout


def test_the_commands_know_the_encoder_of_the_page(package):
    shown = re.sub(r"\s", "", sentemb(package, "train", "-h").stdout)
    assert re.search(r"--model\[[a-z|0-9]+\|gru\|[a-z|0-9]+\|wordends\]", shown)
    refused = sentemb(package, "gradcheck", "--model", "gru", "--peepholes", "full")
    assert refused.returncode == 1
    assert "the model gru has no peepholes, only cells, bag_dim" in refused.stderr
    refused = sentemb(package, "gradcheck", "--model", "gru", "--form", "trace")
    assert refused.returncode == 1
    assert "use the form scan" in refused.stderr


@pytest.mark.slow
def test_the_pair_model_of_the_page_passes_the_gradient_check(package):
    found = sentemb(package, "gradcheck", "--model", "wordends")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "pair.W " in found.stdout and "PASS" in found.stdout


@pytest.mark.slow
def test_a_model_of_the_page_is_trained_saved_and_read(package):
    (package / "pairs.tsv").write_text("".join(f"query {k}\ttitle {k}\n" for k in range(9)))
    tiny = ("--cells", 3, "--epochs", 1, "--batch-size", 3)
    made = sentemb(package, "train", "pairs.tsv", "--model", "gru", "-o", "model", *tiny)
    assert made.returncode == 0, made.stderr
    scored = sentemb(package, "score", "model", "query 1", "title 1", "title 2")
    assert len(scored.stdout.splitlines()) == 2, scored.stderr
    words = sentemb(package, "keywords", "model", "query 1")
    assert words.stdout.startswith("query 1"), words.stderr


_PART = """
import numpy as np

import sentemb
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

NAMES = ["acme", "bolt", "cargo", "delta", "eagle", "falcon"]
THINGS = ["red shoes", "blue hat", "green coat", "white shirt"]
titles = [f"{name} {thing}" for name in NAMES for thing in THINGS]
# The first word alone says which title is right.
pairs = [(f"{name} {thing} {k}", f"{name} {thing}") for name in NAMES for thing in THINGS
         for k in range(3)]
model = sentemb.train(pairs, cells=3, epochs=1, batch_size=8, hard_negatives=0, threads=1)
ranker = HybridRanker(model, Recipe({"cosine": 0.5, "first_word": 2.0}))
queries = ["acme coat", "hat bolt", "zzz", "falcon"]
found = ranker.over(titles).ranked(queries, 5)
for q, query in enumerate(queries):
    every = np.arange(len(titles))
    scores = ranker.score_pairs([query], titles, 0 * every, every)
    best = np.lexsort((every, -scores))[:5]
    kept = found.titles[q] >= 0
    assert (found.scores[q][kept] == scores[best][kept]).all(), query
    expected = [titles[t].split()[0] == query.split()[0] for t in best]
    assert found.values["first_word"][q][kept].tolist() == np.array(expected)[kept].tolist()

index = sentemb.Index.build(ranker, titles)
index.remove(["0", "5"])
index.add(["acme lamp"], ["lamp"])
before = index.search(queries, 4)
index.save("index")
after = sentemb.Index.open("index").search(queries, 4)
assert before == after and before[0][0].parts["first_word"]["value"] == 1
assert "acme lamp" in [hit.title for hit in before[0]]

dev = sentemb.ClickLog.from_pairs((f"{name} {thing} new", f"{name} {thing}")
                                  for name in NAMES for thing in THINGS)
fitted = sentemb.fit_ranker(model, pairs, dev)
print(sorted(fitted.dev["figures"]))
"""


def test_the_part_of_the_page_is_searched_stored_and_fitted(package):
    found = python(package, _PART)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "first_word" in found.stdout
