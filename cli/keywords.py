"""``sentemb keywords``: the words of a text that a model's cells declare."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from sentemb.cli.common import note_unknown_words
from sentemb.cli.options import (
    Text,
    compare_with,
    json_option,
    markdown_option,
    option,
    side_option,
)
from sentemb.cli.options import command as new_command


@new_command("keywords")
@click.argument("model", type=click.Path())
@click.argument("texts", type=Text(), metavar="TEXT...", nargs=-1, required=True)
@compare_with("Show this model in additional columns.")
@side_option()
@option(
    "--min-change",
    type=float,
    help="Smallest change of a cell that counts. [default: the mean change of all cells in the "
    "text, for each direction]",
)
@markdown_option("the tables")
@json_option(instead_of="tables")
def command(
    model: str,
    texts: tuple[str, ...],
    compare_with: str | None,
    side: str,
    min_change: float | None,
    markdown: bool,
    as_json: bool,
) -> None:
    """Show which words of a text a model treats as keywords.

    For each word, counts how many of the 10 most active cells, whose outputs at the end of the text
    are largest in size, change by more than --min-change when the model reads it. A bidirectional
    model has a count for each direction. A word is a keyword if more than 40 % of these cells
    change in every direction. The first word that a direction reads has nothing to compare with and
    shows "-", and so does the verdict on a word without any count.

    \b
    sentemb keywords model/ "hotels in shanghai"
    sentemb keywords model/ "hotels in shanghai" --compare-with rnn/ --markdown
    """
    from sentemb.analysis.keywords import extract_keywords
    from sentemb.analysis.labels import same_words, short_names
    from sentemb.data.lines import write_lines
    from sentemb.models.sentence_encoder import SentenceEncoder

    if markdown and as_json:
        raise click.UsageError("give --markdown or --json, not both")
    folders = [model] if compare_with is None else [model, compare_with]
    encoders = [SentenceEncoder.from_pretrained(folder) for folder in folders]
    findings = [
        [extract_keywords(encoder, text, side, min_change) for encoder in encoders]
        for text in texts
    ]
    for folder, encoder in zip(folders, encoders, strict=True):
        note_unknown_words(encoder, texts, folder)
    if as_json:
        described = [
            {
                "text": text,
                "models": [
                    _as_dict(*entry) for entry in zip(folders, encoders, keywords, strict=True)
                ],
            }
            for text, keywords in zip(texts, findings, strict=True)
        ]
        write_lines("-", [json.dumps({"side": side, "texts": described}, indent=1)])
        return
    for keywords in findings:
        same_words(of_model.words for of_model in keywords)
    show = _markdown if markdown else _table
    names = [""] if compare_with is None else short_names(folders)
    write_lines(
        "-",
        (
            line
            for text, keywords in zip(texts, findings, strict=True)
            for line in show(text, keywords, names)
        ),
    )


def _as_dict(folder: str, encoder: Any, keywords: Any) -> dict[str, Any]:
    from sentemb.analysis.keywords import DIRECTIONS, NOT_COMPARED

    names = [direction.replace(" ", "_") for direction in DIRECTIONS[: len(keywords.counts)]]
    words = []
    for word, counts, verdict in zip(
        keywords.words, keywords.counts.T.tolist(), keywords.verdicts, strict=True
    ):
        counts = [None if count == NOT_COMPARED else count for count in counts]
        words.append({"word": word, **dict(zip(names, counts, strict=True)), "keyword": verdict})
    return {
        "model": folder,
        "encoder": encoder.encoder.name,
        "cells": keywords.cells,
        "threshold": dict(zip(names, keywords.thresholds.tolist(), strict=True)),
        "words": words,
    }


def _rows(keywords: Any, mark: Callable[[int], str]) -> Iterator[list[str]]:
    """The columns of one model, row by row; ``mark`` writes the counts above 40 %."""
    from sentemb.analysis.keywords import NOT_COMPARED

    verdicts = {True: "yes", False: "", None: "-"}
    for counts, declared, verdict in zip(
        keywords.counts.T.tolist(), keywords.declared.T.tolist(), keywords.verdicts, strict=True
    ):
        cells = [
            "-" if count == NOT_COMPARED else mark(count) if above else str(count)
            for count, above in zip(counts, declared, strict=True)
        ]
        yield [*cells, verdicts[verdict]]


def _heads(keywords: Any) -> list[str]:
    from sentemb.analysis.keywords import DIRECTIONS

    return [*DIRECTIONS[: len(keywords.counts)], "keyword"]


def _table(text: str, findings: Sequence[Any], names: Sequence[str]) -> Iterator[str]:
    from sentemb.system.tables import aligned, visible

    rows = [[""], [""]]
    for name, keywords in zip(names, findings, strict=True):
        head = _heads(keywords)
        rows[0] += [name, *[""] * (len(head) - 1)]
        rows[1] += head
    columns = [_rows(keywords, str) for keywords in findings]
    for word, *cells in zip(findings[0].words, *columns, strict=True):
        rows.append([word, *(cell for part in cells for cell in part)])
    yield visible(text)
    yield from aligned(rows if any(names) else rows[1:])
    yield ""


def _markdown(text: str, findings: Sequence[Any], names: Sequence[str]) -> Iterator[str]:
    from sentemb.system.tables import markdown_table, markdown_text

    rows = [["word"]]
    for name, keywords in zip(names, findings, strict=True):
        prefix = f"{markdown_text(name)}, " if name else ""
        rows[0] += [f"{prefix}{head}" for head in _heads(keywords)]
    columns = [_rows(keywords, "**{}**".format) for keywords in findings]
    for word, *cells in zip(findings[0].words, *columns, strict=True):
        rows.append([markdown_text(word), *(cell for part in cells for cell in part)])
    yield markdown_text(text)
    yield ""
    yield from markdown_table(rows)
    yield ""
