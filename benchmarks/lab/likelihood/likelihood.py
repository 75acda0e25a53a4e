"""Equation (2) of the SIF paper: the log-likelihood of sentences, and its gradient.

A discourse vector c emits a word w with the probability (Arora, Liang and Ma, ICLR 2017)

    p(w | c) = alpha p(w) + (1 - alpha) exp(<v_w, c>) / Z(c),    Z(c) = sum_u exp(<v_u, c>)

The paper treats Z as a constant. Here Z is exact, and its slope can be left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.kernels.matmul import add_matmul

Matrix = NDArray[np.float64]


class Partition(NamedTuple):
    """The partition function at some vectors.

    log : (n,) float64, log Z(c)
    mean : (n, d) float64, the gradient of log Z: the mean of the word vectors under
        ``exp(<v_w, c>) / Z(c)``
    """

    log: Matrix
    mean: Matrix


@dataclass(frozen=True)
class Sentences:
    """Sentences as rows of word vectors, none of them empty.

    Attributes
    ----------
    words : (n_words,) int64
        The rows of all words, sentence after sentence.
    starts : (n,) int64
        Where each sentence begins.
    """

    words: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int] | NDArray[np.integer]]) -> "Sentences":
        """Sentences given one by one.

        Raises
        ------
        SentembError
            If there is none, or one has no words.
        """
        lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        if not lengths.size or not lengths.all():
            raise SentembError("a sentence without words has no likelihood; leave it out")
        words = np.concatenate([np.asarray(sentence, np.int64) for sentence in sentences])
        return cls(words, np.cumsum(lengths) - lengths)

    def __len__(self) -> int:
        return self.starts.size

    def take(self, chosen: NDArray[np.integer]) -> "Sentences":
        """Some of the sentences, in this order."""
        ends = np.append(self.starts[1:], self.words.size)
        return Sentences.of([self.words[self.starts[k] : ends[k]] for k in chosen])

    @property
    def sentence_of(self) -> NDArray[np.int64]:
        """The sentence of every word: (n_words,)."""
        lengths = np.diff(np.append(self.starts, self.words.size))
        return np.repeat(np.arange(len(self)), lengths)


class Likelihood:
    """The log-likelihood of sentences as a function of their discourse vectors.

    Parameters
    ----------
    vectors : (V, d) float
        Word vectors; kept in float64.
    probabilities : (V,) float
        p(w), summing to 1.
    alpha : float
        Share of words that are drawn by frequency alone, at least 0 and below 1.

    Raises
    ------
    SentembError
        If the shapes do not fit, ``alpha`` is out of bounds, or p(w) is not a distribution.
    """

    def __init__(self, vectors: np.ndarray, probabilities: np.ndarray, alpha: float) -> None:
        self.vectors = np.ascontiguousarray(vectors, np.float64)
        self.probabilities = np.asarray(probabilities, np.float64)
        self.alpha = float(alpha)
        if self.vectors.ndim != 2 or self.probabilities.shape != (len(self.vectors),):
            raise SentembError(
                f"vectors of shape {self.vectors.shape} with probabilities of shape "
                f"{self.probabilities.shape}; give one probability for each vector"
            )
        if not 0 <= self.alpha < 1:
            raise SentembError(f"alpha is {alpha}; give a number from 0 to below 1")
        if self.probabilities.min() < 0 or abs(self.probabilities.sum() - 1) > 1e-6:
            raise SentembError("the probabilities must be at least 0 and sum to 1; normalise them")
        self._transposed = np.ascontiguousarray(self.vectors.T)
        with np.errstate(divide="ignore"):  # log 0 for alpha = 0 or p(w) = 0
            self._log_smooth = np.log(self.alpha * self.probabilities)

    @property
    def a(self) -> float:
        """a0 = (1 - alpha) / (alpha V), the a of the weights a / (a + p(w)) at c = 0."""
        return (1 - self.alpha) / (self.alpha * len(self.vectors)) if self.alpha else np.inf

    def partition(self, C: Matrix) -> Partition:
        """Z and the slope of its logarithm at the rows of ``C``: (n, d) float64."""
        logs, shares = self._shares(C)
        mean = np.zeros(C.shape)
        add_matmul(mean, shares, self.vectors)
        return Partition(logs, mean)

    def word_probabilities(self, C: Matrix) -> Matrix:
        """p(w | c) of every word at the rows of ``C``, (n, d) float64: (n, V) float64."""
        return self.alpha * self.probabilities + (1 - self.alpha) * self._shares(C)[1]

    def _shares(self, C: Matrix) -> tuple[Matrix, Matrix]:
        """log Z(c), and exp(<v_w, c>) / Z(c) of every word: (n,), (n, V)."""
        shares = np.zeros((len(C), len(self.vectors)))
        add_matmul(shares, np.ascontiguousarray(C), self._transposed)
        largest = shares.max(axis=1)
        shares -= largest[:, None]
        np.exp(shares, out=shares)
        total = shares.sum(axis=1)
        shares /= total[:, None]
        return largest + np.log(total), shares

    def values(self, C: Matrix, sentences: Sentences) -> Matrix:
        """The log-likelihood of each sentence, sum_w f_w(c): (n,) float64.

        Parameters
        ----------
        C : (n, d) float64
            The discourse vector of each sentence.
        sentences : Sentences
            As many as ``C`` has rows.
        """
        return self.values_and_gradient(C, sentences)[0]

    def values_and_gradient(
        self, C: Matrix, sentences: Sentences, partition_slope: bool = True
    ) -> tuple[Matrix, Matrix]:
        """The log-likelihood of each sentence and its gradient by the sentence's vector.

        With r_w(c) = (1 - alpha) exp(<v_w, c>) / Z / p(w | c), the posterior probability that the
        discourse emitted w, the gradient is sum_w r_w (v_w - grad log Z(c)). At c = 0 it is
        sum_w a0 / (a0 + p(w)) (v_w - mu), mu the mean of all vectors.

        Parameters
        ----------
        C : (n, d) float64
            The discourse vector of each sentence.
        sentences : Sentences
            As many as ``C`` has rows.
        partition_slope : bool
            False drops grad log Z, as the paper does in its expansion above equation (3).

        Returns
        -------
        values : (n,) float64
        gradient : (n, d) float64
        """
        partition = self.partition(C)
        owners = sentences.sentence_of
        rows = self.vectors[sentences.words]
        log_discourse = np.log1p(-self.alpha) - partition.log[owners]
        log_discourse += np.einsum("wd,wd->w", rows, C[owners])
        logs = np.logaddexp(self._log_smooth[sentences.words], log_discourse)
        posterior = np.exp(log_discourse - logs)
        gradient = np.add.reduceat(posterior[:, None] * rows, sentences.starts, axis=0)
        if partition_slope:
            gradient -= np.add.reduceat(posterior, sentences.starts)[:, None] * partition.mean
        return np.add.reduceat(logs, sentences.starts), gradient

    def gradient_at_zero(self, sentences: Sentences) -> Matrix:
        """The exact gradient at c = 0 in closed form: sum_w a0 / (a0 + p(w)) (v_w - mu), (n, d)."""
        p = self.probabilities[sentences.words]
        weights = self.a / (self.a + p) if self.alpha else np.ones(p.size)
        centred = self.vectors[sentences.words] - self.vectors.mean(axis=0)
        return np.add.reduceat(weights[:, None] * centred, sentences.starts, axis=0)
