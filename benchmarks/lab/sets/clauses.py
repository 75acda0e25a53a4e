"""Plain text as a completion set: the first clause of a sentence -> its second clause.

As in section 5.2 of Hu, Lu, Li and Chen, "Convolutional neural network architectures for matching
natural language sentences" (NIPS 2014): a ranker has to find the clause that completes a sentence
among clauses of other sentences.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.data.importers.plain_words import words_of
from sentemb.data.judged_set import JudgedSet, write_judged_set
from sentemb.data.lines import clean_lines, write_lines
from sentemb.errors import SentembError
from sentemb.system.bounds import MAX_SEED, whole
from sentemb.system.files import path_of, place_name, write_text
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed

if TYPE_CHECKING:
    from sentemb.models.contracts import Embedder

_Pair: TypeAlias = tuple[str, str]

# Titles judged for a query: the right one and the negatives.
_CANDIDATES = 5
_NEGATIVES = _CANDIDATES - 1
# A similar negative is chosen among this many random clauses, and is below this cosine: a clause
# above it may be as good a completion as the right one.
_DRAWN = 2000
_TOO_SIMILAR = 0.8

_MOST_WORDS = 1000
_MOST_QUERIES = 10**6
# No sentence that could be used is longer, even of `_MOST_WORDS` long words on each side.
_LONGEST = 200_000
# Lines of a paragraph are joined and split into sentences in portions of this many characters.
_PORTION = 1 << 16

# What may end a sentence: ".", "!", "?" or "…" with closing quotation marks and brackets, before
# white space. The point of a title ends nothing.
_END = re.compile(
    r"""(?: (?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt) \. | [!?…] )
    [.!?…]* ["'”’»)\]]* \s+ (?=\S)""",
    re.VERBOSE,
)
# A comma, unless it is between two digits.
_COMMA = re.compile(r"(?<!\d),|,(?!\d)")
# These separate clauses too.
_OTHER_BREAK = re.compile(r"[;:()\[\]—–]|--|\s-\s")


def import_clauses(
    texts: Sequence[AnyPath],
    out: AnyPath,
    *,
    dev: int = 2000,
    test: int = 4000,
    least: int = 8,
    most: int = 28,
    similar: "Callable[[Sequence[str]], Embedder] | None" = None,
    seed: int = 0,
    force: bool = False,
) -> dict[str, int]:
    """Turn plain text into pairs of clauses with judged dev and test sets.

    A sentence is used if it has exactly one comma, no semicolon, colon, dash, bracket or
    parenthesis, and from ``least`` to ``most`` words on each side of the comma. It ends at ``.``,
    ``!``, ``?`` or ``…`` before white space, unless a lower-case letter follows, or at the end of a
    paragraph, which is an empty line. The points of initials (single capital letters but I) and of
    Mr, Mrs, Ms, Dr and St end no sentence. A sentence with a clause that occurred before is left
    out, so no clause is in two parts.

    Writes ``pairs.tsv``, ``dev/``, ``test/`` and a ``README.md``; with ``similar`` also
    ``dev_hard/`` and ``test_hard/``. For each query the right title and four others of the same
    part are judged, with grades 1 and 0: in ``dev`` and ``test`` at random; in ``dev_hard`` and
    ``test_hard`` those with the highest cosines below 0.8 among 2,000 at random. ``similar`` is
    given all clauses and returns the model of these cosines between second clauses.

    ``texts`` are files of plain text in UTF-8; compressed if the name ends in ``.gz``; ``-`` is
    standard input. ``dev`` and ``test`` are numbers of queries, at least 5. The seed decides the
    split, the order and the candidates: the same texts and settings give the same output. ``force``
    writes into a folder that has files already. Either all files are written or, after an error or
    Ctrl-C, none.

    Returns the counts ``sentences`` (in the texts), ``pairs``, ``dev_queries`` and
    ``test_queries``. Raises `SentembError` for bytes that are not UTF-8, a NUL character, too few
    sentences, a wrong setting, an output folder that is not empty.
    """
    folder = path_of(out)
    n_dev = whole("dev", dev, _CANDIDATES, _MOST_QUERIES)
    n_test = whole("test", test, _CANDIDATES, _MOST_QUERIES)
    least = whole("least", least, 1, _MOST_WORDS)
    most = whole("most", most, least, _MOST_WORDS)
    whole("seed", seed, 0, MAX_SEED)
    check_free(folder, force)
    n_sentences, pairs = _pairs(texts, least, most)
    if n_dev + n_test >= len(pairs):
        names = place_name(texts[0]) if len(texts) == 1 else f"{len(texts)} texts"
        raise SentembError(
            f"{names}: {len(pairs):,} of {n_sentences:,} sentences have one comma and two clauses "
            f"of {least} to {most} words; {n_dev:,} dev and {n_test:,} test queries need more: "
            "give longer texts, smaller sets or other lengths"
        )
    random.Random(seed).shuffle(pairs)
    parts = {
        "dev": pairs[:n_dev],
        "test": pairs[n_dev : n_dev + n_test],
        "": pairs[n_dev + n_test :],
    }
    judged: dict[str, JudgedSet] = {}
    model = None if similar is None else similar([clause for pair in pairs for clause in pair])
    for number, part in enumerate(("dev", "test")):
        rng = np.random.default_rng([seed, number])
        part_pairs = parts[part]
        judged[part] = _judged(part_pairs, _random_negatives(len(part_pairs), rng), rng)
        if model is not None:
            vectors = model.encode_document([second for _, second in part_pairs])
            judged[f"{part}_hard"] = _judged(part_pairs, _similar_negatives(vectors, rng), rng)
    counts = {
        "sentences": n_sentences,
        "pairs": len(parts[""]),
        "dev_queries": n_dev,
        "test_queries": n_test,
    }
    readme = _readme(counts, least, most, seed, model is not None)
    with filling_listed(folder) as new:
        write_lines(new / "pairs.tsv", map("\t".join, parts[""]))
        for name, judged_set in judged.items():
            write_judged_set(judged_set, new / name)
        write_text(new / "README.md", readme)
    return counts


