"""Explanations: effects of words against scoring again, evidence against a loop over the log."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model, made_up_pair_model, made_up_texts

from sentemb import SIF, SentembError, SentenceEncoder, train
from sentemb.analysis import explanation
from sentemb.analysis.explanation import Explainer, explain
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index import Index
from sentemb.search.ranking import engine
from sentemb.search.ranking.ranker import HybridRanker, Share
from sentemb.search.ranking.recipe import Recipe
from sentemb.system.parallel import Workers

JOBS = {"cook": "kitchen", "nurse": "hospital", "lawyer": "court", "driver": "lorry"}
MARKUP = "&<b>&"


def job_log():
    """For each job some queries, whose title has a word that no query has."""
    builder = ClickLogBuilder()
    for job, place in JOBS.items():
        for filler in ("head", "senior", "night", "junior", "second", "chief"):
            builder.add(f"{filler} {job}", f"{place} staff", 3)
            builder.add(f"{job} {filler}", f"{place} staff")
    builder.add("night nurse", "all staff", 7)
    builder.add("night nurse", "other staff", 3)
    return builder.build()


@pytest.fixture(scope="module")
def log():
    return job_log()


@pytest.fixture(scope="module")
def trained(log):
    settings = {"epochs": 8, "batch_size": 8, "hard_negatives": 0, "learning_rate": 0.02}
    return train(log, model="bag", cells=16, threads=1, **settings)


@pytest.fixture(scope="module")
def folder(trained, log, tmp_path_factory):
    path = tmp_path_factory.mktemp("explain")
    trained.save_pretrained(path / "model")
    write_click_log(log, path / "pairs.tsv")
    lines = [f"t{k}\t{title}" for k, title in enumerate(["court staff", "hospital staff"])]
    (path / "titles.tsv").write_text("\n".join(lines) + "\n")
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["explain", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def refused(*arguments):
    """The one line that stderr says, exit code 1."""
    result = run(*arguments, code=1)
    assert result.stdout == "" and result.stderr.count("\n") == 1
    return result.stderr


def models(texts):
    """Models of several kinds that have vectors."""
    for variant in (("bag", {}), ("dssm", {"hidden": 7}), ("lstm", {})):
        yield variant[0], made_up_model(variant, texts, dtype=np.float32)
    pair = [made_up_model(("bag", {}), texts, seed=seed, dtype=np.float32) for seed in (1, 2)]
    yield "average", SentenceEncoder.average(pair)
    words = sorted({word for text in texts for word in text.split()})
    rng = np.random.default_rng(0)
    vectors = WordVectors(words, rng.standard_normal((len(words), 6)).astype(np.float32))
    yield "sif", SIF(vectors, components=0).fit()


def test_effects_are_differences_of_scores_for_several_kinds_of_models():
    query, title = made_up_texts(np.random.default_rng(0), [3, 4])
    for name, model in models([query, title]):
        found = explain(model, query, title)
        assert found.similar is None and found.query.new is None
        whole = model.score(query, title)
        assert found.score == pytest.approx(whole, abs=1e-6), name
        for side, text in (("query", found.query), ("title", found.title)):
            words = text.text.split()
            assert text.words == words
            for place in range(len(words)):
                rest = " ".join(words[:place] + words[place + 1 :])
                pair = (rest, title) if side == "query" else (query, rest)
                expected = whole - model.score(*pair)
                assert text.effects[place] == pytest.approx(expected, abs=1e-6), name


def test_the_only_word_of_a_query_has_the_whole_score_as_its_effect(trained):
    found = explain(trained, "cook", "kitchen staff")
    assert found.query.effects.tolist() == pytest.approx([found.score])


def test_the_nearest_queries_and_what_was_clicked_for_them(trained, log):
    found = explain(trained, "nurse at night", log=log, k=4)
    cosines = [trained.similarity(*trained.encode_query(["nurse at night", q]))[0, 0]
               for q in log.queries]  # fmt: skip
    best = sorted(range(len(cosines)), key=lambda q: -cosines[q])[:4]
    assert [one.query for one in found.similar] == [log.queries[q] for q in best]
    for one, q in zip(found.similar, best, strict=True):
        assert one.score == pytest.approx(cosines[q], abs=1e-6)
        pairs = [p for p in range(len(log.clicks)) if log.query_index[p] == q]
        pairs.sort(key=lambda p: -log.clicks[p])
        assert one.clicked == [(log.titles[log.title_index[p]], log.clicks[p]) for p in pairs]
    # The most clicked title comes first, equally clicked ones in the order of the log.
    night = next(one for one in explain(trained, "night nurse", log=log).similar
                 if one.query == "night nurse")  # fmt: skip
    assert night.clicked == [("all staff", 7), ("hospital staff", 3), ("other staff", 3)]


def test_without_a_title_the_best_one_is_explained(trained, log):
    assert explain(trained, "senior lawyer", log=log).title.text == "court staff"
    some = ["kitchen staff", "lorry staff"]
    best = max(some, key=lambda title: trained.score("senior lawyer", title))
    assert explain(trained, "senior lawyer", log=log, titles=some).title.text == best
    assert explain(trained, "senior lawyer", titles=some).title.text == best


def test_new_words_and_unknown_words(trained, log):
    # "kitchen" is in titles of the log only, "cook" in queries only.
    found = explain(trained, "cook kitchen 서울 cook 서울", "kitchen cook", log=log)
    assert found.query.new == ["kitchen", "서울"]
    assert found.query.unknown == ["서울"]
    assert found.title.new == ["cook"] and found.title.unknown == []
    text = str(found)
    assert "        in no query of the log: kitchen, 서울\n" in text
    assert "        the model knows nothing of: 서울\n" in text
    assert "        in no title of the log: cook\n" in text


def test_the_text_has_the_words_with_the_greatest_effect_first(trained, log):
    found = explain(trained, "night nurse", "hospital staff", log, k=1)
    lines = str(found).splitlines()
    assert lines[0] == f"{found.score:.3f}  hospital staff"
    shown = sorted(zip(found.query.effects, found.query.words, strict=True), reverse=True)
    assert lines[2] == f"  cosine  {found.score:+.3f}  1 × {found.score:.3f}"
    assert lines[4] == "query   " + "  ".join(f"{word} {effect:+.2f}" for effect, word in shown)
    assert lines[-1].startswith("  1.000  night nurse  7 × all staff and 2 more")


def test_markup_and_control_characters_are_harmless(trained):
    builder = ClickLogBuilder()
    builder.add(f"{MARKUP} query", f"{MARKUP} \x1b[2J title")
    found = explain(trained, f"{MARKUP} night", f"{MARKUP} \x1b[2J staff", builder.build())
    page = found._repr_html_()
    # The title, both texts in their tables, both unknown words, a query of the log and its title.
    assert "<b>&" not in page and page.count("&lt;b&gt;&amp;") == 7
    ElementTree.fromstring(f"<div>{page}</div>".replace("\x1b", ""))
    assert "\x1b" not in str(found)


def test_a_notebook_shows_what_the_text_shows(trained, log):
    found = explain(trained, "cook 上海", log=log)
    tables = list(ElementTree.fromstring(f"<div>{found._repr_html_()}</div>").iter("table"))
    assert len(tables) == 4
    assert [cell.text for cell in tables[0][1]][:2] == ["cosine", f"{found.score:+.3f}"]
    for table, text in zip(tables[1:], (found.query, found.title), strict=False):
        head, row = (["".join(cell.itertext()) for cell in line] for line in table)
        assert head[1:] == text.words
        assert row == ["effect", *(f"{effect:+.3f}" for effect in text.effects)]
    assert [line[1].text for line in tables[3]][1:] == [one.query for one in found.similar]


def test_an_explainer_embeds_the_log_once_and_explains_the_same(trained, log, monkeypatch):
    pairs = [("nurse at night", "hospital staff"), ("서울 cook", "kitchen staff"), ("a", "b")]
    expected = [explain(trained, *pair, log, k=3).as_dict() for pair in pairs]
    monkeypatch.setattr(explanation, "_PORTION", 20)
    told = []
    explainer = Explainer(trained, log, lambda *counts: told.append(counts))
    n = len(log.queries)
    assert told == [(min(done, n), n) for done in range(20, n + 20, 20)]
    encoded = []
    embed = type(trained).unit_vectors
    monkeypatch.setattr(
        type(trained),
        "unit_vectors",
        lambda own, texts, side: encoded.append(texts) or embed(own, texts, side),
    )
    assert [explainer.explain(*pair, k=3).as_dict() for pair in pairs] == expected
    # The texts of a pair, whole and without each word, are embedded; the log is not.
    assert {len(texts) for texts in encoded} == {1, 2, 3, 4}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": " ", "title": "court"}, "without words"),
        ({"query": "cook", "title": ""}, "without words"),
        ({"query": "cook"}, "give a title, some titles or a log"),
        ({"query": "cook", "titles": []}, "give a title, some titles or a log"),
        ({"query": "cook", "title": "court", "k": 0}, "k is 0"),
        ({"query": 3, "title": "court"}, "must be str"),
        ({"query": "cook", "titles": "court"}, "list of texts"),
    ],
)
def test_wrong_arguments(trained, arguments, message):
    with pytest.raises(SentembError, match=message):
        explain(trained, **arguments)


def test_a_pair_model_is_refused_with_a_remedy():
    with pytest.raises(SentembError, match="wordembed has none; `sentemb plot-match`"):
        explain(made_up_pair_model(["a b"]), "a", "b")


def test_the_command(folder, trained, log):
    model, pairs = folder / "model", folder / "pairs.tsv"
    expected = explain(SentenceEncoder.from_pretrained(model), "head cook", log=log)
    assert run(model, "head cook", "--log", pairs).stdout == f"{expected}\n"
    printed = json.loads(run(model, "head cook", "--log", pairs, "-k", 2, "--json").stdout)
    expected = explain(SentenceEncoder.from_pretrained(model), "head cook", log=log, k=2)
    assert printed == json.loads(json.dumps(expected.as_dict()))
    assert [one["query"] for one in printed["nearest_queries"]] == [
        one.query for one in expected.similar
    ]
    assert printed["title"]["never_in_log"] == []
    alone = json.loads(run(model, "head cook", "kitchen", "--json").stdout)
    assert set(alone) == {"score", "parts", "query", "title"}
    assert set(alone["query"]) == {"text", "words", "unknown"}
    assert (
        run(model, "nurse", "--catalogue", folder / "titles.tsv")
        .stdout.splitlines()[0]
        .endswith("  hospital staff")
    )


def test_an_index_brings_its_model_and_its_titles(folder, trained, tmp_path):
    place = tmp_path / "index"
    Index.build(trained, ["lorry staff", "court staff"], ["a", "b"]).save(place)
    shown = run(place, "night lawyer", "--log", folder / "pairs.tsv").stdout
    assert shown.splitlines()[0].endswith("  court staff")
    # The titles of the file come before those of the index.
    shown = run(place, "nurse", "--catalogue", folder / "titles.tsv").stdout
    assert shown.splitlines()[0].endswith("  hospital staff")
    assert "finds nothing for this query; give a title to explain" in refused(place, " ")


WEIGHTS = {"cosine": 1.0, "memory": 2.0, "bm25": 0.7, "clicked_bm25": -0.3, "unclicked": 0.4}
RECIPE = Recipe({**WEIGHTS, "clicks": 0.6, "name": 1.2})


@pytest.mark.parametrize("title", ["kitchen staff", "night staff nobody clicked"])
def test_effects_and_parts_are_those_of_the_whole_score(trained, log, title):
    """A title that loses a word keeps its clicks; parts add up to the score."""
    ranker = HybridRanker(trained, RECIPE, ClickedQueries.of(log))
    query = "night cook 上海"
    found = explain(ranker, query, title)
    key = ranker.clicks.key_of(title)

    def score(query, title):
        parts = ranker.catalogue([title], [key]).parts
        pair = np.zeros(1, np.int64), np.zeros(1, np.int64)
        return engine.of_pairs(parts, RECIPE, ranker.asked([query]), *pair, Workers(1))[0][0]

    assert found.score == pytest.approx(ranker.score_pairs([query], [title], [0], [0])[0], abs=1e-6)
    assert found.score == pytest.approx(sum(share.added for share in found.shares), abs=1e-6)
    assert [share.part for share in found.shares] == list(RECIPE.weights)
    for text, is_query in ((found.query, True), (found.title, False)):
        for place, effect in enumerate(text.effects):
            rest = " ".join(text.words[:place] + text.words[place + 1 :])
            without = score(rest, title) if is_query else score(query, rest)
            assert effect == pytest.approx(found.score - without, abs=1e-6)
    memory, bm25 = found.shares[1:3]
    assert memory.nearest.is_clicked == (title == "kitchen staff")
    assert sum(value for _, value in bm25.words) == pytest.approx(bm25.value, abs=1e-6)
    as_json = json.loads(json.dumps(found.as_dict()))
    assert [part["added"] for part in as_json["parts"]] == [share.added for share in found.shares]
    assert as_json["parts"][1]["nearest"]["text"] in str(found)


def test_a_part_that_adds_nothing_shows_no_minus():
    assert str(Share("unclicked", -1.5, 0.0).added) == "0.0"


def test_python_explains_what_is_named_by_a_path_or_an_id(trained, log, tmp_path):
    ranker = HybridRanker(trained, RECIPE, ClickedQueries.of(log))
    titles = ["court staff", "kitchen staff", "P2"]
    index = Index.build(ranker, titles, ["P1", "P2", "P3"])
    index.save(tmp_path / "index")
    expected = explain(index, "night cook", "kitchen staff")
    assert expected.title.text == "kitchen staff" and expected.score != 0
    for given in ("kitchen staff", "P2 ", "p2"):
        for where in (index, tmp_path / "index", str(tmp_path / "index")):
            assert explain(where, "night cook", given).score == expected.score
        assert run(tmp_path / "index", "night cook", given).stdout == f"{expected}\n"
    assert explain(index, "night cook", "P2").title.text == "P2"  # a title before an id
    best = index.search("night cook", 1)[0]
    assert explain(tmp_path / "index", "night cook").score == pytest.approx(best.score)
    alone = explain(tmp_path / "index" / "model", "night cook", "kitchen staff", cosine=True)
    assert alone.score == explain(index, "night cook", "kitchen staff", cosine=True).score


def test_an_index_is_explained_by_its_ranker_and_by_ids(trained, log, tmp_path):
    titles = ["court staff", "kitchen staff"]
    ranker = HybridRanker(trained, RECIPE, ClickedQueries.of(log))
    index = Index.build(ranker, titles, ["a", "b"])
    index.sync(["court staff", "lunch rooms"], ["a", "b"])
    index.save(tmp_path / "index")
    (hit,) = index.search("night cook", 1)
    shown = json.loads(run(tmp_path / "index", "night cook", "--json").stdout)
    assert (hit.id, shown["title"]["text"]) == ("b", "lunch rooms")
    assert shown["score"] == pytest.approx(hit.score, abs=1e-6)
    values = {part: of_part["value"] for part, of_part in hit.parts.items()}
    assert {part["part"]: part["value"] for part in shown["parts"]} | values == pytest.approx(
        {part["part"]: part["value"] for part in shown["parts"]}, abs=1e-6
    )
    alone = json.loads(run(tmp_path / "index", "night cook", "--json", "--cosine").stdout)
    (first,) = index.search("night cook", 1, cosine=True)
    assert [part["part"] for part in alone["parts"]] == ["cosine"]
    assert alone["score"] == pytest.approx(first.score, abs=1e-6)


def test_wrong_usage_of_the_command(folder, tmp_path):
    model = folder / "model"
    nothing = run(model, "cook", code=2).stderr
    assert "give TITLE, --log or --catalogue, or an index" in nothing
    both = run(model, "cook", "kitchen", "--catalogue", folder / "titles.tsv", code=2)
    assert "not both" in both.stderr
    assert "without words" in refused(model, " ", "kitchen")
    assert "no such file" in refused(model, "cook", "--log", tmp_path / "none.tsv").lower()
    (tmp_path / "bad.tsv").write_text("no tab here\n")
    assert "bad.tsv:1: no tab" in refused(model, "cook", "--log", tmp_path / "bad.tsv")
    assert "bad.tsv:1: no tab" in refused(model, "cook", "--catalogue", tmp_path / "bad.tsv")
    made_up_pair_model(["a b"]).save_pretrained(tmp_path / "pair")
    assert "sentemb plot-match" in refused(tmp_path / "pair", "a", "b")
