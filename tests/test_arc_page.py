"""docs/arc.md is what its CSV files say, and the functions behind it compute what they say."""

import gzip
import re

import numpy as np
import pytest
from arc import PARTS
from arc_charts import CHARTS
from arc_claims import CLAIMS, NAMES, printed
from arc_constructions import contained, order_of_rows, pooling, ranks, senna_in_arc1
from arc_lab import MODELS, TOWERS, Laboratory, Rows, packed, shuffled, unpacked
from arc_parts import (
    REFERENCE,
    _mean_hits,
    completion,
    differences,
    msrp,
    part_of,
    reported,
    searched_rate,
    share_in_order,
    training_of,
    with_shuffled,
)
from arc_tables import SECTIONS
from claims import FAILS, HOLDS, IN_PART, NOTHING, UNTESTED, filled, judged, tables_in
from pages import DOCS, sections_of

from sentemb.data.click_log import ClickLogBuilder

PAGE, RESULTS = DOCS / "arc.md", DOCS / "results" / "arc"


@pytest.fixture(scope="module")
def tables():
    return tables_in(RESULTS)


# -- the page -------------------------------------------------------------------------------------


def test_the_page_is_current(tables):
    shown = sections_of(PAGE)
    del shown["record"]  # of evidence.py
    assert shown == filled(SECTIONS, tables), "run: python benchmarks/arc.py --text-only"


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (DOCS / target).exists(), target


def test_the_charts_are_small_and_none_is_left_over(tables):
    drawn = {path.stem for path in (DOCS / "figures").glob("arc-*.png")}
    assert drawn == {name for name, (needed, _) in CHARTS.items() if tables.get(needed)}
    for name in drawn:
        path = DOCS / "figures" / f"{name}.png"
        assert f"figures/{path.name}" in PAGE.read_text(encoding="utf-8")
        assert 0 < path.stat().st_size < 150_000


def test_files_belong_to_parts(tables):
    assert set(tables) <= {*PARTS, "hits"}
    for name in ("completion", "labelled", "constructions", "differences"):
        assert tables[name]


def test_hits_are_those_of_the_tables(tables):
    measured = {(row["training"], row["model"], row["seed"], row["part"]): row
                for row in tables["hits"]}  # fmt: skip
    for line in tables["completion"]:
        for part, column in (("test", "test"), ("test_hard", "similar")):
            name = training_of("completion", line["vectors"], line["rate"])
            hits = unpacked(measured[name, line["model"], line["seed"], part])
            assert f"{hits.mean():.4f}" == line[column]


def test_differences_are_those_of_the_hits(tables, tmp_path):
    lab = Laboratory(None, tmp_path, RESULTS)
    lines = tables["differences"]
    for name, vectors, part in {(one["set"], one["vectors"], one["part"]) for one in lines}:
        found = _mean_hits(lab, name, reported(tables[name]), vectors, part)
        own = {one["system"]: one for one in lines
               if (one["set"], one["vectors"], one["part"]) == (name, vectors, part)}  # fmt: skip
        assert own.keys() == found.keys() - {REFERENCE}
        for system, line in own.items():
            gap = (found[system] - found[REFERENCE]).mean()
            assert f"{gap:.4f}" == line["difference"]
            assert float(line["low"]) <= gap <= float(line["high"])


def test_systems_are_compared_with_arc2(tmp_path):
    rng = np.random.default_rng(0)
    rows = Rows(tmp_path / "hits.csv", ("training", "model", "seed", "part", "n", "bits"), 4)
    for model, share in (("arc2", 0.9), ("arc1", 0.5)):
        for seed in (0, 1):
            rows.add("completion", model, seed, "test", 200, packed(rng.random(200) < share))
    keys = ("model", "vectors", "rate", "seed", "dev")
    trained = Rows(tmp_path / "completion.csv", keys, 4)
    for model, seed in (("arc2", 0), ("arc2", 1), ("arc1", 0), ("arc1", 1)):
        trained.add(model, "fixed", 0.001, seed, "0.5")
    differences(Laboratory(None, tmp_path, tmp_path), tmp_path / "differences.csv")
    (line,) = tables_in(tmp_path)["differences"]
    assert (line["system"], line["reference"], line["vectors"]) == ("arc1", "arc2", "fixed")
    assert float(line["low"]) < -0.3 and float(line["p"]) < 0.001


