"""What a notebook shows of the objects that a user leaves at the end of a cell."""

import copy
import importlib.util
import json
import pickle
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from helpers import made_up_model, made_up_pair_model
from lab.classifier.training import train_classifier
from test_html_tables import cells

import sentemb
from sentemb import SIF, ClickLog, Index
from sentemb.analysis.attribution import word_effects
from sentemb.analysis.explanation import explain
from sentemb.analysis.nearest_words import neighbours
from sentemb.analysis.synonyms import synonyms
from sentemb.analysis.triage import triage
from sentemb.comparison.difference import difference
from sentemb.data.click_log import write_click_log
from sentemb.data.importers.click_table import Imported
from sentemb.data.judged_set import JudgedSet
from sentemb.data.labelled import ValuedTexts
from sentemb.data.labelled_pairs import LabelledPairs
from sentemb.data.similarity_set import SimilaritySet
from sentemb.evaluation.binary import count_predictions
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import evaluate_clicks
from sentemb.evaluation.significance import compare_all
from sentemb.gradients.flow import gradient_flow
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.nearest import TitleVectors
from sentemb.search.confidence import Confidence
from sentemb.search.index_tuning import score_bands
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe
from sentemb.search.searcher import NOTHING_KNOWN
from sentemb.system.html_tables import ShownRows, excerpt, facts_table

MARKUP = "<script>alert(1)</script>"
TITLES = [f"red shoes {MARKUP}", "blue shoes & hats", "red hat", "tap repair", "blue tap", "hat"]
QUERIES = ["red shoes", "blue hat", f"tap {MARKUP}", "hat"]
WORDS = ["red", "blue", "shoes", "hat", "tap", "repair", "script", "alert"]
# Classes of docs/python.md that are parts of others, inputs, or tools without a result.
NOT_SHOWN = {
    "SentembError", "Hit", "Progress", "BlockCheck", "ClickLogBuilder", "Columns", "Reading",
    "HeldOutClicks", "AllPairs", "Candidates", "ScoringProgress", "ExplainedText", "SimilarQuery",
    "Settings", "Likelihood", "Sentences", "Likeliest", "Concentration",
    "SentenceVectorizer", "SIFVectorizer", "Exported", "Explainer", "RankedTitle", "TriagedQuery",
    "Slice", "Evidence", "Server", "Limits", "Recipe", "Share", "Preparing", "Chance",
    "Overview", "Vocabulary", "Pinned", "Refreshed",
}  # fmt: skip


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """An object of every kind that shows itself, by a name; with markup in every text."""
    model = made_up_model(("lstm", {}), [*TITLES, *QUERIES], dtype=np.float32)
    log = ClickLog.from_pairs(
        [(query, TITLES[k], k + 1) for k, query in enumerate(QUERIES)] + [("hat", TITLES[0], 2)]
    )
    recipe = Recipe({"cosine": 1, "memory": 1, "bm25": 0.5})
    index = Index.build(HybridRanker(model, recipe, ClickedQueries.of(log)), TITLES, threads=1)
    confidence = Confidence.fit(np.linspace(0, 1, 40), np.arange(40) * 7 % 40 < np.arange(40))
    index.adopt(index.snapshot.changed(confidence=confidence), index.snapshot)
    new = ClickLog.from_pairs([("red blue", TITLES[0]), ("tap hat", TITLES[3])])
    judged = JudgedSet(
        ["q0", "q1"], QUERIES[:2], ["d0", "d1"], TITLES[:2],
        np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.array([2, 0, 1], np.int32),
    )  # fmt: skip
    own = WordVectors(WORDS, np.random.default_rng(0).normal(size=(8, 4)), name=MARKUP)
    sif = SIF(own, sides="each")
    sif.fit(QUERIES, TITLES)
    pairs = SimilaritySet(MARKUP, np.array([1.0, 2.0, 3.0]), TITLES[:3], QUERIES[:3])
    labelled = ValuedTexts(["a", MARKUP] * 3, TITLES)
    bag = made_up_model(("bag", {}), TITLES, dtype=np.float32)
    return {
        "SentenceEncoder": model,
        "PairScorer": made_up_pair_model(TITLES),
        "ClickLog": log,
        "PreparedLog": prepared(log, tmp_path_factory.mktemp("log")),
        "Index": index,
        "HybridRanker": index.ranker,
        "hits": index.search(f"red {MARKUP}"),
        "hits of queries": index.search(QUERIES),
        "no hits": index.search("zzz", min_score=99),
        "Confidence": index.confidence,
        "bands": score_bands(index, new, 2)[False],
        "JudgedSet": judged,
        "Triage": triage(model, judged),
        "NDCG": evaluate_model(model, judged),
        "Evaluation": evaluate_clicks(index, log, TITLES),
        "WordVectors": own,
        "SIF": sif,
        "SIF before fit": SIF(own),
        "Components": sif.components_["query"],
        "SimilaritySet": pairs,
        "Correlations": sentemb.sts(model, [pairs, pairs]),
        "Correlation": sentemb.sts(model, [pairs]).mean,
        "LabelledPairs": LabelledPairs(np.array([1, 0], np.int8), TITLES[:2], QUERIES[:2]),
        "BinaryCounts": count_predictions([0.1, 0.4, 0.6], [0, 1, 1], 0.5),
        "ValuedTexts": labelled,
        "ValuedTexts of pairs": ValuedTexts([1.0, 2.0], TITLES[:2], QUERIES[:2]),
        "Classifier": train_classifier(
            labelled, labelled, features=bag.encode, epochs=1, hidden=2, map_dim=2, threads=1
        ),
        "Difference": compare_all([[1.0, 2.0, 4.0]], [0.5, 2.0, 3.0])[0],
        "differences": compare_all([[1.0, 2.0], [3.0, 4.0]], [0.5, 2.0]),
        "RankingDifference": (
            compared := difference(
                TitleVectors(model, TITLES), TitleVectors(bag, TITLES), QUERIES, TITLES, log, k=3
            )
        ),
        "ClickedDifference": compared.by_clicks,
        "neighbours": neighbours(model, ["red", "zzz"], WORDS, k=2),
        "Synonyms": synonyms(model, WORDS, WORDS, min_score=-1)[0],
        "list of Synonyms": synonyms(model, WORDS, WORDS, min_score=-1),
        "ErrorFlow": gradient_flow(model, "red hat", TITLES[0])[1],
        "flows": gradient_flow(model, "red hat", TITLES[0]),
        "GateTrace": model.trace(TITLES[0]),
        "WordEffects": word_effects(model, "red hat", TITLES[0])["document"],
        "Explanation": explain(model, "red", TITLES[0], log),
        "Imported": Imported(10, 8, Counter({MARKUP: 2}), 5, ["two rows are odd"]),
        "GradientReport": sentemb.gradcheck("rnn", cells=2, entries=2, n_negatives=1, lengths=(1,)),
    }


