"""Pair models once more in PyTorch: scores, every gradient, and a training of 20 updates.

Everything from the letters on is written again here, text by text and with padding: windows side by
side, masks for what is off, pooling, MLP, hinge and Adam.
"""

import numpy as np
import pytest
from helpers import made_up_texts, relative_error
from test_pair_models import LENGTHS, case_name, made_up_matcher
from test_torch_twin import trigram_counts

from sentemb.data.click_log import ClickLogBuilder
from sentemb.gradients.pair_models import PairPasses
from sentemb.models.pairs.matcher import Matcher
from sentemb.system.parallel import Workers
from sentemb.training.batches.corpus import Corpus
from sentemb.training.objectives.pair_losses import PairObjective
from sentemb.training.pairs.pair_lessons import ClickLessons
from sentemb.training.pairs.pair_settings import PairSettings
from sentemb.training.pairs.pair_task import PairTask

torch = pytest.importorskip("torch", reason="PyTorch is the reference; pip install sentemb[bench]")

torch.set_num_threads(1)
TOLERANCE = 1e-10
CASES = [
    ("wordembed", {"mlp_layers": 2}),
    ("senmlp", {}),
    ("senna", {"maps": (5,)}),
    ("arc1", {"maps": (5, 4)}),
    ("arc1", {"maps": (5, 4, 3), "window": 2, "shared_towers": True}),
    ("arc2", {"maps": (5, 4)}),
    ("arc2", {"maps": (5, 4), "gate": "printed"}),
    ("arc2", {"maps": (5, 4, 3), "window": 2, "mlp_layers": 2}),
]


def padded(model, p, words):
    """The words of a text in rows, then zeros, and which rows are words."""
    X = torch.zeros(model.max_words, model.embedding, dtype=torch.float64)
    X[: len(words)] = words @ p["W"].T
    return X, torch.arange(model.max_words) < len(words)


def windows(X, k):
    return torch.stack([X[i : i + k].reshape(-1) for i in range(len(X) - k + 1)])


def pool(Z, on, axis):
    """Pairs of cells along an axis; a cell that is off counts as 0, which no output is below."""
    if Z.shape[axis] % 2:
        room = [one if k != axis else 1 for k, one in enumerate(Z.shape)]
        Z, on = (
            torch.cat([Z, torch.zeros(room)], axis),
            torch.cat([on, on.new_zeros(room[:-1])], axis),
        )
    halves = [torch.arange(start, Z.shape[axis], 2) for start in (0, 1)]
    Z = torch.maximum(*(Z.index_select(axis, half) for half in halves))
    return Z, on.index_select(axis, halves[0]) | on.index_select(axis, halves[1])


def one_text(model, p, side, X, is_word):
    """h of one text."""
    if model.name == "wordembed":
        return X.sum(0)
    if model.name == "senmlp":
        return X.reshape(-1)
    k, suffix = model.window, "" if "W1" in p else side
    Z, on = X, is_word
    for number in range(1, 2 * len(model.maps), 2):
        on = on[: len(Z) - k + 1] if number == 1 else on.unfold(0, k, 1).any(1)
        Z = torch.relu(windows(Z, k) @ p[f"W{number}{suffix}"].T + p[f"b{number}{suffix}"])
        Z = Z * on[:, None]
        if model.name == "senna":
            return Z.max(0).values
        Z, on = pool(Z, on, 0)
    return Z.reshape(-1)


def plane(model, p, X, Y, in_x, in_y):
    """The last plane of ARC-II, every window of a text with every window of the other."""
    k = model.window
    size = model.max_words - k + 1
    wx, wy = windows(X, k), windows(Y, k)
    both = torch.cat([wx[:, None].expand(-1, size, -1), wy.expand(size, -1, -1)], 2)
    W = torch.cat([p["W1x"], p["W1y"]], 1)
    Z = torch.relu(both @ W.T + p["b1"])
    in_x, in_y = in_x[:size, None], in_y[:size]
    on = in_x & in_y if model.gate == "and" else in_x | in_y
    for number in range(1, 2 * len(model.maps), 2):
        if number > 1:
            W = p[f"W{number}"].reshape(-1, k, k, Z.shape[2]).permute(0, 3, 1, 2)
            Z = torch.conv2d(Z.permute(2, 0, 1)[None], W, p[f"b{number}"])[0].permute(1, 2, 0)
            Z = torch.relu(Z)
            on = on.unfold(0, k, 1).unfold(1, k, 1).any(-1).any(-1)
        Z = Z * on[:, :, None]
        Z, on = pool(*pool(Z, on, 0), 1)
    return Z.reshape(-1)


def torch_score(model, p, query, title):
    (X, in_x), (Y, in_y) = (padded(model, p, words) for words in (query, title))
    if model.name == "arc2":
        y = plane(model, p, X, Y, in_x, in_y)
    else:
        y = torch.cat([one_text(model, p, "x", X, in_x), one_text(model, p, "y", Y, in_y)])
    for layer in range(1, model.mlp_layers + 1):
        y = torch.relu(p[f"M{layer}"] @ y + p[f"c{layer}"])
    return p["w"] @ y + p["c"][0]


