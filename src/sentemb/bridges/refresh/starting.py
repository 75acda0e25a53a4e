"""The beginning of a shop: from its tables to an index of its products."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sentemb.bridges.refresh.products_today import read_products
from sentemb.bridges.refresh.shop_tables import guess_tables
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.frames import columns_of, is_frame, listed
from sentemb.data.importers.click_rows import Columns
from sentemb.data.importers.click_table import AS_FOUND, import_clicks
from sentemb.data.importers.columns import Reading
from sentemb.data.record_merge import merge_records
from sentemb.data.splitting import split_file, suited_split
from sentemb.errors import SentembError, naming
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.filters import known_column
from sentemb.search.index import Index
from sentemb.search.index_tuning import calibrate, serve_clicks
from sentemb.search.ranking.fitting import fit_ranker
from sentemb.search.shop_folder import ProductsTable, Shop
from sentemb.search.title_files import read_titles
from sentemb.search.without_clicks import index_without_clicks
from sentemb.system.files import make_folder, names_in, path_of, place_name, status
from sentemb.system.locks import locked
from sentemb.system.paths import AnyPath
from sentemb.training.progress import Progress
from sentemb.training.trainer import train

# A page holds all that it searches; a server suits more titles better.
TITLES_OF_A_PAGE = 20_000
# With fewer, hardly any can be held out.
FEWEST_QUERIES = 50
# What is made in the folder.
_MADE = (
    *("pairs.tsv", "titles.tsv", "log", "model", "index", "page.html", "shop.json"),
    "first-searches.sqlite",
)
_MADE_EXAMPLE = ("clicks.csv", "products.csv")
_NOTHING: Mapping[str, float] = MappingProxyType({})


def start(
    clicks: Any,
    products: Any = None,
    output: AnyPath | None = None,
    *,
    columns: Columns | None = None,
    how: Reading = AS_FOUND,
    search_fields: Mapping[str, float] = _NOTHING,
    record: Sequence[AnyPath] = (),
    max_lost: float = 0.05,
    force: bool = False,
    threads: int | None = None,
    on_step: Callable[[str], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Index:
    """Make an index from a shop's tables, as ``sentemb start`` does.

    The columns are guessed from their names and cells. The clicks are imported and split, a model
    is trained and its ranker fitted, and the products are indexed. The folder then has what
    `refresh` and ``sentemb serve`` need. If something fails or is stopped, what was made in it is
    removed.

    Parameters
    ----------
    clicks : path or table
        Searches and clicked products, as `import_clicks` reads them, or a table of pandas, Polars
        or pyarrow. A table of products alone makes a shop without clicks.
    products : path or table, optional
        The products. Without them, ``clicks`` has the titles.
    output : path
        The folder.
    columns : Columns, optional
        The columns that are known.
    how : Reading
        Delimiter and encoding of the files.
    search_fields : mapping of str to float
        Fields whose words find a product too, each with its weight; see `Index.build`.
    record : sequence of path
        Records of the searches that the clicks are from: clicks then count by how often titles were
        looked at; see `fit_ranker`.
    max_lost : float
        Stop if a larger share of the rows or of the clicks would be dropped.
    force : bool
        Replace what is in the folder.
    threads : int, optional
        By default all processors.
    on_step : function of a str, optional
        Called with the name of each step as it begins.
    on_progress : function of a `Progress`, optional
        Called while the model is trained.
    on_note : function of a str, optional
        Called with each message, such as what every column was taken for.

    Returns
    -------
    Index
        That of the folder.

    Raises
    ------
    SentembError
        If a table cannot be read, a column is not found, too much would be dropped, the log has
        fewer than 50 queries, or the folder is not empty.
    """
    if output is None:
        raise SentembError("name the folder to make, as in output='shop'")
    folder = path_of(output)
    note = on_note or _ignore
    with making(folder, force), _files(clicks, products) as (clicks_file, products_file):
        tables = guess_tables(clicks_file, products_file, how, columns or Columns())
        for line in tables.guesses:
            note(line)
        names = check_searched(search_fields, tables.products)
        searched = dict(zip(names, search_fields.values(), strict=True))
        shop = Shop(folder, tables.products)
        looks = keep_shown(shop, record, tables.clicks is not None)
        job = _Starting(shop, searched, force, threads, on_step or _ignore, on_progress, note)
        if tables.clicks is None:
            make_without_clicks(clicks_file, shop, searched, force, note)
        else:
            job.import_clicks(clicks_file, products_file, tables.clicks, how, max_lost)
            job.learn(place_name(clicks_file), looks)
        job.write_page()
        shop.save()
    return Index.open(shop.index, threads)


@dataclass(frozen=True)
class _Starting:
    """A shop that begins with clicks.

    searched : the weights of fields whose words find a product
    """

    shop: Shop
    searched: Mapping[str, float]
    force: bool
    threads: int | None
    step: Callable[[str], None]
    progress: Callable[[Progress], None] | None
    note: Callable[[str], None]

    def import_clicks(
        self,
        clicks: AnyPath,
        products: AnyPath | None,
        columns: Columns,
        how: Reading,
        max_lost: float,
    ) -> None:
        """Write the log and the titles of the shop."""
        self.step("importing the clicks")
        done = import_clicks(
            [clicks],
            self.shop.log,
            columns,
            catalogue=products,
            write_catalogue=self._titles,
            how=how,
            skip_bad_lines=True,
            max_lost=max_lost,
            force=self.force,
        )
        for line in [done.of_clicks(), *done.notes]:
            self.note(line)

    def learn(self, name: str, looks: Sequence[AnyPath]) -> None:
        """Train a model on the log, which was made from the file ``name``, and index the titles.

        ``looks`` are records that say how often titles were looked at.
        """
        shop, threads, note = self.shop, self.threads, self.note
        parts, model_folder = shop.path / "log", shop.path / "model"
        log = read_click_log(shop.log)
        by, share = split_of(name, log)
        split_file(shop.log, parts, share, share, by, catalogue=self._titles, force=self.force)
        learned, dev, catalogue = (parts / name for name in ("pairs.tsv", "dev.tsv", "titles.tsv"))
        self.step("training")
        model = train(
            learned,
            dev=dev,
            catalogue=catalogue,
            output=model_folder,
            force=self.force,
            threads=threads,
            on_progress=self.progress,
            on_note=note,
        )
        assert isinstance(model, SentenceEncoder)
        self.step("fitting the ranker")
        ranker = fit_ranker(
            model, learned, dev, catalogue=catalogue, record=looks, threads=threads, on_note=note
        )
        ranker.save(model_folder)
        self.step("indexing the products")
        ids, titles, fields = read_titles(self._titles)
        index = Index.build(
            ranker, titles, ids, fields, search_fields=self.searched, threads=threads
        )
        try:
            calibrate(index, read_click_log(dev), note)
        except SentembError as error:  # the log is small; a search works without confidence
            note(f"the index is not calibrated: {error}")
        serve_all_clicks(index, log)
        index.save(shop.index, force=self.force)

    def write_page(self) -> None:
        """Write the search page of a small shop."""
        shop = self.shop
        if len(Index.open(shop.index)) <= TITLES_OF_A_PAGE:
            self.step("writing the page")
            from sentemb.bridges.export.targets import export

            heading = shop.path.resolve().name
            export(str(shop.index), str(shop.page), "page", heading=heading, force=self.force)

    @property
    def _titles(self) -> Path:
        return self.shop.path / "titles.tsv"


def _check_empty(folder: Path, force: bool) -> None:
    """Refuse a folder that has something, unless it is to be replaced."""
    if folder.is_dir() and names_in(folder) and not force:
        raise SentembError(f"{folder}: is not empty; name another folder or use --force")


def check_searched(fields: Mapping[str, float], products: ProductsTable | None) -> list[str]:
    """The names of searched fields as the products have them; one that is not there is named."""
    there = {} if products is None else products.fields
    with naming("search_fields"):
        return [known_column(name, there) for name in fields]


def make_without_clicks(
    products: AnyPath,
    shop: Shop,
    searched: Mapping[str, float],
    force: bool,
    note: Callable[[str], None],
) -> int:
    """Make an index of products that nobody has searched; return their number."""
    read = read_products(shop, products, shop.path / "titles.tsv", note)
    index = index_without_clicks(read.titles, read.ids, read.fields, searched)
    index.save(shop.index, force=force)
    shop.save()
    return len(read.ids)


def keep_shown(shop: Shop, records: Sequence[AnyPath], has_clicks: bool) -> list[Path]:
    """Keep what records of the first clicks showed, for `refresh`; what was kept is to be read."""
    if records and not has_clicks:
        raise SentembError("a shop without clicks reads no record; give it to `sentemb refresh`")
    shop.shown.unlink(missing_ok=True)
    if not records:
        return []
    merge_records(records, shop.shown)
    return [shop.shown]


def split_of(name: str, log: ClickLog) -> tuple[str, float]:
    """How the log of ``name`` is split; a `SentembError` if it has too few queries."""
    n_queries = len(log.queries)
    if n_queries < FEWEST_QUERIES:
        raise SentembError(
            f"{name}: has {n_queries:,} queries with clicks, too few to learn from and to hold "
            f"some out; give at least {FEWEST_QUERIES}"
        )
    return suited_split(log)


def serve_all_clicks(index: Index, log: ClickLog) -> bool:
    """Let an index that is measured read all clicks, those that were held out too.

    Returns whether it reads any.
    """
    if index.recipe.needs_clicks:
        looks = index.ranker.clicks.examinations
        serve_clicks(index, replace(ClickedQueries.of(log), examinations=looks))
    return index.recipe.needs_clicks


@contextlib.contextmanager
def making(folder: Path, force: bool) -> Iterator[None]:
    """Make a shop in ``folder`` as its only writer; remove what was made if it fails or is stopped.

    What was there before stays. A folder that has something is refused, unless it is to be
    replaced.
    """
    _check_empty(folder, force)
    new = [path for path in (folder, *folder.parents) if status(path) is None]
    with locked(make_folder(folder)):
        _check_empty(folder, force)  # another process may have made a shop until now
        made = [folder / name for name in (*_MADE, *_MADE_EXAMPLE)]
        before = {path for path in made if status(path) is not None}
        try:
            yield
        except BaseException:
            for path in made:
                if path not in before and path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                elif path not in before:
                    path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                for path in new:
                    path.rmdir()
            raise


def _ignore(message: str) -> None:
    """Do nothing."""


@contextlib.contextmanager
def _files(clicks: Any, products: Any) -> Iterator[tuple[AnyPath, AnyPath | None]]:
    """The files of the tables; those in memory are written to temporary ones."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, table in (("clicks", clicks), ("products", products)):
            if table is not None and is_frame(table):
                path = Path(folder, f"{name}.jsonl")
                path.write_text("".join(_json_lines(table)), "utf-8")
                table = path
            files.append(table)
        yield files[0], files[1]


def _json_lines(table: Any) -> Iterator[str]:
    names = columns_of(table)
    for row in zip(*(listed(table[name]) for name in names), strict=True):
        values = {str(name): value for name, value in zip(names, row, strict=True)}
        yield f"{json.dumps(values, default=str)}\n"
