"""``sentemb calibrate``: how sure an index is of its first title."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from sentemb.cli.common import searches_of, warnings_to_stderr
from sentemb.cli.options import command as new_command
from sentemb.cli.options import (
    json_option,
    option,
    records_option,
    since_option,
    threads_option,
)
from sentemb.cli.program import note
from sentemb.system.terminal import working


@new_command("calibrate")
@click.argument("index", metavar="INDEX", type=click.Path())
@click.argument("dev", metavar="DEV", type=click.Path(), required=False)
@records_option()
@since_option()
@option("--dry-run", is_flag=True, help="Change nothing in the index.")
@json_option(instead_of="a table")
@threads_option()
def command(
    index: str,
    dev: str | None,
    record: tuple[str, ...],
    since: datetime | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Learn how often the first title is a clicked one, given its score.

    DEV is a file of held-out clicks or a judged set, whose best titles then count as clicked.
    Queries with a click are easier than others, so a record says more: with --record in place of
    DEV the confidence is the share of searches, those without a click included, whose first title
    is clicked. Give searches after the index got its clicks.

    The index keeps the result. Then `sentemb search --json` prints a confidence for each query, and
    --min-confidence leaves queries with less unanswered.

    The confidence is a logistic function of the score. It holds for one model and one set of
    weights: `sentemb tune`, if you use it, comes first. Queries that nobody typed before and those
    that the log has clicks for each have a function and a table: the queries in six groups of equal
    size, by score. The Brier score is the mean squared error of the confidence, for queries that
    the fit had not seen. A search shows a confidence only if it is better than a constant.

    \b
    sentemb calibrate index/ log/dev.tsv
    sentemb calibrate index/ --record searches.sqlite --since 2026-11-01
    sentemb search index/ "cheap hotel in paris" --min-confidence 0.3
    """
    from sentemb.data.lines import write_lines
    from sentemb.search.index import Index
    from sentemb.search.index_tuning import calibrate, score_bands

    held_out = _held_out(dev, record, since)
    with warnings_to_stderr():
        opened = Index.open(index)
    with working("ranking"):
        calibration = calibrate(opened, held_out, note)
        bands = score_bands(opened, held_out)
    kinds = {False: calibration, True: calibration.typed}
    if as_json:
        shown = {kind: [band._asdict() for band in of_kind] for kind, of_kind in bands.items()}
        facts = {**calibration.as_dict(), "bands": shown.get(False, [])}
        if True in shown:
            facts["typed"]["bands"] = shown[True]
        write_lines("-", [json.dumps(facts, indent=1)])
    else:
        write_lines("-", _tables(kinds, bands))
    if not dry_run:
        opened.save(index, force=True)
        n_queries = sum(fitted.n_queries for fitted in kinds.values() if fitted is not None)
        note(f"{index}: calibrated with {n_queries:,} held-out queries")


def _held_out(dev: str | None, record: Sequence[str], since: datetime | None) -> Any:
    """The held-out clicks, or the searches of records."""
    from sentemb.data.best_graded import read_clicks

    if (dev is None) != bool(record):
        raise click.UsageError("give either DEV or --record")
    return searches_of(record, since) if dev is None else read_clicks(dev)


def _tables(kinds: Mapping[bool, Any], bands: Mapping[bool, Sequence[Any]]) -> Iterator[str]:
    from sentemb.search.index_tuning import KINDS

    for number, (kind, of_kind) in enumerate(bands.items()):
        if number:
            yield ""
        if len(bands) > 1 or kind:
            yield f"queries {KINDS[kind]}"
        yield from _table(kinds[kind], of_kind)


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
