"""How many letters two texts differ by."""

# Letters from which on a text may differ from another in one place, and in two.
_ONE, _TWO = 3, 6


def most_edits(text: str) -> int:
    """By how much a text may differ from another and still be meant as it: 0, 1 or 2."""
    return (len(text) >= _ONE) + (len(text) >= _TWO)


def distance(a: str, b: str) -> int:
    """The letters to insert, delete, replace or exchange with the next that make ``b`` of ``a``."""
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        row = [i]
        for j, goal in enumerate(b, 1):
            cost = min(last[j - 1] + (letter != goal), last[j] + 1, row[-1] + 1)
            if i > 1 and j > 1 and letter == b[j - 2] and goal == a[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]
