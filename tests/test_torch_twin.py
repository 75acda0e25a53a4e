"""The whole loss once more in PyTorch, whose automatic derivatives are the reference.

Everything from the letters on is written anew here: trigram counts, towers, cosines, loss.
"""

from dataclasses import replace

import numpy as np
import pytest
from helpers import (
    FEED_FORWARD,
    VARIANTS,
    each_variant,
    made_up_model,
    made_up_texts,
    relative_error,
)

from sentemb import loss_and_gradient
from sentemb.models.words.workspace import Workspace
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.parallel import Workers
from sentemb.training.objectives.candidates import BatchCandidates, SoftTargets
from sentemb.training.objectives.softmax import embedding_loss

torch = pytest.importorskip("torch", reason="PyTorch is the reference; pip install sentemb[bench]")

GAMMA = 10.0
TOLERANCE = 1e-10


def trigram_counts(text, trigrams):
    rows = []
    for word in text.split():
        marked = f"#{word}#"
        found = [marked[k : k + 3] for k in range(len(marked) - 2)]
        rows.append([float(found.count(trigram)) for trigram in trigrams])
    return torch.tensor(rows, dtype=torch.float64)


def peephole(p, gate, c):
    wp = p.get(f"Wp{gate}")
    if wp is None:
        return 0.0
    return wp @ c if wp.ndim == 2 else wp * c


def read(p, L, linear, steps, keep_cell_path):
    """y after the last row of L. Before the last ``steps`` rows what is cut off is detached."""
    n = next(iter(p.values())).shape[0]
    y = c = torch.zeros(n, dtype=torch.float64)
    first = 0 if steps is None else max(0, len(L) - steps)
    for t, l in enumerate(L):
        # y(t-1) and, for the gates, c(t-1) are constants if they lie before the window.
        cut = t <= first
        y_seen, c_seen = (y.detach(), c.detach()) if cut else (y, c)
        carried = c.detach() if cut and not keep_cell_path else c
        if "W" in p:
            y = p["W"] @ l + p["Wrec"] @ y_seen + p["b"]
            y = y if linear else torch.tanh(y)
            continue
        o, f, i, candidate = (
            p[f"W{g}"] @ l + p[f"Wrec{g}"] @ y_seen + p[f"b{g}"] if f"W{g}" in p else None
            for g in "1234"
        )
        i = torch.sigmoid(i + peephole(p, 3, c_seen))
        f = 1.0 if f is None else torch.sigmoid(f + peephole(p, 2, c_seen))
        c = f * carried + i * torch.tanh(candidate)
        y = torch.tanh(c)
        if o is not None:
            y = torch.sigmoid(o + peephole(p, 1, c)) * y
    return y / len(L) if linear else y


