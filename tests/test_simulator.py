"""The simulator: formats, shares, grades, truth, no leakage, the same bytes, clear errors."""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from random import Random

import pytest
from click.testing import CliRunner

from sentemb.cli import COMMANDS, main
from sentemb.data.simulation.lexicon import load_lexicon
from sentemb.data.simulation.search_world import mistype
from sentemb.data.simulation.simulator import simulate
from sentemb.errors import SentembError

SIZES = {"pairs": 2_500, "dev_queries": 250, "test_queries": 200}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    simulate(folder, **SIZES, seed=3)
    return folder


@pytest.fixture(scope="module")
def truth(out):
    """Truth by (side, text)."""
    found = {}
    for line in (out / "truth.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        assert (entry["side"], entry["text"]) not in found
        found[entry["side"], entry["text"]] = entry
    return found


def columns(path):
    lines = path.read_text("utf-8").split("\n")
    assert lines.pop() == ""
    return [line.split("\t") for line in lines]


def judged(folder):
    """``[(query, [(title, grade), ...]), ...]`` of a judged set."""
    queries, titles = dict(columns(folder / "queries.tsv")), dict(columns(folder / "docs.tsv"))
    grades = defaultdict(list)
    for line in (folder / "qrels.txt").read_text().splitlines():
        query, zero, title, grade = line.split(" ")
        assert zero == "0"
        grades[query].append((titles[title], int(grade)))
    assert list(grades) == list(queries)
    return [(queries[key], found) for key, found in grades.items()]


def bag(text):
    return tuple(sorted(text.lower().split()))


def test_the_log_has_the_size_asked_for_and_parses(out):
    lines = columns(out / "pairs.tsv")
    assert len(lines) == SIZES["pairs"]
    assert len({(query, title) for query, title, _ in lines}) == len(lines)
    assert all(int(clicks) >= 1 for _, _, clicks in lines)
    assert max(int(clicks) for _, _, clicks in lines) > 1


def test_the_log_with_skipped_titles_tells_the_same(out):
    clicked = defaultdict(list)
    for query, title, _ in columns(out / "pairs.tsv"):
        clicked[query].append(title)
    entries = [json.loads(line) for line in (out / "log.jsonl").read_text("utf-8").splitlines()]
    assert {entry["query"]: entry["clicked"] for entry in entries} == clicked
    assert not any(set(entry["clicked"]) & set(entry["skipped"]) for entry in entries)
    assert sum(map(len, clicked.values())) < sum(len(entry["skipped"]) for entry in entries)


def test_lengths_are_those_of_real_queries_and_titles(out):
    lines = columns(out / "pairs.tsv")
    queries = [len(query.split()) for query in {query for query, _, _ in lines}]
    titles = [len(title.split()) for _, title, _ in lines]
    assert min(queries) == 1 and max(queries) <= 10 and 3 < sum(queries) / len(queries) < 4.8
    assert min(titles) >= 5 and max(titles) <= 13 and 6 < sum(titles) / len(titles) < 9


def test_about_15_candidates_of_all_four_grades(out):
    for name, count in (("dev", SIZES["dev_queries"]), ("test", SIZES["test_queries"])):
        found = judged(out / name)
        assert len(found) == count
        assert len({query for query, _ in found}) == count
        sizes = [len(candidates) for _, candidates in found]
        assert 13.5 < sum(sizes) / count < 16.5 and min(sizes) >= 9 and max(sizes) <= 20
        grades = Counter(grade for _, candidates in found for _, grade in candidates)
        assert all(grades[grade] > 0.1 * sum(sizes) for grade in range(4))
        for _, candidates in found:
            assert {0, 1, 3} <= {grade for _, grade in candidates}


def test_no_judged_query_is_in_the_log_or_in_the_other_set_in_any_word_order(out):
    logged = {bag(query) for query, _, _ in columns(out / "pairs.tsv")}
    dev = {bag(query) for query, _ in judged(out / "dev")}
    test = {bag(query) for query, _ in judged(out / "test")}
    assert len(dev) == SIZES["dev_queries"]
    assert not logged & dev and not logged & test and not dev & test


def test_word_order_queries_have_reversed_twins_at_a_lower_grade(out, truth):
    orders = [
        (query, candidates)
        for query, candidates in judged(out / "dev")
        if truth["query", query]["order"]
    ]
    assert len(orders) > 20
    for _, candidates in orders:
        excellent = [title for title, grade in candidates if grade == 3]
        fair = [bag(title) for title, grade in candidates if grade == 1]
        assert all(bag(title) in fair for title in excellent)


def test_the_order_of_titles_does_not_give_their_grades_away(out):
    """Neither ties broken by file order nor by identifier may favour the better twin."""
    before = []
    for _, candidates in judged(out / "dev"):
        grades = [grade for _, grade in candidates]
        best, worst = (
            [place for place, grade in enumerate(grades) if grade == wanted] for wanted in (3, 1)
        )
        before += [one < other for one in best for other in worst]
    assert sum(before) / len(before) == pytest.approx(0.5, abs=0.05)


def test_grades_follow_the_topic(out, truth):
    for query, candidates in judged(out / "test"):
        topic = truth["query", query]["topic"]
        for title, grade in candidates:
            assert (truth["title", title]["topic"] == topic) == (grade > 0)


def test_truth_covers_all_texts_and_keywords_are_their_words(out, truth):
    queries, titles = set(), set()
    for line in (out / "log.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        queries.add(entry["query"])
        titles.update(entry["clicked"] + entry["skipped"])
    for name in ("dev", "test"):
        for query, candidates in judged(out / name):
            queries.add(query)
            titles.update(title for title, _ in candidates)
    assert {text for side, text in truth if side == "query"} == queries
    assert {text for side, text in truth if side == "title"} == titles
    topics = {topic.name for topic in load_lexicon().topics}
    function_words = load_lexicon().function_words
    for entry in truth.values():
        assert entry["keywords"] and set(entry["keywords"]) <= set(entry["text"].split())
        assert entry["topic"] in topics
        assert not entry["misspelt"] or entry["side"] == "query"
        if entry["kind"] == "informational" and not entry["misspelt"]:
            assert not {word.lower() for word in entry["keywords"]} & function_words


def test_shares_are_those_asked_for(tmp_path):
    asked = {"order": 0.3, "misspelt": 0.4, "navigational": 0.1, "transactional": 0.25}
    made = simulate(
        tmp_path,
        pairs=1_000,
        dev_queries=600,
        test_queries=1,
        **{f"{name}_share": share for name, share in asked.items()},
    )
    assert made.shares == pytest.approx(asked, abs=0.05)
    truth = [json.loads(line) for line in (tmp_path / "truth.jsonl").open(encoding="utf-8")]
    dev = dict(columns(tmp_path / "dev" / "queries.tsv")).values()
    entries = [entry for entry in truth if entry["side"] == "query" and entry["text"] in dev]
    for name, share in asked.items():
        hits = sum(entry.get(name) is True or entry["kind"] == name for entry in entries)
        assert hits / len(dev) == pytest.approx(share, abs=0.07)


def test_order_only_and_no_order_at_all(tmp_path):
    made = simulate(
        tmp_path / "all",
        pairs=300,
        dev_queries=5,
        test_queries=5,
        order_share=1,
        navigational_share=0,
        transactional_share=0,
        misspelt_share=0,
    )
    assert made.shares["order"] == 1 and made.shares["misspelt"] == 0
    made = simulate(tmp_path / "none", pairs=300, dev_queries=5, test_queries=5, order_share=0)
    assert made.shares["order"] == 0


def test_equal_word_bags_with_swapped_ends_are_two_needs(out, truth):
    """An order-free model meets clicked titles that only their order tells apart."""
    titles = defaultdict(set)
    for side, text in truth:
        if side == "title" and truth[side, text]["order"]:
            titles[bag(text)].add(text.lower())
    assert any(len(texts) > 1 for texts in titles.values())


def test_queries_and_their_excellent_titles_often_share_no_keyword(out, truth):
    apart = []
    for query, candidates in judged(out / "dev"):
        words = {word.lower() for word in truth["query", query]["keywords"]}
        for title, grade in candidates:
            if grade == 3:
                theirs = {word.lower() for word in truth["title", title]["keywords"]}
                apart.append(not words & theirs)
    assert 0.25 < sum(apart) / len(apart) < 0.6


def test_same_seed_same_bytes_even_with_another_hash_seed(tmp_path):
    sizes = {"pairs": 300, "dev_queries": 20, "test_queries": 20}
    script = (
        "import sys; from sentemb.data.simulation.simulator import simulate; "
        f"simulate(sys.argv[1], **{sizes}, seed=5)"
    )
    for name, hash_seed in (("a", "1"), ("b", "2")):
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / name)],
            check=True,
            env={"PYTHONHASHSEED": hash_seed},
        )
    simulate(tmp_path / "c", **sizes, seed=6)
    files = sorted(
        path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()
    )
    assert len(files) == 11
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert (tmp_path / "a/pairs.tsv").read_bytes() != (tmp_path / "c/pairs.tsv").read_bytes()