def sentences(path: AnyPath) -> Iterator[str]:
    """Yield the sentences of a text without their ends; `import_clauses` says where they end."""
    lines: list[str] = []
    size = 0
    for _, line in clean_lines(path):
        text = line.strip()
        if text:
            lines.append(text)
            size += len(text)
        if lines and (not text or size >= _PORTION):
            *ended, rest = _split(" ".join(lines))
            yield from filter(None, ended)
            # What has become too long is not used; its beginning is enough to see that.
            lines, size = [rest[: _LONGEST + 1]], 0
            if not text:
                yield from filter(None, lines)
                lines = []
    yield from filter(None, _split(" ".join(lines)))


def _split(text: str) -> list[str]:
    """``text`` without the ends of its sentences; what follows the last end is the last item."""
    parts, first = [], 0
    for end in _END.finditer(text):
        if not (text[end.end()].islower() or _is_initial(text, end.start())):
            parts.append(text[first : end.start()])
            first = end.end()
    return [*parts, text[first:]]


def _is_initial(text: str, point: int) -> bool:
    """Whether the character at ``point`` is the point of an initial, a capital letter but I."""
    letter, before = text[point - 1 : point], text[point - 2 : point - 1]
    is_alone = not (before.isalnum() or before in ("'", "’"))
    return text[point] == "." and letter.isupper() and letter != "I" and is_alone


def _pairs(texts: Sequence[AnyPath], least: int, most: int) -> tuple[int, list[_Pair]]:
    """The number of sentences, and both clauses of those that fit, no clause twice."""
    pairs: list[_Pair] = []
    seen: set[str] = set()
    n_sentences = 0
    for path in texts:
        for sentence in sentences(path):
            n_sentences += 1
            pair = _clauses(sentence, least, most)
            if pair is not None and pair[0] != pair[1] and seen.isdisjoint(pair):
                seen.update(pair)
                pairs.append(pair)
    return n_sentences, pairs