# -- claims ---------------------------------------------------------------------------------------


def test_every_claim_has_a_name_of_its_own_and_a_verdict(tables):
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)
    found = judged(CLAIMS, tables)
    assert {verdict for _, verdict, _ in found} <= {HOLDS, IN_PART, FAILS, UNTESTED, NOTHING}
    measured = {claim.key for claim, verdict, _ in found if verdict != UNTESTED}
    assert {"C1", "C5", "C6", "C7", "C8", "C10", "C12", "C14"} <= measured
    assert {verdict for _, verdict, _ in judged(CLAIMS, {})} == {UNTESTED, NOTHING}
    for claim in CLAIMS:
        assert re.search(r"section|table|figure|equation|footnote", claim.place), claim.key
        assert claim.printed and claim.text
        assert bool(claim.needs) == bool(claim.command)


def _verdict(key, **given):
    claim = next(one for one in CLAIMS if one.key == key)
    found = claim.judge(given)
    return found and found[0]


def _rows(column, found, vectors="fixed"):
    return [{"model": model, "seed": "0", "vectors": vectors, "rate": "0.001", "dev": "0.5",
             column: str(value)} for model, value in found.items()]  # fmt: skip


@pytest.mark.parametrize(
    ("arc2", "arc1", "verdict"), [(0.25, 0.2, HOLDS), (0.25, 0.25, IN_PART), (0.2, 0.25, FAILS)]
)
def test_the_verdict_on_order_that_is_taught(arc2, arc1, verdict):
    lines = [line | {"order": "0.9"} for line in _rows("test", {"arc2": arc2, "arc1": arc1})]
    assert _verdict("C4", order_only=lines) == verdict
    assert _verdict("C4", order_only=lines[:1]) is None


@pytest.mark.parametrize(
    ("arc2", "arc1", "verdict"), [(0.6, 0.61, HOLDS), (0.6, 0.54, IN_PART), (0.6, 0.5, FAILS)]
)
def test_the_verdict_on_order_that_is_not_taught(arc2, arc1, verdict):
    lines = _rows("order", {"arc2": arc2, "arc1": arc1})
    assert _verdict("C8", completion=lines) == verdict


def test_the_why_of_unasked_order_names_rates_and_seeds():
    lines = _rows("order", {"arc2": 0.5, "arc1": 0.6})
    lines += [line | {"seed": "1"} for line in _rows("order", {"arc2": 0.52})]
    claim = next(one for one in CLAIMS if one.key == "C8")
    _, why = claim.judge({"completion": lines})
    assert "ARC-II 51.0 % (rate 0.001, seeds 0, 1), ARC-I 60.0 % (rate 0.001, seed 0)" in why


@pytest.mark.parametrize(
    ("arc2", "arc1", "verdict"), [(0.5, 0.5, HOLDS), (0.52, 0.5, IN_PART), (0.52, 0.52, FAILS)]
)
def test_the_verdict_on_the_additional_task(arc2, arc1, verdict):
    base = _rows("test", {"arc2": 0.5, "arc1": 0.5})
    own = _rows("test", {"arc2": arc2, "arc1": arc1})
    assert _verdict("C9", auxiliary=own, completion=base) == verdict


@pytest.mark.parametrize(
    ("values", "verdict"),
    [((4, 3, 2, 1), HOLDS), ((4, 3, 1, 2), IN_PART), ((1, 2, 3, 4), FAILS), ((4,), HOLDS)],
)
def test_the_verdict_on_the_order_of_a_table(values, verdict):
    found = dict(zip(("arc2", "arc1", "senna", "wordembed"), values, strict=False))
    assert _verdict("T1", completion=_rows("similar", found)) == verdict
    assert _verdict("T1", completion=_rows("similar", {"arc1": 1})) is None


@pytest.mark.parametrize(
    ("gaps", "verdict"), [((-0.1, -0.1), HOLDS), ((-0.1, 0.1), IN_PART), ((0.1, 0), FAILS)]
)
def test_the_verdict_on_a_lead_of_arc2(gaps, verdict):
    lines = [
        {"set": name, "vectors": "fixed", "part": "test", "system": system, "p": "0.01",
         "difference": str(gap)}
        for name, gap in zip(("completion", "response"), gaps, strict=True)
        for system in ("arc1", "wordembed", "lstm")
    ]  # fmt: skip
    assert _verdict("C10", differences=lines) == verdict


