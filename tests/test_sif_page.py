"""docs/sif.md is what its CSV files say, and the functions behind it compute what they say."""

import re

import numpy as np
import pytest
from claims import (
    FAILS,
    HOLDS,
    IN_PART,
    UNTESTED,
    filled,
    judged,
    tables_in,
)
from glove import parsed, side_by_side
from pages import DOCS, sections_of
from sif import PARTS
from sif_charts import CHARTS
from sif_claims import CLAIMS
from sif_lab import EVERY_WORD, Laboratory, Setting, Similarity, group_means
from sif_pairs import key_of, sentence_pairs, unseen_parts
from sif_parts import TESTED, _best_with, _Rankers, p_against
from sif_printed import gains, mean_over, printed, tasks_of, wrong_means
from sif_supervised import REMOVED, WithoutComponent
from sif_tables import REFERENCE, SECTIONS

from sentemb.data.judged_set import JudgedSet
from sentemb.data.similarity_set import SimilaritySet
from sentemb.evaluation.correlation import pearson
from sentemb.models.contracts import Ranker
from sentemb.models.vectors.sif import SIF
from sentemb.models.vectors.word_vectors import WordVectors

PAGE, RESULTS = DOCS / "sif.md", DOCS / "results" / "sif"


@pytest.fixture(scope="module")
def tables():
    return tables_in(RESULTS)


# -- the page -------------------------------------------------------------------------------------


def test_the_page_is_current(tables):
    shown = sections_of(PAGE)
    del shown["record"]  # of evidence.py
    assert shown == filled(SECTIONS, tables), "run: python benchmarks/sif.py --text-only"


def test_a_section_without_its_numbers_is_left_out(tables):
    few = {name: lines for name, lines in tables.items() if name != "ranking"}
    assert filled(SECTIONS, tables).keys() - filled(SECTIONS, few).keys() == {
        "summary",
        "ranking",
        "ranking-settings",
    }


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (DOCS / target).exists(), target


def test_the_charts_are_small_and_none_is_left_over(tables):
    drawn = {path.stem for path in (DOCS / "figures").glob("sif-*.png")}
    assert {name for name, (needed, _) in CHARTS.items() if needed in tables} <= drawn
    for name in drawn:
        path = DOCS / "figures" / f"{name}.png"
        assert f"figures/{path.name}" in PAGE.read_text(encoding="utf-8")
        assert 0 < path.stat().st_size < 150_000


def test_every_claim_has_a_verdict(tables):
    found = judged(CLAIMS, tables)
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)
    untested = {claim.key for claim, verdict, _ in found if verdict == UNTESTED}
    assert untested == {"C12", "C14", "C15", "C19", "C23"}
    assert {verdict for _, verdict, _ in judged(CLAIMS, {})} == {UNTESTED}


def test_the_measured_numbers_are_those_of_the_separate_program(tables):
    lines = REFERENCE.read_text(encoding="utf-8").splitlines()
    groups = lines[0].split(",")[1:]
    for line in lines[1:]:
        row, *told = re.fullmatch(r'(?:"(.+)"|([^,"]+)),(.+)', line).groups()
        own = group_means(
            {
                one["part"]: float(one["r"])
                for one in tables["similarity"]
                if (one["vectors"], one["row"]) == ("100d", row or told[0])
            }
        )
        for group, number in zip(groups, told[1].split(","), strict=True):
            assert abs(own[group] - float(number)) <= 0.25, (row, group)


# -- claims ---------------------------------------------------------------------------------------


def _similarity(**values):
    """A table in which each row has the same r on all parts."""
    parts = ("2012 a", "2012 b", "2013 a", "2014 a", "2015 a", "2016 a", "sick test", "stsb dev")
    return {
        "similarity": [
            {"vectors": "100d", "row": row, "part": part, "r": str(r)}
            for row, r in values.items()
            for part in parts
        ]
    }


