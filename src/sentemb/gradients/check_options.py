"""The options of a gradient check: their declarations, and the two bundles that it works with.

Nothing here needs Numba, so that ``sentemb gradcheck --help`` stays quick.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from sentemb.errors import SentembError
from sentemb.models.towers.registry import ENCODERS, SHARED_TOWERS
from sentemb.system.bounds import MAX_SEED, brief, is_integer, whole
from sentemb.system.hyperparameters import CHECK, PROBLEM, Hyperparameter
from sentemb.system.hyperparameters import OBJECTIVE as LOSS
from sentemb.training.objectives import objective_options as objectives

# Bounds, so that a check ends and fits into memory.
_LONGEST, _MOST_LENGTHS, _MOST_NEGATIVES, _MOST_ENTRIES = 200, 50, 100, 10**6
_MOST_VECTOR_DIM, _MOST_TEXTS = 100, 10_000
# Beyond this a softmax is 0 or 1 to the last bit.
_LARGEST_GAMMA = 1e6

LENGTHS = (1, 2, 3, 5, 8)
# Standard deviation of the random parameters; that of recurrent ones is divided by the square root
# of the number of cells.
SCALE = 0.5
FORM = Hyperparameter(
    name="form",
    kind=str,
    default="scan",
    help="Which gradient to check: that of the production kernels (scan), the paper's traces with "
    "exact error signals (trace), or the paper's recursions as printed (printed).",
    group=CHECK,
    choices=("scan", "trace", "printed"),
)
NEGATIVES = Hyperparameter(
    name="n_negatives",
    kind=int,
    default=3,
    help="Negatives per query.",
    group=PROBLEM,
    least=1,
    most=_MOST_NEGATIVES,
)
GAMMA = Hyperparameter(
    name="gamma",
    kind=float,
    default=10.0,
    help="Softmax scale gamma.",
    group=LOSS,
    above=0,
    most=_LARGEST_GAMMA,
)
OBJECTIVE = Hyperparameter(
    name="objective",
    kind=str,
    default=None,
    default_text=f"{objectives.SOFTMAX} for towers, {objectives.HINGE} for pair models",
    help=f"Loss: {objectives.SOFTMAX} or {objectives.HINGE} for towers, {objectives.HINGE} or "
    f"{objectives.LOGISTIC} for pair models.",
    group=LOSS,
    choices=(objectives.SOFTMAX, objectives.HINGE, objectives.LOGISTIC),
    optional=True,
)
DROPOUT = Hyperparameter(
    name="dropout",
    kind=float,
    default=0.0,
    help="Share of the values of the MLP that are dropped, always the same ones.",
    group=PROBLEM,
    least=0,
    below=1,
)
SEED = Hyperparameter(
    name="seed",
    kind=int,
    default=0,
    help="Random seed.",
    group=PROBLEM,
    least=0,
    most=MAX_SEED,
)
VECTOR_DIM = Hyperparameter(
    name="vector_dim",
    kind=int,
    default=0,
    help="Dimensions of random word vectors that are features too; 0 leaves them out. Only for "
    "towers.",
    group=PROBLEM,
    least=0,
    most=_MOST_VECTOR_DIM,
)
TEACHER_SHARE = Hyperparameter(
    name="teacher_share",
    kind=float,
    default=0.0,
    help="Share of a made-up teacher in the target of the softmax, over the titles of all pairs. "
    "Only for towers.",
    group=LOSS,
    least=0,
    most=1,
)
ENTRIES = Hyperparameter(
    name="entries",
    kind=int,
    default=24,
    help="Entries to compare in each block: the largest ones, and as many random ones.",
    group=CHECK,
    least=1,
    most=_MOST_ENTRIES,
)
TOLERANCE = Hyperparameter(
    name="tolerance",
    kind=float,
    default=1e-6,
    help="Largest relative error that passes.",
    group=CHECK,
    above=0,
    most=1,
)
TEXTS = Hyperparameter(
    name="n_texts",
    kind=int,
    default=600,
    help="Texts, pairs or examples of a mini-batch as large as in training, whose gradient is "
    "compared with that of its parts; 0 leaves this out.",
    group=CHECK,
    least=0,
    most=_MOST_TEXTS,
)
# The terms of the LSTM's recursion that `sentemb.gradients.faults` can leave out.
FAULTS = {
    "cell-path": "f(t+1) eps(t+1), the error along the cell",
    "other-gates": "the Wrec of every gate but its own in the error of each gate",
    "b_g": "the factor b_g(t) between the cell and the pre-activations of gates 2, 3 and 4",
    "peepholes": "the errors that reach the cell through Wp1, Wp2 and Wp3",
}


@dataclass(frozen=True)
class Problem:
    """The pairs and parameters that a check makes up.

    lengths : words of the queries, see `checked_lengths`; the titles have the same lengths in
        another order
    n_negatives : negatives per query
    objective : by default that of the kind of model
    vector_dim : dimensions of the random vectors that most words have
    teacher_share : what a made-up teacher has of the target of the softmax

    Raises `SentembError` for a value of the wrong type or out of bounds.
    """

    shared_towers: bool = SHARED_TOWERS.default
    lengths: tuple[int, ...] = LENGTHS
    n_negatives: int = NEGATIVES.default
    seed: int = SEED.default
    objective: str | None = None
    vector_dim: int = VECTOR_DIM.default
    teacher_share: float = TEACHER_SHARE.default

    def __post_init__(self) -> None:
        _check(self, SHARED_TOWERS, NEGATIVES, SEED, OBJECTIVE, VECTOR_DIM, TEACHER_SHARE)
        if self.teacher_share and self.objective not in (None, objectives.SOFTMAX):
            raise SentembError(
                f"teacher_share is for the objective {objectives.SOFTMAX}; leave one of them out"
            )

    def of_towers(self) -> Self:
        """The same problem with the default objective of two towers."""
        return replace(self, objective=self.objective or objectives.OBJECTIVE.default)

    def used(self) -> dict[str, Any]:
        """The settings of two towers by name, without those that are not used."""
        unused = set() if self.objective == objectives.HINGE else {"objective"}
        unused |= {name for name in ("vector_dim", "teacher_share") if not getattr(self, name)}
        return {name: value for name, value in asdict(self).items() if name not in unused}


@dataclass(frozen=True)
class Tolerances:
    """The largest errors that pass, and how much is compared.

    entries : of each block, with differences
    n_texts : of a mini-batch as large as in training, with other exact ways; 0 for none

    Raises `SentembError` for a value of the wrong type or out of bounds.
    """

    entries: int = ENTRIES.default
    tolerance: float = TOLERANCE.default
    n_texts: int = TEXTS.default

    def __post_init__(self) -> None:
        _check(self, ENTRIES, TOLERANCE, TEXTS)


def check_defaults(model: str, given: dict[str, Any]) -> dict[str, Any]:
    """The encoder settings ``given`` with the defaults of a check where nothing is given."""
    declared = ENCODERS.entry(model).parameters
    small = {
        parameter.name: parameter.check_default
        for parameter in declared
        if parameter.check_default is not None
    }
    optional = {parameter.name for parameter in declared if parameter.optional}
    return small | {
        name: value for name, value in given.items() if value is not None or name not in optional
    }


def _check(bundle: Any, *parameters: Hyperparameter) -> None:
    for parameter in parameters:
        object.__setattr__(
            bundle, parameter.name, parameter.checked(getattr(bundle, parameter.name))
        )


def checked_lengths(lengths: Any) -> tuple[int, ...]:
    """``lengths`` as a tuple; a `SentembError` unless they are 1 to 50 integers from 1 to 200."""
    try:
        chosen = tuple(lengths)
    except TypeError:
        chosen = ()
    if not (1 <= len(chosen) <= _MOST_LENGTHS and all(map(is_integer, chosen))):
        raise SentembError(
            f"lengths is {brief(lengths)}; give a list of 1 to {_MOST_LENGTHS} integers"
        )
    return tuple(whole("one of the lengths", length, 1, _LONGEST) for length in chosen)