@pytest.mark.parametrize(
    ("leads", "verdict"), [((1, 2), HOLDS), ((-1, 2), IN_PART), ((2, 1), FAILS)]
)
def test_the_verdict_on_the_smaller_lead(leads, verdict):
    both = [_rows("test", {"arc1": 1, "arc2": 1 + lead}) for lead in leads]
    assert _verdict("C15", completion=both[0], response=both[1]) == verdict


@pytest.mark.parametrize(
    ("values", "verdict"), [((2, 3), HOLDS), ((0, 3), IN_PART), ((0, 0), FAILS)]
)
def test_the_verdict_on_convolution(values, verdict):
    both = [_rows("test", {"arc1": value, "wordembed": 1}) for value in values]
    assert _verdict("C16", completion=both[0], response=both[1]) == verdict


@pytest.mark.parametrize(
    ("relu", "tanh", "verdict"),
    [("0.3 0.5", "0.2 0.5", HOLDS), ("0.2 0.495", "0.5 0.4", IN_PART), ("0.2 0.3", "0.5", FAILS)],
)
def test_the_verdict_on_relu(relu, tanh, verdict):
    lines = [
        {"activation": name, "rate": "0.001", "dev": dev}
        for name, dev in (("relu", relu), ("tanh", tanh))
    ]
    assert _verdict("C24", activations=lines) == verdict
    assert _verdict("C24", activations=lines[:1]) is None


@pytest.mark.parametrize(
    ("arc2", "verdict"), [((0.4, 0.42), HOLDS), ((0.4, 0.4), IN_PART), ((0.4, 0.3), IN_PART)]
)
def test_the_verdict_on_batches(arc2, verdict):
    lines = [
        {"model": model, "batch": batch, "dev": f"0.1 {best}"}
        for model, values in (("arc1", (0.3, 0.4)), ("arc2", arc2))
        for batch, best in (("20", values[0]), ("100", values[1]), ("200", 0.1))
    ]
    assert _verdict("C25", batches=lines) == verdict


@pytest.mark.parametrize(
    ("similar", "verdict"), [((0.3, 0.3), HOLDS), ((0.3, 0.3, 0.5), IN_PART), ((0.3, 0.5), FAILS)]
)
def test_the_verdict_on_easier_responses(similar, verdict):
    models = ("arc2", "arc1", "senna")[: len(similar)]
    completion = [
        line | {"similar": str(share)}
        for line, share in zip(_rows("test", dict.fromkeys(models, 0.6)), similar, strict=True)
    ]
    response = _rows("test", dict.fromkeys(models, 0.4))
    assert _verdict("C29", completion=completion, response=response) == verdict


@pytest.mark.parametrize(
    ("leads", "verdict"), [((0.1, 0.1), HOLDS), ((0.1, -0.1), IN_PART), ((-0.1, -0.1), FAILS)]
)
def test_the_verdict_on_the_other_bag_of_words(leads, verdict):
    both = [_rows("test", {"wordembed": 0.5 + lead, "deepmatch": 0.5}) for lead in leads]
    assert _verdict("C30", completion=both[0], response=both[1]) == verdict


def test_rows_of_cells_keep_the_order_of_words(tables):
    counts = order_of_rows(networks=2)
    rows, earlier, later = counts.values()
    # 14 windows, 7 cells, 5 and 3 of the next layers; the last layer has one row.
    assert (rows, earlier, later) == (2 * (13 + 6 + 4 + 2), 0, 2 * (13 + 6 + 4 + 2))
    assert _verdict("C31", constructions=tables["constructions"]) == HOLDS
    lines = [{"claim": "C31", "gate": "", "what": what, "value": value}
             for what, value in zip(counts, (50, 1, 49), strict=True)]  # fmt: skip
    assert _verdict("C31", constructions=lines) == FAILS


@pytest.mark.parametrize(("lead", "verdict"), [(0.05, HOLDS), (0.01, IN_PART), (-0.01, IN_PART)])
def test_the_verdict_on_large_margins(lead, verdict):
    found = {"arc2": 0.5, "arc1": 0.4, "senna": 0.3, "wordembed": 0.5 - lead}
    completion = [line | {"similar": line["test"]} for line in _rows("test", found)]
    response = _rows("test", {"arc2": 0.5, "arc1": 0.4, "senna": 0.3})
    assert _verdict("C32", completion=completion, response=response) == verdict


