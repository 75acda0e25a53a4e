"""The numbers at the end of a row of text."""


def is_number(field: bytes) -> bool:
    """Whether a field is a number; Python also reads 1_0, which nobody writes."""
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field


def ends_in_numbers(fields: list[bytes], count: int) -> bool:
    """Whether a row ends in ``count`` numbers, with or without a word before them."""
    return len(fields) >= count and all(map(is_number, fields[-count:]))


def numbers_at_end(fields: list[bytes]) -> int:
    """Count the numbers that end a row; its first field is the word, even if it is a number."""
    count = 0
    for field in reversed(fields[1:]):
        if not is_number(field):
            break
        count += 1
    return count
