"""Every gradient against finite differences, block by block.

The checker makes up words, texts and a model in float64 with nothing at zero (biases and peepholes
included), and compares the gradient of the training loss with central differences of that loss.
"""

import math
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from html import escape

import numpy as np

from sentemb.bounds import MAX_SEED, brief, is_integer, positive, whole
from sentemb.errors import SentembError
from sentemb.gradients.differences import differences, entry_differences
from sentemb.gradients.faults import broken_gradient, check_fault
from sentemb.gradients.pairs import PairProblem
from sentemb.gradients.traces import FORMS, check_form, has_traces
from sentemb.models import ENCODERS, make_encoder
from sentemb.models.encoder import MAX_CELLS
from sentemb.models.feed_forward import WINDOWS
from sentemb.models.lstm import PEEPHOLES
from sentemb.models.towers import Towers, distinct_sides
from sentemb.system.html_tables import FAILED, html_table
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.settings import given_ones

GATE_LEGEND = "gates: 1 output, 2 forget, 3 input, 4 candidate"
# An entry this much smaller than the largest of its block is compared with that floor instead of
# with itself: its differences are rounding noise.
FLOOR = 1e-3
_DIRECTIONS = 3
# Bounds, so that a check ends and fits into memory.
_LONGEST, _MOST_LENGTHS, _MOST_NEGATIVES, _MOST_ENTRIES = 200, 50, 100, 10**6
# Beyond these a softmax is 0 or 1, and a cell saturated, to the last bit.
_LARGEST_GAMMA, _LARGEST_SCALE = 1e6, 100
# Numbers that the projected words of a problem may have.
_MOST_PROJECTED = 20_000_000


@dataclass(frozen=True)
class BlockCheck:
    """One parameter block.

    Attributes
    ----------
    block : str
        Side and the paper's name, such as ``query.Wrec3``.
    shape : tuple of int
    checked : int
        Entries compared with differences.
    kinks : int
        Entries left out because max pooling picks another word on some step of the differences,
        where the loss has no slope.
    relative, absolute : float
        Largest errors; relative is |a - n| / max(|a| + |n|, floor), the floor a thousandth of the
        block's largest entry.
    index : tuple of int
        Where the relative error is largest, with ``analytic`` and ``numeric`` there.
    form_difference : float or None
        Largest difference from the other exact form, relative to the block's largest entry; None
        where there is no other form.
    cosine, norm_ratio : float or None
        Of the checked gradient and the true one (form ``scan``), for the form ``printed``; None
        where either is zero.
    equations : str
        For a failing block of the form ``printed``: what in the paper is at fault.
    passed : bool
    """

    block: str
    shape: tuple
    checked: int
    kinks: int
    relative: float
    absolute: float
    index: tuple
    analytic: float
    numeric: float
    form_difference: float | None
    cosine: float | None
    norm_ratio: float | None
    equations: str
    passed: bool


