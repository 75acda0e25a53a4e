"""``sentemb score``: the cosine of a query and titles."""

import json

import click

from sentemb.cli.common import Text, warnings_to_stderr


@click.command("score")
@click.argument("model", type=click.Path())
@click.argument("query", type=Text())
@click.argument("titles", type=Text(), metavar="TITLE...", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
def command(model, query, titles, as_json):
    """Score one query against titles.

    Prints a line for each title, in the order given: the cosine from -1 to 1, a tab, the title.
    Without words on either side the score is 0.
    """
    from sentemb.cli.tables import visible
    from sentemb.data.lines import write_lines
    from sentemb.sentence_encoder import SentenceEncoder

    encoder = SentenceEncoder.from_pretrained(model)
    with warnings_to_stderr():
        scores = encoder.score(query, titles).tolist()
    if as_json:
        scored = [{"title": title, "score": score} for title, score in zip(titles, scores)]
        lines = [json.dumps({"query": query, "titles": scored}, indent=1)]
    else:
        lines = [f"{score:.6f}\t{visible(title)}" for score, title in zip(scores, titles)]
    write_lines("-", lines)
