"""``sentemb neighbours``: the nearest words of a word."""

import json

import click

from sentemb.cli.common import note_unknown_words
from sentemb.cli.options import Text, json_option, option, side_option, threads_option
from sentemb.cli.options import command as new_command
from sentemb.errors import SentembError


@new_command("neighbours")
@click.argument("model", type=click.Path())
@click.argument("words", type=Text(), metavar="WORD...", nargs=-1, required=True)
@option(
    "-k",
    "--top-k",
    type=click.IntRange(1, 10_000),
    default=10,
    show_default=True,
    help="Neighbours per word.",
)
@side_option()
@option(
    "--among",
    metavar="FILE",
    type=click.Path(),
    help="Look among the words of this file, one per line. [default: the words that have a feature "
    "of their own in the model]",
)
@option(
    "--log",
    metavar="LOG",
    type=click.Path(),
    help="Look among the frequent words of a click log.",
)
@option(
    "--min-uses",
    metavar="USES",
    type=click.IntRange(min=1),
    help="Uses that make a word of the log frequent. Only with --log. [default: 5]",
)
@json_option(instead_of="tables")
@threads_option()
def command(
    model: str,
    words: tuple[str, ...],
    top_k: int,
    side: str,
    among: str | None,
    log: str | None,
    min_uses: int | None,
    as_json: bool,
) -> None:
    """Show the nearest words of a word.

    The score is the cosine of the embeddings of two words, both read by the same tower. A word that
    the model never met is looked up by its letter trigrams.

    \b
    sentemb neighbours model/ cook nurse
    sentemb neighbours model/ cook --log pairs.tsv --side document
    """
    from sentemb.analysis.nearest_words import frequent_words, known_words, neighbours
    from sentemb.data.click_log import read_click_log
    from sentemb.data.lines import clean_lines, write_lines
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.system.files import place_name
    from sentemb.system.tables import visible

    if among is not None and log is not None:
        raise click.UsageError("give --among or --log, not both")
    if min_uses is not None and log is None:
        raise click.UsageError("--min-uses needs --log")
    encoder = SentenceEncoder.from_pretrained(model)
    split = encoder.vocabulary.split
    if among is not None:
        candidates = [word for _, line in clean_lines(among) for word in split(line)]
        remedy = f"{place_name(among)}: the model knows none of the words"
    elif log is not None:
        clicks = read_click_log(log)
        texts = clicks.queries if side == "query" else clicks.titles
        candidates = frequent_words(texts, split, min_uses or 5)
        remedy = f"{place_name(log)}: no word is used that often; lower --min-uses"
    else:
        candidates = frequent_words(encoder.vocabulary.words, split, 1)
        remedy = f"{model}: no word has a feature of its own; give --among or --log"
    if not known_words(encoder, candidates):
        raise SentembError(remedy)
    nearest = neighbours(encoder, words, candidates, top_k, side)
    note_unknown_words(encoder, words, model)
    if as_json:
        described = [
            {"word": word, "neighbours": [neighbour._asdict() for neighbour in near]}
            for word, near in zip(words, nearest, strict=True)
        ]
        write_lines("-", [json.dumps({"side": side, "words": described}, indent=1)])
    else:
        lines = []
        for word, near in zip(words, nearest, strict=True):
            lines += [
                visible(word),
                *(f"{neighbour.score:9.3f}  {visible(neighbour.word)}" for neighbour in near),
            ]
            lines.append("")
        write_lines("-", lines)