@pytest.mark.parametrize(
    ("values", "verdict"), [((0.6, 0.6), HOLDS), ((0.6, 0.5), IN_PART), ((0.5, 0.5), FAILS)]
)
def test_the_verdict_on_trained_vectors(values, verdict):
    fixed = _rows("test", {"arc1": 0.5, "arc2": 0.5})
    trained = _rows("test", dict(zip(("arc1", "arc2"), values, strict=True)), "trained")
    assert _verdict("C17", completion=fixed + trained) == verdict
    # A seed that was trained in one way only does not count.
    other = [line | {"seed": "1"} for line in _rows("test", {"arc1": 9})]
    assert _verdict("C17", completion=fixed + trained + other) == verdict


def test_the_verdict_on_random_negatives():
    assert _verdict("C18", completion=_rows("test", {"arc2": 0.74})) == HOLDS
    assert _verdict("C18", completion=_rows("test", {"arc2": 0.73})) == FAILS


@pytest.mark.parametrize(
    ("key", "accuracy", "f1", "verdict"),
    [("C20", 0.7, 0.8, HOLDS), ("C20", 0.7, 0.7, IN_PART), ("C20", 0.6, 0.7, FAILS),
     ("C27", 0.7, 0.8, HOLDS), ("C27", 0.76, 0.8, FAILS)],
)  # fmt: skip
def test_the_verdicts_on_the_paraphrase_corpus(key, accuracy, f1, verdict):
    base = {"vectors": "fixed", "dropout": "0.5", "seed": "0", "dev": "0.7"}
    base |= {"accuracy": str(accuracy), "high": str(accuracy + 0.02), "f1": str(f1)}
    lines = [{"set": "msrp", "model": model, **base} for model in ("arc1", "arc2")]
    assert _verdict(key, labelled=lines) == verdict
    assert _verdict(key, labelled=[line | {"set": "sick"} for line in lines]) == UNTESTED


@pytest.mark.parametrize(
    ("similar", "verdict"), [(0.1, HOLDS), (0.3, IN_PART)]
)  # fmt: skip
def test_the_verdict_on_urae(similar, verdict):
    lines = [
        line | {"similar": figure}
        for line, figure in zip(
            _rows("test", {"urae": 0.2, "arc1": 0.5}), (similar, 0.2), strict=True
        )
    ]
    assert _verdict("C19", completion=lines) == verdict


def _searched(optimiser, figures, model="arc2"):
    return [{"optimiser": optimiser, "rate": str(rate), "model": model, "dev": f"0.1 {figure}"}
            for rate, figure in figures.items()]  # fmt: skip


def test_the_rate_is_the_lowest_within_a_standard_error():
    lines = _searched("adam", {0.001: 0.40, 0.002: 0.43, 0.003: 0.44}) + _searched("sgd", {0.1: 1})
    assert searched_rate(lines, "arc2") == 0.002
    assert searched_rate((), "arc2") == 0.001


def test_lines_are_reported_at_the_best_rate_on_dev():
    slow, fast = _rows("test", {"arc2": 0.5})[0], _rows("test", {"arc2": 0.4})[0]
    fast |= {"rate": "0.003", "dev": "0.6"}
    assert reported([slow, fast]) == [fast]


@pytest.mark.parametrize(
    ("sgd", "verdict"), [((0.5, 0.5), HOLDS), ((0.5, 0.4), IN_PART), ((0.4, 0.4), FAILS)]
)
def test_the_verdict_on_plain_descent(sgd, verdict):
    lines = []
    for model, figure in zip(("arc1", "arc2"), sgd, strict=True):
        lines += _searched("adam", {0.001: 0.5}, model) + _searched("sgd", {0.1: figure}, model)
    assert _verdict("C21", rates=lines) == verdict


@pytest.mark.parametrize(
    ("key", "variant", "sign"),
    [("C22", "windows of 5 words", 1), ("C23", "three convolutions", -1)],
)
def test_the_verdicts_on_variants(key, variant, sign):
    rates = _searched("adam", {0.001: 0.5})
    for gain, verdict in ((0.1, HOLDS), (-0.1, FAILS)):
        line = {"variant": variant, "model": "arc2", "dev": str(0.5 + sign * gain)}
        assert _verdict(key, rates=rates, variants=[line]) == verdict