@pytest.mark.parametrize(
    ("key", "values", "verdict"),
    [
        ("C1", {"avg": 50, "WR": 60}, HOLDS),
        ("C1", {"avg": 50, "WR": 80}, IN_PART),
        ("C1", {"avg": 50, "WR": 40}, FAILS),
        ("C2", {"avg": 50, "W": 55, "R": 60, "WR": 63}, HOLDS),
        ("C2", {"avg": 50, "W": 51, "R": 60, "WR": 70}, IN_PART),
        ("C2", {"avg": 50, "W": 60, "R": 51, "WR": 63}, FAILS),
        ("C3", {"avg": 40, "tf-idf": 50, "WR": 60, "W": 49}, HOLDS),
        ("C3", {"avg": 55, "tf-idf": 50, "WR": 60, "W": 49}, IN_PART),
        ("C3", {"avg": 40, "tf-idf": 50, "WR": 40, "W": 49}, FAILS),
        ("C21", {"avg": 50, "tf-idf": 55, "WR": 58}, HOLDS),
        ("C21", {"avg": 50, "tf-idf": 57, "WR": 58}, FAILS),
    ],
)
def test_verdicts_on_similarity(key, values, verdict):
    claim = next(one for one in CLAIMS if one.key == key)
    assert claim.judge(_similarity(**values))[0] == verdict


@pytest.mark.parametrize(
    ("best", "verdict"), [("0.001", HOLDS), ("0.0001", HOLDS), ("0.1", FAILS), ("1e-05", FAILS)]
)
def test_the_verdict_on_a(best, verdict):
    lines = [{"vectors": "x", "row": "avg", "a": "", "2012": "40", "2013": "90"}]
    lines += [
        {"vectors": "x", "row": "WR", "a": a, "2012": "60" if a == best else "50", "2013": "10"}
        for a in ("1e-05", "0.0001", "0.001", "0.1")
    ]
    claim = next(one for one in CLAIMS if one.key == "C4")
    assert claim.judge({"sweep": lines})[0] == verdict


@pytest.mark.parametrize(
    ("gap", "other", "verdict"),
    [(0.5, "enwiki", HOLDS), (3, "enwiki", FAILS), (3, "occupations", IN_PART)],
)
def test_the_verdict_on_the_source_of_p(gap, other, verdict):
    lines = [
        {"source": source, "row": row, "2012": str(value if row == "WR" else 0), "2013": str(k)}
        for k, (source, value) in enumerate((("sts", 50), (other, 50 + gap)))
        for row in ("W", "WR")
    ]
    claim = next(one for one in CLAIMS if one.key == "C5")
    assert claim.judge({"sources": lines})[0] == verdict


@pytest.mark.parametrize(("gain", "verdict"), [(10, HOLDS), (-10, IN_PART)])
def test_the_verdict_on_other_vectors(gain, verdict):
    other = [{"vectors": "skip-gram", "row": row, "part": "2012 a", "r": str(r)}
             for row, r in (("avg", 50), ("WR", 50 + gain))]  # fmt: skip
    claim = next(one for one in CLAIMS if one.key == "C17")
    assert claim.judge(_similarity(avg=50, WR=60) | {"skip-gram": other})[0] == verdict


@pytest.mark.parametrize(
    ("gaps", "verdict"), [((0.5, -0.5, 0), HOLDS), ((0, 2, 0), IN_PART), ((2, 2, -2), FAILS)]
)
def test_the_verdict_on_removal_before_a_classifier(gaps, verdict):
    lines = []
    for task, gap in zip(("similarity", "entailment", "sentiment"), gaps, strict=True):
        base = {"task": task, "a": "0.01", "seed": "0", "order": "original", "dev": "9"}
        lines += [base | {"system": "SIF", "test": "80"},
                  base | {"system": REMOVED, "test": str(80 + gap)}]  # fmt: skip
    claim = next(one for one in CLAIMS if one.key == "C20")
    assert claim.judge({"supervised": lines})[0] == verdict
    assert claim.judge({"supervised": lines[::2]}) is None


