"""``sentemb calibrate``: how sure an index is of its first title."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import click

from sentemb.cli.common import warnings_to_stderr
from sentemb.cli.options import command as new_command
from sentemb.cli.options import json_option, option, threads_option
from sentemb.cli.program import note
from sentemb.system.terminal import working


@new_command("calibrate")
@click.argument("index", metavar="INDEX", type=click.Path())
@click.argument("dev", metavar="DEV", type=click.Path())
@option("--dry-run", is_flag=True, help="Change nothing in the index.")
@json_option(instead_of="a table")
@threads_option()
def command(index: str, dev: str, dry_run: bool, as_json: bool) -> None:
    """Learn how often the first title is a clicked one, given its score.

    DEV is a file of held-out clicks or a judged set, whose best titles then count as clicked. The
    index keeps the result. Then `sentemb search --json` prints a confidence for
    each query, and --min-confidence leaves queries with less unanswered.

    The confidence is a logistic function of the score. It holds for one model and one set of
    weights: `sentemb tune`, if you use it, comes first. The table shows the queries in six groups
    of equal size, by score. The Brier score is the mean squared error of the confidence, for
    queries that the fit had not seen.

    \b
    sentemb calibrate index/ log/dev.tsv
    sentemb search index/ "cheap hotel in paris" --min-confidence 0.3
    """
    from sentemb.data.best_graded import read_clicks
    from sentemb.data.lines import write_lines
    from sentemb.search.index import Index
    from sentemb.search.index_tuning import calibrate, score_bands

    clicks = read_clicks(dev)
    with warnings_to_stderr():
        opened = Index.open(index)
    with working("ranking"):
        calibration = calibrate(opened, clicks)
        bands = score_bands(opened, clicks)
    if as_json:
        facts = {**vars(calibration), "bands": [band._asdict() for band in bands]}
        write_lines("-", [json.dumps(facts, indent=1)])
    else:
        write_lines("-", _table(calibration, bands))
    if calibration.slope == 0:
        note("higher scores are not right more often: every query gets the same confidence")
    if not dry_run:
        opened.save(index, force=True)
        note(f"{index}: calibrated with {calibration.n_queries:,} held-out queries")


def _table(calibration: Any, bands: Sequence[Any]) -> Iterator[str]:
    from sentemb.system.tables import aligned

    rows = [["score", "queries", "confidence", "hit@1"]]
    for band in bands:
        scores = f"{band.low:.3f} to {band.high:.3f}"
        rows.append([scores, f"{band.n_queries:,}", f"{band.confidence:.3f}", f"{band.hit:.3f}"])
    yield from aligned(rows)
    yield (
        f"Brier score {calibration.brier:.3f}; {calibration.base_brier:.3f} with one confidence "
        "for all"
    )
