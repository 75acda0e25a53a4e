"""``sentemb topics``: the words that each cell of a model collects."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

from sentemb.cli.common import read_texts, warnings_to_stderr
from sentemb.cli.options import Written, json_option, option, output_option, per_query_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.errors import SentembError

# Number of a cell -> the topic that it takes most words from, and their share.
Leading = dict[int, tuple[str, float]]


@new_command("topics")
@click.argument("model", type=click.Path())
@click.argument("queries", type=click.Path())
@option("--cell", type=click.IntRange(min=0), help="Show only this cell, with all its words.")
@option(
    "-k",
    "--top-k",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Words to show per cell.",
)
@per_query_option("Print the words extracted from each query as well.")
@option(
    "--min-change",
    type=float,
    help="Smallest change of a cell that counts. [default: the mean change of all cells in the "
    "query]",
)
@option(
    "--truth",
    metavar="FILE",
    type=click.Path(),
    help="The truth.jsonl of a simulated log: adds the topic that each cell takes most words from.",
)
@output_option(
    Written(),
    "Draw all cells against all topics as .png, .svg or .pdf; needs --truth.",
    metavar="FILE",
)
@json_option(instead_of="lines")
def command(
    model: str,
    queries: str,
    cell: int | None,
    top_k: int,
    per_query: bool,
    min_change: float | None,
    truth: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Show which words the cells of a model collect.

    QUERIES is a file with lines id<TAB>text, unpacked if it ends in .gz; - is standard input. From
    each query the 5 cells that are most active at its end extract the words at which they change by
    more than --min-change. For each cell the words that it extracted are listed, each with a count
    and a share (the count divided by how often all cells together extracted the word), ranked by
    count times share. Cells are numbered from 0; in a bidirectional model the second half reads
    from right to left.

    \b
    sentemb topics model/ dev/queries.tsv
    """
    from sentemb.analysis.figures.drawing import figure_format
    from sentemb.analysis.topics import collect_words, query_cells
    from sentemb.data.lines import write_lines
    from sentemb.models.sentence_encoder import SentenceEncoder

    if output is not None:
        if truth is None:
            raise click.UsageError("--output needs the topics: give --truth as well")
        figure_format(output)  # a wrong ending is reported before any work
    encoder = SentenceEncoder.from_pretrained(model)
    if cell is not None and cell >= encoder.dim:
        raise SentembError(f"{model}: has no cell {cell}; give one from 0 to {encoder.dim - 1}")
    ids, texts = read_texts(queries)
    topics = None if truth is None else _topics(truth, ids, texts)
    cells = [query_cells(encoder, text, min_change) for text in texts]
    collected = collect_words(cells)
    if not collected:
        raise SentembError(
            f"{queries}: the cells extract no words; lower --min-change or give longer queries"
        )
    leading = {} if topics is None else _leading(cells, topics, encoder.dim, output)
    if cell is not None:
        collected = {number: words for number, words in collected.items() if number == cell}
    shown = [
        (id, text, of_query)
        for id, text, of_query in zip(ids, texts, cells, strict=True)
        if cell is None or cell in of_query.extracted
    ]
    if as_json:
        described = _as_dict(collected, leading, shown if per_query else None)
        write_lines("-", [json.dumps(described, indent=1)])
        return
    lines = _query_lines(shown) if per_query else []
    write_lines("-", lines + _cells_lines(cell, collected, leading, top_k))
    silent = sum(not any(of_query.extracted.values()) for _, _, of_query in shown)
    if silent:
        note(f"note: no word is extracted from {silent} of {len(shown)} queries")


def _leading(
    cells_of_queries: Sequence[Any], topics: Sequence[str], cells: int, heat_map: str | None
) -> Leading:
    """The leading topic of each cell that extracts words; draws them all if there is a file."""
    from sentemb.analysis.topics import cells_by_topics

    # Rows are cells, columns topics.
    names, counts = cells_by_topics(cells_of_queries, topics, cells)
    if heat_map is not None:
        _draw(heat_map, names, counts)
    return {
        number: (names[row.argmax()], float(row.max() / row.sum()))
        for number, row in enumerate(counts)
        if row.any()
    }


