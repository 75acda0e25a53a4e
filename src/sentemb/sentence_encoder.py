"""The public face of a trained model."""

import threading
import warnings
from dataclasses import dataclass

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.word_memory import WordMemory
from sentemb.system.parallel import Workers, renew_after_fork, signals_from_kernels
from sentemb.text.words import split_words

SIDES = ("query", "document")
# Texts and letters of one pass at most: enough for all threads, little memory.
_PASS_TEXTS = 2048
_PASS_LETTERS = 1 << 20


@dataclass(frozen=True)
class GateTrace:
    """What happens inside a tower while it reads one text.

    Attributes
    ----------
    words : list of str
        In reading order, length T.
    y, c, i, o, y_g, f : (T, n) float, or None where the model has no such thing
        Output, cell, input gate, output gate, candidate, forget gate after each word. Of a two-way
        model the columns are the left-to-right cells, then the right-to-left ones, and each row is
        what they held on reading that row's word.
    """

    words: list
    y: np.ndarray
    c: np.ndarray | None = None
    i: np.ndarray | None = None
    o: np.ndarray | None = None
    y_g: np.ndarray | None = None
    f: np.ndarray | None = None


class SentenceEncoder:
    """Two towers, one for queries and one for titles, and the vocabulary that they share.

    Load one with `from_pretrained`, or train one with `sentemb.train`.

    Parameters
    ----------
    encoder : Encoder
        The shape of both towers.
    vocabulary : Vocabulary
    weights : dict
        ``weights["query"]`` and ``weights["document"]``, stacked arrays as the encoder
        describes them; one and the same dict for shared towers.
    training : dict, optional
        How it was trained, for the model card.
    history : list of dict, optional
        One entry per report of the training.
    threads : int, optional
        By default all processors.
    """

    def __init__(self, encoder, vocabulary, weights, training=None, history=(), threads=None):
        self.encoder = encoder
        self.vocabulary = vocabulary
        self.weights = weights
        self.training = dict(training or {})
        self.history = list(history)
        self._threads = threads
        self._workers = Workers(threads)
        self._memories = {}
        self._may_remember = True
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Be usable in a forked child: a lock that another thread held would never be free."""
        # Several threads of a server may ask for vectors; they take turns with the memories.
        self._turn = threading.Lock()

    def __getstate__(self):
        return {
            "encoder": self.encoder,
            "vocabulary": self.vocabulary,
            "weights": self.weights,
            "training": self.training,
            "history": self.history,
            "threads": self._threads,
        }

    def __setstate__(self, state):
        self.__init__(**state)

    def __repr__(self):
        shape = ", ".join(f"{key}={value}" for key, value in self.encoder.settings().items())
        return f"SentenceEncoder({self.encoder.name}, {shape}, {self.vocabulary})"

    @classmethod
    def from_pretrained(cls, path, threads=None):
        """Read a model directory; see docs/formats.md.

        Raises
        ------
        SentembError
            If the directory is not a model, is damaged, or was written by a newer version.
        """
        from sentemb.storage.model_files import load_model

        return load_model(path, threads)

    def save_pretrained(self, path, force=False):
        """Write a model directory. One that exists is replaced only with ``force``."""
        from sentemb.storage.model_files import save_model

        save_model(self, path, force)

    @property
    def dim(self):
        """Length of an embedding."""
        return self.encoder.dim

    @property
    def dtype(self):
        return self.weights["query"]["table"].dtype

    @property
    def shared_towers(self):
        return self.weights["query"] is self.weights["document"]

    def parameters(self):
        """Every parameter under the paper's name: ``parameters()["query"]["Wrec1"]``, ...

        Returns
        -------
        dict of dict of ndarray
            Views: writing to them changes the model. W_g (n, d), Wrec_g (n, n), b_g (n,), Wp_k
            (n, n) or (n,). With shared towers both sides are the same arrays.
        """
        # Whoever has the views may change the weights at any time: remembered words would lie.
        self._may_remember = False
        blocks = {side: self.encoder.blocks(weights) for side, weights in self.towers.items()}
        return {"document": blocks["query"], **blocks}

    @property
    def towers(self):
        """The weights of every tower by its side: of shared towers only ``"query"``."""
        return {side: self.weights[side] for side in (SIDES[:1] if self.shared_towers else SIDES)}

    def astype(self, dtype):
        """A copy of the model in ``"float32"`` or ``"float64"``."""
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            raise SentembError(f"dtype must be float32 or float64, not {dtype!r}") from None
        if dtype not in (np.float32, np.float64):
            raise SentembError(f"dtype must be float32 or float64, not {dtype}")
        copies = {
            side: {name: array.astype(dtype) for name, array in weights.items()}
            for side, weights in self.towers.items()
        }
        copies.setdefault("document", copies["query"])
        return SentenceEncoder(
            self.encoder,
            self.vocabulary,
            copies,
            self.training,
            self.history,
            self._threads,
        )

    # -- vectors ------------------------------------------------------------------------------

    def encode_query(self, texts, *, normalize_embeddings=False):
        """Embeddings of queries; see `encode`."""
        return self.encode(texts, side="query", normalize_embeddings=normalize_embeddings)

    def encode_document(self, texts, *, normalize_embeddings=False):
        """Embeddings of titles; see `encode`."""
        return self.encode(texts, side="document", normalize_embeddings=normalize_embeddings)

    def encode(self, texts, *, side="query", normalize_embeddings=False):
        """The output y after the last word of each text.

        Parameters
        ----------
        texts : str or list of str
        side : {"query", "document"}
            Which tower reads them.
        normalize_embeddings : bool
            Divide each by its length, so that a dot product is the cosine.

        Returns
        -------
        ndarray
            (dim,) for one text, (k, dim) for a list. A text without words gives zeros, and a
            warning says how many there were.
        """
        single = isinstance(texts, str)
        vectors, empty = self._encode([texts] if single else _list_of_texts(texts), side)
        if empty:
            warnings.warn(
                f"{empty} of {len(vectors)} texts have no words; their vectors are zero",
                stacklevel=2,
            )
        if normalize_embeddings:
            vectors = unit_rows(vectors)
        return vectors[0] if single else vectors

    def _encode(self, texts, side):
        """The vectors of a list of texts, and how many texts have no words."""
        _check_side(side)
        vectors = np.empty((len(texts), self.dim), self.dtype)
        end = empty = 0
        with self._turn, signals_from_kernels():
            memory = self._memory(side)
            for part in _parts(texts):
                word_index, offsets, P, without_words = memory.look_up(part)
                vectors[end : end + len(part)] = self.encoder.embed(
                    self.weights[side], P, word_index, offsets, self._workers
                )
                end += len(part)
                empty += without_words
        return vectors, empty

    def _memory(self, side):
        """The tower's `WordMemory`: one for good, or a new one where the weights may change."""
        if not self._may_remember:
            return WordMemory(self.encoder, self.vocabulary, self.weights[side])
        if side not in self._memories:
            self._memories[side] = WordMemory(self.encoder, self.vocabulary, self.weights[side])
        return self._memories[side]

    def similarity(self, a, b):
        """Cosine of every vector in ``a`` with every one in ``b``: (k, dim), (l, dim) -> (k, l).

        A zero vector has the cosine 0 with everything. Single vectors count as one row.
        """
        a, b = _rows(a, "a"), _rows(b, "b")
        if a.shape[1] != b.shape[1]:
            raise SentembError(f"vectors of {a.shape[1]} and {b.shape[1]} numbers have no cosine")
        return unit_rows(a) @ unit_rows(b).T

    def similarity_pairwise(self, a, b):
        """Cosine of each vector in ``a`` with the one in the same row of ``b``: (k,)."""
        a, b = _rows(a, "a"), _rows(b, "b")
        if a.shape != b.shape:
            raise SentembError(f"pairs need equal shapes, not {a.shape} and {b.shape}")
        return np.sum(unit_rows(a) * unit_rows(b), axis=1)

    def score(self, query, title):
        """Cosine of a query and a title, a float from -1 to 1; 0 if one has no words.

        With a list of titles, an array of their scores, (k,).
        """
        if isinstance(title, str):
            return float(self.score(query, [title])[0])
        return self.similarity(self.encode_query(_text(query)), self.encode_document(title))[0]

    def score_pairs(self, queries, docs, query_index, doc_index):
        """Scores of some pairs out of many texts: what every ranker answers, a baseline too.

        Parameters
        ----------
        queries, docs : list of str
        query_index, doc_index : (k,) int
            Pair j is ``queries[query_index[j]]`` with ``docs[doc_index[j]]``.

        Returns
        -------
        (k,) float64
            Higher is better. Here the cosine, 0 where a text has no words.
        """
        Q, D = (
            unit_rows(self._encode(_list_of_texts(texts), side)[0])
            for texts, side in ((queries, "query"), (docs, "document"))
        )
        return np.einsum("kd,kd->k", Q[query_index], D[doc_index]).astype(np.float64)

    def rank(self, query, titles, top_k=None):
        """The ``top_k`` best of ``titles`` (list of str) for a query: [(index, score)], best first.

        All titles if ``top_k`` is None; equal scores in the order given.
        """
        if top_k is not None and (not isinstance(top_k, int | np.integer) or top_k < 1):
            raise SentembError(f"top_k must be a whole number of at least 1, not {top_k!r}")
        titles = _list_of_texts(titles)
        if not titles:
            return []
        scores = self.score(query, titles)
        best = np.argsort(-scores, kind="stable")[:top_k]
        return [(int(k), float(scores[k])) for k in best]

    def trace(self, text, side="query"):
        """Every gate after every word of ``text``; see `GateTrace`."""
        _check_side(side)
        if not self.encoder.recurrent:
            raise SentembError(
                f"a {self.encoder.name} does not read word by word, so there is nothing to trace; "
                "use an lstm, bilstm or rnn"
            )
        words = split_words(_text(text))
        if not words:
            raise SentembError("a text without words has nothing to trace; give one with words")
        with signals_from_kernels():
            done = self.encoder.forward(
                self.weights[side], self.vocabulary.batch([text]), self._workers
            )
        values = [
            self.encoder.gate_values(state, done.packing.rows_of_tokens(direction))
            for direction, state in enumerate(done.states)
        ]
        joined = {name: np.hstack([some[name] for some in values]) for name in values[0]}
        return GateTrace(words=words, **joined)


