"""Fonts for scripts that the default font of a figure lacks."""

from typing import Any

from matplotlib import rcParams
from matplotlib.font_manager import FontProperties, findfont, fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

# This font has a box for every letter.
_PLACEHOLDER = "Last Resort"


def lend_fonts(figure: Any) -> list[str]:
    """Let the texts of a figure use other installed fonts for letters that their own font lacks.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Its texts get lists of font families.

    Returns
    -------
    list of str
        Letters that no installed font has, sorted: they will be drawn as boxes.
    """
    texts = figure.findobj(Text)
    usual = _letters_of(findfont(FontProperties()))
    missing = {
        letter for text in texts for letter in text.get_text() if ord(letter) not in usual
    } - {"\n"}
    families: list[str] = []
    upright = {
        (font.name, font.fname)
        for font in fontManager.ttflist
        if font.style == "normal" and font.weight in (400, "normal", "regular", "book")
    }
    for name, path in sorted(upright):
        if missing and not name.startswith(_PLACEHOLDER):
            lent = {letter for letter in missing if ord(letter) in _letters_of(path)}
            if lent:
                families.append(name)
                missing -= lent
    if families:
        for text in texts:
            text.set_fontfamily([*rcParams["font.family"], *families])
    return sorted(missing)


def _letters_of(path: str) -> Any:
    """The code points that a font has; empty if the font cannot be read."""
    try:
        return FT2Font(path).get_charmap()
    except (OSError, RuntimeError):
        return {}
