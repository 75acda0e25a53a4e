"""Which words of a text a model treats as keywords: how many cells change at each.

After section V-A and Tables I, II and V-X of Palangi et al. (arXiv 1502.06922). Take the cells that
are most active when the text has been read, and count at each word those whose output changes by
more than a threshold; such a cell *declares* the word. A word that more than 40 % of the cells
declare, in every direction that the model reads, is a keyword.

**The first word** that a direction reads has no count there. Before it the outputs are zero, so any
word would count as a large change (the paper's footnote). In a bidirectional model the first word
is therefore judged only by the right-to-left direction, and the last word only by the other one. A
unidirectional model does not judge the first word.

**The threshold** is the mean of all changes ``|y_j(t) - y_j(t-1)|`` in the text, with y(0) = 0: the
mean over all words and over all cells of the direction, active or not. So a cell declares a word if
it changes there by more than the average change of this model's cells in this text. A fixed number
would not do: the size of the outputs differs between models and with the length of the text. The
first word is part of the mean although it cannot be a keyword: without it, a text of two words
would have nothing to compare its second word with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from sentemb.analysis.gates import MOST_ACTIVE, most_active
from sentemb.errors import SentembError
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.system.html_tables import html_table

# The paper's: more than 40 % of the 10 most active cells.
KEYWORD_SHARE = 0.4

DIRECTIONS = ("left to right", "right to left")
NOT_COMPARED = -1


@dataclass(frozen=True, eq=False)
class StepChanges:
    """How the outputs of a tower change while it reads a text of T words.

    final : (directions, n) float, the outputs after the last word that each direction reads, as the
        embedding holds them
    changes : (directions, T, n) float, ``|y(t) - y(t-1)|`` at each word, with t in reading order
        and y(0) = 0
    compared : (directions, T) bool, False at the first word that each direction reads
    """

    words: list[str]
    final: np.ndarray
    changes: np.ndarray
    compared: np.ndarray

    def thresholds(self, given: float | None = None) -> np.ndarray:
        """Size that a change must exceed, (directions,): ``given``, or the mean change of each."""
        if given is None:
            return self.changes.mean(axis=(1, 2), dtype=np.float64)
        if not given >= 0:  # so that NaN is rejected too
            raise SentembError(f"the threshold is {given}; give 0 or more")
        return np.full(len(self.final), float(given))


@dataclass(frozen=True, eq=False)
class Keywords:
    """How many cells declare each of the T words of a text.

    Notebooks show it as a table.

    counts : (directions, T) int, how many of the most active cells declare each word: left to
        right, then, in a bidirectional model, right to left. `NOT_COMPARED` at the first word of
        each direction.
    cells : how many cells are counted: 10, or all cells of a smaller model
    thresholds : (directions,) float
    """

    words: list[str]
    counts: np.ndarray
    cells: int
    thresholds: np.ndarray

    @property
    def declared(self) -> np.ndarray:
        """Whether each count is more than 40 % of the cells: (directions, T) bool."""
        return self.counts > KEYWORD_SHARE * self.cells

    @property
    def verdicts(self) -> list[bool | None]:
        """Whether each word is a keyword: list of bool, None where no direction compares."""
        compared = self.counts != NOT_COMPARED
        agreed = (self.declared | ~compared).all(axis=0).tolist()
        return [
            verdict if judged else None
            for verdict, judged in zip(agreed, compared.any(axis=0), strict=True)
        ]

    def _repr_html_(self) -> str:
        shown = {True: "yes", False: "", None: "-"}
        rows = [
            [
                word,
                *("-" if count == NOT_COMPARED else f"{count}" for count in counts),
                shown[verdict],
            ]
            for word, counts, verdict in zip(
                self.words, self.counts.T.tolist(), self.verdicts, strict=True
            )
        ]
        return html_table(rows, ["word", *DIRECTIONS[: len(self.counts)], "keyword"])


def step_changes(model: SentenceEncoder, text: str, side: str = "query") -> StepChanges:
    """Read ``text`` by the tower ``side`` of a recurrent model and follow the outputs.

    Raises `SentembError` for a text without words.
    """
    trace = model.trace(text, side=side)
    directions = cast(RecurrentEncoder, model.encoder).directions
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


def extract_keywords(
    model: SentenceEncoder, text: str, side: str = "query", threshold: float | None = None
) -> Keywords:
    """Count the cells that declare each word of ``text``; the module says how.

    The tower ``side`` of a recurrent model reads it. A change must exceed ``threshold``, in all
    directions, instead of the text's mean change. Raises `SentembError` for a text without words,
    or a threshold that is negative or NaN.
    """
    steps = step_changes(model, text, side)
    cells = [most_active(final, MOST_ACTIVE) for final in steps.final]
    return declared_by(steps, cells, steps.thresholds(threshold))


def declared_by(
    steps: StepChanges, cells: Sequence[np.ndarray], thresholds: np.ndarray
) -> Keywords:
    """Count how many of ``cells`` (of each direction) change by more than its threshold."""
    counts = np.full(steps.compared.shape, NOT_COMPARED)
    for direction, compared in enumerate(steps.compared):
        changes = steps.changes[direction][np.ix_(compared, cells[direction])]
        counts[direction, compared] = (changes > thresholds[direction]).sum(axis=1)
    return Keywords(steps.words, counts, len(cells[0]), thresholds)
