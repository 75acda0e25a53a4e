"""The hinge loss: its twin, its gradient through every model, its kinks, and training with it."""

import copy
import inspect

import naive
import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_log, relative_error

import sentemb
import sentemb.kernels.hinge as kernels
from sentemb import SentembError, gradcheck, loss_and_gradient, train
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder
from sentemb.gradients import differences
from sentemb.gradients.entry_trace import explain_gradient
from sentemb.gradients.pair_problem import PairProblem
from sentemb.kernels.hinge import all_cosines, nearest_queries, nearest_titles, set_clicks_apart
from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import Workers
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.mini_batches import mini_batch
from sentemb.training.objectives import hinge
from sentemb.training.objectives.candidates import BatchCandidates
from sentemb.training.objectives.hinge import hinge_loss
from sentemb.training.objectives.objective import Objective
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.two_towers import TwoTowers

TINY = {"cells": 6, "epochs": 3, "batch_size": 16, "threads": 1, "objective": "hinge"}


@pytest.fixture(scope="module")
def workers():
    with Workers(2) as some:
        yield some


def made_up_problem(seed, dtype, n_queries=11, n_titles=15, dim=7, density=0.25):
    """(Yq, Yd, pairs, clicks): texts without words, repeated texts, and clicks of other batches."""
    rng = np.random.default_rng(seed)
    Yq = rng.standard_normal((n_queries, dim)).astype(dtype)
    Yd = (3 * rng.standard_normal((n_titles, dim))).astype(dtype)
    Yq[2] = Yd[3] = 0
    Yd[7], Yd[9] = Yd[5], Yd[5]  # three titles that are equally near
    Yq[8] = Yq[4]
    clicks = [(q, d) for q in range(n_queries) for d in range(n_titles) if rng.random() < density]
    clicks += [(0, d) for d in range(n_titles)]  # a query without any other title
    clicks += [(q, 1) for q in range(n_queries)]  # a title without any other query
    pairs = [clicks[k] for k in rng.permutation(len(clicks))[: len(clicks) // 2]]
    pairs = sorted(set(pairs) | {next(c for c in clicks if c[0] == q) for q in range(n_queries)})
    return Yq, Yd, pairs, set(clicks)


def candidates_of(pairs, clicks):
    others = [sorted(d for q, d in clicks if q == query and d != title) for query, title in pairs]
    return BatchCandidates(
        queries=np.array([q for q, _ in pairs], np.int32),
        clicked=np.array([d for _, d in pairs], np.int32),
        offsets=np.cumsum([0] + [len(some) for some in others], dtype=np.int64),
        excluded=np.array([d for some in others for d in some], np.int32),
    )


# -- the loss and its gradient at the embeddings -------------------------------------------------


@pytest.mark.parametrize("margin", [0.1, 0.4, 1.5])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 3e-5)])
def test_the_naive_twin(margin, dtype, tolerance, workers):
    assert_the_naive_twin_agrees(margin, tolerance, workers, *made_up_problem(1, dtype))


def test_the_naive_twin_of_a_batch_as_large_as_in_training(workers):
    sizes = {"n_queries": 150, "n_titles": 300, "density": 0.01}
    assert_the_naive_twin_agrees(0.4, 1e-12, workers, *made_up_problem(1, np.float64, **sizes))


def assert_the_naive_twin_agrees(margin, tolerance, workers, Yq, Yd, pairs, clicks):
    weights = np.random.default_rng(2).uniform(0.2, 2, len(pairs))
    *ours, choices = hinge_loss(
        Yq, Yd, candidates_of(pairs, clicks), margin, weights, workers, Workspace()
    )
    exact = Yq.astype(float), Yd.astype(float)
    *theirs, expected = naive.hinge(*exact, pairs, clicks, margin, weights)
    for found, right in zip(ours, theirs, strict=True):
        assert relative_error(found, right) < tolerance
    if Yq.dtype == np.float64:
        assert np.array_equal(choices, expected)
        assert (choices < 0).any() or margin > 1
    assert np.all(ours[1][2] == 0) and np.all(ours[2][3] == 0)
    assert (choices[[q == 0 for q, _ in pairs], 0] == -1).all()  # all titles are clicked for it