@pytest.mark.parametrize(
    ("chosen", "smallest", "verdict"), [(0.3, 0.1, HOLDS), (0.5, 0.1, IN_PART), (0.5, 0.4, FAILS)]
)
def test_the_verdict_on_the_weight_of_negation(chosen, smallest, verdict):
    weights = {
        "0.01": {"not": chosen, EVERY_WORD: 0.8},
        "0.001": {"not": smallest, EVERY_WORD: 0.6},
    }
    words = [
        {"a": a, "word": word, "weight": str(weight)}
        for a, of_a in weights.items()
        for word, weight in of_a.items()
    ]
    trained = [
        {"task": "sentiment", "system": "SIF", "seed": "0", "a": a, "dev": dev}
        for a, dev in (("0.01", "80"), ("0.001", "70"))
    ]
    claim = next(one for one in CLAIMS if one.key == "C22")
    assert claim.judge({"negation": words, "supervised": trained})[0] == verdict


def test_features_lose_the_component_of_the_training_texts():
    rng = np.random.default_rng(0)
    vectors = dict(zip("abcd", rng.normal(size=(4, 3)) + [5, 0, 0], strict=True))
    removed = WithoutComponent(lambda texts: np.array([vectors[text] for text in texts]), "abc")
    u = np.linalg.svd(np.array([vectors[text] for text in "abc"]))[2][0]
    np.testing.assert_allclose(removed("d"), [vectors["d"] - vectors["d"] @ u * u])


def _features(lstm, sif, sentiment):
    lines = []
    for task, shift in (("similarity", 0), ("entailment", 0), ("sentiment", sentiment)):
        for seed in (-1, 1):  # means over seeds count
            base = {"task": task, "a": "", "seed": "0", "order": "original"}
            lines += [
                base | {"system": "SIF", "a": "0.01", "dev": "9", "test": str(sif + seed)},
                base | {"system": "SIF", "a": "0.1", "dev": "8", "test": "0"},
                base | {"system": "rnn", "test": str(lstm - 20)},
                base | {"system": "lstm", "test": str(lstm + shift)},
                base | {"system": "rnn", "order": "shuffled", "test": str(lstm - 30)},
                base | {"system": "lstm", "order": "shuffled", "test": str(lstm - 5)},
            ]
    return {"supervised": lines}


@pytest.mark.parametrize(
    ("key", "values", "verdict"),
    [
        ("C10", {"lstm": 80, "sif": 81, "sentiment": 5}, IN_PART),
        ("C10", {"lstm": 80, "sif": 70, "sentiment": -15}, FAILS),
        ("C11", {"lstm": 80, "sif": 81, "sentiment": 5}, HOLDS),
        ("C11", {"lstm": 80, "sif": 81, "sentiment": -6}, IN_PART),
    ],
)
def test_verdicts_on_features(key, values, verdict):
    claim = next(one for one in CLAIMS if one.key == key)
    assert claim.judge(_features(**values))[0] == verdict


@pytest.mark.parametrize(("trained", "verdict"), [(50, HOLDS), (70, FAILS)])
def test_the_verdict_on_trained_rows(trained, verdict):
    rows = {"WR": 60, **dict.fromkeys(("RNN", "LSTM(no)", "LSTM(o.g.)", "DAN"), trained)}
    lines = [{"row": row, "mean of the parts": str(r)} for row, r in rows.items()]
    claim = next(one for one in CLAIMS if one.key == "C13")
    assert claim.judge({"pairs": lines})[0] == verdict


