"""Skip-Thought (Kiros et al., NIPS 2015), off the shelf: the published encoder's files.

The files of the authors' release: ``dictionary.txt`` (a word a line), ``utable.npy`` and
``btable.npy`` (word vectors, a row for each), ``uni_skip.npz`` and ``bi_skip.npz`` (weights). Of a
text the vectors of the one-way and the two-way encoder stand side by side (combine-skip), each
normalised. The encoder is a gated recurrent unit, with x(t) the vector of word t::

    r, u = sigmoid(x W + b + h(t-1) U)
    g    = tanh(x Wx + bx + r * (h(t-1) Ux))
    h(t) = u h(t-1) + (1 - u) g

Nothing is unpickled; sizes are those of the arrays.
"""

from pathlib import Path

import numpy as np

from sentemb.baselines.baseline import Baseline, cosines
from sentemb.errors import SentembError

SOURCE = "https://github.com/ryankiros/skip-thoughts"
DICTIONARY = "dictionary.txt"
# Tables and weights of the two models.
FILES = {"uni": ("utable.npy", "uni_skip.npz"), "bi": ("btable.npy", "bi_skip.npz")}
_UNKNOWN = "UNK"
_BLOCK = 128


class SkipThought(Baseline):
    """See the module.

    Parameters
    ----------
    folder : path
        Where the published files are.
    """

    name = "skip-thought"

    def __init__(self, folder="skip-thoughts"):
        self.folder = str(folder)
        folder = Path(folder)
        try:
            text = (folder / DICTIONARY).read_text(encoding="utf-8")
        except OSError as error:
            raise _missing(folder / DICTIONARY) from error
        self._places = {}
        for place, word in enumerate(text.split("\n")[:-1]):
            self._places.setdefault(word.strip(), place)
        self._towers = []
        for table, weights in FILES.values():
            vectors = _load(folder / table)
            arrays = _load(folder / weights)
            ways = (False, True) if "encoder_r_W" in arrays else (False,)
            directions = [_Direction(arrays, backward, folder / weights) for backward in ways]
            if vectors.ndim != 2 or len(vectors) < max(self._places.values(), default=0) + 1:
                raise SentembError(f"{folder / table}: no table with a row for every word")
            self._towers.append((vectors, directions))

    def _vectors(self, texts):
        places = [[self._place(word) for word in text.split()] for text in texts]
        order = sorted(range(len(texts)), key=lambda k: len(places[k]))
        parts = []
        for vectors, directions in self._towers:
            rows = np.zeros((len(texts), sum(direction.dim for direction in directions)))
            for first in range(0, len(order), _BLOCK):
                block = order[first : first + _BLOCK]
                lists = [places[k] for k in block]
                rows[block] = np.hstack([way.encode(vectors, lists) for way in directions])
            norms = np.linalg.norm(rows, axis=1, keepdims=True)
            parts.append(np.divide(rows, norms, out=np.zeros_like(rows), where=norms != 0))
        return np.hstack(parts)

    def _place(self, word):
        """A word's row of the tables: as it stands, or lower-cased, or that of unknown words."""
        for known in (word, word.lower(), _UNKNOWN):
            if known in self._places:
                return self._places[known]
        raise SentembError(f"{Path(self.folder) / DICTIONARY}: the word {_UNKNOWN} is missing")

    def score_pairs(self, queries, docs, query_index, doc_index):
        return cosines(self._vectors(queries)[query_index], self._vectors(docs)[doc_index])


class _Direction:
    """One gated recurrent unit, from left to right or from right to left."""

    def __init__(self, arrays, backward, path):
        prefix = "encoder_r_" if backward else "encoder_"
        try:
            self.W, self.U, self.b, self.Wx, self.Ux, self.bx = (
                arrays[prefix + name].astype(np.float32)
                for name in ("W", "U", "b", "Wx", "Ux", "bx")
            )
        except KeyError as error:
            raise SentembError(f"{path}: {error}; this is no file of Skip-Thought") from error
        self.backward = backward
        self.dim = self.Ux.shape[0]

    def encode(self, vectors, texts):
        """The last h of each list of words: (n_texts, dim)."""
        h = np.zeros((len(texts), self.dim), np.float32)
        for t in range(max(map(len, texts), default=0)):
            running = [k for k, text in enumerate(texts) if t < len(text)]
            words = [texts[k][::-1][t] if self.backward else texts[k][t] for k in running]
            x, before = vectors[words].astype(np.float32), h[running]
            r, u = np.split(_sigmoid(x @ self.W + self.b + before @ self.U), 2, axis=1)
            g = np.tanh(x @ self.Wx + self.bx + r * (before @ self.Ux))
            h[running] = u * before + (1 - u) * g
        return h


def _sigmoid(x):
    return 0.5 * np.tanh(0.5 * x) + 0.5


def _load(path):
    try:
        return np.load(path, allow_pickle=False)
    except OSError as error:
        raise _missing(path) from error
    except ValueError as error:
        raise SentembError(f"{path}: cannot be read without unpickling ({error})") from error


def _missing(path):
    return SentembError(f"{path}: weights not here; get the published files from {SOURCE}")
