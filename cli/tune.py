"""``sentemb tune``: fit the ranker of a model or of an index."""

import json
from typing import TYPE_CHECKING

import click

from sentemb.cli.options import (
    Read,
    json_option,
    looks_option,
    option,
    refuse,
    threads_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.cli.ranker import describe, fitted, log_and_share, note_calibration_gone
from sentemb.system.amounts import amount

if TYPE_CHECKING:
    from sentemb.search.ranking.ranker import HybridRanker


@new_command("tune")
@click.argument("source", metavar="INDEX|MODEL", type=click.Path())
@click.argument("dev", metavar="DEV", type=click.Path())
@option(
    "--log",
    metavar="LOG",
    type=click.Path(),
    help="The click log that the model was trained on. [default for an index: the clicks it has]",
)
@option(
    "--replay",
    metavar="LOG[:SHARE]",
    type=Read(),
    help="Models: the older log that the training replayed.",
)
@option(
    "--catalogue",
    metavar="TITLES",
    type=click.Path(),
    help="Models: file of titles, id<TAB>title, to rank for held-out clicks together with those of "
    "the log.",
)
@option(
    "--skip-bad-lines",
    is_flag=True,
    help="Skip and count malformed lines of the log, as the training did.",
)
@looks_option("[default for an index: what it has]")
@option(
    "--embedding",
    metavar="NAME",
    help="Another embedding, whose cosine is one more part: a folder or name for "
    "sentence-transformers, or an ONNX file with its tokenizer.json. [default for an index: what "
    "it has]",
)
@option("--dry-run", is_flag=True, help="Change nothing in the index or the model folder.")
@json_option(instead_of="text")
@threads_option()
def command(
    source: str,
    dev: str,
    log: str | None,
    replay: str | None,
    catalogue: str | None,
    record: tuple[str, ...],
    embedding: str | None,
    skip_bad_lines: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Fit the ranker of a model or of an index.

    The ranker is a sum of cosine, memory of the log, and BM25 over titles and clicked queries. The
    command chooses the weights, the parameters of BM25 and stems or plain words with which the
    right titles of DEV are most probable among the best titles of every part. `sentemb train --dev`
    ends with the same.

    For a model, give DEV, --log, --replay and --catalogue as the training got them; DEV may be a
    share, such as 5%. For an index, DEV is a file of held-out clicks or a judged set, whose best
    titles then count as clicked; all titles of the index are ranked, and every later search uses
    the result.

    \b
    sentemb tune model/ dev/ --log pairs.tsv
    sentemb tune index/ log/dev.tsv --log log/pairs.tsv
    sentemb tune index/ log/dev.tsv --log log/pairs.tsv --record searches.sqlite
    sentemb tune model/ log/dev.tsv --log log/pairs.tsv --embedding transformer/
    """
    from sentemb.data.lines import write_lines
    from sentemb.errors import SentembError
    from sentemb.models.files.model_folder import is_model
    from sentemb.search.index_files import is_index

    if is_index(source):
        refuse({"--replay": replay, "--catalogue": catalogue}, "an index; it has its titles")
        ranker = _of_index(source, dev, log, record, embedding, skip_bad_lines, dry_run)
    elif not is_model(source):
        raise SentembError(
            f"{source}: this folder holds neither an index nor a model; make one with "
            "`sentemb train` or `sentemb index`"
        )
    elif log is None:
        raise click.UsageError("a model needs --log, the click log that it was trained on")
    else:
        ranker = _of_model(source, dev, log, replay, catalogue, record, embedding, skip_bad_lines)
        if not dry_run:
            ranker.save(source)
    if as_json:
        facts = {"recipe": ranker.recipe.as_dict(), "dev": ranker.dev}
        write_lines("-", [json.dumps(facts, indent=1)])
    else:
        describe(ranker, None if dry_run else source)


def _of_model(
    model: str,
    dev: str,
    log: str,
    replay: str | None,
    catalogue: str | None,
    record: tuple[str, ...],
    embedding: str | None,
    skip_bad_lines: bool,
) -> "HybridRanker":
    from sentemb.models.loading import load
    from sentemb.search.ranking.fitting import fit_ranker
    from sentemb.search.ranking.opening import with_two_towers

    opened = with_two_towers(load(model))
    return fitted(
        lambda **asked: fit_ranker(
            opened,
            log,
            dev,
            replay=None if replay is None else log_and_share(replay),
            catalogue=catalogue,
            record=record,
            embedding=embedding,
            seed=opened.training.get("seed") or 0,  # as the training drew the pairs of --replay
            skip_bad_lines=skip_bad_lines,
            **asked,
        )
    )


def _of_index(
    index: str,
    dev: str,
    log: str | None,
    record: tuple[str, ...],
    embedding: str | None,
    skip_bad_lines: bool,
    dry_run: bool,
) -> "HybridRanker":
    from sentemb.data.best_graded import read_clicks
    from sentemb.data.click_log import read_click_log
    from sentemb.search.index import Index
    from sentemb.search.index_tuning import tune

    clicks = read_clicks(dev)
    opened = Index.open(index)
    learned = None
    if log is not None:
        names = dict(zip(opened.ids, opened.titles, strict=True))
        learned = read_click_log(log, skip_bad_lines=skip_bad_lines, names=names)
    titles = {title.strip() for title in opened.titles}
    outside = sum(title not in titles for title in clicks.titles)
    if outside:
        note(f"{amount(outside, 'clicked title')} not in the index count as missed")
    was_calibrated = opened.confidence is not None
    ranker = fitted(
        lambda **asked: tune(opened, clicks, learned, record, embedding=embedding, **asked)
    )
    if not dry_run:
        opened.save(index, force=True)
        if was_calibrated:
            note_calibration_gone()
    return ranker
