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
    path: AnyPath, choose: Callable[[list[str]], Sequence[str]]
) -> Iterator[list[list[Any]]]:
    """The values of some columns of a Parquet file, batch by batch.

    ``choose`` takes the names of all columns and returns those to read; a batch has a list of the
    values of each of these, in their order. Raises `SentembError` without pyarrow, or if the file
    is missing or is not a whole Parquet file.
    """
    name = place_name(path)
    pyarrow = package("pyarrow", "parquet", f"{name}: reading Parquet")
    parquet = package("pyarrow.parquet", "parquet")
    with reading(path):
        pass  # a missing file has the message of every other file
    try:
        with parquet.ParquetFile(path) as file:
            columns = list(file.schema_arrow.names)
            names = list(choose(columns))
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
