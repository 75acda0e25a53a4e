"""``sentemb plot-loss``: training cost by epoch, run beside run."""

import click

from sentemb.cli.common import Text, warnings_to_stderr
from sentemb.cli.program import note


@click.command("plot-loss")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path())
@click.option(
    "--metric",
    type=click.Choice(["ndcg@1", "ndcg@3", "ndcg@10"]),
    default="ndcg@1",
    show_default=True,
    help="What to draw of the dev set.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    type=Text(),
    help="Name of a run in the legend, once for each in their order.  [default: its folder]",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    default="loss.png",
    show_default=True,
    help="The figure: .png, .svg or .pdf.",
)
def command(runs, metric, labels, output):
    """Draw the training cost of runs, epoch by epoch.

    Each RUN is a model folder or its history.jsonl. The cost has a logarithmic scale; below it
    stands NDCG on the dev set, if a run was trained with one. Costs of runs can be compared if
    they have the same negatives and the same gamma.

    \b
    sentemb plot-loss lstm rnn -o loss.png
    """
    from sentemb.analysis.figures.drawing import figure_format, save_figure
    from sentemb.analysis.figures.loss_figure import loss_figure
    from sentemb.analysis.histories import read_history, run_names

    figure_format(output)  # to say at once that the ending is wrong
    if labels and len(labels) != len(runs):
        raise click.UsageError(f"{len(runs)} runs, but {len(labels)} labels; give one for each run")
    histories = [read_history(run) for run in runs]
    for run, history in zip(runs, histories):
        if 0 in history.losses:
            note(f"{run}: a logarithmic scale has no place for a cost of 0")
    with warnings_to_stderr():
        save_figure(loss_figure(histories, labels or run_names(runs), metric), output)
    measured = sum(bool(history.measured(metric)[0]) for history in histories)
    note(f"{output}: training cost of {len(runs)}, {metric} of {measured} runs")
