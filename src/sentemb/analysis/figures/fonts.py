"""Fonts for scripts that the default font of a figure lacks."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from matplotlib import rcParams
from matplotlib.font_manager import FontProperties, findfont, findSystemFonts, fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

# This font has a box for every letter.
_PLACEHOLDER = "Last Resort"
# A lent font need not have the weight of the text.
logging.getLogger("matplotlib.font_manager").addFilter(
    lambda record: "Failed to find font weight" not in record.msg
)


def lend_fonts(figure: Any) -> list[str]:
    """Let the texts of a figure use other installed fonts for letters that their own font lacks.

    The texts of ``figure`` get lists of font families. Returns letters that no installed font has,
    sorted: they will be drawn as boxes.
    """
    texts = figure.findobj(Text)
    usual = _letters_of(findfont(FontProperties()))
    missing = {
        letter for text in texts for letter in text.get_text() if ord(letter) not in usual
    } - {"\n"}
    families = _lenders(fontManager.ttflist, missing)
    if missing:
        families += _lenders(_new_fonts(), missing)
    if families:
        for text in texts:
            text.set_fontfamily([*rcParams["font.family"], *families])
    return sorted(missing)


def _lenders(fonts: Sequence[Any], missing: set[str]) -> list[str]:
    """Families that have some letters of ``missing``, upright and regular ones first.

    Their letters are removed from ``missing``.
    """
    families: list[str] = []
    for *_, name, path in sorted(
        {(font.style != "normal", font.weight != 400, font.name, font.fname) for font in fonts}
    ):
        if missing and not name.startswith(_PLACEHOLDER):
            lent = {letter for letter in missing if ord(letter) in _letters_of(path)}
            if lent:
                families.append(name)
                missing -= lent
    return families


def _new_fonts() -> Sequence[Any]:
    """Fonts that were installed after matplotlib listed all fonts; they are added to its list."""
    known = len(fontManager.ttflist)
    for path in sorted({*findSystemFonts()} - {font.fname for font in fontManager.ttflist}):
        # A font that cannot be scaled or read is of no use to matplotlib.
        with suppress(OSError, RuntimeError, NotImplementedError):
            fontManager.addfont(path)
    return fontManager.ttflist[known:]


def _letters_of(path: str) -> Any:
    """The code points that a font has; empty if the font cannot be read."""
    try:
        return FT2Font(path).get_charmap()
    except (OSError, RuntimeError):
        return {}
