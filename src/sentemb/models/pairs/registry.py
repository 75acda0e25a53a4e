"""The registry of pair models: names, classes and hyper-parameters.

The model classes, the training settings, the command line, the gradient check and the model files
all read it. Importing it does not load Numba.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentemb.errors import SentembError
from sentemb.models.towers.registry import MAX_CELLS, SHARED_TOWERS
from sentemb.system.hyperparameters import MODEL, OPTIMISER, Hyperparameter, own_values

AND, PRINTED = "and", "printed"
MOST_WORDS = 64
# 3-word windows in the paper; those of wider models are declared in
# `sentemb.models.towers.registry`.
WINDOW = Hyperparameter(
    name="window",
    kind=int,
    default=3,
    help="Words under the convolution.",
    group=MODEL,
    least=1,
    most=9,
    optional=True,
)
EMBEDDING = Hyperparameter(
    name="embedding",
    kind=int,
    default=50,
    default_text="50, or the length of the given word vectors",
    help="Length of a word vector.",
    group=MODEL,
    least=1,
    most=3 * MAX_CELLS,
    optional=True,
    check_default=4,
)
MAPS = Hyperparameter(
    name="maps",
    kind=int,
    default=None,
    default_text="200,200,200 for arc2, 200,200 for arc1, 200 for senna",
    help="Feature maps of each convolution.",
    group=MODEL,
    least=1,
    most=MAX_CELLS,
    many=6,
    optional=True,
)
GATE = Hyperparameter(
    name="gate",
    kind=str,
    default=AND,
    help="When a cell of the first layer is on: if both windows begin at a word (and), or if at "
    "least one does (printed, equation (3) to the letter).",
    group=MODEL,
    choices=(AND, PRINTED),
)
MLP = Hyperparameter(
    name="mlp",
    kind=int,
    default=200,
    help="Units of each hidden layer of the MLP that turns features of a pair into a score.",
    group=MODEL,
    least=1,
    most=MAX_CELLS,
    check_default=12,
)
MLP_LAYERS = Hyperparameter(
    name="mlp_layers",
    kind=int,
    default=None,
    default_text="1, or 2 for deepmatch",
    help="Hidden layers of the MLP.",
    group=MODEL,
    least=1,
    most=4,
    optional=True,
)
MAX_WORDS = Hyperparameter(
    name="max_words",
    kind=int,
    default=None,
    default_text=f"the longest text in training, at most {MOST_WORDS}",
    help="Longest text that is read; longer ones are cut.",
    group=MODEL,
    least=1,
    most=1000,
    optional=True,
    check_default=9,
)
NODES = Hyperparameter(
    name="nodes",
    kind=int,
    default=1000,
    help="Units of the first layer, 5 for each topic.",
    group=MODEL,
    least=1,
    most=5 * MAX_CELLS,
    check_default=12,
)
CELLS = Hyperparameter(
    name="cells",
    kind=int,
    default=None,
    default_text="100",
    help="Length of the vector of a text.",
    group=MODEL,
    least=1,
    most=MAX_CELLS,
    optional=True,
    check_default=6,
)
AUTOENCODER_EPOCHS = Hyperparameter(
    name="autoencoder_epochs",
    kind=int,
    default=2,
    help="Epochs at the beginning in which the auto-encoder learns to reconstruct texts, before "
    "the MLP learns.",
    group=OPTIMISER,
    least=0,
    most=1000,
)


@dataclass(frozen=True)
class PairEntry:
    """One pair model.

    Attributes
    ----------
    name : str
    home : str
        ``module:class``, imported when the first model of this name is made.
    parameters : tuple of Hyperparameter
        The arguments of its constructor.
    variants : tuple of dict
        The settings that ``sentemb gradcheck --model all`` tries.
    """

    name: str
    home: str
    parameters: tuple[Hyperparameter, ...]
    variants: tuple[Mapping[str, Any], ...] = ({},)


PAIR_MODELS: dict[str, PairEntry] = {}
_MLP = (MLP, MLP_LAYERS)


def register(entry: PairEntry) -> None:
    """Add a pair model.

    Raises
    ------
    SentembError
        If there is one of that name.
    """
    if entry.name in PAIR_MODELS:
        raise SentembError(f"there is a pair model {entry.name} already; choose another name")
    PAIR_MODELS[entry.name] = entry


register(
    PairEntry(
        name="wordembed",
        home="sentemb.models.pairs.word_sum:WordSum",
        parameters=(EMBEDDING, *_MLP, MAX_WORDS),
        variants=({}, {"mlp_layers": 2}),
    )
)
register(
    PairEntry(
        name="senmlp",
        home="sentemb.models.pairs.sentence_mlp:SenMLP",
        parameters=(EMBEDDING, *_MLP, MAX_WORDS),
        variants=({}, {"mlp_layers": 2}),
    )
)
register(
    PairEntry(
        name="senna",
        home="sentemb.models.pairs.senna:SENNA",
        parameters=(EMBEDDING, WINDOW, MAPS, *_MLP, MAX_WORDS, SHARED_TOWERS),
        variants=(
            {"maps": (5,)},
            {"maps": (5,), "window": 2, "mlp_layers": 2},
            {"maps": (5,), "shared_towers": True},
        ),
    )
)
register(
    PairEntry(
        name="arc1",
        home="sentemb.models.pairs.arc1:ARC1",
        parameters=(EMBEDDING, WINDOW, MAPS, *_MLP, MAX_WORDS, SHARED_TOWERS),
        variants=(
            {"maps": (5, 4)},
            {"maps": (5, 4), "shared_towers": True},
            {"maps": (5, 4, 3), "window": 2, "mlp_layers": 2},
            {"maps": (6,)},
        ),
    )
)
register(
    PairEntry(
        name="arc2",
        home="sentemb.models.pairs.arc2:ARC2",
        parameters=(EMBEDDING, WINDOW, MAPS, GATE, *_MLP, MAX_WORDS),
        variants=(
            {"maps": (5, 4)},
            {"maps": (5, 4), "gate": PRINTED},
            {"maps": (5, 4, 3), "window": 2, "mlp_layers": 2},
            {"maps": (6,)},
        ),
    )
)
register(
    PairEntry(
        name="urae",
        home="sentemb.models.pairs.urae:URAE",
        parameters=(EMBEDDING, CELLS, AUTOENCODER_EPOCHS, *_MLP, MAX_WORDS),
    )
)
register(
    PairEntry(
        name="deepmatch",
        home="sentemb.models.pairs.deepmatch:DeepMatch",
        parameters=(NODES, *_MLP, MAX_WORDS),
    )
)


def pair_parameters() -> tuple[Hyperparameter, ...]:
    """The hyper-parameters of all pair models, each once."""
    found = {one.name: one for entry in PAIR_MODELS.values() for one in entry.parameters}
    return tuple(found.values())


def pair_models_with(parameter: Hyperparameter) -> list[str]:
    """Names of the pair models that have ``parameter``."""
    return [name for name, entry in PAIR_MODELS.items() if parameter in entry.parameters]


def pair_entry_of(model: str) -> PairEntry:
    """The entry of the pair model called ``model``.

    Raises
    ------
    SentembError
        If there is none.
    """
    return PAIR_MODELS[PAIR_MODEL_NAME.checked(model)]


def own_settings(model: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in ``given`` that the pair model ``model`` takes, checked.

    Raises
    ------
    SentembError
        For an unknown model, a setting that it does not have, or a wrong value.
    """
    entry = pair_entry_of(model)
    return own_values(model, entry.parameters, pair_parameters(), given)


PAIR_MODEL_NAME = Hyperparameter(
    name="model",
    kind=str,
    default="arc2",
    help="Pair model.",
    group=MODEL,
    choices=PAIR_MODELS,
)
