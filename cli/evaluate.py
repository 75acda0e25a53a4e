"""``sentemb evaluate``: NDCG of a model or of a run."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import click

from sentemb.cli.options import Integers, json_option, option, per_query_option
from sentemb.cli.options import command as new_command
from sentemb.tables import visible

_GAINS = {"exponential": "2^grade - 1", "linear": "grade"}
_TIES = "score descending, then title id descending, as trec_eval"


@new_command("evaluate")
@click.argument("model_or_run", type=click.Path())
@click.argument("judged", type=click.Path())
@option(
    "--cutoffs",
    type=Integers(),
    default="1,3,10",
    show_default=True,
    help="Ranks k of NDCG@k.",
)
@option(
    "--gain",
    type=click.Choice(list(_GAINS)),
    default="exponential",
    show_default=True,
    help="Gain of a grade: 2^grade - 1 (exponential), or the grade itself as in trec_eval "
    "(linear).",
)
@per_query_option("Print one line per query as well.")
@json_option(instead_of="a table")
def command(
    model_or_run: Any,
    judged: str,
    cutoffs: tuple[int, ...],
    gain: str,
    per_query: bool,
    as_json: bool,
) -> None:
    """Measure NDCG of a model or a run on a judged set.

    MODEL_OR_RUN is the folder of a model, which ranks the judged titles of each query, or a TREC
    run from this or any other program: a file, or - for standard input. JUDGED is a folder with
    queries.tsv, docs.tsv and qrels.txt.

    \b
    sentemb evaluate model/ test/
    """
    from sentemb.data.judged_set import read_judged_set
    from sentemb.data.lines import write_lines
    from sentemb.errors import SentembError
    from sentemb.evaluation.evaluate import evaluate_model
    from sentemb.evaluation.metrics import ndcg
    from sentemb.evaluation.trec import read_run
    from sentemb.sentence_encoder import SentenceEncoder
    from sentemb.system.files import is_folder, path_of, status

    judgments = read_judged_set(judged)
    model_or_run = path_of(model_or_run)
    if str(model_or_run) != "-" and status(model_or_run) is None:
        raise SentembError(f"{model_or_run}: no such model or run; give a folder, a file or -")
    if is_folder(model_or_run):
        model = SentenceEncoder.from_pretrained(model_or_run)
        result = evaluate_model(model, judgments, cutoffs, gain)
    else:
        result = ndcg(judgments, read_run(model_or_run), cutoffs, gain)
    if as_json:
        lines = [json.dumps(_as_dict(result, judgments.query_ids, per_query), indent=1)]
    else:
        lines = list(_table(result, judgments.query_ids if per_query else []))
    write_lines("-", lines)


def _as_dict(result: Any, query_ids: Sequence[str], per_query: bool) -> dict[str, Any]:
    names = [f"ndcg@{cutoff}" for cutoff in result.cutoffs]
    found = dict(zip(names, result.mean.tolist(), strict=True))
    found |= {
        "gain": result.gain,
        "ties": _TIES,
        "queries": {
            "evaluated": result.n_evaluated,
            "without_relevant": result.n_without_relevant,
            "missing": result.n_missing,
            "unknown": result.n_unknown,
        },
    }
    if per_query:
        found["per_query"] = {
            id: {
                name: None if math.isnan(value) else value
                for name, value in zip(names, values, strict=True)
            }
            for id, values in zip(query_ids, result.values.tolist(), strict=True)
        }
    return found


def _table(result: Any, query_ids: Sequence[str]) -> Iterator[str]:
    """The lines of the table: queries, their mean, and what the numbers mean."""
    query_ids = list(map(visible, query_ids))
    width = max(len(id) for id in ("mean", *query_ids))
    names = [f"NDCG@{cutoff}" for cutoff in result.cutoffs]
    yield " ".join([" " * width, *(f"{name:>8}" for name in names)])
    for id, values in zip(
        (*query_ids, "mean"), (*result.values[: len(query_ids)], result.mean), strict=True
    ):
        numbers = ("-" if math.isnan(value) else f"{value:.4f}" for value in values)
        yield " ".join(
            [
                id.ljust(width),
                *(f"{n:>{max(8, len(m))}}" for n, m in zip(numbers, names, strict=True)),
            ]
        )
    yield ""
    yield f"gain       {result.gain}, {_GAINS[result.gain]}; discount log2(rank + 1)"
    yield f"ties       {_TIES}"
    yield "unjudged   titles count as grade 0 and keep their rank"
    yield f"evaluated  {result.n_evaluated} queries, which the mean is over"
    yield f"left out   {result.n_without_relevant} queries without a relevant title"
    yield f"missing    {result.n_missing} evaluated queries that are not in the run: they count 0"
    yield f"unknown    {result.n_unknown} queries of the run that are not judged: they are ignored"
