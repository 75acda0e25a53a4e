"""Lines of the text formats: checked on the way in, whole files on the way out."""

from sentemb.errors import SentembError
from sentemb.system.files import numbered_lines, place_name, writing


def clean_lines(path):
    """Yield ``(number, text)`` as `sentemb.system.files.numbered_lines`, without a byte-order mark.

    A NUL character raises a `SentembError` with line and column: it is never part of a text and
    most often says that the file is UTF-16 or not text at all.
    """
    for number, text in numbered_lines(path):
        if number == 1:
            text = text.removeprefix("\ufeff")
        if "\0" in text:
            raise SentembError(
                f"{place_name(path)}:{number}:{text.index(chr(0)) + 1}: a NUL character; "
                "save the file as UTF-8 text"
            )
        yield number, text


def write_lines(path, lines):
    """Write each str of ``lines`` and a line end to ``path`` in one piece, as UTF-8.

    ``.gz`` is packed, without a time stamp, so that equal lines give equal files; ``-`` is
    standard output. Lines that are not valid Unicode raise a `SentembError`.
    """
    encoded = (f"{line}\n".encode() for line in lines)
    try:
        with writing(path) as file:
            file.writelines(encoded)
    except UnicodeEncodeError as error:
        raise SentembError(
            f"{path}: cannot be written as UTF-8 ({error}); correct the text"
        ) from error


def is_id(text):
    """Whether ``text`` can stand as an id in a TREC file: not empty, no white space, no NUL."""
    return text.split() == [text] and "\ufeff" not in text and "\0" not in text
