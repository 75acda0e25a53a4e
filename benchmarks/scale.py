"""Time and memory of large logs: from a file of lines to a trained and measured model.

For each size a log is generated, prepared, trained on for one epoch from disk, with hard negatives
that are looked up first, and evaluated; then all its titles are indexed.
Every step is a process of its own. Results are kept in a folder, so that a stopped run continues.
Writes docs/results/scale.md, docs/figures/scale.png and a table of docs/howto/large.md.

Sizes above a million pairs are measured only where ``--sizes`` names them; their rows stay.

    python benchmarks/scale.py [--sizes 3000000,10000000] [--folder build/scale] [--no-page]
"""

import argparse
import csv
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
from large_log import write_judged, write_large_log
from pages import (
    DOCS,
    RESULTS,
    ROOT,
    cells_of,
    fill,
    machine,
    page_of,
    sections_of,
    write_tables,
)

from sentemb.data.prepared_log import PreparedLog
from sentemb.system.tables import markdown_table

# Distinct pairs -> lines that have about as many.
LINES = {
    100_000: 105_000,
    300_000: 325_000,
    1_000_000: 1_140_000,
    3_000_000: 3_700_000,
    10_000_000: 15_600_000,
}
SIZES = tuple(size for size in LINES if size <= 1_000_000)
MAX_WORDS, QUERIES = 200_000, 2_000
# Sizes that are estimated from those that were measured.
ESTIMATED = (100_000_000, 1_000_000_000)
STEPS = ("prepare", "train", "evaluate", "index")
# GB of memory of machines; half of it is left to the system and to the pages of mapped files.
MACHINES = (4, 8, 16, 32, 64, 128)
_LEAST_SECONDS = 0.05  # between two looks at a process

# Runs in a process of its own: prepared log, model. As an epoch of the defaults from the third on:
# hard negatives are looked up before it.
_TRAIN = f"""
import json, sys, time
import sentemb
from sentemb.training.negatives import look_ups
from sentemb.training.towers import settings

settings.HARD_FROM_EPOCH = look_ups.HARD_FROM_EPOCH = 1
log, output = sys.argv[1:]
times, notes = {{}}, []

def note(text):
    notes.append(text)
    if "looking up" in text:
        times["look-up"] = time.monotonic()

def progress(at):
    times.setdefault("epoch", time.monotonic())

sentemb.train(
    log, output=output, force=True, epochs=1, max_word_features={MAX_WORDS},
    on_note=note, on_progress=progress,
)
ended = time.monotonic()
found = {{"look-up": times["epoch"] - times["look-up"], "epoch": ended - times["epoch"]}}
print(json.dumps(found | {{"notes": notes}}))
"""


class Watch(threading.Thread):
    """The most memory of a process and its children: its own, and with the pages of files."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.own, self.all, self.ended = pid, 0.0, 0.0, threading.Event()

    def run(self):
        while not self.ended.wait(_LEAST_SECONDS):
            own = pages = 0
            for pid in [self.pid, *_children(self.pid)]:
                anonymous, file = _resident(pid)
                own, pages = own + anonymous, pages + anonymous + file
            self.own, self.all = max(self.own, own), max(self.all, pages)


def _children(pid):
    try:
        tasks = Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


def _resident(pid):
    """MB of a process in memory: its own, and pages of files."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0, 0.0
    sizes = dict(line.split(":", 1) for line in lines if line.startswith("Rss"))
    kilobytes = {name: float(size.split()[0]) for name, size in sizes.items()}
    return kilobytes.get("RssAnon", 0) / 1e3, kilobytes.get("RssFile", 0) / 1e3


def measured(command):
    """Run a command; {"seconds", "own", "all", "output"}."""
    began = time.monotonic()
    process = subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    watch = Watch(process.pid)
    watch.start()
    output, _ = process.communicate()
    watch.ended.set()
    watch.join()
    if process.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{output[-2000:]}")
    seconds = time.monotonic() - began
    return {"seconds": seconds, "own": watch.own, "all": watch.all, "output": output[-2000:]}


def commands(place):
    """{step: command} for the log in ``place``."""
    sentemb, model = Path(sys.executable).parent / "sentemb", place / "model"
    prepared = place / "prepared"
    return {
        "prepare": [sentemb, "prepare", place / "pairs.tsv", "-o", prepared, "--force"],
        "train": [sys.executable, "-c", _TRAIN, prepared, model],
        "evaluate": [sentemb, "evaluate", model, place / "judged", "--json"],
        "index": [
            *(sentemb, "index", model, place / "titles.tsv", "-o", place / "index"),
            *("--dtype", "float16", "--force"),
        ],
    }


