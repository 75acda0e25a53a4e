"""Files of other kinds than tables of text: their names, and remedies."""

import re
import zipfile
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.files import is_file
from sentemb.system.paths import AnyPath

_STARTS = (
    (b"\x1f\x8b", "is compressed; unpack it, or let the name of a gzip file end in .gz"),
    (b"\x28\xb5\x2f\xfd", "is compressed; unpack it, or let the name of a gzip file end in .gz"),
    (b"BZh", "is compressed with bzip2; unpack it"),
    (b"\xfd7zXZ", "is compressed with xz; unpack it"),
    (b"7z\xbc\xaf", "is an archive of 7-Zip; unpack it"),
    (b"\xd0\xcf\x11\xe0", "is an old Excel workbook (xls); save the sheet as CSV UTF-8"),
    (b"%PDF", "is a PDF; export the table as CSV"),
    (b"SQLite format 3\0", "is an SQLite database, not a record; export the table as CSV"),
    (b"PAR1", "is Parquet; give --format parquet"),
)  # fmt: skip
_MARKUP = (
    (
        re.compile(rb"<\?xml[^>]*>\s*(?:<\?mso-[^>]*>\s*)?<(?:\w+:)?workbook\b", re.IGNORECASE),
        "is a sheet of Excel in XML; save it as CSV UTF-8",
    ),
    (
        re.compile(rb"<(?:\?xml|rss|feed|channel|products|items|catalog)\b", re.IGNORECASE),
        "is an XML feed; export the products as TSV or CSV (feeds of shops can be had as TSV)",
    ),
    (
        re.compile(rb"<(?:!doctype|html|head)\b", re.IGNORECASE),
        "is a web page, perhaps that of a log-in; download the table itself",
    ),
)


# Of the bytes of UTF-16, at least this share is zero.
_ZEROS = 0.03


def check_kind(path: AnyPath, start: bytes, name: str) -> None:
    """Refuse a file whose first bytes are those of something else than text.

    Raises `SentembError` with the kind and the remedy.
    """
    if start.startswith(b"PK\x03\x04"):
        raise SentembError(f"{name}: {_packed(path)}")
    for magic, what in _STARTS:
        if start.startswith(magic):
            raise SentembError(f"{name}: {what}")
    bare = start.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").lstrip(b"\xff\xfe \t\r\n")
    for pattern, what in _MARKUP:
        if pattern.match(bare):
            raise SentembError(f"{name}: {what}")


def encoding_in(start: bytes) -> str | None:
    """UTF-16 if the first bytes of a text are in it, with a byte-order mark or without."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    # Separators and line ends at least are ASCII, of which every other byte is zero in UTF-16.
    first, second = start[::2].count(0), start[1::2].count(0)
    for encoding, high, low in (("utf-16-le", second, first), ("utf-16-be", first, second)):
        if high > max(1, _ZEROS * len(start), 9 * low):
            return encoding
    return None


def _packed(path: AnyPath) -> str:
    """The kind of a zip archive, with the remedy."""
    names: list[str] = []
    if str(path) != "-" and is_file(path):
        try:
            with zipfile.ZipFile(Path(path)) as archive:
                names = archive.namelist()
        except (zipfile.BadZipFile, OSError, ValueError):
            return "is a damaged zip archive or spreadsheet; save the table as CSV"
    if any(name.startswith("xl/") for name in names):
        return "is an Excel workbook (xlsx); save the sheet as CSV UTF-8 and give that file"
    if "content.xml" in names:
        return "is a spreadsheet of LibreOffice (ods); save the sheet as CSV UTF-8"
    tables = [name for name in names if not name.endswith("/")]
    if tables:
        return f"is a zip archive of {', '.join(tables[:5])}; unpack it and give the table"
    return "is a spreadsheet or archive; save the table as CSV"
