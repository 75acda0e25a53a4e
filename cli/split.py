"""``sentemb split``: a click log into clicks to train on and held-out clicks."""

import click

from sentemb.cli.options import Written, option, written_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note, summarise
from sentemb.system.amounts import amount
from sentemb.system.terminal import working


@new_command("split")
@click.argument("log", type=click.Path(allow_dash=True))
@written_option(Written(is_folder=True), "Folder of the parts.", metavar="FOLDER")
@option("--dev", metavar="SHARE", default="5%", show_default=True, help="Share of dev; 0 for none.")
@option(
    "--test", metavar="SHARE", default="5%", show_default=True, help="Share of test; 0 for none."
)
@option(
    "--by",
    type=click.Choice(["query", "title", "click", "both", "time"]),
    default="query",
    show_default=True,
    help="Hold out queries, titles (never clicked in training), single clicks, both queries and "
    "single clicks of the others, or the last lines.",
)
@option(
    "--catalogue",
    metavar="TITLES",
    type=click.Path(),
    help="File of lines id<TAB>title: titles.tsv has these titles first, then those of the log "
    "that are missing.",
)
@option(
    "--seed",
    default=0,
    show_default=True,
    help="Another seed holds out other queries, titles or clicks.",
)
@option(
    "--skip-bad-lines",
    is_flag=True,
    help="Skip and count malformed lines of the log instead of stopping at the first.",
)
def command(
    log: str,
    output: str,
    dev: str,
    test: str,
    by: str,
    catalogue: str | None,
    seed: int,
    skip_bad_lines: bool,
    force: bool,
) -> None:
    """Split a click log into training, dev and test.

    LOG is a click log as for `sentemb train`; - is standard input. The folder gets pairs.tsv (to
    train on), dev.tsv, test.tsv (held-out clicks) and titles.tsv (all titles, with ids). If the log
    has skipped titles, pairs.jsonl is written instead of pairs.tsv. A share is 5% or 0.05.

    By default a hash of the query's words decides. All lines of a query are on one side, and the
    sides stay the same when the log grows. Queries with the same words are one query, whatever
    their case, accents, punctuation and order. split.json says how the log was split. Memory does
    not grow with LOG; a catalogue takes 0.3 GB for a million titles of 90 letters.

    Most clicks of a month are on queries that people typed before. --by click measures those: each
    click is drawn on its own, so a pair with many clicks has some in every part. --by both holds
    out queries as well. Both need a log with counts, or with a line for each click.

    \b
    sentemb split pairs.tsv -o log/
    sentemb split pairs.tsv -o log/ --by both
    sentemb train log/pairs.tsv --dev log/dev.tsv -o model/
    sentemb evaluate model/ log/test.tsv
    """
    from sentemb.data.splitting import split_file

    with working("splitting"):
        counts = split_file(
            log,
            output,
            dev,
            test,
            by,
            seed,
            catalogue=catalogue,
            skip_bad_lines=skip_bad_lines,
            force=force,
        )
    if counts.bad_lines:
        note(f"skipped {amount(counts.bad_lines, 'bad line')} of the log")
    if counts.has_repeats is False:
        note(
            "no pair of the log has more than one click, so whole pairs are held out, and they say "
            "little of what people search for again; use --by query"
        )
    what = "title" if by == "title" else "query"
    unit, sizes = ("click", counts.clicks) if by in ("click", "both") else ("line", counts.lines)
    parts = [f"{amount(sizes[0], unit)} to train"]
    for name, size, held_out in zip(("dev", "test"), sizes[1:], counts.held_out, strict=True):
        if size:
            parts.append(f"{size:,} {name} ({amount(held_out, what)})")
    added = "" if catalogue is None else f" ({counts.added:,} of them only in the log)"
    sides = {
        "query": "no query is on two sides",
        "title": "no held-out title is clicked in training",
        "click": "a pair may be on several sides, with a part of its clicks on each",
        "both": "no held-out query is on two sides; a pair of another may be, with a part of its "
        "clicks on each",
        "time": "a query may be on several sides",
    }
    summarise(
        output,
        {
            "lines": dict(zip(("train", "dev", "test"), counts.lines, strict=True)),
            "clicks": dict(zip(("train", "dev", "test"), counts.clicks, strict=True)),
            "held_out_titles" if by == "title" else "held_out_queries": dict(
                zip(("dev", "test"), counts.held_out, strict=True)
            ),
            "titles": counts.titles,
            "bad_lines": counts.bad_lines,
        },
        f"{output}: {', '.join(parts)}; {amount(counts.titles, 'title')}{added}; {sides[by]}",
    )
