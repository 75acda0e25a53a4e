"""A small made-up shop: the two tables that a shop exports."""

import csv
import filecmp
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_texts
from sentemb.data.simulation.click_rates import RATES, ClickRates, read_click_rates
from sentemb.data.simulation.simulator import simulate
from sentemb.errors import SentembError
from sentemb.system.paths import AnyPath

_PAIRS = 12_000
_BRANDS = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir")


def write_example_shop(folder: AnyPath, seed: int = 0) -> tuple[Path, Path]:
    """Write ``clicks.csv`` and ``products.csv``, whose clicks and texts are simulated.

    ``folder`` exists; the same seed gives the same files. Returns the paths of the clicks, and of
    the products with made-up prices, stocks and brands. `example_click_rates` has the truth.
    """
    with TemporaryDirectory() as name:
        tables = _written(Path(name), seed)
        targets = [Path(folder) / table.name for table in tables]
        for table, target in zip(tables, targets, strict=True):
            if target.exists() and not filecmp.cmp(table, target, shallow=False):
                raise SentembError(f"{target}: is not of the example; name another folder")
        for table, target in zip(tables, targets, strict=True):
            shutil.copyfile(table, target)
    clicks, products = targets
    return clicks, products


def example_click_rates(seed: int = 0) -> ClickRates:
    """The rates that the clicks of the example shop were drawn from, and further months can be."""
    with TemporaryDirectory() as name:
        return read_click_rates(_simulated(Path(name), seed) / RATES)


def _simulated(folder: Path, seed: int) -> Path:
    simulate(folder / "log", pairs=_PAIRS, dev_queries=10, test_queries=10, seed=seed)
    return folder / "log"


def _written(folder: Path, seed: int) -> tuple[Path, Path]:
    """Both tables."""
    simulated = _simulated(folder, seed)
    log = read_click_log(simulated / "pairs.tsv")
    _, titles = read_texts(simulated / "titles.tsv")
    ids = {title: f"P{number:05}" for number, title in enumerate(titles, 1)}
    clicks, products = folder / "clicks.csv", folder / "products.csv"
    with open(clicks, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("search_term", "sku", "clicks"))
        for query, title, count in zip(log.query_index, log.title_index, log.clicks, strict=True):
            writer.writerow((log.queries[query], ids[log.titles[title]], int(count)))
    generator = np.random.default_rng(seed)
    with open(products, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("sku", "name", "price", "stock", "brand"))
        for title, id in ids.items():
            price, stock = generator.gamma(2.0, 30.0), generator.poisson(3)
            brand = _BRANDS[generator.integers(len(_BRANDS))]
            writer.writerow((id, title, f"{price:.2f}", int(stock), brand))
    return clicks, products
