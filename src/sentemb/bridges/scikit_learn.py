"""Vectors of texts as a step of a scikit-learn pipeline.

Importing this module imports scikit-learn; the extra ``scikit-learn`` installs it.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.files.model_files import fingerprint
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.towers import SIDES
from sentemb.models.vectors.reading import read_word_vectors
from sentemb.models.vectors.sif import SIF
from sentemb.models.vectors.vector_options import (
    CENTRE,
    COMPONENTS,
    KEEP,
    REMOVAL,
    UNKNOWN_P,
    WEIGHTS,
    A,
)
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.bounds import brief
from sentemb.system.extras import package
from sentemb.system.files import is_folder, names_in, path_of
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_texts

_base: Any = package("sklearn.base", "scikit-learn", __name__)
_validation: Any = package("sklearn.utils.validation", "scikit-learn", __name__)
_NamedFeatures: Any = _base.ClassNamePrefixFeaturesOutMixin
_Transformer: Any = _base.TransformerMixin
_Estimator: Any = _base.BaseEstimator

# A file or all files of a folder, as they are now: name, size, time of change and number.
_State = tuple[tuple[str, int, int, int], ...]


# scikit-learn has no type hints.
class _Vectorizer(_NamedFeatures, _Transformer, _Estimator):  # type: ignore[misc]
    """Texts in, the vectors of a `SentenceEncoder` out."""

    _side: str = SIDES[0]
    model_: SentenceEncoder
    normalize_embeddings: bool

    def fit_transform(self, X: Iterable[str], y: object = None) -> Any:
        """Fit to texts and return their vectors; see `fit` and `transform`."""
        # What can be read only once is needed twice.
        texts = list(X) if isinstance(X, Iterator) else X
        return self.fit(texts, y).transform(texts)

    def transform(self, X: Iterable[str]) -> Any:
        """The vectors of texts.

        Parameters
        ----------
        X : iterable of str
            A list, a column of a table, an array; also a table or an array with one column.

        Returns
        -------
        (k, dim) float, or a table
            An array of the model's dtype, or what ``set_output`` asks for. A text without words
            gives zeros, with a warning.

        Raises
        ------
        NotFittedError
            Before `fit`.
        SentembError
            If ``X`` is not a list of texts.
        """
        _validation.check_is_fitted(self)
        return self.model_.encode(
            _texts(X), side=self._side, normalize_embeddings=_flag(self.normalize_embeddings)
        )

    @property
    def _n_features_out(self) -> int:
        return self.model_.dim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.transformer_tags.preserves_dtype = []
        return tags


class SentenceVectorizer(_Vectorizer):
    """The vectors of a trained model as a step of a scikit-learn pipeline.

    `fit` trains nothing: it reads the model and checks the parameters.

    Parameters
    ----------
    model : path or SentenceEncoder
        A model folder, or a model, such as `SIF.fit` returns. With a path a fitted vectorizer is
        pickled without the weights; unpickling reads the folder again and fails if it holds
        another model by then. A model is pickled as a whole. ``clone`` shares it.
    side : {"query", "document"}
        The tower that reads the texts.
    normalize_embeddings : bool
        Divide each vector by its length, so that Euclidean distances rank as cosines do.

    Attributes
    ----------
    model_ : SentenceEncoder
        After `fit`.

    Examples
    --------
    ::

        classifier = make_pipeline(SentenceVectorizer("model"), LogisticRegression())
        classifier.fit(texts, labels)
    """

    def __init__(
        self,
        model: SentenceEncoder | AnyPath,
        *,
        side: str = "query",
        normalize_embeddings: bool = True,
    ) -> None:
        self.model = model
        self.side = side
        self.normalize_embeddings = normalize_embeddings

    @property
    def _side(self) -> str:  # type: ignore[override]
        return self.side

    def fit(self, X: Iterable[str], y: object = None) -> Self:
        """Read the model and check the parameters; nothing is learned.

        Parameters
        ----------
        X : iterable of str
            Checked, and otherwise not used.
        y : object
            Not used.

        Raises
        ------
        SentembError
            For a wrong parameter, a folder that is not a model with vectors of texts, or if ``X``
            is not a list of texts.
        """
        if self.side not in SIDES:
            raise SentembError(f"side is {brief(self.side)}; give query or document")
        _flag(self.normalize_embeddings)
        _texts(X)
        self._folder: Path | None = None
        if isinstance(self.model, SentenceEncoder):
            self.model_ = self.model
        elif isinstance(self.model, str | os.PathLike):
            self._folder = path_of(self.model).resolve()
            self.model_ = _cached(SentenceEncoder, self.model)
        else:
            raise SentembError(
                f"model is {type(self.model).__name__}; give a model folder or a SentenceEncoder"
            )
        return self

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if state.get("_folder") is None:
            return state
        return {**state, "model_": fingerprint(self.model_.saved())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        folder = state.get("_folder")
        if folder is not None:
            model = _cached(SentenceEncoder, folder)
            if fingerprint(model.saved()) != state["model_"]:
                raise SentembError(
                    f"{folder}: the model has changed since the vectorizer was fitted; fit again"
                )
            state = {**state, "model_": model}
        super().__setstate__(state)


class SIFVectorizer(_Vectorizer):
    """SIF as a step of a scikit-learn pipeline, fitted to the texts that it is given.

    What `SIF` takes from texts comes from those of `fit` alone: the common components, and
    where asked for the word probabilities and the idf.

    Parameters
    ----------
    vectors : path or WordVectors
        See `read_word_vectors`. A folder that `write_word_vectors` wrote opens fastest.
    a, weights, p, unknown_p, centre, keep, components, removal
        As in `SIF`.
    normalize_embeddings : bool
        Divide each vector by its length.

    Attributes
    ----------
    model_ : SentenceEncoder
        After `fit`. It holds the rows of all words that have a vector, or with ``keep="texts"``
        those of the words in the texts, and a pickle is as large.

    Examples
    --------
    ::

        pipeline = make_pipeline(SIFVectorizer("glove"), LogisticRegression())
        search = GridSearchCV(pipeline, {"sifvectorizer__a": [1e-4, 1e-3, 1e-2]})
        search.fit(texts, labels)
    """

    def __init__(
        self,
        vectors: WordVectors | AnyPath,
        *,
        a: float = A.default,
        weights: str = WEIGHTS.default,
        p: str | Mapping[str, int] | AnyPath = "rank",
        unknown_p: str = UNKNOWN_P.default,
        centre: str = CENTRE.default,
        keep: str = KEEP.default,
        components: int = COMPONENTS.default,
        removal: str = REMOVAL.default,
        normalize_embeddings: bool = True,
    ) -> None:
        self.vectors = vectors
        self.a = a
        self.weights = weights
        self.p = p
        self.unknown_p = unknown_p
        self.centre = centre
        self.keep = keep
        self.components = components
        self.removal = removal
        self.normalize_embeddings = normalize_embeddings

    def fit(self, X: Iterable[str], y: object = None) -> Self:
        """Find the common components of texts, and the weights of words.

        Parameters
        ----------
        X : iterable of str
            The texts; one that occurs twice counts twice.
        y : object
            Not used.

        Raises
        ------
        SentembError
            For a wrong parameter, vectors that cannot be read, if ``X`` is not a list of texts, or
            if the parameters need more texts.
        """
        _flag(self.normalize_embeddings)
        vectors = self.vectors
        if isinstance(vectors, str | os.PathLike):
            vectors = _cached(read_word_vectors, vectors)
        elif not isinstance(vectors, WordVectors):
            raise SentembError(
                f"vectors is {type(vectors).__name__}; give a file or folder of word vectors, or "
                "WordVectors"
            )
        parameters = self.get_params(deep=False)
        settings = {
            name: parameters[name]
            for name in parameters.keys() - {"vectors", "normalize_embeddings"}
        }
        self.model_ = SIF(vectors, **settings).fit(_texts(X))
        return self


def _texts(X: Any) -> list[str]:
    """``X`` as a list of str; a table or an array may have one column."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[1] == 1:
        X = X[X.columns[0]] if hasattr(X, "columns") else X[:, 0]
    elif len(shape) > 1:
        raise SentembError(
            f"X has the shape {shape}; give one column of texts, and with several columns a "
            "ColumnTransformer with a vectorizer for each"
        )
    return as_texts(X)


def _flag(normalize_embeddings: object) -> bool:
    if not isinstance(normalize_embeddings, bool | np.bool_):
        raise SentembError(
            f"normalize_embeddings is {brief(normalize_embeddings)}; give True or False"
        )
    return bool(normalize_embeddings)


def _cached(read: Callable[[AnyPath], Any], path: AnyPath) -> Any:
    """The result of ``read`` for a path, cached until the path changes.

    A search fits a clone for every setting and fold; each process reads the files once.
    """
    source = path_of(path)
    if is_folder(source):
        files = [source / name for name in sorted(names_in(source))]
    else:
        files = [source]
    try:
        state = tuple(
            (file.name, info.st_size, info.st_mtime_ns, info.st_ino)
            for file, info in ((file, file.stat()) for file in files)
        )
    except OSError:  # the reader says what is wrong
        return read(path)
    return _read(read, os.path.abspath(source), state)


@lru_cache(maxsize=2)
def _read(read: Callable[[AnyPath], Any], path: str, state: _State) -> Any:
    return read(path)
