"""Rows of benchmarks/rivals.py and benchmarks/embedding.py on a log of a few lines, and by hand."""

import sys
import types
from functools import partial

import numpy as np
import pytest
import rival_scores
import rivals
from rival_scores import Lab, Part
from rivals import ALL, CLICKS, JUDGED, OURS, TUNED, Contest, Matrix

from sentemb.comparison.data_folder import read_data
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import HeldOutClicks

PAIRS = [
    ("fix tap", "Repair a Faucet"),
    ("dripping tap", "Repair a Faucet"),
    ("mend pipe", "Repair a Pipe"),
    ("paint wall", "Paint a Wall"),
    ("colour for walls", "Paint a Wall"),
    ("fix pipe", "Repair a Pipe"),
    ("paint tap", "Repair a Faucet"),
]
TITLES = ["Repair a Pipe", "Paint a Wall", "Repair a Faucet", "Build a Shed"]
QUERIES = {"the tap drips": 2, "walls": 1, "pipe": 0, "wood house": 3, "tap": 2, "wall paint": 1}


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "shop"
    for name in ("dev", "test"):
        part = folder / name
        part.mkdir(parents=True)
        texts = [f"q{n}\t{query}\n" for n, query in enumerate(QUERIES)]
        (part / "queries.tsv").write_text("".join(texts))
        (part / "docs.tsv").write_text("".join(f"d{n}\t{t}\n" for n, t in enumerate(TITLES)))
        grades = [
            f"q{q} 0 d{n} {2 * (n == best)}\n"
            for q, best in enumerate(QUERIES.values())
            for n in range(len(TITLES))
        ]
        (part / "qrels.txt").write_text("".join(grades))
    (folder / "pairs.tsv").write_text("".join(f"{query}\t{title}\n" for query, title in PAIRS))
    return tmp_path / "data"


@pytest.fixture
def lab(data, tmp_path, monkeypatch):
    monkeypatch.setattr(rival_scores, "BUILD", tmp_path / "rivals")
    monkeypatch.setattr(rival_scores, "TRANSFORMER", tmp_path / "transformer")
    (tmp_path / "transformer").mkdir()
    return Lab(data, "shop")


def as_dict(log_scores, lab):
    return [dict(zip(lab.log.titles, row, strict=True)) for row in log_scores.tolist()]


def test_the_memory_of_the_log_pair_by_pair(lab, monkeypatch):
    monkeypatch.setattr(rival_scores, "NEAREST", (2,))
    monkeypatch.setattr(rival_scores, "WAYS", ("max", "sum", 2))
    rng = np.random.default_rng(0)
    similar = rng.random((5, len(lab.log.queries))).astype(np.float32)
    found = lab.memory([similar[:3], similar[3:]])
    clicked = {title: {q for q, t in PAIRS if t == title} for title in lab.log.titles}
    for q, row in enumerate(similar.tolist()):
        of = dict(zip(lab.log.queries, row, strict=True))
        near = set(sorted(of, key=of.get)[-2:])
        for title, queries in clicked.items():
            expected = {
                "max": max(of[query] for query in queries),
                "sum": sum(of[query] for query in queries),
                2: sum(of[query] for query in queries & near),
            }
            for way, value in expected.items():
                assert as_dict(found[way], lab)[q][title] == pytest.approx(value), (way, title)


def test_a_title_that_is_not_in_the_log_is_never_remembered(lab):
    part = lab.parts["test"]
    for rival in (rival_scores.Nearest(lab), rival_scores.NearestLetters(lab)):
        scores = rival.scores(part, how="max")
        assert scores.shape == (len(QUERIES), len(TITLES))
        assert (scores[:, 3] == 0).all()
        # "tap" was in three queries; the shortest holds nothing but it and one more word.
        assert scores[4].argmax() == 2
    stems = rival_scores.Nearest(lab).scores(part, how="max")
    assert stems[1, 1] > 0  # "walls" is found by the stem of "wall"


