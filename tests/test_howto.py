"""docs/howto: the commands of the pages run, from a shop's two tables to ranked titles."""

import csv
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scale
from bulk_reader import StandIn, read_folder
from click.testing import CliRunner
from threadpoolctl import threadpool_limits
from tiny_transformer import write_transformer

from sentemb import Index, SentenceEncoder
from sentemb.cli import main
from sentemb.data.click_log import read_click_log
from sentemb.data.search_record import Searched, SearchRecord
from sentemb.data.seen_queries import in_log
from sentemb.data.simulation.simulator import simulate
from sentemb.data.splitting import split_log
from sentemb.evaluation.held_out import evaluate_clicks
from sentemb.retrieval.nearest import TitleVectors
from sentemb.text.words import plain_words

HOWTO = Path(__file__).parents[1] / "docs/howto"
# Pages in the order in which a reader would follow them: each uses files of those before.
PAGES = [
    "shop",
    "fresh",
    "elasticsearch",
    "scikit-learn",
    "sentence-transformers",
    "search-page",
    "vectors",
]
TAB = "\t"
DEPARTMENTS = {
    "travel": {"hotel", "guide", "photos", "suites", "city"},
    "repair": {"mend", "mending", "repair", "repairing", "fix"},
}
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.M | re.S)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A folder with the two tables of a shop, as docs/howto/shop.md describes them."""
    folder = tmp_path_factory.mktemp("shop")
    simulate(folder / "simulated", pairs=900, dev_queries=2, test_queries=2)
    log = read_click_log(folder / "simulated/pairs.tsv")
    skus = [f"P{number:05}" for number in range(len(log.titles))]
    with open(folder / "products.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["sku", "name", "price", "stock", "brand"])
        for number, (sku, title) in enumerate(zip(skus, log.titles, strict=True)):
            brand = ["Dogwood", "Birch"][number % 2]
            table.writerow([sku, title, f"{number % 90},90", number % 4, brand])
        table.writerow(["P99999", 'Never clicked: 15.6" Laptop', "999,00", 1, "Dogwood"])
    with open(folder / "clicks.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["search_term", "sku", "clicks"])
        for query, title, clicks in zip(log.query_index, log.title_index, log.clicks, strict=True):
            table.writerow([log.queries[query], skus[title], clicks])
        table.writerow(['hotel "le petit" paris', "P00001", 1])
    return folder


def run(command, folder):
    """Run one line of a page; return what it printed."""
    left, _, right = command.rpartition("| ")
    piped = right.startswith("sentemb ")
    if not (piped or command.startswith("sentemb ")):
        # `head` may end before `cut` has written everything, so a pipe fails only by its end.
        done = subprocess.run(["bash", "-c", command], cwd=folder, check=True, capture_output=True)
        return done.stdout
    given = None
    if piped and left:
        given = subprocess.run(["bash", "-c", left], cwd=folder, check=True, capture_output=True)
    words = shlex.split(right if piped else command, comments=True)[1:]
    done = CliRunner().invoke(
        main, words, input=given and given.stdout, standalone_mode=False, catch_exceptions=False
    )
    return done.stdout


def run_page(page, folder, leave_out=()):
    """Run the blocks of a page that import no package of ``leave_out``.

    Returns what its commands printed, and the names that its Python code defines.
    """
    prepare(page, folder)
    names, printed = {}, {}
    for language, code in BLOCK.findall((HOWTO / f"{page}.md").read_text(encoding="utf-8")):
        if language == "sh":
            printed |= {(page, command): run(command, folder) for command in code.splitlines()}
        elif not any(
            re.search(rf"^(from|import) {package}\b", code, re.M) for package in leave_out
        ):
            with threadpool_limits(1):  # threads that wait for each other take longer
                exec(compile(code, f"{page}.md", "exec"), names)
    return printed, names


@pytest.mark.ci
def test_the_pages_run(shop, monkeypatch):
    monkeypatch.chdir(shop)
    # sentence-transformers takes seconds to import: the next test runs these blocks.
    leave_out = [
        "sentence_transformers",
        *(name for name in ["pandas", "faiss", "usearch"] if not find_spec(name)),
    ]
    printed = {}
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    with StandIn() as engine:
        monkeypatch.setenv("URL", engine.address)
        for page in PAGES:
            more, names = run_page(page, shop, leave_out)
            printed |= more
            if page == "vectors":
                check_vectors(names)
    check(shop, printed, engine)


def test_the_page_of_large_logs_runs(tmp_path, monkeypatch):
    """In a folder of its own, as it makes a model and an index of the same names."""
    monkeypatch.chdir(tmp_path)
    printed, _ = run_page("large", tmp_path)
    of = {command: text for (_, command), text in printed.items()}
    assert "3 files, 2026-01.tsv to 2026-03.tsv.gz" in of["sentemb info log"]
    assert of['sentemb search index "hotels in shanghai"'].count("\n") == 10
    assert SentenceEncoder.from_pretrained("model-parts").training["parts"] == 2


def test_the_table_of_machines_is_that_of_the_results():
    page = (HOWTO / "large.md").read_text(encoding="utf-8")
    table = page.split("<!-- machines:begin -->")[1].split("<!-- machines:end -->")[0]
    assert table.strip().splitlines() == scale.machines()


@pytest.mark.slow
def test_the_page_of_sentence_transformers_runs(shop, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    pytest.importorskip("sentence_transformers", reason="it is optional")
    monkeypatch.chdir(shop)
    if not (shop / "model").exists():
        run_page("shop", shop)
    _, names = run_page("sentence-transformers", shop)
    catalogue = list(names["id_of"])
    ours = evaluate_clicks(
        TitleVectors(SentenceEncoder("model"), catalogue),
        names["held_out"],
        catalogue,
        ["hit@1", "mrr@10", "recall@10", "ndcg@10"],
    )
    theirs = ("accuracy@1", "mrr@10", "recall@10", "ndcg@10")
    assert [names["results"][f"cosine_{name}"] for name in theirs] == pytest.approx(
        ours.mean, abs=0.01
    )


@pytest.mark.slow
def test_the_page_of_a_transformer_runs(shop, monkeypatch):
    """With a tiny one that is made on the spot."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for package in ("datasets", "accelerate"):
        pytest.importorskip(package, reason="training needs sentence-transformers[train]")
    monkeypatch.chdir(shop)
    if not (shop / "index").exists():
        run_page("shop", shop)
    log = read_click_log("log/pairs.tsv")
    write_transformer(shop / "transformer-start", [*log.queries, *log.titles])
    printed, names = run_page("transformer", shop)
    assert names["triplets"].column_names == ["anchor", "positive", "negative_1", "negative_2"]
    assert len(names["triplets"]) > 0.9 * log.query_index.size
    of = {command.split()[1]: text for (_, command), text in printed.items()}
    assert ", embedding 0." in of["tune"]
    # Whether it has a weight is up to dev.
    has_embedding = "embedding" in Index.open("index-both").recipe.parts
    assert ("embedding" in of["explain"]) == has_embedding