def read_at_once(p, L, linear):
    """The encoders without recurrence."""
    if "W0" in p:
        y = L[L.any(1)].mean(0) @ p["W0"].T
        for k in range(1, 1 + len(p) // 2):
            y = p[f"W{k}"] @ y + p[f"b{k}"]
            y = y if linear else torch.tanh(y)
        return y
    if "W" in p:
        return p["W"] @ L.sum(0)
    if "Wc1" in p:
        slices = [p[f"Wc{k}"] for k in range(1, 6) if f"Wc{k}" in p]
        reach = len(slices) // 2
        padded = torch.nn.functional.pad(L, (0, 0, reach, reach))
        windows = [sum(W @ padded[t + k] for k, W in enumerate(slices)) for t in range(len(L))]
        h = torch.tanh(torch.stack(windows) + p["bc"]).max(0).values
        return torch.tanh(p["Ws"] @ h + p["bs"])
    h = torch.tanh(p["W1"] @ L.sum(0) + p["b1"])
    return torch.tanh(p["W2"] @ h + p["b2"])


def embed(blocks, text, trigrams, linear, cut):
    L = trigram_counts(text, trigrams)
    if "Wbag" in blocks:
        recurrent = {name: block for name, block in blocks.items() if name != "Wbag"}
        return torch.cat([embed(recurrent, text, trigrams, linear, cut), blocks["Wbag"] @ L.sum(0)])
    if not any("rec" in name for name in blocks):
        return read_at_once(blocks, L, linear)
    if "forward.W3" not in blocks:
        return read(blocks, L, linear, *cut)
    ways = [
        {name.removeprefix(way): blocks[name] for name in blocks if name.startswith(way)}
        for way in ("forward.", "backward.")
    ]
    return torch.cat([read(ways[0], L, linear, *cut), read(ways[1], L.flip(0), linear, *cut)])


def torch_loss_and_gradient(model, queries, titles, negatives, cut=(None, False)):
    parameters = model.parameters()
    if model.shared_towers:
        parameters = {"query": parameters["query"]}
    blocks = {
        side: {
            name: torch.tensor(np.ascontiguousarray(block), requires_grad=True)
            for name, block in some.items()
        }
        for side, some in parameters.items()
    }
    trigrams = model.vocabulary.trigrams
    linear = model.encoder.name == "irnn" or getattr(model.encoder, "linear", False)
    loss = 0
    for query, clicked, others in zip(queries, titles, negatives, strict=True):
        y = embed(blocks["query"], query, trigrams, linear, cut)
        candidates = torch.stack(
            [
                embed(blocks.get("document", blocks["query"]), title, trigrams, linear, cut)
                for title in [clicked, *others]
            ]
        )
        cosines = torch.nn.functional.cosine_similarity(y[None], candidates)
        loss = loss - torch.log_softmax(GAMMA * cosines, 0)[0]
    loss.backward()
    return loss.item(), {
        side: {name: block.grad.numpy() for name, block in some.items()}
        for side, some in blocks.items()
    }


def made_up_problem(seed=0):
    rng = np.random.default_rng(seed)
    queries = made_up_texts(rng, (1, 2, 4, 7, 3))
    titles = made_up_texts(rng, (6, 1, 3, 5, 2))
    others = made_up_texts(rng, (3, 8, 1, 2, 5, 4))
    queries.append(queries[2])  # one query, two clicked titles
    titles.append(others[0])
    negatives = [others[:3], others[1:2], [*others[2:], titles[0]], others, others[4:], [titles[3]]]
    return queries, titles, negatives


def all_texts(problem):
    queries, titles, negatives = problem
    return [*queries, *titles, *(title for some in negatives for title in some)]


def assert_same(model, problem, **truncation):
    queries, titles, negatives = problem
    loss, gradient = loss_and_gradient(model, queries, titles, negatives, gamma=GAMMA, **truncation)
    cut = truncation.get("truncate"), truncation.get("truncation") == "cec"
    expected_loss, expected = torch_loss_and_gradient(model, *problem, cut)
    assert abs(loss - expected_loss) <= TOLERANCE * expected_loss
    for side, blocks in expected.items():
        assert gradient[side].keys() == blocks.keys()
        for name, block in blocks.items():
            error = relative_error(gradient[side][name], block)
            assert error < TOLERANCE, f"{side}.{name}: {error:.1e}"
            assert np.any(block != 0), f"{side}.{name}: the problem does not reach it"


@pytest.mark.parametrize("shared", [False, True], ids=["two-towers", "shared"])
@pytest.mark.parametrize(**each_variant([*VARIANTS, *FEED_FORWARD]))
def test_loss_and_every_gradient(variant, shared):
    problem = made_up_problem()
    assert_same(made_up_model(variant, all_texts(problem), shared=shared), problem)


@pytest.mark.parametrize("mode", ["window", "cec"])
@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize(**each_variant([*VARIANTS[:7], *VARIANTS[-4:]]))
def test_truncated_gradients(variant, steps, mode):
    problem = made_up_problem()
    model = made_up_model(variant, all_texts(problem))
    assert_same(model, problem, truncate=steps, truncation=mode)


@pytest.mark.parametrize("share", [None, 0.0, 0.8])
def test_every_title_of_the_batch_against_every_query(share):
    rng = np.random.default_rng(1)
    n_queries, n_titles, n_pairs, dim = 9, 14, 25, 6
    Yq, Yd = rng.standard_normal((n_queries, dim)), rng.standard_normal((n_titles, dim))
    queries = rng.integers(0, n_queries, n_pairs).astype(np.int32)
    clicked = rng.integers(0, n_titles, n_pairs).astype(np.int32)
    left_out = [
        np.setdiff1d(rng.choice(n_titles, rng.integers(0, 5), replace=False), clicked[r])
        for r in range(n_pairs)
    ]
    weights = rng.uniform(0.1, 2, n_pairs)
    candidates = BatchCandidates(
        queries=queries,
        clicked=clicked,
        offsets=np.cumsum([0] + [some.size for some in left_out], dtype=np.int64),
        excluded=np.concatenate(left_out).astype(np.int32),
    )
    Tq, Td = (unit_rows(rng.standard_normal((n, 5))) for n in (n_queries, n_titles))
    if share is not None:
        shares = np.full(n_pairs, share)
        targets = SoftTargets(Tq[queries], np.ascontiguousarray(Td.T), shares)
        candidates = replace(candidates, targets=targets)
    with Workers(2) as workers:
        losses, Vq, Vd = embedding_loss(Yq, Yd, candidates, GAMMA, weights, workers, Workspace())

    tq, td = (torch.tensor(Y, requires_grad=True) for Y in (Yq, Yd))
    cosines = torch.nn.functional.cosine_similarity(tq[:, None], td[None], dim=2)
    expected = []
    for r in range(n_pairs):
        logits = GAMMA * cosines[queries[r]]
        kept = torch.ones(n_titles, dtype=torch.bool)
        kept[left_out[r]] = False
        log_p = torch.where(kept, logits, -torch.inf).log_softmax(0)
        target = torch.nn.functional.one_hot(torch.tensor(int(clicked[r])), n_titles).double()
        if share is not None:
            taught = torch.tensor(20.0 * Td @ Tq[queries[r]])
            taught = torch.where(kept, taught, -torch.inf).softmax(0)
            part = share * taught[clicked[r]]
            target = part * taught + (1 - part) * target
        expected.append(-weights[r] * (target[kept] * log_p[kept]).sum())
    expected = torch.stack(expected)
    expected.sum().backward()
    assert relative_error(losses, expected.detach().numpy()) < TOLERANCE
    assert relative_error(Vq, tq.grad.numpy()) < TOLERANCE
    assert relative_error(Vd, td.grad.numpy()) < TOLERANCE