def test_of_equally_near_texts_the_first_is_taken_and_a_click_never(workers):
    Yq = np.array([[1.0, 0], [0, 1], [1, 0], [1, 0]])
    Yd = np.array([[1.0, 0], [2, 0], [0, 1], [3, 0], [1, 0]])
    clicks = {(0, 0), (0, 1), (1, 2), (2, 3), (3, 4), (3, 0)}
    pairs = [(0, 1), (1, 2), (2, 3), (3, 4)]
    *_, choices = hinge_loss(
        Yq, Yd, candidates_of(pairs, clicks), 0.4, np.ones(4), workers, Workspace()
    )
    # Query 0 skips titles 0 and 1, its clicks. Title 1 skips query 0, its own.
    assert choices.tolist() == [[3, 2], [-1, -1], [0, 0], [1, 0]]


def test_torch_agrees(workers):
    torch = pytest.importorskip(
        "torch", reason="PyTorch is the reference; pip install sentemb[bench]"
    )
    Yq, Yd, pairs, clicks = made_up_problem(3, np.float64)
    Yq[2], Yd[3] = 1, 1  # torch has no slope at 0,
    Yd[7], Yd[9], Yq[8] = Yd[7] + 1, Yd[9] - 1, Yq[8] - 1  # and shares one among equal maxima
    weights = np.random.default_rng(4).uniform(0.2, 2, len(pairs))
    arguments = candidates_of(pairs, clicks), 0.4, weights, workers, Workspace()
    losses, Vq, Vd, _ = hinge_loss(Yq, Yd, *arguments)
    tq, td = (torch.tensor(Y, requires_grad=True) for Y in (Yq, Yd))
    cosines = torch.nn.functional.cosine_similarity(tq[:, None], td[None], dim=2)
    hidden = torch.zeros_like(cosines)
    hidden[tuple(np.array(sorted(clicks)).T)] = -torch.inf
    others = cosines + hidden
    terms = [
        weight * (torch.relu(0.4 - cosines[q, d] + others[q].max()) +
                  torch.relu(0.4 - cosines[q, d] + others[:, d].max()))
        for (q, d), weight in zip(pairs, weights, strict=True)
    ]  # fmt: skip
    total = torch.stack(terms)
    total.sum().backward()
    assert relative_error(losses, total.detach().numpy()) < 1e-12
    assert relative_error(Vq, tq.grad.numpy()) < 1e-12
    assert relative_error(Vd, td.grad.numpy()) < 1e-12


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nan_is_not_hidden(dtype, workers):
    Yq, Yd, pairs, clicks = made_up_problem(5, dtype)
    Yq[4, 0] = np.nan
    arguments = candidates_of(pairs, clicks), 0.4, np.ones(len(pairs)), workers, Workspace()
    losses, *_ = hinge_loss(Yq, Yd, *arguments)
    assert np.isnan(losses[[q == 4 for q, _ in pairs]]).all()


def test_threads_change_no_bit():
    Yq, Yd, pairs, clicks = made_up_problem(6, np.float32, 90, 130, 33)
    candidates, found = candidates_of(pairs, clicks), []
    for threads in (1, 2, 3):
        with Workers(threads) as some:
            arguments = candidates, 0.4, np.ones(len(pairs)), some, Workspace()
            found.append([part.tobytes() for part in hinge_loss(Yq, Yd, *arguments)])
    assert found[0] == found[1] == found[2]


# -- the check -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("two_steps")
@pytest.mark.parametrize(
    ("model", "shared_towers"), [("bag", False), ("rnn", True), ("clsm", False)]
)
def test_gradcheck_passes(model, shared_towers):
    report = gradcheck(
        model, objective="hinge", shared_towers=shared_towers, entries=6,
        lengths=(1, 2, 4, 5), n_texts=0,
    )  # fmt: skip
    assert report.passed, report.failed
    assert report.settings["objective"] == "hinge"


