"""The check ``sif-likelihood``: equation (2) of the SIF paper by the discourse vectors."""

import numpy as np

from lab.likelihood.likelihood import Likelihood, Sentences
from sentemb.gradients.check_options import SCALE
from sentemb.gradients.problem import CheckedProblem
from sentemb.system.contracts import Arrays

_WORDS, _DIM = 300, 10


class SIFLikelihood(CheckedProblem):
    """Minus the log-likelihood of made-up sentences, with 300 words in 10 dimensions.

    The word probabilities follow Zipf's law. The word vectors have a mean other than zero, so that
    Z is not constant. The discourse vectors are checked at random points (``point.c``) and at 0
    (``origin.c``), where the gradient has the closed form sum_w a0 / (a0 + p(w)) (v_w - mu).

    ``alpha`` is the share of words that are drawn by frequency alone; ``lengths`` are the words of
    the sentences.
    """

    name = "sif-likelihood"

    def __init__(self, alpha: float, lengths: tuple[int, ...], seed: int) -> None:
        self.settings = {"alpha": alpha, "lengths": lengths, "seed": seed}
        self.rng = rng = np.random.default_rng(seed)
        vectors = rng.standard_normal((_WORDS, _DIM)) + rng.standard_normal(_DIM)
        p = 1 / np.arange(2, _WORDS + 2)
        self._likelihood = Likelihood(SCALE * vectors, p / p.sum(), alpha)
        sentences = [rng.choice(_WORDS, length, p=p / p.sum()) for length in lengths]
        self._sentences = Sentences.of(sentences)
        shape = len(lengths), _DIM
        self.parameters = {
            "point": {"c": rng.standard_normal(shape)},
            "origin": {"c": np.zeros(shape)},
        }

    def loss(self) -> float:
        points = (blocks["c"] for blocks in self.parameters.values())
        return -float(sum(self._likelihood.values(C, self._sentences).sum() for C in points))

    def gradient(self, form: str = "scan") -> dict[str, Arrays]:
        """``printed`` drops the slope of log Z, as the paper does."""
        return {
            side: {
                "c": -self._likelihood.values_and_gradient(
                    blocks["c"], self._sentences, partition_slope=form != "printed"
                )[1]
            }
            for side, blocks in self.parameters.items()
        }

    def second_form(self) -> dict[str, Arrays]:
        return {"origin": {"c": -self._likelihood.gradient_at_zero(self._sentences)}}

    def at_fault(self, block: str) -> str:
        return "expansion above (3): Z depends on c, - grad log Z(c) is dropped"
