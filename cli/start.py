"""``sentemb start``: from a shop's tables to a search page."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from sentemb.cli.options import (
    Written,
    looks_option,
    option,
    output_option,
    search_fields_option,
    threads_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note, say, without_hints
from sentemb.cli.table_options import delimiter_of, fields_kept, table_options
from sentemb.errors import SentembError

if TYPE_CHECKING:
    from sentemb.data.importers.click_rows import Columns
    from sentemb.search.shop_folder import Shop


@new_command("start")
@click.argument("clicks", type=click.Path(), required=False)
@click.argument("products", type=click.Path(), required=False)
@output_option(
    Written(is_folder=True), "Folder of everything that is made.", required=True, metavar="FOLDER"
)
@option("--example", is_flag=True, help="Write a small made-up shop into FOLDER and begin with it.")
@table_options(in_catalogue="Products", guesses=True)
@search_fields_option()
@looks_option()
@threads_option()
def command(
    clicks: str | None,
    products: str | None,
    output: str,
    force: bool,
    example: bool,
    search_fields: dict[str, float] | None,
    record: tuple[str, ...],
    **given: Any,
) -> None:
    """Go from a shop's tables to a search page.

    CLICKS is a table of searches and clicked products, PRODUCTS that of the products; both as for
    `sentemb import`, with named columns. The columns are guessed from their names and cells, and
    shown: the id is the column that both tables share, and all other columns of the products are
    their fields. Then these commands are run, each printed before: import, split, train, evaluate,
    index, calibrate, export. Name a column where a guess is wrong, or change a command and continue
    by hand. If one of them fails or is stopped, what was made is removed.

    A shop without clicks gives its products alone: a table with ids and titles and without queries.
    Titles are then found by their words and letters, and `sentemb refresh` trains a model once
    there are searches enough.

    With --record, clicks count by how often titles were looked at; their number is that of CLICKS.

    FOLDER is an index for `sentemb search`, `serve`, `info`, `explain`, `diff` and `export`.

    \b
    sentemb start clicks.csv products.csv -o shop/
    sentemb start clicks.csv products.csv -o shop/ --query-column phrase --id-column article
    sentemb start products.csv -o shop/
    sentemb start --example -o shop/
    """
    from sentemb.bridges.refresh.shop_tables import guess_tables
    from sentemb.bridges.refresh.starting import check_searched, keep_shown, making
    from sentemb.data.importers.click_rows import Columns
    from sentemb.data.importers.columns import Reading
    from sentemb.data.simulation.example_shop import write_example_shop
    from sentemb.search.shop_folder import Shop

    if example == (clicks is not None):
        raise click.UsageError("give either CLICKS or --example")
    folder = Path(output)
    how = Reading(delimiter=delimiter_of(given["delimiter"]), encoding=given["encoding"])
    with making(folder, force):
        if example:
            clicks, products = map(str, write_example_shop(folder))
        assert clicks is not None
        replaces = ("--force",) if force else ()
        keep = fields_kept(given["fields"], products or clicks, how.encoding)
        roles = ("query", "title", "clicks")
        named = {role: given[f"{role}_column"] for role in roles}
        ids = {"id": given["id_column"], "catalogue_id": given["catalogue_id_column"]}
        tables = guess_tables(clicks, products, how, Columns(**named, **ids, keep=keep))
        for line in tables.guesses:
            say(line)
        weights = search_fields or {}
        searched = dict(
            zip(check_searched(weights, tables.products), weights.values(), strict=True)
        )
        shop = Shop(folder, tables.products)
        looks = keep_shown(shop, record, tables.clicks is not None)
        if tables.clicks is None:
            _make_without_clicks(clicks, shop, searched, replaces)
        else:
            columns = _options(tables.clicks, products, given)
            _make(clicks, folder, columns, searched, looks, replaces)
        shop.save()


def _make_without_clicks(
    products: str, shop: "Shop", searched: dict[str, float], replaces: tuple[str, ...]
) -> None:
    """Make an index of products that nobody has searched, and say what to do next."""
    from sentemb.bridges.refresh.clicks_of_shop import ONE_IN
    from sentemb.bridges.refresh.comparing import FEWEST
    from sentemb.bridges.refresh.starting import make_without_clicks

    n_titles = make_without_clicks(products, shop, searched, bool(replaces), note)
    _make_page(shop.path, n_titles, replaces)
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
    searched: dict[str, float],
    looks: list[Path],
    replaces: tuple[str, ...],
) -> None:
    """Run the commands, and say what to do with what they have made."""
    log, titles = folder / "pairs.tsv", folder / "titles.tsv"
    _run("import", clicks, "-o", log, *columns, "--write-catalogue", titles,
         "--skip-bad-lines", *replaces)  # fmt: skip
    parts, model, index = folder / "log", folder / "model", folder / "index"
    _run("split", log, "-o", parts, "--catalogue", titles, *_held_out(clicks, log), *replaces)
    held_out = ("--catalogue", parts / "titles.tsv")
    records = _repeated("--record", map(str, looks))
    _run("train", parts / "pairs.tsv", "--dev", parts / "dev.tsv", *held_out, *records,
         "-o", model, *replaces)  # fmt: skip
    _run("evaluate", model, parts / "test.tsv", *held_out, "--compare-with", "bm25",
         "--compare-with", "bm25-clicks", "--log", parts / "pairs.tsv")  # fmt: skip
    weights = ",".join(f"{name}:{weight:g}" for name, weight in searched.items())
    options = ["--search-fields", weights] if weights else []
    _run("index", model, titles, "-o", index, *options, *replaces)
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
    from sentemb.bridges.refresh.starting import serve_all_clicks
    from sentemb.data.click_log import read_click_log
    from sentemb.search.index import Index

    opened = Index.open(index)
    if serve_all_clicks(opened, read_click_log(log)):
        opened.save(index, force=True)
        say(f"{index}: from now on it serves all clicks of {log}, those that were held out too")


def _make_page(folder: Path, n_titles: int, replaces: tuple[str, ...]) -> None:
    """Write the search page of a small shop, and say where to search."""
    from sentemb.bridges.refresh.starting import TITLES_OF_A_PAGE

    if n_titles <= TITLES_OF_A_PAGE:
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


def _options(columns: "Columns", products: str | None, given: dict[str, Any]) -> list[str]:
    """The options of `sentemb import` for the columns, and those that were given."""
    assert columns.query is not None and columns.title is not None
    options = ["--query-column", columns.query]
    options += _repeated("--clicks-column", columns.counts)
    if products is None:
        options += ["--title-column", columns.title, *_repeated("--id-column", columns.ids)]
    else:
        options += [*_repeated("--id-column", columns.ids), "--catalogue", products]
        options += _repeated("--catalogue-id-column", columns.catalogue_ids)
        options += ["--title-column", columns.title, *_fields(columns.keep)]
    source = click.get_current_context().get_parameter_source
    for name in ("delimiter", "encoding", "max_lost"):
        if source(name) is ParameterSource.COMMANDLINE:
            options += [f"--{name.replace('_', '-')}", str(given[name])]
    return options


def _fields(fields: Mapping[str, str]) -> list[str]:
    """The options that keep fields; a column with a comma in its name has one of its own."""
    named = [name if name == column else f"{name}={column}" for name, column in fields.items()]
    plain = ",".join(text for text in named if "," not in text)
    texts = [plain, *(text for text in named if "," in text)]
    return _repeated("--fields", [text for text in texts if text])


def _repeated(name: str, values: Iterable[str]) -> list[str]:
    """An option once for each value."""
    return [word for value in values for word in (name, value)]


def _held_out(clicks: str, log: Path) -> list[str]:
    """The options of `sentemb split` that suit the log."""
    from sentemb.bridges.refresh.starting import split_of
    from sentemb.data.click_log import read_click_log
    from sentemb.data.split_description import QUERY

    by, share = split_of(clicks, read_click_log(log))
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
