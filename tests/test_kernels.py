"""Every kernel against its slow twin in naive.py."""

import functools
import itertools
from dataclasses import replace

import naive
import numba
import numpy as np
import pytest
from helpers import (
    FEED_FORWARD,
    VARIANTS,
    WITHOUT_OUTPUT_GATE,
    each_variant,
    made_up_model,
    made_up_texts,
    relative_error,
    variant_name,
)
from numba import types

from sentemb.gradients.traces import gradient_of_form
from sentemb.gradients.whole_batch import made_up_batch, tower_batch
from sentemb.kernels.activations import exp_row, sigmoid_rows, tanh_rows
from sentemb.kernels.bits import bits_for
from sentemb.kernels.cosine_softmax import normalise_rows, normalise_rows_backward
from sentemb.kernels.dense import products_of_pairs
from sentemb.kernels.hard_negatives import (
    highest_of_clusters,
    highest_titles,
    lay_out_clusters,
)
from sentemb.kernels.inference import sum_features
from sentemb.kernels.input_layer import (
    RowGradient,
    gather_rows,
    gather_weighted_rows,
    invert_lists,
    invert_weighted_lists,
    project_words,
    take_texts,
    take_words,
)
from sentemb.kernels.matmul import add_matmul, add_row, panels_of
from sentemb.kernels.memory import add_best, add_best_of_one, best_of_pairs, best_of_titles
from sentemb.kernels.negatives import draw_negatives, titles_to_leave_out
from sentemb.kernels.packing import longest_first, pack_blocks
from sentemb.kernels.top_k import highest, top_k
from sentemb.kernels.unit_rows import divide_by_lengths
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.inference import FEW_TEXTS
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.workspace import Workspace
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.parallel import Workers
from sentemb.training.objectives.candidates import (
    BatchCandidates,
    ListedCandidates,
    SoftTargets,
)
from sentemb.training.objectives.softmax import embedding_loss

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
# One text per interesting length, sorted by nothing: alone, equal, unequal, repeated, wordless,
# and a word of which no trigram is known.
LENGTHS = (1, 3, 7, 1, 2, 5, 3, 12, 4)
WITHOUT_TRIGRAM = "XYZ"


def texts_of_all_kinds(seed=0):
    texts = made_up_texts(np.random.default_rng(seed), LENGTHS)
    middle = f"{texts[1]} {WITHOUT_TRIGRAM} {texts[4]}"
    return [*texts, texts[2], "", middle, WITHOUT_TRIGRAM, f"{WITHOUT_TRIGRAM} {texts[0]}"]


def known_texts():
    return [text for text in texts_of_all_kinds() if WITHOUT_TRIGRAM not in text]


@pytest.fixture(scope="module")
def workers():
    with Workers(2) as some:
        yield some


# -- matmul --------------------------------------------------------------------------------------


@functools.cache
def _strided_add_matmul(dtype):
    """add_matmul for arrays of any strides, compiled once instead of once for each layout."""
    matrix = types.Array(numba.from_dtype(np.dtype(dtype)), 2, "A")
    return numba.njit(types.void(matrix, matrix, matrix))(lambda C, A, B: add_matmul(C, A, B))


@DTYPES
def test_add_matmul_of_all_sizes_changes_its_own_elements_alone(dtype):
    add = _strided_add_matmul(dtype)
    rng = np.random.default_rng(1)
    sizes = [(1, 1, 1), (70, 70, 70), (9, 1, 33), *rng.integers(1, 71, (60, 3)), (5, 0, 7)]
    # Inner dimensions that are done in parts, and a row alone, whose columns are done in its way.
    sizes += [(40, 700, 37), (18, 513, 33), (3, 1100, 40), *((1, 3, n) for n in range(1, 71))]
    for number, (m, k, n) in enumerate(sizes):
        wide = rng.standard_normal((m + 2, n + 5)).astype(dtype)
        A = [
            rng.standard_normal((m, k)).astype(dtype),
            rng.standard_normal((k, m)).astype(dtype).T,
            rng.standard_normal((2 * m, 3 * k)).astype(dtype)[::2, ::3],
        ][number % 3]
        B = rng.standard_normal((k, n + 4)).astype(dtype)[:, 2 : n + 2]
        before, C = wide.copy(), wide[1 : m + 1, 3 : n + 3]
        add(C, A, B)
        expected = before[1 : m + 1, 3 : n + 3] + naive.matmul(A.astype(float), B.astype(float))
        # k + 1 roundings of sums that are no larger than this
        size = abs(before[1 : m + 1, 3 : n + 3]) + abs(A.astype(float)) @ abs(B.astype(float))
        assert np.all(abs(C - expected) <= (k + 1) * np.finfo(dtype).eps * size), (m, k, n)
        wide[1 : m + 1, 3 : n + 3] = before[1 : m + 1, 3 : n + 3]
        assert np.array_equal(wide, before), f"neighbours of C changed for {(m, k, n)}"


@DTYPES
def test_a_row_of_a_product_does_not_depend_on_the_rows_beside_it(dtype):
    add = _strided_add_matmul(dtype)
    rng = np.random.default_rng(2)
    A, B = rng.standard_normal((37, 23)).astype(dtype), rng.standard_normal((23, 45)).astype(dtype)
    whole = np.zeros((37, 45), dtype)
    add(whole, A, B)
    for first, end in ((0, 1), (5, 6), (2, 5), (3, 20), (36, 37)):
        part = np.zeros((end - first, 45), dtype)
        add(part, A[first:end], B)
        assert np.array_equal(part, whole[first:end])


@DTYPES
def test_a_row_times_panels_has_the_bits_of_the_product(dtype):
    product = numba.njit(lambda C, A, panels, backwards: add_row(C, A, panels, backwards))
    add = _strided_add_matmul(dtype)
    rng = np.random.default_rng(3)
    for inner, n in ((5, 1), (7, 24), (23, 45), (9, 48), (96, 288), (11, 100), (3, 211)):
        A, B = (rng.standard_normal(shape).astype(dtype) for shape in ((2, inner), (inner, n)))
        before = rng.standard_normal((2, n)).astype(dtype)
        expected = before.copy()
        add(expected[:1], A[:1], B)
        for backwards in (False, True):
            ours = before.copy()
            product(ours, A, panels_of(B), backwards)
            assert np.array_equal(ours, expected)


