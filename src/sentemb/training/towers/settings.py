"""How to train: the declarations of all settings, the presets, and `Settings`, checked."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sentemb.errors import SentembError
from sentemb.models.towers.registry import BAG_DIM, ENCODERS, SHARED_TOWERS, TRUNCATE, TRUNCATION
from sentemb.system.hyperparameters import (
    FEATURES,
    MOST,
    NEGATIVES,
    OBJECTIVE,
    OPTIMISER,
    RUN,
    Hyperparameter,
)
from sentemb.text.words import BARE, LETTERED, NEW, WHITE_SPACE
from sentemb.training.declared import DeclaredSettings, declared
from sentemb.training.negative_options import (
    ALL,
    DRAWN_NEGATIVES,
    HARD_AMONG,
    HARD_FROM_EPOCH,
    HARD_NEGATIVES,
)
from sentemb.training.objectives import objective_options as objectives

if TYPE_CHECKING:
    from sentemb.models.towers.truncation import Truncation
    from sentemb.training.objectives.objective import Objective

ADAM = "adam"
# The defaults of a training with Adam that continues from a model trained on other clicks.
CONTINUED: dict[str, Any] = {"epochs": 3, "learning_rate": 0.002, "group_size": 1}
# The defaults that depend on the optimiser.
OPTIMISERS: dict[str, dict[str, Any]] = {
    ADAM: {"learning_rate": 0.005, "decay": "linear", "epochs": 10},
    "nesterov": {"learning_rate": 0.1, "decay": "none", "epochs": 30},
}
# Those of a training with Adam whose mini-batches consist of neighbours.
OF_NEIGHBOURS: dict[str, Any] = {"learning_rate": 0.006, "epochs": 9}
# The nearest of many texts is often as right as the clicked one, so the hinge learns more from
# small mini-batches.
BATCH_SIZES = {objectives.SOFTMAX: 512, objectives.HINGE: 64}
# How often parts of a log meet in an epoch, and how many there may be.
MEETINGS, MOST_PARTS = 15, 256
# The most pairs of a group of neighbours.
NEIGHBOURS = 8


# Defaults of the default model on logs of fewer pairs than this. In separate towers a word of
# queries and the same word of titles begin as two unrelated rows, and a small log has few clicks to
# bring them together. docs/results/small-logs.md has the figures.
SMALL_LOG = 15_000
OF_SMALL_LOGS: dict[str, Any] = {SHARED_TOWERS.name: True, BAG_DIM.name: 96}


def _by_size(parameter: Hyperparameter) -> Hyperparameter:
    """``parameter``, whose help says what the default is on a small log."""
    if parameter.name not in OF_SMALL_LOGS:
        return parameter
    of_small = f"{OF_SMALL_LOGS[parameter.name]} for {ENCODERS.default}"
    text = f"{of_small} and fewer than {SMALL_LOG:,} pairs, otherwise {parameter.default}"
    return replace(parameter, default_text=text)


def _by_optimiser(name: str) -> str:
    texts = [f"{values[name]} with {optimiser}" for optimiser, values in OPTIMISERS.items()]
    if name in OF_NEIGHBOURS:
        texts[0] += f" ({OF_NEIGHBOURS[name]} if group_size is above 1)"
    return ", ".join(texts)


MOMENTUM = Hyperparameter(
    name="momentum",
    kind=float,
    default=0.995,
    help="Nesterov momentum, but at most 0.9 in the first and the last 2 % of updates; with 0 the "
    "descent is plain.",
    group=OPTIMISER,
    least=0,
    below=1,
)
GAMMA = Hyperparameter(
    name="gamma",
    kind=float,
    default=10.0,
    help=f"Softmax scale gamma. Only for --objective {objectives.SOFTMAX}.",
    group=OBJECTIVE,
    above=0,
    below=1e30,
)

# The default of a training with a teacher. Chosen on dev.
SHARE = 0.8
TEACHER_SHARE = Hyperparameter(
    name="teacher_share",
    kind=float,
    default=None,
    default_text=f"{SHARE} with --teacher",
    help="The most that a teacher may have of the target of a pair: it counts as far as it agrees "
    "with the click, which has the rest.",
    group=OBJECTIVE,
    above=0,
    most=1,
    optional=True,
)

# In the order in which model files list them.
HYPERPARAMETERS = (
    ENCODERS.model,
    *map(_by_size, (*ENCODERS.parameters, SHARED_TOWERS)),
    Hyperparameter(
        name="word_features",
        kind=int,
        default=3,
        help="Give a word its own feature once it occurs this often in the log; 0 disables word "
        "features.",
        group=FEATURES,
        least=0,
        most=MOST,
    ),
    Hyperparameter(
        name="epochs",
        kind=int,
        default=None,
        default_text=_by_optimiser("epochs"),
        help="Passes over the log.",
        group=OPTIMISER,
        least=1,
        most=MOST,
        optional=True,
    ),
    Hyperparameter(
        name="batch_size",
        kind=int,
        default=None,
        default_text=", ".join(
            f"{size} with --objective {name}" for name, size in BATCH_SIZES.items()
        ),
        help="Pairs per mini-batch.",
        group=OPTIMISER,
        least=2,
        most=MOST,
        optional=True,
    ),
    Hyperparameter(
        name="negatives",
        kind=str,
        default="batch",
        help="Where negatives come from: the clicked titles of the mini-batch, all titles of the "
        "log (corpus), or the titles that the log lists as shown and skipped.",
        group=NEGATIVES,
        choices=("batch", "corpus", "log"),
    ),
    Hyperparameter(
        name="n_negatives",
        kind=int,
        default=None,
        default_text=f"{ALL} with --negatives batch, otherwise {DRAWN_NEGATIVES}",
        help=f"Negatives per pair; {ALL} takes every other title of the mini-batch.",
        group=NEGATIVES,
        least=1,
        most=MOST,
        words=(ALL,),
        optional=True,
    ),
    Hyperparameter(
        name="hard_negatives",
        kind=int,
        default=None,
        default_text=f"{HARD_NEGATIVES} with --n-negatives {ALL} and at least {HARD_FROM_EPOCH} "
        "epochs, otherwise 0",
        help="Hard negatives per group of neighbours, or per pair if group_size is 1: unclicked "
        "titles that the current model ranks high, looked up every three epochs from epoch "
        f"{HARD_FROM_EPOCH} on; 0 disables them.",
        group=NEGATIVES,
        least=0,
        most=HARD_AMONG,
        optional=True,
    ),
    objectives.OBJECTIVE,
    GAMMA,
    objectives.MARGIN,
    Hyperparameter(
        name="optimiser",
        kind=str,
        default=ADAM,
        help="Adam, or the paper's Nesterov momentum.",
        group=OPTIMISER,
        choices=OPTIMISERS,
    ),
    Hyperparameter(
        name="learning_rate",
        kind=float,
        default=None,
        default_text=_by_optimiser("learning_rate"),
        help="Learning rate; the loss is the mean over a mini-batch.",
        group=OPTIMISER,
        above=0,
        below=1e30,
        optional=True,
    ),
    Hyperparameter(
        name="decay",
        kind=str,
        default=None,
        default_text=_by_optimiser("decay"),
        help="Lower the learning rate linearly to zero, or keep it.",
        group=OPTIMISER,
        choices=("linear", "none"),
        optional=True,
    ),
    MOMENTUM,
    Hyperparameter(
        name="max_norm",
        kind=float,
        default=1.0,
        help="Clip each tower's gradient to this norm.",
        group=OPTIMISER,
        above=0,
        below=1e30,
    ),
    TRUNCATE,
    TRUNCATION,
    Hyperparameter(
        name="seed", kind=int, default=0, help="Random seed.", group=RUN, least=0, most=MOST
    ),
    Hyperparameter(
        name="patience",
        kind=int,
        default=None,
        default_text="never",
        help="Needs dev. Stop when the figure on the dev set (NDCG@1, MRR@10 for held-out clicks, "
        "the accuracy for labelled pairs) has not risen for this many epochs.",
        group=RUN,
        least=1,
        most=MOST,
        optional=True,
    ),
    Hyperparameter(
        name="splitting",
        kind=str,
        default=None,
        default_text=f"{NEW}, or that of the prepared log or the model that training starts from",
        help=f"How texts become words. {LETTERED}: in lower case and Unicode form NFKC, without "
        "punctuation around a word; Chinese, Japanese, Thai, Lao and Khmer in single letters and "
        f"pairs of letters. {BARE}: in pairs alone, as version 1.0 did. {WHITE_SPACE}: "
        "lower-cased, nothing removed.",
        group=FEATURES,
        choices=(LETTERED, BARE, WHITE_SPACE),
        optional=True,
    ),
    Hyperparameter(
        name="group_size",
        kind=int,
        default=1,
        default_text=f"{NEIGHBOURS} with hard negatives, the objective {objectives.SOFTMAX} and "
        f"{ADAM}, otherwise 1",
        help="From the first hard negatives on, mini-batches consist of groups of up to this many "
        "pairs whose titles are hard negatives of each other's queries. With 1 all pairs are mixed "
        "and each has hard negatives of its own, which takes about twice the time.",
        group=NEGATIVES,
        least=1,
        most=MOST,
        optional=True,
    ),
    Hyperparameter(
        name="max_word_features",
        kind=int,
        default=None,
        default_text="all",
        help="Give at most this many words a feature of their own: the most frequent ones. The "
        "memory of a training grows with them.",
        group=FEATURES,
        least=1,
        most=MOST,
        optional=True,
    ),
    Hyperparameter(
        name="parts",
        kind=int,
        default=1,
        help="For several machines; on one, threads are faster and parts rank worse. Divide the "
        "queries of the log into this many parts, each of which trains by itself until all take "
        "the mean of their weights. It decides the model, as the seed does: where the parts are "
        "trained, in one process or by --dask, does not.",
        group=RUN,
        least=1,
        most=MOST_PARTS,
    ),
    Hyperparameter(
        name="meetings",
        kind=int,
        default=None,
        default_text=f"{MEETINGS} with parts",
        help="How often in an epoch the parts meet to take the mean.",
        group=RUN,
        least=1,
        most=MOST,
        optional=True,
    ),
    TEACHER_SHARE,
)

# How many models one training makes and averages.
MOST_SEEDS = 8

# paper: what the paper used, the reduced LSTM with 4 negatives and Nesterov momentum with its
# schedule, and words with their punctuation. large: what ranks best on all but small logs, in a few
# minutes of training.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {
        "model": "lstm",
        "forget_gate": False,
        "peepholes": "none",
        "bag_dim": 0,
        "shared_towers": False,
        "splitting": WHITE_SPACE,
        "word_features": 0,
        "n_negatives": 4,
        "negatives": "batch",
        "hard_negatives": 0,
        "optimiser": "nesterov",
        "learning_rate": 0.2,
        "epochs": 24,
    },
    "large": {
        "model": "bilstm",
        "cells": 192,
        "bag_dim": 192,
        "shared_towers": False,
        "learning_rate": 0.004,
        "epochs": 8,
        "group_size": 1,
    },
}


@declared(ENCODERS, HYPERPARAMETERS, PRESETS)
class Settings(DeclaredSettings):
    """All settings that affect the trained model. The number of threads does not.

    Attributes
    ----------"""

    def __post_init__(self) -> None:
        self.check_each()
        if self.batch_size is None:
            self._set("batch_size", BATCH_SIZES[self.objective])
        if self.n_negatives is None:
            self._set("n_negatives", ALL if self.negatives == "batch" else DRAWN_NEGATIVES)
        if self.hard_negatives is None:
            is_long = self.epochs is None or self.epochs >= HARD_FROM_EPOCH
            may_be = self.n_negatives == ALL and is_long
            self._set("hard_negatives", HARD_NEGATIVES if may_be else 0)
        if self.group_size is None:
            is_usual = self.optimiser == ADAM and self.objective == objectives.SOFTMAX
            self._set("group_size", NEIGHBOURS if self.hard_negatives and is_usual else 1)
        is_quick = self.optimiser == ADAM and self.group_size > 1
        for name, value in OPTIMISERS[self.optimiser].items():
            if getattr(self, name) is None:
                self._set(name, OF_NEIGHBOURS.get(name, value) if is_quick else value)
        if self.parts > 1 and self.meetings is None:
            self._set("meetings", MEETINGS)
        if self.parts == 1 and self.meetings is not None:
            raise SentembError("meetings are those of parts; give parts too, or leave meetings out")
        if self.max_word_features is not None and not self.word_features:
            raise SentembError(
                "max_word_features limits the words with a feature of their own, but "
                "word_features is 0; leave one of them out"
            )
        _check_negatives(self)
        _check_objective(self)
        _check_truncation(self)

    @classmethod
    def left_to_the_log(cls, preset: str | None, given: Mapping[str, Any]) -> list[str]:
        decided = {**(PRESETS[preset] if preset else {}), **given}
        if decided.get(ENCODERS.model.name, ENCODERS.default) != ENCODERS.default:
            return []
        return [name for name in OF_SMALL_LOGS if name not in decided]

    @classmethod
    def for_log(cls, preset: str | None, given: Mapping[str, Any], n_pairs: int) -> dict[str, Any]:
        """The settings ``given``, completed by `OF_SMALL_LOGS` for a log of ``n_pairs``."""
        if n_pairs >= SMALL_LOG:
            return dict(given)
        of_small = {name: OF_SMALL_LOGS[name] for name in cls.left_to_the_log(preset, given)}
        return {**of_small, **given}

    def encoder(self) -> Any:
        """A new encoder for one tower."""
        return ENCODERS.make(self.model, **self.of_model())

    def truncation_settings(self) -> "Truncation":
        """The `Truncation` of the backward pass."""
        from sentemb.models.towers.truncation import (
            Truncation,  # loads NumPy, which --help can do without
        )

        return Truncation.of(self.truncate, self.truncation)

    def loss(self) -> "Objective":
        """The loss that is minimised."""
        from sentemb.training.objectives.objective import Objective  # loads Numba

        return Objective(self.objective, self.gamma, self.margin)


def _check_negatives(settings: Settings) -> None:
    if settings.n_negatives == ALL and settings.negatives != "batch":
        raise SentembError(
            f"n_negatives can be {ALL} only with negatives from the batch; give a number"
        )
    if settings.hard_negatives and settings.n_negatives != ALL:
        raise SentembError(
            "hard negatives are added to all other titles of the batch; they need negatives batch "
            f"and n_negatives {ALL}"
        )
    if settings.group_size > 1 and not settings.hard_negatives:
        raise SentembError(
            "groups are made of hard negatives; leave group_size out, or set hard_negatives"
        )
    if settings.hard_negatives and settings.epochs < HARD_FROM_EPOCH:
        raise SentembError(
            f"hard negatives begin with epoch {HARD_FROM_EPOCH}; train for at least as many epochs"
        )


def _check_objective(settings: Settings) -> None:
    if settings.optimiser == ADAM and settings.momentum != MOMENTUM.default:
        raise SentembError(f"momentum is not for the optimiser {ADAM}; leave it out")
    objectives.check_scale(
        settings.objective,
        {
            parameter.name: getattr(settings, parameter.name) != parameter.default
            for parameter in (GAMMA, objectives.MARGIN)
        },
    )
    is_taught = settings.teacher_share is not None
    if is_taught and (settings.objective, settings.n_negatives) != (objectives.SOFTMAX, ALL):
        raise SentembError(
            "the cosines of a teacher are learned over all titles of the mini-batch; they need "
            f"the objective {objectives.SOFTMAX}, negatives batch and n_negatives {ALL}"
        )
    if settings.objective == objectives.HINGE and settings.n_negatives != ALL:
        raise SentembError(
            f"the objective {objectives.HINGE} looks for the nearest texts of the mini-batch; it "
            f"needs negatives batch and n_negatives {ALL}"
        )


def _check_truncation(settings: Settings) -> None:
    if settings.truncate is not None and not ENCODERS.entry(settings.model).recurrent:
        raise SentembError(
            f"the model {settings.model} has no steps through time to truncate; leave truncate out"
        )
    if settings.truncate is None and settings.truncation != TRUNCATION.default:
        raise SentembError("truncation says how truncate cuts; give truncate too")