@pytest.mark.parametrize(
    ("key", "W", "Z", "verdict"),
    [("C7", 0.99, 1.0, HOLDS), ("C7", 0.99, 1.5, IN_PART),
     ("C8", 0.99, 1.0, HOLDS), ("C8", 0.8, 1.0, FAILS)],
)  # fmt: skip
def test_verdicts_on_the_theory(key, W, Z, verdict):
    averages = {"W": str(W), "plain": "0.7", "centred W": "0.99"}
    tables = {
        "theory-simulated": [averages],
        "theory-maximum": [averages],
        "theory-partition-function": [
            {"c": "200 random c, ‖c‖ = 1", "cv of Z": "0.05", "Z/V": "1.0"},
            {"c": "averages of SIF, scaled to ‖c‖ = 1", "cv of Z": "0.05", "Z/V": str(Z)},
        ],
    }
    claim = next(one for one in CLAIMS if one.key == key)
    assert claim.judge(tables)[0] == verdict


# -- printed numbers ------------------------------------------------------------------------------


def test_the_two_wrong_means_of_the_paper_are_found():
    found = {(year, system): round(own, 1) for year, system, _, own in wrong_means(printed(5, 6))}
    assert found == {("2013", "GloVe+W"): 46.1, ("2013", "GloVe+WR"): 57.3}


def test_the_printed_numbers_are_complete():
    numbers = printed(5, 6)
    assert len({system for _, system in numbers}) == 17
    assert [len(tasks_of(numbers, year)) for year in ("2012", "2013", "2014", "2015")] == [
        5,
        4,
        6,
        5,
    ]
    assert len(numbers) == 17 * (20 + 4 + 2)
    without = [task for task in tasks_of(numbers, "2013") if task != "2013 SMT"]
    assert round(mean_over(numbers, without, "GloVe+WR"), 1) == 63.8
    some = gains(numbers, "GloVe+WR", "avg-GloVe")
    assert len(some) == 22 and round(sum(some.values()) / 22, 1) == 12.9


# -- rankings -------------------------------------------------------------------------------------


def test_every_difference_of_rankings_is_tested(tables):
    for line in tables["ranking"]:
        for reference in TESTED:
            p = line[p_against(reference)]
            assert (p == "") == (line["row"] == reference)
            assert not p or 0 < float(p) <= 1


class Fixed(Ranker):
    """Ranks the first or the last title of each query first."""

    def __init__(self, sign):
        self.sign = sign

    def score_pairs(self, queries, titles, query_index, title_index):
        return self.sign * np.asarray(title_index, float)


def test_rankers_are_chosen_on_dev_and_tested():
    n = 20
    ids = [f"{k}" for k in range(2 * n)]
    judged = JudgedSet(ids[:n], ids[:n], ids, ids, 2 * np.arange(n + 1),
                       np.arange(2 * n, dtype=np.int32), np.tile([1, 0], n))  # fmt: skip
    good, bad = Fixed(-1), Fixed(1)
    assert _best_with([(bad, "bad"), (good, "good")], judged) == (good, "good")
    table = _Rankers("here", judged)
    for row in TESTED:
        table.add(row, bad)
    table.add("WR", good, "a 0.001")
    rows = table.tested()
    assert rows[-1][:6] == ["here", "WR", "1.000", "1.000", "1.000", "a 0.001"]
    # Three comparisons with each reference; the rows that are equal to it have a p of 1.
    assert [float(p) for p in rows[-1][6:]] == pytest.approx([3 / 10_001] * 3, abs=3e-4)
    assert rows[0][6:] == ["", "1.0000", "1.0000"]


# -- measurements ---------------------------------------------------------------------------------


