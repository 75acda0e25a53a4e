"""Texts, or pairs of texts, with a label or a score for each."""

import hashlib
import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from sentemb.data.click_log import clean_text
from sentemb.data.lines import content_lines
from sentemb.errors import SentembError
from sentemb.system.bounds import brief, is_number
from sentemb.system.files import place_name
from sentemb.system.html_tables import excerpt
from sentemb.system.paths import AnyPath

ValueT = TypeVar("ValueT", str, float)

_TEXTS = {1: "<TAB>text", 2: "<TAB>text<TAB>text"}


@dataclass(frozen=True, eq=False, repr=False)
class ValuedTexts(Generic[ValueT]):
    """Texts or pairs of texts, each with a label or a score, in the order of the file.

    ``second_texts`` are None if there is one text for each value.
    """

    values: list[ValueT]
    texts: list[str]
    second_texts: list[str] | None = None

    def __post_init__(self) -> None:
        lengths = {len(self.values), len(self.texts), len(self.sides[-1])}
        if len(lengths) > 1 or not self.values:
            second = (
                "" if self.second_texts is None else f" and {len(self.second_texts):,} second texts"
            )
            raise SentembError(
                f"{len(self.values):,} values, but {len(self.texts):,} texts{second}; give the "
                "same number of each, at least one"
            )
        if isinstance(self.values[0], str):
            wrong = [value for value in self.values if not isinstance(value, str)]
        else:
            wrong = [value for value in self.values if not _is_score(value)]
        if wrong:
            raise SentembError(
                f"a value is {brief(wrong[0])}; give labels (str) only, or finite numbers only"
            )

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        what = "texts" if self.second_texts is None else "pairs of texts"
        return f"ValuedTexts({len(self):,} {what})"

    def _repr_html_(self) -> str:
        rows = zip(self.values, *self.sides, strict=True)
        heads = (
            ["value", "text"]
            if self.second_texts is None
            else ["value", "first text", "second text"]
        )
        return excerpt(rows, len(self), heads, texts=range(len(heads)))

    @property
    def sides(self) -> tuple[list[str], ...]:
        """The lists of texts: one, or two of equal length."""
        return (self.texts,) if self.second_texts is None else (self.texts, self.second_texts)

    def fingerprint(self) -> str:
        """A hash of all values and texts."""
        lines = zip(map(repr, self.values), *self.sides, strict=True)
        return hashlib.sha256("\n".join(map("\t".join, lines)).encode("utf-8")).hexdigest()


def read_labelled(path: AnyPath) -> ValuedTexts[str]:
    """Read a file of ``label<TAB>text`` lines, or one of ``label<TAB>text<TAB>text`` lines.

    It is compressed if its name ends in ``.gz``; ``-`` is standard input. The encoding is UTF-8.
    Raises `SentembError` for a bad line, with its place and a remedy: a wrong number of columns, or
    another one than the first line, an empty label, a text without words or with more than 10,000,
    a NUL character, invalid UTF-8. Also for a file without lines.
    """
    return read_valued(path, label_of, "label")


def read_valued(
    path: AnyPath,
    value_of: Callable[[str], ValueT],
    what: str,
    n_texts: Collection[int] = (1, 2),
) -> ValuedTexts[ValueT]:
    """Read lines of a value and one or two texts; `read_labelled` describes format and errors.

    ``value_of``, such as `label_of` or `score_of`, gives the value that the first column holds, or
    raises a `SentembError` without a place if it holds none. Messages call that column ``what``. A
    line may have as many texts as ``n_texts`` names: 1, 2, or both. All lines have as many as the
    first.
    """
    return valued_lines(content_lines(path), place_name(path), value_of, what, n_texts)


def valued_lines(
    lines: Iterable[tuple[int, str]],
    name: str,
    value_of: Callable[[str], ValueT],
    what: str,
    n_texts: Collection[int] = (1, 2),
) -> ValuedTexts[ValueT]:
    """Read numbered lines of the file ``name`` like `read_valued`."""
    values: list[ValueT] = []
    columns: tuple[list[str], ...] = ()
    for number, line in lines:
        first, *fields = line.split("\t")
        try:
            expected = [len(columns)] if columns else sorted(n_texts)
            if len(fields) not in expected:
                raise _wrong_columns(len(fields) + 1, what, expected, bool(columns))
            value = value_of(first)
            texts = [clean_text(field, "text") for field in fields]
        except SentembError as error:
            raise SentembError(f"{name}:{number}: {error}") from None
        columns = columns or tuple([] for _ in fields)
        values.append(value)
        for column, text in zip(columns, texts, strict=True):
            column.append(text)
    if not values:
        forms = " or ".join(f"{what}{_TEXTS[count]}" for count in sorted(n_texts))
        raise SentembError(f"{name}: the input is empty; give {forms} lines")
    return ValuedTexts(values, *columns)


def label_of(field: str) -> str:
    """A label: any word or phrase, without white space around it."""
    label = field.strip()
    if not label:
        raise SentembError("the label is empty; write a word in the first column")
    return label


def score_of(field: str) -> float:
    """A score: a number that is not NaN or infinite."""
    try:
        score = float(field)
    except ValueError:
        score = math.nan
    # float() would also accept "1_0" and digits of other scripts.
    if not math.isfinite(score) or "_" in field or not field.isascii():
        raise SentembError(f"the score {brief(field)} is not a number; correct it")
    return score


def _is_score(value: object) -> bool:
    return is_number(value) and math.isfinite(value)


def _wrong_columns(n_columns: int, what: str, expected: list[int], fixed: bool) -> SentembError:
    columns = "1 column" if n_columns == 1 else f"{n_columns} columns"
    forms = " or ".join(f"{what}{_TEXTS[count]}" for count in expected)
    why = " as in line 1" if fixed else ", no other tabs"
    return SentembError(f"{columns}; write {forms}{why}")
