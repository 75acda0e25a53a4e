"""Word vectors from a file of any known format, or from a folder of ours."""

from collections.abc import Callable, Iterable

from sentemb.errors import SentembError
from sentemb.models.vectors.formats.folder import check_vectors, read_folder
from sentemb.models.vectors.formats.recognition import opened
from sentemb.models.vectors.formats.text import read_text
from sentemb.models.vectors.formats.word2vec_binary import read_binary
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.bounds import whole
from sentemb.system.files import is_folder, path_of, place_name
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_texts

_MOST_WORDS = 2**31 - 1


def read_word_vectors(
    path: AnyPath,
    *,
    limit: int | None = None,
    words: Iterable[str] | None = None,
    verify: bool = False,
    note: Callable[[str], None] | None = None,
) -> WordVectors:
    """Read word vectors.

    Nothing is ever unpickled or executed.

    Parameters
    ----------
    path : str or path-like
        GloVe text (lines of a word and its numbers), word2vec text (the same after a first
        line ``words dimensions``, as fastText writes it), word2vec binary, each packed with gzip
        or not; the contents tell them apart, not the name. Or a folder that `write_word_vectors`
        wrote. ``-`` is standard input.
    limit : int, optional
        Read only this many words, from the start. By default all.
    words : iterable of str, optional
        Of the words that are read, keep only these, in the order of the file.
    verify : bool
        Read all vectors of a folder and verify their SHA-256. Otherwise the words and all sizes
        are checked, and the vectors are mapped without being read. Files have no checksum.
    note : callable, optional
        Called with each remark, such as the number of duplicate words (the first vector is kept),
        or of words that are left out: empty, not UTF-8, or with a row that has too few or too many
        numbers, NaN, infinity or a number above 1e12.

    Returns
    -------
    WordVectors
        Vectors are float32, (n, d); those of a folder are mapped from its file as float32 or
        float16 unless ``words`` is given.

    Raises
    ------
    SentembError
        With the place and a remedy: a header that contradicts the rows, a truncated file, many
        words that cannot be used, a folder that was changed, no vectors, a file of another format.
    """
    name = place_name(path_of(path))
    if limit is not None:
        limit = whole("limit", limit, 1, _MOST_WORDS)
    chosen = None if words is None else frozenset(_as_list(words))
    say = note or _silent
    if str(path) != "-" and is_folder(path):
        if verify:
            check_vectors(path)
        return read_folder(path, limit, chosen)
    with opened(path) as (file, is_binary):
        read = read_binary if is_binary else read_text
        return read(file, name, limit, chosen, say)


def _as_list(words: Iterable[str]) -> list[str]:
    texts = as_texts(words)
    if not texts:
        raise SentembError("words is empty; name some, or leave it out for all words")
    return texts


def _silent(message: str) -> None:
    pass
