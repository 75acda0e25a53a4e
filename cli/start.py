"""``sentemb start``: from a shop's tables to a search page."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sentemb.cli.options import Written, option, output_option, threads_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import say
from sentemb.errors import SentembError

if TYPE_CHECKING:
    from sentemb.data.importers.guessing import Guess

# A page holds all that it searches; a server suits more titles better.
_TITLES_OF_A_PAGE = 20_000


@new_command("start")
@click.argument("clicks", type=click.Path(), required=False)
@click.argument("products", type=click.Path(), required=False)
@output_option(
    Written(is_folder=True), "Folder of everything that is made.", required=True, metavar="FOLDER"
)
@option("--example", is_flag=True, help="Write a small made-up shop into FOLDER and begin with it.")
@threads_option()
def command(
    clicks: str | None, products: str | None, output: str, force: bool, example: bool
) -> None:
    """Go from a shop's tables to a search page.

    CLICKS is a table of searches and clicked products, PRODUCTS that of the products; both as for
    `sentemb import`, with named columns. The columns are guessed from their names and shown. Then
    these commands are run, each printed before: import, split, train, evaluate, index, calibrate,
    export. Change one and continue by hand where a guess is wrong.

    \b
    sentemb start clicks.csv products.csv -o shop/
    sentemb start --example -o shop/
    """
    from sentemb.data.importers.guessing import guess_columns
    from sentemb.data.simulation.example_shop import write_example_shop
    from sentemb.system.files import make_folder

    if example == (clicks is not None):
        raise click.UsageError("give either CLICKS or --example")
    folder = Path(output)
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise SentembError(f"{folder}: is not empty; name another folder or use --force")
    replaces = ("--force",) if force else ()
    if example:
        clicks, products = map(str, write_example_shop(make_folder(folder)))
    assert clicks is not None
    log_columns = guess_columns(clicks)
    say(str(log_columns))
    catalogue = None if products is None else guess_columns(products)
    if catalogue is not None:
        say(str(catalogue))
    columns = ["--query-column", log_columns.need("query"), *_clicks_of(log_columns)]
    columns += _titles_from(log_columns, products, catalogue)
    make_folder(folder)
    log, titles = folder / "pairs.tsv", folder / "titles.tsv"
    _run("import", clicks, "-o", log, *columns, "--write-catalogue", titles,
         "--skip-bad-lines", *replaces)  # fmt: skip
    parts, model, index = folder / "log", folder / "model", folder / "index"
    # Single clicks say something where queries are typed again and again.
    by = ("--by", "both") if _has_counts(log) else ()
    _run("split", log, "-o", parts, "--catalogue", titles, *by, *replaces)
    held_out = ("--catalogue", parts / "titles.tsv")
    _run(
        "train", parts / "pairs.tsv", "--dev", parts / "dev.tsv", *held_out, "-o", model, *replaces
    )
    _run("evaluate", model, parts / "test.tsv", *held_out, "--compare-with", "bm25",
         "--compare-with", "bm25-clicks", "--log", parts / "pairs.tsv")  # fmt: skip
    _run("index", model, titles, "-o", index, *replaces)
    try:
        _run("calibrate", index, parts / "dev.tsv")
    except SentembError as error:  # the log is small; a search works without confidence
        say(f"the index is not calibrated: {error}")
    with open(titles, "rb") as lines:
        n_titles = sum(1 for _ in lines)
    if n_titles <= _TITLES_OF_A_PAGE:
        page = folder / "page.html"
        heading = folder.resolve().name
        _run("export", index, "--to", "page", "--heading", heading, "-o", page, *replaces)
        say("")
        say(f"open {page} in a browser; or search in the terminal and on a server:")
    else:
        say("")
        say("search in the terminal, and on a page that a server shows:")
    query = _first_query(parts / "pairs.tsv", parts / "test.tsv")
    say(f"  {shlex.join(['sentemb', 'search', str(index), query])}")
    say(f"  sentemb serve {index} --record {folder / 'searches.sqlite'}")


def _has_counts(log: Path) -> bool:
    """Whether a pair of a log has more than one click."""
    from sentemb.data.click_log import read_click_log

    return bool(read_click_log(log).clicks.max() > 1)


def _clicks_of(log_columns: "Guess") -> list[str]:
    return ["--clicks-column", log_columns.roles["clicks"]] if "clicks" in log_columns.roles else []


def _titles_from(
    log_columns: "Guess", products: str | None, catalogue: "Guess | None"
) -> list[str]:
    """The options of `sentemb import` that say where titles come from."""
    if products is None or catalogue is None:
        options = ["--title-column", log_columns.need("title")]
        return (
            [*options, "--id-column", log_columns.roles["id"]]
            if "id" in log_columns.roles
            else options
        )
    options = ["--id-column", log_columns.need("id"), "--catalogue", products]
    options += ["--catalogue-id-column", catalogue.need("id")]
    options += ["--title-column", catalogue.need("title")]
    fields = [
        name if name == column else f"{name}={column}" for name, column in catalogue.fields.items()
    ]
    return [*options, "--fields", ",".join(fields)] if fields else options


def _run(*arguments: str | Path) -> None:
    """Print a command and run it."""
    from sentemb.cli import main

    words = [str(argument) for argument in arguments]
    say("")
    say(f"$ {shlex.join(['sentemb', *words])}")
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