def test_simulating_loads_no_numba():
    script = "import sys, sentemb.data.simulation.simulator; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_the_lexicon_is_consistent():
    lexicon = load_lexicon()
    assert len(lexicon.topics) >= 40
    brands = Counter()
    for topic in lexicon.topics:
        kinds = [family.kind for family in topic.families]
        assert kinds[:3] == ["informational", "navigational", "transactional"]
        for family in topic.families:
            assert len(family.details) == len(family.query_templates)
            assert len(family.details) == len(family.title_templates)
            for templates in (*family.query_templates, *family.title_templates):
                assert templates.items
                for template in templates.items:
                    slots = {part.slot for part in template if part.slot}
                    needed = {"concept", "a", "b"} if family.order else {"concept"}
                    assert needed <= slots <= needed | {"entity", "detail", "field"}
            for side in ("query", "title"):
                for meanings in (family.concepts, family.entities, family.details[1:]):
                    # The wordings of two meanings differ, or nobody could tell them apart.
                    if family.kind != "informational" and meanings is family.details[1:]:
                        continue
                    counts = Counter(
                        wording
                        for one in meanings
                        for wording in set(getattr(one, side))
                        if wording
                    )
                    twice = [wording for wording, count in counts.items() if count > 1]
                    assert not twice, (topic.name, side, twice)
        brands.update(brand.title[0] for brand in topic.families[1].concepts)
    assert max(brands.values()) == 1