def test_kinks_are_left_out_and_counted(monkeypatch):
    # Steps so coarse that some cross a kink.
    monkeypatch.setattr(differences, "STEPS", (0.5, 0.3, 0.1, 0.03, 0.01))
    report = gradcheck("bag", objective="hinge", tolerance=1e-3, entries=10, n_texts=0)
    assert report.passed and sum(block.kinks for block in report.blocks) > 0
    smooth = gradcheck("bag", tolerance=1e-3, entries=10, n_texts=0)
    assert sum(block.kinks for block in smooth.blocks) == 0
    monkeypatch.setattr(differences, "STEPS", (300.0, 200.0, 100.0, 50.0, 30.0))
    found = explain_gradient("query.W[0,0]", "bag", objective="hinge")
    assert found.numeric is None and "hinge" in found.reason


def test_a_hinge_at_zero_and_another_nearest_text_are_kinks(make_model, workers):
    model = make_model("bag", cells=2).astype("float64")
    texts = ["hotels in shanghai", "fix a bath tub"]
    problem = PairProblem(
        model.towers, texts, texts[::-1], [["bath"], []], Objective("hinge", margin=0.4), workers
    )
    places = {(problem.loss() > 0, problem.branches())}
    table = model.towers.weights["query"]["table"]
    for seed in range(12):
        table[...] = np.random.default_rng(seed).standard_normal(table.shape)
        places.add((problem.loss() > 0, problem.branches()))
    assert len(places) > 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dv[j] -= w * u[j]", "dv[j] += w * u[j]"),
        ("d_negative[j] += w * v[j]", "d_negative[j] += w * u[j]"),
        ("du[j] += w * (negative[j] - v[j])", "du[j] += w * negative[j]"),
    ],
)
def test_a_broken_line_is_found(old, new, monkeypatch):
    source = inspect.getsource(kernels.hinge_pairs.py_func)
    assert source.count(old) == 1
    names = dict(vars(kernels), kernel=lambda function: function)
    exec(source.replace(old, new), names)
    monkeypatch.setattr(hinge, "hinge_pairs", names["hinge_pairs"])
    assert not gradcheck("bag", objective="hinge", entries=6, lengths=(1, 2, 3)).passed


def test_the_command_checks_it():
    result = CliRunner().invoke(
        main, ["gradcheck", "--model", "bag", "--objective", "hinge", "--lengths", "1,3"]
    )
    assert result.exit_code == 0 and "objective hinge" in result.stdout, result.output


# -- training ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings", [{"model": "bag"}, {"model": "rnn", "shared_towers": True, "hard_negatives": 0}]
)
def test_training_learns_with_the_same_bits_on_any_threads(settings):
    models = [train(made_up_log(), **{**TINY, "threads": k, **settings}) for k in (1, 2)]
    losses = [line["loss"] for line in models[0].history]
    assert losses[-1] < losses[0]
    assert models[0].training["objective"] == "hinge" and models[0].training["margin"] == 0.4
    for side, blocks in models[0].parameters().items():
        for name, block in blocks.items():
            assert np.array_equal(block, models[1].parameters()[side][name])


def test_the_margin_decides():
    first, second = (train(made_up_log(), model="bag", **TINY, margin=m) for m in (0.2, 0.6))
    assert second.history[0]["loss"] > first.history[0]["loss"]