# -- activations ---------------------------------------------------------------------------------


def test_float32_activations_keep_their_stated_accuracy():
    x = np.concatenate([np.linspace(-20, 20, 400_001), np.geomspace(1e-38, 1e3, 10_001)])
    x = np.concatenate([x, -x, [0.0, -0.0, 7.9053, -7.9053, 1e30, -1e30, np.inf, -np.inf]])
    x = x.astype(np.float32)
    exact = x.astype(float)

    tanh = x.reshape(1, -1).copy()
    tanh_rows(tanh, 0, 1, 0, x.size)
    assert abs(tanh[0] - np.tanh(exact)).max() <= 4e-7
    sigmoid = x.reshape(1, -1).copy()
    sigmoid_rows(sigmoid, 0, 1, 0, x.size)
    assert abs(sigmoid[0] - 0.5 * (1 + np.tanh(exact / 2))).max() <= 4e-7

    below = np.linspace(-87, 0, 300_001).astype(np.float32)
    powers = below.copy()
    exp_row(powers)
    assert (abs(powers / np.exp(below.astype(float)) - 1)).max() <= 2e-7
    far_below = np.array([-88, -1e4, -1e30, -np.inf], np.float32)
    exp_row(far_below)
    assert np.all((far_below >= 0) & (far_below < 2e-38))


def test_float64_activations_are_exact():
    x = np.concatenate([np.linspace(-30, 30, 1001), [0.0, np.inf, -np.inf, 1e300]])
    tanh, sigmoid = x.reshape(1, -1).copy(), x.reshape(1, -1).copy()
    tanh_rows(tanh, 0, 1, 0, x.size)
    sigmoid_rows(sigmoid, 0, 1, 0, x.size)
    np.testing.assert_allclose(tanh[0], np.tanh(x), rtol=1e-15, atol=1e-300)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(sigmoid[0], naive.sigmoid(x), rtol=1e-15, atol=2e-16)
    powers = -abs(x)
    exp_row(powers)
    np.testing.assert_allclose(powers, np.exp(-abs(x)), rtol=1e-15)


@DTYPES
def test_activations_keep_nan_and_touch_their_own_columns_and_rows_alone(dtype):
    for kernel in (tanh_rows, sigmoid_rows):
        Z = np.full((4, 40), 0.5, dtype)
        Z[1, 3], Z[2, 30] = np.nan, np.nan
        kernel(Z, 1, 3, 2, 35)
        assert np.isnan(Z[1, 3]) and np.isnan(Z[2, 30]) and np.isnan(Z).sum() == 2
        for untouched in (Z[0], Z[3], Z[:, :2], Z[:, 35:]):
            assert np.all(untouched == 0.5)
        inside = Z[1:3, 2:35]
        assert np.all(inside[~np.isnan(inside)] != 0.5)
    z = np.array([-1, np.nan, 0] * 11, dtype)
    exp_row(z)
    assert np.array_equal(np.isnan(z), [False, True, False] * 11)


# -- words ---------------------------------------------------------------------------------------


@DTYPES
def test_words_are_projected_and_their_errors_gathered(dtype):
    rng = np.random.default_rng(3)
    # Words with more trigrams than are asked for ahead, and trigrams in more words.
    n_trigrams, n_words, width = 50, 130, 13
    counts = rng.integers(0, 4, (n_words, n_trigrams)) * (rng.random((n_words, n_trigrams)) < 0.4)
    counts = (counts * rng.standard_normal(counts.shape)).astype(np.float32)  # of any value
    counts[4] = 0  # a word without known trigram
    offsets = np.concatenate([[0], np.cumsum(np.count_nonzero(counts, axis=1))])
    ids = np.nonzero(counts)[1].astype(np.int32)
    weights = counts[counts != 0]
    table = rng.standard_normal((n_trigrams + 4, width)).astype(dtype)
    rows = rng.permutation(n_trigrams + 4)[:n_trigrams].astype(np.int32)
    bias = rng.standard_normal(width).astype(dtype)
    tolerance = 20 * np.finfo(dtype).eps

    P = np.full((n_words, width), np.nan, dtype)
    lead = rng.standard_normal(n_trigrams).astype(dtype) * (rng.random(n_trigrams) < 0.6)
    velocity = rng.standard_normal(table.shape).astype(dtype)
    project_words(P, table, velocity, lead, rows, bias, offsets, ids, weights, 0, 5)
    assert np.isnan(P[5:]).all()
    project_words(P, table, velocity, lead, rows, bias, offsets, ids, weights, 5, n_words)
    ahead = table[rows].astype(float) + lead[:, None].astype(float) * velocity[rows]
    expected = bias + naive.matmul(counts.astype(float), ahead)
    assert relative_error(P, expected) < tolerance
    assert np.array_equal(P[4], bias)
    at_rest, as_stored = np.full((2, n_words, width), np.nan, dtype)
    lists = bias, offsets, ids, weights, 0, n_words
    project_words(at_rest, table, velocity, np.zeros_like(lead), rows, *lists)
    sum_features(as_stored, table[rows], *lists)
    assert np.array_equal(at_rest, as_stored)

    inverse_offsets, lists = invert_lists(offsets, ids, n_trigrams)
    for trigram in range(n_trigrams):
        own = slice(inverse_offsets[trigram], inverse_offsets[trigram + 1])
        assert lists[own].tolist() == np.nonzero(counts[:, trigram])[0].tolist()
    *inverse, values = invert_weighted_lists(offsets, ids, weights, n_trigrams)
    for found, expected in zip(inverse, (inverse_offsets, lists), strict=True):
        assert np.array_equal(found, expected)
    assert np.array_equal(values, counts.T[counts.T != 0])

    errors = rng.standard_normal((n_words, width)).astype(dtype)
    gathered = np.full((n_trigrams, width), np.nan, dtype)
    gradient = RowGradient(errors, inverse_offsets, lists, values)
    gather_weighted_rows(gathered, gradient, 0, n_trigrams)
    expected = naive.matmul(counts.T.astype(float), errors.astype(float))
    assert relative_error(gathered, expected) < tolerance
    beside = np.full((n_trigrams, width + 5), np.nan, dtype)
    gather_rows(beside, 3, errors, inverse_offsets, lists, 0, n_trigrams)
    plain = beside[:, 3:-2]
    assert np.isnan(beside[:, :3]).all() and np.isnan(beside[:, -2:]).all()
    expected = naive.matmul((counts.T != 0).astype(float), errors.astype(float))
    assert relative_error(plain, expected) < tolerance


