"""``sentemb score``: the scores of a query and titles."""

import json
import os

import click

from sentemb.cli.common import encoding_ahead, note_unknown_words, warnings_to_stderr
from sentemb.cli.options import Text, cosine_option, json_option
from sentemb.cli.options import command as new_command


@new_command("score")
@click.argument("model", type=click.Path())
@click.argument("query", type=Text())
@click.argument("titles", type=Text(), metavar="TITLE...", nargs=-1, required=True)
@cosine_option()
@json_option(instead_of="lines")
def command(model: str, query: str, titles: tuple[str, ...], cosine: bool, as_json: bool) -> None:
    """Score one query against titles.

    Prints one line per title, in the given order: the score, a tab and the title. Higher is better.
    The score is that of `sentemb rank` and of an index: a sum of cosine, memory of the log and BM25
    if the folder of the model has a ranker, otherwise the cosine, from -1 to 1. The score of a pair
    model can be any number; only scores of one query can be compared.

    \b
    sentemb score model/ "hotels in shanghai" "Shanghai Hotels" "Bath Tub Repair"
    """
    import numpy as np

    from sentemb.data.lines import write_lines
    from sentemb.errors import SentembError
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.search.index_files import MODEL, is_index
    from sentemb.search.ranking.opening import load_best
    from sentemb.system.tables import visible

    if is_index(model):
        raise SentembError(
            f"{model}: is an index; give {os.path.join(model, MODEL)}, or use `sentemb search` "
            "or `sentemb explain`"
        )
    ranker = load_best(model, cosine=cosine)
    texts = list(titles)
    pairs = np.zeros(len(texts), np.int64), np.arange(len(texts))
    model_of_ranker = ranker if isinstance(ranker, PairScorer) else ranker.model
    with warnings_to_stderr(), encoding_ahead(model_of_ranker):
        if isinstance(ranker, PairScorer):
            scores = ranker.score(query, texts).tolist()
        else:
            scores = ranker.score_pairs([query], texts, *pairs).tolist()
    note_unknown_words(model_of_ranker, [query, *titles])
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
