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

import contextlib

import numpy as np

from sentemb.baselines.arrays import Archive, read_array, shape_of, sizes
from sentemb.baselines.baseline import Baseline, cosines
from sentemb.errors import SentembError
from sentemb.system.files import is_file, numbered_lines, path_of, status

SOURCE = "https://github.com/ryankiros/skip-thoughts"
_GET = f"get the published files from {SOURCE}"
DICTIONARY = "dictionary.txt"
# Tables and weights of the two models.
FILES = {"uni": ("utable.npy", "uni_skip.npz"), "bi": ("btable.npy", "bi_skip.npz")}
_UNKNOWN = "UNK"
_BLOCK = 128
_WEIGHTS = ("W", "U", "b", "Wx", "Ux", "bx")
# The longest vector of a word or a text that is read; the published ones have 620 and 2400 numbers.
_MOST = 10_000


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
        self._folder = path_of(folder)
        for name in (DICTIONARY, *(name for files in FILES.values() for name in files)):
            if status(self._folder / name) is None:
                raise SentembError(f"{self._folder / name}: weights not here; {_GET}")
            if not is_file(self._folder / name):
                raise SentembError(f"{self._folder / name}: is not a regular file; {_GET}")
        with _remedy():
            self._places = {}
            for number, word in numbered_lines(self._folder / DICTIONARY):
                self._places.setdefault(word.strip(), number - 1)
            if _UNKNOWN not in self._places:
                raise SentembError(f"{self._folder / DICTIONARY}: the word {_UNKNOWN} is missing")
            # What does not fit together is refused before any of the gigabytes is read.
            for table, weights in FILES.values():
                self._check_shapes(self._folder / table, self._folder / weights)

    def _check_shapes(self, table, weights):
        shape = shape_of(table)
        if len(shape) != 2 or not 1 <= shape[1] <= _MOST or shape[0] <= max(self._places.values()):
            raise SentembError(f"{table}: {sizes(shape)} is not a table with a row for every word")
        with Archive(weights) as arrays:
            for backward in _ways(arrays):
                _check_direction(arrays, shape[1], backward, weights)

    def fit(self, log, docs=(), seed=0):
        """Read the tables and weights."""
        self._towers = []
        with _remedy():
            for table, weights in FILES.values():
                vectors = read_array(self._folder / table)
                with Archive(self._folder / weights) as arrays:
                    directions = [_Direction(arrays, backward) for backward in _ways(arrays)]
                self._towers.append((vectors, directions))
        return self

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
        for known in (word, word.lower()):
            if known in self._places:
                return self._places[known]
        return self._places[_UNKNOWN]

    def score_pairs(self, queries, docs, query_index, doc_index):
        return cosines(self._vectors(queries)[query_index], self._vectors(docs)[doc_index])


class _Direction:
    """One gated recurrent unit, from left to right or from right to left."""

    def __init__(self, arrays, backward):
        self.W, self.U, self.b, self.Wx, self.Ux, self.bx = (
            arrays.read(_prefix(backward) + name) for name in _WEIGHTS
        )
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


def _prefix(backward):
    return "encoder_r_" if backward else "encoder_"


def _ways(arrays):
    """Whether backward, for each of the units that an archive holds."""
    return (False, True) if "encoder_r_W" in arrays else (False,)


def _check_direction(arrays, size, backward, path):
    """Check the shapes of a unit that reads vectors of ``size`` numbers."""
    shapes = {name: arrays.shape(_prefix(backward) + name) for name in _WEIGHTS}
    n = (*shapes["bx"], 0)[0]
    expected = {"W": (size, 2 * n), "U": (n, 2 * n), "b": (2 * n,)}
    expected |= {"Wx": (size, n), "Ux": (n, n), "bx": (n,)}
    for name, shape in shapes.items():
        if shape != expected[name] or not 1 <= n <= _MOST:
            raise SentembError(
                f"{path}: {_prefix(backward)}{name} has the wrong shape {sizes(shape)}"
            )


@contextlib.contextmanager
def _remedy():
    """Add to what is wrong with a file what to do about it."""
    try:
        yield
    except SentembError as error:
        raise SentembError(f"{error}; {_GET}") from error