@pytest.mark.parametrize(
    ("gaps", "verdict"), [((-0.1, 0.1), HOLDS), ((-0.1, -0.05), IN_PART), ((0.1, 0), FAILS)]
)
def test_the_verdict_on_more_data(gaps, verdict):
    lines = []
    for pairs, gap in zip((1000, 2000), gaps, strict=True):
        some = _rows("test", {"arc2": 0.5 + gap, "wordembed": 0.5})
        lines += [{**line, "pairs": str(pairs)} for line in some]
    assert _verdict("C11", learning=lines) == verdict


@pytest.mark.parametrize(
    ("values", "verdict"), [((1, 2, 3), HOLDS), ((1, 4, 5), IN_PART), ((4, 4, 5), FAILS)]
)
def test_the_verdict_on_the_simple_baseline(values, verdict):
    others = dict(zip(("senmlp", "senna", "arc1"), values, strict=True))
    assert _verdict("C12", completion=_rows("test", {"wordembed": 3.5, **others})) == verdict


@pytest.mark.parametrize(
    ("gain", "lost", "verdict"), [(0.1, 0.1, HOLDS), (0, 0.1, IN_PART), (0, 0, FAILS)]
)
def test_the_verdict_on_small_sets(gain, lost, verdict):
    lines = [
        {"set": "sick", "vectors": "fixed", "seed": "0", "model": model, "dropout": str(dropout),
         "accuracy": str(0.6 + 2 * dropout * gain), "dev": f"0.4 0.5 {0.5 - lost}"}
        for model in ("arc1", "arc2") for dropout in (0.0, 0.5)
    ]  # fmt: skip
    assert _verdict("C14", labelled=lines) == verdict


# -- measurements ---------------------------------------------------------------------------------


def test_the_constructions_are_those_of_the_file(tables):
    written = {(row["claim"], row["gate"], row["what"]): row["value"]
               for row in tables["constructions"]}  # fmt: skip
    for gate, rank in (("and", 1), ("printed", 2)):
        gaps = contained(gate)
        share = f"{np.mean(gaps > 1e-9):.3f}"
        assert written["C5", gate, "share of pairs that differ"] == share
        assert (gaps.max() < 1e-12) == (gate == "and")
        assert max(ranks(gate)) == rank
        assert (pooling(gate) == 0) == (gate == "and")
    assert float(written["C3", "", "largest difference of scores"]) == senna_in_arc1().max() < 1e-12


def test_the_paper_has_a_number_for_every_system():
    for table, without in ((1, set()), (2, {"urae"}), (3, {"deepmatch", "urae"})):
        systems = {system for system, _ in printed(table)}
        assert systems <= set(NAMES)
        assert set(MODELS) - systems == without
    assert set(NAMES) >= {*MODELS, *TOWERS}
    assert printed(1)["arc2", "P@1"] == 49.62


def _log():
    builder = ClickLogBuilder()
    for k in range(20):
        builder.add(f"q{k} a", f"t{k} b c d")
    return builder.build()


def test_a_part_of_a_log_is_in_every_larger_one():
    small, large = (set(part_of(_log(), n).queries) for n in (5, 10))
    assert len(small) == 5 and len(large) == 10 and small < large


def test_shuffled_titles_are_skipped_titles():
    log = with_shuffled(_log())
    assert log.skipped_offsets.tolist() == list(range(21))
    for p, skipped in enumerate(log.skipped_index):
        title, other = log.titles[log.title_index[p]], log.titles[skipped]
        assert title != other and sorted(title.split()) == sorted(other.split())
    assert shuffled("a a", np.random.default_rng(0)) == "a a"


class ByFirstWord:
    """The score of a title is the place of its first word in the alphabet, or 0 for all."""

    def __init__(self, weight):
        self.weight = weight

    def score_pairs(self, queries, titles, query_index, title_index):
        return np.array([self.weight * ord(titles[k][0]) for k in title_index], float)