def test_texts_and_words_are_taken_out_with_new_numbers():
    rng = np.random.default_rng(4)
    lengths = np.array([3, 0, 5, 1, 4])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    word_index = rng.integers(0, 6, offsets[-1]).astype(np.int32)
    scratch = np.full(6, -1, np.int32)
    chosen = np.array([4, 1, 2, 4], np.int32)
    new_index, new_offsets, words = take_texts(chosen, word_index, offsets, scratch)
    for k, text in enumerate(chosen):
        taken = words[new_index[new_offsets[k] : new_offsets[k + 1]]]
        assert taken.tolist() == word_index[offsets[text] : offsets[text + 1]].tolist()
    assert list(dict.fromkeys(new_index.tolist())) == list(range(len(words)))
    assert np.all(scratch == -1)

    ids = rng.integers(0, 20, offsets[-1]).astype(np.int32)
    counts = rng.standard_normal(offsets[-1]).astype(np.float32)
    known_rows, bits = 3 * np.arange(20, dtype=np.int32) + 1, bits_for(20)
    new_offsets, new_ids, new_counts, rows = take_words(
        chosen[:3], offsets, ids, counts, known_rows, bits, np.full(20, 99, np.int32)
    )
    for k, word in enumerate(chosen[:3]):
        old, new = slice(*offsets[word : word + 2]), slice(*new_offsets[k : k + 2])
        assert rows[new_ids[new]].tolist() == known_rows[ids[old]].tolist()
        assert new_counts[new].tolist() == counts[old].tolist()
    assert rows.tolist() == np.unique(rows[new_ids]).tolist()
    assert not bits.any()


@pytest.mark.parametrize("block_texts", [1, 3, 64])
def test_rows_are_visited_block_by_block_and_step_by_step(block_texts):
    rng = np.random.default_rng(5)
    lengths = np.array([2, 7, 0, 1, 7, 3, 3, 1, 5, 0, 2])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    word_index = rng.integers(0, 9, offsets[-1]).astype(np.int32)
    order, sorted_lengths = longest_first(offsets)
    assert order.tolist() == sorted(np.flatnonzero(lengths), key=lambda k: (-lengths[k], k))
    assert sorted_lengths.tolist() == lengths[order].tolist()
    block_steps, step_rows, words, words_reversed, tokens, tokens_reversed, last_rows = pack_blocks(
        order, offsets, word_index, block_texts
    )
    row = step = 0
    blocks = naive.visits(lengths[order], block_texts)
    assert block_steps.tolist() == np.cumsum([0] + [len(steps) for steps in blocks]).tolist()
    for steps in blocks:
        for running in steps:
            assert step_rows[step] == row
            for k, t in running:
                first, end = offsets[order[k]], offsets[order[k] + 1]
                assert tokens[row] == first + t
                assert tokens_reversed[row] == end - 1 - t
                assert words[row] == word_index[first + t]
                assert words_reversed[row] == word_index[end - 1 - t]
                if first + t == end - 1:
                    assert last_rows[k] == row
                row += 1
            step += 1
    assert step_rows[-1] == row == offsets[-1]


# -- recurrences ---------------------------------------------------------------------------------


def naive_embedding(model, text):
    parts = []
    blocks = model.parameters()["query"]
    for direction, p in enumerate(directions(blocks)):
        L = naive.trigram_vectors(text, model.vocabulary.trigrams)[:: -1 if direction else 1]
        if not len(L):
            return np.zeros(model.dim)
        if model.encoder.name == "irnn":
            parts.append(naive.irnn(p, L))
        else:
            outputs = naive.rnn_forward(p, L) if "W" in p else naive.lstm_forward(p, L)["y"]
            parts.append(outputs[-1])
    if "Wbag" in blocks:
        parts.append(naive.bag({"W": blocks["Wbag"].astype(float)}, L))
    return np.concatenate(parts)


def directions(blocks):
    """The blocks of each direction under their bare names, in float64."""
    blocks = {name: block.astype(float) for name, block in blocks.items() if name != "Wbag"}
    if "forward.W3" not in blocks:
        return [blocks]
    return [
        {name.removeprefix(way): blocks[name] for name in blocks if name.startswith(way)}
        for way in ("forward.", "backward.")
    ]


def naive_gradient(model, texts, V, backward):
    """The sum over ``texts`` of ``backward(p, L, v)`` under the model's names of the blocks."""
    n = model.encoder.cells
    total = {}
    ways = directions(model.parameters()["query"])
    for direction, p in enumerate(ways):
        prefix = ("forward.", "backward.")[direction] if len(ways) == 2 else ""
        for text, v in zip(texts, V, strict=True):
            L = naive.trigram_vectors(text, model.vocabulary.trigrams)
            if not len(L):
                continue
            part = backward(p, L[:: -1 if direction else 1], v[direction * n :][:n].astype(float))
            for name, block in part.items():
                total[prefix + name] = total.get(prefix + name, 0) + block
    if model.encoder.bag_dim:
        V_bag = V[:, -model.encoder.bag_dim :].astype(float)
        total["Wbag"] = sum(
            naive.bag_gradient(naive.trigram_vectors(text, model.vocabulary.trigrams), v)
            for text, v in zip(texts, V_bag, strict=True)
        )
    return total


