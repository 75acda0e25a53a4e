"""A mini-batch as large as in training: its gradient at once and in other exact ways.

Finite differences need many passes, so their texts are few, and the blocks in which texts run side
by side hold one to three of them. In training a block holds up to 64, and a thread has several
blocks. Nothing is differentiated here: the gradient of a whole mini-batch must be the sum of those
of its texts alone, which the differences vouch for, and that of the traces, also where errors are
cut off.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from sentemb.gradients.traces import has_traces, trace_gradient
from sentemb.models.towers.encoder import Encoder, ForwardPass
from sentemb.models.towers.registry import TRUNCATION
from sentemb.models.towers.truncation import Truncation
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.vocabulary import Vocabulary

_NEW_WORDS = 1000
_MEAN_WORDS, _MOST_WORDS = 5, 24
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
    """Texts of 1 to 24 words, most of them short, over the words ``known`` and over new ones.

    As in a language, few words are in many texts and many words in few.
    """
    letters = list("abcde")
    words = [*known, *("".join(rng.choice(letters, rng.integers(1, 6))) for _ in range(_NEW_WORDS))]
    shares = 1 / np.arange(1, len(words) + 1)  # Zipf's law
    lengths = made_up_lengths(n_texts, rng)
    drawn = iter(rng.choice(words, sum(lengths), p=shares / shares.sum()))
    return [" ".join(islice(drawn, length)) for length in lengths]


def made_up_lengths(n_texts: int, rng: np.random.Generator) -> list[int]:
    """The numbers of words of some texts: 1 to 24, 5 in the mean."""
    lengths: list[int] = np.minimum(rng.geometric(1 / _MEAN_WORDS, n_texts), _MOST_WORDS).tolist()
    return lengths


def one_by_one(at_once: Arrays, parts: Iterable[Arrays]) -> BatchForms:
    """A gradient at once and as the sum of those of the ``parts`` of its mini-batch."""
    sums = {name: np.zeros_like(array) for name, array in at_once.items()}
    for part in parts:
        for name, array in part.items():
            sums[name] += array
    return BatchForms("one by one", at_once, sums)


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

    def passes(chosen: list[str]) -> ForwardPass:
        return encoder.forward(weights, vocabulary.batch(chosen), workers)

    def named(done: ForwardPass, gradient: Arrays) -> Arrays:
        table = np.zeros_like(weights["table"])
        table[done.batch.input_rows] = gradient["table"]
        return encoder.blocks({**gradient, "table": table})

    def at_once(cut: Truncation | None = None) -> Arrays:
        return named(done, encoder.backward(weights, done, V, workers, truncation=cut))

    def by_traces(cut: Truncation | None = None) -> Arrays:
        return named(done, trace_gradient(encoder, weights, done, V, truncation=cut))

    def alone(number: int) -> Arrays:
        text = passes([texts[number]])
        embeddings = np.zeros_like(V)
        embeddings[number] = text.embeddings[0]
        gradient = encoder.backward(weights, text, V[number : number + 1], workers)
        return {"embeddings": embeddings, **named(text, gradient)}

    done = passes(texts)
    whole = at_once()
    with_embeddings = {"embeddings": done.embeddings, **whole}
    yield one_by_one(with_embeddings, map(alone, range(len(texts))))
    if not has_traces(encoder):
        return
    yield BatchForms("traces", whole, by_traces())
    for mode in TRUNCATION.choices:
        cut = Truncation.of(_CUT, mode)
        yield BatchForms(f"traces cut after {_CUT} ({mode})", at_once(cut), by_traces(cut))