@dataclass(frozen=True, repr=False)
class GradientReport:
    """What `gradcheck` found.

    Attributes
    ----------
    model, form : str
    settings : dict
        The encoder's and the problem's sizes.
    blocks : list of BlockCheck
    directional : float
        Largest relative error of the slope of the loss in random directions of all parameters.
    repeatable : bool
        Whether the backward pass gives the same bits twice.
    passed : bool
    fault : str or None
        The term that was struck out on purpose.
    """

    model: str
    form: str
    settings: dict
    tolerance: float
    blocks: list = field(default_factory=list)
    directional: float = 0.0
    repeatable: bool = True
    passed: bool = False
    fault: str | None = None

    @property
    def legend(self) -> str:
        """What the numbers in the blocks' names mean; empty where they have none."""
        return GATE_LEGEND if self.model in ("lstm", "bilstm") else ""

    @property
    def failed(self) -> list[str]:
        """The names of the blocks that fail."""
        return [block.block for block in self.blocks if not block.passed]

    def as_dict(self):
        return asdict(self)

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else f"failed in {len(self.failed)}"
        return (
            f"GradientReport({self.model}, form {self.form}, {len(self.blocks)} blocks, {verdict})"
        )

    def _repr_html_(self) -> str:
        """A table of the blocks, for notebooks."""
        shape = ", ".join(f"{key} {value}" for key, value in self.settings.items())
        struck_out = f"struck out on purpose: {self.fault}" if self.fault else ""
        first = [f"{self.model}, form {self.form}: {shape}", self.legend, struck_out]
        rows = [
            (
                block.block,
                " × ".join(map(str, block.shape)),
                block.checked,
                f"{block.relative:.1e}",
                list(block.index),
                f"{block.analytic:+.6e}",
                f"{block.numeric:+.6e}",
                "pass" if block.passed else "FAIL",
            )
            for block in self.blocks
        ]
        table = html_table(rows, _HEADS, ["" if block.passed else FAILED for block in self.blocks])
        return (
            f"<p>{'<br/>'.join(escape(line) for line in first if line)}</p>{table}"
            f"<p>All parameters in random directions: relative error {self.directional:.1e}. "
            f"{'PASS' if self.passed else 'FAIL'} (tolerance {self.tolerance:g})</p>"
        )


_HEADS = ("block", "shape", "checked", "relative error", "at", "analytic", "numeric", "verdict")


def gradcheck(
    model="lstm",
    *,
    cells=6,
    forget_gate=False,
    peepholes="none",
    bag=0,
    hidden=None,
    window=None,
    shared_towers=False,
    lengths=(1, 2, 3, 5, 8),
    form="scan",
    negatives=3,
    gamma=10.0,
    scale=0.5,
    entries=24,
    tolerance=1e-6,
    form_tolerance=1e-10,
    seed=0,
    fault=None,
):
    """Compare a model's gradient with finite differences of its loss.

    Parameters
    ----------
    model : {"lstm", "bilstm", "rnn", "bag", "dssm", "clsm"}
    cells, forget_gate, peepholes, bag, hidden, window, shared_towers
        As for training; ``hidden`` is 5 unless given.
    lengths : sequence of int
        Words of the queries, at most 50 of 1 to 200; the titles have the same lengths in another
        order.
    form : {"scan", "trace", "printed"}
        Which gradient to check.
    negatives : int
        Unclicked titles of each query, at most 100.
    gamma : float
    scale : float
        Standard deviation of the made-up parameters, at most 100; recurrent ones are divided by
        sqrt(cells).
    entries : int
        Entries of each block that are compared, the largest ones and random ones; at most a
        million.
    tolerance : float
        Largest relative error that passes.
    form_tolerance : float
        Largest difference between ``scan`` and ``trace`` that passes.
    seed : int
    fault : {"cell-path", "other-gates", "b_g", "peepholes"}, optional
        Check the gradient of an LSTM with this term struck out, to watch the check fail; see
        `sentemb.gradients.faults`.

    Returns
    -------
    GradientReport

    Raises
    ------
    SentembError
        For settings that make no problem.
    """
    whole("entries", entries, 1, _MOST_ENTRIES)
    positive("tolerance", tolerance, 1)
    positive("form_tolerance", form_tolerance, 1)
    made_up = made_up_problem(
        model,
        cells=cells,
        forget_gate=forget_gate,
        peepholes=peepholes,
        bag=bag,
        hidden=hidden,
        window=window,
        shared_towers=shared_towers,
        lengths=lengths,
        negatives=negatives,
        gamma=gamma,
        scale=scale,
        seed=seed,
        form=form,
        fault=fault,
    )
    with made_up as (problem, settings, rng):
        return _check(problem, form, fault, settings, entries, tolerance, form_tolerance, rng)


