"""Parquet files that pyarrow writes and no shop would: other types, values, names and sizes.

Every file is whole. A case writes one and imports it as clicks, with a field of an object as query,
and as clicks and catalogue in one: the import ends within its limits, or a `SentembError` of one
line says why not.
"""

from collections import Counter
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from reliability import mutations
from reliability.count import Count
from reliability.fuzz import Judge, Reader, attacked, wrong_with_message
from reliability.samples import pairs
from sentemb import SentembError

_EXTREMES = (-(2**63), -1, 0, 1, 2**31, 2**53 + 1, 2**63 - 1)
_TEXTS = ("", " ", "\0", "a\nb", "a\tb", "\u2028", "\ufeff1", "1.000", "1e400", "x" * 5000, "<b>")
_FLOATS = (float("nan"), float("inf"), float("-inf"), -0.0, 1e308, 5e-324, 2.0**63, 1.5)
_MOMENTS = (datetime(1, 1, 1), datetime(1970, 1, 1), datetime(9999, 12, 31, 23, 59, 59))
_ZONES = ("UTC", "+02:00", "Europe/Berlin", "No/Such", "", "-99:99", "/etc/passwd", "../x")
_LONG = 1 << 20
_ROWS = 48


def tables(n: int, seed: int = 0, workers: int | None = None) -> Count:
    """``n`` crafted Parquet files from ``seed``, each imported."""
    failures, tally = attacked(n, seed, kind="tables", workers=workers)
    count = Count("crafted Parquet files", tried=n)
    count.failures = [f"seed {seed}, case {number}: {text}" for number, text in failures]
    count.notes = [f"{number} were {what}" for what, number in sorted(tally.items())]
    return count


class Tables(Judge):
    """Writes crafted Parquet files and imports them."""

    seconds = 5

    def __init__(self, home):
        super().__init__(home)
        some = (pairs() * 2)[:_ROWS]
        self._texts = {
            "query": [query for query, _ in some],
            "title": [title for _, title in some],
            "id": [f"p{k % 30}" for k in range(_ROWS)],
            "clicks": [1 + k % 3 for k in range(_ROWS)],
        }
        self.tally = Counter()
        self._write({}, {})
        assert self._import("clicks.parquet", True) is None
        self.arm()

    def case(self, seed, number, repaired):
        """Write a file and import it; what is wrong, or None."""
        rng = mutations.generator(seed, number)
        changed, said = {}, []
        for name in rng.sample(sorted(self._texts), rng.choice((1, 1, 2, 4))):
            changed[name], what = _array(rng, name)
            said.append(f"{name} {what}")
        names, what = _names(rng)
        settings, how = _settings(rng)
        self._write(changed, settings, names)
        wrong = self._judge(Reader((), self._import), "clicks.parquet", True)
        return f"{'; '.join([*said, what, how])}: {wrong}" if wrong else None

    def _write(self, changed, settings, names=None):
        import pyarrow
        from pyarrow.parquet import write_table

        columns = {
            name: changed.get(name, pyarrow.array(values)) for name, values in self._texts.items()
        }
        table = pyarrow.Table.from_arrays(list(columns.values()), names=names or list(columns))
        table = table.slice(0, settings.pop("rows", _ROWS))
        try:
            write_table(table, "clicks.parquet", **settings)
        except pyarrow.ArrowException:  # a moment that no unit of the file has
            self._write({}, {})

    def _import(self, name, repaired):
        from sentemb.data.click_log import read_click_log
        from sentemb.data.importers.click_table import Columns, import_clicks

        for more, catalogue in (
            ({}, None),
            ({"query": "query.a"}, None),
            ({"id": "id", "keep": {"clicks": "clicks"}}, name),
        ):
            columns = Columns(clicks="clicks", **more)
            try:
                import_clicks(
                    [name], "log.tsv", columns, catalogue=catalogue, min_clicks=1, force=True
                )
            except SentembError as error:
                if wrong := wrong_with_message(str(error)):
                    return wrong
            else:
                self.tally["imported"] += 1
                if not (read_click_log("log.tsv").clicks > 0).all():
                    return "clicks that cannot be"
        return None


# -- columns ---------------------------------------------------------------------------------------


def _array(rng, name):
    """A column that a reader of texts and numbers hardly waits for."""
    import pyarrow

    kind = rng.choice(sorted(_KINDS))
    try:
        return _KINDS[kind](rng, pyarrow), kind
    except (pyarrow.ArrowException, OverflowError, ValueError):
        return pyarrow.nulls(_ROWS), "of nulls"  # pyarrow does not make it either


def _of(rng, values, pa, kind=None):
    """Some of ``values``, one of them missing at times."""
    some = [rng.choice(values) for _ in range(_ROWS)]
    if rng.random() < 0.5:
        some[rng.randrange(_ROWS)] = None
    return pa.array(some, kind)


