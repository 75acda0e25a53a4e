"""How to train: every setting, checked, and the presets."""

from dataclasses import asdict, dataclass, fields

from sentemb.errors import SentembError
from sentemb.models import RECURRENT, make_encoder
from sentemb.models.truncation import Truncation

# Settings of some encoders, and what stands for "not asked for".
ENCODER_SETTINGS = {
    "forget_gate": False,
    "peepholes": "none",
    "bag": 0,
    "hidden": None,
    "window": None,
}

# paper: what the paper used, the reduced LSTM with 4 negatives and Nesterov momentum with its
# schedule. large: what ranks best on all but small logs, for a few minutes of training.
PRESETS = {
    "paper": {
        "model": "lstm",
        "forget_gate": False,
        "peepholes": "none",
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
        "bag": 192,
        "learning_rate": 0.004,
        "epochs": 8,
    },
}
# What suits each optimiser where nothing else is asked for.
OPTIMISERS = {
    "adam": {"learning_rate": 0.005, "decay": "linear", "epochs": 10},
    "nesterov": {"learning_rate": 0.1, "decay": "none", "epochs": 30},
}
DECAYS = ("none", "linear")
NEGATIVES = ("batch", "corpus", "log")
ALL = "all"
# The first epoch, counted from 1, with hard negatives: before, the ranking that they are taken from
# says little.
HARD_FROM_EPOCH = 3
HARD_NEGATIVES = 3
# Titles of each query to draw them from: the very best ones are often as right as the clicked one.
HARD_AMONG = 30


