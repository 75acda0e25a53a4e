"""``sentemb simulate``: write a click log of our own making."""

import time

import click

from sentemb.cli.program import draw, is_terminal, note, say

SECONDS_BEFORE_PROGRESS = 1.5


@click.command("simulate", short_help="Write a simulated click log with judged dev and test sets.")
@click.argument("out", type=click.Path())
@click.option("--pairs", default=100_000, show_default=True, help="Query-title pairs of the log.")
@click.option("--dev-queries", default=1_000, show_default=True, help="Judged queries in OUT/dev.")
@click.option(
    "--test-queries", default=2_000, show_default=True, help="Judged queries in OUT/test."
)
@click.option(
    "--order-share",
    default=0.15,
    show_default=True,
    help="Share of queries whose meaning hangs on word order.",
)
@click.option(
    "--misspelt-share", default=0.20, show_default=True, help="Share of misspelt queries."
)
@click.option(
    "--navigational-share", default=0.20, show_default=True, help="Share of queries for a site."
)
@click.option(
    "--transactional-share",
    default=0.10,
    show_default=True,
    help="Share of queries to buy, book or download.",
)
@click.option("--seed", default=0, show_default=True, help="The same seed gives the same files.")
@click.option("--force", is_flag=True, help="Overwrite an earlier simulation in OUT.")
def command(out, **settings):
    """Write a simulated click log with judged dev and test sets.

    OUT becomes a folder with pairs.tsv (the log), log.jsonl (the log with skipped titles), dev/
    and test/ (judged sets), truth.jsonl (keywords and topic of every text) and a README.md that
    says more about each.
    """
    from sentemb.data.simulation.simulator import simulate

    progress = _Progress(settings["pairs"])
    try:
        made = simulate(out, **settings, progress=progress)
    finally:
        progress.close()
    shares = ", ".join(f"{share:.1%} {name}" for name, share in made.shares.items())
    say(f"{made.out}: {made.pairs} pairs, {made.queries} queries, {made.titles} titles")
    say(f"queries: {shares}")
    say(
        f"dev: {made.dev_queries} queries, {made.dev_titles} titles; "
        f"test: {made.test_queries} queries, {made.test_titles} titles; "
        f"{made.candidates_per_query:.1f} titles a query"
    )
    say(f"next: sentemb train {made.out}/pairs.tsv --dev {made.out}/dev -o MODEL")


class _Progress:
    """One line on stderr that counts up, once the work has taken a moment."""

    def __init__(self, total):
        self.total = total
        self.start = time.monotonic()
        self.shown = False

    def __call__(self, done):
        if time.monotonic() - self.start < SECONDS_BEFORE_PROGRESS:
            return
        if is_terminal():
            draw(f"\r{done} of {self.total} pairs")
        elif not self.shown:
            note(f"simulating {self.total} pairs ...")
        self.shown = True

    def close(self):
        """End the counting line, so that what follows starts on a line of its own."""
        if self.shown and is_terminal():
            note("")
