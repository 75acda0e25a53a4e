"""A few texts from their letters to their embeddings in one call.

Each call from Python costs a part of the time of one text. The kernels are those of many texts.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from sentemb.kernels.compiling import symbols
from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.compiling.numba_internals import CAN_CALL
from sentemb.kernels.inference import embed_lstm
from sentemb.kernels.tokens import find_words

_NUMBERS, _INDEX = types.int64[::1], types.int32[::1]
_TEXT = types.Bytes(types.uint8, 1, "C", readonly=True)
_SIGNATURE_OF_FIND = types.UniTuple(types.int64, 3)(
    _TEXT,
    _TEXT,
    types.int64[:, ::1],
    types.uint8[::1],
    types.int64,
    types.boolean[::1],
    _INDEX,
    _NUMBERS,
)


@intrinsic
def _find_words(typingctx, text, edges, entries, letters, seed, is_known, word_index, offsets):
    """`find_words` by its symbol."""

    def codegen(context, builder, signature, args):
        return symbols.call(context, builder, _provide_find_words, signature, args)

    return _SIGNATURE_OF_FIND, codegen


def _provide_find_words():
    return symbols.provided("sentemb_find_words", find_words, _SIGNATURE_OF_FIND.args)


@intrinsic
def _embedded(
    typingctx, embeddings, P, word_index, offsets, order, recurrent, panels, diagonals, before,
    after, output_gate, first, end,
):  # fmt: skip
    """`embed_lstm` by its symbol."""
    provide = _EMBED[P.dtype]

    def codegen(context, builder, signature, args):
        symbols.call(context, builder, provide, signature, args)
        return context.get_dummy_value()

    return _signature_of_embed(P.dtype), codegen


def _signature_of_embed(element):
    rows, stack, number = element[:, ::1], element[:, :, ::1], types.int64
    texts = _INDEX, _NUMBERS, _NUMBERS
    return types.void(rows, rows, *texts, *[stack] * 5, number, number, number)


def _provide_float32():
    return _provided(types.float32)


def _provide_float64():
    return _provided(types.float64)


_EMBED = {types.float32: _provide_float32, types.float64: _provide_float64}


def _provided(element):
    signature = _signature_of_embed(element)
    return symbols.provided(f"sentemb_embed_lstm_{element}", embed_lstm, signature.args)


if not CAN_CALL:
    _find_words, _embedded = find_words, embed_lstm


@kernel
def embed_few(
    embeddings,
    text,
    edges,
    entries,
    letters,
    seed,
    is_known,
    P,
    recurrent,
    panels,
    diagonals,
    before,
    after,
    output_gate,
):
    """The embeddings of a few texts, as one block.

    embeddings : (n_texts, directions n + bag_dim) float, written
    text, edges, entries, letters, seed, is_known : see `find_words`; there are n_texts texts
    P, recurrent, panels, diagonals, before, after, output_gate : see `embed_lstm`
    Returns whether they are written: not if a word is not in the table, or a text has no word that
    counts as known.
    """
    n_texts = len(embeddings)
    word_index, offsets = np.empty(len(text) // 2, np.int32), np.empty(n_texts + 1, np.int64)
    _, n_new, n_poor = _find_words(
        text, edges, entries, letters, seed, is_known, word_index, offsets
    )
    if n_new or n_poor:
        return False
    order = np.empty(n_texts, np.int64)
    for k in range(n_texts):  # from long to short
        rank, length = k, offsets[k + 1] - offsets[k]
        while rank > 0:
            last = order[rank - 1]
            if offsets[last + 1] - offsets[last] >= length:
                break
            order[rank] = last
            rank -= 1
        order[rank] = k
    _embedded(
        embeddings,
        P,
        word_index,
        offsets,
        order,
        recurrent,
        panels,
        diagonals,
        before,
        after,
        output_gate,
        0,
        n_texts,
    )
    return True