def kernel_gradient(model, texts, V, workers, **arguments):
    weights = model.weights["query"]
    done = model.encoder.forward(weights, model.vocabulary.batch(texts), workers)
    gradient = gradient_of_form(model.encoder, weights, done, V, workers, **arguments)
    return model.encoder.blocks(gradient)


def assert_close(ours, theirs, tolerance):
    assert ours.keys() == theirs.keys()
    for name in ours:
        error = relative_error(ours[name], theirs[name])
        assert error < tolerance, f"{name}: relative error {error:.1e}"


def backward_twin(model, steps=None, keep_cell_path=False):
    def backward(p, L, v):
        if model.encoder.name == "irnn":
            return naive.irnn_backward(p, L, v, steps)
        if "W" in p:
            return naive.rnn_backward(p, L, v, steps)
        return naive.lstm_backward(p, L, v, steps, keep_cell_path)

    return backward


SIZES = [(variant, cells) for variant in VARIANTS for cells in (1, 2, 7)] + [
    (variant, cells) for variant in (VARIANTS[0], VARIANTS[1], VARIANTS[6]) for cells in (96, 100)
]


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize(
    ("variant", "cells"), SIZES, ids=[f"{variant_name(v)}-{c}" for v, c in SIZES]
)
def test_recurrences_forward_and_backward(variant, cells, dtype, tolerance, workers):
    texts = texts_of_all_kinds()
    model = made_up_model(variant, known_texts(), cells=cells, dtype=dtype)
    assert_passes_are_those_of_the_twins(model, texts, tolerance, workers)


@pytest.mark.parametrize(**each_variant())
def test_long_texts(variant, workers):
    texts = [*made_up_texts(np.random.default_rng(6), (131, 2, 67, 130)), ""]
    model = made_up_model(variant, texts)
    assert_passes_are_those_of_the_twins(model, texts, 1e-12, workers)


def assert_passes_are_those_of_the_twins(model, texts, tolerance, workers):
    """Both forward passes and the backward pass of ``texts``, one of which has no words."""
    dtype = model.weights["query"]["table"].dtype
    batch = model.vocabulary.batch(texts)
    embeddings = model.encoder.forward(model.weights["query"], batch, workers).embeddings
    expected = np.array([naive_embedding(model, text) for text in texts])
    assert relative_error(embeddings, expected) < tolerance
    assert np.all(embeddings[texts.index("")] == 0)
    encoded, *_ = model._encode(texts, "query")
    assert encoded.dtype == dtype and relative_error(encoded, expected) < tolerance
    assert np.all(encoded[texts.index("")] == 0)
    few, *_ = model._encode(texts[:3], "query")  # whose words are known by now
    assert relative_error(few, expected[:3]) < tolerance

    V = np.random.default_rng(6).standard_normal(embeddings.shape).astype(dtype)
    ours = kernel_gradient(model, texts, V, workers)
    assert_close(ours, naive_gradient(model, texts, V, backward_twin(model)), 2 * tolerance)


@pytest.mark.parametrize("keep_cell_path", [False, True], ids=["window", "cec"])
@pytest.mark.parametrize("steps", [1, 2, 5, 12])
@pytest.mark.parametrize(**each_variant())
def test_truncated_recurrences(variant, steps, keep_cell_path, workers):
    texts = texts_of_all_kinds()
    model = made_up_model(variant, known_texts())
    V = np.random.default_rng(7).standard_normal((len(texts), model.dim))
    cut = Truncation(steps, keep_cell_path)
    ours = kernel_gradient(model, texts, V, workers, truncation=cut)
    expected = naive_gradient(model, texts, V, backward_twin(model, steps, keep_cell_path))
    assert_close(ours, expected, 2e-12)


@pytest.mark.parametrize("steps", [None, 3])
@pytest.mark.parametrize(**each_variant([v for v in VARIANTS if "lstm" in v[0]]))
def test_traces_with_exact_and_with_printed_signals(variant, steps, workers):
    texts = texts_of_all_kinds()
    model = made_up_model(variant, known_texts())
    V = np.random.default_rng(8).standard_normal((len(texts), model.dim))
    for form, signals_of in (
        ("trace", naive.lstm_exact_signals),
        ("printed", naive.lstm_printed_signals),
    ):

        def backward(p, L, v, signals_of=signals_of):
            first = 0 if steps is None else max(0, len(L) - steps)
            signals = signals_of(p, L, v, first)
            return naive.lstm_trace_gradient(p, L, signals, first, start=first)

        ours = kernel_gradient(model, texts, V, workers, form=form, truncation=Truncation(steps))
        assert_close(ours, naive_gradient(model, texts, V, backward), 2e-12)


def test_the_two_forms_of_the_twins_agree():
    """The twins themselves: the reverse scan and the traces are the same gradient."""
    for variant in [*VARIANTS[1:7], *(("lstm", settings) for settings in WITHOUT_OUTPUT_GATE)]:
        model = made_up_model(variant, known_texts())
        (p,) = directions(model.parameters()["query"])
        L = naive.trigram_vectors(known_texts()[7], model.vocabulary.trigrams)
        v = np.random.default_rng(9).standard_normal(model.dim)
        for steps in (None, 1, 4):
            first = 0 if steps is None else len(L) - steps
            signals = naive.lstm_exact_signals(p, L, v, first)
            for keep_cell_path in (False, True):
                scan = naive.lstm_backward(p, L, v, steps, keep_cell_path)
                start = 0 if keep_cell_path else first
                traced = naive.lstm_trace_gradient(p, L, signals, first, start)
                assert_close(traced, scan, 1e-12)


