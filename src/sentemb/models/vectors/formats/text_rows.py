"""The numbers at the end of a row of text."""


def is_number(field: bytes) -> bool:
    """Whether a field is a number; Python also reads 1_0, which nobody writes."""
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field


def numbers_at_end(fields: list[bytes]) -> int:
    """Count the numbers that end a row; its first field is the word, even if it is a number."""
    count = 0
    for field in reversed(fields[1:]):
        if not is_number(field):
            break
        count += 1
    return count
