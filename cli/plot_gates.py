"""``sentemb plot-gates``: a figure of what the gates do."""

import click

from sentemb.cli.common import Text


@click.command("plot-gates")
@click.argument("model", type=click.Path())
@click.argument("query", type=Text(), metavar="TEXT")
@click.option("--title", type=Text(), help="Draw this title beside the query.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    default="gates.png",
    show_default=True,
    help="The figure: .png, .svg or .pdf.",
)
def command(model, query, title, output):
    """Draw the gates of a model, word by word.

    Input gate, forget gate where there is one, output gate, cell state and output as heat maps:
    cells down, the words of TEXT across, one colour scale for all. With --title the title's stand
    beside the query's, and columns beyond the end of the shorter text are 0.
    """
    from sentemb.analysis.figures import figure_format, gates_figure, save_figure
    from sentemb.analysis.gates import gate_panels
    from sentemb.sentence_encoder import SentenceEncoder

    figure_format(output)  # to say at once that the ending is wrong
    panels = gate_panels(SentenceEncoder.from_pretrained(model), query, title)
    save_figure(gates_figure(panels), output)
    click.echo(f"{output}: {', '.join(panels.gates)} of {panels.values.shape[2]} cells", err=True)
