"""The simulator: formats, traffic, shares, grades, truth, no leakage, same bytes, clear errors."""

import csv
import json
import subprocess
import sys
from collections import Counter, defaultdict
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner

from sentemb.cli import COMMANDS, main
from sentemb.data.click_log import read_click_log
from sentemb.data.simulation import example_shop
from sentemb.data.simulation.click_rates import read_click_rates
from sentemb.data.simulation.lexicon import load_lexicon
from sentemb.data.simulation.search_world import mistype
from sentemb.data.simulation.simulator import simulate
from sentemb.errors import SentembError
from sentemb.text.words import folded_words

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
    counts = [
        [entry["query"], title, str(count)]
        for entry in entries
        for title, count in zip(entry["clicked"], entry["clicks"], strict=True)
    ]
    assert counts == columns(out / "pairs.tsv")
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
    assert queries < set(read_click_rates(out / "rates.jsonl").queries)
    queries.update(read_click_rates(out / "rates.jsonl").queries)
    catalogue = {title for _, title in columns(out / "titles.tsv")}
    assert titles < catalogue
    titles |= catalogue
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


# -- traffic ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def traffic(tmp_path_factory):
    """A log of some thousand pairs: its folder, the log and the rates."""
    folder = tmp_path_factory.mktemp("traffic")
    made = simulate(folder, pairs=8_000, dev_queries=5, test_queries=5, seed=1)
    return made, read_click_log(folder / "pairs.tsv"), read_click_rates(folder / "rates.jsonl")


def clicks_of_pairs(log):
    found = {}
    for query, title, clicks in zip(log.query_index, log.title_index, log.clicks, strict=True):
        found[log.queries[query], log.titles[title]] = int(clicks)
    return found


def probabilities(rates):
    """The probability that a click is on a pair, for all pairs that are shown."""
    query = np.repeat(np.arange(len(rates.queries)), np.diff(rates.offsets))
    shown = rates.rates + (1 - share_on_pages(rates)) / len(rates.titles)
    return {
        (rates.queries[q], rates.titles[t]): p
        for q, t, p in zip(query, rates.title_index, rates.shares[query] * shown, strict=True)
    }


def share_on_pages(rates):
    sums = np.add.reduceat(rates.rates, rates.offsets[:-1])
    assert np.allclose(sums, sums[0])
    return sums[0]


def dispersion(observed, expected):
    """Chi-square over its degrees of freedom, and the standard deviation of that."""
    return np.mean((observed - expected) ** 2 / expected), np.sqrt(2 / len(expected))


def test_clicks_are_independent_draws_of_the_true_rates(traffic):
    made, log, rates = traffic
    assert log.clicks.sum() == made.clicks and sum(rates.shares) == pytest.approx(1)
    found = clicks_of_pairs(log)
    for counts in (found, clicks_of_pairs(rates.month(made.clicks, seed=99))):
        often = {pair: p * made.clicks for pair, p in probabilities(rates).items()
                 if p * made.clicks >= 8}  # fmt: skip
        expected = np.array([*often.values()])
        observed = np.array([counts.get(pair, 0) for pair in often])
        ratio, deviation = dispersion(observed, expected)
        assert len(often) > 150 and abs(ratio - 1) < 5 * deviation
    # Within a query, the counts differ from month to month as those of independent clicks.
    other = clicks_of_pairs(rates.month(made.clicks, seed=99))
    both = {pair: found[pair] + other.get(pair, 0) for pair in found}
    total = np.array([count for count in both.values() if count >= 16])
    first = np.array([found[pair] for pair, count in both.items() if count >= 16])
    ratio, deviation = dispersion(first, total / 2)
    assert 0.5 - 4 * deviation < ratio < 0.5 + 4 * deviation  # the variance of a half is n / 4


def test_queries_follow_zipf_and_some_are_heavy(traffic):
    made, log, rates = traffic
    counts = np.sort(np.bincount(log.query_index, log.clicks))[::-1]
    ranks = np.arange(30, 600)
    slope = np.polyfit(np.log(ranks), np.log(counts[ranks]), 1)[0]
    assert -1.1 < slope < -0.75
    assert counts[0] > 200 and (counts == 1).mean() > 0.3
    # Most clicks of the next month are for queries that the log has, and some are not.
    following = rates.month(made.clicks, seed=7)
    is_known = np.isin(following.queries, log.queries)
    known = following.clicks[is_known[following.query_index]].sum() / following.clicks.sum()
    assert 0.82 < known < 0.95


def test_some_clicks_are_stray(traffic):
    made, log, rates = traffic
    query = np.repeat(np.arange(len(rates.queries)), np.diff(rates.offsets))
    right = {
        (rates.queries[q], rates.titles[t])
        for q, t, grade in zip(query, rates.title_index, rates.grades, strict=True)
        if grade
    }
    stray = sum(n for pair, n in clicks_of_pairs(log).items() if pair not in right)
    assert 0.03 < stray / made.clicks < 0.055


def test_names_are_words_of_one_title_and_some_titles_have_no_clicks(out, truth):
    catalogue = [title for _, title in columns(out / "titles.tsv")]
    assert len(set(catalogue)) == len(catalogue)
    words = [set(folded_words(title)) for title in catalogue]
    names = [text for side, text in truth if truth[side, text]["name"]]
    rates = read_click_rates(out / "rates.jsonl")
    assert len(names) == pytest.approx(0.05 * len(rates.queries), rel=0.1)
    assert {len(name.split()) for name in names} == {1, 2}
    for name in names:
        (place,) = [number for number, of in enumerate(words) if set(name.split()) <= of]
        number = rates.queries.index(name)
        shown = rates.title_index[rates.offsets[number] : rates.offsets[number + 1]]
        assert [rates.titles[title] for title in shown] == [catalogue[place]]
    logged = read_click_log(out / "pairs.tsv")
    assert 0.3 < np.isin(names, logged.queries).mean() < 0.99
    added = set(catalogue) - set(rates.titles)
    assert len(added) == round(0.05 * len(catalogue)) and not added & set(logged.titles)
    assert set(rates.titles) < set(catalogue)


def test_rates_are_read_as_they_were_drawn_from(traffic, tmp_path):
    made, _, rates = traffic
    again = read_click_rates(made.out / "rates.jsonl")
    assert clicks_of_pairs(again.month(500, 3)) == clicks_of_pairs(rates.month(500, 3))
    assert clicks_of_pairs(again.month(500, 4)) != clicks_of_pairs(rates.month(500, 3))
    for text in ("", "{", "[]", '{"query": "q"}', '{"query": "q", "share": 1, "titles": 1}'):
        (tmp_path / "rates.jsonl").write_text(text)
        with pytest.raises(SentembError, match=r"rates\.jsonl.*name a rates\.jsonl"):
            read_click_rates(tmp_path / "rates.jsonl")


def test_the_example_shop_has_traffic_and_keeps_its_rates(tmp_path, monkeypatch):
    monkeypatch.setattr(example_shop, "_PAIRS", 1_000)
    clicks, products = example_shop.write_example_shop(tmp_path)
    with open(products, encoding="utf-8", newline="") as file:
        names = {row["sku"]: row["name"] for row in csv.DictReader(file)}
    rates = example_shop.example_click_rates()
    with open(clicks, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1_000 and {row["search_term"] for row in rows} < set(rates.queries)
    clicked = {names[row["sku"]] for row in rows}
    assert clicked < set(rates.titles) < set(names.values())


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
    assert len(files) == 13
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