def test_bm25_reads_repeated_titles_and_clicked_queries(lab):
    rival, part = rival_scores.ClickedBM25(lab), lab.parts["test"]
    setting = {"k1": 0.9, "b": 0.0, "words": "stems"}
    plain = rival_scores.BM25(lab).scores(part, **setting)
    clicked = {
        clicks: rival.scores(part, **setting, titles=1, clicks=clicks)
        for clicks in ("pairs", "shares")
    }
    for scores in clicked.values():
        assert not plain[4].any() and scores[4].argmax() == 2 and scores[4, 3] == 0
    once, twice = (rival.scores(part, **setting, titles=n, clicks="pairs")[2, 0] for n in (1, 2))
    assert twice > once
    assert len(rival.settings) == 6 * len(rival_scores.BM25(lab).settings)


def test_letters_and_translations_find_what_words_miss(lab):
    part = lab.parts["test"]
    letters = rival_scores.Letters(lab).scores(part)
    assert letters[2].argmax() == 0 and letters[5].argmax() == 1  # "pipe", "wall paint"
    translation = rival_scores.Translation(lab)
    scores = translation.scores(part, **translation.settings[0])
    assert scores.shape == (len(QUERIES), len(TITLES))
    assert scores[4].argmax() == 2  # no title has "tap", but queries of a faucet have


def test_popularity_counts_clicks(lab):
    scores = rival_scores.Popularity(lab).scores(lab.parts["test"])
    np.testing.assert_allclose(scores[0], np.log1p([2, 2, 3, 0]) / np.log1p(3), rtol=1e-6)
    assert (scores == scores[0]).all()


def test_a_matrix_ranks_judged_titles_and_the_catalogue(lab):
    part = Part(lab.parts["test"].judged)
    scores = np.zeros((len(QUERIES), len(TITLES)), np.float32)
    scores[range(len(QUERIES)), list(QUERIES.values())] = 1
    scores[0] = [3, 1, 2, 0]  # the right title is second
    matrix = Matrix(part, scores)
    ndcg = evaluate_model(matrix, part.judged).values[:, 0]
    assert ndcg.tolist() == [0, 1, 1, 1, 1, 1]
    held_out = HeldOutClicks(part.clicks, part.titles, ["hit@1", "mrr@10"]).evaluate(matrix)
    of = dict(zip(held_out.queries, held_out.values.tolist(), strict=True))
    assert of["the tap drips"] == [0, 0.5] and of["walls"] == [1, 1]
    places, found = matrix.find(["pipe", "the tap drips"], 2)
    assert places[1].tolist() == [0, 2] and found[1].tolist() == [3, 2] and places[0, 0] == 0


class Given(rival_scores.Rival):
    """The right titles up to a share, by its setting on dev and another one on test."""

    settings = ({"right": 1}, {"right": 5}, {"right": 3})
    asked = 0

    def scores(self, part, right):
        type(self).asked += 1
        scores = np.zeros((len(QUERIES), len(TITLES)), np.float32)
        best = np.array(list(QUERIES.values()))
        for q in range(len(QUERIES)):
            scores[q, best[q] if q < right else (best[q] + 1) % len(TITLES)] = 1
        return scores


class FewClicks(rival_scores.ClickedBM25):
    """With some of its settings."""

    settings = rival_scores.ClickedBM25.settings[::25]


@pytest.fixture
def contest(lab, monkeypatch):
    given = {OURS: Given, CLICKS: FewClicks, "popularity": rival_scores.Popularity}
    monkeypatch.setattr(rivals, "RIVALS", given)
    sums = {"ours and clicks": (OURS, CLICKS), "ours and the transformer": (OURS, TUNED)}
    monkeypatch.setattr(rivals, "SUMS", sums)
    return Contest(lab)


def test_dev_chooses_the_setting_and_a_row_is_measured_once(contest, lab):
    assert contest.names() == [OURS, CLICKS, "popularity", "ours and clicks"]
    row = contest.row(OURS)
    for way in (JUDGED, ALL):
        assert row[way]["setting"] == {"right": 5}
        assert rivals.values_of(row, way)[:, 0].sum() == 5
    before = Given.asked
    assert Contest(lab).row(OURS) == row and Given.asked == before