def _parts(texts):
    """Cut a list of texts into passes."""
    start = letters = 0
    for k, text in enumerate(texts):
        if k - start == _PASS_TEXTS or (k > start and letters + len(text) > _PASS_LETTERS):
            yield texts[start:k]
            start, letters = k, 0
        letters += len(text)
    if start < len(texts):
        yield texts[start:]


def unit_rows(vectors):
    """Each row of ``vectors`` (k, dim) divided by its length; zero rows stay zero."""
    with np.errstate(over="ignore", under="ignore"):
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    usual = (norms > 1e-15) & (norms < 1e15)
    if usual.all():
        return vectors / norms
    units = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms != 0)
    # Squares of very large and very small numbers leave the range of the type.
    odd = np.flatnonzero(~usual & vectors.any(axis=1, keepdims=True))
    if odd.size:
        scaled = vectors[odd] / np.abs(vectors[odd]).max(axis=1, keepdims=True)
        units[odd] = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return units


def _rows(vectors, name):
    """``vectors`` as rows of finite floats."""
    try:
        rows = np.atleast_2d(np.asarray(vectors))
        if rows.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        raise SentembError(f"{name} must be an array of numbers, one row per vector") from None
    if rows.ndim != 2:
        raise SentembError(f"{name} must be one vector or rows of vectors, not {rows.ndim} axes")
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float32 if rows.dtype == np.float16 else np.float64)
    if not np.isfinite(rows).all():
        row = np.flatnonzero(~np.isfinite(rows).all(axis=1))[0]
        raise SentembError(f"row {row} of {name} has a value that is not a finite number")
    return rows


def _check_side(side):
    if side not in SIDES:
        raise SentembError(f"side must be query or document, not {side!r}")


def _list_of_texts(texts):
    """``texts`` as a list of str."""
    try:
        if isinstance(texts, str | bytes | dict) or getattr(texts, "ndim", 1) != 1:
            raise TypeError
        texts = list(texts)
    except TypeError:
        raise SentembError(f"give a list of texts, not {type(texts).__name__}") from None
    if not set(map(type, texts)) <= {str}:
        texts = [_text(text) for text in texts]
    return texts


def _text(text):
    if not isinstance(text, str):
        raise SentembError(f"a text must be str, not {type(text).__name__}")
    return text