def _draw(path: str, names: Sequence[str], counts: Any) -> None:
    """Draw all cells against all topics."""
    from sentemb.analysis.figures.drawing import save_figure
    from sentemb.analysis.figures.topic_figure import topics_figure

    figure = topics_figure(names, counts)
    with warnings_to_stderr():
        save_figure(figure, path)
    drawn = len(figure.axes[0].get_yticks())
    note(f"{path}: {drawn} of {len(counts)} cells, {len(names)} topics")


def _topics(path: str, ids: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The topic of every query; a `SentembError` if the truth lacks one."""
    from sentemb.data.simulation.truth import read_truth

    truth = read_truth(path)["query"]
    for id, text in zip(ids, texts, strict=True):
        if text not in truth:
            raise SentembError(
                f"{path}: knows nothing of the query {id} ({text!r}); give the truth.jsonl of the "
                "same simulation"
            )
    return [truth[text].topic for text in texts]


def _as_dict(
    collected: Mapping[int, Any], leading: Leading, queries: Sequence[Any] | None
) -> dict[str, Any]:
    cells = []
    for number, words in collected.items():
        described: dict[str, Any] = {"cell": number}
        if number in leading:
            topic, share = leading[number]
            described |= {"topic": topic, "topic_share": share}
        described["words"] = [
            {"word": word.word, "times": word.times, "share": word.share} for word in words
        ]
        cells.append(described)
    if queries is None:
        return {"cells": cells}
    return {
        "cells": cells,
        "queries": [
            {
                "id": id,
                "query": text,
                "cells": [
                    {"cell": number, "words": [query.words[position] for position in positions]}
                    for number, positions in query.extracted.items()
                ],
            }
            for id, text, query in queries
        ],
    }


def _query_lines(queries: Sequence[Any]) -> list[str]:
    """Table III: under each query the words of its cells, the most active cell first."""
    from sentemb.system.tables import aligned, visible

    lines: list[str] = []
    for id, text, query in queries:
        rows = [
            [f"  cell {number}", " ".join(query.words[position] for position in positions) or "-"]
            for number, positions in query.extracted.items()
        ]
        lines += [f"{id}  {visible(text)}", *aligned(rows, left=2), ""]
    return lines


def _cells_lines(
    cell: int | None, collected: Mapping[int, Any], leading: Leading, top_k: int
) -> list[str]:
    if cell is None:
        return _overview(collected, leading, top_k)
    return _cell_lines(cell, collected.get(cell, []), leading)


def _overview(collected: Mapping[int, Any], leading: Leading, top_k: int) -> list[str]:
    """One line per cell: its leading topic where topics are known, its first words."""
    from sentemb.system.tables import aligned

    rows = [["cell", "words", "topic", "word (times, share)"]]
    for number, words in collected.items():
        topic = "{} {:.2f}".format(*leading[number]) if number in leading else ""
        first = [f"{word.word} ({word.times}, {word.share:.2f})" for word in words[:top_k]]
        rows.append([str(number), str(len(words)), topic, "  ".join(first)])
    if not leading:
        rows = [[*row[:2], row[3]] for row in rows]
    return list(aligned([[row[0].rjust(4), row[1].rjust(5), *row[2:]] for row in rows], left=4))


def _cell_lines(cell: int, words: Sequence[Any], leading: Leading) -> list[str]:
    from sentemb.system.tables import aligned

    topic = "" if cell not in leading else ", most words from {}: {:.2f}".format(*leading[cell])
    rows = [["word", "times", "share"]]
    rows += [[word.word, str(word.times), f"{word.share:.2f}"] for word in words]
    return [f"cell {cell}: {len(words)} words{topic}", *(aligned(rows) if words else [])]
