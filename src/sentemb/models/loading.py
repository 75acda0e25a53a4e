"""Open a model folder as the class for its kind of model."""

from sentemb.models.files.model_files import load_model
from sentemb.models.files.saved_model import PAIR, TOWERS, SavedModel
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.paths import AnyPath

# Kind of a stored model -> its class.
FACES: dict[str, type[SentenceEncoder] | type[PairScorer]] = {
    TOWERS: SentenceEncoder,
    PAIR: PairScorer,
}


def load(path: AnyPath, threads: int | None = None) -> SentenceEncoder | PairScorer:
    """Read a model folder of any kind.

    Parameters
    ----------
    path : path
        A model folder.
    threads : int, optional
        By default all processors.

    Returns
    -------
    SentenceEncoder or PairScorer
        The class for the kind of model in the folder.

    Raises
    ------
    SentembError
        If the folder is not a model, is damaged, or was written by a newer version.
    """
    return face_of(load_model(path), threads)


def face_of(saved: SavedModel, threads: int | None = None) -> SentenceEncoder | PairScorer:
    """``saved`` as an object of the class for its kind."""
    return FACES[saved.model.kind].of(saved, threads)
