"""The registry of encoders: names, classes and hyper-parameters.

The encoder classes, the training settings, the command line, the gradient check and the model files
all read it. Importing it does not load Numba.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentemb.errors import SentembError
from sentemb.system.hyperparameters import MODEL, MOST, OPTIMISER, Hyperparameter, own_values

MAX_CELLS = 1000
# Several models as one, see `sentemb.models.towers.ensemble`. It is made of trained models and not
# trained itself, so it is not among `ENCODERS`.
ENSEMBLE = "ensemble"

CELLS = Hyperparameter(
    name="cells",
    kind=int,
    default=96,
    help="Cells in each direction; for a model that does not read word by word, the length of the "
    "embedding.",
    group=MODEL,
    least=1,
    most=MAX_CELLS,
    check_default=6,
)
FORGET_GATE = Hyperparameter(
    name="forget_gate", kind=bool, default=False, help="Add a forget gate.", group=MODEL
)
OUTPUT_GATE = Hyperparameter(
    name="output_gate",
    kind=bool,
    default=True,
    help="Use an output gate; without it the output is y = tanh(c).",
    group=MODEL,
    optional=True,
)
PEEPHOLES = Hyperparameter(
    name="peepholes",
    kind=str,
    default="none",
    help="Peephole connections from the cell state to the gates.",
    group=MODEL,
    choices=("none", "diagonal", "full"),
)
BAG_DIM = Hyperparameter(
    name="bag_dim",
    kind=int,
    default=0,
    help="Length of a linear bag of the features, joined to the embedding; 0 leaves it out.",
    group=MODEL,
    least=0,
    most=MAX_CELLS,
)
HIDDEN = Hyperparameter(
    name="hidden",
    kind=int,
    default=288,
    help="Length of the hidden layer; for dan, of the vector of a word.",
    group=MODEL,
    least=1,
    most=MAX_CELLS,
    optional=True,
    check_default=5,
)
WINDOW = Hyperparameter(
    name="window",
    kind=int,
    default=3,
    help="Words under the convolution.",
    group=MODEL,
    choices=(1, 3, 5),
    optional=True,
)
LAYERS = Hyperparameter(
    name="layers",
    kind=int,
    default=1,
    help="Dense layers over the average of the words.",
    group=MODEL,
    least=1,
    most=4,
    optional=True,
)
ACTIVATION = Hyperparameter(
    name="activation",
    kind=str,
    default="tanh",
    help="Activation of the dense layers.",
    group=MODEL,
    choices=("tanh", "linear"),
    optional=True,
)
# Not an encoder's own: it says how many encoders a model has.
SHARED_TOWERS = Hyperparameter(
    name="shared_towers",
    kind=bool,
    default=False,
    help="Use one tower for queries and titles instead of two.",
    group=MODEL,
)
# Settings of the backward pass, for recurrent encoders only.
TRUNCATE = Hyperparameter(
    name="truncate",
    kind=int,
    default=None,
    default_text="the whole text",
    help="Propagate errors back through at most this many words.",
    group=OPTIMISER,
    least=1,
    most=MOST,
    optional=True,
)
TRUNCATION = Hyperparameter(
    name="truncation",
    kind=str,
    default="window",
    help="Beyond --truncate words, stop all errors (window) or let them continue along the cell "
    "(cec).",
    group=OPTIMISER,
    choices=("window", "cec"),
)


@dataclass(frozen=True)
class EncoderEntry:
    """One encoder.

    Attributes
    ----------
    name : str
    home : str
        ``module:class``, imported when the first encoder of this name is made.
    parameters : tuple of Hyperparameter
        The arguments of its constructor.
    recurrent : bool
        Whether it reads word by word.
    variants : tuple of dict
        The settings that ``sentemb gradcheck --model all`` tries.
    """

    name: str
    home: str
    parameters: tuple[Hyperparameter, ...]
    recurrent: bool = False
    variants: tuple[Mapping[str, Any], ...] = ({},)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(parameter.name for parameter in self.parameters)


ENCODERS: dict[str, EncoderEntry] = {}


def register(entry: EncoderEntry) -> None:
    """Add an encoder.

    Raises
    ------
    SentembError
        If there is one of that name.
    """
    if entry.name in ENCODERS:
        raise SentembError(f"there is a model {entry.name} already; choose another name")
    ENCODERS[entry.name] = entry


register(
    EncoderEntry(
        name="lstm",
        home="sentemb.models.towers.lstm:LSTM",
        parameters=(CELLS, FORGET_GATE, PEEPHOLES, BAG_DIM, OUTPUT_GATE),
        recurrent=True,
        variants=(
            *(
                {"forget_gate": forget_gate, "peepholes": peepholes}
                for forget_gate in (False, True)
                for peepholes in PEEPHOLES.choices
            ),
            {"bag_dim": 4},
            *(
                {"output_gate": False, "forget_gate": True, "peepholes": peepholes}
                for peepholes in PEEPHOLES.choices
            ),
            {"output_gate": False},
        ),
    )
)
register(
    EncoderEntry(
        name="bilstm",
        home="sentemb.models.towers.bilstm:BiLSTM",
        parameters=(CELLS, FORGET_GATE, PEEPHOLES, BAG_DIM, OUTPUT_GATE),
        recurrent=True,
        variants=(
            {},
            {"forget_gate": True, "peepholes": "full", "bag_dim": 4},
            {"output_gate": False},
        ),
    )
)
register(
    EncoderEntry(
        name="rnn",
        home="sentemb.models.towers.rnn:RNN",
        parameters=(CELLS, BAG_DIM),
        recurrent=True,
        variants=({}, {"bag_dim": 4}),
    )
)
register(
    EncoderEntry(
        name="irnn",
        home="sentemb.models.towers.rnn:IRNN",
        parameters=(CELLS, BAG_DIM),
        recurrent=True,
        variants=({}, {"bag_dim": 4}),
    )
)
register(EncoderEntry(name="bag", home="sentemb.models.towers.bag:Bag", parameters=(CELLS,)))
register(
    EncoderEntry(name="dssm", home="sentemb.models.towers.dssm:DSSM", parameters=(CELLS, HIDDEN))
)
register(
    EncoderEntry(
        name="clsm",
        home="sentemb.models.towers.clsm:CLSM",
        parameters=(CELLS, HIDDEN, WINDOW),
        variants=tuple({"window": window} for window in WINDOW.choices),
    )
)
register(
    EncoderEntry(
        name="dan",
        home="sentemb.models.towers.dan:DAN",
        parameters=(CELLS, HIDDEN, LAYERS, ACTIVATION),
        variants=(
            {},
            {"activation": "linear"},
            {"layers": 3},
            {"layers": 2, "activation": "linear"},
        ),
    )
)


def encoder_parameters() -> tuple[Hyperparameter, ...]:
    """The hyper-parameters of all encoders, each once."""
    found = {one.name: one for entry in ENCODERS.values() for one in entry.parameters}
    return tuple(found.values())


def encoders_with(parameter: Hyperparameter) -> list[str]:
    """Names of the encoders that have ``parameter``."""
    return [name for name, entry in ENCODERS.items() if parameter in entry.parameters]


def describe(one: Hyperparameter) -> str:
    """The help text of a declaration, with the models that it applies to."""
    encoders = encoders_with(one) if one in encoder_parameters() else []
    if not encoders or len(encoders) == len(ENCODERS):
        return one.help
    return f"{one.help} Only for {', '.join(encoders)}."


def entry_of(model: str) -> EncoderEntry:
    """The entry of the encoder called ``model``.

    Raises
    ------
    SentembError
        If there is none.
    """
    return ENCODERS[MODEL_NAME.checked(model)]


def own_settings(model: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings in ``given`` that the encoder ``model`` takes, checked.

    A setting of another encoder may be given too, as long as it has the value that means "not
    given".

    Raises
    ------
    SentembError
        For an unknown model, a setting that it does not have, or a wrong value.
    """
    entry = entry_of(model)
    return own_values(model, entry.parameters, encoder_parameters(), given)


MODEL_NAME = Hyperparameter(
    name="model",
    kind=str,
    default="lstm",
    help="Encoder of each tower.",
    group=MODEL,
    choices=ENCODERS,
)
