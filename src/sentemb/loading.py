"""A model folder, opened as the class that its kind of model is used through."""

from sentemb.sentence_encoder import SentenceEncoder
from sentemb.storage.model_files import load_model
from sentemb.storage.saved_model import TOWERS, SavedModel
from sentemb.system.paths import AnyPath

# Kind of a stored model -> the class that it is used through.
FACES = {TOWERS: SentenceEncoder}


def load(path: AnyPath, threads: int | None = None) -> SentenceEncoder:
    """Read a model folder of any kind.

    Parameters
    ----------
    path : path
        A model folder.
    threads : int, optional
        By default all processors.

    Returns
    -------
    SentenceEncoder
        The class for the kind of model in the folder.

    Raises
    ------
    SentembError
        If the folder is not a model, is damaged, or was written by a newer version.
    """
    return face_of(load_model(path), threads)


def face_of(saved: SavedModel, threads: int | None = None) -> SentenceEncoder:
    """The model as the class that its kind is used through."""
    return FACES[saved.kind].of(saved, threads)
