"""How fast tables of clicks become a click log, and in how much memory.

Every run is a process of its own; contenders take turns. The figures are processor time, start-up
included, and the most memory that the process had. Writes docs/results/search-speed.md.

    python benchmarks/import_speed.py [--quick]
"""

import argparse
import csv
import gzip
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from pages import machine, write_tables
from rounds import note
from synthetic import lexicon

from sentemb.system.tables import markdown_table

SIZES = (1_000_000, 2_000_000)
PRODUCTS = 100_000
OURS, PARQUET = "`sentemb import`, CSV", "… Parquet"
SPLIT = "`sentemb split`, TSV"
ARROW_READS = "pyarrow, `open_csv`, reading alone"
ARROW = "pyarrow, `open_csv` and `CSVWriter`, no checks"
OTHER = "pandas, `read_csv` and `to_csv`, no checks"
# Those whose memory is measured on the larger log too.
GROWING = (OURS, SPLIT, OTHER, ARROW)

# Ends by printing the processor time of the process and the most memory that it had, in kB.
# (ru_maxrss would be at least that of the process that started it.)
PROGRAM = """
import sys
{body}
import resource
used = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/status") as file:
    peak = next(line for line in file if line.startswith("VmHWM")).split()[1]
print(used.ru_utime + used.ru_stime, peak)
"""
COMMAND = """
from sentemb.cli import main
main(sys.argv[1:], standalone_mode=False)
"""
CSV_MODULE = """
import csv
with open(sys.argv[1], newline="", encoding="utf-8") as file:
    for row in csv.reader(file):
        pass
"""
CSV_COPY = """
import csv
with open(sys.argv[1], newline="", encoding="utf-8") as file, open(sys.argv[2], "w") as out:
    for _, query, _, title, clicks in csv.reader(file):
        out.write(f"{query}\\t{title}\\t{clicks}\\n")
"""
PANDAS = """
import pandas
table = pandas.read_csv(sys.argv[1], usecols=["query", "title", "clicks"])
table.to_csv(sys.argv[2], sep="\\t", header=False, index=False)
"""
# In batches: as fast as `read_csv` and `write_csv`, in a third of the memory or less.
ARROW_READING = """
from pyarrow.csv import ReadOptions, open_csv
with open_csv(sys.argv[1], ReadOptions(use_threads=False)) as table:
    for batch in table:
        pass
"""
ARROW_COPY = """
from pyarrow.csv import ConvertOptions, CSVWriter, ReadOptions, WriteOptions, open_csv
columns = ConvertOptions(include_columns=["query", "title", "clicks"])
options = WriteOptions(include_header=False, delimiter="\\t")
with (
    open_csv(sys.argv[1], ReadOptions(use_threads=False), convert_options=columns) as table,
    CSVWriter(sys.argv[2], table.schema, write_options=options) as out,
):
    for batch in table:
        out.write(batch)
"""


