"""``sentemb plot-gates``: a figure of what the gates do."""

import click

from sentemb.cli.common import warnings_to_stderr
from sentemb.cli.options import Text, compare_with, figure_option, option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note


@new_command("plot-gates")
@click.argument("model", type=click.Path())
@click.argument("query", type=Text())
@option("--title", type=Text(), help="Draw this title next to the query.")
@option(
    "--view",
    type=click.Choice(["gates", "cells"]),
    default="gates",
    show_default=True,
    help="Draw all gates of all cells, or the outputs of the ten cells that are most active in the "
    "final vector.",
)
@option(
    "--scale",
    type=click.Choice(["shared", "own"]),
    default="shared",
    show_default=True,
    help="One colour scale for the whole figure, or one per panel.",
)
@compare_with("Draw this model next to the first.", former=["--against"])
@figure_option("gates.png")
@option(
    "--output-numbers",
    type=click.Path(),
    metavar="FILE",
    help="Also write the numbers that are drawn, as .npz.",
    former=["--data"],
)
def command(
    model: str,
    query: str,
    title: str | None,
    view: str,
    scale: str,
    compare_with: str | None,
    output: str,
    output_numbers: str | None,
) -> None:
    """Draw the gates of a model, word by word.

    Draws the input gate, the forget gate if there is one, the output gate, the cell state and the
    output as heat maps: one row per cell, one column per word. With --title those of the title are
    drawn next to those of the query; columns beyond the end of the shorter text are zero and
    hatched. With --compare-with a second model reads the same texts, for instance an RNN next to an
    LSTM. The colours suit colour-blind readers; white is zero.

    \b
    sentemb plot-gates model "hotels in shanghai" --title "Shanghai Hotels" -o gates.png
    sentemb plot-gates lstm "hotels in shanghai" --compare-with rnn --view cells -o cells.pdf
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

    # A wrong ending is reported before any work.
    figure_format(output)
    if output_numbers is not None:
        check_numbers_path(output_numbers)
    paths = [model] if compare_with is None else [model, compare_with]
    readings = [
        read_texts(SentenceEncoder.from_pretrained(path), query, title, name)
        for path, name in zip(paths, short_names(paths), strict=True)
    ]
    if view == "gates":
        figure, numbers = gates_figure(readings, scale), numbers_of_gates(readings)
        drawn = [f"{', '.join(one.gates)} of {one.cells} cells" for one in readings]
    else:
        figure, numbers = cells_figure(readings, scale), numbers_of_cells(readings)
        drawn = [f"y of the most active of {one.cells} cells" for one in readings]
    with warnings_to_stderr():
        save_figure(figure, output)
    if output_numbers is not None:
        save_numbers(numbers, output_numbers)
    note(f"{output}: {', against '.join(drawn)}")
