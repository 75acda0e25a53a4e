"""``sentemb synonyms``: synonyms for a search engine of words."""

import click

from sentemb.cli.options import command as new_command
from sentemb.cli.options import option, summary_option, text_output_option, threads_option
from sentemb.cli.program import summarise


@new_command("synonyms")
@click.argument("model", type=click.Path())
@text_output_option("the synonyms")
@option(
    "--log",
    metavar="LOG",
    type=click.Path(),
    help="Click log: map frequent words of its queries to frequent words of its titles. [default: "
    "the words that have a feature of their own in the model]",
)
@option(
    "--min-uses",
    metavar="USES",
    type=click.IntRange(min=1),
    help="Uses that make a word of the log frequent. Only with --log. [default: 5]",
)
@option(
    "--min-score",
    type=click.FloatRange(-1, 1),
    default=0.6,
    show_default=True,
    help="Smallest cosine of a word of queries and a word of titles.",
)
@option(
    "-k",
    "--top-k",
    type=click.IntRange(1, 20),
    default=3,
    show_default=True,
    help="Most synonyms per word.",
)
@threads_option()
@summary_option()
def command(
    model: str, output: str, log: str | None, min_uses: int | None, min_score: float, top_k: int
) -> None:
    """Write synonyms for Elasticsearch and OpenSearch.

    Writes one line per word of queries, `cook => cook, chef`: the word itself and the words of
    titles that the model finds for it. Words that are spelled alike are left out: a stemmer joins
    inflections, and similar letters alone do not make a synonym. Give the file to the search
    engine's filter synonym_graph in the analyser of queries, and read it before you use it.

    \b
    sentemb synonyms model/ --log pairs.tsv -o synonyms.txt
    """
    from sentemb.analysis.nearest_words import frequent_words
    from sentemb.analysis.synonyms import solr_lines, synonyms
    from sentemb.data.click_log import read_click_log
    from sentemb.data.lines import write_lines
    from sentemb.models.sentence_encoder import SentenceEncoder

    if min_uses is not None and log is None:
        raise click.UsageError("--min-uses needs --log")
    encoder = SentenceEncoder.from_pretrained(model)
    split = encoder.vocabulary.split
    if log is None:
        query_words = title_words = frequent_words(encoder.vocabulary.words, split, 1)
    else:
        clicks = read_click_log(log)
        query_words, title_words = (
            frequent_words(texts, split, min_uses or 5) for texts in (clicks.queries, clicks.titles)
        )
    groups = synonyms(encoder, query_words, title_words, top_k, min_score)
    write_lines(output, solr_lines(groups))
    summarise(
        output,
        {"synonyms": len(groups), "words": len(query_words), "title_words": len(title_words)},
        f"{len(groups):,} of {len(query_words):,} words have synonyms among {len(title_words):,}; "
        "--min-score sets how many",
    )
