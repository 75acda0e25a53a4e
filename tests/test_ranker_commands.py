"""The ranker of a model folder from the command line."""

import json

import pytest
from click.testing import CliRunner
from test_ranker import made_judged
from test_ranking import ALL, made_log
from test_report import data_of

import sentemb
from sentemb.analysis.report.page_pairs import read_pairs
from sentemb.bridges.server.server import Server
from sentemb.cli import main
from sentemb.cli.ranker import log_and_share
from sentemb.comparison.difference import sides_of
from sentemb.data.click_log import write_click_log
from sentemb.data.judged_set import write_judged_set
from sentemb.data.splitting import split_file, split_log
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking import fitting
from sentemb.search.ranking.opening import load_best, load_ranker
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.ranker_files import has_ranker
from sentemb.search.ranking.recipe import MEANINGS, PARTS
from sentemb.text.words import query_key

QUICK = ("--model", "bag", "--cells", 8, "--epochs", 1, "--threads", 1, "--hard-negatives", 0)
ALONE = [f"{PARTS[part]} alone" for part in ALL.rankings]


def run(*arguments, code=0, **keywords):
    result = CliRunner().invoke(main, list(map(str, arguments)), **keywords)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    log = made_log()
    write_click_log(log, folder / "pairs.tsv")
    for name, seed in (("dev", 1), ("test", 2)):
        write_judged_set(made_judged(log, seed), folder / name)
    return folder


@pytest.fixture(scope="module")
def trained(data):
    result = run("train", data / "pairs.tsv", "--dev", data / "dev", "-o", data / "model", *QUICK)
    return data / "model", result


@pytest.fixture(scope="module")
def hybrid(trained, data, tmp_path_factory):
    """A folder whose ranker has every part, whatever dev chose."""
    folder = tmp_path_factory.mktemp("hybrid") / "model"
    ranker = load_ranker(trained[0])
    ranker.model.save_pretrained(folder)
    HybridRanker(ranker.model, ALL, ClickedQueries.of(made_log()), dev=ranker.dev).save(folder)
    return folder


# -- train and tune ---------------------------------------------------------------------------


def test_training_ends_with_a_ranker(trained, data):
    folder, result = trained
    lines = result.stdout.splitlines()
    ranker = load_ranker(folder)
    for part in ranker.recipe.parts:
        assert any(line.endswith(MEANINGS[part]) for line in lines)
    (line,) = [line for line in lines if line.startswith("ranker on dev: hit@1")]
    assert all(part in line for part in ("cosine", "BM25", "memory"))
    holds = [line for line in result.stderr.splitlines() if "plain text" in line]
    assert "plain text" not in result.stdout
    assert len(holds) == ranker.recipe.needs_clicks
    assert lines[-1].startswith(f"next: sentemb evaluate {folder} {data / 'test'}")
    expected = sentemb.fit_ranker(folder, data / "pairs.tsv", data / "dev", threads=1)
    assert (ranker.recipe, ranker.dev) == (expected.recipe, expected.dev)


def test_a_ranker_changes_no_bit_of_the_model(trained, data, tmp_path):
    args = ("train", data / "pairs.tsv", "--dev", data / "dev", "-o", tmp_path / "model", *QUICK)
    result = run(*args, "--no-ranker")
    assert "ranker:" not in result.output
    assert not (tmp_path / "model" / "ranker").exists()
    for name in ("model.safetensors", "config.json", "vocabulary.txt", "words.txt"):
        assert (tmp_path / "model" / name).read_bytes() == (trained[0] / name).read_bytes()


def test_without_dev_train_says_how_to_get_a_ranker(data, tmp_path):
    result = run("train", data / "pairs.tsv", "-o", tmp_path / "model", *QUICK)
    assert "no ranker: fitting one needs --dev; `sentemb tune" in result.stderr
    assert not has_ranker(tmp_path / "model")


def test_a_share_is_held_out_of_the_ranker_too(data, tmp_path):
    out = tmp_path / "model"
    run("train", data / "pairs.tsv", "--dev", "30%", "-o", out, *QUICK)
    ranker = load_ranker(out)
    _, held_out, _ = split_log(made_log(), dev=0.3, test=0)
    assert ranker.dev["queries"] == len(held_out.queries)
    # It serves all clicks of the log, also those that it was not fitted with.
    assert {*map(query_key, ranker.clicks.queries)} == {*map(query_key, made_log().queries)}


