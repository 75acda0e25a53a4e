"""``sentemb plot-gates``: a figure of what the gates do."""

from collections.abc import Sequence
from typing import Any

import click

from sentemb.cli.common import note_unknown_words, warnings_to_stderr
from sentemb.cli.options import (
    Names,
    Text,
    Written,
    compare_with,
    figure_option,
    option,
    summary_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import summarise


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
    "--gates",
    type=Names(),
    metavar="LIST",
    help="Draw only these gates: some of i, f, o, c, y, separated by commas. [default: all]",
)
@option(
    "--colours",
    "scale",
    type=click.Choice(["shared", "own"]),
    default="shared",
    show_default=True,
    help="One colour scale for the whole figure, or one per panel.",
)
@compare_with("Draw this model next to the first.")
@figure_option("gates.png")
@option(
    "--output-numbers",
    type=Written(),
    metavar="FILE",
    help="Also write the numbers that are drawn, as .npz.",
)
@summary_option()
def command(
    model: str,
    query: str,
    title: str | None,
    view: str,
    gates: list[str] | None,
    scale: str,
    compare_with: str | None,
    output: str,
    output_numbers: str | None,
) -> None:
    """Draw the gates of a model, word by word.

    Draws the input gate i, the forget gate f if there is one, the output gate o, the cell state c
    and the output y as heat maps: one row per cell, one column per word. With --title those of the
    title are drawn next to those of the query; columns beyond the end of the shorter text are
    hatched. With --compare-with a second model reads the same texts, for instance an RNN next
    to an LSTM. The colours suit colour-blind readers. White is zero, except that with
    --colours own the palest colour of a gate is its smallest value.

    \b
    sentemb plot-gates model "hotels in shanghai" --title "Shanghai Hotels" -o gates.png
    sentemb plot-gates model "hotels in shanghai" --gates i --colours own -o input_gate.png
    sentemb plot-gates lstm "hotels in shanghai" --compare-with rnn --view cells -o cells.pdf
    """
    from sentemb.analysis.figures.drawing import figure_format, save_figure
    from sentemb.analysis.gate_numbers import check_numbers_path, save_numbers
    from sentemb.analysis.gates import read_gates
    from sentemb.analysis.labels import short_names
    from sentemb.models.sentence_encoder import SentenceEncoder

    if gates is not None and view == "cells":
        raise click.UsageError("--gates is for --view gates; the other view draws y")
    # A wrong ending is reported before any work.
    figure_format(output)
    if output_numbers is not None:
        check_numbers_path(output_numbers)
    paths = [model] if compare_with is None else [model, compare_with]
    readings = []
    for path, name in zip(paths, short_names(paths), strict=True):
        encoder = SentenceEncoder.from_pretrained(path)
        with warnings_to_stderr():
            readings.append(read_gates(encoder, query, title, name))
        note_unknown_words(encoder, [query, *([] if title is None else [title])], path)
    if view == "gates":
        figure, numbers, drawn = _draw_gates(readings, scale, gates)
    else:
        figure, numbers, drawn = _draw_cells(readings, scale)
    with warnings_to_stderr():
        save_figure(figure, output)
    if output_numbers is not None:
        save_numbers(numbers, output_numbers)
    facts: dict[str, Any] = {"drawn": dict(zip(paths, drawn, strict=True))}
    if output_numbers is not None:
        facts["output_numbers"] = output_numbers
    summarise(output, facts, f"{output}: {', against '.join(drawn)}")


def _draw_gates(
    readings: Sequence[Any], scale: str, gates: Sequence[str] | None
) -> tuple[Any, dict[str, Any], list[str]]:
    """The figure of the gates, its numbers, and what it shows of each model."""
    from sentemb.analysis.figures.gate_figure import gates_figure
    from sentemb.analysis.gate_numbers import numbers_of_gates
    from sentemb.analysis.gates import chosen_gates

    shown = chosen_gates(readings, gates)
    drawn = [
        f"{', '.join(gate for gate in shown if gate in reading.gates) or 'nothing'} of "
        f"{reading.cells} cells"
        for reading in readings
    ]
    return gates_figure(readings, scale, shown), numbers_of_gates(readings, shown), drawn


def _draw_cells(readings: Sequence[Any], scale: str) -> tuple[Any, dict[str, Any], list[str]]:
    """As `_draw_gates`, of the outputs of the most active cells."""
    from sentemb.analysis.figures.cell_figure import cells_figure
    from sentemb.analysis.gate_numbers import numbers_of_cells

    drawn = [f"y of the most active of {reading.cells} cells" for reading in readings]
    return cells_figure(readings, scale), numbers_of_cells(readings), drawn
