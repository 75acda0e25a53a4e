"""How to train a pair model: the declarations of all settings, the preset, and `PairSettings`."""

from typing import TYPE_CHECKING, Any

from sentemb.models.pairs.registry import MAX_WORDS, MOST_WORDS, PAIR_MODELS
from sentemb.system.hyperparameters import (
    FEATURES,
    MOST,
    NEGATIVES,
    OPTIMISER,
    Hyperparameter,
)
from sentemb.training.declared import DeclaredSettings, declared
from sentemb.training.negative_options import HARD_AMONG, HARD_NEGATIVES
from sentemb.training.objectives import objective_options as objectives
from sentemb.training.towers import settings as of_towers

if TYPE_CHECKING:
    from sentemb.models.pairs.pair_model import PairModel

# Longer than any text: to see what a model needs whatever the texts.
_LONGEST = 1000
ADAM, SGD = "adam", "sgd"
RATES = {ADAM: 0.001, SGD: 0.01}

_SHARED = {parameter.name: parameter for parameter in of_towers.HYPERPARAMETERS}

# In the order in which model files list them.
HYPERPARAMETERS = (
    PAIR_MODELS.model,
    *PAIR_MODELS.parameters,
    _SHARED["word_features"],
    Hyperparameter(
        name="train_vectors",
        kind=bool,
        default=False,
        help="Train the word vectors of --vectors or --start-from too, instead of keeping "
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
        most=HARD_AMONG,
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


@declared(PAIR_MODELS, HYPERPARAMETERS, PRESETS)
class PairSettings(DeclaredSettings):
    """All settings that affect the trained pair model. The number of threads does not.

    Attributes
    ----------"""

    def __post_init__(self) -> None:
        self.check_each()
        if self.learning_rate is None:
            self._set("learning_rate", RATES[self.optimiser])
        if self.max_words is not None:
            self.pair_model(self.max_words)

    def pair_model(self, longest: int) -> "PairModel":
        """A new pair model for texts of which the longest has ``longest`` words.

        ``max_words`` is what was set; otherwise it is the length of the longest text, at most 64
        and at least what the layers need.
        """
        settings = self.of_model()
        if self.max_words is None and MAX_WORDS.name in settings:
            least = PAIR_MODELS.make(self.model, **settings | {MAX_WORDS.name: _LONGEST})
            settings[MAX_WORDS.name] = max(min(longest, MOST_WORDS), least.least_words)
        made: PairModel = PAIR_MODELS.make(self.model, **settings)
        return made