@pytest.mark.parametrize(**each_variant([*VARIANTS, *FEED_FORWARD]))
def test_a_batch_as_large_as_in_training(variant, workers):
    """Full blocks, several of them a chunk, and a last one that is not full."""
    rng = np.random.default_rng(10)
    texts = made_up_batch((), 300, rng)
    model = made_up_model(variant, texts[:30])
    texts[17] = texts[-1] = ""
    weights = model.weights["query"]
    ways = list(tower_batch(model.encoder, model.vocabulary, weights, texts, rng, workers))
    for forms in ways:
        assert_close(forms.at_once, forms.otherwise, 1e-12)
    assert len(ways) == (4 if model.encoder.recurrent else 1)
    encoded, *_ = model._encode(texts, "query")
    assert relative_error(encoded, ways[0].otherwise["embeddings"]) < 1e-12


@pytest.mark.parametrize(**each_variant())
def test_a_text_gets_the_same_bits_alone_and_among_others(variant, workers):
    texts = made_up_texts(np.random.default_rng(10), [4, 1, 9, 2, 4, 3] * 25)
    model = made_up_model(variant, texts, cells=21, dtype=np.float32)
    together = model.encoder.forward(
        model.weights["query"], model.vocabulary.batch(texts), workers
    ).embeddings
    encoded = model.encode(texts)
    in_threads = SentenceEncoder(model.encoder, model.vocabulary, model.weights, threads=3)
    assert np.array_equal(in_threads.encode(texts), encoded)
    for first, count in ((0, 2), (1, 3), (60, FEW_TEXTS)):
        few = slice(first, first + count)
        assert np.array_equal(model.encode(texts[few]), encoded[few])
    for k in (0, 1, 2, 77, 149):
        assert np.array_equal(model.encode(texts[k]), encoded[k])
        alone = model.encoder.forward(
            model.weights["query"], model.vocabulary.batch([texts[k]]), workers
        ).embeddings
        assert np.array_equal(alone[0], together[k])


# -- objective -----------------------------------------------------------------------------------


def made_up_pairs(rng, n_queries, n_titles, n_pairs):
    """Pairs with their own candidates: [(query, clicked, others), ...]; queries may repeat."""
    pairs = []
    for _ in range(n_pairs):
        chosen = rng.choice(n_titles, rng.integers(2, n_titles + 1), replace=False).tolist()
        pairs.append((int(rng.integers(n_queries)), chosen[0], chosen[1:]))
    return pairs


def candidates_of(pairs, n_titles, listed):
    queries, clicked, others = zip(*pairs, strict=True)
    if listed:
        lists = [[c, *some] for c, some in zip(clicked, others, strict=True)]
    else:
        lists = [
            sorted(set(range(n_titles)) - {c, *some})
            for c, some in zip(clicked, others, strict=True)
        ]
    queries, clicked = np.array(queries, np.int32), np.array(clicked, np.int32)
    offsets = np.cumsum([0] + [len(some) for some in lists], dtype=np.int64)
    titles = np.array([title for some in lists for title in some], np.int32)
    if listed:
        return ListedCandidates(queries, offsets, titles)
    return BatchCandidates(queries, clicked, offsets, excluded=titles)


@pytest.mark.usefixtures("fine_parts")
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize(("n_queries", "n_titles", "n_pairs"), [(13, 17, 40), (60, 300, 80)])
def test_loss_and_its_gradient_at_the_embeddings(
    n_queries, n_titles, n_pairs, dtype, tolerance, workers
):
    rng, dim = np.random.default_rng(11), 10
    Yq = rng.standard_normal((n_queries, dim)).astype(dtype)
    Yd = (3 * rng.standard_normal((n_titles, dim))).astype(dtype)
    Yq[2] = Yd[3] = 0  # texts without words
    pairs = made_up_pairs(rng, n_queries, n_titles, n_pairs)
    weights = rng.uniform(0.2, 2, len(pairs))
    expected = naive.loss(Yq.astype(float), Yd.astype(float), pairs, 7.0, weights)
    for listed in (True, False):
        candidates = candidates_of(pairs, n_titles, listed)
        found = embedding_loss(Yq, Yd, candidates, 7.0, weights, workers, Workspace())
        for ours, theirs in zip(found, expected, strict=True):
            assert relative_error(ours, theirs) < tolerance
        assert np.all(found[1][2] == 0) and np.all(found[2][3] == 0)


@pytest.mark.usefixtures("fine_parts")
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize(("n_queries", "n_titles", "n_pairs"), [(13, 17, 40), (60, 300, 80)])
def test_loss_with_a_teacher_and_its_gradient(
    n_queries, n_titles, n_pairs, dtype, tolerance, workers
):
    rng, dim = np.random.default_rng(14), 10
    Yq = rng.standard_normal((n_queries, dim)).astype(dtype)
    Yd = (3 * rng.standard_normal((n_titles, dim))).astype(dtype)
    Tq, Td = (unit_rows(rng.standard_normal((n, 7))) for n in (n_queries, n_titles))
    Yq[2] = Tq[5] = Td[3] = 0
    pairs = made_up_pairs(rng, n_queries, n_titles, n_pairs)
    weights, shares = rng.uniform(0.2, 2, len(pairs)), rng.uniform(0, 1, n_queries)
    shares[:2] = 0, 1
    candidates = candidates_of(pairs, n_titles, listed=False)
    queries = candidates.queries
    targets = SoftTargets(Tq[queries], np.ascontiguousarray(Td.T), shares[queries])
    taught = replace(candidates, targets=targets)
    losses, Vq, Vd = embedding_loss(Yq, Yd, taught, 7.0, weights, workers, Workspace())
    naive_targets = naive.soft_targets(Tq, Td, pairs, shares, 20.0)
    expected = naive.loss(Yq.astype(float), Yd.astype(float), pairs, 7.0, weights, naive_targets)
    for ours, theirs in zip((losses, Vq, Vd), expected, strict=True):
        assert relative_error(ours, theirs) < tolerance
    with Workers(1) as one:
        again = embedding_loss(Yq, Yd, taught, 7.0, weights, one, Workspace())
    assert all(map(np.array_equal, (losses, Vq, Vd), again))


