"""Labelled pairs of texts from other formats: the paraphrase corpus, plain TSV, similarity sets.

The paraphrase corpus is MSRP: Dolan, Quirk and Brockett, "Unsupervised construction of large
paraphrase corpora" (COLING 2004). Its files have a head and five columns, a byte-order mark,
carriage returns, and quotation marks that mean nothing but themselves.
"""

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from sentemb.data.importers.plain_words import words_of
from sentemb.data.labelled import valued_lines
from sentemb.data.labelled_pairs import LabelledPairs, write_labelled_pairs, zero_or_one
from sentemb.data.lines import clean_lines
from sentemb.data.similarity_set import read_similarity_set
from sentemb.errors import SentembError
from sentemb.system.bounds import brief, number
from sentemb.system.files import place_name
from sentemb.system.outputs import Output, check_outputs
from sentemb.system.paths import AnyPath

_MSRP_HEAD = "Quality\t#1 ID\t#2 ID\t"
_MSRP_COLUMNS = 5
_LARGEST_SCORE = 1e300


def import_labelled(
    source: AnyPath,
    out: AnyPath,
    *,
    positive_from: float | None = None,
    words: bool = False,
    force: bool = False,
) -> LabelledPairs:
    """Write pairs of texts from another format as ``label<TAB>text<TAB>text`` lines.

    Texts keep their letters and punctuation, and each run of white space becomes one blank. With
    ``words`` they become lower-cased words without punctuation, which word vectors know.

    ``source`` is a file of the paraphrase corpus (MSRP), recognised by its first line; a file of
    ``label<TAB>text<TAB>text`` lines; or, with ``positive_from``, a similarity set of
    ``score<TAB>text<TAB>text`` lines, in which pairs with at least this score get label 1, others
    0. It is UTF-8, compressed if the name ends in ``.gz``; ``-`` is standard input or, as ``out``,
    standard output. ``force`` replaces ``out`` if it exists.

    Returns the written pairs. Raises `SentembError` with file, line and remedy: for a line that
    fits none of the formats, a label other than 0 and 1, a text without words, invalid UTF-8; also
    if all scores are on one side of ``positive_from``, or ``out`` exists.
    """
    check_outputs([Output(out, can_stream=True)], [source], force)
    if positive_from is None:
        pairs, first_line = _read_labels(source)
    else:
        number("positive_from", positive_from, -_LARGEST_SCORE, _LARGEST_SCORE)
        pairs, first_line = _labels_of_scores(source, positive_from), 1
    first, second = (
        [" ".join(words_of(text) if words else text.split()) for text in texts]
        for texts in (pairs.first, pairs.second)
    )
    for index, both in enumerate(zip(first, second, strict=True)):
        if "" in both:
            text = (pairs.first, pairs.second)[both.index("")][index]
            raise SentembError(
                f"{pairs.name}:{first_line + index}: the text {brief(text)} has no letters or "
                "digits; drop the line or keep the punctuation"
            )
    pairs = LabelledPairs(pairs.labels, first, second, pairs.name)
    write_labelled_pairs(pairs, out)
    return pairs


def _read_labels(source: AnyPath) -> tuple[LabelledPairs, int]:
    """The pairs of a file with labels, and the number of the line with the first pair."""
    name, lines = place_name(source), clean_lines(source)
    head = next(lines, None)
    is_msrp = head is not None and head[1].startswith(_MSRP_HEAD)
    if is_msrp:
        lines = _without_ids(lines, name)
    elif head is not None:
        lines = chain([head], lines)
    read = valued_lines(lines, name, _label, "label", n_texts=(2,))
    first, second = read.sides
    return LabelledPairs(np.array(read.values, np.int8), first, second, name), 1 + is_msrp


def _without_ids(lines: Iterable[tuple[int, str]], name: str) -> Iterator[tuple[int, str]]:
    """Lines of the paraphrase corpus without the two columns of ids."""
    for line_number, line in lines:
        fields = line.split("\t")
        if len(fields) != _MSRP_COLUMNS:
            raise SentembError(
                f"{name}:{line_number}: {len(fields)} columns, not {_MSRP_COLUMNS} as in the head; "
                "give the paraphrase corpus's file as it was published"
            )
        label, _, _, *texts = fields
        yield line_number, "\t".join([label, *texts])


def _label(field: str) -> int:
    try:
        return zero_or_one(field)
    except SentembError as error:
        raise SentembError(f"{error}; for scores, give --positive-from") from None


def _labels_of_scores(source: AnyPath, least: float) -> LabelledPairs:
    """The pairs of a similarity set, with label 1 for scores from ``least`` on."""
    read = read_similarity_set(source)
    labels = read.scores >= least
    if labels.all() or not labels.any():
        low, high = read.scores.min(), read.scores.max()
        raise SentembError(
            f"{place_name(source)}: scores are from {low:g} to {high:g}, so --positive-from "
            f"{least:g} gives all pairs the label {int(labels[0])}; choose a number between"
        )
    return LabelledPairs(labels.astype(np.int8), read.first, read.second, place_name(source))