def test_a_sum_is_the_weighted_sum_of_its_parts(contest, lab):
    part = lab.parts["test"]
    setting = contest.row("ours and clicks")[JUDGED]["setting"]
    ours, clicks = setting["parts"]
    first = Given(lab).scores(part, **ours)
    second = rival_scores.ClickedBM25(lab).scores(part, **clicks)
    for weights in (setting["weights"], [1.0, 0.3], [0.0, -2.0]):
        scores = contest._matrix("ours and clicks", "test", {**setting, "weights": weights})
        np.testing.assert_allclose(scores, weights[0] * first + weights[1] * second, atol=1e-5)
    assert setting["weights"][0] > 0 and ours["right"] == 5


def test_the_page_names_the_strongest_rival(contest):
    rows = {name: contest.row(name) for name in contest.names()}
    history = [
        {"rate": "2e-4", "epoch": str(n), "loss": "1", "dev NDCG@1": v, "CPU s": "9", "wall s": "9"}
        for n, v in enumerate(("0.4", "0.5", "0.45"), 1)
    ]
    tables = rivals.tables_of({"shop": rows}, {"shop": history})
    tables = {heading: list(lines) for heading, lines in tables.items()}
    best = max(rivals.values_of(rows[name], JUDGED)[:, 0].mean() for name in (CLICKS, "popularity"))
    (text,) = tables["strongest"]
    assert text.startswith(
        f"- shop: 0.833. The strongest rival is `{CLICKS}` with {best:.3f}, +0.167 ("
    )
    (row,) = (line for line in tables[""] if line.startswith("| shop | defaults |"))
    assert [cell.strip() for cell in row.split("|")][-3:-1] == ["-", "right 5"]
    assert len(tables["Epochs of the transformer"]) == 2 + len(history)


def test_the_transformer_is_read_from_its_files(lab, tmp_path):
    rng = np.random.default_rng(0)
    queries, titles = list(QUERIES), [*TITLES, "of the log only"]
    vectors = {"queries": np.array(queries), "titles": np.array(titles)}
    vectors |= {f"{kind}_vectors": rng.normal(size=(len(vectors[kind]), 4)) for kind in (*vectors,)}
    tuned = rival_scores.Tuned(lab)
    assert not tuned.is_there()
    folder = tmp_path / "transformer" / "shop"
    folder.mkdir()
    for epoch in (1, 2):
        np.savez(folder / f"lr1e-4-epoch{epoch}.npz", **vectors)
    rows = "epoch,loss,dev NDCG@1,CPU s,wall s,sentences/s\n1,2,.4,10,11,400\n2,1,.5,20,22,300\n"
    (folder / "lr1e-4.csv").write_text(rows)
    assert tuned.settings == ({"run": "lr1e-4-epoch1"}, {"run": "lr1e-4-epoch2"})
    assert not rival_scores.Transformer(lab).is_there()
    expected = vectors["queries_vectors"] @ vectors["titles_vectors"][:4].T
    part = lab.parts["test"]
    np.testing.assert_allclose(tuned.scores(part, **tuned.settings[0]), expected, rtol=1e-5)
    assert tuned.cost("lr1e-4-epoch1") == (10, 300)
    assert tuned.cost("lr1e-4-epoch2") == (30, 300)


# -- benchmarks/embedding.py ----------------------------------------------------------------------

WORDS = ["tap", "faucet", "pipe", "wall", "paint", "repair", "shed", "build", "fix", "drips"]


class Words:
    """Counts of some words, and how often each text was encoded."""

    def __init__(self):
        self.read = []

    def encode(self, texts):
        self.read += texts
        counts = [[text.lower().count(word) for word in WORDS] for text in texts]
        return np.array(counts, np.float32) + np.float32(0.01)

    def encode_query(self, texts, show_progress_bar=None):
        return self.encode(texts)


@pytest.fixture
def embedding():
    pytest.importorskip("torch", reason="the transformer needs PyTorch; sentemb[bench]")
    import embedding

    return embedding