@contextmanager
def made_up_problem(
    model="lstm",
    *,
    cells=6,
    forget_gate=False,
    peepholes="none",
    bag=0,
    hidden=None,
    window=None,
    shared_towers=False,
    lengths=(1, 2, 3, 5, 8),
    negatives=3,
    gamma=10.0,
    scale=0.5,
    seed=0,
    form="scan",
    fault=None,
):
    """A made-up model with pairs of texts, for as long as the context lasts.

    Parameters and errors as for `gradcheck`, whose problem it is.

    Yields
    ------
    problem : PairProblem
    settings : dict
        The encoder's and the problem's sizes.
    rng : Generator
        As the making left it.
    """
    if model not in tuple(ENCODERS):
        raise SentembError(f"model must be one of {', '.join(ENCODERS)}, not {brief(model)}")
    if form not in FORMS:
        raise SentembError(f"form must be one of {', '.join(FORMS)}, not {brief(form)}")
    if peepholes not in tuple(PEEPHOLES):
        raise SentembError(
            f"peepholes must be one of {', '.join(PEEPHOLES)}, not {brief(peepholes)}"
        )
    for name, value in (("forget_gate", forget_gate), ("shared_towers", shared_towers)):
        if not isinstance(value, bool):
            raise SentembError(f"{name} is {brief(value)}; give True or False")
    lengths = _checked_lengths(lengths)
    whole("cells", cells, 1, MAX_CELLS)
    whole("bag", bag, 0, MAX_CELLS)
    whole("negatives", negatives, 1, _MOST_NEGATIVES)
    whole("seed", seed, 0, MAX_SEED)
    positive("gamma", gamma, _LARGEST_GAMMA)
    positive("scale", scale, _LARGEST_SCALE)
    if hidden is None and "hidden" in ENCODERS[model]:
        hidden = 5
    if hidden is not None:
        whole("hidden", hidden, 1, MAX_CELLS)
    if window is not None:
        whole("window", window, 1, max(WINDOWS))
    given = {
        "forget_gate": forget_gate,
        "peepholes": peepholes,
        "bag": bag,
        "hidden": hidden,
        "window": window,
    }
    encoder = make_encoder(model, cells=cells, **given_ones(given))
    check_form(encoder, form)
    if fault is not None:
        check_fault(fault, encoder, form)
    _check_size(encoder, sum(lengths) * (2 + negatives))
    settings = {
        **encoder.settings(),
        "shared_towers": shared_towers,
        "lengths": lengths,
        "negatives": negatives,
        "gamma": gamma,
        "scale": scale,
        "seed": seed,
    }
    rng = np.random.default_rng(seed)
    with Workers(1) as workers:
        problem = _made_up_problem(
            encoder, shared_towers, lengths, negatives, gamma, scale, rng, workers
        )
        yield problem, settings, rng


def _checked_lengths(lengths):
    try:
        chosen = tuple(lengths)
    except TypeError:
        chosen = ()
    if not (1 <= len(chosen) <= _MOST_LENGTHS and all(map(is_integer, chosen))):
        raise SentembError(
            f"lengths is {brief(lengths)}; give a list of 1 to {_MOST_LENGTHS} integers"
        )
    for length in chosen:
        whole("one of the lengths", length, 1, _LONGEST)
    return tuple(map(int, chosen))


def _check_size(encoder, n_words):
    """Refuse a problem that would fill the memory, before any of it is made."""
    one, two = (
        sum(math.prod(shape) for shape in encoder.shapes(n_features).values())
        for n_features in (1, 2)
    )
    if n_words * (two - one) > _MOST_PROJECTED:
        raise SentembError(
            f"{n_words:,} words of {two - one:,} numbers each are too many for a check; there are "
            "lengths, negatives, cells, hidden and bag: lower one of them"
        )


