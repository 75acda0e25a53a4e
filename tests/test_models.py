"""The encoders: blocks, forms of the gradient, threads, batches."""

import numpy as np
import pytest
from helpers import (
    FEED_FORWARD,
    LSTM_SETTINGS,
    VARIANTS,
    each_variant,
    made_up_model,
    made_up_texts,
    made_up_weights,
    relative_error,
)

from sentemb import SentembError, SentenceEncoder, loss_and_gradient
from sentemb.gradients.pair_problem import PairProblem
from sentemb.gradients.traces import check_form, gradient_of_form, has_traces
from sentemb.models.family import ModelEntry
from sentemb.models.towers import make_encoder
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.models.towers.registry import BAG_DIM, CELLS, ENCODERS
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.input_rows import point_of
from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import Workers
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.objectives.objective import Objective

LENGTHS = (5, 1, 2, 9, 3, 3, 1, 14, 6)


def gradient_of(model, texts, V, workers, **arguments):
    weights = model.weights["query"]
    done = model.encoder.forward(weights, model.vocabulary.batch(texts), workers)
    return gradient_of_form(model.encoder, weights, done, V, workers, **arguments)


# -- blocks --------------------------------------------------------------------------------------


def expected_shapes(gates, n, d, peepholes):
    shapes = {}
    for gate in gates:
        shapes |= {f"W{gate}": (n, d), f"Wrec{gate}": (n, n), f"b{gate}": (n,)}
    if peepholes != "none":
        for gate in set("123") & set(gates):
            shapes[f"Wp{gate}"] = (n, n) if peepholes == "full" else (n,)
    return shapes


def shapes_of(encoder, d):
    weights = made_up_weights(encoder, d, np.random.default_rng(0))
    return {name: block.shape for name, block in encoder.blocks(weights).items()}


def test_blocks_have_the_names_and_shapes_of_the_paper():
    n, d = 4, 7
    assert shapes_of(make_encoder("rnn", cells=n), d) == expected_shapes([""], n, d, "none")
    for settings in LSTM_SETTINGS:
        gates = "1234" if settings["forget_gate"] else "134"
        lstm = expected_shapes(gates, n, d, settings["peepholes"])
        assert shapes_of(make_encoder("lstm", cells=n, **settings), d) == lstm
        both = {f"{way}.{name}": lstm[name] for way in ("forward", "backward") for name in lstm}
        assert shapes_of(make_encoder("bilstm", cells=n, **settings), d) == both
        without = {name: shape for name, shape in lstm.items() if not name.endswith("1")}
        no_output = make_encoder("lstm", cells=n, output_gate=False, **settings)
        assert shapes_of(no_output, d) == without
        beside = make_encoder("bilstm", cells=n, bag_dim=5, **settings)
        assert shapes_of(beside, d) == both | {"Wbag": (5, d)} and beside.dim == 2 * n + 5


@pytest.mark.parametrize(**each_variant())
def test_blocks_are_views_that_cover_all_weights_once(variant):
    name, settings = variant
    encoder = make_encoder(name, cells=3, **settings)
    weights = made_up_weights(encoder, 5, np.random.default_rng(0))
    for block in encoder.blocks(weights).values():
        block += 1000
    covered = np.concatenate([array.ravel() > 500 for array in weights.values()])
    twice = np.concatenate([array.ravel() > 1500 for array in weights.values()])
    # Wp1 and Wp2 have places among the stacked peepholes even where there is no gate to use them.
    spare = 0
    if "peepholes" in weights:
        gates = settings.get("output_gate", True), settings.get("forget_gate", False)
        spare = gates.count(False) * weights["peepholes"][:, 0].size
    assert np.count_nonzero(~covered) == spare
    assert not twice.any()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"name": "gru"}, "gru"),
        ({"name": "rnn", "cells": 3, "forget_gate": True}, "rnn"),
        ({"name": "dssm", "cells": 3, "bag_dim": 2}, "the model dssm has no bag_dim"),
    ],
)
def test_what_is_no_encoder_is_refused(arguments, word):
    with pytest.raises(SentembError, match=word):
        make_encoder(**arguments)


def test_fresh_weights_leave_unseen_trigrams_at_zero():
    encoder = make_encoder("lstm", cells=8)
    seen = np.array([1, 4])
    weights = encoder.initialise(6, np.random.default_rng(0), seen=seen)
    assert np.all(weights["table"][seen] != 0)
    assert np.all(np.delete(weights["table"], seen, axis=0) == 0)
    assert np.all(weights["bias"] == 0) and np.all(weights["recurrent"] != 0)


