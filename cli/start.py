"""``sentemb start``: from a shop's tables to a search page."""

import contextlib
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sentemb.cli.options import (
    Written,
    option,
    output_option,
    search_fields_option,
    threads_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note, say, without_hints
from sentemb.cli.table_options import delimiter_of, field_columns, table_options
from sentemb.errors import SentembError

if TYPE_CHECKING:
    from sentemb.data.importers.columns import Reading
    from sentemb.search.shop_folder import ProductsTable, Shop

# A page holds all that it searches; a server suits more titles better.
_TITLES_OF_A_PAGE = 20_000
# With fewer, hardly any can be held out.
_FEWEST_QUERIES = 50
# What is made in the folder.
_MADE = ("pairs.tsv", "titles.tsv", "log", "model", "index", "page.html", "shop.json")
_MADE_EXAMPLE = ("clicks.csv", "products.csv")


@new_command("start")
@click.argument("clicks", type=click.Path(), required=False)
@click.argument("products", type=click.Path(), required=False)
@output_option(
    Written(is_folder=True), "Folder of everything that is made.", required=True, metavar="FOLDER"
)
@option("--example", is_flag=True, help="Write a small made-up shop into FOLDER and begin with it.")
@table_options(in_catalogue="Products", guesses=True)
@search_fields_option()
@threads_option()
def command(
    clicks: str | None,
    products: str | None,
    output: str,
    force: bool,
    example: bool,
    search_fields: dict[str, float] | None,
    **given: Any,
) -> None:
    """Go from a shop's tables to a search page.

    CLICKS is a table of searches and clicked products, PRODUCTS that of the products; both as for
    `sentemb import`, with named columns. The columns are guessed from their names and cells, and
    shown: the id is the column that both tables share, and all other columns of the products are
    their fields. Then these commands are run, each printed before: import, split, train, evaluate,
    index, calibrate, export. Name a column where a guess is wrong, or change a command and continue
    by hand. If one of them fails, what was made is removed.

    A shop without clicks gives its products alone: a table with ids and titles and without queries.
    Titles are then found by their words and letters, and `sentemb refresh` trains a model once
    there are searches enough.

    FOLDER is an index for `sentemb search`, `serve`, `info` and `explain`.

    \b
    sentemb start clicks.csv products.csv -o shop/
    sentemb start clicks.csv products.csv -o shop/ --query-column phrase --id-column article
    sentemb start products.csv -o shop/
    sentemb start --example -o shop/
    """
    from sentemb.data.importers.columns import Reading
    from sentemb.data.simulation.example_shop import write_example_shop
    from sentemb.search.shop_folder import Shop
    from sentemb.system.files import make_folder

    if example == (clicks is not None):
        raise click.UsageError("give either CLICKS or --example")
    folder = Path(output)
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise SentembError(f"{folder}: is not empty; name another folder or use --force")
    how = Reading(delimiter=delimiter_of(given["delimiter"]), encoding=given["encoding"])
    with _removed_on_failure(folder):
        if example:
            clicks, products = map(str, write_example_shop(make_folder(folder)))
        assert clicks is not None
        replaces = ("--force",) if force else ()
        table = None if products is not None else _products_alone(clicks, how, given)
        if table is not None:
            shop = Shop(make_folder(folder), table)
            _make_without_clicks(clicks, shop, search_fields or {}, replaces)
            return
        columns, table = _columns(clicks, products, how, given)
        searched = _searched(search_fields or {}, {} if table is None else table.fields)
        make_folder(folder)
        _make(clicks, folder, columns, searched, replaces)
        Shop(folder, table).save()


def _products_alone(table: str, how: "Reading", given: dict[str, Any]) -> "ProductsTable | None":
    """How a table is read that has products and no searches; None for any other table."""
    from sentemb.data.importers.guessing import guess_columns
    from sentemb.search.shop_folder import ProductsTable

    ids = given["id_column"] or given["catalogue_id_column"]
    if given["query_column"] or "query" in guess_columns(table, how).roles:
        return None
    ours = {"title": given["title_column"]} if given["title_column"] else {}
    guess = guess_columns(table, how, ours | ({"id": ids[0]} if ids else {}), of_products=True)
    if not {"id", "title"} <= guess.roles.keys():
        return None
    guess = guess.with_id(ids or (guess.roles["id"],))
    say(str(guess))
    fields = guess.fields
    if given["fields"]:
        fields = field_columns(given["fields"], guess.names)
    return ProductsTable(
        tuple(ids or (guess.roles["id"],)), guess.need("title"), dict(fields), given["encoding"]
    )


def _make_without_clicks(
    products: str, shop: "Shop", searched: dict[str, float], replaces: tuple[str, ...]
) -> None:
    """Make an index of products that nobody has searched, and say what to do next."""
    from sentemb.bridges.refresh.clicks_of_shop import ONE_IN
    from sentemb.bridges.refresh.comparing import FEWEST
    from sentemb.bridges.refresh.products_today import read_products
    from sentemb.search.without_clicks import index_without_clicks

    read = read_products(shop, products, shop.path / "titles.tsv", note)
    index = index_without_clicks(read.titles, read.ids, read.fields, searched)
    index.save(shop.index, force=bool(replaces))
    shop.save()
    _make_page(shop.path, len(read.ids), replaces)
    say(f"  sentemb serve {shop.path} --record {shop.path / 'searches.sqlite'}")
    say(
        f"nothing is learned yet: titles are found by their words and letters. Run `sentemb "
        f"refresh {shop.path}` every month; from {ONE_IN * FEWEST:,} recorded searches on it "
        "trains a model, which is searched once it is not behind"
    )


def _make(
    clicks: str,
    folder: Path,
    columns: list[str],
    searched: list[str],
    replaces: tuple[str, ...],
) -> None:
    """Run the commands, and say what to do with what they have made."""
    log, titles = folder / "pairs.tsv", folder / "titles.tsv"
    _run("import", clicks, "-o", log, *columns, "--write-catalogue", titles,
         "--skip-bad-lines", *replaces)  # fmt: skip
    parts, model, index = folder / "log", folder / "model", folder / "index"
    _run("split", log, "-o", parts, "--catalogue", titles, *_held_out(clicks, log), *replaces)
    held_out = ("--catalogue", parts / "titles.tsv")
    _run(
        "train", parts / "pairs.tsv", "--dev", parts / "dev.tsv", *held_out, "-o", model, *replaces
    )
    _run("evaluate", model, parts / "test.tsv", *held_out, "--compare-with", "bm25",
         "--compare-with", "bm25-clicks", "--log", parts / "pairs.tsv")  # fmt: skip
    _run("index", model, titles, "-o", index, *searched, *replaces)
    try:
        _run("calibrate", index, parts / "dev.tsv")
    except SentembError as error:  # the log is small; a search works without confidence
        say(f"the index is not calibrated: {error}")
    _serve_all(index, log)
    with open(titles, "rb") as lines:
        n_titles = sum(1 for _ in lines)
    _make_page(folder, n_titles, replaces)
    query = _first_query(parts / "pairs.tsv", parts / "test.tsv")
    say(f"  {shlex.join(['sentemb', 'search', str(folder), query])}")
    say(f"  sentemb serve {folder} --record {folder / 'searches.sqlite'}")


def _serve_all(index: Path, log: Path) -> None:
    """Let an index that is measured read all clicks, those that were held out too."""
    from sentemb.data.click_log import read_click_log
    from sentemb.retrieval.clicked_queries import ClickedQueries
    from sentemb.search.index import Index
    from sentemb.search.index_tuning import serve_clicks

    opened = Index.open(index)
    if opened.recipe.needs_clicks:
        serve_clicks(opened, ClickedQueries.of(read_click_log(log)))
        opened.save(index, force=True)
        say(f"{index}: from now on it serves all clicks of {log}, those that were held out too")


def _make_page(folder: Path, n_titles: int, replaces: tuple[str, ...]) -> None:
    """Write the search page of a small shop, and say where to search."""
    if n_titles <= _TITLES_OF_A_PAGE:
        page = folder / "page.html"
        heading = folder.resolve().name
        _run(
            "export", folder / "index", "--to", "page", "--heading", heading, "-o", page, *replaces
        )
        say("")
        say(f"open {page} in a browser; or search in the terminal and on a server:")
    else:
        say("")
        say("search in the terminal, and on a page that a server shows:")


@contextlib.contextmanager
def _removed_on_failure(folder: Path) -> Iterator[None]:
    """Remove what the body has made in ``folder`` if it fails; what was there before stays."""
    from sentemb.system.files import status

    made = [folder / name for name in (*_MADE, *_MADE_EXAMPLE)]
    before = {path for path in (folder, *made) if status(path) is not None}
    try:
        yield
    except Exception:
        for path in made:
            if path not in before and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path not in before:
                path.unlink(missing_ok=True)
        if folder not in before:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _columns(
    clicks: str, products: str | None, how: "Reading", given: dict[str, Any]
) -> "tuple[list[str], ProductsTable | None]":
    """The options of `sentemb import` for the columns, given or guessed; and those of products."""
    from sentemb.data.column_names import QUERY
    from sentemb.data.importers.guessing import guess_columns, shared_id
    from sentemb.search.shop_folder import ProductsTable

    roles = {role: given[f"{role}_column"] for role in ("query", "title", "clicks")}
    ids, catalogue_ids = given["id_column"], given["catalogue_id_column"] or given["id_column"]
    ours = {role: column for role, column in roles.items() if column is not None}
    if products is not None:
        ours.pop("title", None)
    log = guess_columns(clicks, how, ours | ({"id": ids[0]} if ids else {}))
    joining: list[str] = []
    table = None
    if products is None:
        log.need("query")  # named before a title that is missing
        joining += ["--title-column", log.need("title")]
        ids = ids or tuple(log.roles[role] for role in ("id",) if role in log.roles)
        joining += _repeated("--id-column", ids)
        say(str(log))
    else:
        theirs = {"title": roles["title"]} if roles["title"] else {}
        theirs |= {"id": catalogue_ids[0]} if catalogue_ids else {}
        catalogue = guess_columns(products, how, theirs, of_products=True)
        if "query" not in log.roles and (query := QUERY.column(catalogue.names)):
            raise SentembError(
                f"{products}: has the queries ({query}), and {clicks} has none; give the clicks "
                "first and then the products"
            )
        if not ids:
            shared = shared_id(log, catalogue, products, how)
            ids, catalogue_ids = shared.clicks, shared.products
        log = log.with_id(ids).with_only_text("query", ids)
        catalogue = catalogue.with_id(catalogue_ids).with_only_text("title", catalogue_ids)
        fields = catalogue.fields
        if given["fields"]:
            fields = field_columns(given["fields"], catalogue.names)
        joining += [*_repeated("--id-column", ids), "--catalogue", products]
        joining += _repeated("--catalogue-id-column", catalogue_ids)
        joining += ["--title-column", catalogue.need("title"), *_fields(fields)]
        table = ProductsTable(
            tuple(catalogue_ids), catalogue.need("title"), dict(fields), given["encoding"]
        )
        say(str(log))
        say(str(catalogue))
    options = ["--query-column", log.need("query")]
    if "clicks" in log.roles:
        options += ["--clicks-column", log.roles["clicks"]]
    options += joining
    if log.graded is not None:
        say(f"{log.name}: {log.graded} has judgments; leave out the rows without a match first")
    source = click.get_current_context().get_parameter_source
    for name in ("delimiter", "encoding", "max_lost"):
        if source(name) is ParameterSource.COMMANDLINE:
            options += [f"--{name.replace('_', '-')}", str(given[name])]
    return options, table


def _fields(fields: dict[str, str]) -> list[str]:
    """The options that keep fields; a column with a comma in its name has one of its own."""
    named = [name if name == column else f"{name}={column}" for name, column in fields.items()]
    plain = ",".join(text for text in named if "," not in text)
    texts = [plain, *(text for text in named if "," in text)]
    return _repeated("--fields", [text for text in texts if text])


def _searched(weights: Mapping[str, float], fields: Mapping[str, str]) -> list[str]:
    """The option of `sentemb index`; a field that is not there is named before training."""
    from sentemb.errors import naming
    from sentemb.search.filters import known_column

    with naming("search_fields"):
        texts = [f"{known_column(name, fields)}:{weight:g}" for name, weight in weights.items()]
    return ["--search-fields", ",".join(texts)] if texts else []


def _repeated(name: str, values: Iterable[str]) -> list[str]:
    """An option once for each value."""
    return [word for value in values for word in (name, value)]


def _held_out(clicks: str, log: Path) -> list[str]:
    """The options of `sentemb split`: single clicks too if there are counts, more of a small log.

    Raises `SentembError` if the log has too few queries to hold some out.
    """
    from sentemb.data.click_log import read_click_log
    from sentemb.data.split_description import QUERY
    from sentemb.data.splitting import suited_split

    read = read_click_log(log)
    n_queries = len(read.queries)
    if n_queries < _FEWEST_QUERIES:
        raise SentembError(
            f"{clicks}: has {n_queries:,} queries with clicks, too few to learn from and to hold "
            f"some out; give at least {_FEWEST_QUERIES}"
        )
    by, share = suited_split(read)
    options = [] if by == QUERY else ["--by", by]
    if share > 0.05:
        options += ["--dev", f"{share:.0%}", "--test", f"{share:.0%}"]
    return options


def _run(*arguments: str | Path) -> None:
    """Print a command and run it."""
    from sentemb.cli import main

    words = [str(argument) for argument in arguments]
    say("")
    say(f"$ {shlex.join(['sentemb', *words])}")
    with without_hints():
        main.main(words, standalone_mode=False)


def _first_query(learned: Path, held_out: Path) -> str:
    """The most clicked held-out query of known words; of any words if there is none."""
    import numpy as np

    from sentemb.data.click_log import read_click_log
    from sentemb.text.words import split_words

    known = {word for query in read_click_log(learned).queries for word in split_words(query)}
    test = read_click_log(held_out)
    clicks = np.bincount(test.query_index, test.clicks)
    queries = [test.queries[q] for q in np.argsort(-clicks, kind="stable")]
    return next((query for query in queries if known.issuperset(split_words(query))), queries[0])
