"""``sentemb simulate``: write a simulated click log."""

from dataclasses import asdict
from typing import Any

import click

from sentemb.cli.options import Decorator, Written, option, written_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import summarise
from sentemb.system.terminal import ProgressLine

SECONDS_BEFORE_PROGRESS = 1.5


def _share_option(name: str, default: float, help: str) -> Decorator:
    return option(name, type=click.FloatRange(0, 1), default=default, show_default=True, help=help)


@new_command("simulate")
@written_option(Written(is_folder=True), "Folder of the log.", metavar="FOLDER")
@option("--pairs", default=100_000, show_default=True, help="Query-title pairs in the log.")
@option("--dev-queries", default=1_000, show_default=True, help="Judged queries in dev/.")
@option("--test-queries", default=2_000, show_default=True, help="Judged queries in test/.")
@_share_option("--order-share", 0.15, "Share of queries whose meaning depends on word order.")
@_share_option("--misspelt-share", 0.20, "Share of misspelt queries.")
@_share_option("--navigational-share", 0.20, "Share of queries that look for a website.")
@_share_option(
    "--transactional-share", 0.10, "Share of queries to buy, book or download something."
)
@option(
    "--seed",
    default=0,
    show_default=True,
    help="Random seed; the same seed gives the same files.",
)
def command(output: str, **settings: Any) -> None:
    """Write a simulated click log with judged dev and test sets.

    The folder gets pairs.tsv (the log), log.jsonl (the log with skipped
    titles), titles.tsv (the catalogue), dev/ and test/ (judged sets), truth.jsonl (keywords and
    topic of every text), rates.jsonl (the true click rates), and a README.md that describes them.

    The clicks are like traffic: some queries have hundreds, many have one, some are names of one
    title, some clicks are stray, and more than half of the catalogue has no clicks yet.

    \b
    sentemb simulate -o log/ --pairs 60000
    """
    from sentemb.data.simulation.simulator import simulate

    line = ProgressLine(SECONDS_BEFORE_PROGRESS)
    notes: list[str] = []

    def progress(done: int) -> None:
        if line.is_due and line.on_terminal:
            line.draw(f"{done} of {settings['pairs']} pairs")
        elif line.is_due and not notes:
            notes.append(f"simulating {settings['pairs']} pairs ...")
            line.note(notes[0])

    try:
        made = simulate(output, **settings, progress=progress)
    finally:
        line.close()
    shares = ", ".join(f"{share:.1%} {name}" for name, share in made.shares.items())
    facts = asdict(made)
    del facts["out"]
    summarise(
        output,
        facts,
        f"{output}: {made.pairs} pairs, {made.clicks} clicks, {made.queries} queries, "
        f"{made.titles} titles; {made.catalogue} titles in the catalogue",
        f"queries: {shares}",
        f"dev: {made.dev_queries} queries, {made.dev_titles} titles; "
        f"test: {made.test_queries} queries, {made.test_titles} titles; "
        f"{made.candidates_per_query:.1f} titles per query",
        f"next: sentemb train {made.out}/pairs.tsv --dev {made.out}/dev -o MODEL",
    )
