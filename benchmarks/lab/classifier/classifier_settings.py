"""How to train a classifier on embeddings: the declarations and `ClassifierSettings`, checked."""

from dataclasses import asdict, dataclass
from typing import Any

from sentemb.system.bounds import MAX_SEED
from sentemb.system.hyperparameters import MODEL, MOST, OPTIMISER, RUN, Hyperparameter

# Units of the hidden layer by the kind of the values, and the map: those of Arora et al. (A.2).
HIDDEN_FOR_SCORES, HIDDEN_FOR_LABELS = 50, 150
MAP_DIM = 2400
_MOST_UNITS = 100_000

HYPERPARAMETERS = (
    Hyperparameter(
        name="hidden",
        kind=int,
        default=None,
        default_text=f"{HIDDEN_FOR_SCORES} for scores, {HIDDEN_FOR_LABELS} for labels",
        help="Units of the hidden layer.",
        group=MODEL,
        least=1,
        most=_MOST_UNITS,
        optional=True,
    ),
    Hyperparameter(
        name="map_dim",
        kind=int,
        default=None,
        default_text=f"{MAP_DIM} for fixed embeddings, otherwise 0",
        help="Length of an embedding after a linear map that is trained; 0 leaves the map out.",
        group=MODEL,
        least=0,
        most=_MOST_UNITS,
        optional=True,
    ),
    Hyperparameter(
        name="epochs",
        kind=int,
        default=20,
        help="Passes over the examples.",
        group=OPTIMISER,
        least=1,
        most=MOST,
    ),
    Hyperparameter(
        name="batch_size",
        kind=int,
        default=25,
        help="Examples per mini-batch.",
        group=OPTIMISER,
        least=1,
        most=MOST,
    ),
    Hyperparameter(
        name="learning_rate",
        kind=float,
        default=0.001,
        help="Learning rate of Adam; the loss is the mean over a mini-batch.",
        group=OPTIMISER,
        above=0,
        below=1e30,
    ),
    Hyperparameter(
        name="seed", kind=int, default=0, help="Random seed.", group=RUN, least=0, most=MAX_SEED
    ),
    Hyperparameter(
        name="patience",
        kind=int,
        default=None,
        default_text="never",
        help="Stop when the figure on the dev set has not risen for this many epochs.",
        group=RUN,
        least=1,
        most=MOST,
        optional=True,
    ),
)


@dataclass(frozen=True)
class ClassifierSettings:
    """All settings that affect the trained classifier; `train_classifier` describes them.

    Raises `SentembError` for a value of the wrong type or out of bounds.
    """

    hidden: int | None = None
    map_dim: int | None = None
    epochs: int = 20
    batch_size: int = 25
    learning_rate: float = 0.001
    seed: int = 0
    patience: int | None = None

    def __post_init__(self) -> None:
        for parameter in HYPERPARAMETERS:
            object.__setattr__(
                self, parameter.name, parameter.checked(getattr(self, parameter.name))
            )

    def as_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)
