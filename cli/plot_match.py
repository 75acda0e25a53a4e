"""``sentemb plot-match``: what carries the score of a pair model."""

import json

import click

from sentemb.cli.common import note_unknown_words, warnings_to_stderr
from sentemb.cli.options import Text, figure_option, json_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import say


@new_command("plot-match")
@click.argument("model", type=click.Path())
@click.argument("query", type=Text())
@click.argument("title", type=Text())
@figure_option("match.png", lambda path, given: [] if given["as_json"] else [path])
@json_option(instead_of="drawing a figure")
def command(model: str, query: str, title: str, output: str, as_json: bool) -> None:
    """Draw what carries the score of a pair model.

    Draws a bar for each word: gradient times input, the part of the score that the word carries.
    The shares of the words and of the biases add up to the score; for urae and deepmatch, which are
    not piecewise linear, the title of the figure gives the rest.

    For arc2, a heat map below shows what each pair of windows carries: the windows of the query
    down, those of the title across. Orange adds to the score, blue takes away. The last row shows
    the pooled layers, each cell where its first window begins, as the mean over all feature maps.

    \b
    sentemb plot-match model "hotels in shanghai" "Shanghai Hotels" -o match.png
    sentemb plot-match model "hotels in shanghai" "Shanghai Hotels" --json
    """
    from sentemb.analysis.figures.drawing import figure_format, save_figure
    from sentemb.analysis.figures.match_figure import match_figure
    from sentemb.analysis.pair_effects import match
    from sentemb.data.lines import write_lines
    from sentemb.errors import naming
    from sentemb.models.pair_scorer import PairScorer

    if not as_json:
        figure_format(output)  # a wrong ending is reported before any work
    scorer = PairScorer.from_pretrained(model)
    with naming(model):
        matching = match(scorer, query, title)
    note_unknown_words(scorer, [query, title], model)
    if as_json:
        write_lines("-", [json.dumps(matching.as_dict(), indent=1, allow_nan=False)])
        return
    with warnings_to_stderr():
        save_figure(match_figure(matching), output)
    windows = ""
    if matching.cells is not None:
        windows = ", {} x {} windows".format(*matching.cells.shares.shape)
    words = " and ".join(str(len(text.words)) for text in matching.texts.values())
    say(f"{output}: {words} words{windows}")
