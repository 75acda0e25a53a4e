"""``sentemb evaluate`` on held-out clicks: a model and others, side by side over a catalogue."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sentemb.cli.common import warnings_to_stderr
from sentemb.cli.program import note
from sentemb.system.amounts import amount
from sentemb.system.tables import aligned, visible

if TYPE_CHECKING:
    from sentemb.comparison.measuring import RankedTitles
    from sentemb.data.click_log import ClickLog
    from sentemb.data.judged_set import JudgedSet
    from sentemb.evaluation.held_out import Evaluation
    from sentemb.evaluation.kinds import WrittenQueries
    from sentemb.evaluation.significance import Difference

# With fewer queries than this the intervals are wide.
_FEW_QUERIES = 200
# If a pair model has more pairs to score than this, a note says so.
_MANY_PAIRS = 1_000_000


def evaluated(
    models: Sequence[str],
    path: str,
    clicks: "ClickLog",
    catalogue: str | None,
    metrics: Sequence[str] | None,
    learned: "ClickLog | None",
    cosine: bool,
    doing: Callable[[str], None],
) -> Any:
    """The result of `sentemb.evaluate` for the first of ``models``, with notes on the catalogue.

    The others are what it is compared with. ``doing`` is called with the name of the work.
    """
    from sentemb.comparison.measuring import evaluate, open_ranker

    model = models[0]
    opened = {name: open_ranker(name, cosine) for name in dict.fromkeys(models)}
    titles = catalogue_of(model, opened[model], path, catalogue, clicks)
    for name, ranker in opened.items():
        note_pairs(name, ranker, len(clicks.queries) * len(titles.titles))
    first = opened.pop(model)

    def show(name: str, done: int, total: int) -> None:
        doing(f"ranking, {name or model}, {done:,} of {total:,} queries")

    with warnings_to_stderr():
        evaluation: Any = evaluate(
            first,
            clicks,
            titles,
            metrics,
            compare_with=opened,
            log=learned,
            parts=True,
            on_progress=show,
        )
    if evaluation.n_outside:
        note(
            f"{evaluation.n_outside:,} of {evaluation.n_clicked:,} clicked titles are not in "
            f"{evaluation.catalogue}: they "
            "count as missed"
        )
    if len(evaluation.queries) < _FEW_QUERIES:
        note(
            f"only {amount(len(evaluation.queries), 'query')}: figures and intervals are uncertain"
        )
    return evaluation


def lines(
    model: str,
    evaluation: "Evaluation",
    per_query: bool,
    as_json: bool,
    known: Mapping[str, Any],
) -> Iterator[str]:
    """The lines to print: a table, or one JSON object.

    model : the name of what was measured
    per_query : whether the figures of every query are printed too
    known : the result of `note_known_queries`, for the JSON
    """
    evaluations = {model: evaluation, **evaluation.rivals}
    differences = evaluation.differences
    if as_json:
        figures = _as_dict(evaluations, differences, evaluation.catalogue, per_query)
        yield json.dumps({**figures, **known}, indent=1)
        return
    yield (
        f"{amount(len(evaluation.queries), 'query')} against "
        f"{amount(evaluation.n_titles, 'title')} of {evaluation.catalogue}"
    )
    yield ""
    yield from aligned(_rows(evaluations))
    if differences:
        yield ""
        yield from aligned(_difference_rows(model, evaluation.metrics, differences))
        yield "in brackets: 95 % intervals of the paired bootstrap over the queries"
    yield from _kind_lines(model, evaluation)
    if per_query:
        yield ""
        yield from _query_lines(evaluations)


def _kind_lines(model: str, evaluation: "Evaluation") -> Iterator[str]:
    """The clicks by kind of query, the names of titles, and what a reader should know of both."""
    from sentemb.evaluation.kinds import mean_of

    kinds = evaluation.kinds
    if len(kinds) > 1:
        mean = mean_of(list(kinds))
        means = [] if mean is None else ["all"]
        yield ""
        yield "hit@1 / MRR@10 of held-out clicks, by the clicks that the log has for the query"
        rows = [
            ["", *(kind.name for kind in kinds), *means],
            ["queries", *(f"{kind.n_queries:,}" for kind in kinds), *("" for _ in means)],
        ]
        if mean is not None:
            shares = [f"{kind.share:.0%}" for kind in kinds]
            rows.append(["share of the next clicks", *shares, "100%"])
        for name in kinds[0].figures:
            figures = [kind.figures[name] for kind in kinds]
            figures += [] if mean is None else [mean[name]]
            rows.append([name or model, *(f"{each.hit:.3f} / {each.mrr:.3f}" for each in figures)])
        yield from aligned(rows)
    for kind in kinds:
        if kind.is_circular:
            yield (
                f"queries {kind.name}: the log has all clicks that are asked for, so the figures "
                "are circular; hold clicks out with `sentemb split --by both`"
            )
    if evaluation.written is not None:
        yield ""
        yield from _written_lines(evaluation.written)


def _written_lines(written: "WrittenQueries") -> Iterator[str]:
    (n_one, n_two), (first_one, first_two) = written.n_names, written.first
    yield (
        f"names: of {amount(n_one, 'word')} that one title has it is first for {first_one:.1%}, of "
        f"{n_two:,} pairs of words for {first_two:.1%}; nothing is found for {written.nothing:.1%}"
    )
    if written.letters is None:
        yield "random letters: nothing is refused, as no floor was safe to fit"
    else:
        yield f"random letters: nothing is found for {written.letters:.1%}"


def note_known_queries(
    path: str, judgments: "JudgedSet | ClickLog", log: str | None, learned: "ClickLog | None"
) -> dict[str, Any]:
    """Say how many of the queries are in the log of the training, or that nobody knows.

    The result has the numbers for JSON, under ``in_log``; it is empty without a log.
    """
    from sentemb.data.click_log import ClickLog
    from sentemb.data.seen_queries import in_log
    from sentemb.data.split_description import split_warning

    if learned is None:
        warning = split_warning(Path(path)) if isinstance(judgments, ClickLog) else None
        if warning is not None:
            note(warning)
        return {}
    known = in_log(judgments.queries, learned.queries)
    counts: dict[str, Any] = {"queries": int(known.sum())}
    of_clicks = ""
    if isinstance(judgments, ClickLog):
        clicks = judgments.clicks[known[judgments.query_index]].sum() / judgments.clicks.sum()
        counts["share_of_clicks"] = float(clicks)
        of_clicks = f", with {clicks:.1%} of the clicks,"
    note(
        f"{counts['queries']:,} of {known.size:,} queries{of_clicks} are also in {log}, in this or "
        "another spelling"
    )
    return {"in_log": counts}


def catalogue_of(
    name: str, model: object, path: str, catalogue: str | None, clicks: "ClickLog"
) -> "RankedTitles":
    """The titles to rank; a note says which they are if they are not given."""
    from sentemb.comparison.measuring import titles_to_rank
    from sentemb.search.index import Index

    if isinstance(model, Index) and catalogue is not None:
        raise click.UsageError(f"{name} has titles of its own; leave --catalogue out")
    titles = titles_to_rank(model, name, path, clicks, catalogue)
    if not titles.is_whole:
        note(
            f"without --catalogue only the {len(titles.titles):,} titles of {path} are ranked: the "
            "figures are higher than over a whole catalogue"
        )
    elif catalogue is None and not isinstance(model, Index):
        note(f"the catalogue is {titles.name}")
    return titles


def note_pairs(name: str, ranker: object, n_pairs: int) -> None:
    """Say that a pair model has many pairs to score, which takes a while."""
    from sentemb.models.pair_scorer import PairScorer

    if isinstance(ranker, PairScorer) and n_pairs > _MANY_PAIRS:
        note(f"{name}: a pair model; {n_pairs:,} pairs to score")


def shown(metrics: Sequence[str]) -> list[str]:
    """The names of metrics as tables have them."""
    return [name.replace("ndcg", "NDCG").replace("mrr", "MRR") for name in metrics]


def _rows(evaluations: "dict[str, Evaluation]") -> Iterator[list[str]]:
    yield ["", *shown(next(iter(evaluations.values())).metrics)]
    for name, evaluation in evaluations.items():
        yield [name, *(f"{value:.3f}" for value in evaluation.mean)]


def _difference_rows(
    name: str, metrics: Sequence[str], differences: "dict[str, list[Difference]]"
) -> Iterator[list[str]]:
    yield [f"{name} minus", *differences]
    for metric, each in zip(shown(metrics), zip(*differences.values(), strict=True), strict=True):
        yield [
            metric,
            *(
                f"{difference.mean:+.3f} ({difference.low:+.3f} to {difference.high:+.3f})"
                for difference in each
            ),
        ]


def _query_lines(evaluations: "dict[str, Evaluation]") -> Iterator[str]:
    first = next(iter(evaluations.values()))
    rows = [
        [name, *(f"{value:.3f}" for value in evaluation.values[q])]
        for q in range(len(first.queries))
        for name, evaluation in evaluations.items()
    ]
    head, *lines = aligned([["", *shown(first.metrics)], *rows])
    yield f"{head}  query"
    for number, line in enumerate(lines):
        yield f"{line}  {visible(first.queries[number // len(evaluations)])}"


def _as_dict(
    evaluations: "dict[str, Evaluation]",
    differences: "dict[str, list[Difference]]",
    titles_name: str | None,
    per_query: bool,
) -> dict[str, Any]:
    (name, first), *_ = evaluations.items()

    def by_metric(values: Any) -> dict[str, Any]:
        return dict(zip(first.metrics, values, strict=True))

    result: dict[str, Any] = {
        "queries": len(first.queries),
        "catalogue": titles_name,
        "titles": first.n_titles,
        "clicked_titles": first.n_clicked,
        "clicked_titles_outside": first.n_outside,
        "model": name,
        "systems": {
            name: by_metric(evaluation.mean.tolist()) for name, evaluation in evaluations.items()
        },
        "model_minus": {
            name: by_metric([vars(difference) for difference in each])
            for name, each in differences.items()
        },
    }
    if first.kinds:
        result["kinds"] = [kind.as_dict(name) for kind in first.kinds]
    if first.written is not None:
        result["written"] = first.written.as_dict()
    if per_query:
        result["per_query"] = [
            {
                "query": query,
                "systems": {
                    name: by_metric(evaluation.values[q].tolist())
                    for name, evaluation in evaluations.items()
                },
            }
            for q, query in enumerate(first.queries)
        ]
    return result
