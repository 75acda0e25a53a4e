"""Font sizes of all figures, and saving a figure completely or not at all."""

import io
import unicodedata
import warnings
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.system.files import replacing
from sentemb.system.paths import AnyPath

FORMATS = ("png", "svg", "pdf")
LABEL_SIZE, TITLE_SIZE = 8, 10
_DPI = 150
# On a screen, where figures are shown at their size in pixels.
_SCREEN_DPI = 120
# At most this many letters without a font are named.
_NAMED = 12


def figure_format(path: AnyPath) -> str:
    """The format that the ending of ``path`` asks for; a `SentembError` for any other ending."""
    ending = Path(path).suffix
    if ending.lower()[1:] not in FORMATS:
        raise SentembError(
            f"{path}: figures do not end in {ending or 'nothing'!r}; use .png, .svg or .pdf"
        )
    return ending.lower()[1:]


def save_figure(figure: Any, path: AnyPath) -> None:
    """Write a figure as PNG, SVG or PDF, by the ending of ``path``, replacing an earlier one.

    Letters that its font lacks are drawn with other installed fonts; a warning names the letters
    that no installed font has.
    """
    format = figure_format(path)
    with replacing(path) as temporary:
        _write(figure, temporary, format, _DPI)


def figure_png(figure: Any) -> bytes:
    """A figure as the bytes of a PNG file, for a notebook or a page."""
    picture = io.BytesIO()
    _write(figure, picture, "png", _SCREEN_DPI)
    return picture.getvalue()


def description(figure: Any) -> str:
    """A figure in words: its headings, and the names of its axes and curves."""
    parts = [figure.get_suptitle()]
    for ax in figure.axes:
        axes = [text for text in (ax.get_xlabel(), ax.get_ylabel()) if text]
        curves = ax.get_legend_handles_labels()[1]
        named = [", ".join(axes), f"curves {', '.join(curves)}" if curves else ""]
        parts.append(": ".join(text for text in (ax.get_title(), *named) if text))
    # A dollar sign marks a formula.
    return " ".join("; ".join(filter(None, parts)).replace("$", "").split()) or "a figure"


def _write(figure: Any, file: Any, format: str, dpi: int) -> None:
    """Write a figure to a path or an open file."""
    from sentemb.analysis.figures.fonts import lend_fonts

    missing = lend_fonts(figure)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(file, format=format, dpi=dpi)
    if missing:
        named = "".join(missing[:_NAMED]) + ("…" if len(missing) > _NAMED else "")
        warnings.warn(
            f"no installed font has {named}, so boxes are drawn; install one for this script, such "
            "as a Noto font (https://fonts.google.com/noto)",
            stacklevel=3,
        )


def letters(label: str) -> int:
    """The length of ``label`` in Latin letters; East Asian letters are twice as wide."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in label)
