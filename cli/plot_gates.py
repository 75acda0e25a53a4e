"""``sentemb plot-gates``: a figure of what the gates do."""

import click

from sentemb.cli.common import Text, warnings_to_stderr
from sentemb.cli.program import note


@click.command("plot-gates")
@click.argument("model", type=click.Path())
@click.argument("query", type=Text(), metavar="TEXT")
@click.option("--title", type=Text(), help="Draw this title beside the query.")
@click.option(
    "--view",
    type=click.Choice(["gates", "cells"]),
    default="gates",
    show_default=True,
    help="All gates of all cells, or the output of the ten cells most active in the final vector.",
)
@click.option(
    "--scale",
    type=click.Choice(["shared", "own"]),
    default="shared",
    show_default=True,
    help="One colour scale for the figure, or one for each panel.",
)
@click.option("--against", type=click.Path(), metavar="MODEL2", help="Draw this model beside it.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    default="gates.png",
    show_default=True,
    help="The figure: .png, .svg or .pdf.",
)
@click.option(
    "--data", type=click.Path(), metavar="FILE", help="Write the numbers drawn there too: .npz."
)
def command(model, query, title, view, scale, against, output, data):
    """Draw the gates of a model, word by word.

    Input gate, forget gate where there is one, output gate, cell state and output as heat maps:
    cells down, the words of TEXT across. With --title the title's stand beside the query's; what
    is beyond the end of the shorter text is zero, and hatched. With --against a second model reads
    the same, for instance an RNN beside an LSTM. The colours are safe for colour-blind eyes; white
    is zero.

    \b
    sentemb plot-gates model "hotels in shanghai" --title "Shanghai Hotels" -o gates.png
    sentemb plot-gates lstm "hotels in shanghai" --against rnn --view cells -o cells.pdf
    """
    from sentemb.analysis.figures.cell_figure import cells_figure
    from sentemb.analysis.figures.drawing import figure_format, save_figure, short_names
    from sentemb.analysis.figures.gate_figure import gates_figure
    from sentemb.analysis.gates import (
        check_numbers_path,
        numbers_of_cells,
        numbers_of_gates,
        read_texts,
        save_numbers,
    )
    from sentemb.sentence_encoder import SentenceEncoder

    # To say at once that an ending is wrong.
    figure_format(output)
    if data is not None:
        check_numbers_path(data)
    paths = [model] if against is None else [model, against]
    readings = [
        read_texts(SentenceEncoder.from_pretrained(path), query, title, name)
        for path, name in zip(paths, short_names(paths))
    ]
    if view == "gates":
        figure, numbers = gates_figure(readings, scale), numbers_of_gates(readings)
        drawn = [f"{', '.join(one.gates)} of {one.cells} cells" for one in readings]
    else:
        figure, numbers = cells_figure(readings, scale), numbers_of_cells(readings)
        drawn = [f"y of the most active of {one.cells} cells" for one in readings]
    with warnings_to_stderr():
        save_figure(figure, output)
    if data is not None:
        save_numbers(numbers, data)
    note(f"{output}: {', against '.join(drawn)}")
