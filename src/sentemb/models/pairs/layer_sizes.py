"""How many cells the layers of ARC-I and ARC-II have along a text.

L words have L - k + 1 windows of k words. Pooling over two halves their number, rounded up, and the
next convolution takes away k - 1.
"""

from __future__ import annotations

from sentemb.errors import SentembError


def layer_sizes(max_words: int, window: int, convolutions: int) -> list[tuple[int, int]]:
    """Cells after each convolution, and after the pooling that follows it.

    The longest text has L = ``max_words``, every convolution the ``window`` k. Raises
    `SentembError` if ``max_words`` is too small for the last layer to have a cell.
    """
    least = least_words(window, convolutions)
    if max_words < least:
        plural = "s" if convolutions > 1 else ""
        fewer = "fewer --maps" if plural else "a smaller --window"
        raise SentembError(
            f"{convolutions} convolution{plural} with window {window} need{'' if plural else 's'} "
            f"at least {least} words (--max-words {max_words}); {fewer} or more words"
        )
    sizes, size = [], max_words
    for _ in range(convolutions):
        convolved = size - window + 1
        size = -(-convolved // 2)
        sizes.append((convolved, size))
    return sizes


def least_words(window: int, convolutions: int) -> int:
    """The length of text for which the last of some convolutions has just one cell."""
    size = 1
    for _ in range(convolutions - 1):
        size = 2 * (size + window - 1) - 1
    return size + window - 1
