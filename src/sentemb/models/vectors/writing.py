"""Writes a folder of word vectors, as a whole or not at all."""

import hashlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.vectors.formats.folder import (
    COUNTS,
    DESCRIPTION,
    DTYPES,
    VECTORS,
    WORDS,
    VectorsDescription,
    listed_files,
)
from sentemb.models.vectors.vector_limits import MAX_COUNT, MAX_DIM
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.bounds import brief
from sentemb.system.files import names_in, path_of, write_text, writing
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling


def write_word_vectors(
    vectors: WordVectors, folder: AnyPath, *, force: bool = False, dtype: str = "float32"
) -> None:
    """Write a folder that `read_word_vectors` opens without reading the vectors.

    Parameters
    ----------
    vectors : WordVectors
        Words, vectors, counts if there are any, source and licence.
    folder : str or path-like
        A new or empty folder.
    force : bool
        Replace the word vectors in ``folder``. A folder that holds anything else is refused.
    dtype : {"float32", "float16"}
        How the numbers are stored; float16 takes half the space and keeps about three digits.

    Raises
    ------
    SentembError
        Nothing is written then: a duplicate word, a word with a line end, a number that is not
        finite or too large for ``dtype``, counts that are negative, a folder in use, a full disk.
    """
    if dtype not in DTYPES:
        raise SentembError(f"dtype is {brief(dtype)}; give {' or '.join(DTYPES)}")
    check_output(folder, force)
    _check(vectors)
    checksums = {}
    with filling(folder, listed_files(folder)) as path:
        texts = {WORDS: "".join(f"{word}\n" for word in vectors.words)}
        if vectors.counts is not None:
            texts[COUNTS] = "".join(f"{count}\n" for count in vectors.counts.tolist())
        for name, text in texts.items():
            write_text(path / name, text)
            checksums[name] = hashlib.sha256(text.encode()).hexdigest()
        checksums[VECTORS] = _write_vectors(path / VECTORS, vectors, dtype)
        description = VectorsDescription(
            words=len(vectors),
            dim=vectors.dim,
            dtype=dtype,
            sha256=checksums,
            source=vectors.source,
            licence=vectors.licence,
        )
        write_text(
            path / DESCRIPTION,
            json.dumps(description.as_json(), indent=1, ensure_ascii=False) + "\n",
        )


def check_output(folder: AnyPath, force: bool) -> None:
    """Refuse a folder that `write_word_vectors` would refuse, before any work."""
    path_of(folder)
    if not os.fspath(folder):
        raise SentembError("the name of the folder is empty; give one")
    check_free(folder, force)
    if names_in(folder) and not listed_files(folder):
        raise SentembError(
            f"{folder}: holds other files than word vectors; name a new or empty folder"
        )


def _check(vectors: WordVectors) -> None:
    """Raise a `SentembError` if the words or counts could not be read back."""
    if not len(vectors) or not 1 <= vectors.dim <= MAX_DIM:
        raise SentembError(
            f"the vectors are of shape {vectors.vectors.shape}; give at least one word and 1 to "
            f"{MAX_DIM:,} dimensions"
        )
    seen = set()
    for word in vectors.words:
        if "\n" in word:
            raise SentembError(f"the word {brief(word)} has a line end; leave it out")
        if word in seen:
            raise SentembError(f"the word {brief(word)} occurs twice; keep one of its vectors")
        seen.add(word)
    for text in (*vectors.words, vectors.source, vectors.licence):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise SentembError(f"the text {brief(text)} is not valid UTF-8; correct it") from None
    counts = vectors.counts
    if counts is not None and not (
        counts.shape == (len(vectors),)
        and counts.dtype.kind in "iu"
        and 0 <= int(counts.min()) <= int(counts.max()) <= MAX_COUNT
    ):
        raise SentembError(
            "the counts are not one integer from 0 for each word; correct them or leave them out"
        )


def _write_vectors(path: Path, vectors: WordVectors, dtype: str) -> str:
    """Write a ``.npy`` file row by row and return its SHA-256."""
    header = io.BytesIO()
    kind = np.dtype(dtype).newbyteorder("<")
    np.lib.format.write_array_header_1_0(
        header,
        {"descr": kind.str, "fortran_order": False, "shape": vectors.vectors.shape},
    )
    digest = hashlib.sha256(header.getvalue())
    with writing(path) as file:
        file.write(header.getvalue())
        for rows in _converted(vectors, kind):
            raw = rows.tobytes()
            digest.update(raw)
            file.write(raw)
    return digest.hexdigest()


def _converted(vectors: WordVectors, kind: np.dtype) -> Iterator[np.ndarray]:
    for first, rows in vectors.blocks():
        with np.errstate(over="ignore"):  # a number that is too large becomes infinity
            converted = rows.astype(kind)
        if not np.isfinite(converted).all():
            row = int(np.flatnonzero(~np.isfinite(converted).all(axis=1))[0])
            raise SentembError(
                f"the vector of {brief(vectors.words[first + row])} has a number above "
                f"{float(np.finfo(kind).max):,.0f}, too large for {kind.name}; write float32"
            )
        yield converted
