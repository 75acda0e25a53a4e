"""Skip-Thought (Kiros et al., NIPS 2015) with the published weights.

The authors' release consists of ``dictionary.txt`` (one word per line), ``utable.npy`` and
``btable.npy`` (one row of word vectors per line), ``uni_skip.npz`` and ``bi_skip.npz`` (weights).
The vector of a text joins those of the unidirectional and the bidirectional encoder (combine-skip),
each normalised. The encoder is a gated recurrent unit; x(t) is the vector of word t::

    r, u = sigmoid(x W + b + h(t-1) U)
    g    = tanh(x Wx + bx + r * (h(t-1) Ux))
    h(t) = u h(t-1) + (1 - u) g

Nothing is unpickled; all sizes follow from the arrays.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.comparison.baselines.baseline import VectorBaseline
from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.system.files import is_file, numbered_lines, path_of, status
from sentemb.system.numpy_files import Archive, read_array, shape_of, sizes
from sentemb.system.paths import AnyPath

SOURCE = "https://github.com/ryankiros/skip-thoughts"
_GET = f"get the published files from {SOURCE}"
DICTIONARY = "dictionary.txt"
# Word vectors and weights of the two models.
FILES = {"uni": ("utable.npy", "uni_skip.npz"), "bi": ("btable.npy", "bi_skip.npz")}
_UNKNOWN = "UNK"
_BLOCK = 128
_WEIGHTS = ("W", "U", "b", "Wx", "Ux", "bx")
# The longest vector of a word or a text that is read; published are 620 and 2,400 dimensions.
_MOST = 10_000


class SkipThought(VectorBaseline):
    """Cosines of Skip-Thought vectors; ``folder`` has the published files."""

    name = "skip-thought"

    def __init__(self, folder: AnyPath = "skip-thoughts") -> None:
        self.folder = str(folder)
        self._folder = path_of(folder)
        for name in (DICTIONARY, *(name for files in FILES.values() for name in files)):
            if status(self._folder / name) is None:
                raise SentembError(f"{self._folder / name}: weights not here; {_GET}")
            if not is_file(self._folder / name):
                raise SentembError(f"{self._folder / name}: is not a regular file; {_GET}")
        with _remedy():
            self._rows: dict[str, int] = {}
            for number, word in numbered_lines(self._folder / DICTIONARY):
                self._rows.setdefault(word.strip(), number - 1)
            if _UNKNOWN not in self._rows:
                raise SentembError(f"{self._folder / DICTIONARY}: the word {_UNKNOWN} is missing")
            # Check that the shapes fit together before reading gigabytes.
            for table, weights in FILES.values():
                self._check_shapes(self._folder / table, self._folder / weights)

    def _check_shapes(self, table: Path, weights: Path) -> None:
        shape = shape_of(table)
        if len(shape) != 2 or not 1 <= shape[1] <= _MOST or shape[0] <= max(self._rows.values()):
            raise SentembError(f"{table}: {sizes(shape)} is not a table with a row for every word")
        with Archive(weights) as arrays:
            for backward in _directions(arrays):
                _check_direction(arrays, shape[1], backward, weights)

    def fit(self, log: ClickLog | None, titles: Sequence[str] = (), seed: int = 0) -> Self:
        """Read the word vectors and weights; see `Baseline.fit`."""
        self._towers: list[tuple[np.ndarray, list[_Direction]]] = []
        with _remedy():
            for table, weights in FILES.values():
                vectors = read_array(self._folder / table)
                with Archive(self._folder / weights) as arrays:
                    directions = [_Direction(arrays, back) for back in _directions(arrays)]
                self._towers.append((vectors, directions))
        return self

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Normalised vectors of both encoders, (k, dim) float64; zero for a text without words."""
        word_rows = [[self._row(word) for word in text.split()] for text in texts]
        order = sorted(range(len(texts)), key=lambda k: len(word_rows[k]))
        parts = []
        for vectors, directions in self._towers:
            rows = np.zeros((len(texts), sum(direction.dim for direction in directions)))
            for first in range(0, len(order), _BLOCK):
                block = order[first : first + _BLOCK]
                lists = [word_rows[k] for k in block]
                rows[block] = np.hstack(
                    [direction.encode(vectors, lists) for direction in directions]
                )
            norms = np.linalg.norm(rows, axis=1, keepdims=True)
            parts.append(np.divide(rows, norms, out=np.zeros_like(rows), where=norms != 0))
        return np.hstack(parts)

    def _row(self, word: str) -> int:
        """The row of a word: as written, or lower-cased, or that of unknown words."""
        for known in (word, word.lower()):
            if known in self._rows:
                return self._rows[known]
        return self._rows[_UNKNOWN]


class _Direction:
    """One gated recurrent unit, from left to right or from right to left."""

    def __init__(self, arrays: Archive, backward: bool) -> None:
        self.W, self.U, self.b, self.Wx, self.Ux, self.bx = (
            arrays.read(_prefix(backward) + name) for name in _WEIGHTS
        )
        self.backward = backward
        self.dim = self.Ux.shape[0]

    def encode(self, vectors: np.ndarray, texts: list[list[int]]) -> NDArray[np.float32]:
        """The last h of each list of words, (n_texts, dim) float32."""
        h = np.zeros((len(texts), self.dim), np.float32)
        for t in range(max(map(len, texts), default=0)):
            running = [k for k, text in enumerate(texts) if t < len(text)]
            words = [texts[k][::-1][t] if self.backward else texts[k][t] for k in running]
            x, before = vectors[words].astype(np.float32), h[running]
            r, u = np.split(_sigmoid(x @ self.W + self.b + before @ self.U), 2, axis=1)
            g = np.tanh(x @ self.Wx + self.bx + r * (before @ self.Ux))
            h[running] = u * before + (1 - u) * g
        return h


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 0.5 * np.tanh(0.5 * x) + 0.5


def _prefix(backward: bool) -> str:
    return "encoder_r_" if backward else "encoder_"


def _directions(arrays: Archive) -> tuple[bool, ...]:
    """For each of the units that an archive holds, whether it reads backward."""
    return (False, True) if "encoder_r_W" in arrays else (False,)


def _check_direction(arrays: Archive, size: int, backward: bool, path: Path) -> None:
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
def _remedy() -> Iterator[None]:
    """Add the remedy to a message about a file."""
    try:
        yield
    except SentembError as error:
        raise SentembError(f"{error}; {_GET}") from error
