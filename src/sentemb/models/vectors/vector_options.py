"""The hyper-parameters of SIF and of word vectors as features. Nothing here needs Numba."""

from sentemb.models.vectors.probabilities import UNKNOWN
from sentemb.models.vectors.vector_limits import MAX_DIM
from sentemb.system.hyperparameters import COMPONENTS as COMPONENTS_GROUP
from sentemb.system.hyperparameters import FEATURES, WORDS, Hyperparameter

MAX_COMPONENTS = 999

WEIGHTS = Hyperparameter(
    name="weights",
    kind=str,
    default="sif",
    help="Weight of a word: a / (a + p) as in the paper (sif), the weight of uSIF (usif), idf by "
    "the paper's equation 7 (idf) or by the authors' code (idf-code), or 1 (none).",
    group=WORDS,
    choices=("sif", "usif", "idf", "idf-code", "none"),
)
A = Hyperparameter(
    name="a",
    kind=float,
    default=1e-3,
    help="The a in a / (a + p). A word whose p is much larger than a has little weight.",
    group=WORDS,
    above=0,
    below=1e30,
)
UNKNOWN_P = Hyperparameter(
    name="unknown_p",
    kind=str,
    default="rank",
    help="Probability of a word without a count: by Zipf's law from its rank, zero (the weight is "
    "then 1, as in the authors' code), or one (the weight is then nearly 0).",
    group=WORDS,
    choices=UNKNOWN,
)
CENTRE = Hyperparameter(
    name="centre",
    kind=str,
    default="none",
    help="Mean to subtract from all word vectors: the plain mean of the vocabulary, as the exact "
    "derivation requires, or the mean weighted by p (probability).",
    group=WORDS,
    choices=("none", "vocabulary", "probability"),
)
KEEP = Hyperparameter(
    name="keep",
    kind=str,
    default="all",
    help="Words of the model: all that have a vector, or only those in the texts.",
    group=WORDS,
    choices=("all", "texts"),
)
COMPONENTS = Hyperparameter(
    name="components",
    kind=int,
    default=1,
    help="Number of common components to remove; 0 needs no texts.",
    group=COMPONENTS_GROUP,
    least=0,
    most=MAX_COMPONENTS,
)
REMOVAL = Hyperparameter(
    name="removal",
    kind=str,
    default="full",
    help="Remove each component in full, or in proportion to its share of the variance of the "
    "removed components (weighted), as uSIF does with 5.",
    group=COMPONENTS_GROUP,
    choices=("full", "weighted"),
)
SIDES_OPTION = Hyperparameter(
    name="sides",
    kind=str,
    default="one",
    help="One set of components for all texts, as in the paper, or one per side (each), as in the "
    "authors' code: queries and titles, or the first and the second texts of pairs.",
    group=COMPONENTS_GROUP,
    choices=("one", "each"),
)
FIT_U = Hyperparameter(
    name="fit_u",
    kind=str,
    default="model",
    help="Texts that the common components come from: those of the model, those of each file as in "
    "the paper, or those of all files together. each-file and all need a model made with "
    "`sentemb sif --components 0`.",
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
# The sources of p other than a file or a mapping of counts.
P_SOURCES = ("rank", "texts", "vectors")
P_HELP = (
    "Source of the word probabilities: the rank of a word in the vector file (Zipf's law), the "
    "texts, the counts stored with the vectors, or a file with one word and its count per line."
)

# Word vectors as features of a trained model.
VECTOR_DIM = Hyperparameter(
    name="vector_dim",
    kind=int,
    default=48,
    default_text="48, or all dimensions if the vectors have fewer",
    help="How many principal components of --vectors become features.",
    group=FEATURES,
    least=1,
    most=1000,
    optional=True,
)
VECTOR_WORDS = Hyperparameter(
    name="vector_words",
    kind=int,
    default=100_000,
    help="How many words of --vectors, from the first on, the model keeps; it keeps the words of "
    "the log whatever their place.",
    group=FEATURES,
    least=1,
    most=10_000_000,
)
# Components of the word vectors that an embedding teaches.
TAUGHT_DIM = Hyperparameter(
    name="dim",
    kind=int,
    default=128,
    default_text="128, or as many as the vectors span",
    help="Length of a vector: principal components.",
    group=FEATURES,
    least=1,
    most=MAX_DIM,
    optional=True,
)