# -- gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "truncation",
    [Truncation(), *(Truncation(k, cec) for k in (1, 3, 20) for cec in (False, True))],
    ids=str,
)
@pytest.mark.parametrize(**each_variant())
def test_scan_equals_trace(variant, truncation):
    texts = made_up_texts(np.random.default_rng(1), LENGTHS)
    model = made_up_model(variant, texts)
    V = np.random.default_rng(2).standard_normal((len(texts), model.dim))
    with Workers(1) as workers:
        scan = gradient_of(model, texts, V, workers, truncation=truncation)
        trace = gradient_of(model, texts, V, workers, truncation=truncation, form="trace")
        whole = gradient_of(model, texts, V, workers)
    for name in trace:
        assert relative_error(scan[name], trace[name]) < 1e-10
        beyond_all_texts = truncation.steps in (None, 20)
        assert np.array_equal(scan[name], whole[name]) == beyond_all_texts


class GRULike(RecurrentEncoder):
    name = "gru-like"


def test_forms_by_traces_are_refused_where_there_are_none(monkeypatch):
    entry = ModelEntry("gru-like", "test_models:GRULike", (CELLS, BAG_DIM), recurrent=True)
    monkeypatch.setitem(ENCODERS, "gru-like", entry)
    for encoder, reason in (
        (make_encoder("dssm", cells=3), "follows the paper through time, and model dssm has none"),
        (GRULike(cells=3), "the paper has no traces for model gru-like"),
    ):
        assert not has_traces(encoder)
        check_form(encoder, "scan")
        for form in ("trace", "printed"):
            with pytest.raises(SentembError, match=f"{reason}.*; use the form scan"):
                check_form(encoder, form)
    for name in ("lstm", "bilstm", "rnn", "irnn"):
        assert has_traces(make_encoder(name, cells=3))


def test_a_fresh_irnn_averages_the_words():
    rng = np.random.default_rng(0)
    encoder = make_encoder("irnn", cells=5)
    vocabulary = Vocabulary([], ["hotel", "in", "rome"])
    weights = encoder.initialise(3, rng, np.float64)
    model = SentenceEncoder(encoder, vocabulary, {"query": weights, "document": weights})
    for text, words in {"rome": [2], "hotel in rome in": [0, 1, 2, 1]}.items():
        expected = weights["table"][words].mean(axis=0)
        np.testing.assert_allclose(model.encode(text), expected, atol=1e-14)


def test_an_irnn_that_overflows_says_so():
    weights = make_encoder("irnn", cells=2).initialise(1, np.random.default_rng(0))
    weights["recurrent"][...] *= 10
    model = SentenceEncoder(
        make_encoder("irnn", cells=2),
        Vocabulary([], ["rome"]),
        {"query": weights, "document": weights},
    )
    assert np.isfinite(model.encode(["rome", "rome " * 30])).all()
    with pytest.raises(SentembError, match="the irnn overflows on a text of 60 words"):
        model.encode(["rome", "rome " * 60, "rome " * 90])


@pytest.mark.parametrize(**each_variant([*VARIANTS, *FEED_FORWARD]))
def test_laying_out_computes_what_the_passes_would_compute_themselves(variant):
    rng = np.random.default_rng(11)
    texts = [*made_up_texts(rng, rng.integers(0, 9, 30)), "XYZ", "", "XYZ ab"]
    model = made_up_model(variant, texts[:-3])
    batch, weights = model.vocabulary.batch(texts), model.weights["query"]
    V = rng.standard_normal((len(texts), model.dim))
    gradients = []
    with Workers(2) as workers:
        for layout in (Layout(batch), model.encoder.lay_out(batch)):
            point = point_of(weights, batch.input_rows)
            job = model.encoder.forward_tasks(point, layout, Workspace())
            (done,) = workers.together(job)
            gradients.append(model.encoder.backward(weights, done, V, workers))
    for name, array in gradients[0].items():
        assert np.array_equal(array, gradients[1][name]), name


def test_the_lists_of_a_layout_say_where_words_and_features_are():
    texts = ["ab cd ab", "", "cd XYZ", "efaaaaab"]  # aaa three times in the last word
    model = made_up_model(("bilstm", {}), ["ab cd", "efaaaaab"])
    layout = Layout(model.vocabulary.batch(texts))
    batch, packing = layout.batch, layout.packing
    assert batch.feature_values.max() == 3
    offsets, words, counts = layout.words_of_features
    for feature in range(batch.input_rows.size):
        held = {
            w: int(batch.feature_values[e])
            for w in range(batch.n_words)
            for e in range(batch.feature_offsets[w], batch.feature_offsets[w + 1])
            if batch.feature_ids[e] == feature
        }
        own = slice(offsets[feature], offsets[feature + 1])
        assert dict(zip(words[own].tolist(), counts[own].tolist(), strict=True)) == held
    for direction, (offsets, rows) in enumerate(layout.packed_rows_of_words):
        token_rows = packing.rows_of_tokens(direction)
        for w in range(batch.n_words):
            expected = sorted(token_rows[np.flatnonzero(batch.word_index == w)].tolist())
            assert rows[offsets[w] : offsets[w + 1]].tolist() == expected
    offsets, holders = layout.texts_of_words
    found = [holders[offsets[w] : offsets[w + 1]].tolist() for w in range(batch.n_words)]
    assert found == [[0, 0], [0, 2], [2], [3]]
    assert layout.packing is packing  # kept


