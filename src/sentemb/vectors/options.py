"""The hyper-parameters of SIF, each declared once. Nothing here needs Numba."""

from sentemb.hyperparameters import COMPONENTS as COMPONENTS_GROUP
from sentemb.hyperparameters import WORDS, Hyperparameter
from sentemb.vectors.probabilities import UNKNOWN

MAX_COMPONENTS = 999

WEIGHTS = Hyperparameter(
    name="weights",
    kind=str,
    default="sif",
    help="Weight of a word: a / (a + p) of the paper (sif), that of uSIF (usif), tf-idf by the "
    "paper's equation 7 (idf) or as the authors' code has it (idf-code), or 1 (none).",
    group=WORDS,
    choices=("sif", "usif", "idf", "idf-code", "none"),
)
A = Hyperparameter(
    name="a",
    kind=float,
    default=1e-3,
    help="The a of a / (a + p): words that are much more frequent than a count little.",
    group=WORDS,
    above=0,
    below=1e30,
)
UNKNOWN_P = Hyperparameter(
    name="unknown_p",
    kind=str,
    default="rank",
    help="Probability of a word without a count: Zipf's by its rank, zero (the weight is then 1, "
    "as in the authors' code), or one.",
    group=WORDS,
    choices=UNKNOWN,
)
CENTRE = Hyperparameter(
    name="centre",
    kind=str,
    default="none",
    help="Subtract a mean from all word vectors: the plain mean of the vocabulary, which the exact "
    "derivation asks for, or the mean weighted by p.",
    group=WORDS,
    choices=("none", "vocabulary", "probability"),
)
KEEP = Hyperparameter(
    name="keep",
    kind=str,
    default="all",
    help="Words of the model: all that have a vector, or only those of the texts.",
    group=WORDS,
    choices=("all", "texts"),
)
COMPONENTS = Hyperparameter(
    name="components",
    kind=int,
    default=1,
    help="Common components of the texts to remove; 0 needs no texts.",
    group=COMPONENTS_GROUP,
    least=0,
    most=MAX_COMPONENTS,
)
REMOVAL = Hyperparameter(
    name="removal",
    kind=str,
    default="full",
    help="Remove all of a component, or its share of the variance among the components that are "
    "removed (weighted), as uSIF does with 5.",
    group=COMPONENTS_GROUP,
    choices=("full", "weighted"),
)
SIDES_OPTION = Hyperparameter(
    name="sides",
    kind=str,
    default="one",
    help="One set of components for all texts, as in the paper, or one for queries and one for "
    "titles (each), as in the authors' code.",
    group=COMPONENTS_GROUP,
    choices=("one", "each"),
)
FIT_U = Hyperparameter(
    name="fit_u",
    kind=str,
    default="model",
    help="Texts that the common components come from: those of the model, each file's own as in "
    "the paper, or all files together. The last two need a SIF model with 0 components.",
    group=COMPONENTS_GROUP,
    choices=("model", "each-file", "all"),
)
# Those of the class SIF.
HYPERPARAMETERS = (
    WEIGHTS,
    A,
    UNKNOWN_P,
    CENTRE,
    KEEP,
    COMPONENTS,
    REMOVAL,
    SIDES_OPTION,
)
# Where p may come from besides a file or a mapping of counts.
P_SOURCES = ("rank", "texts", "vectors")
P_HELP = (
    "Where word probabilities come from: the rank of a word among the vectors (Zipf's law), the "
    "texts, the counts stored with the vectors, or a file of lines with a word and its count."
)
