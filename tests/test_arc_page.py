"""docs/arc.md is what its CSV files say, and the functions behind it compute what they say."""

import gzip
import re

import numpy as np
import pytest
from arc_charts import CHARTS
from arc_claims import CLAIMS, FAILS, HOLDS, IN_PART, NAMES, UNTESTED, judged
from arc_constructions import contained, pooling, ranks
from arc_lab import MODELS, TOWERS, Laboratory, Rows, packed, shuffled, unpacked
from arc_parts import (
    PARTS,
    REFERENCE,
    _mean_hits,
    completion,
    differences,
    msrp,
    part_of,
    share_in_order,
    training_of,
    with_shuffled,
)
from arc_tables import SECTIONS, printed
from claims import filled, tables_in
from pages import DOCS, sections_of

from sentemb.data.click_log import ClickLogBuilder

PAGE, RESULTS = DOCS / "arc.md", DOCS / "results" / "arc"


@pytest.fixture(scope="module")
def tables():
    return tables_in(RESULTS)


# -- the page -------------------------------------------------------------------------------------


def test_the_page_is_current(tables):
    assert sections_of(PAGE) == filled(SECTIONS, tables), (
        "run: python benchmarks/arc.py --text-only"
    )


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
            name = training_of("completion", line["vectors"])
            hits = unpacked(measured[name, line["model"], line["seed"], part])
            assert f"{hits.mean():.4f}" == line[column]


def test_differences_are_those_of_the_hits(tables, tmp_path):
    lab = Laboratory(None, tmp_path, RESULTS)
    lines = tables["differences"]
    for name, vectors, part in {(one["set"], one["vectors"], one["part"]) for one in lines}:
        found = _mean_hits(lab, name, vectors, part)
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
    differences(Laboratory(None, tmp_path, tmp_path), tmp_path / "differences.csv")
    (line,) = tables_in(tmp_path)["differences"]
    assert (line["system"], line["reference"], line["vectors"]) == ("arc1", "arc2", "fixed")
    assert float(line["low"]) < -0.3 and float(line["p"]) < 0.001


# -- claims ---------------------------------------------------------------------------------------


def test_every_claim_has_a_name_of_its_own_and_a_verdict(tables):
    assert len({claim.key for claim in CLAIMS}) == len(CLAIMS)
    found = judged(tables)
    assert {verdict for _, verdict, _ in found} <= {HOLDS, IN_PART, FAILS, UNTESTED}
    measured = {claim.key for claim, verdict, _ in found if verdict != UNTESTED}
    assert {"C1", "C5", "C6", "C7", "C8", "C10", "C12", "C14"} <= measured
    assert {verdict for _, verdict, _ in judged({})} == {UNTESTED}


def _verdict(key, **given):
    claim = next(one for one in CLAIMS if one.key == key)
    found = claim.judge(given)
    return found and found[0]


def _rows(column, found):
    return [{"model": model, "seed": "0", column: str(value)} for model, value in found.items()]


@pytest.mark.parametrize(
    ("arc2", "arc1", "verdict"), [(0.6, 0.5, HOLDS), (0.6, 0.6, IN_PART), (0.5, 0.5, FAILS)]
)
def test_the_verdict_on_order_that_is_taught(arc2, arc1, verdict):
    lines = _rows("order", {"arc2": arc2, "arc1": arc1})
    assert _verdict("C4", auxiliary=lines) == verdict
    assert _verdict("C4", auxiliary=lines[:1]) is None


@pytest.mark.parametrize(
    ("arc2", "arc1", "verdict"), [(0.6, 0.61, HOLDS), (0.6, 0.54, IN_PART), (0.6, 0.5, FAILS)]
)
def test_the_verdict_on_order_that_is_not_taught(arc2, arc1, verdict):
    lines = _rows("order", {"arc2": arc2, "arc1": arc1})
    assert _verdict("C8", completion=lines) == verdict


@pytest.mark.parametrize(
    ("arc2", "arc1", "verdict"), [(0.5, 0.5, HOLDS), (0.52, 0.5, IN_PART), (0.52, 0.52, FAILS)]
)
def test_the_verdict_on_the_additional_task(arc2, arc1, verdict):
    base = _rows("test", {"arc2": 0.5, "arc1": 0.5})
    own = _rows("test", {"arc2": arc2, "arc1": arc1})
    assert _verdict("C9", auxiliary=own, completion=base) == verdict


@pytest.mark.parametrize(
    ("values", "verdict"),
    [((4, 3, 2, 1), HOLDS), ((4, 3, 1, 2), IN_PART), ((3, 4, 2, 1), FAILS), ((4, 3, 2), None)],
)
def test_the_verdict_on_the_order_of_systems(values, verdict):
    found = dict(zip(("arc2", "arc1", "senna", "wordembed"), values, strict=False))
    assert _verdict("C10", completion=_rows("test", found)) == verdict


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


def test_the_paper_has_a_number_for_every_system():
    for table, without in ((1, set()), (2, {"urae"}), (3, {"deepmatch", "urae"})):
        systems = {system for system, _ in printed(table)}
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