def test_the_lexicon_knows_the_examples_of_the_figures():
    topics = {topic.name: topic.families[0] for topic in load_lexicon().topics}

    def query_words(meanings):
        return {" ".join(wording) for one in meanings for wording in one.query}

    assert "hotels" in query_words(topics["hotels"].concepts)
    assert "shanghai" in query_words(topics["hotels"].entities)
    assert "wont turn off" in query_words(topics["plumbing"].concepts)
    assert "bath tub" in query_words(topics["plumbing"].entities)


@pytest.mark.parametrize("word", ["shanghai", "faucet", "hotel", "sees"])
def test_a_mistyped_word_is_one_edit_away_and_keeps_its_first_letter(word):
    random = Random(0)
    made = {mistype(word, random) for _ in range(200)}
    assert len(made) > 5
    for wrong in made:
        assert wrong[0] == word[0]
        assert abs(len(wrong) - len(word)) <= 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pairs": 0}, "pairs is 0; give an integer from 1 to"),
        ({"dev_queries": 0}, "dev_queries is 0; give an integer from 1 to"),
        ({"test_queries": -1}, "test_queries is -1; give an integer from 1 to"),
        ({"order_share": 1.5}, "order_share is 1.5; give a share from 0 to 1"),
        ({"misspelt_share": float("nan")}, "misspelt_share is nan; give a share from 0 to 1"),
        ({"order_share": 0.6, "navigational_share": 0.4}, "add up to 1.1; lower them"),
        ({"seed": -1}, "seed is -1; give an integer from 0 to"),
    ],
)
def test_bad_settings_say_what_to_do(tmp_path, settings, message):
    with pytest.raises(SentembError, match=message):
        simulate(tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


def test_a_size_that_the_lexicon_cannot_supply(tmp_path, monkeypatch):
    monkeypatch.setattr("sentemb.data.simulation.simulator.MAX_DRAWS", 1)
    with pytest.raises(SentembError, match=r"no more .* queries after .*; ask for fewer"):
        simulate(tmp_path, pairs=10, dev_queries=3_000, test_queries=1)


def test_a_folder_in_use_is_kept_unless_forced(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    sizes = {"pairs": 50, "dev_queries": 3, "test_queries": 3}
    with pytest.raises(SentembError, match="is not empty; name another folder or use --force"):
        simulate(tmp_path, **sizes)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert simulate(tmp_path, **sizes, force=True).pairs == 50
    assert (tmp_path / "mine.txt").read_text() == "mine"
    with pytest.raises(SentembError, match="is a file; name a folder"):
        simulate(tmp_path / "mine.txt", **sizes)
    with pytest.raises(SentembError, match="cannot be written"):
        simulate(tmp_path / "mine.txt" / "out", **sizes)


def test_command_line(tmp_path):
    out = str(tmp_path / "out")
    arguments = [
        "simulate",
        "-o",
        out,
        "--pairs",
        "60",
        "--dev-queries",
        "4",
        "--test-queries",
        "5",
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert f"{out}: 60 pairs" in result.stdout
    assert f"next: sentemb train {out}/pairs.tsv --dev {out}/dev -o MODEL" in result.stdout
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 1
    assert again.stderr == f"Error: {out}: is not empty; name another folder or use --force\n"
    assert CliRunner().invoke(main, [*arguments, "--force"]).exit_code == 0
    text = CliRunner().invoke(main, ["simulate", "--help"]).stdout
    assert text.splitlines()[2].strip() == COMMANDS["simulate"]
