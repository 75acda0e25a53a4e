"""The page of `sentemb report`: what is in it, that it is safe and alone, what is refused."""

import base64
import hashlib
import html.parser
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model, made_up_pair_model

from sentemb import ClickLog, Index, SentembError
from sentemb.analysis.attribution import word_effects
from sentemb.analysis.labels import MAX_WORDS
from sentemb.analysis.report import rankings
from sentemb.analysis.report import tower_sections as towers
from sentemb.analysis.report.page_pairs import ShownPair, read_pairs
from sentemb.analysis.report.report_page import collect, page, triage_report
from sentemb.analysis.triage import triage
from sentemb.cli import COMMANDS, main
from sentemb.data.click_log import write_click_log
from sentemb.data.judged_set import JudgedSet
from sentemb.models.parameters import trained_parameters
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

QUERY, TITLE = "hotels in shanghai", "Shanghai hotels and resorts"
NASTY = "</script><img src=x onerror=alert(1)> <!-- {{data}} & \u2028 hotels"
VOID = {"meta", "link", "img", "br", "input", "col"}


class Elements(html.parser.HTMLParser):
    """The elements of a page, with their attributes and text; fails on tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.found, self._open = [], []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes), []))
        if tag not in VOID:
            self._open.append(self.found[-1])

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, text):
        if self._open:
            self._open[-1][2].append(text)

    def all(self, tag):
        return [(attributes, "".join(text)) for name, attributes, text in self.found if name == tag]


def data_of(text):
    """The JSON that a page carries."""
    (data,) = [own for attributes, own in Elements(text).all("script") if "id" in attributes]
    return json.loads(data)


def page_of(model, pairs, queries=(QUERY, "fix a bath tub")):
    return page(collect(model, "tiny", pairs, list(queries)))


def unpacked(packed, dim):
    values = np.frombuffer(base64.b64decode(packed["values"]), "<i2")
    return values.reshape(-1, dim) * packed["unit"]


def run(*arguments, code=0, input=None):
    """`sentemb report MODEL DEV -o OUT ...`, or with an option alone."""
    arguments = [*arguments[:2], "-o", *arguments[2:]] if len(arguments) > 2 else arguments
    result = CliRunner().invoke(main, ["report", *map(str, arguments)], input=input)
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, input=None):
    """The one line that stderr says, exit code 1."""
    result = run(*arguments, code=1, input=input)
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("Error: ")


@pytest.fixture
def judged(tmp_path):
    folder = tmp_path / "judged"
    folder.mkdir()
    (folder / "queries.tsv").write_text(f"q1\t{QUERY}\nq2\tbath tub\nq3\tnever judged\n")
    (folder / "docs.tsv").write_text("d1\tshanghai hotels\nd2\tbath tub repair\nd3\tresorts\n")
    (folder / "qrels.txt").write_text("q1 0 d1 3\nq1 0 d2 0\nq1 0 d3 0\nq2 0 d2 0\nq2 0 d3 1\n")
    return folder


class TestPage:
    @pytest.mark.parametrize("name", ["rnn", "lstm", "bilstm", "irnn"])
    def test_numbers_are_those_of_the_model(self, make_model, name):
        model = make_model(name)
        data = data_of(page_of(model, [ShownPair(QUERY, TITLE, grade=3, rank=1, titles=4)]))
        (pair,) = data["pairs"]
        assert pair["score"] == pytest.approx(model.score(QUERY, TITLE), abs=1e-6)
        assert sum(pair["share"]) == pytest.approx(pair["score"], abs=1e-3)
        assert (pair["grade"], pair["rank"], pair["titles"]) == (3, 1, 4)
        effects = word_effects(model, QUERY, TITLE)
        for side, text, tower in (("query", QUERY, "query"), ("title", TITLE, "document")):
            shown, trace = pair[side], model.trace(text, tower)
            assert shown["text"] == text
            assert shown["words"] == text.lower().split()
            np.testing.assert_allclose(shown["left_out"], effects[tower].left_out, atol=1e-5)
            np.testing.assert_allclose(shown["gradient"], effects[tower].gradient, atol=1e-5)
            assert [gate["key"] for gate in data["gates"]] == list(shown["gates"])
            for gate, packed in shown["gates"].items():
                ours = unpacked(packed, model.dim)
                np.testing.assert_allclose(ours, getattr(trace, gate), atol=1e-4)
            assert len(shown["keyword"]) == len(shown["declared"]) == len(trace.words)
        assert len(data["cells"]) == model.dim
        assert data["halves"] == model.encoder.directions

    def test_scales_hold_all_values(self, model):
        data = data_of(page_of(model, [ShownPair(QUERY, TITLE), ShownPair("bath tub", "tub")]))
        for gate in data["gates"]:
            sides = [pair[side] for pair in data["pairs"] for side in ("query", "title")]
            values = np.vstack([unpacked(side["gates"][gate["key"]], model.dim) for side in sides])
            assert np.abs(values - gate["middle"]).max() <= gate["reach"] + 1e-3
            assert gate["middle"] == (0.5 if gate["key"] in "ifo" else 0)
            assert not gate["beyond"]

    def test_cell_states_beyond_one_do_not_widen_the_scale(self):
        model = made_up_model(("lstm", {}), [QUERY, TITLE], dtype="float32")
        model.parameters()["query"]["b3"][...] = 9
        model.parameters()["query"]["b4"][...] = 9
        gates = {gate["key"]: gate for gate in data_of(page_of(model, [ShownPair(QUERY)]))["gates"]}
        assert gates["c"]["reach"] == 1
        assert gates["c"]["beyond"]

    def test_a_query_by_itself_has_gates_and_no_score(self, model):
        (pair,) = data_of(page_of(model, [ShownPair(QUERY)]))["pairs"]
        assert pair["title"] is None
        assert "score" not in pair
        assert pair["query"]["words"] == QUERY.split()

    def test_model_card_and_learning_curve(self, make_model):
        model = make_model(forget_gate=True)
        dev = {"ndcg@1": 0.5, "ndcg@10": 0.625}
        model.history = [{"epoch": 1, "loss": 1.5}, {"epoch": 2, "loss": 1.25, "dev": dev}]
        model.training = {"seed": 0, "epochs": 1, "truncate": None, "shared_towers": False}
        data = data_of(page_of(model, [ShownPair(QUERY)]))
        assert data["history"] == [{**model.history[0], "dev": {}}, model.history[1]]
        assert data["model"]["training"] == [
            ["seed", "0"],
            ["epochs", "1"],
            ["truncate", "none"],
            ["shared towers", "no"],
        ]
        facts = dict(data["model"]["facts"])
        assert facts["Cells"] == "8"
        assert facts["Forget gate"] == "yes"
        assert facts["Best on dev"] == "NDCG@1\u00a00.500, NDCG@10\u00a00.625, after epoch 2"
        blocks = [block for side in model.parameters().values() for block in side.values()]
        assert facts["Parameters"] == f"{sum(block.size for block in blocks):,}"

    def test_what_is_no_number_in_a_history_is_left_out(self, make_model):
        model = make_model()
        model.history = [
            {"epoch": 1, "loss": float("nan")},
            {"epoch": "2", "loss": 1},
            {"epoch": 3, "loss": 1, "dev": ["ndcg@1"]},
            {"epoch": 4, "loss": 0.5, "dev": {"ndcg@1": "high", "ndcg@3": 0.5}},
        ]
        assert data_of(page_of(model, [ShownPair(QUERY)]))["history"] == [
            {"epoch": 3, "loss": 1, "dev": {}},
            {"epoch": 4, "loss": 0.5, "dev": {"ndcg@3": 0.5}},
        ]

    def test_a_model_that_is_no_longer_finite_is_refused(self, make_model):
        model = make_model()
        model.parameters()["query"]["b1"][...] = np.nan
        with pytest.raises(SentembError, match="is not finite"):
            page_of(model, [ShownPair(QUERY)])

    def test_new_hard_negatives_are_told(self, make_model):
        model = make_model()
        model.history = [{"epoch": epoch, "loss": 1.0} for epoch in (1, 2, 3, 4)]
        assert data_of(page_of(model, [ShownPair(QUERY)]))["ranked"] == []
        model.training = {"hard_negatives": 3}
        assert data_of(page_of(model, [ShownPair(QUERY)]))["ranked"] == [3]
        model.history[1]["hard_negatives_ranked"] = True
        assert data_of(page_of(model, [ShownPair(QUERY)]))["ranked"] == [2]

    def test_rows_that_training_did_not_see_are_told(self, make_model):
        model = make_model()
        model.weights["query"]["table"][0] = 0
        facts = dict(data_of(page_of(model, [ShownPair(QUERY)]))["model"]["facts"])
        blocks = [block for side in model.parameters().values() for block in side.values()]
        stored = sum(block.size for block in blocks)
        trained = trained_parameters(model)
        assert trained < stored
        assert facts["Parameters"].startswith(f"{trained:,} trained, as in sentemb compare; ")
        assert f"{stored:,} stored" in facts["Parameters"]

    def test_shared_parameters_count_once(self):
        model = made_up_model(("rnn", {}), [QUERY], shared=True)
        facts = dict(data_of(page_of(model, [ShownPair(QUERY)]))["model"]["facts"])
        blocks = model.parameters()["query"].values()
        assert facts["Parameters"] == f"{sum(block.size for block in blocks):,}"


class TestAlone:
    def test_is_well_formed_and_loads_nothing(self, model):
        text = page_of(model, [ShownPair(QUERY, TITLE)])
        elements = Elements(text)
        assert text.startswith("<!doctype html>")
        assert len(elements.all("h1")) == 1
        ids = [attributes["id"] for _, attributes, _ in elements.found if "id" in attributes]
        assert len(ids) == len(set(ids))
        for tag, attributes, _ in elements.found:
            for name in ("src", "href", "action", "data", "srcset"):
                assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
            assert not [name for name in attributes if name.startswith("on")]
        # The one address is a name space, which nobody visits.
        addresses = set(re.findall(r"https?://[^\"'\s]*", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}
        assert "url(" not in text
        assert "@import" not in text

    def test_policy_allows_this_style_sheet_and_this_script_only(self, model):
        elements = Elements(page_of(model, [ShownPair(QUERY, TITLE)]))
        ((policy, _),) = [found for found in elements.all("meta") if "http-equiv" in found[0]]
        rules = dict(rule.strip().split(" ", 1) for rule in policy["content"].split(";"))
        assert rules["default-src"] == "'none'"
        (style,) = [text for _, text in elements.all("style")]
        (script,) = [text for attributes, text in elements.all("script") if not attributes]
        for rule, text in (("style-src", style), ("script-src", script)):
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert rules[rule] == f"'sha256-{digest}'"

    def test_texts_are_never_markup(self, model):
        text = page(collect(model, NASTY, [ShownPair(NASTY, NASTY)], [NASTY]))
        elements = Elements(text)
        assert not elements.all("img")
        assert len(elements.all("script")) == 2
        data = data_of(text)
        assert data["pairs"][0]["title"]["text"] == NASTY
        assert data["model"]["name"] == NASTY
        ((_, title),) = elements.all("title")
        assert title.startswith("</script><img")

    def test_equal_input_gives_an_equal_page(self, model):
        assert page_of(model, [ShownPair(QUERY, TITLE)]) == page_of(
            model, [ShownPair(QUERY, TITLE)]
        )

    def test_twenty_pairs_stay_small(self, make_model):
        pairs = [ShownPair(f"{QUERY} {k}", f"{TITLE} {k} " + "bath tub " * 6) for k in range(20)]
        assert len(page_of(make_model(cells=96), pairs).encode()) < 1e6


class TestCommand:
    def test_help_begins_with_the_line_of_the_overview(self):
        assert f"\n  {COMMANDS['report']}\n" in run("-h").output

    def test_pairs_of_a_click_log(self, model_dir, tmp_path):
        log = tmp_path / "pairs.tsv"
        log.write_text(f"{QUERY}\t{TITLE}\t12\nbath tub\ttub repair\t1\nfix a tub\n")
        result = run(model_dir, log, tmp_path / "out.html", "--limit", 2)
        assert "2 pairs" in result.stdout
        assert result.stderr == ""
        data = data_of((tmp_path / "out.html").read_text())
        texts = [(pair["query"]["text"], pair["title"]["text"]) for pair in data["pairs"]]
        assert texts == [(QUERY, TITLE), ("bath tub", "tub repair")]
        assert data["model"]["name"] == "tiny"
        assert data["topic_queries"] == 3

    def test_queries_alone_from_standard_input(self, model_dir, tmp_path):
        run(model_dir, "-", tmp_path / "out.html", input=f"{QUERY}\n{QUERY}\nbath tub\n")
        data = data_of((tmp_path / "out.html").read_text())
        assert [pair["query"]["text"] for pair in data["pairs"]] == [QUERY, QUERY, "bath tub"]
        assert data["topic_queries"] == 2

    def test_an_older_page_is_replaced(self, model_dir, tmp_path):
        (tmp_path / "out.html").write_text("older")
        run(model_dir, "-", tmp_path / "out.html", "--force", input=QUERY)
        assert "older" not in (tmp_path / "out.html").read_text()
        assert [path.name for path in tmp_path.iterdir()] == ["out.html"]

    @pytest.mark.parametrize(
        ("content", "line"),
        [
            ("", "the input is empty"),
            ("\n", "the input is empty"),
            ("\nhotels\n", ":1: a query or title without words"),
            ("hotels\n \ttitle\n", ":2: a query or title without words"),
            ("hotels\t\n", ":1: the title is empty"),
            ("hotels\0", ":1:7: a NUL character"),
        ],
    )
    def test_mistakes_in_the_queries(self, model_dir, tmp_path, content, line):
        (tmp_path / "queries").write_text(content)
        assert line in refused(model_dir, tmp_path / "queries", tmp_path / "out.html")
        assert not (tmp_path / "out.html").exists()

    def test_places_that_cannot_be_used(self, model_dir, tmp_path):
        (tmp_path / "queries").write_text(QUERY)
        assert "no such file or folder" in refused(model_dir, tmp_path / "none", "out.html")
        assert "there is no model here" in refused(tmp_path, tmp_path / "queries", "out.html")
        (tmp_path / "file").touch()
        below_a_file = tmp_path / "file" / "out.html"
        assert "cannot be written" in refused(model_dir, tmp_path / "queries", below_a_file)
        folder = tmp_path / "folder.html"
        folder.mkdir()
        assert "cannot be written" in refused(model_dir, tmp_path / "queries", folder)
        for name in (tmp_path, "report", "report.md"):
            said = refused(model_dir, tmp_path / "queries", name)
            assert said == f"{name}: the page is HTML; let the name end in .html\n"

    def test_texts_that_are_too_long_for_a_page(self, model, tmp_path):
        path = tmp_path / "queries"
        path.write_text("word " * MAX_WORDS)
        assert len(read_pairs(model, path, 1)[0]) == 1
        path.write_text("word " * (MAX_WORDS + 1))
        with pytest.raises(SentembError, match=f"more than {MAX_WORDS} words"):
            read_pairs(model, path, 1)


class TestJudgedSet:
    def test_first_title_and_the_best_graded_one_above_it(self, model, judged):
        pairs, queries = read_pairs(model, judged, 20)
        assert queries == [QUERY, "bath tub", "never judged"]
        grades = {"shanghai hotels": 3, "bath tub repair": 0, "resorts": 0}
        ranked = model.rank(QUERY, list(grades))
        first = list(grades)[ranked[0][0]]
        assert pairs[0] == ShownPair(QUERY, first, grades[first], 1, 3)
        if grades[first] < 3:
            place = [list(grades)[k] for k, _ in ranked].index("shanghai hotels") + 1
            assert pairs[1] == ShownPair(QUERY, "shanghai hotels", 3, place, 3)
        assert all(pair.query in queries[:2] for pair in pairs)

    @pytest.mark.parametrize(("first", "shown"), [(0, 2), (1, 1)])
    def test_a_second_title_only_if_it_is_graded_higher(
        self, model, judged, monkeypatch, first, shown
    ):
        scores = np.array([0.9, 0.1] if first == 0 else [0.1, 0.9])
        monkeypatch.setattr(model, "score_pairs", lambda *pairs: scores)
        (judged / "qrels.txt").write_text("q2 0 d2 0\nq2 0 d3 1\n")
        pairs, _ = read_pairs(model, judged, 20)
        assert [pair.grade for pair in pairs] == [0, 1][first:]
        assert [pair.rank for pair in pairs] == [1, 2][:shown]

    def test_limit(self, model, judged):
        assert len(read_pairs(model, judged, 1)[0]) == 1

    def test_whole_command(self, model_dir, judged, tmp_path):
        run(model_dir, judged, tmp_path / "out.html", "--limit", 20)
        data = data_of((tmp_path / "out.html").read_text())
        assert data["pairs"][0]["rank"] == 1
        assert data["topic_queries"] == 3


class TestPairModel:
    def test_numbers_are_those_of_the_model(self):
        scorer = made_up_pair_model([QUERY, TITLE], name="arc2", maps=(4, 3), max_words=9)
        scorer.history = [{"epoch": 1, "loss": 0.5, "dev": {"accuracy": 0.75}}]
        scorer.training = {"maps": [4, 3]}
        data = data_of(page(collect(scorer, "tiny", [ShownPair(QUERY, TITLE, 3, 1, 4)], [])))
        assert ["Best on dev", "accuracy\u00a00.750, after epoch 1"] in data["model"]["facts"]
        assert ["Maps", "4, 3"] in data["model"]["facts"]
        (pair,) = data["pairs"]
        assert (pair["grade"], pair["rank"], pair["titles"]) == (3, 1, 4)
        assert pair["score"] == pytest.approx(scorer.score(QUERY, TITLE), abs=1e-6)
        shares = sum(pair["query"]["gradient"]) + sum(pair["title"]["gradient"])
        assert shares + pair["biases"] == pytest.approx(pair["score"], abs=1e-3)
        windows = pair["windows"]
        assert np.sum(windows["shares"]) + windows["biases"] == pytest.approx(shares, abs=1e-3)
        without = pair["score"] - scorer.score("hotels shanghai", TITLE)
        assert pair["query"]["left_out"][1] == pytest.approx(without, abs=1e-5)
        without = pair["score"] - scorer.score(QUERY, "shanghai hotels and")
        assert pair["title"]["left_out"][3] == pytest.approx(without, abs=1e-5)

    def test_command(self, judged, tmp_path):
        made_up_pair_model([QUERY, TITLE]).save_pretrained(tmp_path / "m")
        run(tmp_path / "m", judged, tmp_path / "out.html")
        data = data_of((tmp_path / "out.html").read_text())
        assert data["pairs"][0]["rank"] == 1 and "windows" not in data["pairs"][0]
        assert data["triage"]["metric"] == "NDCG@10" and len(data["triage"]["rows"]) == 2
        lines = f"{QUERY}\t{TITLE}\nhotels\n"
        said = refused(tmp_path / "m", "-", tmp_path / "x.html", input=lines)
        assert said.endswith(":2: no title; a pair model needs lines query<TAB>title\n")


class TestTriage:
    @pytest.fixture
    def log(self):
        return ClickLog.from_pairs(
            [(QUERY, "bath tub repair"), (NASTY, TITLE), ("bath", NASTY), ("bath", TITLE)]
        )

    def ranked(self, model, log, **settings):
        return triage_report(model, NASTY, triage(model, log, **settings))

    def test_rows_and_the_worst_queries(self, model, log):
        found = triage(model, log, worst=2, top=2, log=log)
        data = data_of(page(triage_report(model, NASTY, found)))
        shown = data["triage"]
        assert [row[0] for row in shown["rows"]] == [found.queries[q] for q in found.order]
        assert shown["mean"] == pytest.approx(found.mean, abs=1e-4)
        assert shown["first"] == np.mean([found.best[q].rank == 1 for q in range(3)])
        for one, own in zip(found.worst, shown["worst"], strict=True):
            titles = [shown["titles"][place] for place, *_ in own["titles"]]
            assert titles == [title.title for title in one.titles]
            assert own["best"][1:3] == [1, one.best.rank]
            pairs = [data["pairs"][k] for k in own["pairs"]]
            wrong = one.titles[0].grade is None
            expected = [titles[0], one.best.title] if wrong else [titles[0]]
            assert [pair["title"]["text"] for pair in pairs] == expected
            assert {pair["query"]["text"] for pair in pairs} == {found.queries[one.number]}
        for number, parts in enumerate(found.slices.values()):
            for place, part in enumerate(parts):
                texts = {found.queries[q] for q in part.queries}
                own = {row[0] for row in shown["rows"] if row[7][number] == place}
                assert own == texts
        place = shown["titles"].index(found.worst[0].best.title)
        assert shown["evidence"][str(place)][0] >= 1

    def test_texts_are_never_markup(self, model, log):
        elements = Elements(page(self.ranked(model, log)))
        assert not elements.all("img") and len(elements.all("script")) == 2

    def test_gates_of_a_query_are_stored_once_and_only_of_some_pairs(self, model, log, monkeypatch):
        pairs = self.ranked(model, log)["pairs"]
        again = [
            k
            for k in range(1, len(pairs))
            if pairs[k]["query"]["text"] == pairs[k - 1]["query"]["text"]
        ]
        assert again and all(pairs[k]["query"]["gates"] == k - 1 for k in again)
        monkeypatch.setattr(towers, "MOST_VALUES", 4 * 8 * 15)
        less = self.ranked(model, log)["pairs"]
        kept = ["gates" in pair["title"] for pair in less]
        assert 0 < sum(kept) < len(kept) and kept == sorted(kept, reverse=True)
        assert ["gates" in pair["query"] for pair in less] == kept
        assert [pair["query"]["left_out"] for pair in less] == [
            pair["query"]["left_out"] for pair in pairs
        ]

    @pytest.mark.filterwarnings("ignore:.*no word")
    def test_texts_without_words_and_very_long_ones_have_no_effects(self, model):
        texts = [" ", "word " * (MAX_WORDS + 1)]
        made = JudgedSet(
            ["q1", "q2"],
            texts,
            ["d1", "d2"],
            ["hotels", "bath"],
            np.array([0, 2, 4]),
            np.array([0, 1, 0, 1], np.int32),
            np.array([1, 0, 1, 0], np.int32),
        )
        data = data_of(page(self.ranked(model, made)))
        assert data["pairs"] == [] and [one["pairs"] for one in data["triage"]["worst"]] == [[], []]

    def test_a_model_without_gates(self, make_model, log):
        model = make_model("dssm", hidden=7)
        data = data_of(page(self.ranked(model, log)))
        assert data["cells"] == data["gates"] == []
        for pair in data["pairs"]:
            query, title = pair["query"], pair["title"]
            assert pair["score"] == pytest.approx(
                model.score(query["text"], title["text"]), abs=1e-6
            )
            rest = " ".join(query["words"][1:])
            without = pair["score"] - (model.score(rest, title["text"]) if rest else 0)
            assert query["left_out"][0] == pytest.approx(without, abs=1e-5)
            assert "gradient" not in query

    def test_a_page_lists_the_worst_of_many_queries(self, model, log, monkeypatch):
        monkeypatch.setattr(rankings, "MOST_ROWS", 2)
        found = triage(model, log)
        shown = self.ranked(model, log)["triage"]
        assert [row[0] for row in shown["rows"]] == [found.queries[q] for q in found.order[:2]]
        assert shown["evaluated"] == 3

    def test_the_command_on_clicks_and_an_index(self, model, model_dir, log, tmp_path):
        write_click_log(log, tmp_path / "dev.tsv")
        out = tmp_path / "out.html"
        said = run(model_dir, tmp_path / "dev.tsv", out, "--show", 2, "--top-k", 1).output
        assert "without --catalogue only the 3 titles" in said
        assert "out.html: 3 queries, the worst 2 in detail" in said
        shown = data_of(out.read_text())["triage"]
        assert shown["metric"] == "MRR@10" and [len(one["titles"]) for one in shown["worst"]] == [
            1,
            1,
        ]
        (tmp_path / "titles.tsv").write_text(f"a\t{TITLE}\nb\tbath tub\nc\tbath tub repair\n")
        said = run(
            model_dir, tmp_path / "dev.tsv", out, "--force", "--log", tmp_path / "dev.tsv"
        ).stderr
        assert "1 relevant title not in the catalogue cannot" in said
        assert data_of(out.read_text())["triage"]["evidence"]
        clicks = ClickedQueries.of(ClickLog.from_pairs([("tub", "bath tub"), ("stay", TITLE)]))
        ranker = HybridRanker(model, Recipe({"cosine": 1, "bm25": 0.3}), clicks)
        Index.build(ranker, ["bath tub", TITLE]).save(tmp_path / "index")
        run(tmp_path / "index", tmp_path / "dev.tsv", out, "--force")
        shown = data_of(out.read_text())["triage"]
        assert all(len(title) == 5 for one in shown["worst"] for title in one["titles"])
        assert data_of(out.read_text())["model"]["name"] == "index"
        titles = "--catalogue", tmp_path / "titles.tsv"
        assert (
            "has titles of its own"
            in run(tmp_path / "index", tmp_path / "dev.tsv", out, "--force", *titles, code=2).stderr
        )
        assert (
            "without --limit"
            in run(
                model_dir, tmp_path / "dev.tsv", out, "--force", "--limit", 2, *titles, code=2
            ).stderr
        )
        run(model_dir, tmp_path / "dev.tsv", out, "--show", -1, code=2)
        run(model_dir, tmp_path / "dev.tsv", out, "--show", 10**9, code=2)

    def test_no_query_finds_anything(self, model, tmp_path):
        write_click_log(ClickLog.from_pairs([("上海", TITLE)]), tmp_path / "dev.tsv")
        clicks = ClickedQueries.of(ClickLog.from_pairs([("stay", TITLE)]))
        ranker = HybridRanker(model, Recipe({"cosine": 1, "bm25": 0.3}), clicks)
        Index.build(ranker, [TITLE]).save(tmp_path / "index")
        run(tmp_path / "index", tmp_path / "dev.tsv", tmp_path / "out.html")
        shown = data_of((tmp_path / "out.html").read_text())["triage"]
        assert (shown["mean"], shown["found"], len(shown["rows"])) == (0, 0, 1)

    def test_no_query_in_detail(self, model_dir, judged, tmp_path):
        run(model_dir, judged, tmp_path / "out.html", "--show", 0)
        data = data_of((tmp_path / "out.html").read_text())
        assert data["pairs"] == [] and len(data["triage"]["rows"]) == 2

    def test_a_judged_set_with_a_catalogue(self, model_dir, judged, tmp_path):
        (tmp_path / "all.tsv").write_text("x\tsomething else\ny\tshanghai hotels\n")
        said = run(
            model_dir, judged, tmp_path / "out.html", "--catalogue", tmp_path / "all.tsv"
        ).stderr
        assert "1 relevant title not in the catalogue cannot" in said
        assert data_of((tmp_path / "out.html").read_text())["triage"]["catalogue"] == 2

    def test_model_and_dev_in_each_others_place(self, model_dir, judged, tmp_path):
        assert "there is no model here" in refused(judged, model_dir, tmp_path / "out.html")
        said = refused(model_dir, model_dir, tmp_path / "out.html")
        assert "a judged set is a folder with" in said


def test_a_model_whose_folder_is_not_utf_8_has_a_page(model):
    report = page(collect(model, "caf\udce9", [ShownPair("hotels in shanghai")], []))
    assert "caf\ufffd" in report and report.encode()


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(model, tmp_path):
    report = page(collect(model, "a <b> model", [ShownPair("hotels in shanghai")], []))
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and shown.endswith("></iframe>")
    framed = re.search('srcdoc="([^"]*)"', shown)[1]
    assert html.unescape(framed) == report
