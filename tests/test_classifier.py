"""The classifier on embeddings: kernels, gradient, training on fixed and on trained embeddings."""

import hashlib
import signal

import naive
import numpy as np
import pytest
from helpers import made_up_weights, made_up_words
from lab.classifier.classifier_settings import HYPERPARAMETERS, ClassifierSettings
from lab.classifier.classifier_task import ClassifierTask, Labels, Scores
from lab.classifier.objective import (
    BLOCKS,
    Head,
    blocks,
    class_targets,
    loss_tasks,
    probability_tasks,
    score_targets,
)
from lab.classifier.text_features import FixedVectors, TrainedTower
from lab.classifier.training import train_classifier

import sentemb
from sentemb import SentembError
from sentemb.data.labelled import ValuedTexts
from sentemb.gradients import differences
from sentemb.models.towers import make_encoder
from sentemb.models.towers.towers import Towers
from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import Workers
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.contracts import Task
from sentemb.training.optimisers.dense_adam import DenseAdam
from sentemb.training.stopping import Interrupted

pytestmark = pytest.mark.usefixtures("laboratory")

SHAPES = {
    "pairs of vectors": Head(5, True, 4, 3, 7),
    "vectors": Head(5, False, 4, 2, 7),
    "pairs of a tower": Head(6, True, 19, 5),
    "texts of a tower": Head(6, False, 9, 3),
}


def problem_of(head, count=23, seed=0, dtype=np.float64):
    """Weights with nothing at zero, one column per text, and targets."""
    rng = np.random.default_rng(seed)
    weights = {n: rng.standard_normal(shape).astype(dtype) for n, shape in head.shapes().items()}
    inputs = rng.standard_normal((head.dim, count * (2 if head.paired else 1))).astype(dtype)
    return weights, inputs, rng.dirichlet(np.ones(head.classes), count)


