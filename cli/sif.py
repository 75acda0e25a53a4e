"""``sentemb sif``: a model from word vectors, without training."""

import time
from typing import Any

import click

from sentemb.cli.options import (
    Written,
    given,
    option,
    option_of,
    p_option,
    threads_option,
    written_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note, summarise
from sentemb.models.vectors.vector_options import HYPERPARAMETERS
from sentemb.system.amounts import amount
from sentemb.system.hyperparameters import RUN

_NEAREST = 10  # words that the summary names


def _settings(function: Any) -> Any:
    """``function`` with an option for every hyper-parameter."""
    for declared in reversed(HYPERPARAMETERS):
        function = option_of(declared)(function)
    return function


@new_command("sif")
@click.argument("vectors", type=click.Path())
@click.argument("texts", type=click.Path(), nargs=-1)
@written_option(Written(is_folder=True), "Folder of the model.", group=RUN, metavar="MODEL")
@option(
    "--log",
    type=click.Path(),
    metavar="LOG",
    help="Click log; its queries and titles are added to the texts.",
    group=RUN,
)
@p_option()
@_settings
@threads_option(group=RUN)
def command(
    vectors: str,
    texts: tuple[str, ...],
    output: str,
    log: str | None,
    force: bool,
    **options: Any,
) -> None:
    """Turn word vectors into a model without training.

    The vector of a text is the weighted average of its words' vectors, minus the component that
    all texts have in common (Arora, Liang and Ma, 2017). VECTORS is a folder written by `sentemb
    vectors convert`, or a file in a GloVe or word2vec format. The component is computed from TEXTS:
    files with one text per line, or judged sets. TEXTS can be omitted with --log or --components 0.
    The model is a linear bag (`train --model bag`) and works wherever such a model does.

    \b
    sentemb sif glove.6B.100d.txt titles.txt -o model/
    sentemb sif vectors/ --log pairs.tsv --sides each -o model/
    """
    from sentemb.models.files.model_files import save_model
    from sentemb.models.files.model_folder import check_place
    from sentemb.models.vectors.reading import read_word_vectors
    from sentemb.models.vectors.sif import SIF
    from sentemb.models.vectors.text_weights import read_fit_texts
    from sentemb.system.files import is_folder

    began = time.monotonic()
    check_place(output)
    if not is_folder(vectors):
        note(f"reading {vectors}; a folder written by `sentemb vectors convert` opens at once")
    sif = SIF(read_word_vectors(vectors, note=note), **given(options))
    queries, titles = read_fit_texts(texts, log, note)
    model = sif.fit(queries, titles)
    save_model(model.saved(), output, force)
    words = len(model.vocabulary)
    lines = [
        f"{output}: sif, {amount(words, 'word')}, {model.dim} dimensions, "
        f"{amount(len(queries) + len(titles), 'text')}, {time.monotonic() - began:.1f} s"
    ]
    left = len(sif.vectors) - words
    if left and options["keep"] != "texts":
        note(
            f"{left:,} vectors are left out: texts are lower-cased and lose their punctuation, so "
            "these words never occur"
        )
    removed_from: dict[str, list[dict[str, Any]]] = {}
    for side, removed in sif.distinct_components().items():
        for number, direction in enumerate(removed.directions, 1):
            nearest = [word for word, _ in sif.vectors.nearest(direction, _NEAREST)]
            share = float(removed.shares[number - 1])
            removed_from.setdefault(side, []).append({"share": share, "nearest_words": nearest})
            lines.append(
                f"removed{side and f' from {side}'}: component {number}, {share:.1%} of the "
                f"squared lengths, nearest words: {' '.join(nearest)}"
            )
    lines.append(f'next: sentemb score {output} "a query" "a title"')
    facts = {"words": words, "dimensions": model.dim, "texts": len(queries) + len(titles)}
    summarise(output, {**facts, "removed": removed_from}, *lines)
