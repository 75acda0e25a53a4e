"""``sentemb refresh``: a shop's month in one command."""

import json
from typing import TYPE_CHECKING

import click

from sentemb.cli.common import warnings_to_stderr
from sentemb.cli.options import command as new_command
from sentemb.cli.options import json_option, option, records_option, threads_option
from sentemb.cli.program import note, say
from sentemb.system.terminal import ProgressLine

if TYPE_CHECKING:
    from sentemb.training.progress import Progress


@new_command("refresh")
@click.argument("shop", type=click.Path())
@records_option("[default: searches.sqlite in SHOP]")
@option(
    "--catalogue",
    metavar="TITLES",
    type=click.Path(),
    help="The products of today: a table with the columns of the one that SHOP was made from, or "
    "lines id<TAB>title below a line with these names. [default: the titles of the index]",
)
@option("--dry-run", is_flag=True, help="Do everything but let the new index be searched.")
@json_option(instead_of="text")
@threads_option()
def command(
    shop: str, record: tuple[str, ...], catalogue: str | None, dry_run: bool, as_json: bool
) -> None:
    """Bring a shop up to date with its recorded searches and its catalogue.

    SHOP is a folder of `sentemb start`. Its index gets the titles of the catalogue and all clicks,
    those of the log that it was made from and those of every record it was ever given. A search
    that is in several records counts once, and products that were renamed keep their clicks. A new
    model is trained and its ranker fitted. Of the searches since the last training one in five are
    kept from it: they say whether the new one puts titles first that users click more. With
    fewer than 200 of them, or if it is behind by more than the standard error, model and weights
    stay; titles and clicks are new in any case.

    The index is replaced in one step, which a running `sentemb serve SHOP` takes over without
    refusing a search. The one before stays in SHOP/index-before. If the command is stopped, the
    next one continues; with --dry-run the new index is in SHOP/refreshing/index until then. Last
    come the ten queries that lose most searches since the last refresh; `sentemb
    pin` puts a title first for one.

    \b
    sentemb refresh shop/ --record searches.sqlite
    sentemb refresh shop/ --record searches.sqlite --catalogue products.csv --dry-run
    """
    from sentemb.bridges.refresh.refreshing import refresh
    from sentemb.data.lines import write_lines

    line = ProgressLine()

    def show(progress: "Progress") -> None:
        if line.is_due:
            line.draw(f"training: epoch {progress.epoch} of {progress.epochs}")

    try:
        with warnings_to_stderr():
            done = refresh(
                shop,
                record,
                catalogue,
                dry_run=dry_run,
                on_step=lambda name: line.note(name) if as_json else say(name),
                on_progress=show,
                on_note=line.note,
            )
    finally:
        line.close()
    if as_json:
        write_lines("-", [json.dumps(done.as_dict(), indent=1)])
    else:
        say("")
        write_lines("-", [str(done)])
    note(f"{shop}: {'unchanged' if dry_run else 'is up to date'}")