def _clauses(sentence: str, least: int, most: int) -> _Pair | None:
    """Both clauses of a sentence as words separated by blanks; None if it is not used."""
    if "," not in sentence or len(sentence) > _LONGEST or _OTHER_BREAK.search(sentence):
        return None
    parts = _COMMA.split(sentence)
    if len(parts) != 2:
        return None
    first, second = map(words_of, parts)
    if not (least <= len(first) <= most and least <= len(second) <= most):
        return None
    return " ".join(first), " ".join(second)


# -- judged sets ------------------------------------------------------------------------------


def _random_negatives(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Other pairs for each of ``n`` pairs, all different: (n, 4)."""
    return np.stack([_numbers_except(k, n, _NEGATIVES, rng) for k in range(n)])


def _similar_negatives(vectors: np.ndarray, rng: np.random.Generator) -> NDArray[np.int64]:
    """The pairs with the most similar second clauses among random ones: (n, 4).

    Those from `_TOO_SIMILAR` on come last, the least similar of them first: they are only taken if
    there are not enough others.
    """
    n = len(vectors)
    unit = vectors.astype(np.float64)
    lengths = np.sqrt(np.einsum("kd,kd->k", unit, unit))
    unit /= np.where(lengths > 0, lengths, 1)[:, None]
    chosen = np.empty((n, _NEGATIVES), np.int64)
    for k in range(n):
        drawn = _numbers_except(k, n, min(_DRAWN, n - 1), rng)
        # einsum adds in one order, whatever the number of threads.
        cosines = np.einsum("kd,d->k", unit[drawn], unit[k])
        distance = np.where(cosines < _TOO_SIMILAR, -cosines, 1 + cosines)
        chosen[k] = drawn[np.argsort(distance, kind="stable")[:_NEGATIVES]]
    return chosen


def _numbers_except(k: int, n: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """``count`` different numbers below ``n`` other than ``k``, in random order."""
    drawn = rng.choice(n - 1, count, replace=False)
    return np.where(drawn >= k, drawn + 1, drawn)


def _judged(
    pairs: list[_Pair], negatives: NDArray[np.int64], rng: np.random.Generator
) -> JudgedSet:
    """The `JudgedSet` of some pairs; neither ids nor order say which title is right."""
    n = len(pairs)
    positions = rng.permutation(n).astype(np.int32)
    titles = [""] * n
    for position, (_, second) in zip(positions.tolist(), pairs, strict=True):
        titles[position] = second
    candidates = np.concatenate([np.arange(n)[:, None], negatives], axis=1)
    title_index = np.sort(positions[candidates], axis=1)
    digits = max(5, len(str(n - 1)))
    return JudgedSet(
        query_ids=[f"q{k}" for k in range(n)],
        queries=[first for first, _ in pairs],
        title_ids=[f"d{k:0{digits}}" for k in range(n)],
        titles=titles,
        offsets=np.arange(0, n * _CANDIDATES + 1, _CANDIDATES, dtype=np.int64),
        title_index=title_index.ravel(),
        grade=(title_index == positions[:, None]).ravel().astype(np.int32),
    )


def _readme(counts: dict[str, int], least: int, most: int, seed: int, hard: bool) -> str:
    similar = (
        f"""\
- `dev_hard/`, `test_hard/`: the same queries; the negatives are the {_NEGATIVES} most similar of
  up to {_DRAWN:,} random ones with a cosine below {_TOO_SIMILAR} (SIF vectors)
"""
        if hard
        else ""
    )
    return f"""\
# Completion: the first clause of a sentence -> its second clause

Made by `sentemb data clauses` from plain text of {counts["sentences"]:,} sentences: those with
exactly one comma and two clauses of {least} to {most} words. No clause occurs twice.
Words are lower-cased and have no punctuation.

- `pairs.tsv`: {counts["pairs"]:,} training pairs, first clause <tab> second clause
- `dev/`: {counts["dev_queries"]:,} queries, `test/`: {counts["test_queries"]:,} queries; for each
  the right title (grade 1) and {_NEGATIVES} random titles of the same part (grade 0)
{similar}- seed: {seed}

With {_CANDIDATES} candidates and one right title, NDCG@1 is the share of queries whose right title
ranks first; by chance {1 / _CANDIDATES:.3f}.

The clauses are parts of the texts, so the licence of the texts holds for this folder too.
"""
