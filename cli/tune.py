"""``sentemb tune``: the weight of BM25 in an index, or the ranker of a model."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from sentemb.cli.common import warnings_to_stderr
from sentemb.cli.held_out import shown
from sentemb.cli.options import Read, json_option, option, threads_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.cli.ranker import describe, fitted, log_and_share
from sentemb.system.terminal import ProgressLine

if TYPE_CHECKING:
    from sentemb.search.tuning import Tuning


@new_command("tune")
@click.argument("index", metavar="INDEX|MODEL", type=click.Path())
@click.argument("dev", metavar="DEV", type=click.Path())
@option(
    "--log",
    metavar="PAIRS",
    type=click.Path(),
    help="Models: the click log that the model was trained on.",
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
    "--metric",
    help="Indexes: what decides: hit@K, mrr@K, recall@K or ndcg@K. [default: mrr@10]",
)
@option("--dry-run", is_flag=True, help="Change nothing in the index or the model folder.")
@json_option(instead_of="a table")
@threads_option()
def command(
    index: str,
    dev: str,
    log: str | None,
    replay: str | None,
    catalogue: str | None,
    metric: str | None,
    dry_run: bool,
    as_json: bool,
    threads: int | None,
) -> None:
    """Choose the weight of BM25 in an index, or fit the ranker of a model.

    For an index, DEV is a file of held-out clicks or a judged set, whose best titles then count as
    clicked. The command first chooses the k1 and b that are best for BM25 alone, and then the
    weight with which cosine + weight × BM25 ranks best. With the clicks of a log it also chooses
    how much they count in BM25, and the weight of the memory of the log. All titles of the index
    are ranked. The index keeps the result for every later search.

    The index needs a BM25: that of --bm25, or of the ranker of its model. Its --log must not
    contain the clicks of DEV.

    For a model, the command fits the ranker that `sentemb train --dev` ends with, or fits it again.
    Give DEV, --log, --replay and --catalogue as the training got them; DEV may be a share, such as
    5%. The folder then has a ranker: a sum of cosine, BM25 and the memory of the log.

    \b
    sentemb index model/ titles.tsv -o index/ --bm25 --log log/pairs.tsv
    sentemb tune index/ log/dev.tsv
    sentemb tune model/ dev/ --log pairs.tsv
    """
    from sentemb.errors import SentembError
    from sentemb.search.index_files import is_index
    from sentemb.storage.folder import is_model

    of_model = {"--log": log, "--replay": replay, "--catalogue": catalogue}
    if is_index(index):
        _refuse(of_model, "an index; it has its log and its titles")
        _tune_index(index, dev, metric or "mrr@10", dry_run, as_json, threads)
        return
    if not is_model(index):
        raise SentembError(
            f"{index}: this folder holds neither an index nor a model; make one with "
            "`sentemb train` or `sentemb index`"
        )
    _refuse({"--metric": metric}, "a model; NDCG@1 and MRR@10 decide")
    if log is None:
        raise click.UsageError("a model needs --log, the click log that it was trained on")
    _fit_ranker(index, dev, log, replay, catalogue, dry_run, as_json, threads)


def _refuse(options: Mapping[str, object], what: str) -> None:
    """Raise a usage error for the first option that was given and does not go with ``what``."""
    name = next((name for name, value in options.items() if value is not None), None)
    if name is not None:
        raise click.UsageError(f"{name} does not go with {what}")


def _fit_ranker(
    model: str,
    dev: str,
    log: str,
    replay: str | None,
    catalogue: str | None,
    dry_run: bool,
    as_json: bool,
    threads: int | None,
) -> None:
    from sentemb.data.lines import write_lines
    from sentemb.ranking.fitting import fit_ranker

    ranker = fitted(
        lambda **asked: fit_ranker(
            model,
            log,
            dev,
            replay=None if replay is None else log_and_share(replay),
            catalogue=catalogue,
            threads=threads,
            **asked,
        )
    )
    if not dry_run:
        ranker.save(model)
    if as_json:
        found = {"recipe": ranker.recipe.as_dict(), "dev": ranker.dev}
        write_lines("-", [json.dumps(found, indent=1)])
    else:
        describe(ranker, None if dry_run else model)


def _tune_index(
    index: str, dev: str, metric: str, dry_run: bool, as_json: bool, threads: int | None
) -> None:
    from sentemb.data.best_graded import read_clicks
    from sentemb.data.lines import write_lines
    from sentemb.search.index import Index
    from sentemb.search.tuning import tune

    clicks = read_clicks(dev)
    with warnings_to_stderr():
        opened = Index.open(index, threads)
    was_calibrated = opened.confidence is not None
    line = ProgressLine()

    def progress(done: int, total: int) -> None:
        if line.is_due:
            line.draw(f"{done} of {total} rankings")

    found = tune(opened, clicks, metric, progress)
    line.close()
    if found.n_outside:
        note(f"{found.n_outside:,} clicked titles are not in the index; they count as missed")
    write_lines("-", [json.dumps(_as_dict(found), indent=1)] if as_json else _table(found))
    if found.weight == 0 and not found.memory_weight:
        note("weight 0 is best: BM25 does not help here")
    elif found.gain.low <= 0:
        note("the gain may be chance: its 95 % interval contains 0")
    if dry_run:
        return
    opened.save(index, force=True)
    note(f"{index}: searches with weight {found.weight:g}, k1 {found.k1:g}, b {found.b:g}")
    if found.click_weight is not None:
        note(f"{index}: the score is {opened.recipe}")
    if was_calibrated and opened.confidence is None:
        note("the calibration was for other scores and is gone; run `sentemb calibrate` again")


def _table(found: "Tuning") -> Iterator[str]:
    from sentemb.tables import aligned

    rows = [["weight", *shown(found.metrics)]]
    for weight, means in zip(found.weights, found.means.tolist(), strict=True):
        chosen = " *" if weight == found.weight and found.cosine_weight else ""
        rows.append([f"{weight:g}{chosen}", *(f"{mean:.3f}" for mean in means)])
    chosen = "" if found.cosine_weight else " *"
    rows.append([f"BM25 alone{chosen}", *(f"{mean:.3f}" for mean in found.lexical.tolist())])
    clicks = "" if found.click_weight is None else f", clicked queries × {found.click_weight:g}"
    yield f"{found.n_queries:,} held-out queries; k1 {found.k1:g}, b {found.b:g}{clicks}"
    yield from aligned(rows)
    instead = f"with weight {found.weight:g} instead of 0"
    if found.memory_means is not None:
        rows = [["memory", *shown(found.metrics)]]
        for weight, means in zip(found.memory_weights, found.memory_means.tolist(), strict=True):
            chosen = " *" if weight == found.memory_weight and found.cosine_weight else ""
            rows.append([f"{weight:g}{chosen}", *(f"{mean:.3f}" for mean in means)])
        yield from aligned(rows)
        instead = "instead of the cosine alone"
    gain, (metric,) = found.gain, shown([found.metric])
    yield f"{metric} {gain.mean:+.3f} ({gain.low:+.3f} to {gain.high:+.3f}) {instead}"


def _as_dict(found: "Tuning") -> dict[str, Any]:
    of_clicks: dict[str, Any] = {}
    if found.click_weight is not None:
        of_clicks = {"cosine_weight": found.cosine_weight, "click_weight": found.click_weight}
    if found.memory_means is not None:
        of_clicks["memory_weight"] = found.memory_weight
        of_clicks["memory_weights"] = [
            {"weight": weight, **dict(zip(found.metrics, means, strict=True))}
            for weight, means in zip(found.memory_weights, found.memory_means.tolist(), strict=True)
        ]
    return {
        "weight": found.weight,
        "k1": found.k1,
        "b": found.b,
        "metric": found.metric,
        "gain": vars(found.gain),
        "queries": found.n_queries,
        "titles_outside": found.n_outside,
        "weights": [
            {"weight": weight, **dict(zip(found.metrics, means, strict=True))}
            for weight, means in zip(found.weights, found.means.tolist(), strict=True)
        ],
        "bm25": dict(zip(found.metrics, found.lexical.tolist(), strict=True)),
        **of_clicks,
    }