def run(job, threads=1):
    with Workers(threads) as workers:
        return workers.together(job)[0]


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-4)])
@pytest.mark.parametrize("head", SHAPES.values(), ids=SHAPES)
def test_loss_and_gradient_are_those_of_the_naive_twin(head, dtype, tolerance):
    weights, inputs, targets = problem_of(head, dtype=dtype)
    losses, gradient, dH = run(loss_tasks(head, weights, inputs, targets, Workspace()))
    p = {block: array.astype(float) for block, array in blocks(weights).items()}
    count = len(targets)
    sides = np.split(inputs.astype(float), 2, axis=1) if head.paired else [inputs.astype(float)]
    expected, at_texts = dict.fromkeys(p, 0.0), []
    for r in range(count):
        texts = [side[:, r] for side in sides]
        loss = naive.classifier_loss(p, targets[r], *texts)
        assert losses[r] == pytest.approx(loss / count, rel=100 * tolerance, abs=tolerance)
        one, d_h = naive.classifier_gradient(p, targets[r], *texts)
        expected = {block: total + one[block] / count for block, total in expected.items()}
        at_texts.append(np.stack(d_h) / count)
    for name, array in gradient.items():
        np.testing.assert_allclose(array, expected[BLOCKS[name]], rtol=tolerance, atol=tolerance)
    together = np.concatenate(np.stack(at_texts, axis=1))
    np.testing.assert_allclose(dH.T, together, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("head", SHAPES.values(), ids=SHAPES)
def test_probabilities_are_those_of_the_naive_twin(head):
    weights, inputs, _ = problem_of(head)
    found = run(probability_tasks(head, weights, inputs, Workspace()))
    sides = np.split(inputs, 2, axis=1) if head.paired else [inputs]
    for r, row in enumerate(found):
        o = naive.classifier_logits(blocks(weights), *(side[:, r] for side in sides))
        np.testing.assert_allclose(row, np.exp(o) / np.exp(o).sum(), rtol=1e-12)


def test_huge_logits_do_not_overflow():
    head = Head(2, False, 3, 2)
    weights, inputs, _ = problem_of(head, 4)
    weights["output"] *= 1e6
    targets = class_targets(np.array([0, 1, 0, 1]), 2)
    losses, gradient, _ = run(loss_tasks(head, weights, inputs, targets, Workspace()))
    assert np.isfinite(losses).all() and losses.min() >= 0 and losses.max() > 1e3
    assert all(np.isfinite(array).all() for array in gradient.values())
    found = run(probability_tasks(head, weights, inputs, Workspace()))
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_equal_embeddings_have_no_slope_of_the_distance():
    head = Head(3, True, 4, 2)
    weights, inputs, targets = problem_of(head, 5)
    inputs[:, 5:] = inputs[:, :5]
    _, _, dH = run(loss_tasks(head, weights, inputs, targets, Workspace()))
    # What is left is the gradient of the product, which is the same on both sides.
    assert np.array_equal(dH[:, :5], dH[:, 5:]) and np.any(dH)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_changes_no_bit(dtype):
    head = Head(5, True, 19, 4, 37)
    weights, inputs, targets = problem_of(head, dtype=dtype)
    found = []
    for threads in (1, 3):
        job = loss_tasks(head, weights, inputs, targets, Workspace())
        losses, gradient, dH = run(job, threads)
        found.append([losses, *gradient.values(), dH])
    assert all(map(np.array_equal, *found))


def test_targets_have_the_score_as_expectation():
    scores = [1, 5, 3, 3.6, 4.999]
    targets = score_targets(scores, 1, 5)
    assert targets[3] == pytest.approx([0, 0, 0.4, 0.6, 0])
    assert targets @ np.arange(1, 6) == pytest.approx(scores)
    assert targets.sum(axis=1) == pytest.approx(np.ones(5)) and targets.min() >= 0
    assert (np.count_nonzero(targets, axis=1) <= 2).all()


# -- gradcheck --------------------------------------------------------------------------------


@pytest.mark.usefixtures("two_steps")
@pytest.mark.parametrize("task", ["similarity", "entailment", "sentiment"])
def test_every_block_agrees_with_differences(task):
    report = sentemb.gradcheck("sif-classifier", task=task, seed=1, entries=6)
    assert report.passed, report.failed
    assert max(block.relative for block in report.blocks) < 1e-7
    assert [block.block for block in report.blocks] == [
        *(f"fixed.{name}" for name in BLOCKS.values()),
        *(f"tower.{name}" for name in BLOCKS.values() if name != "W_p"),
        "tower.h",
    ]


def test_kinks_of_the_distance_are_left_out_and_counted(monkeypatch):
    # Coarse steps only, so that some go over a kink.
    monkeypatch.setattr(differences, "STEPS", (0.1, 0.05))
    report = sentemb.gradcheck("sif-classifier", tolerance=1e-2, entries=12)
    assert report.passed and sum(block.kinks for block in report.blocks) > 0
    report = sentemb.gradcheck("sif-classifier", task="sentiment", tolerance=1e-2, entries=2)
    assert sum(block.kinks for block in report.blocks) == 0


@pytest.mark.usefixtures("two_steps")
def test_a_wrong_gradient_fails(monkeypatch):
    from lab.classifier import check

    def without_the_distance(*arguments):
        losses, gradient, dH = yield from loss_tasks(*arguments)
        return losses, gradient, 0.99 * dH

    monkeypatch.setattr(check, "loss_tasks", without_the_distance)
    assert sentemb.gradcheck("sif-classifier", entries=4).failed == ["tower.h"]


@pytest.mark.parametrize("name", ["rnn", "lstm", "bilstm"])
def test_the_gradient_goes_on_through_the_tower(name):
    rng = np.random.default_rng(3)
    encoder = make_encoder(name, cells=3)
    words = sorted(set(made_up_words(rng, 12)))
    weights = made_up_weights(encoder, len(words), rng)
    texts = [" ".join(rng.choice(words, n)) for n in (1, 3, 5, 2, 4, 2)]
    batch = Vocabulary([], words).batch(texts)
    head = Head(encoder.dim, True, 4, 3)
    own, _, _ = problem_of(head)
    targets = class_targets(np.array([0, 2, 1]), 3)
    with Workers(1) as workers:

        def loss():
            done = encoder.forward(weights, batch, workers)
            columns = np.ascontiguousarray(done.embeddings.T)
            losses, _, dH = run(loss_tasks(head, own, columns, targets, Workspace()))
            return losses.sum(), done, dH

        _, done, dH = loss()
        gradient = encoder.backward(weights, done, np.ascontiguousarray(dH.T), workers)
        for block, array in weights.items():
            found = gradient[block]
            for place in map(tuple, np.argwhere(np.abs(found) == np.abs(found).max())[:1]):
                at = (batch.input_rows[place[0]], *place[1:]) if block == "table" else place
                before, values = array[at], []
                for step in (1e-5, -1e-5):
                    array[at] = before + step
                    values.append(loss()[0])
                array[at] = before
                assert (values[0] - values[1]) / 2e-5 == pytest.approx(found[place], rel=1e-5)


# -- Adam -------------------------------------------------------------------------------------


def test_adam_of_dense_arrays_is_that_of_the_naive_twin():
    rng = np.random.default_rng(4)
    start = {"matrix": rng.standard_normal((11, 3)), "bias": rng.standard_normal(4)}
    adam = DenseAdam({name: array.copy() for name, array in start.items()})
    theta = {name: array.copy() for name, array in start.items()}
    m, v = ({name: np.zeros_like(array) for name, array in theta.items()} for _ in range(2))
    with Workers(2) as workers:
        for update in range(50):
            gradient = {name: rng.standard_normal(array.shape) for name, array in start.items()}
            workers.run(adam.step_tasks(gradient, update, 0.01))
            for name, g in gradient.items():
                state = theta[name], m[name], v[name]
                theta[name], m[name], v[name] = naive.adam_step(*state, g, update, 0.01)
    for name, array in theta.items():
        np.testing.assert_allclose(adam.weights[name], array, rtol=1e-12)


# -- training ---------------------------------------------------------------------------------

WORDS = [f"w{k}" for k in range(30)]
VECTORS = dict(zip(WORDS, np.random.default_rng(5).standard_normal((30, 8)), strict=True))


def average(texts):
    return np.array([np.mean([VECTORS[word] for word in text.split()], axis=0) for text in texts])


def made_up_set(count, kind, seed):
    """Scores from 1 to 5 by shared words, labels of pairs by the same, labels by the first word."""
    rng = np.random.default_rng(seed)
    texts = [list(rng.choice(WORDS, 4)) for _ in range(count)]
    if kind == "first word":
        values = ["low" if WORDS.index(text[0]) < 15 else "high" for text in texts]
        return ValuedTexts(values, [" ".join(text) for text in texts])
    shared = rng.integers(0, 5, count)
    others = [
        text[:k] + list(rng.choice(WORDS, 4 - k)) for text, k in zip(texts, shared, strict=True)
    ]
    values = [1.0 + k for k in shared.tolist()]
    if kind == "labels":
        values = ["alike" if k > 2 else "other" for k in shared]
    return ValuedTexts(values, [" ".join(t) for t in texts], [" ".join(t) for t in others])


def tower(name="lstm", seed=0):
    encoder = make_encoder(name, cells=8)
    weights = encoder.initialise(len(WORDS), np.random.default_rng(seed))
    weights["table"] *= 10
    return Towers.of(encoder, Vocabulary([], WORDS), {"query": weights})


SMALL = {"map_dim": 16, "hidden": 8, "epochs": 4, "learning_rate": 0.01, "batch_size": 16}


def digest(classifier, some):
    return hashlib.sha256(classifier.probabilities(*some.sides).tobytes()).hexdigest()


def test_scores_are_learned_from_fixed_vectors():
    train, dev, test = (made_up_set(n, "scores", n) for n in (400, 80, 90))
    found = train_classifier(train, dev, features=average, **SMALL, threads=1)
    predicted = found.predict(*test.sides)
    r = np.corrcoef(predicted, test.values)[0, 1]
    assert found.measure(test) == pytest.approx(r) and r > 0.7
    assert predicted.min() >= 1 and predicted.max() <= 5 and found.labels is None
    best = max(line["dev"]["pearson"] for line in found.history)
    assert found.measure(dev) == pytest.approx(best, abs=1e-6)
    assert found.training["finished"] and found.training["predicts"] == {"lowest": 1, "highest": 5}
    assert repr(found) == "Classifier(Scores(lowest=1, highest=5) of pairs of texts)"


def test_labels_of_pairs_and_their_probabilities():
    train, test = made_up_set(400, "labels", 1), made_up_set(90, "labels", 2)
    found = train_classifier(train, features=average, **SMALL, threads=1)
    predicted, p = found.predict(*test.sides), found.probabilities(*test.sides)
    assert found.labels == ["alike", "other"] and p.shape == (90, 2)
    assert predicted == [found.labels[k] for k in p.argmax(axis=1)]
    right = np.mean([a == b for a, b in zip(predicted, test.values, strict=True)])
    assert found.measure(test) == right > 0.8
    assert [line["dev"] for line in found.history] == [None] * 4
    assert found.predict([], []) == []


def test_word_order_is_learned_by_a_tower_and_not_from_averages():
    train, dev = made_up_set(600, "first word", 1), made_up_set(200, "first word", 2)
    given = tower()
    before = {name: array.copy() for name, array in given.weights["query"].items()}
    settings = {"hidden": 8, "epochs": 12, "learning_rate": 0.02, "batch_size": 32, "threads": 1}
    found = train_classifier(train, dev, features=given, **settings)
    assert found.measure(dev) > 0.95
    assert found.training["map_dim"] == 0
    # What was given is left as it was.
    assert all(np.array_equal(given.weights["query"][name], a) for name, a in before.items())
    averaged = train_classifier(train, dev, features=average, **SMALL, threads=1)
    assert averaged.measure(dev) < 0.85


@pytest.mark.parametrize("features", [average, tower()], ids=["fixed", "tower"])
def test_training_has_the_same_bits_with_any_number_of_threads(features):
    train, dev = made_up_set(90, "scores", 1), made_up_set(30, "scores", 2)
    runs = {
        threads: digest(
            train_classifier(train, dev, features=features, **SMALL, threads=threads), dev
        )
        for threads in (1, 2, 5)
    }
    assert len(set(runs.values())) == 1
    other = train_classifier(train, dev, features=features, **SMALL, threads=1, seed=1)
    assert digest(other, dev) != runs[1]


@pytest.mark.parametrize("features", [average, tower()], ids=["fixed", "tower"])
@pytest.mark.parametrize("stop_at", [1, 3, 7, 9])
def test_a_stopped_training_resumes_to_the_same_bits(features, stop_at, tmp_path):
    train, dev = made_up_set(40, "labels", 1), made_up_set(30, "labels", 2)
    settings = {"features": features, **SMALL, "threads": 1}
    whole = train_classifier(train, dev, **settings)
    seen = []

    def on_progress(progress):
        seen.append(progress.epoch_ended)
        if seen.count(False) == stop_at:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(Interrupted, match="continue with the same command"):
        train_classifier(train, dev, **settings, output=tmp_path / "m", on_progress=on_progress)
    resumed = train_classifier(train, dev, **settings, output=tmp_path / "m", resume=True)
    assert digest(resumed, dev) == digest(whole, dev)
    assert [line["dev"] for line in resumed.history] == [line["dev"] for line in whole.history]
    notes = []
    again = train_classifier(
        train, dev, **settings, output=tmp_path / "m", resume=True, on_note=notes.append
    )
    assert digest(again, dev) == digest(whole, dev) and "already finished" in notes[0]


def test_a_folder_is_only_continued_by_the_same_training(tmp_path):
    train, dev = made_up_set(40, "labels", 1), made_up_set(30, "labels", 2)
    settings = {"features": average, **SMALL, "threads": 1, "output": tmp_path / "m"}
    train_classifier(train, dev, **settings)
    with pytest.raises(SentembError, match="a model is there already"):
        train_classifier(train, dev, **settings)
    with pytest.raises(SentembError, match="was trained with seed = 0, not 1"):
        train_classifier(train, dev, **settings, seed=1, resume=True)
    with pytest.raises(SentembError, match="trained on another"):
        train_classifier(made_up_set(40, "labels", 3), dev, **settings, resume=True)
    other = settings | {"features": lambda texts: 2 * average(texts)}
    with pytest.raises(SentembError, match="trained on another"):
        train_classifier(train, dev, **other, resume=True)
    with pytest.raises(SentembError, match="another dev set"):
        train_classifier(train, **settings, resume=True)
    with pytest.raises(SentembError, match="a classifier of the papers' laboratory"):
        sentemb.load(tmp_path / "m")
    tensors = tmp_path / "m" / "model.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(SentembError, match="damaged"):
        train_classifier(train, dev, **settings, resume=True)
    train_classifier(train, dev, **settings, force=True)


def test_patience_ends_training():
    train, dev = made_up_set(40, "labels", 1), made_up_set(30, "labels", 2)
    settings = SMALL | {"epochs": 30, "patience": 2}
    found = train_classifier(train, dev, features=average, **settings, threads=1)
    figures = [line["dev"]["accuracy"] for line in found.history]
    assert len(figures) == int(np.argmax(figures)) + 3 < 30


def test_the_task_fulfils_the_contract():
    train = made_up_set(20, "scores", 1)
    with Workers(1) as workers:
        settings = ClassifierSettings(hidden=2, map_dim=2)
        for features in (FixedVectors.of_function(average, "w1"), TrainedTower(tower())):
            assert isinstance(ClassifierTask(train, None, features, settings, workers), Task)


def test_every_epoch_has_an_order_of_its_own():
    train = made_up_set(20, "scores", 1)
    with Workers(1) as workers:
        settings = ClassifierSettings(hidden=2, map_dim=2, batch_size=20)
        features = FixedVectors.of_function(average, "w1")
        task = ClassifierTask(train, None, features, settings, workers)
        first, again, second = (task.plan(epoch, 0)[1] for epoch in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, second)
    assert sorted(map(tuple, first)) == sorted(map(tuple, second))


def test_settings_have_the_declared_defaults():
    settings = ClassifierSettings()
    assert settings.as_dict() == {one.name: one.unset for one in HYPERPARAMETERS}


def test_constant_predictions_correlate_with_nothing():
    scores = Scores(1, 5)
    assert scores.measure(np.full((3, 5), 0.2), [1.0, 2.0, 3.0]) == 0.0
    assert scores.measure(np.eye(5)[:1], [1.0]) == 0.0
    assert Labels(["a", "b"]).measure(np.array([[0.9, 0.1], [0.2, 0.8]]), ["a", "c"]) == 0.5


def failing(**changes):
    train, dev = made_up_set(20, "labels", 1), made_up_set(20, "labels", 2)
    return {"train": train, "dev": dev, "features": average, **changes}


texts_of = made_up_set(20, "first word", 1)
BAD = {
    "unknown setting": ({"units": 3}, "unknown setting units; there are batch_size"),
    "setting out of bounds": ({"hidden": 0}, "hidden is 0; give an integer from 1"),
    "not a set": ({"train": ["a"]}, "train must be a ValuedTexts, not list; read one"),
    "dev without pairs": ({"dev": texts_of}, "train has pairs and dev single texts"),
    "dev of scores": ({"dev": made_up_set(20, "scores", 1)}, "train has labels and dev scores"),
    "one label": ({"train": ValuedTexts(["a"], ["w1"], ["w2"])}, "all examples have the label a"),
    "no features": ({"features": 3}, "features must be a function of a list of texts or Towers"),
    "not an array": ({"features": lambda texts: ["x"] * len(texts)}, "returned no array of num"),
    "a row too few": ({"features": lambda texts: np.zeros((7, 3))}, r"of shape \(7, 3\) for 1 "),
    "NaN": ({"features": lambda texts: np.full((len(texts), 2), np.nan)}, "not finite for text 0"),
    "another length": (
        {"features": lambda texts: np.zeros((len(texts), len(texts)))},
        "rows of 40 numbers after 1; give every text as many",
    ),
    "resume without a place": ({"resume": True}, "resume needs the output"),
    "seconds": ({"checkpoint_seconds": -1}, "checkpoint_seconds must be a number from 0"),
    "divergence": ({"learning_rate": 1e29}, "lower the learning rate"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD)
def test_mistakes_are_one_clear_error(changes, message):
    given = failing(**changes)
    with pytest.raises(SentembError, match=message):
        train_classifier(given.pop("train"), given.pop("dev"), threads=1, **given)


def test_wrong_scores_and_towers():
    pairs = made_up_set(20, "scores", 1)
    with pytest.raises(SentembError, match="all examples have the score 2"):
        train_classifier(ValuedTexts([2.0] * 20, *pairs.sides), features=average)
    with pytest.raises(SentembError, match="the scores range from 1 to 1e"):
        train_classifier(ValuedTexts([1.0, 1e6] * 10, *pairs.sides), features=average)
    one, two = tower(), tower(seed=1)
    both = {"query": one.weights["query"], "document": two.weights["query"]}
    with pytest.raises(SentembError, match=r"weights of their own; give Towers\.of"):
        train_classifier(pairs, features=Towers.of(one.encoder, one.vocabulary, both))


def test_texts_of_the_wrong_form():
    train = made_up_set(20, "labels", 1)
    found = train_classifier(train, features=average, **SMALL, threads=1)
    with pytest.raises(SentembError, match="was trained on pairs; give texts and second_texts"):
        found.predict(["w1"])
    with pytest.raises(SentembError, match="same number of each"):
        found.predict(["w1"], ["w1", "w2"])
    single = train_classifier(texts_of, features=average, **SMALL, threads=1)
    with pytest.raises(SentembError, match="single texts; leave second_texts out"):
        single.predict(["w1"], ["w2"])


def test_scores_of_numpy_are_scores():
    train = made_up_set(20, "scores", 1)
    dev = ValuedTexts(list(np.array(train.values)), *train.sides)
    found = train_classifier(train, dev, features=average, **SMALL, threads=1)
    assert "pearson" in found.history[-1]["dev"]