def write_clicks(folder, n_rows, all_formats):
    """Clicks in CSV and as a log, and the catalogue; packed CSV and JSON lines if wanted.

    Queries of 1 + Poisson(2) words and titles of 3 + Poisson(6); one title in ten has a quote and a
    comma. Products are clicked by Zipf's law; one row in five has a query of its own.
    """
    rng = np.random.default_rng(0)
    words = lexicon(50_000, rng)
    cumulative = np.cumsum(1 / np.arange(3, len(words) + 3))

    def texts(count, least, more):
        lengths = least + rng.poisson(more, count)
        places = np.searchsorted(cumulative, rng.random(lengths.sum()) * cumulative[-1])
        tokens = iter([words[place] for place in np.minimum(places, len(words) - 1)])
        return [" ".join(next(tokens) for _ in range(length)) for length in lengths]

    titles = texts(PRODUCTS, 3, 6)
    titles[::10] = [f'{title}, 15.6" black' for title in titles[::10]]
    with open(folder / "products.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "name"])
        writer.writerows((f"p{place}", title) for place, title in enumerate(titles))
    some = texts(n_rows // 10, 1, 2)
    with (
        open(folder / "clicks.csv", "w", newline="", encoding="utf-8") as file,
        open(folder / "clicks.jsonl", "w", encoding="utf-8") as lines,
        open(folder / "log.tsv", "w", encoding="utf-8") as log,
    ):
        names = ("time", "query", "sku", "title", "clicks")
        writer = csv.writer(file)
        writer.writerow(names)
        for begin in range(0, n_rows, 100_000):
            count = min(100_000, n_rows - begin)
            places = (PRODUCTS ** rng.random(count)).astype(int) % PRODUCTS
            queries = [some[place] for place in rng.integers(0, len(some), count)]
            queries[::5] = texts(len(queries[::5]), 1, 2)
            clicks = rng.geometric(0.5, count).tolist()
            for k, place in enumerate(places.tolist()):
                time = f"2026-05-01T12:{k // 60 % 60:02}:{k % 60:02}"
                row = (time, queries[k], f"p{place}", titles[place], clicks[k])
                writer.writerow(row)
                log.write(f"{queries[k]}\t{titles[place]}\t{clicks[k]}\n")
                if all_formats:
                    lines.write(json.dumps(dict(zip(names, row, strict=True))) + "\n")
    if all_formats:
        packed = gzip.compress((folder / "clicks.csv").read_bytes(), 1)
        (folder / "clicks.csv.gz").write_bytes(packed)


def write_parquet(folder):
    """The same log as Parquet; False without pyarrow."""
    if importlib.util.find_spec("pyarrow") is None:
        return False
    from pyarrow.csv import read_csv
    from pyarrow.parquet import write_table

    write_table(read_csv(folder / "clicks.csv"), folder / "clicks.parquet", row_group_size=100_000)
    return True


def run(body, *arguments):
    """Seconds of processor time and peak memory in MB of a program of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=body), *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    seconds, peak = done.stdout.split()[-2:]
    return float(seconds), int(peak) / 1024


def jobs(folder, has_pyarrow):
    """Name -> program and arguments. The first is compared with the target."""
    clicks, out = folder / "clicks.csv", folder / "pairs.tsv"

    def ours(name, *options):
        given = ("--clicks-column", "clicks", "--force", "-o", out)
        return (COMMAND, "import", folder / name, *given, *options)

    join = ("--id-column", "sku", "--catalogue", folder / "products.csv", "--title-column", "name")
    found = {
        OURS: ours("clicks.csv"),
        "… packed (`.csv.gz`)": ours("clicks.csv.gz"),
        "… JSON lines": ours("clicks.jsonl"),
        PARQUET: ours("clicks.parquet"),
        f"… CSV joined with {PRODUCTS:,} titles": ours("clicks.csv", *join),
        "… CSV, `--min-clicks 2`": ours("clicks.csv", "--min-clicks", "2"),
        SPLIT: (COMMAND, "split", folder / "log.tsv", "-o", folder / "split", "--force"),
        "csv module, reading alone": (CSV_MODULE, clicks),
        "csv module, reading and writing, no checks": (CSV_COPY, clicks, out),
        OTHER: (PANDAS, clicks, out),
        ARROW_READS: (ARROW_READING, clicks),
        ARROW: (ARROW_COPY, clicks, out),
    }
    if not has_pyarrow:
        del found[PARQUET], found[ARROW_READS], found[ARROW]
    if importlib.util.find_spec("pandas") is None:
        del found[OTHER]
    return found


def measure(n_rows, names=None):
    """Name -> seconds and peak memory in MB; of all jobs or those of some names."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        note(f"writing {n_rows:,} rows")
        write_clicks(folder, n_rows, names is None)
        chosen = jobs(folder, write_parquet(folder))
        chosen = {what: job for what, job in chosen.items() if names is None or what in names}
        found = {}
        for what, (body, *arguments) in chosen.items():
            note(f"{n_rows:,} rows: {what}")
            found[what] = run(body, *arguments)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, results not written")
    quick = parser.parse_args().quick
    sizes = (20_000, 80_000) if quick else SIZES
    few, many = measure(sizes[0]), measure(sizes[1], GROWING)
    rows = [["", "rows/s", "seconds", *(f"MB, {size:,} rows" for size in sizes)]]
    for what, (seconds, peak) in few.items():
        rows.append(
            [
                what,
                f"{sizes[0] / seconds:,.0f}",
                f"{seconds:.1f}",
                f"{peak:,.0f}",
                f"{many[what][1]:,.0f}" if what in many else "-",
            ]
        )
    tables = {"Import and split": markdown_table(rows)}
    write_tables("import-speed", tables, machine(), quick)


if __name__ == "__main__":
    main()
