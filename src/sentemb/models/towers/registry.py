"""The encoders of two towers: names, classes and hyper-parameters."""

from sentemb.models.family import Family, ModelEntry
from sentemb.system.hyperparameters import MODEL, MOST, OPTIMISER, Hyperparameter

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


ENCODERS = Family("two towers", default="lstm", help="Encoder of each tower.")
ENCODERS.register(
    ModelEntry(
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
ENCODERS.register(
    ModelEntry(
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
ENCODERS.register(
    ModelEntry(
        name="rnn",
        home="sentemb.models.towers.rnn:RNN",
        parameters=(CELLS, BAG_DIM),
        recurrent=True,
        variants=({}, {"bag_dim": 4}),
    )
)
ENCODERS.register(
    ModelEntry(
        name="irnn",
        home="sentemb.models.towers.rnn:IRNN",
        parameters=(CELLS, BAG_DIM),
        recurrent=True,
        variants=({}, {"bag_dim": 4}),
    )
)
ENCODERS.register(ModelEntry(name="bag", home="sentemb.models.towers.bag:Bag", parameters=(CELLS,)))
ENCODERS.register(
    ModelEntry(name="dssm", home="sentemb.models.towers.dssm:DSSM", parameters=(CELLS, HIDDEN))
)
ENCODERS.register(
    ModelEntry(
        name="clsm",
        home="sentemb.models.towers.clsm:CLSM",
        parameters=(CELLS, HIDDEN, WINDOW),
        variants=tuple({"window": window} for window in WINDOW.choices),
    )
)
ENCODERS.register(
    ModelEntry(
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