def test_unknown_form_is_refused():
    texts = ["a b"]
    model = made_up_model(VARIANTS[0], texts)
    with Workers(1) as workers, pytest.raises(SentembError, match="form"):
        gradient_of(model, texts, np.ones((1, model.dim)), workers, form="exact")


@pytest.mark.usefixtures("fine_parts")
@pytest.mark.parametrize(**each_variant())
def test_threads_and_repetition_change_no_bit(variant):
    rng = np.random.default_rng(3)
    texts = made_up_texts(rng, rng.integers(1, 12, 300), n_words=200)
    model = made_up_model(variant, texts, cells=13, dtype=np.float32)
    batch, weights = model.vocabulary.batch(texts), model.weights["query"]
    V = rng.standard_normal((len(texts), model.dim)).astype(np.float32)
    runs = []
    for threads in (1, 1, 2, 3, 33):
        with Workers(threads) as workers:
            done = model.encoder.forward(weights, batch, workers)
            gradient = model.encoder.backward(weights, done, V, workers)
            runs.append({"embeddings": done.embeddings, **gradient})
    for run in runs[1:]:
        assert run.keys() == runs[0].keys()
        for name in run:
            assert np.array_equal(run[name], runs[0][name]), name


@pytest.mark.parametrize(**each_variant([*VARIANTS, *FEED_FORWARD]))
def test_a_workspace_that_is_used_again_changes_no_bit(variant):
    rng = np.random.default_rng(6)
    texts, others = (made_up_texts(rng, rng.integers(1, 9, 40)) for _ in range(2))
    model = made_up_model(variant, [*texts, *others])
    encoder, weights = model.encoder, model.weights["query"]

    def gradient_in(workspace, texts):
        layout = encoder.lay_out(model.vocabulary.batch(texts))
        point = point_of(weights, layout.batch.input_rows)
        V = np.random.default_rng(7).standard_normal((len(texts), model.dim))
        (done,) = workers.together(encoder.forward_tasks(point, layout, workspace))
        job = encoder.backward_tasks(weights, done, V, None, workspace)
        return {name: array.copy() for name, array in workers.together(job)[0].items()}

    with Workers(1) as workers:
        expected = gradient_in(Workspace(), texts)
        workspace = Workspace()
        for some in (texts, others, texts):
            found = gradient_in(workspace, some)
    for name, array in expected.items():
        assert np.array_equal(found[name], array), name


def test_a_workspace_gives_arrays_of_the_shape_and_kind_asked_for():
    workspace = Workspace()
    for shape, dtype in [((3, 4), np.float64), ((2, 5), np.int32), ((7, 9), np.int32), ((), "f4")]:
        array = workspace.empty("some", shape, dtype)
        assert array.shape == shape and array.dtype == dtype
        assert not workspace.zeros("some", shape, dtype).any()


def test_truncation_by_name_is_that_of_the_backward_pass():
    texts = made_up_texts(np.random.default_rng(8), (9, 7, 8))
    model = made_up_model(("lstm", {"forget_gate": True}), texts)
    for name, truncation in (("window", Truncation(2)), ("cec", Truncation(2, True))):
        with Workers(1) as workers:
            problem = PairProblem(
                model.towers, [texts[0]], [texts[1]], [[texts[2]]], Objective(), workers
            )
            expected = problem.gradient(truncation=truncation)
        _, found = loss_and_gradient(
            model, [texts[0]], [texts[1]], [[texts[2]]], truncate=2, truncation=name
        )
        for side, blocks in expected.items():
            for block, array in blocks.items():
                assert np.array_equal(found[side][block], array), (name, side, block)


@pytest.mark.parametrize(**each_variant())
def test_embeddings_do_not_depend_on_the_batch(variant):
    rng = np.random.default_rng(4)
    texts = made_up_texts(rng, rng.integers(0, 9, 150), n_words=80)
    model = made_up_model(variant, texts, cells=9, dtype=np.float32)
    with pytest.warns(UserWarning, match="no words"):
        together = model.encode(texts)
    backwards = model.encode([text for text in reversed(texts) if text])[::-1]
    kept = np.array([bool(text) for text in texts])
    assert np.array_equal(together[kept], backwards)
    assert np.all(together[~kept] == 0)
    for k in np.flatnonzero(kept)[:12]:
        assert np.array_equal(model.encode(texts[k]), together[k])


def test_an_error_in_one_task_reaches_the_caller_and_the_threads_live_on():
    def fail():
        raise ZeroDivisionError

    with Workers(3) as workers:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                workers.run([(fail,)] * 5)
        seen = []
        workers.run([(seen.append, k) for k in range(50)])
        assert sorted(seen) == list(range(50))
