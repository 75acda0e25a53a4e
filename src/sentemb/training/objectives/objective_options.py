"""The choice of the loss and its settings: declarations.

Nothing here needs Numba, so that ``--help`` stays quick.
"""

from sentemb.errors import SentembError
from sentemb.system.hyperparameters import OBJECTIVE as GROUP
from sentemb.system.hyperparameters import Hyperparameter

SOFTMAX, HINGE = "softmax", "hinge"
OBJECTIVE = Hyperparameter(
    name="objective",
    kind=str,
    default=SOFTMAX,
    help="Loss: softmax over the clicked title and its negatives, or hinge, which compares each "
    "pair with the nearest other title and the nearest other query of the mini-batch.",
    group=GROUP,
    choices=(SOFTMAX, HINGE),
)
MARGIN = Hyperparameter(
    name="margin",
    kind=float,
    default=0.4,
    help="Margin of the hinge: by how much the cosine of a pair should exceed the cosines with "
    f"the nearest other texts. Only for --objective {HINGE}.",
    group=GROUP,
    above=0,
    most=2,
)
LOGISTIC = "logistic"
# The losses of pair models, whose scores have no bounds.
PAIR_OBJECTIVE = Hyperparameter(
    name="objective",
    kind=str,
    default=None,
    default_text=f"{HINGE} for a click log, {LOGISTIC} for labelled pairs",
    help="Loss: hinge, which compares a pair with each of its negatives, or logistic, which wants "
    "scores above 0 for pairs and below 0 for negatives.",
    group=GROUP,
    choices=(HINGE, LOGISTIC),
    optional=True,
)
PAIR_MARGIN = Hyperparameter(
    name="margin",
    kind=float,
    default=1.0,
    help="Margin of the hinge: by how much the score of a pair should exceed that of a negative.",
    group=GROUP,
    above=0,
    below=1e30,
)
_OF_THE_OTHER = {SOFTMAX: "margin", HINGE: "gamma"}


def check_scale(objective: str, given: dict[str, bool]) -> None:
    """Raise a `SentembError` for ``gamma`` with the hinge, or ``margin`` with the softmax.

    ``given`` says for each of both whether its value differs from the default.
    """
    inapplicable = _OF_THE_OTHER[objective]
    if given[inapplicable]:
        raise SentembError(
            f"the objective {objective} has no {inapplicable}; leave {inapplicable} out"
        )
