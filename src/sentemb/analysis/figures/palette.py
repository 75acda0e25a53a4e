"""The colours of curves and bars: those of a model are the same in every figure."""

import re
import zlib
from collections.abc import Sequence

# The palette of Okabe and Ito, which colour-blind readers can tell apart, without yellow, which is
# invisible on white.
BLUE, VERMILION, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
BLACK, SKY, ORANGE = "#000000", "#56b4e9", "#e69f00"
COLOURS = (BLUE, VERMILION, GREEN, PINK, BLACK, SKY, ORANGE)
# Two towers and pair models that are drawn together have different colours.
_OF_MODEL = {
    "lstm": BLUE,
    "bilstm": SKY,
    "rnn": VERMILION,
    "irnn": BLACK,
    "bag": ORANGE,
    "dssm": GREEN,
    "clsm": PINK,
    "dan": BLACK,
    "arc1": ORANGE,
    "arc2": VERMILION,
    "wordembed": GREEN,
    "senmlp": SKY,
    "senna": PINK,
    "urae": BLACK,
    "deepmatch": SKY,
}


def model_colours(names: Sequence[str]) -> list[str]:
    """The colour of each model of a figure, as ``"#0072b2"``, whatever the order of their names.

    The first kind of model in a name decides, as in ``"LSTM"`` or ``"bag-hard"``. A name without
    one has a colour of its own, by its letters. A colour that another model of the figure has is
    taken again only when none is left.
    """
    kinds = [_kind(name) for name in names]
    colours: dict[int, str] = {}
    for number in sorted(range(len(names)), key=lambda k: (kinds[k] is None, names[k])):
        kind, taken = kinds[number], list(colours.values())
        first = (
            COLOURS.index(_OF_MODEL[kind])
            if kind
            else zlib.crc32(names[number].encode()) % len(COLOURS)
        )
        colours[number] = min(COLOURS[first:] + COLOURS[:first], key=taken.count)
    return [colours[number] for number in range(len(names))]


def _kind(name: str) -> str | None:
    words = re.findall(r"arc\d|[a-z]+", name.lower())
    return next((word for word in words if word in _OF_MODEL), None)