@DTYPES
def test_loss_neither_overflows_nor_hides_nan(dtype, workers):
    Yq, Yd = np.eye(2, 3, dtype=dtype), np.eye(3, dtype=dtype) * 1e-6
    Yd[0] *= -1
    for listed in (True, False):
        candidates = candidates_of([(0, 0, [1, 2]), (1, 1, [0, 2])], 3, listed)
        losses, Vq, Vd = embedding_loss(Yq, Yd, candidates, 1e4, np.ones(2), workers, Workspace())
        np.testing.assert_allclose(losses, [1e4 + np.log(2), 0], atol=2e-3)
        assert np.isfinite(Vq).all() and np.isfinite(Vd).all()
        poisoned = Yq.copy()
        poisoned[1, 0] = np.nan
        losses, _, _ = embedding_loss(
            poisoned, Yd, candidates, 1e4, np.ones(2), workers, Workspace()
        )
        assert np.isfinite(losses[0]) and np.isnan(losses[1])


@DTYPES
def test_rows_are_normalised_and_the_slope_is_across_them(dtype):
    rng = np.random.default_rng(12)
    Y = rng.standard_normal((6, 9)).astype(dtype)
    Y[4] = 0
    U, norms = np.full_like(Y, np.nan), np.full(6, np.nan, dtype)
    normalise_rows(U, norms, Y)
    np.testing.assert_allclose(norms, np.linalg.norm(Y, axis=1), rtol=1e-6)
    assert np.all(U[4] == 0)
    np.testing.assert_allclose(np.delete(np.linalg.norm(U, axis=1), 4), 1, rtol=1e-6)
    dU = rng.standard_normal(Y.shape).astype(dtype)
    dY = dU.copy()
    normalise_rows_backward(dY, U, norms)
    np.testing.assert_allclose(np.sum(dY * Y, axis=1), 0, atol=2e-6)
    assert np.all(dY[4] == 0)


@DTYPES
def test_rows_of_any_size_are_divided_by_their_lengths(dtype):
    rng = np.random.default_rng(13)
    Y = rng.standard_normal((12, 21)).astype(dtype)
    info = np.finfo(dtype)
    Y[0, 3], Y[1, 4], Y[2] = np.nan, np.inf, np.nan
    # The squares of the last ones are subnormal numbers of float32.
    scales = (1, info.max / 8, info.tiny * 8, 1e16, 1e-16, 0, 1e-20, 1e-22, 2e-23)
    for row, scale in enumerate(scales, 3):
        Y[row] *= dtype(scale)
    U = Y.copy()
    divide_by_lengths(U)
    assert np.isnan(U[:3]).all()
    expected = naive.unit_rows(Y[3:].tolist())
    np.testing.assert_allclose(U[3:], expected, rtol=3e-7 if dtype == np.float32 else 1e-14)
    wide = rng.standard_normal((3, 8))
    assert np.array_equal(unit_rows(wide[:, ::2]), unit_rows(wide[:, ::2].copy()))


# -- negatives -----------------------------------------------------------------------------------

CLICKS = [(0, 0), (0, 1), (1, 1), (2, 2), (2, 3), (2, 4), (3, 5), (4, 0)]
N_TITLES = 8


def draw(wanted, pool, skipped=None, seed=1, clicks=CLICKS):
    """The list of candidates of each pair."""
    queries, clicked = (np.array(column, np.int32) for column in zip(*clicks, strict=True))
    skipped = skipped or [[] for _ in clicks]
    offsets, candidates = draw_negatives(
        queries,
        clicked,
        np.array(pool, np.int32),
        np.cumsum([0] + [len(some) for some in skipped], dtype=np.int64),
        np.array([title for some in skipped for title in some], np.int32),
        wanted,
        np.searchsorted(queries, np.arange(queries.max() + 2)),
        clicked[np.lexsort((clicked, queries))],
        np.uint64(seed),
    )
    return [candidates[a:b].tolist() for a, b in itertools.pairwise(offsets)]


@pytest.mark.parametrize("wanted", [1, 3, 20])
@pytest.mark.parametrize(
    "pool", [[1, 5], [2, 2, 2, 2, 6], list(range(N_TITLES))], ids=["few", "repeats", "all"]
)
def test_negatives_keep_the_rules(wanted, pool):
    for seed in range(30):
        for (query, title), candidates in zip(CLICKS, draw(wanted, pool, seed=seed), strict=True):
            allowed = naive.allowed_negatives(query, CLICKS, pool, [])
            assert candidates[0] == title
            negatives = candidates[1:]
            assert set(negatives) <= allowed
            assert len(set(negatives)) == len(negatives) == min(wanted, len(allowed))


def test_skipped_titles_come_first_and_the_pool_fills_up():
    skipped = [[6, 7, 1], [], [7], [], [], [], [5, 5, 6], []]
    seen = set()
    for seed in range(20):
        drawn = draw(2, list(range(N_TITLES)), skipped, seed=seed)
        assert set(drawn[0][1:]) == {6, 7}  # 1 is clicked for the same query
        assert drawn[2][1] == 7 and len(drawn[2]) == 3
        assert drawn[6][1:] == [6, drawn[6][2]] and drawn[6][2] not in (5, 6)
        assert len(drawn[1]) == 3
        seen.add(tuple(drawn[0][1:]))
    assert seen == {(6, 7), (7, 6)}, "skipped titles are to come in random order"
    assert draw(2, [], skipped)[1] == [1], "no pool and nothing skipped: no negatives"


def test_draws_follow_the_seed_and_the_frequencies_of_the_pool():
    pool = [6] * 6 + [7] * 3 + [5]
    assert draw(1, pool, seed=3) == draw(1, pool, seed=3)
    clicks = [(0, 0)] * 3000
    drawn = [candidates[1] for candidates in draw(1, pool, clicks=clicks)]
    shares = np.bincount(drawn, minlength=N_TITLES) / len(drawn)
    # Five standard deviations of a share are 0.045.
    np.testing.assert_allclose(shares[[5, 6, 7]], [0.1, 0.6, 0.3], atol=0.045)
    assert drawn != [candidates[1] for candidates in draw(1, pool, seed=2, clicks=clicks)]


