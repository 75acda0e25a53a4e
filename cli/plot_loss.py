"""``sentemb plot-loss``: the training loss of runs by epoch."""

import click

from sentemb.cli.common import warnings_to_stderr
from sentemb.cli.options import Names, Text, figure_option, option, summary_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note, summarise

_METRICS = ("ndcg@1", "ndcg@3", "ndcg@10", "mrr@10", "hit@1", "recall@10", "accuracy")


@new_command("plot-loss")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path())
@option(
    "--metrics",
    type=Names(_METRICS),
    help=f"Metrics of the dev set to draw, separated by commas: {', '.join(_METRICS)}. [default: "
    "the one that decides which epoch is kept: ndcg@1 on judged sets, mrr@10 on held-out clicks, "
    "accuracy on labels]",
)
@option(
    "--label",
    "labels",
    multiple=True,
    type=Text(),
    help="Name of a run in the legend; give it once per run, in their order. [default: the run's "
    "folder]",
)
@figure_option("loss.png")
@summary_option()
def command(
    runs: tuple[str, ...], metrics: list[str] | None, labels: tuple[str, ...], output: str
) -> None:
    """Draw the training cost of runs, epoch by epoch.

    Each RUN is a model folder or its history.jsonl. The cost has a logarithmic scale; metrics of
    the dev set are drawn below it for runs that were trained with one. The costs of two runs can be
    compared only if both have the same negatives and the same loss. Filled marks are epochs before
    which new hard negatives were ranked: there the cost can rise.

    \b
    sentemb plot-loss lstm rnn -o loss.png
    """
    from sentemb.analysis.figures.drawing import figure_format, save_figure
    from sentemb.analysis.figures.loss_figure import loss_figure
    from sentemb.analysis.histories import figure_of, read_history, run_names

    figure_format(output)  # a wrong ending is reported before any work
    if labels and len(labels) != len(runs):
        raise click.UsageError(f"{len(runs)} runs, but {len(labels)} labels; give one for each run")
    histories = [read_history(run) for run in runs]
    for run, history in zip(runs, histories, strict=True):
        if 0 in history.losses:
            note(f"{run}: a cost of 0 cannot be drawn on a logarithmic scale")
    metrics = metrics or [figure_of(histories)]
    with warnings_to_stderr():
        save_figure(loss_figure(histories, labels or run_names(runs), metrics), output)
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    measured = {
        metric: sum(bool(history.measured(metric)[0]) for history in histories)
        for metric in metrics
    }
    of_metrics = "".join(f", {metric} of {number}" for metric, number in measured.items())
    summarise(
        output,
        {"runs": len(runs), "metrics": measured},
        f"{output}: training cost of {count}{of_metrics}",
    )
