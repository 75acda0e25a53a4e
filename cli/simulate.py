"""``sentemb simulate``: write a simulated click log."""

from typing import Any

import click

from sentemb.cli.options import Written, option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import say
from sentemb.system.terminal import ProgressLine

SECONDS_BEFORE_PROGRESS = 1.5


@new_command("simulate")
@click.argument("out", type=Written(is_folder=True))
@option("--pairs", default=100_000, show_default=True, help="Query-title pairs in the log.")
@option("--dev-queries", default=1_000, show_default=True, help="Judged queries in OUT/dev.")
@option("--test-queries", default=2_000, show_default=True, help="Judged queries in OUT/test.")
@option(
    "--order-share",
    default=0.15,
    show_default=True,
    help="Share of queries whose meaning depends on word order.",
)
@option("--misspelt-share", default=0.20, show_default=True, help="Share of misspelt queries.")
@option(
    "--navigational-share",
    default=0.20,
    show_default=True,
    help="Share of queries that look for a website.",
)
@option(
    "--transactional-share",
    default=0.10,
    show_default=True,
    help="Share of queries to buy, book or download something.",
)
@option(
    "--seed",
    default=0,
    show_default=True,
    help="Random seed; the same seed gives the same files.",
)
@option("--force", is_flag=True, help="Overwrite an earlier simulation in OUT.")
def command(out: str, **settings: Any) -> None:
    """Write a simulated click log with judged dev and test sets.

    Writes these files to the folder OUT: pairs.tsv (the log), log.jsonl (the log with skipped
    titles), dev/ and test/ (judged sets), truth.jsonl (keywords and topic of every text), and a
    README.md that describes them.

    \b
    sentemb simulate log/ --pairs 60000
    """
    from sentemb.data.simulation.simulator import simulate

    line = ProgressLine(SECONDS_BEFORE_PROGRESS)
    said: list[str] = []

    def progress(done: int) -> None:
        if line.is_due and line.on_terminal:
            line.draw(f"{done} of {settings['pairs']} pairs")
        elif line.is_due and not said:
            said.append(f"simulating {settings['pairs']} pairs ...")
            line.note(said[0])

    try:
        made = simulate(out, **settings, progress=progress)
    finally:
        line.close()
    shares = ", ".join(f"{share:.1%} {name}" for name, share in made.shares.items())
    say(f"{made.out}: {made.pairs} pairs, {made.queries} queries, {made.titles} titles")
    say(f"queries: {shares}")
    say(
        f"dev: {made.dev_queries} queries, {made.dev_titles} titles; "
        f"test: {made.test_queries} queries, {made.test_titles} titles; "
        f"{made.candidates_per_query:.1f} titles per query"
    )
    say(f"next: sentemb train {made.out}/pairs.tsv --dev {made.out}/dev -o MODEL")
