"""How to train a pair model: the declarations of all settings, the preset, and `PairSettings`."""

from typing import TYPE_CHECKING, Any

from sentemb.errors import SentembError
from sentemb.models.pairs import make_pair_model
from sentemb.models.pairs.registry import (
    MAX_WORDS,
    MOST_WORDS,
    PAIR_MODEL_NAME,
    PAIR_MODELS,
    pair_entry_of,
    pair_models_with,
    pair_parameters,
)
from sentemb.system.hyperparameters import (
    FEATURES,
    MOST,
    NEGATIVES,
    OPTIMISER,
    Hyperparameter,
    own_values,
)
from sentemb.training import settings as of_towers
from sentemb.training.declared import DeclaredSettings, declared
from sentemb.training.objectives import objective_options as objectives

if TYPE_CHECKING:
    from sentemb.models.pairs.pair_model import PairModel

# The most hard negatives per pair: the titles that a teacher lists for each query.
HARD_NEGATIVES = 3
# Longer than any text: to see what a model needs whatever the texts.
_LONGEST = 1000
ADAM, SGD = "adam", "sgd"
RATES = {ADAM: 0.001, SGD: 0.01}

_SHARED = {one.name: one for one in of_towers.HYPERPARAMETERS}

# In the order in which model files list them.
HYPERPARAMETERS = (
    PAIR_MODEL_NAME,
    *pair_parameters(),
    _SHARED["word_features"],
    Hyperparameter(
        name="tune_vectors",
        kind=bool,
        default=False,
        help="Train the word vectors of --word-vectors or --start-from too, instead of keeping "
        "them fixed.",
        group=FEATURES,
    ),
    Hyperparameter(
        name="epochs",
        kind=int,
        default=10,
        help="Passes over the log.",
        group=OPTIMISER,
        least=1,
        most=MOST,
    ),
    Hyperparameter(
        name="batch_size",
        kind=int,
        default=200,
        help="Triples of a query, its title and a negative per mini-batch, or labelled pairs.",
        group=OPTIMISER,
        least=1,
        most=MOST,
    ),
    Hyperparameter(
        name="negatives",
        kind=str,
        default="corpus",
        help="Where negatives come from: all titles of the log (corpus), or the titles that the "
        "log lists as shown and skipped.",
        group=NEGATIVES,
        choices=("corpus", "log"),
    ),
    Hyperparameter(
        name="n_negatives",
        kind=int,
        default=5,
        help="Negatives per pair.",
        group=NEGATIVES,
        least=1,
        most=1000,
    ),
    Hyperparameter(
        name="hard_negatives",
        kind=int,
        default=None,
        default_text=f"{HARD_NEGATIVES} with a teacher, otherwise 0",
        help="Hard negatives per pair: unclicked titles that the teacher ranks high, in addition "
        "to the other negatives.",
        group=NEGATIVES,
        least=0,
        most=of_towers.HARD_AMONG,
        optional=True,
    ),
    objectives.PAIR_OBJECTIVE,
    objectives.PAIR_MARGIN,
    Hyperparameter(
        name="dropout",
        kind=float,
        default=0.0,
        help="Share of the values in the input and the hidden layers of the MLP that are dropped "
        "in training.",
        group=OPTIMISER,
        least=0,
        below=1,
    ),
    Hyperparameter(
        name="optimiser",
        kind=str,
        default=ADAM,
        help="Adam, or plain stochastic gradient descent.",
        group=OPTIMISER,
        choices=(ADAM, SGD),
    ),
    Hyperparameter(
        name="learning_rate",
        kind=float,
        default=None,
        default_text=", ".join(f"{rate} with {name}" for name, rate in RATES.items()),
        help="Learning rate; the loss is the mean over a mini-batch.",
        group=OPTIMISER,
        above=0,
        below=1e30,
        optional=True,
    ),
    Hyperparameter(
        name="decay",
        kind=str,
        default="none",
        help="Lower the learning rate linearly to zero, or keep it.",
        group=OPTIMISER,
        choices=("linear", "none"),
    ),
    _SHARED["seed"],
    _SHARED["patience"],
)

# What the paper says of its training: 50 numbers per word, fixed; 3-word windows; at least 200
# maps; mini-batches of 100 to 200; stochastic gradient descent, whose rate it does not give.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"embedding": 50, "window": 3, "batch_size": 200, "optimiser": SGD},
}


def describe(one: Hyperparameter) -> str:
    """The help text of a declaration, with the pair models that it applies to."""
    models = pair_models_with(one)
    if not models or len(models) == len(PAIR_MODELS):
        return one.help
    return f"{one.help} Only for {', '.join(models)}."


@declared(HYPERPARAMETERS, describe)
class PairSettings(DeclaredSettings):
    """All settings that affect the trained pair model. The number of threads does not.

    Attributes
    ----------"""

    def __post_init__(self) -> None:
        for one in HYPERPARAMETERS:
            self._set(one.name, one.checked(getattr(self, one.name)))
        if self.learning_rate is None:
            self._set("learning_rate", RATES[self.optimiser])
        own_values(
            self.model, pair_entry_of(self.model).parameters, pair_parameters(), self._of_models()
        )
        if self.max_words is not None:
            self.pair_model(self.max_words)

    def _of_models(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in pair_parameters()}

    @classmethod
    def of(cls, preset: str | None = None, **given: Any) -> "PairSettings":
        """The settings of a preset, changed by those ``given``.

        Raises
        ------
        SentembError
            For an unknown preset or setting, a wrong value, or settings that do not go together.
        """
        if preset is not None and preset not in tuple(PRESETS):
            raise SentembError(
                f"preset must be {' or '.join(PRESETS)} for a pair model, not {preset!r}"
            )
        known = {one.name for one in HYPERPARAMETERS}
        model = PAIR_MODEL_NAME.checked(given.get("model", PAIR_MODEL_NAME.default))
        settings = {**(PRESETS[preset] if preset else {}), **given}
        others = {one.name: one for one in of_towers.HYPERPARAMETERS if one.name not in known}
        unknown = sorted(set(settings) - known)
        for name in unknown:
            if name in others and settings[name] == others[name].unset:
                del settings[name]
            elif name in others:
                raise SentembError(
                    f"the pair model {model} has no {name}, which is for two towers; leave {name} "
                    "out"
                )
            else:
                raise SentembError(f"unknown setting {name}; there are {', '.join(sorted(known))}")
        if preset is not None:  # a preset may have settings of other pair models
            own = {one.name for one in pair_entry_of(model).parameters}
            for name in PRESETS[preset]:
                if name not in given and name in {o.name for o in pair_parameters()} - own:
                    del settings[name]
        return cls(**settings)

    def changed(self, **settings: Any) -> "PairSettings":
        """The same settings apart from those given."""
        return type(self)(**{**self.__dict__, **settings})

    def pair_model(self, longest: int) -> "PairModel":
        """A new pair model for texts of which the longest has ``longest`` words.

        ``max_words`` is what was set; otherwise it is the length of the longest text, at most 64
        and at least what the layers need.
        """
        entry = pair_entry_of(self.model)
        own = own_values(self.model, entry.parameters, pair_parameters(), self._of_models())
        if self.max_words is None and MAX_WORDS in entry.parameters:
            least = make_pair_model(self.model, **own | {MAX_WORDS.name: _LONGEST}).least_words
            own[MAX_WORDS.name] = max(min(longest, MOST_WORDS), least)
        return make_pair_model(self.model, **own)