def test_sources_that_can_be_read_only_once(data, trained, tmp_path):
    args = ("-o", tmp_path / "model", *QUICK)
    run("train", "-", "--dev", data / "dev", *args, input=(data / "pairs.tsv").read_bytes())
    assert load_ranker(tmp_path / "model").recipe == load_ranker(trained[0]).recipe
    # Held-out clicks and a catalogue with ids, from a file and from standard input.
    split_file(data / "pairs.tsv", tmp_path / "log")
    names = ("pairs.tsv", "dev.tsv", "titles.tsv")
    pairs, dev, titles = (tmp_path / "log" / name for name in names)
    args = ("train", pairs, *QUICK, "--json", "-o")
    run(*args, tmp_path / "a", "--dev", dev, "--catalogue", titles)
    given = (("--dev", "-", "--catalogue", titles), ("--dev", dev, "--catalogue", "-"))
    for name, options, file in zip("bc", given, (dev, titles), strict=True):
        done = run(*args, tmp_path / name, *options, input=file.read_bytes())
        assert json.loads(done.stdout)["ranker"]
        ours, theirs = (load_ranker(tmp_path / folder) for folder in (name, "a"))
        assert ours.recipe == theirs.recipe and list(ours.clicks.keys) == list(theirs.clicks.keys)


def test_force_and_resume(data, tmp_path, monkeypatch):
    args = ("train", data / "pairs.tsv", "--dev", data / "dev", "-o", tmp_path / "model", *QUICK)
    ranker = tmp_path / "model" / "ranker" / "ranker.safetensors"

    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fitting, "_chosen", interrupt)
        result = run(*args, code=130)
    assert "the model is finished and has no ranker" in result.stderr
    assert not ranker.parent.exists()
    sentemb.load(tmp_path / "model")
    run(*args, "--resume")
    first = ranker.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(fitting, "_chosen", interrupt)
        # It is there: nothing is fitted.
        assert "The ranker scores a title by" in run(*args, "--resume").stdout
        assert ranker.read_bytes() == first
        # A new model has no old ranker, also if its own cannot be fitted.
        run(*args, "--force", code=130)
    assert not ranker.parent.exists()
    run(*args, "--force")
    assert ranker.read_bytes() == first


def test_tune_fits_what_train_fits(trained, data, tmp_path):
    model = sentemb.load(trained[0])
    model.save_pretrained(tmp_path / "model")
    args = ("tune", tmp_path / "model", data / "dev", "--log", data / "pairs.tsv", "--threads", 1)
    found = json.loads(run(*args, "--dry-run", "--json").stdout)
    assert not has_ranker(tmp_path / "model")
    expected = load_ranker(trained[0])
    assert found == {"recipe": expected.recipe.as_dict(), "dev": expected.dev}
    shown = run(*args).stdout
    assert all(f"{expected.recipe.weight(part):+.3g}" in shown for part in expected.recipe.parts)
    names = ("ranker.safetensors", "ranker.json")
    for name in names:
        one, other = (folder / "ranker" / name for folder in (tmp_path / "model", trained[0]))
        assert one.read_bytes() == other.read_bytes()


def test_tune_draws_the_pairs_that_the_training_replayed(data, tmp_path):
    broken = tmp_path / "old.tsv"
    broken.write_bytes((data / "pairs.tsv").read_bytes() + b"no tab\n")
    old = ("--replay", f"{broken}:0.5", "--skip-bad-lines", "--threads", 1)
    args = (data / "pairs.tsv", "--dev", data / "dev", "-o", tmp_path / "model")
    run("train", *args, *QUICK, "--seed", 3, *old)
    first = (tmp_path / "model/ranker/ranker.safetensors").read_bytes()
    run("tune", tmp_path / "model", data / "dev", "--log", data / "pairs.tsv", *old)
    assert (tmp_path / "model/ranker/ranker.safetensors").read_bytes() == first
    named = tmp_path / "old:2024"
    named.write_bytes((data / "pairs.tsv").read_bytes())
    assert log_and_share(str(named)) == (str(named), 1.0)
    assert log_and_share(f"{named}:0.5") == (str(named), 0.5)