def measure(place, pairs, note):
    """All steps of one size; {step: figures}."""
    place.mkdir(parents=True, exist_ok=True)
    path = place / "figures.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if not (place / "judged" / "qrels.txt").exists():
        note(f"{pairs:,} pairs: generating")
        write_large_log(place / "pairs.tsv", LINES[pairs])
        write_judged(place / "judged", QUERIES)
    for step, command in commands(place).items():
        if step in found:
            continue
        note(f"{pairs:,} pairs: {step}")
        if step == "index":
            write_titles(place / "prepared", place / "titles.tsv")
        found[step] = measured(command)
        note(f"  {found[step]['seconds']:.1f} s, {found[step]['own']:.0f} MB")
        path.write_text(json.dumps(found, indent=1), encoding="utf-8")
    if "log" not in found:
        found["log"] = facts_of(place)
        path.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def write_titles(prepared, path):
    """Write the titles of a prepared log as a file to index."""
    with path.open("w", encoding="utf-8") as file:
        for number, title in enumerate(PreparedLog.open(prepared).titles):
            file.write(f"t{number}\t{title}\n")


def facts_of(place):
    """Sizes of the log, and what is on disk."""
    log = PreparedLog.open(place / "prepared")
    return {
        "lines": sum(1 for _ in (place / "pairs.tsv").open("rb")),
        "pairs": int(log.query_index.size),
        "queries": len(log.queries),
        "titles": len(log.titles),
        "megabytes": {
            name: sum(file.stat().st_size for file in _files(place / name)) / 1e6
            for name in ("pairs.tsv", "prepared", "model", "index")
        },
    }


def _files(path):
    return [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]


def tables_of(found):
    """The tables of the page, by heading."""
    sizes = [["pairs", "lines", "queries", "titles", "log", "prepared", "model", "index"]]
    times = [["pairs", *STEPS, "look-up", "NDCG@1"]]
    memory = [["pairs", *STEPS]]
    for pairs, figures in found.items():
        log = figures["log"]
        counts = (log["pairs"], log["lines"], log["queries"], log["titles"])
        megabytes = log["megabytes"].values()
        sizes.append([*(f"{n:,}" for n in counts), *(f"{size:,.0f} MB" for size in megabytes)])
        ndcg = json.loads(figures["evaluate"]["output"])
        steps = [figures[step] for step in STEPS]
        times.append(
            [
                f"{pairs:,}",
                *(f"{step['seconds']:.1f} s" for step in steps),
                f"{_look_up(figures):.1f} s",
                f"{_ndcg(ndcg):.3f}",
            ]
        )
        memory.append(
            [f"{pairs:,}", *(f"{step['own']:,.0f} ({step['all']:,.0f})" for step in steps)]
        )
    return {
        "Sizes": _with_others("sizes", sizes),
        "Seconds": _with_others("seconds", times),
        "Memory": _with_others("memory", memory),
    } | ({"Estimates for larger logs": estimates(found)} if max(found) > SIZES[-1] else {})


def _with_others(name, rows):
    """A table with the rows of the page for the sizes that were not measured now."""
    head, *measured_now = rows
    of_size = {row[0]: row for row in cells_of(sections_of(page_of("scale"))[f"scale-{name}"])[1:]}
    of_size |= {row[0]: row for row in measured_now}
    by_size = sorted(of_size.values(), key=lambda row: int(row[0].replace(",", "")))
    return markdown_table([head, *by_size])


def estimates(found):
    """What larger logs would take, from the last two sizes that were measured."""
    small, large = sorted(found)[-2:]
    steps = [step for step in STEPS if step != "evaluate"]
    rows = [["pairs", *(f"{step}: time, memory" for step in steps), "prepared", "index"]]
    for pairs in ESTIMATED:
        row = [f"{pairs:,}"]
        for step in steps:
            first, last = found[small][step], found[large][step]
            hours = _by_power(first["seconds"], last["seconds"], small, large, pairs) / 3600
            gigabytes = _by_line(first["own"], last["own"], small, large, pairs) / 1000
            row.append(f"{_figure(hours)} h, {_figure(gigabytes)} GB")
        first, last = (found[size]["log"]["megabytes"] for size in (small, large))
        for place in ("prepared", "index"):
            size = _by_line(first[place], last[place], small, large, pairs) / 1000
            row.append(f"{_figure(size)} GB")
        rows.append(row)
    return markdown_table(rows)


