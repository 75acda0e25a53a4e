"""Which words of a text a model takes for keywords: how many cells change at each.

After section V-A and Tables I, II and V-X of Palangi et al. (arXiv 1502.06922): look at the cells
that are most active when the text has been read, go back over its words, and count at each word the
cells whose output changes by more than a threshold. A word at which more than 40 % of them do, in
every direction that the model reads, is a keyword.

**The first word** that a direction reads has no count there. Before it the outputs are zero, so
that any word would count as a large change (the paper's footnote). Of a two-way model the first
word is therefore judged by the direction from right to left alone and the last word by the other
one; a one-way model says nothing about the first word.

**The threshold** is the mean of all changes ``|y_j(t) - y_j(t-1)|`` in the text, y(0) = 0: over all
words and over all cells of the direction, the active ones and the others. A cell so declares a word
if it changes there by more than a cell of this model does on the average in this text. No fixed
number could say what is much: outputs differ in size from model to model and with the length of a
text. The first word counts in the mean, though not as a keyword: it is what a text of two words has
to compare its second one with.
"""

from dataclasses import dataclass

import numpy as np

from sentemb.errors import SentembError
from sentemb.kernels.top_k import highest

# The paper's: 10 cells, more than 40 % of them.
MOST_ACTIVE = 10
KEYWORD_SHARE = 0.4

DIRECTIONS = ("left to right", "right to left")
NOT_COMPARED = -1


@dataclass(frozen=True, eq=False)
class StepChanges:
    """How the outputs of a tower move while it reads a text.

    Attributes
    ----------
    words : list of str
        Length T.
    final : (directions, n) float
        The outputs after the last word that each direction reads, as the embedding holds them.
    changes : (directions, T, n) float
        ``|y(t) - y(t-1)|`` at each word, t counted in the order of reading, y(0) = 0.
    compared : (directions, T) bool
        False at the first word that each direction reads.
    """

    words: list
    final: np.ndarray
    changes: np.ndarray
    compared: np.ndarray

    def thresholds(self, given=None):
        """What a change must exceed: (directions,) float, ``given`` or each one's mean change."""
        if given is None:
            return self.changes.mean(axis=(1, 2), dtype=np.float64)
        if not given >= 0:  # this way round a NaN is refused too
            raise SentembError(f"the threshold is {given}; give 0 or more")
        return np.full(len(self.final), float(given))


@dataclass(frozen=True, eq=False)
class Keywords:
    """What a model makes of the words of a text.

    Attributes
    ----------
    words : list of str
        Length T.
    counts : (directions, T) int
        How many of the most active cells declare each word, left to right, then right to left if
        the model reads so; `NOT_COMPARED` at the first word of each direction.
    cells : int
        How many were asked: 10, or all of a smaller model.
    thresholds : (directions,) float
    """

    words: list
    counts: np.ndarray
    cells: int
    thresholds: np.ndarray

    @property
    def declared(self):
        """Whether each count is more than 40 % of the cells: (directions, T) bool."""
        return self.counts > KEYWORD_SHARE * self.cells

    @property
    def verdicts(self):
        """Whether each word is a keyword: list of bool, None where no direction compares."""
        compared = self.counts != NOT_COMPARED
        agreed = (self.declared | ~compared).all(axis=0).tolist()
        return [
            verdict if judged else None for verdict, judged in zip(agreed, compared.any(axis=0))
        ]


def step_changes(model, text, side="query"):
    """Read ``text`` and follow the outputs.

    Parameters
    ----------
    model : SentenceEncoder
    text : str
    side : {"query", "document"}

    Returns
    -------
    StepChanges

    Raises
    ------
    SentembError
        For a text without words.
    """
    trace = model.trace(text, side=side)
    directions = model.encoder.directions
    outputs = trace.y.reshape(len(trace.words), directions, -1).swapaxes(0, 1)
    final = np.empty((directions, outputs.shape[2]), outputs.dtype)
    changes = np.empty_like(outputs)
    compared = np.ones(outputs.shape[:2], bool)
    for direction, y in enumerate(outputs):
        # Views in the order of reading.
        reading = slice(None, None, -1 if direction else 1)
        y, changed = y[reading], changes[direction, reading]
        final[direction] = y[-1]
        changed[...] = np.abs(np.diff(y, axis=0, prepend=0))
        compared[direction, reading][0] = False
    return StepChanges(trace.words, final, changes, compared)


def most_active(final, count):
    """The ``count`` cells of ``final`` (n,) with the largest absolute values, largest first."""
    return highest(np.abs(final), count)


def extract_keywords(model, text, side="query", threshold=None):
    """Count the cells that declare each word of ``text``; see the module for how.

    Parameters
    ----------
    model : SentenceEncoder
    text : str
    side : {"query", "document"}
        Which tower reads it.
    threshold : float, optional
        The least change that counts, for all directions, instead of the text's mean change.

    Returns
    -------
    Keywords

    Raises
    ------
    SentembError
        For a text without words, a threshold that is negative or no number.
    """
    steps = step_changes(model, text, side)
    thresholds = steps.thresholds(threshold)
    counts = np.full(steps.compared.shape, NOT_COMPARED)
    for direction, compared in enumerate(steps.compared):
        cells = most_active(steps.final[direction], MOST_ACTIVE)
        declared = steps.changes[direction][np.ix_(compared, cells)] > thresholds[direction]
        counts[direction, compared] = declared.sum(axis=1)
    asked = min(MOST_ACTIVE, steps.final.shape[1])
    return Keywords(steps.words, counts, asked, thresholds)
