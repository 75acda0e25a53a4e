"""The columns of a Parquet file, some rows at a time; needs pyarrow."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sentemb.errors import SentembError
from sentemb.system.bounds import plain
from sentemb.system.extras import package
from sentemb.system.files import place_name, reading, unreadable
from sentemb.system.paths import AnyPath

# As fast as thousands. A small file may hold one long text for all of its rows, and each row of a
# batch gets a copy.
_BATCH_ROWS = 128


def parquet_batches(
    path: AnyPath, choose: Callable[[dict[str, list[str]]], Sequence[str]]
) -> Iterator[list[list[Any]]]:
    """The values of some columns of a Parquet file, batch by batch.

    ``choose`` takes the names of all columns, each with its path, and returns those to read; a
    field of an object, or of the objects in a list, is the column ``a.b`` with the path a, b. A
    batch has a list of the values of each column at the beginning of a path, in their order.

    Raises `SentembError` without pyarrow, or if the file is missing or is not a whole Parquet file.
    """
    name = place_name(path)
    pyarrow = package("pyarrow", "parquet", f"{name}: reading Parquet")
    parquet = package("pyarrow.parquet", "parquet")
    with reading(path):
        pass  # a missing file has the message of every other file
    try:
        with parquet.ParquetFile(path) as file:
            columns = list(file.schema_arrow.names)
            paths = [path for field in file.schema_arrow for path in _paths(field)]
            names = list(choose({".".join(path): path for path in paths}))
            twice = next((column for column in names if columns.count(column) > 1), None)
            if twice is not None:
                raise SentembError(f"{name}: two columns are named {plain(twice)}; rename one")
            # By default a batch may join rows of several groups.
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=names):
                    yield [batch.column(column).to_pylist() for column in names]
    except SentembError:
        raise
    except (pyarrow.ArrowException, ValueError, OverflowError) as error:
        # Texts that are not UTF-8 and dates that Python does not have come from pyarrow, too.
        raise SentembError(f"{name}: not a whole Parquet file ({error}); write it again") from error
    except OSError as error:
        raise unreadable(path, error) from error


def _paths(field: Any) -> Iterator[list[str]]:
    """The paths of a column, or of the fields of its objects."""
    kind = field.type
    while hasattr(kind, "value_field"):  # a list
        kind = kind.value_type
    inner = [kind.field(k) for k in range(kind.num_fields)] if hasattr(kind, "names") else []
    for below in inner:
        yield from ([field.name, *path] for path in _paths(below))
    if not inner:
        yield [field.name]