def _moments(rng, pa):
    unit, zone = rng.choice(("s", "ms", "us", "ns")), rng.choice((None, *_ZONES))
    numbers = [rng.choice((*_EXTREMES, 10**9 + rng.randrange(10**9))) for _ in range(_ROWS)]
    return pa.array(numbers, pa.int64()).cast(pa.timestamp(unit)).cast(pa.timestamp(unit, zone))


def _raw_moments(rng, pa):
    """Numbers that are named moments, without a look at what they would be."""
    zone = rng.choice((None, *_ZONES))
    numbers = pa.array([rng.choice(_EXTREMES) for _ in range(_ROWS)], pa.int64())
    return numbers.view(pa.timestamp(rng.choice(("s", "ms", "us", "ns")), zone))


def _nested(rng, pa):
    value, depth = "x", rng.choice((1, 2, 30, 90))
    for _ in range(depth):
        value = [value] if rng.random() < 0.5 else {rng.choice(("a", "", "a.b")): value}
    return pa.array([value] * _ROWS)


def _twice(rng, pa):
    """Objects with two fields of one name."""
    return pa.StructArray.from_arrays([pa.array(["x"] * _ROWS)] * 2, names=["a", "a"])


def _long_text(rng, pa):
    """One long text, stored once and named by every row."""
    codes = pa.array([0] * _ROWS, pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(["w" * _LONG]))


def _not_utf8(rng, pa):
    damaged = pa.array([b"\xff\xfe"] * _ROWS, pa.binary())
    return damaged.view(pa.string())


_KINDS = {
    "of other texts": lambda rng, pa: _of(rng, _TEXTS, pa),
    "of floats": lambda rng, pa: _of(rng, _FLOATS, pa, rng.choice((pa.float32(), pa.float64()))),
    "of small floats": lambda rng, pa: pa.array([1.5] * _ROWS).cast(pa.float16()),
    "of integers": lambda rng, pa: _of(rng, _EXTREMES, pa, pa.int64()),
    "of large integers": lambda rng, pa: _of(rng, (0, 2**64 - 1), pa, pa.uint64()),
    "of decimals": lambda rng, pa: _of(
        rng, (Decimal("1.50"), Decimal(10) ** 30, Decimal("-0")), pa, pa.decimal256(70, 9)
    ),
    "of dates": lambda rng, pa: _of(rng, (date.min, date.max), pa),
    "of early dates": lambda rng, pa: pa.array([-(2**31)] * _ROWS, pa.int32()).view(pa.date32()),
    "of times": lambda rng, pa: _of(rng, (time(0), time(23, 59, 59, 999_999)), pa),
    "of durations": lambda rng, pa: _of(rng, (timedelta(0), timedelta.max / 10**4), pa),
    "of moments": _moments,
    "of raw moments": _raw_moments,
    "of moments of Python": lambda rng, pa: _of(rng, _MOMENTS, pa, pa.timestamp("us")),
    "of truth values": lambda rng, pa: _of(rng, (True, False), pa),
    "of bytes": lambda rng, pa: _of(rng, (b"", b"\xff", b"text"), pa),
    "of nulls": lambda rng, pa: pa.nulls(_ROWS),
    "nested": _nested,
    "of objects with a name twice": _twice,
    "of maps": lambda rng, pa: pa.array([[("a", 1)]] * _ROWS, pa.map_(pa.string(), pa.int64())),
    "of one long text": _long_text,
    "of texts that are not UTF-8": _not_utf8,
    "of a dictionary": lambda rng, pa: _of(rng, _TEXTS, pa).dictionary_encode(),
    "of large texts": lambda rng, pa: _of(rng, _TEXTS, pa, pa.large_string()),
    "of views": lambda rng, pa: _of(rng, _TEXTS, pa, pa.string_view()),
}


def _names(rng):
    """Names of the columns, mostly their own."""
    if rng.random() < 0.8:
        return None, "own names"
    odd = rng.choice(("", "query", "QUERY", "title", "a.b", "\u202e", "x" * 5000, "\n", "1"))
    names = ["query", "title", "id", "clicks"]
    names[rng.randrange(4)] = odd
    return names, f"a column named {odd[:9]!r}"


def _settings(rng):
    """How the file is written."""
    settings = {
        "rows": rng.choice((_ROWS, _ROWS, _ROWS, 1, 0)),
        "row_group_size": rng.choice((1, 7, _ROWS)),
        "compression": rng.choice(("none", "snappy", "gzip", "zstd", "brotli", "lz4")),
        "use_dictionary": rng.random() < 0.5,
        "version": rng.choice(("1.0", "2.4", "2.6")),
        "data_page_version": rng.choice(("1.0", "2.0")),
        "store_schema": rng.random() < 0.7,
        "write_statistics": rng.random() < 0.5,
    }
    return settings, ", ".join(f"{name} {value}" for name, value in settings.items())