@pytest.fixture
def words(embedding, monkeypatch):
    made = Words()
    monkeypatch.setattr(embedding, "Transformer", lambda: made)
    package = types.SimpleNamespace(load_model=lambda device: made)
    monkeypatch.setitem(sys.modules, embedding.PACKAGE, package)
    return made


def test_a_text_is_encoded_once_and_its_vector_kept(embedding, words, tmp_path):
    class Data:
        log = types.SimpleNamespace(queries=["tap"], titles=["a wall"])
        dev = test = types.SimpleNamespace(queries=["tap"], titles=["a wall"])

    path = tmp_path / "shop" / "vectors.npy"
    first, second = embedding.published(path, Data), embedding.published(path, Data)
    assert words.read == ["tap", "a wall"]
    for one in (first, second):
        np.testing.assert_array_equal(one.encode_query(["a wall"]), Words().encode(["a wall"]))
    second.encode_document(["pipe", "pipe"])
    second.encode_query(["pipe"])
    assert words.read == ["tap", "a wall", "pipe"]


def test_a_log_without_fine_tuning_has_the_published_transformer_alone(
    embedding, monkeypatch, tmp_path
):
    monkeypatch.setattr(embedding, "published", lambda path, data: "as published")
    monkeypatch.setattr(embedding, "best_vectors", {"tldr": ({}, "weights")}.get)
    cases = {name: list(embedding.cases_of(name, None)) for name in embedding.SETS}
    assert [case.heading for case in cases.pop("tldr")] == ["tldr", "tldr, fine-tuned"]
    assert not any(cases.values())


def test_the_time_of_a_query_and_its_share_in_the_transformer(embedding, monkeypatch):
    ticks = iter(range(10**6))
    monkeypatch.setattr(embedding, "CLOCKS", {"cpu": lambda: next(ticks)})
    monkeypatch.setattr(embedding, "ASKED", 2)
    asked = []
    timed = types.SimpleNamespace(seconds=0.0)

    class Slow:
        def find(self, queries, k):
            (query,) = queries
            asked.append(query)
            timed.seconds += 0.25
            next(ticks)

    class Fast:
        def find(self, queries, k):
            pass

    queries = [f"q{n}" for n in range(2 * (embedding.ROUNDS + 1))]
    times = embedding.times_of({"slow": Slow(), "fast": Fast()}, queries, timed)
    # A turn of two queries: a tick for each, and one for the clock itself.
    assert times == {"slow": [1500, 250], "fast": [500, 0]}
    assert asked == queries, "a turn asks what another has asked, which may be remembered"


def test_all_systems_of_a_log(data, embedding, words, tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "BUILD", tmp_path / "systems")
    monkeypatch.setattr(embedding, "ROUNDS", 1)
    small = partial(embedding.trained, model="bag", epochs=2, hard_negatives=0)
    monkeypatch.setattr(embedding, "trained", small)
    monkeypatch.setattr(embedding, "SEEDS", (0, 1))
    source = data / "shop"
    shop = read_data(source)
    case = embedding.Case("shop", tmp_path / "kept", embedding.Remembered({}))
    found = embedding.measure(source, shop, case, 1)
    head, *rows = embedding.rows_of(found)
    table = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert len(table) == 12 and list(found["weights"]) == [
        "ranker, `--embedding`", "ranker, `--teacher --vectors --embedding`",
    ]  # fmt: skip
    seeds = {label: figures["seeds"] for label, figures in table.items()}
    assert seeds["ranker"] == seeds["model, `--teacher`"] == "2" and seeds[embedding.ALONE] == "-"
    for label, figures in found["values"].items():
        assert table[label]["hit@1"] == f"{np.mean(figures['hit@1']):.3f}"
        assert len(figures["hit@1"]) == len(QUERIES)
        # A part of no weight is not asked.
        may_ask = label == embedding.ALONE or "--embedding" in label
        assert table[label]["of these in the transformer"] == "-" or may_ask
    assert table[embedding.ALONE]["of these in the transformer"] != "-"
    assert table["ranker"]["hit@1 minus ranker"] == "-"
