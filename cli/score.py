"""``sentemb score``: the scores of a query and titles."""

import json

import click

from sentemb.cli.common import note_unknown_words, warnings_to_stderr
from sentemb.cli.options import Text, json_option
from sentemb.cli.options import command as new_command


@new_command("score")
@click.argument("model", type=click.Path())
@click.argument("query", type=Text())
@click.argument("titles", type=Text(), metavar="TITLE...", nargs=-1, required=True)
@json_option(instead_of="lines")
def command(model: str, query: str, titles: tuple[str, ...], as_json: bool) -> None:
    """Score one query against titles.

    Prints one line per title, in the given order: the score, a tab and the title. Higher is better.
    The score of two towers is the cosine, from -1 to 1, and 0 if the query or the title has no
    words. The score of a pair model can be any number; only scores of one query can be compared.

    \b
    sentemb score model/ "hotels in shanghai" "Shanghai Hotels" "Bath Tub Repair"
    """
    from sentemb.data.lines import write_lines
    from sentemb.loading import load
    from sentemb.tables import visible

    scorer = load(model)
    with warnings_to_stderr():
        scores = scorer.score(query, titles).tolist()
    note_unknown_words(scorer, [query, *titles])
    if as_json:
        scored = [
            {"title": title, "score": score} for title, score in zip(titles, scores, strict=True)
        ]
        lines = [json.dumps({"query": query, "titles": scored}, indent=1)]
    else:
        lines = [
            f"{score:.6f}\t{visible(title)}" for score, title in zip(scores, titles, strict=True)
        ]
    write_lines("-", lines)
