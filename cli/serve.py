"""``sentemb serve``: an index as a search page and a JSON API."""

import sys
import threading
import time
import warnings
from typing import TYPE_CHECKING

import click

from sentemb.cli.common import duration
from sentemb.cli.options import command as new_command
from sentemb.cli.options import option, threads_option
from sentemb.cli.program import note
from sentemb.data.search_record import COMMON, SearchRecord
from sentemb.errors import SentembError
from sentemb.system.terminal import ProgressLine

if TYPE_CHECKING:
    from sentemb.data.click_log import ClickLog
    from sentemb.search.index import Index


@new_command("serve")
@click.argument("index", type=click.Path())
@option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; 0.0.0.0 is all addresses of this machine.",
)
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 is any that is free.",
)
@option(
    "--log",
    metavar="LOG",
    type=click.Path(),
    help="Click log with evidence for explanations: what similar queries clicked.",
)
@option(
    "--record",
    metavar="FILE",
    type=click.Path(),
    help="Record searches, the titles shown and clicks in this SQLite file, which is continued if "
    "it exists. `sentemb insights` and `sentemb import` read it.",
)
@option(
    "--anonymous",
    is_flag=True,
    help=f"Record the text of a query only once it has been asked {COMMON} times.",
)
@option(
    "--rate",
    metavar="NUMBER",
    type=float,
    help="Texts per second that one address may ask for; more are refused with 429. [default: no "
    "limit]",
)
@option(
    "--in-memory",
    is_flag=True,
    help="Read the index into memory instead of mapping its files, which another program then may "
    "overwrite in place.",
)
@option(
    "--allow-host",
    metavar="NAME",
    multiple=True,
    help="Also answer to this name, such as that of a proxy. A server on the loopback address "
    "answers only to localhost without it; any other server answers to any name.",
)
@option(
    "--allow-origin",
    metavar="ORIGIN",
    multiple=True,
    help="Let pages of this site call the API, such as https://shop.example.org.",
)
@threads_option()
def command(
    index: str,
    host: str,
    port: int,
    log: str | None,
    record: str | None,
    anonymous: bool,
    rate: float | None,
    in_memory: bool,
    allow_host: tuple[str, ...],
    allow_origin: tuple[str, ...],
) -> None:
    """Search an index from a browser and other programs.

    Prints the address of a search page, which shows why each title was found, and answers programs
    in JSON: /search, /click, /explain, /gates, /encode, /health. docs/serve.md describes them.
    Ctrl-C ends the server once it has answered; SIGHUP makes it read the index and the log again.
    INDEX may be a folder of `sentemb start`, whose index it reads again whenever `sentemb refresh`
    or `sentemb pin` has replaced it.

    \b
    sentemb serve index/ --log pairs.tsv --record searches.sqlite
    curl "http://127.0.0.1:8000/search?q=cheap+hotel&k=3"
    """
    from sentemb.bridges.server.server import Server, hangups, watching
    from sentemb.search.index_description import DESCRIPTION
    from sentemb.search.index_files import index_folder

    has_started, turn = threading.Event(), threading.Lock()

    def read_again() -> None:
        has_started.wait()
        with turn:
            replace_now()

    def replace_now() -> None:
        try:
            replace_index(app, *_read(index, log, in_memory))
        except SentembError as error:
            note(f"still serving the old index: {error}")
        else:
            note(f"{index}: read again")

    context = click.get_current_context()
    context.with_resource(hangups(read_again))  # before all that takes time
    if index_folder(index) != index:  # a shop, whose index `sentemb refresh` replaces
        described = f"{index_folder(index)}/{DESCRIPTION}"
        context.with_resource(watching(described, read_again))

    from pathlib import Path

    from sentemb.bridges.server.app import create_app, record_searches, replace_index
    from sentemb.bridges.server.hosts import LOOPBACK, is_loopback
    from sentemb.bridges.server.request_limits import Limits
    from sentemb.models.face import TextWarning
    from sentemb.search.ranking.recipe import MEMORY

    hosts = {host, *LOOPBACK, *allow_host} if is_loopback(host) or allow_host else None
    # The answers name unknown words themselves.
    warnings.simplefilter("ignore", TextWarning)
    if anonymous and record is None:
        raise click.UsageError("--anonymous needs --record FILE")
    line = _Progress()
    opened, clicks = _read(index, log, in_memory)
    try:
        app = create_app(
            opened,
            clicks,
            Limits(rate=rate),
            name=Path(index).resolve().name or "index",
            allowed_hosts=hosts,
            allowed_origins=allow_origin,
            on_progress=line.show,
        )
    finally:
        line.close()
    shows_queries = clicks is not None or bool(opened.recipe.weight(MEMORY))
    del opened, clicks  # else they would be kept once another index is served
    server = Server(app, host, port)
    if record is not None:
        searches = SearchRecord(record, anonymous)  # a new file, so after all that can be wrong
        context.call_on_close(searches.close)
        record_searches(app, searches)
        rare = f"; queries asked fewer than {COMMON} times without their text" if anonymous else ""
        note(
            f"{record}: records every search with its time, its text and the titles shown, and "
            f"clicks{rare}; no addresses and no cookies"
        )
    if not is_loopback(host):
        too = " and see queries of the log" if shows_queries else ""
        note(
            f"note: anyone who can reach port {server.port} of this machine can search{too}; put a "
            "proxy with passwords and TLS in front if that is too many"
        )

    # Standard output has the address alone, at once, for programs that start a server.
    click.echo(server.address)
    sys.stdout.flush()
    note("Ctrl-C ends the server")
    has_started.set()
    server.run()


def _read(index: str, log: str | None, in_memory: bool) -> "tuple[Index, ClickLog | None]":
    from sentemb.data.click_log import read_click_log
    from sentemb.search.index import Index
    from sentemb.search.index_files import index_folder

    opened = Index.open(index_folder(index), in_memory=in_memory)
    return opened, None if log is None else read_click_log(log)


class _Progress:
    """How far the evidence is."""

    def __init__(self) -> None:
        self._line, self._began = ProgressLine(), time.monotonic()

    def show(self, done: int, total: int) -> None:
        """Draw how many queries of the log are embedded."""
        if self._line.is_due:
            left = duration((time.monotonic() - self._began) * (total - done) / done)
            self._line.draw(f"{done:,} of {total:,} queries of the log, {left} left")

    def close(self) -> None:
        """Remove the line."""
        self._line.close()
