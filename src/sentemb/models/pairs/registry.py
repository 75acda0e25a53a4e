"""The pair models: names, classes and hyper-parameters."""

from sentemb.models.family import Family, ModelEntry
from sentemb.models.towers.registry import MAX_CELLS, SHARED_TOWERS
from sentemb.system.hyperparameters import MODEL, Hyperparameter

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


PAIR_MODELS = Family("pair models", default="arc2", help="Pair model.")
_MLP = (MLP, MLP_LAYERS)

PAIR_MODELS.register(
    ModelEntry(
        name="wordembed",
        home="sentemb.models.pairs.word_sum:WordSum",
        parameters=(EMBEDDING, *_MLP, MAX_WORDS),
        variants=({}, {"mlp_layers": 2}),
    )
)
PAIR_MODELS.register(
    ModelEntry(
        name="senmlp",
        home="sentemb.models.pairs.sentence_mlp:SenMLP",
        parameters=(EMBEDDING, *_MLP, MAX_WORDS),
        variants=({}, {"mlp_layers": 2}),
    )
)
PAIR_MODELS.register(
    ModelEntry(
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
PAIR_MODELS.register(
    ModelEntry(
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
PAIR_MODELS.register(
    ModelEntry(
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
PAIR_MODELS.register(
    ModelEntry(
        name="urae",
        home="sentemb.models.pairs.urae:URAE",
        parameters=(EMBEDDING, CELLS, *_MLP, MAX_WORDS),
    )
)
PAIR_MODELS.register(
    ModelEntry(
        name="deepmatch",
        home="sentemb.models.pairs.deepmatch:DeepMatch",
        parameters=(NODES, *_MLP, MAX_WORDS),
    )
)