def test_tune_refuses_what_does_not_fit(trained, data, tmp_path):
    model, dev = trained[0], data / "dev"
    assert "needs --log" in run("tune", model, dev, code=2).stderr
    args = ("--log", data / "pairs.tsv")
    run("index", model, data / "test" / "docs.tsv", "-o", tmp_path / "index")
    refused = run("tune", tmp_path / "index", dev, "--replay", data / "pairs.tsv", code=2).stderr
    assert "--replay does not go with an index" in refused
    assert "neither an index nor a model" in run("tune", data, dev, *args, code=1).stderr


def test_a_pair_model_has_no_ranker(data, tmp_path):
    args = ("--model", "wordembed", "--epochs", 1, "--threads", 1)
    result = run(
        "train", data / "pairs.tsv", "--dev", data / "dev", "-o", tmp_path / "model", *args
    )
    assert "ranker:" not in result.output
    result = run("tune", tmp_path / "model", data / "dev", "--log", data / "pairs.tsv", code=1)
    assert "the pair model wordembed cannot have a ranker" in result.stderr
    assert not has_ranker(tmp_path / "model")


# -- the commands that use it -----------------------------------------------------------------


def test_rank_uses_the_ranker(hybrid, data):
    titles = data / "test" / "docs.tsv"
    asked = ("--query", "a red bath", titles, "--json", "-k", 4)
    ids, texts = zip(*(line.split("\t") for line in titles.read_text().splitlines()), strict=True)
    found = json.loads(run("rank", hybrid, *asked).stdout.splitlines()[0])
    ranked = load_ranker(hybrid).rank("a red bath", texts)
    scores = {ids[place]: score for place, score in ranked}
    best = sorted(scores, key=lambda id: (scores[id], id), reverse=True)[:4]
    hits = found["titles"] if "titles" in found else found["hits"]
    assert [hit["id"] for hit in hits] == best
    assert [hit["score"] for hit in hits] == [scores[id] for id in best]
    alone = run("rank", hybrid, *asked, "--cosine").stdout
    assert alone == run("rank", _without_ranker(hybrid), *asked).stdout
    assert alone != run("rank", hybrid, *asked).stdout


def _without_ranker(folder):
    """A copy of the model in ``folder``, and nothing else."""
    other = folder.parent / "bare"
    if not other.exists():
        sentemb.load(folder).save_pretrained(other)
    return other


def test_candidates_have_the_scores_of_the_whole_catalogue(hybrid, data, tmp_path):
    files = data / "test" / "queries.tsv", data / "test" / "docs.tsv"
    run("rank", hybrid, *files, "-k", 5, "-o", tmp_path / "whole.run")
    run(
        "rank", hybrid, *files, "--candidates", tmp_path / "whole.run", "-o", tmp_path / "again.run"
    )
    rows = [
        {tuple(line.split()[:3]): float(line.split()[4]) for line in path.read_text().splitlines()}
        for path in (tmp_path / "whole.run", tmp_path / "again.run")
    ]
    assert rows[0].keys() == rows[1].keys()
    assert list(rows[0].values()) == pytest.approx(list(rows[1].values()), abs=1e-5)


def test_evaluate_prints_the_ranker_and_its_parts(hybrid, data):
    lines = run("evaluate", hybrid, data / "test").stdout.splitlines()
    names = [line.split("  ")[0].strip() for line in lines[1 : len(ALONE) + 2]]
    assert names == ["ranker", *ALONE]
    bare = run("evaluate", _without_ranker(hybrid), data / "test").stdout
    assert run("evaluate", hybrid, data / "test", "--cosine").stdout == bare
    assert bare.splitlines()[1].split()[1:] == lines[2].split()[2:]
    found = json.loads(run("evaluate", hybrid, data / "test", "--json").stdout)
    assert list(found["parts"]) == names[1:]
    assert f"{found['ndcg@1']:.4f}" == lines[1].split()[1]
    per_query = run("evaluate", hybrid, data / "test", "--per-query").stdout.splitlines()
    assert per_query[1].split()[0] == "q0"
    assert per_query[13].split()[0] == "ranker"


