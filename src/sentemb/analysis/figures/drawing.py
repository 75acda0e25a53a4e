"""What all figures share: names of runs, labels that fit, saving whole or not at all."""

import os
import unicodedata
import warnings
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.files import replacing

FORMATS = ("png", "svg", "pdf")
LABEL_SIZE, TITLE_SIZE = 8, 10
_DPI = 150
# Letters without a font that are named.
_NAMED = 12


def figure_format(path):
    """The format that the ending of ``path`` asks for; a `SentembError` if it is none of ours."""
    ending = Path(path).suffix
    if ending.lower()[1:] not in FORMATS:
        raise SentembError(
            f"{path}: figures do not end in {ending or 'nothing'!r}; use .png, .svg or .pdf"
        )
    return ending.lower()[1:]


def save_figure(figure, path):
    """Write a figure as PNG, SVG or PDF, by the ending of ``path``, in place of an earlier one.

    Letters that its font lacks are taken from others that are installed; a warning names those
    that none has.
    """
    from sentemb.analysis.figures.fonts import lend_fonts

    format = figure_format(path)
    missing = lend_fonts(figure)
    with replacing(path) as temporary, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(temporary, format=format, dpi=_DPI)
    if missing:
        some = "".join(missing[:_NAMED]) + ("…" if len(missing) > _NAMED else "")
        warnings.warn(
            f"no font here has {some}; boxes stand for these letters; install a font that has them",
            stacklevel=2,
        )


def short_names(paths):
    """The last part of each path, or as many last parts as it takes to tell them apart."""
    parts = [Path(os.path.realpath(path)).parts for path in paths]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return ["/".join(part[-1:]) for part in parts]


def fitting(text, longest):
    """``text`` as it can be drawn: no control characters, at most ``longest`` characters."""
    text = "".join(letter for letter in text if letter.isprintable())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def letters(label):
    """The length of ``label`` in Latin letters; those of East Asia are twice as wide."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in label)