@dataclass(frozen=True)
class Settings:
    """Everything that decides what model comes out of a log, threads not among it.

    Attributes
    ----------
    model : {"lstm", "bilstm", "rnn", "bag", "dssm", "clsm"}
    cells : int
        1 to 1000, in each direction.
    forget_gate : bool
    peepholes : {"none", "diagonal", "full"}
        Both for ``lstm`` and ``bilstm`` only.
    bag : int
        Numbers of a linear bag of the features beside the outputs of ``lstm``, ``bilstm`` and
        ``rnn``, 0 to 1000.
    hidden : int or None
        Length of the hidden layer of ``dssm`` and ``clsm``; None is 288.
    window : {1, 3, 5} or None
        Words under the convolution of ``clsm``; None is 3.
    shared_towers : bool
        One tower for queries and titles instead of two.
    word_features : int
        Words that stand so often in the log are features of their own beside their trigrams; 0 for
        none.
    epochs : int
        None is 10 with Adam and 30 with Nesterov momentum.
    batch_size : int
        Pairs of one update.
    negatives : {"batch", "corpus", "log"}
        Where unclicked titles come from: the clicked titles of the mini-batch, all titles, or
        those that the log says were shown and skipped, filled up from the batch.
    n_negatives : int or "all"
        Per pair; "all" takes every other title of the batch. None is "all" for ``batch``, else 4.
    hard_negatives : int
        So many titles of each pair join the mini-batch's: drawn from the unclicked ones that the
        model itself ranks highest for the query, looked up anew every three epochs from the third
        on. Only where all titles of the batch are negatives; 0 for none. None is 3 there, if there
        are so many epochs.
    gamma : float
        Smoothing factor of the softmax (5).
    optimiser : {"adam", "nesterov"}
    learning_rate : float
        For the mean of the batch's losses. None is 0.005 with Adam and 0.1 with Nesterov momentum.
    decay : {"linear", "none"}
        Of the learning rate, to zero behind the last update or not at all. None is linear with
        Adam, none with Nesterov momentum.
    momentum, edge_momentum : float
        mu, and mu of the first and last 2 % of updates; of Nesterov momentum only.
    max_norm : float
        th_G, what a tower's gradient is re-normalised to if it is longer.
    truncate : int or None
        The paper's T; None is back-propagation through the whole text.
    truncation : {"window", "cec"}
    seed : int
    patience : int or None
        Stop when the dev figure has not risen for so many epochs.
    """

    model: str = "lstm"
    cells: int = 96
    forget_gate: bool = False
    peepholes: str = "none"
    bag: int = 0
    hidden: int | None = None
    window: int | None = None
    shared_towers: bool = False
    word_features: int = 3
    epochs: int | None = None
    batch_size: int = 512
    negatives: str = "batch"
    n_negatives: int | str | None = None
    hard_negatives: int | None = None
    gamma: float = 10.0
    optimiser: str = "adam"
    learning_rate: float | None = None
    decay: str | None = None
    momentum: float = 0.995
    edge_momentum: float = 0.9
    max_norm: float = 1.0
    truncate: int | None = None
    truncation: str = "window"
    seed: int = 0
    patience: int | None = None

    def __post_init__(self):
        if self.optimiser not in OPTIMISERS:
            raise SentembError(
                f"optimiser must be one of {', '.join(OPTIMISERS)}, not {self.optimiser!r}"
            )
        for name, value in OPTIMISERS[self.optimiser].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.decay not in DECAYS:
            raise SentembError(f"decay must be one of {', '.join(DECAYS)}, not {self.decay!r}")
        _whole(self, "word_features", 0)
        _whole(self, "epochs", 1)
        _whole(self, "batch_size", 2)
        _whole(self, "seed", 0)
        for name in ("patience", "truncate"):
            if getattr(self, name) is not None:
                _whole(self, name, 1)
        for name in ("gamma", "learning_rate", "max_norm"):
            _number(self, name, 0)
        for name in ("momentum", "edge_momentum"):
            _number(self, name, -1)
            if not 0 <= getattr(self, name) < 1:
                raise SentembError(f"{name} must be at least 0 and below 1")
        if self.negatives not in NEGATIVES:
            raise SentembError(
                f"negatives must be one of {', '.join(NEGATIVES)}, not {self.negatives!r}"
            )
        if self.n_negatives is None:
            object.__setattr__(self, "n_negatives", ALL if self.negatives == "batch" else 4)
        if self.n_negatives == ALL:
            if self.negatives != "batch":
                raise SentembError(
                    "n_negatives can be all only with negatives from the batch; give a number"
                )
        else:
            _whole(self, "n_negatives", 1)
        if self.hard_negatives is None:
            may_be = self.n_negatives == ALL and self.epochs >= HARD_FROM_EPOCH
            object.__setattr__(self, "hard_negatives", HARD_NEGATIVES if may_be else 0)
        _whole(self, "hard_negatives", 0)
        if self.hard_negatives and self.n_negatives != ALL:
            raise SentembError(
                "hard negatives stand beside all other titles of the batch; they need negatives "
                "batch and n_negatives all"
            )
        if self.hard_negatives > HARD_AMONG:
            raise SentembError(
                f"hard_negatives must be at most {HARD_AMONG}, so many are looked up for a query"
            )
        if self.hard_negatives and self.epochs < HARD_FROM_EPOCH:
            raise SentembError(
                f"hard negatives come in with epoch {HARD_FROM_EPOCH}; train at least so many"
            )
        self.truncation_settings()
        self.encoder()

    @classmethod
    def of(cls, preset=None, **given):
        """Settings from a preset's name and what is set beside it."""
        if preset is not None and preset not in PRESETS:
            raise SentembError(f"preset must be one of {', '.join(PRESETS)}, not {preset!r}")
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise SentembError(
                f"unknown setting {unknown[0]}; there are {', '.join(sorted(known))}"
            )
        return cls(**{**PRESETS.get(preset, {}), **given})

    def encoder(self):
        """The shape of one tower."""
        given = {name: getattr(self, name) for name in ENCODER_SETTINGS}
        return make_encoder(self.model, cells=self.cells, **given_ones(given))

    def truncation_settings(self):
        """The `Truncation` of the backward pass."""
        if self.truncate is not None and self.model not in RECURRENT:
            raise SentembError(
                f"a {self.model} has no steps through time to truncate; leave truncate out"
            )
        return Truncation.of(self.truncate, self.truncation)

    def as_dict(self):
        return asdict(self)


def given_ones(settings):
    """Those of the `ENCODER_SETTINGS` that were asked for."""
    return {name: value for name, value in settings.items() if value != ENCODER_SETTINGS[name]}


def _whole(settings, name, least, most=2**31 - 1):
    value = getattr(settings, name)
    if type(value) is not int or value < least:
        raise SentembError(f"{name} must be a whole number of at least {least}, not {value!r}")
    if value > most:
        raise SentembError(f"{name} must be at most {most:,}")


def _number(settings, name, above):
    value = getattr(settings, name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not above < value < 1e30:
        raise SentembError(f"{name} must be a number above {above}, not {value!r}")