# Pairs of a batch, and titles that join theirs. In the second one the batch's title 0 is left out.
@pytest.mark.parametrize(("batch", "others"), [((0, 3, 5), (1, 4)), ((1, 3, 5), (0, 4))])
def test_titles_clicked_for_the_same_query_are_left_out(batch, others):
    queries, clicked = (np.array(column, np.int32) for column in zip(*CLICKS, strict=True))
    query_offsets = np.concatenate([[0], np.cumsum(np.bincount(queries))])
    batch = np.array(batch, np.int32)
    titles = np.unique([*clicked[batch], *others])
    local = np.full(N_TITLES, -1, np.int32)
    local[titles] = np.arange(titles.size)
    offsets, left_out = titles_to_leave_out(
        queries[batch], clicked[batch], query_offsets, clicked, local
    )
    for k, pair in enumerate(batch):
        also = {t for q, t in CLICKS if q == queries[pair]} - {int(clicked[pair])}
        found = titles[left_out[offsets[k] : offsets[k + 1]]].tolist()
        assert sorted(found) == sorted(also & set(titles.tolist()))


# -- hard negatives ------------------------------------------------------------------------------


def assert_highest(highest, cosines, left_out):
    """The titles found are those with the largest cosines among the others of ``left_out``."""
    best = naive.highest_cosines(cosines, left_out, highest.shape[1])
    for q, (row, expected) in enumerate(zip(highest, best, strict=True)):
        found, expected = row[row >= 0], expected[np.isfinite(expected)]
        assert found.size == expected.size == np.unique(found).size
        assert not left_out[q, found].any()
        # Two titles may lie closer than rounding; their cosines are as good as equal then.
        ours = np.sort(cosines[q, found])[::-1]
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5)


@DTYPES
@pytest.mark.parametrize("k", [1, 30])
def test_hard_negatives_are_the_unclicked_titles_with_the_highest_cosines(dtype, k):
    # More queries and titles than one tile of the kernel, and no whole number of tiles.
    rng = np.random.default_rng(k)
    n_queries, n_titles, dim = 300, 2_100, 8
    Uq, Ud = (rng.normal(size=(n, dim)).astype(dtype) for n in (n_queries, n_titles))
    cosines = Uq @ Ud.T
    near = np.argsort(-cosines, axis=1)
    # Clicks are among what would be the best titles; query 0 has many and query 1 none.
    clicked = [near[q, rng.choice(40, q % 4 + 1, replace=False)] for q in range(n_queries)]
    clicked[0], clicked[1] = near[0, : n_titles - 5], near[1, :0]
    lists = (
        np.concatenate([[0], np.cumsum([some.size for some in clicked])]),
        np.concatenate(clicked).astype(np.int32),
    )
    highest = np.full((n_queries + 1, k), 7, np.int32)
    UdT = np.ascontiguousarray(Ud.T)
    for first, end in ((0, 170), (170, n_queries)):
        highest_titles(highest, Uq, UdT, *lists, first, end)
    assert np.all(highest[-1] == 7), "a query that was not asked for"
    left_out = np.zeros(cosines.shape, bool)
    for q, some in enumerate(clicked):
        left_out[q, some] = True
    assert_highest(highest[:-1], cosines, left_out)
    sizes = np.count_nonzero(highest[:-1] >= 0, axis=1)
    assert sizes[0] == min(k, 5) and (sizes[1:] == k).all()


@DTYPES
def test_hard_negatives_of_clusters_are_the_highest_titles_in_them(dtype):
    # Cluster 0 has more titles than a tile of the kernel and is probed by more queries; cluster 3
    # has no title, and cluster 4 fewer than are wanted.
    rng = np.random.default_rng(3)
    n_queries, dim, k = 300, 8, 30
    cluster_of = rng.permutation(np.repeat([0, 1, 2, 4], [2_100, 70, 90, 11]))
    n_titles = cluster_of.size
    Uq, Ud = (rng.normal(size=(n, dim)).astype(dtype) for n in (n_queries, n_titles))
    probed = np.array([[0, 2], [3, 4], [1, 0], [2, 4]], np.int32)[np.arange(n_queries) % 4]
    cosines = Uq @ Ud.T
    near = np.argsort(-cosines, axis=1)
    titles = np.argsort(cluster_of, kind="stable").astype(np.int32)
    offsets = np.searchsorted(cluster_of[titles], np.arange(6))
    clicked = [rng.choice(near[q, :400], q % 3, replace=False) for q in range(n_queries)]
    clicked[1] = titles[offsets[4:5]]  # the first of its tile; unclicked it would be found
    lists = (
        np.concatenate([[0], np.cumsum([some.size for some in clicked])]),
        np.concatenate(clicked).astype(np.int32),
    )
    blocks = np.full(Ud.size, np.nan, dtype)
    for first, end in ((0, 2), (2, 5)):
        lay_out_clusters(blocks, Ud, titles, offsets, first, end)
    for c in range(5):
        low, high = offsets[c : c + 2]
        block = blocks[dim * low : dim * high].reshape(dim, -1) if low < high else Ud[:0].T
        assert np.array_equal(block, Ud[cluster_of == c].T)
    clusters = blocks, titles, offsets, np.argsort(titles).astype(np.int32)
    highest = np.full((n_queries + 1, k), 7, np.int32)
    for first, end in ((0, 270), (270, n_queries)):
        highest_of_clusters(highest, Uq, probed, *lists, *clusters, first, end)
    assert np.all(highest[-1] == 7), "a query that was not asked for"
    left_out = np.array([~np.isin(cluster_of, some) for some in probed])
    for q, some in enumerate(clicked):
        left_out[q, some] = True
    assert_highest(highest[:-1], cosines, left_out)
    sizes = np.count_nonzero(highest[:-1] >= 0, axis=1)
    assert ((sizes == k) | (np.arange(n_queries) % 4 == 1)).all()