def test_the_cosine_is_refused_where_it_would_do_nothing(hybrid, data, tmp_path):
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("red bath\thotels in\n")
    result = run("evaluate", hybrid, clicks, "--labels", "--cosine", code=2)
    assert "--cosine does not go with --labels" in result.stderr


@pytest.mark.parametrize(("options", "shows"), [((), True), (("--cosine",), False)])
def test_a_server_with_a_memory_says_that_it_shows_queries(
    hybrid, data, tmp_path, monkeypatch, options, shows
):
    run("index", hybrid, data / "test" / "docs.tsv", "-o", tmp_path / "index", *options)
    monkeypatch.setattr(Server, "run", lambda *_: None)
    said = run("serve", tmp_path / "index", "--host", "0.0.0.0", "--port", 0).stderr
    assert "anyone who can reach port" in said
    assert ("see queries of the log" in said) == shows


def test_an_average_says_that_it_has_no_ranker(hybrid, trained, tmp_path):
    result = run("average", hybrid, trained[0], "-o", tmp_path / "average")
    assert f"sentemb tune {tmp_path / 'average'} DEV --log LOG" in result.stderr
    bare = _without_ranker(hybrid)
    assert not run("average", bare, bare, "-o", tmp_path / "bare").stderr


def test_held_out_clicks_are_ranked_by_the_ranker_and_its_parts(hybrid, data, tmp_path):
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("red bath\thotels in\nfix a tub\ttub repair\n")
    titles = data / "test" / "docs.tsv"
    texts = [line.split("\t")[1] for line in titles.read_text().splitlines()]
    clicks.write_text("".join(f"{texts[k]} a\t{texts[k]}\n" for k in range(6)))
    args = (clicks, "--catalogue", titles, "--json")
    found = json.loads(run("evaluate", hybrid, *args).stdout)
    names = [str(hybrid), *ALONE]
    assert list(found["systems"]) == names
    assert list(found["model_minus"]) == names[1:]
    bare = _without_ranker(hybrid)
    alone = json.loads(run("evaluate", bare, *args, "--compare-with", hybrid).stdout)
    assert alone["systems"][str(bare)] == found["systems"]["cosine alone"]
    assert alone["systems"][str(hybrid)] == found["systems"][str(hybrid)]


def test_compare_has_a_row_for_the_ranker_and_each_part(hybrid, data, tmp_path):
    args = ("--models", "random", "--compare-with", hybrid, "--seeds", 1, "--json")
    found = json.loads(run("compare", data, "-o", tmp_path / "all", *args).stdout)
    names = ["random", "model", *(f"model-{part}" for part in ALL.rankings)]
    assert {row["row"] for row in found["rows"]} == set(names)
    again = run("compare", data, "-o", tmp_path / "all", *args)
    assert json.loads(again.stdout) == found
    alone = run("compare", data, "-o", tmp_path / "one", *args, "--cosine").stdout
    assert {row["row"] for row in json.loads(alone)["rows"]} == {"random", "model"}


def test_explain_says_what_each_part_adds(hybrid, data):
    catalogue = data / "test" / "docs.tsv"
    args = ("a red bath", "--catalogue", catalogue)
    lines = run("explain", hybrid, *args).stdout.splitlines()
    found = json.loads(run("explain", hybrid, *args, "--json").stdout)
    assert [part["part"] for part in found["parts"]] == list(ALL.parts)
    added = sum(part["added"] for part in found["parts"])
    assert found["score"] == pytest.approx(added, abs=1e-6)
    assert lines[0].startswith(f"{added:.3f}  ")
    assert found["parts"][1]["nearest"]["text"] in "\n".join(lines)
    texts = [line.split("\t")[1] for line in catalogue.read_text().splitlines()]
    (best,) = load_ranker(hybrid).rank("a red bath", texts, 1)
    assert found["title"]["text"] == texts[best[0]]
    alone = run("explain", hybrid, *args, "--cosine").stdout
    assert alone == run("explain", _without_ranker(hybrid), *args).stdout