def as_leaves(matcher):
    return {
        name: torch.tensor(np.ascontiguousarray(block), requires_grad=True)
        for name, block in matcher.parameters().items()
    }


def counts_of(matcher, texts):
    most = matcher.model.max_words
    return [trigram_counts(text, matcher.vocabulary.trigrams)[:most] for text in texts]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_scores_and_every_gradient(case):
    rng = np.random.default_rng(5)
    texts = made_up_texts(rng, LENGTHS), made_up_texts(rng, LENGTHS[::-1])
    matcher = made_up_matcher(case[0], [*texts[0], *texts[1]], **case[1])
    queries, titles = rng.integers(0, len(LENGTHS), (2, 12))
    with Workers(1) as workers:
        passes = PairPasses(matcher, *texts, queries, titles, workers)
        scores = passes.forward().scores.copy()
        V = rng.standard_normal(scores.size)
        gradient = passes.gradient(V)
    leaves = as_leaves(matcher)
    read = [counts_of(matcher, some) for some in texts]
    expected = [
        torch_score(matcher.model, leaves, read[0][q], read[1][t])
        for q, t in zip(queries, titles, strict=True)
    ]
    np.testing.assert_allclose(scores, [one.item() for one in expected], rtol=0, atol=1e-13)
    (torch.stack(expected) @ torch.tensor(V)).backward()
    assert gradient.keys() == leaves.keys()
    for name, leaf in leaves.items():
        assert relative_error(gradient[name], leaf.grad.numpy()) < TOLERANCE, name
        assert leaf.grad.abs().max() > 1e-3, f"{name}: the problem does not reach it"


def counts_of_batch(batch, n_features):
    """The features of every word of every text, counted."""
    counts = torch.zeros(batch.n_words, n_features, dtype=torch.float64)
    words = np.repeat(np.arange(batch.n_words), np.diff(batch.feature_offsets))
    counts[words, batch.input_rows[batch.feature_ids]] = torch.tensor(
        batch.feature_values, dtype=torch.float64
    )
    tokens = counts[torch.tensor(batch.word_index, dtype=torch.int64)]
    return torch.split(tokens, np.diff(batch.offsets).tolist())


@pytest.mark.parametrize("case", [CASES[3], CASES[5]], ids=case_name)
def test_twenty_updates_by_adam(case):
    """The update of the training: its mini-batches, loss, gradients and optimiser."""
    rng = np.random.default_rng(0)
    builder = ClickLogBuilder()
    sides = made_up_texts(rng, (2, 5, 3) * 4), made_up_texts(rng, (7, 1, 4) * 4)
    for number, (query, title) in enumerate(zip(*sides, strict=True)):
        builder.add(query, title, 1 + number % 3)
    settings = PairSettings(
        model=case[0], **case[1], embedding=3, mlp=6, max_words=9, n_negatives=2, batch_size=4,
        word_features=0, learning_rate=0.01,
    )  # fmt: skip
    corpus = Corpus(builder.build(), settings, one_list=True, most_words=9)
    lessons = ClickLessons(corpus, settings)
    made_up = made_up_matcher(case[0], [*sides[0], *sides[1]], **case[1])
    matcher = Matcher(made_up.model, corpus.vocabulary, made_up.weights)
    leaves, model = as_leaves(matcher), matcher.model
    moments = {name: torch.zeros(2, *leaf.shape).double() for name, leaf in leaves.items()}
    objective = PairObjective("hinge")
    with Workers(1) as workers:
        task = PairTask(lessons, model, matcher.weights, True, settings, objective, workers)
        for update in range(20):
            place = divmod(update, lessons.steps)
            loss = task.update(task.plan(*place), update)
            batch = lessons.batch(*place)
            words = counts_of_batch(batch.texts, len(matcher.vocabulary))
            scores = torch.stack(
                [
                    torch_score(model, leaves, words[q], words[batch.n_queries + t])
                    for q, t in zip(batch.query_index, batch.title_index, strict=True)
                ]
            ).reshape(-1, 3)
            hinges = torch.relu(1 + scores[:, 1:] - scores[:, :1]).mean(1)
            expected = hinges @ torch.tensor(batch.targets.weights)
            assert loss == pytest.approx(expected.item(), rel=1e-8)
            for leaf in leaves.values():
                leaf.grad = None
            expected.backward()
            with torch.no_grad():
                for name, leaf in leaves.items():
                    # Features that are not in the mini-batch rest, moments included.
                    some = batch.texts.input_rows if name == "W" else slice(None)
                    (m, v), g = moments[name][..., some], leaf.grad[..., some]
                    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
                    moments[name][..., some] = torch.stack([m, v])
                    corrected = m / (1 - 0.9 ** (update + 1)), v / (1 - 0.999 ** (update + 1))
                    leaf[..., some] -= 0.01 * corrected[0] / (corrected[1].sqrt() + 1e-8)
    assert lessons.steps < 20
    for name, block in matcher.parameters().items():
        if name != "c":  # its gradient is rounding, of which Adam makes steps
            assert relative_error(block, leaves[name].detach().numpy()) < 1e-8, name