# -- rows of a title ---------------------------------------------------------------------------


def test_the_best_row_of_every_title():
    rng = np.random.default_rng(14)
    counts = np.array([3, 0, 70, 1, 20])
    offsets, title_of = np.concatenate([[0], np.cumsum(counts)]), np.repeat(np.arange(5), counts)
    codes = rng.integers(-127, 128, (counts.sum(), 6)).astype(np.int8)
    codes[40] = codes[50]  # of equal rows the first
    scales = rng.uniform(0.5, 2, len(codes)).astype(np.float32)
    scales[50] = scales[40] = 9
    queries = np.vstack([rng.standard_normal((3, 6)), codes[40]])
    products = (codes * scales[:, None].astype(float)) @ queries.T
    before = rng.standard_normal((4, 5)).astype(np.float32)
    expected = before.astype(float)
    for title in (0, 2, 3, 4):
        expected[:, title] += 0.5 * products[title_of == title].max(axis=0)
    for chosen in (slice(0, 4), slice(3, 4)):
        total, stored = before[chosen].copy(), products[:, chosen].astype(np.float32)
        for first, end in ((0, 2), (2, 5)):
            rows = slice(offsets[first], offsets[end])
            part = np.ascontiguousarray(stored[rows])
            add_best(total, np.float32(0.5), part, offsets, offsets[first], first, end)
        np.testing.assert_allclose(total, expected[chosen], rtol=1e-5)
    pairs = [index.ravel() for index in np.indices((4, 5))]
    scores, rows = np.full(20, np.nan), np.full(20, -7)
    for first, end in ((0, 7), (7, 20)):
        best_of_pairs(scores, rows, queries, *pairs, offsets, codes, scales, first, end)
    for query, title, score, row in zip(*pairs, scores, rows, strict=True):
        if title == 1:
            assert (score, row) == (0, -1)
            continue
        own = products[offsets[title] : offsets[title + 1], query]
        assert row - offsets[title] == np.argmax(own)
        assert score == pytest.approx(own.max(), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_products_of_pairs_of_a_query_and_a_row(dtype):
    rng = np.random.default_rng(16)
    rows = rng.integers(-127, 128, (30, 7)).astype(dtype)
    scales = rng.uniform(0.5, 2, 30 if dtype == np.int8 else 0).astype(np.float32)
    queries = rng.standard_normal((3, 7))
    query, row = rng.integers(3, size=50), rng.integers(30, size=50)
    scores = np.full(50, np.nan)
    for first, end in ((0, 20), (20, 50)):
        products_of_pairs(scores, queries, query, row, rows, scales, first, end)
    factors = scales.astype(float) if scales.size else np.ones(30)
    naive = [
        factors[r] * (queries[q] @ rows[r].astype(float)) for q, r in zip(query, row, strict=True)
    ]
    np.testing.assert_allclose(scores, naive, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("together", ["many", "one by one"])
def test_the_best_row_of_every_title_for_one_query(together):
    """A title may have more rows than are multiplied at a time, and the first and last none."""
    rng = np.random.default_rng(15)
    counts = np.array([0, 300, 212, 0, 1, 700, 2, 511, 1, 0])
    if together == "one by one":
        counts = np.minimum(counts, 1)
    n, dim = counts.sum(), 33
    offsets = np.concatenate([[0], np.cumsum(counts)])
    codes = rng.integers(-127, 128, (n, dim)).astype(np.int8)
    scales = rng.uniform(0.5, 2, n).astype(np.float32)
    query, step = rng.integers(-999, 999, dim).astype(np.int16), np.float32(1e-3)
    before = rng.standard_normal(len(counts)).astype(np.float32)
    products = scales.astype(float) * (codes.astype(float) @ query) * 1e-3
    expected = before.astype(float)
    for title in np.flatnonzero(counts).tolist():
        expected[title] += 0.5 * products[offsets[title] : offsets[title + 1]].max()
    total, arguments = before.copy(), (offsets, codes, scales, query, step)
    for first, end in ((0, 3), (3, 5), (5, 10)):
        add_best_of_one(total, np.float32(0.5), *arguments, first, end)
    np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-4)
    titles, best = np.array([5, 0, 1, 9, 4, 5, 7, 2, 8, 6, 3, 1]), np.empty(12, np.float32)
    best_of_titles(best, titles, *arguments)
    np.testing.assert_allclose(best, 2 * (expected - before)[titles], rtol=1e-5, atol=1e-4)


# -- top k ---------------------------------------------------------------------------------------


@DTYPES
def test_top_k_are_those_of_the_naive_twin_ties_and_nan_included(dtype):
    rng = np.random.default_rng(12)
    special = [-np.inf, np.inf, np.nan, 0.0, -0.0, 1.5]
    for n in (1, 2, 3, 7, 100, 300):
        # Few distinct values, so that there are many ties.
        scores = rng.integers(-3, 4, (9, n)).astype(dtype)
        scores[1:3] = rng.choice(special, (2, n))
        scores[3], scores[4] = np.nan, np.arange(n)
        for k in sorted({0, 1, 2, n // 2, n - 1, n}):
            if k > n:
                continue
            best = np.full((9, k), -1, np.int64)
            for first, end in ((0, 4), (4, 8)):
                top_k(best, scores, first, end)
            expected = [naive.highest(row, k) for row in scores]
            assert best[:8].tolist() == expected[:8]
            assert np.all(best[8] == -1), "a row that was not asked for"


def test_highest_of_one_row_is_at_most_all_of_it():
    scores = np.array([1.0, 3.0, np.nan, 3.0])
    assert highest(scores, 2).tolist() == [1, 3]
    assert highest(scores, 10).tolist() == [1, 3, 0, 2]
    assert highest(scores[:0], 3).tolist() == []
    # A column of a matrix lies scattered in memory.
    assert highest(np.arange(12.0).reshape(3, 4)[:, 1], 2).tolist() == [2, 1]
