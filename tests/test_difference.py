"""Differences of two rankings: against loops over the queries; the page, and the command."""

import base64
import hashlib
import html
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model, made_up_pair_model, made_up_texts

from sentemb import SentembError, SentenceEncoder
from sentemb.analysis.report.difference_page import difference_page
from sentemb.cli import main
from sentemb.comparison.difference import difference
from sentemb.data.click_log import ClickLog, ClickLogBuilder, read_click_log
from sentemb.data.judged_set import read_texts
from sentemb.evaluation.held_out import evaluate_clicks
from sentemb.evaluation.rank_overlap import agreements, overlap
from sentemb.evaluation.significance import compare_all
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.nearest import TitleVectors
from sentemb.search.index import Index
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

NASTY = '<img src=x onerror=alert(1)> "&amp; {{style}}'


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["diff", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def refused(*arguments):
    """The one line that stderr says, exit code 1."""
    result = run(*arguments, code=1)
    assert result.stdout == "" and result.stderr.count("\n") == 1
    return result.stderr


# -- overlap ---------------------------------------------------------------------------------------


def random_places(rng, m, k, n):
    """``k`` of ``n`` places per row; some rows find fewer."""
    rows = np.stack([rng.permutation(n)[:k] for _ in range(m)])
    for row in rows[::3]:
        row[rng.integers(0, k + 1) :] = -1
    return rows


def naive_shared(first, second):
    first, second = ({place for place in row if place >= 0} for row in (first, second))
    longer = max(len(first), len(second))
    return len(first & second) / longer if longer else 1.0


@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 3), (4, 5), (10, 30)])
def test_overlap_and_agreements_are_those_of_sets(k, n):
    rng = np.random.default_rng(k)
    first, second = (random_places(rng, 40, k, n) for _ in range(2))
    found = overlap(first, second)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    assert found.same_first == pytest.approx(np.mean([a[0] == b[0] for a, b in pairs]))
    assert found.shared == pytest.approx(np.mean([naive_shared(a, b) for a, b in pairs]))
    expected = [
        np.mean([naive_shared(a[:depth], b[:depth]) for depth in range(1, k + 1)]) for a, b in pairs
    ]
    np.testing.assert_allclose(agreements(first, second), expected)
    assert overlap(first, first) == (1, 1) and (agreements(first, first) == 1).all()


def test_the_order_counts_only_for_agreements():
    assert overlap([[1, 2, 3]], [[3, 1, 2]]) == (0, 1)
    np.testing.assert_allclose(agreements([[1, 2, 3]], [[3, 1, 2]]), [(0 + 1 / 2 + 1) / 3])


@pytest.mark.parametrize(
    ("first", "second"),
    [([[1]], [[1], [2]]), ([[1, 2]], [[1]]), ([1], [1]), ([], []), ([[]], [[]])],
)
def test_rankings_that_cannot_be_compared(first, second):
    with pytest.raises(SentembError, match="cannot be compared"):
        overlap(first, second)


# -- difference ------------------------------------------------------------------------------------


class Fixed:
    """A retriever that finds what it was given."""

    def __init__(self, places):
        self.places = np.array(places)

    def find(self, queries, k):
        assert len(queries) == len(self.places)
        return self.places[:, :k], np.where(self.places[:, :k] < 0, -np.inf, 0.5)


QUERIES = ["same", "swapped", "lost", "unclicked", "absent"]
TITLES = [f"title {k}" for k in range(8)]
A = [[0, 1, 2], [0, 1, 2], [3, 1, 2], [4, 5, 6], [0, 1, -1]]
B = [[0, 1, 2], [1, 0, 2], [7, 6, 5], [5, 6, 4], [-1, -1, -1]]


@pytest.fixture(scope="module")
def clicks():
    builder = ClickLogBuilder()
    for query, title in (
        ("same", 1), ("swapped", 1), ("lost", 3), ("lost", 2), ("absent", 9), ("not asked", 0),
    ):  # fmt: skip
        builder.add(query, f"title {title}")
    return builder.build()