def test_the_share_in_order_counts_ties_half():
    queries, titles = ["q"] * 50, ["z a b c d"] * 50
    assert share_in_order(ByFirstWord(0), queries, titles) == 0.5
    rng = np.random.default_rng(0)
    others = [shuffled(title, rng) for title in titles]
    ties = np.mean([other[0] == "z" for other in others])
    assert 0 < ties < 1
    assert share_in_order(ByFirstWord(1), queries, titles) == pytest.approx(1 - ties / 2)
    assert share_in_order(ByFirstWord(-1), queries, titles) == pytest.approx(ties / 2)


def test_dev_of_the_paraphrase_corpus_is_the_end_of_its_train_file(tmp_path):
    head = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
    for part, n in (("train", 510), ("test", 7)):
        lines = (f"{k % 2}\t1\t2\tOne, {part} {k}.\tTwo {part} {k}\r\n" for k in range(n))
        file = tmp_path / f"msr_paraphrase_{part}.txt"
        file.write_text(head + "".join(lines), encoding="utf-8", newline="")
    lab = Laboratory(None, tmp_path / "build", tmp_path, msrp=tmp_path)
    train, dev, test = msrp(lab)
    assert [len(some) for some in (train, dev, test)] == [10, 500, 7]
    assert (train.first[0], dev.first[0], test.second[-1]) == (
        "one train 0", "one train 10", "two test 6",
    )  # fmt: skip
    assert dev.labels.tolist() == [0, 1] * 250


def test_rows_are_written_at_once_and_found_again(tmp_path):
    path = tmp_path / "x" / "rows.csv"
    Rows(path, ("model", "seed", "test"), 2).add("arc2", 0, 0.5)
    again = Rows(path, ("model", "seed", "test"), 2)
    assert again.has("arc2", 0) and not again.has("arc2", 1)
    assert again.row("arc2", 0)["test"] == "0.5"


def test_hits_are_packed_and_unpacked():
    hits = np.random.default_rng(0).integers(0, 2, 13).astype(float)
    assert unpacked({"n": "13", "bits": packed(hits)}).tolist() == hits.tolist()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A completion set of made-up words in the layout of the shared data."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(30)]
    texts = [" ".join(rng.choice(words, 5)) for _ in range(80)]
    (folder / "completion").mkdir()
    pairs = (f"{query}\t{title}\n" for query, title in zip(texts[:40], texts[40:], strict=True))
    (folder / "completion" / "pairs.tsv").write_text("".join(pairs), encoding="utf-8")
    for part in ("dev", "test", "test_hard"):
        place = folder / "completion" / part
        place.mkdir()
        for name, some in (("queries", texts[:8]), ("docs", texts[40:])):
            lines = (f"{name[0]}{k}\t{text}\n" for k, text in enumerate(some))
            (place / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
        grades = (f"q{q} 0 d{(q + k) % 8} {int(k == 0)}\n" for q in range(8) for k in range(5))
        (place / "qrels.txt").write_text("".join(grades), encoding="utf-8")
    (folder / "word_vectors").mkdir()
    with gzip.open(folder / "word_vectors" / "vectors.txt.gz", "wt", encoding="utf-8") as file:
        file.write("30 4\n")
        for word in words:
            file.write(f"{word} {' '.join(f'{x:.3f}' for x in rng.normal(size=4))}\n")
    return folder


def test_a_part_trains_each_row_once(data, tmp_path, capsys):
    lab = Laboratory(data, tmp_path / "build", tmp_path, seeds=(0,), models=("wordembed",))
    path = tmp_path / "completion.csv"
    completion(lab, path)
    assert "completion-wordembed-0: epoch 1" in capsys.readouterr().err
    written = path.read_text(encoding="utf-8")
    rows = tables_in(tmp_path)["completion"]
    assert [row["vectors"] for row in rows] == ["fixed", "trained"]
    for row in rows:
        dev = list(map(float, row["dev"].split()))
        assert max(dev) == dev[int(row["kept"]) - 1] and len(row["loss"].split()) == len(dev)
        assert float(row["order"]) == 0.5  # a sum has no word order
        assert int(row["parameters"]) == 2 * 4 * 200 + 200 + 200 + 1
        assert 0 <= float(row["test"]) <= 1
    completion(lab, path)
    assert "epoch" not in capsys.readouterr().err
    # A row that is missing is made again from the kept model.
    path.write_text("".join(written.splitlines(keepends=True)[:2]), encoding="utf-8")
    completion(lab, path)
    assert "epoch" not in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == written