def _made_up_problem(encoder, shared_towers, lengths, negatives, gamma, scale, rng, workers):
    """Pairs of unequal lengths, with repeated words, and a model with nothing at zero."""
    letters = list("abcde")
    words = ["".join(rng.choice(letters, rng.integers(1, 6))) for _ in range(3 * len(lengths) + 6)]
    # Words that hold a trigram more than once, so that counts matter.
    words += ["aaaaa", "babababa"] * len(lengths)

    def text(length):
        chosen = list(rng.choice(words, length))
        if length > 2:
            chosen[-1] = chosen[0]
        return " ".join(chosen)

    queries = [text(length) for length in lengths]
    titles = [text(length) for length in (*lengths[1:], lengths[0])]
    others = [
        [text(int(rng.choice(lengths))) for _ in range(negatives)] for _ in range(len(lengths))
    ]
    tokens = tokenize([*queries, *titles, *(title for some in others for title in some)])
    vocabulary = Vocabulary.collect(tokens)
    weights = {}
    for side in distinct_sides(shared_towers):
        weights[side] = encoder.initialise(len(vocabulary), rng, np.float64)
        for name, array in weights[side].items():
            array[...] = scale * rng.standard_normal(array.shape)
            if name in ("recurrent", "output") or array.ndim == 4:
                array /= np.sqrt(array.shape[-2])
    towers = Towers.of(encoder, vocabulary, weights)
    return PairProblem(towers, queries, titles, others, gamma, workers)


def checked_gradient(problem, form, fault):
    """The gradient that a check looks at."""
    return problem.gradient(form) if fault is None else broken_gradient(problem, fault)


def _check(problem, form, fault, settings, entries, tolerance, form_tolerance, rng):
    towers = problem.towers
    gradient = checked_gradient(problem, form, fault)
    again = checked_gradient(problem, form, fault)
    true = gradient if form == "scan" and fault is None else problem.gradient("scan")
    other = true
    if form == "scan":
        other = problem.gradient("trace") if has_traces(towers.encoder) else None
    sides = tuple(towers.each)
    parameters = towers.parameters()
    blocks, repeatable = [], True
    for side in sides:
        for name, parameter in parameters[side].items():
            analytic = gradient[side][name]
            repeatable &= np.array_equal(analytic, again[side][name])
            blocks.append(
                _check_block(
                    problem,
                    f"{'shared' if towers.shared else side}.{name}",
                    parameter,
                    analytic,
                    true[side][name],
                    None if other is None else other[side][name],
                    form,
                    settings,
                    entries,
                    tolerance,
                    form_tolerance,
                    rng,
                )
            )
    directional = max(
        _directional_error(problem, parameters, gradient, sides, rng) for _ in range(_DIRECTIONS)
    )
    return GradientReport(
        model=towers.encoder.name,
        form=form,
        settings=settings,
        tolerance=tolerance,
        blocks=blocks,
        directional=directional,
        repeatable=bool(repeatable),
        passed=bool(
            all(block.passed for block in blocks) and directional <= tolerance and repeatable
        ),
        fault=fault,
    )