def compared(clicks=None, k=3):
    return difference(Fixed(A), Fixed(B), QUERIES, TITLES, clicks, k)


def test_by_hand(clicks):
    found = compared(clicks)
    assert found.overlap == pytest.approx((1 / 5, (1 + 1 + 0 + 1 + 0) / 5))
    by_clicks = found.by_clicks
    assert by_clicks.clicked == [[1], [1], [3, 2], [], []]
    assert by_clicks.ranks.tolist() == [[2, 2, 1, 0, 0], [2, 1, 0, 0, 0]]
    # "absent" was clicked, its title is in no catalogue; "unclicked" does not count.
    assert (by_clicks.n_queries, by_clicks.n_missing) == (4, 1)
    a, b = [1 / 2, 1 / 2, 1, 0], [1 / 2, 1, 0, 0]
    assert by_clicks.mrr == pytest.approx((np.mean(a), np.mean(b)))
    assert by_clicks.better == (1 / 4, 1 / 4, 2 / 4)
    assert by_clicks.difference == compare_all([b], a)[0]
    # lost: 1 to 0; swapped: 1/2 to 1; then absent (nothing in common), unclicked, same.
    assert [QUERIES[q] for q in found.order] == ["lost", "swapped", "absent", "unclicked", "same"]


def test_without_clicks_the_rankings_decide():
    found = compared()
    assert found.by_clicks is None
    assert [QUERIES[q] for q in found.order] == ["lost", "absent", "unclicked", "swapped", "same"]
    assert found.summary() == ["queries 5   same top title 20%   top-3 overlap 60%"]


def test_the_text(clicks):
    found = compared(clicks)
    assert found.summary()[1] == (
        "MRR@3  A 0.500  B 0.375   A better 25%, B better 25%, equal 50%   (4 queries with clicks)"
    )
    interval = found.by_clicks.difference
    assert f"B - A -0.125, 95% interval {interval.low:+.3f} to" in found.summary()[2]
    lines = found.lines(2)
    assert lines[:2] == ["lost", "clicked: title 3 and 1 more   rank A 1, B below 3"]
    cells = [re.split(r" +\| +|  +", line.strip(), maxsplit=2) for line in lines[2:]]
    assert cells == [
        ["1", "* title 3", "title 7"], ["2", "title 1", "title 6"], ["3", "* title 2", "title 5"],
    ]  # fmt: skip
    assert len({line.index("|") for line in lines[2:]}) == 1
    assert found.lines(4)[1:] == [f"  {k + 1}  {f'  title {k}':<56} |" for k in range(2)] + [
        f"  3  {'':<56} |"
    ]


def test_json_has_all_figures(clicks):
    found = json.loads(json.dumps(compared(clicks).as_dict(2), allow_nan=False))
    assert (found["queries"], found["titles"], found["k"]) == (5, 8, 3)
    assert found["clicks"]["mrr"] == {"A": 0.5, "B": 0.375}
    assert (found["clicks"]["queries"], found["clicks"]["not_in_catalogue"]) == (4, 1)
    assert [one["query"] for one in found["differ_most"]] == ["lost", "swapped"]
    lost = found["differ_most"][0]
    assert lost["rank"] == {"A": 1, "B": None} and lost["clicked"] == ["title 3", "title 2"]
    assert [one["title"] for one in lost["B"]] == ["title 7", "title 6", "title 5"]
    assert "clicks" not in compared().as_dict(1)
    # -inf stays out: JSON has no form for it.
    last = compared().as_dict(9)["differ_most"][1]
    assert last["query"] == "absent" and last["B"] == [] and len(last["A"]) == 2


