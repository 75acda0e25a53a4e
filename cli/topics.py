"""``sentemb topics``: the words that each cell of a model collects."""

import json

import click

from sentemb.cli.common import warnings_to_stderr
from sentemb.cli.program import note
from sentemb.errors import SentembError


@click.command("topics")
@click.argument("model", type=click.Path())
@click.argument("queries", type=click.Path())
@click.option("--cell", type=click.IntRange(min=0), help="Only this cell, with all its words.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Words shown of each cell.",
)
@click.option("-q", "--per-query", is_flag=True, help="What was extracted from each query as well.")
@click.option(
    "--threshold",
    type=float,
    help="The least change of a cell that counts. [default: the mean change of all cells in the "
    "query]",
)
@click.option(
    "--truth",
    metavar="FILE",
    type=click.Path(),
    help="The truth.jsonl of a simulated log: names the topic that a cell takes most words from.",
)
@click.option(
    "--heat-map",
    metavar="FILE",
    type=click.Path(),
    help="Draw cells and topics as .png, .svg or .pdf; needs --truth.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
def command(model, queries, cell, top, per_query, threshold, truth, heat_map, as_json):
    """Show which words the cells of a model collect.

    QUERIES is a file with lines id<TAB>text, packed if it ends in .gz; - is standard input. From
    each query the 5 cells that are most active at its end extract the words at which they change by
    more than the threshold. For every cell its words, with how often it extracted each and, from 0
    to 1, its share of all the times that any cell did; ranked by the product of both. Cells count
    from 0; of a two-way model the second half reads from right to left.
    """
    from sentemb.analysis.figures.drawing import figure_format, save_figure
    from sentemb.analysis.topics import cells_by_topics, collect_words, query_cells
    from sentemb.cli.rank import read_texts
    from sentemb.data.lines import write_lines
    from sentemb.sentence_encoder import SentenceEncoder

    if heat_map is not None:
        if truth is None:
            raise click.UsageError("--heat-map needs the topics: give --truth as well")
        figure_format(heat_map)  # to say at once that the ending is wrong
    encoder = SentenceEncoder.from_pretrained(model)
    if cell is not None and cell >= encoder.dim:
        raise SentembError(f"{model}: has no cell {cell}; give one from 0 to {encoder.dim - 1}")
    ids, texts = read_texts(queries)
    topics = None if truth is None else _topics(truth, ids, texts)
    found = [query_cells(encoder, text, threshold) for text in texts]
    collected = collect_words(found)
    if not collected:
        raise SentembError(
            f"{queries}: the cells extract no words; lower the threshold or give longer queries"
        )
    leading = {}
    if topics is not None:
        names, counts = cells_by_topics(found, topics, encoder.dim)
        leading = {
            number: (names[row.argmax()], row.max() / row.sum())
            for number, row in enumerate(counts)
            if row.any()
        }
        if heat_map is not None:
            from sentemb.analysis.figures.topic_figure import topics_figure

            figure = topics_figure(names, counts)
            with warnings_to_stderr():
                save_figure(figure, heat_map)
            drawn = len(figure.axes[0].get_yticks())
            note(f"{heat_map}: {drawn} of {encoder.dim} cells, {len(names)} topics")
    if cell is not None:
        collected = {number: words for number, words in collected.items() if number == cell}
    shown = [
        (id, text, of_query)
        for id, text, of_query in zip(ids, texts, found)
        if cell is None or cell in of_query.extracted
    ]
    if as_json:
        described = _as_dict(collected, leading, shown if per_query else None)
        write_lines("-", [json.dumps(described, indent=1)])
        return
    lines = _query_lines(shown) if per_query else []
    if cell is None:
        lines += _overview(collected, leading, top)
    else:
        lines += _cell_lines(cell, collected.get(cell, []), leading)
    write_lines("-", lines)
    silent = sum(not any(of_query.extracted.values()) for _, _, of_query in shown)
    if silent:
        note(f"note: from {silent} of {len(shown)} queries no word is extracted")


def _topics(path, ids, texts):
    """The topic of every query, or which query the truth does not know."""
    from sentemb.data.simulation.truth import read_truth

    truth = read_truth(path)["query"]
    for id, text in zip(ids, texts):
        if text not in truth:
            raise SentembError(
                f"{path}: knows nothing of the query {id} ({text!r}); give the truth.jsonl of the "
                "same simulation"
            )
    return [truth[text].topic for text in texts]


def _as_dict(collected, leading, queries):
    cells = []
    for number, words in collected.items():
        described = {"cell": number}
        if number in leading:
            topic, share = leading[number]
            described |= {"topic": topic, "topic_share": float(share)}
        described["words"] = [
            {"word": found.word, "times": found.times, "share": found.share} for found in words
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
                    {"cell": number, "words": [query.words[place] for place in places]}
                    for number, places in query.extracted.items()
                ],
            }
            for id, text, query in queries
        ],
    }


def _query_lines(queries):
    """Table III: under each query the words of its cells, the most active cell first."""
    from sentemb.cli.tables import aligned, visible

    lines = []
    for id, text, query in queries:
        rows = [
            [f"  cell {number}", " ".join(query.words[place] for place in places) or "-"]
            for number, places in query.extracted.items()
        ]
        lines += [f"{id}  {visible(text)}", *aligned(rows, left=2), ""]
    return lines


def _overview(collected, leading, top):
    """A line for each cell: its leading topic where topics are known, its first words."""
    from sentemb.cli.tables import aligned

    rows = [["cell", "words", "topic", "word (times, share)"]]
    for number, words in collected.items():
        topic = "{} {:.2f}".format(*leading[number]) if number in leading else ""
        first = [f"{found.word} ({found.times}, {found.share:.2f})" for found in words[:top]]
        rows.append([str(number), str(len(words)), topic, "  ".join(first)])
    if not leading:
        rows = [[*row[:2], row[3]] for row in rows]
    return aligned([[row[0].rjust(4), row[1].rjust(5), *row[2:]] for row in rows], left=4)


def _cell_lines(cell, words, leading):
    """All words of one cell."""
    from sentemb.cli.tables import aligned

    topic = "" if cell not in leading else ", most words from {}: {:.2f}".format(*leading[cell])
    rows = [["word", "times", "share"]]
    rows += [[found.word, str(found.times), f"{found.share:.2f}"] for found in words]
    return [f"cell {cell}: {len(words)} words{topic}", *(aligned(rows) if words else [])]