@pytest.mark.slow
def test_a_new_user_gets_there(shop, tmp_path):
    """The first page in a new environment, as a shell runs it. Needs a package index."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    installed = subprocess.run(
        [tmp_path / "venv/bin/pip", "install", "--quiet", HOWTO.parents[1]], check=False
    )
    if installed.returncode:
        pytest.skip("the package and what it needs cannot be installed here")
    folder = tmp_path / "shop"
    folder.mkdir()
    for name in ("clicks.csv", "products.csv"):
        shutil.copy(shop / name, folder)
    page = (HOWTO / "shop.md").read_text(encoding="utf-8")
    commands = "".join(code for language, code in BLOCK.findall(page) if language == "sh")
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=folder,
        env=os.environ | {"PATH": f"{tmp_path}/venv/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "MRR@10" in done.stdout and "cheap hotel" in done.stdout
    assert "Traceback" not in done.stderr


def prepare(page, folder):
    """Write what a page expects to be there and does not make, and remove what it makes."""
    if page == "sentence-transformers":
        shutil.rmtree(folder / "model-st", ignore_errors=True)
    if page == "fresh":
        log = (folder / "pairs.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
        new = "".join(log[-200:]) + "zeppelin ride\tZeppelin Rides over Town\t3\n"
        (folder / "new-clicks.tsv").write_text(new, encoding="utf-8")
        run("sentemb start clicks.csv products.csv -o shop", folder)
        record = SearchRecord(folder / "shop/searches.sqlite")
        record.add_searches([Searched("zeppelin ride", [], None, 1.0)])
        record.close()
    if page == "elasticsearch":
        queries = (folder / "log/test.tsv").read_text(encoding="utf-8").splitlines()[:5]
        titles = (folder / "titles.tsv").read_text(encoding="utf-8").splitlines()
        ids = [line.split("\t")[0] for line in titles][1:21]
        with open(folder / "queries.tsv", "w", encoding="utf-8") as file:
            file.writelines(f"q{n}\t{line.split(TAB)[0]}\n" for n, line in enumerate(queries))
        with open(folder / "engine.run", "w", encoding="utf-8") as file:
            file.writelines(
                f"q{n} Q0 {id} {rank} {21 - rank} engine\n"
                for n in range(len(queries))
                for rank, id in enumerate(ids, 1)
            )
    if page == "scikit-learn":
        write_departments(folder)
    if page == "large":
        write_days(folder)


def write_days(folder):
    """A log in three files, its titles, and a judged set."""
    simulate(folder / "simulated", pairs=900, dev_queries=20, test_queries=2)
    (folder / "simulated/dev").rename(folder / "dev")
    log = read_click_log(folder / "simulated/pairs.tsv")
    titles = (f"t{number}\t{title}\n" for number, title in enumerate(log.titles))
    (folder / "titles.tsv").write_text("".join(titles), encoding="utf-8")
    lines = (folder / "simulated/pairs.tsv").read_bytes().splitlines(keepends=True)
    (folder / "clicks").mkdir()
    (folder / "clicks/2026-01.tsv").write_bytes(b"".join(lines[:300]))
    (folder / "clicks/2026-02.tsv").write_bytes(b"".join(lines[300:600]))
    (folder / "clicks/2026-03.tsv.gz").write_bytes(gzip.compress(b"".join(lines[600:])))


def write_departments(folder):
    """A department for each query of the log, by the words of what was clicked; word vectors."""
    log = read_click_log(folder / "pairs.tsv")
    department_of = dict.fromkeys(log.queries, "other")
    for query, title in zip(log.query_index, log.title_index, strict=True):
        words = set(log.titles[title].lower().split())
        for department, signs in DEPARTMENTS.items():
            if words & signs:
                department_of[log.queries[query]] = department
    with open(folder / "departments.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("query", "department"), *department_of.items()])
    words = sorted({word for query in log.queries for word in plain_words(query)})
    vectors = np.random.default_rng(0).normal(size=(len(words), 8)).round(3).tolist()
    with open(folder / "glove.6B.100d.txt", "w", encoding="utf-8") as file:
        for word, vector in zip(words, vectors, strict=True):
            file.write(f"{word} {' '.join(map(str, vector))}\n")


def check_vectors(names):
    """The libraries find the titles with the highest cosines, which may be equal."""
    cosines = names["vectors"] @ names["query"]
    highest = np.sort(cosines)[::-1][:10]
    assert np.array_equal(cosines[names["best"]], highest)
    if "flat" in names:
        assert cosines[names["places"][0]] == pytest.approx(highest, abs=1e-6)
    if "graph" in names:
        found = cosines[names["graph"].search(names["query"], 10).keys]
        assert (found >= highest[-1] - 1e-6).sum() >= 8
    assert Path("vectors.npy").exists() and len(names["ids"]) == len(names["titles"])


def check(folder, printed, engine):
    """What the pages say of their results, and what the stand-in for an engine received."""
    titles = (folder / "titles.tsv").read_text(encoding="utf-8").splitlines()
    assert 'P99999\tNever clicked: 15.6" Laptop\t999,00\t1\tDogwood' in titles
    assert 'hotel "le petit" paris\t' in (folder / "pairs.tsv").read_text(encoding="utf-8")
    of = {command: text for (_, command), text in printed.items()}
    measured = next(of[command] for command in of if command.startswith("sentemb evaluate model "))
    assert all(name in measured for name in ("hit@1", "MRR@10", "model", "bm25", "bm25-clicks"))
    found = of['sentemb search index "cheap hotel in paris"'].splitlines()
    assert len(found) == 10 and found[0].split()[0] == "1"
    ids = {line.split(TAB)[0] for line in titles[:100]}
    limited = of['sentemb search index "cheap hotel in paris" --only some.txt'].splitlines()
    assert {line.split()[2] for line in limited} <= ids
    filtered = next(text for command, text in of.items() if '--where "stock > 0' in command)
    assert "  price " in filtered
    assert "  stock 0" not in filtered
    assert any("brand: " in text for command, text in of.items() if "--facets" in command)
    trained, held_out = read_click_log("new-log/pairs.tsv"), read_click_log("log/dev.tsv")
    # Whole queries stay held out; of the others single clicks are drawn again.
    _, by_query, _ = split_log(read_click_log("pairs.tsv"), dev=0.05, test=0.05)
    assert in_log(by_query.queries, held_out.queries).all()
    assert not in_log(by_query.queries, trained.queries).any()
    as_json = json.loads(of['sentemb search index "cheap hotel in paris" -k 3 --json'])
    # None where it would say no more than a constant, as on so small a shop.
    confidence = as_json["titles"][0]["confidence"]
    assert len(as_json["titles"]) == 3 and (confidence is None or 0 <= confidence <= 1)
    index = Index.open(folder / "index")
    assert sorted(index.ids) == sorted(line.split(TAB)[0] for line in titles[1:])  # after --sync
    _, documents = read_folder(folder / "elastic")
    assert list(documents) == list(index.ids) and engine.documents == {"products": documents}
    assert any("clicked_queries" in source for source in documents.values())
    answer = next(text for command, text in of.items() if command.startswith("curl "))
    hits = [hit["_id"] for hit in json.loads(answer)["hits"]["hits"]]
    by_vector = index.search("cheap hotel in paris", cosine=True, where="price < 50")
    assert hits[:3] == [hit.id for hit in by_vector][:3]
    page = (folder / "search.html").read_text(encoding="utf-8")
    assert "<title>Our products</title>" in page and "connect-src 'none'" in page
    refreshed = of["sentemb refresh shop --catalogue products.csv"]
    assert "records: 1 new searches" in refreshed and "zeppelin ride" in refreshed
    assert (folder / "both.run").stat().st_size and (folder / "diff.html").stat().st_size