def test_against_loops_on_models():
    rng = np.random.default_rng(5)
    texts = made_up_texts(rng, rng.integers(1, 5, 50))
    titles = list(dict.fromkeys(texts[:30]))
    models = [made_up_model(("bag", {}), texts, seed=seed, dtype=np.float32) for seed in (0, 1)]
    builder = ClickLogBuilder()
    for k, query in enumerate(texts[30:45]):
        builder.add(query, titles[k % len(titles)])
        builder.add(query, titles[-1 - k])
    log = builder.build()
    a, b = (TitleVectors(model, titles) for model in models)
    found = difference(a, b, texts[30:], titles, log, 5)
    reciprocal = []
    for side, model in enumerate(models):
        best = [[p for p, _ in model.rank(query, titles, 5)] for query in texts[30:]]
        assert found.title_index[side].tolist() == best
        own = []
        for query, row in zip(texts[30:], best, strict=True):
            if query not in log.queries:
                continue
            pairs = log.query_index == log.queries.index(query)
            clicked = {log.titles[t] for t in log.title_index[pairs]}
            own.append(max((1 / (r + 1) for r, p in enumerate(row) if titles[p] in clicked),
                           default=0))  # fmt: skip
        reciprocal.append(own)
    assert found.by_clicks.mrr == pytest.approx(tuple(np.mean(reciprocal, axis=1)))
    assert found.by_clicks.better[0] == np.mean(np.greater(*reciprocal))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"queries": []}, "at least one query and one title"),
        ({"titles": []}, "at least one query and one title"),
        ({"titles": ["a", "b", "a"]}, "some titles are equal"),
        ({"k": 0}, "k is 0"),
        ({"queries": "same"}, "list of texts"),
        ({"queries": ["never"]}, "none of the queries"),
    ],
)
def test_wrong_arguments(clicks, changed, message):
    arguments = {"queries": QUERIES, "titles": TITLES, "clicks": clicks, **changed}
    rows = 1 if arguments["queries"] == ["never"] else len(QUERIES)
    with pytest.raises(SentembError, match=message):
        difference(Fixed(A[:rows]), Fixed(B[:rows]), **arguments)


def test_the_smaller_of_two_rankings_ends_with_nothing(clicks):
    arguments = QUERIES, TITLES, clicks, 3
    wide, short = (difference(Fixed(A), Fixed([row[:n] for row in B]), *arguments) for n in (3, 2))
    assert short.k == 3 and (short.title_index[0] == wide.title_index[0]).all()
    assert (short.title_index[1, :, 2] == -1).all() and (short.scores[1, :, 2] == -np.inf).all()
    assert (short.title_index[1, :, :2] == wide.title_index[1, :, :2]).all()


# -- the page --------------------------------------------------------------------------------------


def test_the_page_shows_the_queries_and_escapes_every_text():
    builder = ClickLogBuilder()
    builder.add(f"lost {NASTY}", f"title 3 {NASTY}")
    queries, titles = ([f"{text} {NASTY}" for text in texts] for texts in (QUERIES, TITLES))
    found = difference(Fixed(A), Fixed(B), queries, titles, builder.build(), 3)
    page = difference_page(found, (f"old {NASTY}", "new"), 2)
    assert "<img" not in page and "<script" not in page
    assert page.count("<section") == 2
    # The heading, what A is, and the title of the page; per query its text and six titles; clicked.
    assert page.count(html.escape(NASTY)) == 3 + 2 + 3 + 3 + 2 + 1
    shown = re.findall(r"<h3[^>]*>(.*?)</h3>", page)
    assert [html.unescape(text) for text in shown] == [f"lost {NASTY}", f"absent {NASTY}"]
    assert "Rank A 1, B below 3" in page
    assert re.findall(r'<td class="clicked"><bdi>(title \d)', page) == ["title 3"]


