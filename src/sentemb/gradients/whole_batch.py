"""A mini-batch as large as in training: its gradient at once and in other exact ways.

Finite differences need many passes, so their texts are few, and the blocks in which texts run side
by side hold one to three of them. In training a block holds up to 64, and a thread has several
blocks. Nothing is differentiated here: the gradient of a whole mini-batch must be the sum of those
of a few texts at a time, which the differences vouch for, and that of the traces, also where errors
are cut off.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from sentemb.gradients.traces import has_traces, trace_gradient
from sentemb.models.towers.encoder import Encoder, ForwardPass
from sentemb.models.towers.registry import TRUNCATION
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.packing import LEAST_BLOCKS
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.vocabulary import Vocabulary

_NEW_WORDS = 1000
_MORE_WORDS = 5  # than one, in the mean of most texts
# Steps after which errors are cut off: fewer than many texts have, more than others.
_CUT = 3


class BatchForms(NamedTuple):
    """The gradient of a mini-batch at once, and in another exact way that is called ``way``.

    Both have the same blocks; what a forward pass returned may be among them.
    """

    way: str
    at_once: Arrays
    otherwise: Arrays


def made_up_batch(known: Iterable[str], n_texts: int, rng: np.random.Generator) -> list[str]:
    """Texts of `made_up_lengths` over the words ``known`` and over new ones.

    As in a language, few words are in many texts and many words in few.
    """
    letters = list("abcde")
    words = [*known, *("".join(rng.choice(letters, rng.integers(1, 6))) for _ in range(_NEW_WORDS))]
    shares = 1 / np.arange(1, len(words) + 1)  # Zipf's law
    lengths = made_up_lengths(n_texts, rng)
    drawn = iter(rng.choice(words, sum(lengths), p=shares / shares.sum()))
    return [" ".join(islice(drawn, length)) for length in lengths]


def made_up_lengths(n_texts: int, rng: np.random.Generator) -> list[int]:
    """Draw the number of words of each text: 6 on average, 16 for one text in ten.

    Few have one word: the last blocks hold the shortest texts and are to have steps, too.
    """
    mean = _MORE_WORDS * np.where(rng.random(n_texts) < 1 / 10, 3, 1)
    lengths: list[int] = (1 + rng.poisson(mean)).tolist()
    return lengths


def in_parts(of: Callable[[slice], Arrays], n_texts: int) -> BatchForms:
    """A gradient at once, and as the sum of those of parts of its mini-batch.

    ``of`` computes the gradient of a slice of the texts. A part has few enough of them that each
    is alone in its block.
    """
    at_once = of(slice(0, n_texts))
    sums = {name: np.zeros_like(array) for name, array in at_once.items()}
    for first in range(0, n_texts, LEAST_BLOCKS):
        for name, array in of(slice(first, min(first + LEAST_BLOCKS, n_texts))).items():
            sums[name] += array
    return BatchForms(f"{LEAST_BLOCKS} by {LEAST_BLOCKS}", at_once, sums)


def tower_batch(
    encoder: Encoder,
    vocabulary: Vocabulary,
    weights: Arrays,
    texts: list[str],
    rng: np.random.Generator,
    workers: Workers,
) -> Iterator[BatchForms]:
    """The gradient of one tower by ``texts``, for a random gradient at their embeddings.

    ``texts`` may have texts without words. The embeddings are compared, too.
    """
    V = rng.standard_normal((len(texts), encoder.dim))

    def named(done: ForwardPass, gradient: Arrays) -> Arrays:
        table = np.zeros_like(weights["table"])
        table[done.batch.input_rows] = gradient["table"]
        return encoder.blocks({**gradient, "table": table})

    def of(part: slice) -> Arrays:
        done = encoder.forward(weights, vocabulary.batch(texts[part]), workers)
        embeddings = np.zeros_like(V)
        embeddings[part] = done.embeddings
        gradient = encoder.backward(weights, done, V[part], workers)
        return {"embeddings": embeddings, **named(done, gradient)}

    yield in_parts(of, len(texts))
    if not has_traces(encoder):
        return
    done = encoder.forward(weights, vocabulary.batch(texts), workers)
    cuts = {f" cut after {_CUT} ({mode})": Truncation.of(_CUT, mode) for mode in TRUNCATION.choices}
    for name, cut in {"": None, **cuts}.items():
        scan = encoder.backward(weights, done, V, workers, truncation=cut)
        traced = trace_gradient(encoder, weights, done, V, truncation=cut)
        yield BatchForms(f"traces{name}", named(done, scan), named(done, traced))