class Here(Laboratory):
    """A laboratory with made-up words and sentences."""

    def __init__(self):
        super().__init__(None, {"made-up": None})
        rng = np.random.default_rng(3)
        words = [f"w{k}" for k in range(60)]
        self._vectors["made-up"] = WordVectors(
            words, rng.normal(0.5, 1, (60, 8)).astype(np.float32)
        )
        self._counts["enwiki"] = {word: 1000 // (k + 1) for k, word in enumerate(words[:50])}
        first, second = (
            [" ".join(rng.choice([*words, "unknown"], 5)) for _ in range(30)] for _ in range(2)
        )
        self.pairs = [SimilaritySet("2012 made-up", rng.random(30), first, second)]


@pytest.mark.parametrize(
    ("setting", "options"),
    [
        (Setting(), {}),
        (Setting(weights="none", components=0), {"weights": "none", "components": 0}),
        (Setting(p="rank", components=2, weighted=True),
         {"p": "rank", "components": 2, "removal": "weighted"}),
        (Setting(each=True, unknown="zero"), {"sides": "each", "unknown_p": "zero"}),
        (Setting(weights="usif", centre="probability"),
         {"weights": "usif", "centre": "probability"}),
    ],
)  # fmt: skip
def test_cosines_are_those_of_a_model(setting, options):
    lab = Here()
    pairs = lab.pairs[0]
    options = {"p": lab.counts("enwiki"), **options}
    model = SIF(lab.vectors("made-up"), **options).fit(pairs.first, pairs.second)
    each = np.arange(30)
    expected = model.score_pairs(pairs.first, pairs.second, each, each)
    found = Similarity(lab, "made-up").scores(pairs, setting)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert Similarity(lab, "made-up").measured(setting) == {
        "2012 made-up": pytest.approx(100 * pearson(expected, pairs.scores), abs=1e-3)
    }


def test_means_by_year():
    found = group_means({"2012 a": 10, "2012 b": 20, "sick test": 3, "stsb dev": 4})
    assert found == {"2012": 15, "sick test": 3, "stsb dev": 4}


def test_every_part_has_a_file(tables):
    assert set(tables) >= set(PARTS)


# -- the trained rows -----------------------------------------------------------------------------


def test_parts_that_share_pairs_are_left_out():
    def part(name, *pairs):
        pairs = [*pairs, ("left", "right")]  # a set needs two scores
        return SimilaritySet(
            name, np.arange(len(pairs), dtype=float), *map(list, zip(*pairs, strict=True))
        )

    seen = {key_of("A cat.", "The dog!")}
    parts = [
        part("turned round", ("the dog", "a cat"), ("x", "y")),
        part("other pairs", ("a cat", "x"), ("the dog", "y")),
    ]
    assert unseen_parts(parts, seen) == ["other pairs"]


def test_no_measured_pair_is_trained_on(tmp_path):
    for place in ("stsb", "sick"):
        (tmp_path / "sts" / place).mkdir(parents=True)
        (tmp_path / "sts" / place / "train.tsv").write_text(
            f"5\ta {place}\tb\n4.0\tone\ttwo\n3.9\tfar\taway\n", encoding="utf-8"
        )
    measured = [SimilaritySet("here", np.arange(2.0), ["Two.", "x"], ["one", "y"])]
    assert sentence_pairs(Laboratory(tmp_path, {}), measured) == [("a stsb", "b"), ("a sick", "b")]


# -- GloVe ----------------------------------------------------------------------------------------


def test_entries_of_the_json_are_read():
    text = '{"words":["a]","b"],"vectors":{"a]\\"":[1,-0.5,3,7],"b":[0.25,2,9,8]},"unkVector":[0]}'
    words, vectors = parsed(text, 2)
    assert words == ['a]"', "b"]
    assert vectors.tolist() == [[1, -0.5], [0.25, 2]] and vectors.dtype == np.float32


def test_vectors_side_by_side():
    first = WordVectors(["x", "y"], np.array([[1, 2], [3, 4]], np.float32))
    second = WordVectors(["y", "z"], np.array([[5], [6]], np.float32))
    both = side_by_side(first, second)
    assert both.words == ["x", "y"] and both.vectors.tolist() == [[1, 2, 0], [3, 4, 5]]
    assert both.licence == "PDDL 1.0"