def machines():
    """Which memory does for how many pairs and titles, from the tables of docs/results."""
    steps = [step for step in STEPS if step != "evaluate"]
    counts = _stored("sizes")
    sizes, times, needed = _stored_steps()
    titles = [int(row["titles"]) for row in counts]
    disk = [
        sum(float(row[f"{what} (MB)"].replace(",", "")) for what in ("prepared", "model", "index"))
        / 1000
        for row in counts
    ]
    rows = [
        [
            "memory",
            "pairs",
            "titles",
            "prepare",
            "look-up and one epoch",
            "index",
            "disk",
            "figures",
        ]
    ]
    for gigabytes in MACHINES:
        fitting = [
            number
            for number in range(len(sizes))
            if max(needed[step][number] for step in steps) <= gigabytes / 2
        ]
        last = fitting[-1]
        # The most pairs of which no step needs more, down to one figure.
        pairs = min(_by_line(*sizes[-2:], *needed[step][-2:], gigabytes / 2) for step in steps)
        pairs = int(pairs // (power := 10 ** int(np.log10(max(pairs, 1)))) * power)
        if pairs <= 2 * sizes[-1]:
            pairs, spent = sizes[last], [times[step][last] for step in steps]
            more, how = (titles[last], disk[last]), "measured"
        else:
            spent = [_by_power(*times[step][-2:], *sizes[-2:], pairs) for step in steps]
            more = [_by_line(*values[-2:], *sizes[-2:], pairs) for values in (titles, disk)]
            how = "estimated"
        shown = [f"{one:.0f} s" if one < 600 else f"{_figure(one / 3600)} h" for one in spent]
        of_titles = f"{more[0] / 1e6:.2g}" if more[0] < 1e7 else f"{more[0] / 1e6:.0f}"
        rows.append(
            [
                f"{gigabytes} GB",
                f"{pairs / 1e6:.0f} million",
                f"{of_titles} million",
                *shown,
                f"{_figure(more[1])} GB",
                how,
            ]
        )
    return list(markdown_table(rows))


def _stored(name):
    with (RESULTS / f"scale-{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _stored_steps():
    """The sizes, and by step the seconds and GB of memory of each."""
    memory, seconds = _stored("memory"), _stored("seconds")
    times = {step: [float(row[f"{step} (s)"]) for row in seconds] for step in STEPS}
    needed = {
        step: [float(row[step].split()[0].replace(",", "")) / 1000 for row in memory]
        for step in STEPS
    }
    return [int(row["pairs"]) for row in memory], times, needed


def _by_power(first, last, small, large, pairs):
    return last * (pairs / large) ** (np.log(last / first) / np.log(large / small))


def _by_line(first, last, small, large, pairs):
    return last + (last - first) / (large - small) * (pairs - large)


def _figure(value):
    """Two figures that count."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _look_up(figures):
    """Seconds of the look-up in a training."""
    return json.loads(figures["train"]["output"].splitlines()[-1])["look-up"]


def _ndcg(report):
    """NDCG@1 in what `sentemb evaluate --json` prints."""
    return float(report["mean"]["ndcg@1"] if "mean" in report else report["ndcg@1"])


def draw(path, measured):
    """Time and memory by pairs, from the tables of docs/results.

    Only the sizes that were ``measured`` in this run are joined by solid lines.
    """
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 4), layout="constrained")
    sizes, times, needed = _stored_steps()
    are_old = ~np.isin(sizes, measured)
    for axis, of_steps in zip(axes, (times, needed), strict=True):
        for number, step in enumerate(STEPS):
            values, colour = np.array(of_steps[step]), f"C{number}"
            now = np.where(are_old, np.nan, values)
            axis.loglog(sizes, now, "o-", color=colour, label=step)
            before = np.where(are_old, values, np.nan)
            axis.loglog(sizes, before, "o--", color=colour, markerfacecolor="white")
    axes[0].set(xlabel="distinct pairs", ylabel="seconds")
    axes[1].set(xlabel="distinct pairs", ylabel="GB of memory")
    axes[1].axhline(4, color="#777777", linestyle=":", label="4 GB")
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[1].legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "scale")
    parser.add_argument("--no-page", action="store_true", help="measure only")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if set(sizes) - set(LINES) or len(sizes) < 2:
        parser.error(f"sizes are at least two of {', '.join(map(str, LINES))}")
    found = {
        size: measure(options.folder / str(size), size, lambda text: print(text, flush=True))
        for size in sizes
    }
    if not options.no_page:
        write_tables("scale", tables_of(found), machine())
        fill(DOCS / "howto" / "large.md", {"machines": machines()})
        draw(DOCS / "figures" / "scale.png", sizes)


if __name__ == "__main__":
    main()
