"""The gradient checks of the SIF paper's likelihood and classifier."""

from sentemb.gradients.checks import CheckEntry, register_check
from sentemb.models.towers.registry import HIDDEN
from sentemb.system.hyperparameters import MODEL, Hyperparameter

ALPHA = Hyperparameter(
    name="alpha",
    kind=float,
    default=0.3,
    help="Share of words drawn by frequency alone: alpha in equation (2).",
    group=MODEL,
    above=0,
    below=1,
)
TASK = Hyperparameter(
    name="task",
    kind=str,
    default="similarity",
    help="What the classifier predicts: scores of pairs, labels of pairs, or labels of texts.",
    group=MODEL,
    choices=("similarity", "entailment", "sentiment"),
)
LAB_CHECKS = (
    CheckEntry(
        name="sif-likelihood",
        home="lab.likelihood.check:SIFLikelihood",
        takes=("lengths",),
        parameters=(ALPHA,),
        forms=("scan", "printed"),
        variants=({}, {"alpha": 0.01}),
    ),
    CheckEntry(
        name="sif-classifier",
        home="lab.classifier.check:SIFClassifier",
        parameters=(TASK, HIDDEN),
        variants=tuple({"task": task} for task in TASK.choices),
    ),
)


def register() -> None:
    """Let `sentemb.gradcheck` and the command of that name know the checks."""
    for entry in LAB_CHECKS:
        register_check(entry)
