"""Fonts for scripts that the usual one of a figure lacks."""

from matplotlib import rcParams
from matplotlib.font_manager import FontProperties, findfont, fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

# It has a box for every letter, which is what shall be avoided.
_PLACEHOLDER = "Last Resort"


def lend_fonts(figure):
    """Let the texts of a figure take letters that their font lacks from others that are installed.

    Parameters
    ----------
    figure : matplotlib.figure.Figure

    Returns
    -------
    list of str
        Letters that no installed font has, in order: they will be drawn as boxes.
    """
    texts = figure.findobj(Text)
    usual = _letters_of(findfont(FontProperties()))
    missing = {
        letter for text in texts for letter in text.get_text() if ord(letter) not in usual
    } - {"\n"}
    families = []
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


def _letters_of(path):
    """The code points that a font has; none if it cannot be read."""
    try:
        return FT2Font(path).get_charmap()
    except (OSError, RuntimeError):
        return {}