def _check_block(
    problem,
    block,
    parameter,
    analytic,
    true,
    other,
    form,
    settings,
    entries,
    tolerance,
    form_tolerance,
    rng,
):
    slopes = {
        index: entry_differences(problem, parameter, index).slope
        for index in _choose(true, entries, rng)
    }
    chosen = [index for index, slope in slopes.items() if slope is not None]
    kinks = len(slopes) - len(chosen)
    if not chosen:
        raise SentembError(
            f"{block}: max pooling has a kink beside every entry; try another seed or more entries"
        )
    numeric = np.array([slopes[index] for index in chosen])
    ours = np.array([analytic[index] for index in chosen])
    largest = max(np.abs(numeric).max(), np.abs(ours).max())
    absolute = np.abs(ours - numeric)
    floor = max(FLOOR * largest, np.finfo(float).tiny)
    relative = absolute / np.maximum(np.abs(ours) + np.abs(numeric), floor)
    worst = int(np.argmax(relative))
    # Zero throughout is no gradient but a missing one, unless nothing can reach the block.
    reached = _is_reached(block, settings)
    passed = relative[worst] <= tolerance and np.any(ours != 0) == reached
    form_difference = cosine = norm_ratio = None
    if form == "printed":
        norms = np.linalg.norm(analytic), np.linalg.norm(true)
        if all(norms):
            cosine = float(np.sum(analytic * true) / norms[0] / norms[1])
            norm_ratio = float(norms[0] / norms[1])
            # The entries compared may happen to be right where others are not.
            passed = passed and np.linalg.norm(analytic - true) <= tolerance * norms[1]
    elif other is not None:
        largest = np.abs(true).max() or 1.0
        form_difference = float(np.abs(analytic - other).max() / largest)
        passed = passed and form_difference <= form_tolerance
    return BlockCheck(
        block=block,
        shape=parameter.shape,
        checked=len(chosen),
        kinks=kinks,
        relative=float(relative[worst]),
        absolute=float(absolute.max()),
        index=tuple(int(k) for k in chosen[worst]),
        analytic=float(ours[worst]),
        numeric=float(numeric[worst]),
        form_difference=form_difference,
        cosine=cosine,
        norm_ratio=norm_ratio,
        equations="" if passed or form != "printed" else _at_fault(block, settings),
        passed=bool(passed),
    )


def _choose(gradient, entries, rng):
    """Indices to compare: the largest entries, and as many random ones."""
    size = gradient.size
    by_size = np.argsort(-np.abs(gradient), axis=None, kind="stable")[: (entries + 1) // 2]
    random = rng.choice(size, min(entries // 2, size), replace=False)
    chosen = np.unique(np.concatenate([by_size, random]))
    return [np.unravel_index(k, gradient.shape) for k in chosen]


def _directional_error(problem, parameters, gradient, sides, rng):
    """Relative error of the slope in a random direction of all parameters at once.

    0 if every step goes over a kink: then the direction tells nothing.
    """
    before, direction, slope, square = {}, {}, 0.0, 0.0
    for side in sides:
        for name, parameter in parameters[side].items():
            key = side, name
            before[key] = parameter.copy()
            direction[key] = rng.standard_normal(parameter.shape)
            slope += float(np.sum(direction[key] * gradient[side][name]))
            square += float(np.sum(direction[key] ** 2))
    length = np.sqrt(square)

    def move(offset):
        for (side, name), start in before.items():
            parameters[side][name][...] = start + offset / length * direction[side, name]

    try:
        numeric = differences(problem, move).slope
    finally:
        for (side, name), start in before.items():
            parameters[side][name][...] = start
    if numeric is None:
        return 0.0
    slope /= length
    return abs(slope - numeric) / max(abs(slope) + abs(numeric), np.finfo(float).tiny)


def _is_reached(block, settings):
    """Whether a block can have a gradient: y(0) = c(0) = 0 hides some in texts of one word."""
    name = block.rsplit(".", 1)[1]
    if max(settings["lengths"]) > 1:
        return True
    if "window" in settings:  # only the middle slice of the convolution meets a word
        return not name.startswith("Wc") or int(name[2:]) == settings["window"] // 2 + 1
    if "hidden" in settings:
        return True
    return not (name.startswith("Wrec") or name in ("W2", "b2", "Wp2", "Wp3"))


def _at_fault(block, settings):
    """The paper's equations that make a printed block differ from the gradient."""
    gate = block[-1]
    reasons = []
    if max(settings["lengths"]) > 1:
        reasons.append(
            "(43): error follows Wrec1 only"
            if gate == "1"
            else "(44): factor b_g missing, own Wrec only, no cell path"
        )
    if gate != "1" and settings["peepholes"] != "none":
        reasons.append("(78), (85), (95), (105): o(t) sees c(t) through Wp1")
    if settings["peepholes"] != "none" and max(settings["lengths"]) > 1:
        reasons.append("(43), (44): no peephole paths")
    return "; ".join(reasons)