def prepared(log, folder):
    """The log of `sentemb prepare`."""
    write_click_log(log, folder / "log.jsonl")
    return sentemb.prepare_log(folder / "log.jsonl", folder / "prepared")


def tables(thing):
    """The text of every cell of every table that a notebook shows of ``thing``."""
    found = ElementTree.fromstring(f"<div>{thing._repr_html_()}</div>").iter("table")
    return [[["".join(cell.itertext()) for cell in row] for row in table] for table in found]


def test_every_result_shows_itself_and_markup_stays_text(shown):
    for name, thing in shown.items():
        page = thing._repr_html_()
        assert "<script" not in page, name
        ElementTree.fromstring(f"<div>{page}</div>")  # every element is closed
        assert "<table>" in page or name == "no hits"
        # A table that is wider than the page scrolls in a box of its own.
        assert page.count("<table>") == page.count('<div style="overflow-x: auto"><table>')
        assert len(repr(thing)) < 20_000
    with_markup = (
        "Triage",
        "ClickLog",
        "Index",
        "hits",
        "hits of queries",
        "JudgedSet",
        "WordVectors",
    )
    for name in (*with_markup, "SIF", "Correlations", "ValuedTexts", "Imported", "Classifier"):
        assert "&lt;script&gt;" in shown[name]._repr_html_(), name


