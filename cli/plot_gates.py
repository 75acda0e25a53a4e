"""``sentemb plot-gates``: a figure of what the gates do."""

import click

from sentemb.cli.common import Text, warnings_to_stderr
from sentemb.cli.program import note


@click.command("plot-gates")
@click.argument("model", type=click.Path())
@click.argument("query", type=Text(), metavar="TEXT")
@click.option("--title", type=Text(), help="Draw this title next to the query.")
@click.option(
    "--view",
    type=click.Choice(["gates", "cells"]),
    default="gates",
    show_default=True,
    help="All gates of all cells, or the output of the ten cells most active in the final vector.",
)
@click.option(
    "--gates",
    metavar="LIST",
    help="Draw only these gates: some of i, f, o, c, y, separated by commas. [default: all]",
)
@click.option(
    "--scale",
    type=click.Choice(["shared", "own"]),
    default="shared",
    show_default=True,
    help="One colour scale for the figure, or one for each panel.",
)
@click.option(
    "--against", type=click.Path(), metavar="MODEL2", help="Draw this model next to the first."
)
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
    "--data", type=click.Path(), metavar="FILE", help="Also write the drawn numbers, as .npz."
)
def command(model, query, title, view, gates, scale, against, output, data):
    """Draw the gates of a model, word by word.

    The input gate i, the forget gate f if the model has one, the output gate o, the cell state c
    and the output y are drawn as heat maps: cells down, the words of TEXT across. --title adds the
    title to the right of the query; the part beyond the end of the shorter text is zero and
    hatched. --against adds a second model that reads the same texts, for example an RNN next to an
    LSTM. Colour-blind readers can tell the colours apart; white is zero.

    \b
    sentemb plot-gates model "hotels in shanghai" --title "Shanghai Hotels" -o gates.png
    sentemb plot-gates model "hotels in shanghai" --gates i --scale own -o input_gate.png
    sentemb plot-gates lstm "hotels in shanghai" --against rnn --view cells -o cells.pdf
    """
    from sentemb.analysis.figures.cell_figure import cells_figure
    from sentemb.analysis.figures.drawing import figure_format, save_figure
    from sentemb.analysis.figures.gate_figure import gates_figure
    from sentemb.analysis.gate_numbers import (
        check_numbers_path,
        numbers_of_cells,
        numbers_of_gates,
        save_numbers,
    )
    from sentemb.analysis.gates import chosen_gates, read_texts
    from sentemb.analysis.labels import short_names
    from sentemb.sentence_encoder import SentenceEncoder

    chosen = None
    if gates is not None:
        if view == "cells":
            raise click.UsageError("--gates is for --view gates; the other view draws y")
        chosen = [gate.strip() for gate in gates.split(",")]
    # Report a wrong ending before any work.
    figure_format(output)
    if data is not None:
        check_numbers_path(data)
    paths = [model] if against is None else [model, against]
    readings = [
        read_texts(SentenceEncoder.from_pretrained(path), query, title, name)
        for path, name in zip(paths, short_names(paths))
    ]
    if view == "gates":
        shown = chosen_gates(readings, chosen)
        figure = gates_figure(readings, scale, shown)
        numbers = numbers_of_gates(readings, shown)
        drawn = [
            f"{', '.join(gate for gate in shown if gate in one.gates) or 'nothing'} of "
            f"{one.cells} cells"
            for one in readings
        ]
    else:
        figure, numbers = cells_figure(readings, scale), numbers_of_cells(readings)
        drawn = [f"y of the most active of {one.cells} cells" for one in readings]
    with warnings_to_stderr():
        save_figure(figure, output)
    if data is not None:
        save_numbers(numbers, data)
    note(f"{output}: {', against '.join(drawn)}")