@pytest.mark.parametrize("hard_negatives", [0, 2])
def test_a_mini_batch_has_the_loss_of_the_checked_gradient(hard_negatives):
    """Training and the check compute one loss; hard negatives are titles like all others."""
    log = made_up_log(40)
    settings = Settings(
        model="bag", cells=5, objective="hinge", hard_negatives=hard_negatives, optimiser="nesterov"
    )
    corpus = Corpus(log, settings)
    towers = TwoTowers.of(corpus, settings, updates=1)
    pairs = np.arange(corpus.n_pairs)
    hard = np.full((corpus.n_queries, 3), -1, np.int32)
    hard[:, :2] = np.arange(2)
    batch = mini_batch(corpus, pairs, settings, 0, 0, hard if hard_negatives else None)
    weights = copy.deepcopy(towers.weights())
    model = sentemb.SentenceEncoder(settings.encoder(), corpus.vocabulary, weights)
    with Workers(1) as workers:
        loss = towers.update(batch, towers.lay_out(batch), 0, workers)
    queries = [log.queries[q] for q in log.query_index]
    titles = [log.titles[d] for d in log.title_index]
    embeddings = model.encode_query(log.queries), model.encode_document(log.titles)
    exact = [Y.astype(float) for Y in embeddings]
    numbers = list(zip(log.query_index.tolist(), log.title_index.tolist(), strict=True))
    expected, *_ = naive.hinge(*exact, numbers, set(numbers), 0.4, batch.weights)
    assert loss == pytest.approx(expected.sum(), rel=1e-4)
    total, _ = loss_and_gradient(model, queries, titles, [[] for _ in queries], objective="hinge")
    plain, *_ = naive.hinge(*exact, numbers, set(numbers), 0.4, np.ones(len(numbers)))
    assert total == pytest.approx(plain.sum(), rel=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_negatives": 4}, "it needs negatives batch and n_negatives all"),
        ({"negatives": "corpus"}, "n_negatives all"),
        ({"gamma": 5.0}, "the objective hinge has no gamma; leave gamma out"),
        ({"objective": "softmax", "margin": 0.2}, "the objective softmax has no margin"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, message):
    with pytest.raises(SentembError, match=message):
        Settings(**{"objective": "hinge", **settings})


def test_the_hinge_has_smaller_mini_batches_unless_told_otherwise():
    assert Settings(objective="hinge").batch_size == 64 < Settings().batch_size == 512
    assert Settings(objective="hinge", batch_size=9).batch_size == 9


def test_kernels_search_any_part(workers):
    """Parts of the work, as threads get them, find what the whole finds."""
    Yq, Yd, pairs, clicks = made_up_problem(8, np.float64)
    candidates = candidates_of(pairs, clicks)
    S = np.full((len(Yq), len(Yd)), np.nan)
    for first, end in ((0, 4), (4, 5), (5, len(Yq))):
        all_cosines(S, Yq, np.ascontiguousarray(Yd.T), first, end)
    np.testing.assert_allclose(S, naive.matmul(Yq, Yd.T), rtol=1e-12, atol=1e-12)
    of_clicks = np.empty(len(pairs))
    products = S.copy()
    arguments = candidates.queries, candidates.clicked, candidates.offsets, candidates.excluded
    set_clicks_apart(of_clicks, S, *arguments)
    assert of_clicks.tolist() == [products[pair] for pair in pairs]
    known = {q for q, _ in pairs}
    assert {tuple(place) for place in np.argwhere(np.isneginf(S)).tolist()} == {
        (q, d) for q, d in clicks if q in known
    }
    titles, queries = np.full(len(Yq), -9, np.int32), np.full(len(Yd), -9, np.int32)
    for first, end in ((0, 3), (3, 11)):
        nearest_titles(titles, S, first, end)
    for first, end in ((0, 6), (6, 15)):
        nearest_queries(queries, S, first, end)
    masked = np.where(np.isneginf(S), -np.inf, S)
    assert titles.tolist() == [
        -1 if np.isneginf(row).all() else int(np.argmax(row)) for row in masked
    ]
    assert queries.tolist() == [
        -1 if np.isneginf(column).all() else int(np.argmax(column)) for column in masked.T
    ]


@pytest.mark.parametrize(("model", "is_noted"), [("rnn", True), ("bag", False)])
def test_texts_that_all_become_alike_are_noted_once(model, is_noted):
    words = np.random.default_rng(0).choice(50, (200, 8))
    texts = [" ".join(f"w{word}" for word in row) for row in words]
    log = ClickLogBuilder()
    for text in texts:
        log.add(text[: len(text) // 2], text[len(text) // 2 :])
    notes = []
    settings = {**TINY, "model": model, "hard_negatives": 0, "epochs": 5, "learning_rate": 0.3}
    trained = train(log.build(), on_note=notes.append, **settings)
    assert (abs(trained.history[-1]["loss"] - 0.8) < 0.008) == is_noted
    assert sum("same embedding" in note for note in notes) == is_noted