def test_every_class_of_the_reference_is_shown(shown):
    path = Path(__file__).parents[1] / "docs/make_python.py"
    spec = importlib.util.spec_from_file_location("make_python", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = {place.partition(":")[2] for part in module.PARTS.values() for place in part}
    classes = {name for name in names if name[0].isupper()}
    missing = classes - NOT_SHOWN - {"Drawing"} - {type(thing).__name__ for thing in shown.values()}
    assert not missing, "give it _repr_html_ and an example above, or name it in NOT_SHOWN"


def test_what_holds_every_text_has_a_short_repr(shown):
    many = ClickLog.from_pairs([(f"query {k}", f"title {k % 7}") for k in range(5000)])
    assert repr(many) == "ClickLog(5,000 pairs, 5,000 queries, 7 titles)"
    assert repr(shown["JudgedSet"]) == "JudgedSet(2 queries, 2 titles, 3 judgments)"
    assert repr(shown["Evaluation"]).startswith("Evaluation(hit@1 ")
    assert repr(shown["RankingDifference"]).startswith("RankingDifference(queries 4 ")
    assert repr(shown["ClickedDifference"]).startswith("ClickedDifference(MRR A ")
    assert repr(shown["SIF"]).startswith(f"SIF(WordVectors({MARKUP}, 8 words, 4 dimensions), p=")
    assert "and 4,995 more" in many._repr_html_()


def test_a_log_shows_counts_and_first_pairs(shown):
    facts, pairs = tables(shown["ClickLog"])
    assert facts == [["pairs", "5"], ["queries", "4"], ["titles", "4"], ["clicks", "12"]]
    assert pairs[0] == ["query", "title", "clicks"]
    assert pairs[1:] == [[query, TITLES[k], str(k + 1)] for k, query in enumerate(QUERIES)] + [
        ["hat", TITLES[0], "2"]
    ]


def test_judgments_are_shown_with_their_queries(shown):
    facts, judgments = tables(shown["JudgedSet"])
    assert facts[3:] == [["grade 0", "1"], ["grade 1", "1"], ["grade 2", "1"]]
    (q0, q1), (t0, t1) = QUERIES[:2], TITLES[:2]
    assert judgments[1:] == [[q0, t0, "2"], [q0, t1, "0"], [q1, t1, "1"]]


def test_the_worst_queries_come_first(shown):
    found = shown["Triage"]
    facts, worst = tables(found)
    assert facts == [["ndcg@10", f"{found.mean:.3f}"], ["queries", "2"]]
    assert worst[1][:2] == [QUERIES[found.order[0]], f"{found.values.min():.3f}"]
    assert worst[1][2] == found.best[found.order[0]].title
    assert repr(found) == f"Triage(ndcg@10 {found.mean:.3f}, 2 queries)"


def test_hits_are_a_list_and_a_table(shown):
    hits = shown["hits"]
    heads, *rows = cells(hits._repr_html_())
    assert heads == ["id", "title", "score", "cosine", "memory", "bm25", "confidence"]
    assert [row[1] for row in rows] == [hit.title for hit in hits]
    assert rows[0][2] == f"{hits[0].score:.3f}" and rows[1][6] == ""
    assert f"<b>red {MARKUP.replace('<', '&lt;').replace('>', '&gt;')}</b>" in hits._repr_html_()
    assert isinstance(hits, list) and hits == list(hits)
    assert json.loads(json.dumps(hits)) == [dict(hit) for hit in hits]
    for copied in (pickle.loads(pickle.dumps(hits)), copy.deepcopy(hits)):
        assert copied == hits and copied._repr_html_() == hits._repr_html_()
    several = shown["hits of queries"]
    assert several._repr_html_() == "".join(one._repr_html_() for one in several)
    assert f"no good match: {NOTHING_KNOWN}" in shown["no hits"]._repr_html_()


def test_the_scores_of_a_confidence_have_it(shown):
    confidence = shown["Confidence"]
    shares, scores = tables(confidence)[0]
    assert shares[1:] == ["10%", "25%", "50%", "75%", "90%"]
    found = confidence([float(score) for score in scores[1:]])
    np.testing.assert_allclose(found, [0.1, 0.25, 0.5, 0.75, 0.9], atol=2e-3)
    assert "confidence" in Confidence(0.0, 0.0, 20, 0.2, 0.2)._repr_html_()


def test_long_texts_and_lists_are_cut():
    page = facts_table({"text": "x" * 1000, "none": None, "whole": 12345, "part": 0.12345})
    assert cells(page) == [["text", "x" * 300 + "…"], ["whole", "12,345"], ["part", "0.123"]]
    rows = ShownRows([sentemb.Hit(id="a", title="b", score=0.0, parts={})] * 101)
    assert len(cells(rows._repr_html_())) == 101 and "and 1 more" in rows._repr_html_()
    page = excerpt(iter([("a", 1)] * 5), 5, ["text", "count"], texts=(0,))
    assert "more" not in page and page.count("text-align: left") == 6