def test_the_page_is_alone_and_allows_only_its_own_style(clicks):
    page = difference_page(compared(clicks), ("a", "b"), 5)
    assert not re.search(r"(src|href)=(?!\"data:,\")", page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy"\s+content="([^"]*)"', page)[1]
    assert policy == f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'"
    assert "prefers-color-scheme: dark" in style and "td.clicked" in style
    # A title that both find has its rank in the other ranking.
    assert '<bdi>title 0</bdi><span class="other">0.500 · B: 2</span>' in page
    assert "<iframe srcdoc=" in page._repr_html_()


# -- the command -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("diff")
    rng = np.random.default_rng(3)
    texts = made_up_texts(rng, rng.integers(1, 5, 40))
    for name, seed in (("old", 0), ("new", 1)):
        made_up_model(("bag", {}), texts, seed=seed, dtype=np.float32).save_pretrained(path / name)
    titles = [*texts[:20], texts[0]]
    lines = [f"t{k}\t{text}\n" for k, text in enumerate(titles)]
    (path / "titles.tsv").write_text("".join(lines))
    (path / "queries.tsv").write_text("".join(f"q{k}\t{t}\n" for k, t in enumerate(texts[20:])))
    (path / "clicks.tsv").write_text("".join(f"{q}\t{q[::-1]} x\n" for q in texts[20:30])
                                     + f"{texts[20]}\t{titles[0]}\n")  # fmt: skip
    return path


def test_the_command_prints_figures_and_queries(folder):
    models, titles = [folder / "old", folder / "new"], ["--catalogue", folder / "titles.tsv"]
    result = run(*models, *titles, "--clicks", folder / "clicks.tsv", "--show", 3, "-k", 4)
    lines = result.stdout.splitlines()
    n = len(read_click_log(folder / "clicks.tsv").queries)
    assert lines[0].startswith(f"queries {n}   same top title ")
    assert lines[1].startswith("MRR@4  A 0.") and f"({n} queries with clicks)" in lines[1]
    assert sum(line == "" for line in lines) == 3
    assert "clicked titles not in" in result.stderr
    asked = run(*models, *titles, "--queries", folder / "queries.tsv", "--show", 0).stdout
    assert asked.count("\n") == 1 and "top-10 overlap" in asked
    printed = json.loads(
        run(*models, *titles, "--queries", folder / "queries.tsv", "--json").stdout
    )
    lines = (folder / "titles.tsv").read_text().splitlines()
    assert printed["titles"] == len({line.partition("\t")[2] for line in lines}) < len(lines)
    same = run(folder / "old", folder / "old", *titles, "--queries", folder / "queries.tsv")
    assert "same top title 100%   top-10 overlap 100%" in same.stdout


@pytest.mark.filterwarnings("ignore:.*no word that the model knows:UserWarning")
def test_equal_scores_do_not_flatter(folder, tmp_path):
    """A model that knows none of the words gives every title the score 0.

    The order of the file is then no merit.

    MRR@10 is then that of `evaluate`, and does not depend on the order of the file.
    """
    titles = read_texts(folder / "titles.tsv")[1]
    (tmp_path / "clicks.tsv").write_text("".join(f"{k}\t{titles[0]}\n" for k in range(5)))
    found = []
    for name, order in (("one.tsv", titles), ("other.tsv", titles[::-1])):
        (tmp_path / name).write_text("".join(f"t{k}\t{text}\n" for k, text in enumerate(order)))
        catalogue = ["--catalogue", tmp_path / name]
        models = folder / "old", folder / "new"
        told = run(*models, *catalogue, "--clicks", tmp_path / "clicks.tsv", "--json").stdout
        found.append(json.loads(told)["clicks"]["mrr"]["A"])
    log = read_click_log(tmp_path / "clicks.tsv")
    vectors = TitleVectors(SentenceEncoder.from_pretrained(folder / "old"), titles)
    (expected,) = evaluate_clicks(vectors, log, titles, ["mrr@10"]).mean
    assert found == [expected] * 2 and expected < 1


def test_the_command_writes_the_page(folder, tmp_path):
    out = tmp_path / "diff.html"
    arguments = [folder / "old", folder / "new", "--catalogue", folder / "titles.tsv"]
    result = run(*arguments, "--queries", folder / "queries.tsv", "-o", out, "--show", 4)
    page = out.read_text()
    assert "<h1>old and new</h1>" in page and page.count("<section") == 4
    assert result.stdout.count("\n") == 1
    assert f"{out}: 4 queries, 0.0 MB" in result.stderr


def test_two_indexes_rank_their_own_titles_with_their_own_rankers(folder, tmp_path):
    """Titles count by their text: numbers, order and ids of the two indexes differ."""
    texts = list(dict.fromkeys(read_texts(folder / "titles.tsv")[1]))
    queries = read_texts(folder / "queries.tsv")[1]
    new = SentenceEncoder.from_pretrained(folder / "new")
    clicks = ClickedQueries.of(
        ClickLog.from_pairs([(queries[0], texts[1]), (queries[1], texts[0])])
    )
    ranker = HybridRanker(new, Recipe({"cosine": 1, "memory": 2, "bm25": 0.5}), clicks)
    old = SentenceEncoder.from_pretrained(folder / "old")
    indexes = [
        Index.build(old, texts),
        Index.build(ranker, ["one more title", *texts[::-1]]),
    ]
    for name, index in zip("ab", indexes, strict=True):
        index.save(tmp_path / name)
    arguments = [tmp_path / "a", tmp_path / "b", "--queries", folder / "queries.tsv", "-k", 3]
    found = json.loads(run(*arguments, "--json", "--show", 1000).stdout)
    shown = {one["query"]: one for one in found["differ_most"]}
    assert shown.keys() == set(queries)
    for query, one in shown.items():
        for side, index in zip("AB", indexes, strict=True):
            hits = index.search(query, 3, everything=True)
            assert [hit["title"] for hit in one[side]] == [hit.title for hit in hits]
            np.testing.assert_allclose(
                [hit["score"] for hit in one[side]], [hit.score for hit in hits], atol=1e-6
            )
    alone = json.loads(run(*arguments, "--json", "--cosine").stdout)
    assert alone != found
    catalogue = ["--catalogue", folder / "titles.tsv"]
    wrong = run(*arguments, *catalogue, code=2).stderr
    assert "indexes have titles of their own" in wrong
    wrong = run(tmp_path / "a", folder / "new", *arguments[2:], *catalogue, code=2).stderr
    assert "give two models or two indexes" in wrong


def test_wrong_usage_of_the_command(folder, tmp_path):
    models, titles = [folder / "old", folder / "new"], ["--catalogue", folder / "titles.tsv"]
    assert "give --queries, --clicks or both" in run(*models, *titles, code=2).stderr
    assert (
        "models need --catalogue"
        in run(*models, "--queries", folder / "queries.tsv", code=2).stderr
    )
    both = run(*models, "--catalogue", "-", "--queries", "-", code=2)
    assert "only one of the files" in both.stderr
    (tmp_path / "none.tsv").write_text("")
    assert "none.tsv: the input is empty" in refused(
        *models, *titles, "--queries", tmp_path / "none.tsv"
    )
    (tmp_path / "bad.tsv").write_text("no tab\n")
    assert "bad.tsv:1: no tab" in refused(*models, *titles, "--clicks", tmp_path / "bad.tsv")
    (tmp_path / "other.tsv").write_text("other query\ttitle\n")
    wrong = refused(
        *models, *titles, "--queries", folder / "queries.tsv", "--clicks", tmp_path / "other.tsv"
    )
    assert "for none of the queries" in wrong
    made_up_pair_model(["a b"]).save_pretrained(tmp_path / "pair")
    arguments = [folder / "old", tmp_path / "pair", *titles, "--queries", folder / "queries.tsv"]
    assert "pair" in refused(*arguments)
