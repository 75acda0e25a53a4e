"""The numbers that are printed in Arora, Liang and Ma (ICLR 2017), and what follows from them.

``sif_printed.csv`` has a line for each: the table, the task, the system and the number as printed.
Table 5 has the averages of GloVe and PSL that Tables 1 and 6 print again; of Table 6 only the
columns that are not in Table 5 are kept.
"""

import csv
from pathlib import Path

FILE = Path(__file__).with_suffix(".csv")
YEARS = ("2012", "2013", "2014", "2015")
MEAN = "mean"
# The system of the paper that is measured here under each of our names.
SYSTEMS = {
    "avg": "avg-GloVe",
    "tf-idf": "tfidf-GloVe",
    "W": "GloVe+W",
    "R": "GloVe+R",
    "WR": "GloVe+WR",
}
_ROUNDING = 0.05


def printed(*tables):
    """{(task, system): number} of some tables."""
    with open(FILE, encoding="utf-8", newline="") as lines:
        return {
            (line["task"], line["system"]): float(line["value"])
            for line in csv.DictReader(lines)
            if int(line["table"]) in tables
        }


def tasks_of(numbers, year):
    """The tasks of a year, without its mean, in the order of the table."""
    tasks = dict.fromkeys(task for task, _ in numbers)
    return [task for task in tasks if task.startswith(f"{year} ") and task != f"{year} {MEAN}"]


def mean_over(numbers, tasks, system):
    """The mean of a system over some tasks."""
    return sum(numbers[task, system] for task in tasks) / len(tasks)


def wrong_means(numbers, tolerance=2 * _ROUNDING):
    """The printed means of years that differ from the mean of the printed rows.

    Parameters
    ----------
    numbers : dict
        From `printed`.
    tolerance : float
        Numbers are printed to 0.1, so that both the mean and the rows are known to 0.05.

    Returns
    -------
    list of (year, system, printed, recomputed)
    """
    found = []
    for year in YEARS:
        for system in dict.fromkeys(system for _, system in numbers):
            own = mean_over(numbers, tasks_of(numbers, year), system)
            told = numbers[f"{year} {MEAN}", system]
            if abs(own - told) > tolerance + 1e-9:
                found.append((year, system, told, own))
    return found


def gains(numbers, system, over):
    """How much a system gains on each task, means left out."""
    tasks = [task for task, some in numbers if some == system and not task.endswith(MEAN)]
    return {task: numbers[task, system] - numbers[task, over] for task in tasks}


def printed_gains():
    """The gains of GloVe+WR over the plain average in percent, as the rows of Table 1 give them."""
    numbers = printed(5)
    tasks = [*(f"{year} {MEAN}" for year in YEARS), "sick test", "twitter test"]
    percents = [
        100 * (numbers[task, "GloVe+WR"] / numbers[task, "avg-GloVe"] - 1) for task in tasks
    ]
    inside = sum(10 <= percent <= 30 for percent in percents)
    listed = ", ".join(f"{percent:.1f}" for percent in percents)
    return f"{listed} %: {inside} of {len(tasks)} within"