def test_an_index_that_took_over_the_ranker_is_explained_alike(hybrid, data, tmp_path):
    catalogue = data / "test" / "docs.tsv"
    run("index", hybrid, catalogue, "-o", tmp_path / "index")
    of_index = json.loads(run("explain", tmp_path / "index", "a red bath", "--json").stdout)
    asked = ("a red bath", "--catalogue", catalogue, "--json")
    of_model = json.loads(run("explain", hybrid, *asked).stdout)
    for one, other in zip(of_index["parts"], of_model["parts"], strict=True):
        assert one["part"] == other["part"]
        assert one["value"] == pytest.approx(other["value"], abs=1e-6)
        assert one.get("nearest", {}).get("text") == other.get("nearest", {}).get("text")
    assert of_index["title"] == of_model["title"]


# -- one score everywhere ---------------------------------------------------------------------


def pairs_of_run(path):
    """The score of each query and title of a TREC run, by id."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {(query, title): float(score) for query, _, title, _, score, _ in lines}


@pytest.mark.parametrize("options", [(), ("--cosine",)])
def test_every_command_gives_a_pair_the_same_score(hybrid, data, tmp_path, options):
    """Thirty pairs: score, rank, its candidates, search, explain, evaluate and report."""
    files = [data / "test" / name for name in ("queries.tsv", "docs.tsv")]
    queries, titles = (
        dict(line.split("\t") for line in file.read_text().splitlines()) for file in files
    )
    queries, titles = dict(list(queries.items())[:3]), dict(list(titles.items())[:10])
    lines = ["".join(f"{id}\t{text}\n" for id, text in some.items()) for some in (queries, titles)]
    (tmp_path / "q.tsv").write_text(lines[0])
    (tmp_path / "t.tsv").write_text(lines[1])
    run("index", hybrid, tmp_path / "t.tsv", "-o", tmp_path / "index")
    asked = (tmp_path / "q.tsv", tmp_path / "t.tsv", *options)
    run("rank", hybrid, *asked, "-k", 0, "-o", tmp_path / "rank.run")
    expected = pairs_of_run(tmp_path / "rank.run")
    assert len(expected) == 30
    candidates = ("--candidates", tmp_path / "rank.run", "-k", 0)
    run("rank", hybrid, *asked, *candidates, "-o", tmp_path / "again.run")
    assert pairs_of_run(tmp_path / "again.run") == pytest.approx(expected, abs=1e-6)
    found = ("--queries", tmp_path / "q.tsv", "-k", 99, "--trec", *options)
    run("search", tmp_path / "index", *found, "-o", tmp_path / "search.run")
    assert pairs_of_run(tmp_path / "search.run") == pytest.approx(expected, abs=1e-6)
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("".join(f"{text}\t{titles['t3']}\n" for text in queries.values()))
    for q, query in queries.items():
        scored = json.loads(
            run("score", hybrid, query, *titles.values(), "--json", *options).stdout
        )
        for (t, title), one in zip(titles.items(), scored["titles"], strict=True):
            assert one["score"] == pytest.approx(expected[q, t], abs=1e-6)
            explained = run("explain", hybrid, query, title, "--json", *options).stdout
            assert json.loads(explained)["score"] == pytest.approx(expected[q, t], abs=1e-6)
    ids = {title: t for t, title in titles.items()}
    for model, more in ((hybrid, ("--catalogue", tmp_path / "t.tsv")), (tmp_path / "index", ())):
        page = tmp_path / "page.html"
        run("report", model, clicks, "-o", page, "--show", 3, "--force", *more, *options)
        shown = data_of(page.read_text())["triage"]
        assert len(shown["worst"]) == 3
        for (query, *_), one in zip(shown["rows"], shown["worst"], strict=True):
            q = next(q for q, text in queries.items() if text == query)
            of_titles = {ids[shown["titles"][t]]: score for t, _, _, score, *_ in one["titles"]}
            assert of_titles == {t: pytest.approx(expected[q, t], abs=1e-3) for t in titles}
        measured = json.loads(
            run("evaluate", model, clicks, *more, *options, "--per-query", "--json",
                "--metrics", "mrr@10").stdout
        )  # fmt: skip
        for one, q in zip(measured["per_query"], queries, strict=True):
            right = expected[q, "t3"]
            rank = 1 + sum(expected[q, t] > right for t in titles)
            assert one["systems"][str(model)]["mrr@10"] == pytest.approx(1 / rank)


def test_a_renamed_product_keeps_its_score_in_every_command(hybrid, data, tmp_path):
    log = made_log()
    ids = [f"p{n}" for n in range(len(log.titles))]
    folder, catalogue, index = (tmp_path / name for name in ("model", "titles.tsv", "index"))
    ranker = load_ranker(hybrid)
    ranker.model.save_pretrained(folder)
    ranker.with_ids(log.titles, ids).save(folder)
    texts = [log.titles[0] + " neu", *log.titles[1:]]
    catalogue.write_text("".join(f"{id}\t{text}\n" for id, text in zip(ids, texts, strict=True)))
    run("index", folder, catalogue, "-o", index)
    query = log.queries[log.query_index[list(log.title_index).index(0)]]
    (tmp_path / "q.tsv").write_text(f"q\t{query}\n")
    (tmp_path / "clicks.tsv").write_text(f"{query}\t{texts[0]}\n")
    (hit,) = [hit for hit in sentemb.Index.open(index).search(query, 99) if hit.id == "p0"]
    expected = pytest.approx(hit.score, abs=1e-6)
    clickless = load_ranker(folder).score_pairs([query], [texts[0]], [0], [0])
    assert abs(clickless[0] - hit.score) > 0.01

    ranked = ("rank", folder, tmp_path / "q.tsv", catalogue, "-k", 0)
    run(*ranked, "-o", tmp_path / "rank.run")
    assert pairs_of_run(tmp_path / "rank.run")["q", "p0"] == expected
    run(*ranked, "--candidates", tmp_path / "rank.run", "-o", tmp_path / "again.run")
    assert pairs_of_run(tmp_path / "again.run")["q", "p0"] == expected
    explained = json.loads(run("explain", index, query, texts[0], "--json").stdout)
    assert explained["score"] == expected
    assert sum(part["added"] for part in explained["parts"]) == expected
    measured = ("--per-query", "--json", "--metrics", "mrr@10")
    clicked = tmp_path / "clicks.tsv", "--catalogue", catalogue
    of_model = json.loads(run("evaluate", folder, *clicked, *measured).stdout)
    of_index = json.loads(run("evaluate", index, clicked[0], *measured).stdout)
    figures = of_model["systems"][str(folder)], of_index["systems"][str(index)]
    assert figures[0] == figures[1]
    run("report", folder, *clicked, "-o", tmp_path / "r.html")
    shown = data_of((tmp_path / "r.html").read_text())["triage"]
    scores = {shown["titles"][t]: score for t, _, _, score, *_ in shown["worst"][0]["titles"]}
    assert scores[texts[0]] == pytest.approx(hit.score, abs=1e-3)
    run("diff", folder, folder, "--catalogue", catalogue, "--queries", tmp_path / "q.tsv", "--json")
    sides, every = sides_of(folder, folder, texts, ids=ids)
    places, found = sides[0].find([query], len(every))
    assert found[0][places[0].tolist().index(every.index(texts[0]))] == expected


def test_a_report_of_a_few_pairs_ranks_by_the_ranker(hybrid, data, tmp_path):
    pairs = [read_pairs(load_ranker(hybrid).model, data / "test", 40, ranker)[0] for ranker in
             (load_ranker(hybrid), load_best(hybrid, cosine=True))]  # fmt: skip
    assert pairs[0] != pairs[1]
    run("report", hybrid, data / "test", "--limit", 40, "-o", tmp_path / "page.html")
    shown = data_of((tmp_path / "page.html").read_text())["pairs"]
    assert [pair["rank"] for pair in shown] == [pair.rank for pair in pairs[0]]


def test_a_stale_ranker_is_refused_with_a_remedy(hybrid, data, tmp_path, make_model):
    make_model("bag", cells=4).save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "ranker").mkdir()
    raw = (hybrid / "ranker" / "ranker.safetensors").read_bytes()
    (tmp_path / "model" / "ranker" / "ranker.safetensors").write_bytes(raw)
    result = run("evaluate", tmp_path / "model", data / "test", code=1)
    assert "fitted for another model" in result.stderr
    assert "--cosine" in result.stderr
    run("evaluate", tmp_path / "model", data / "test", "--cosine")
    run("tune", tmp_path / "model", data / "dev", "--log", data / "pairs.tsv")
    run("evaluate", tmp_path / "model", data / "test")
