"""``sentemb evaluate``: a model or a run on a judged set, held-out clicks or labelled pairs."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

from sentemb.cli import held_out as held_out_clicks
from sentemb.cli.common import searches_of
from sentemb.cli.options import (
    Names,
    cosine_option,
    json_option,
    option,
    per_query_option,
    records_option,
    refuse,
    since_option,
    threads_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import hints, note
from sentemb.comparison.baselines.clicked_queries import BASELINES
from sentemb.evaluation.measures import JUDGED_METRICS, METRICS
from sentemb.system.amounts import amount
from sentemb.system.tables import visible
from sentemb.system.terminal import working

_GAINS = {"exponential": "2^grade - 1", "linear": "grade"}
_TIES = "score descending, then title id descending, as trec_eval"


@new_command("evaluate")
@click.argument("model_or_run", type=click.Path())
@click.argument("held_out", metavar="JUDGED|CLICKS|LABELLED", type=click.Path(), required=False)
@records_option()
@since_option()
@option(
    "--metrics",
    type=Names(),
    help="Judged sets: ndcg@k, separated by commas. Held-out clicks: also hit@k, mrr@k and "
    f"recall@k. [default: {','.join(JUDGED_METRICS)}; for held-out clicks "
    f"{','.join(METRICS)}]",
)
@option(
    "--gain",
    type=click.Choice(list(_GAINS)),
    help="Judged sets: gain of a grade, 2^grade - 1 (exponential), or the grade itself as in "
    "trec_eval (linear). [default: exponential]",
)
@option(
    "--catalogue",
    metavar="TITLES",
    type=click.Path(),
    help="Held-out clicks: file of lines id<TAB>title, all of which are ranked. [default: "
    "titles.tsv next to CLICKS; without it the titles of CLICKS]",
)
@option(
    "--compare-with",
    multiple=True,
    metavar=f"[{'|'.join(BASELINES)}|MODEL|INDEX]",
    help="Held-out clicks: measure this too, and print the difference with its 95 % interval. "
    "-stem reduces English words to their stems, -clicks adds to each title the queries clicked on "
    "it in --log. letters-clicks compares pieces of 2 to 4 letters with the title or a query "
    "clicked on it. Can be given several times.",
)
@option(
    "--log",
    metavar="LOG",
    type=click.Path(),
    help="Click log that the model was trained on: says how many of the queries are in it, in any "
    "spelling. bm25-clicks and letters-clicks learn from it.",
)
@per_query_option("Print one line per query as well.")
@option(
    "--labels",
    is_flag=True,
    help="Measure accuracy and F1 on labelled pairs instead of NDCG on a judged set.",
)
@option(
    "--threshold",
    metavar="NUMBER|DEV",
    help="With --labels: pairs with a higher score get label 1. A number, or a file of labelled "
    "pairs on which the most accurate threshold is chosen. [default: 0 for a model trained on "
    "labels]",
)
@cosine_option()
@threads_option()
@json_option(instead_of="a table")
def command(
    model_or_run: str,
    held_out: str | None,
    record: tuple[str, ...],
    since: datetime | None,
    metrics: list[str] | None,
    gain: str | None,
    catalogue: str | None,
    compare_with: tuple[str, ...],
    log: str | None,
    per_query: bool,
    labels: bool,
    threshold: str | None,
    cosine: bool,
    as_json: bool,
) -> None:
    """Measure rankings on judged sets or held-out clicks, or accuracy on labels.

    MODEL_OR_RUN is the folder of a model or of an index, or a TREC run from this or any other
    program: a file, or - for standard input.

    JUDGED is a folder with queries.tsv, docs.tsv and qrels.txt. The judged titles of each query are
    ranked, or taken from the run, and NDCG is measured.

    CLICKS is a file of held-out clicks, as `sentemb split` writes it. For each query the model
    ranks the whole catalogue; the titles clicked for it are right, all others wrong. In place of a
    model an index can be given: its titles are ranked as `sentemb search` ranks them.

    A model folder with a ranker is measured as the ranker, then as each of its parts alone.

    With --record in place of these, MODEL_OR_RUN is an index. For the title that it puts first,
    recorded searches say how often it was clicked, a lower position counting less. Searches without
    a click count, which held-out clicks leave out.

    With --labels, LABELLED is a file of label<TAB>text<TAB>text lines with labels 1 and 0, and a
    model is needed.

    \b
    sentemb evaluate model/ test/
    sentemb evaluate model/ log/test.tsv --compare-with bm25
    sentemb evaluate index/ log/test.tsv --compare-with model/
    sentemb evaluate index/ --record searches.sqlite --since 2026-11-01
    sentemb evaluate model/ test.tsv --labels --threshold dev.tsv
    """
    from sentemb.analysis.next_step import next_step
    from sentemb.comparison.measuring import cutoffs_of
    from sentemb.data.click_log import read_click_log
    from sentemb.data.held_out_clicks import read_held_out
    from sentemb.data.judged_set import JudgedSet
    from sentemb.data.lines import write_lines
    from sentemb.errors import SentembError
    from sentemb.system.files import is_folder

    of_clicks = {"--catalogue": catalogue, "--compare-with": compare_with or None}
    if (held_out is None) != bool(record):
        raise click.UsageError("give either JUDGED|CLICKS|LABELLED or --record")
    if held_out is None:
        options: dict[str, Any] = {
            "--metrics": metrics,
            "--gain": gain,
            "--log": log,
            "--threshold": threshold,
        }
        flags = {"--per-query": per_query, "--labels": labels, "--cosine": cosine}
        options |= {name: True for name, is_given in flags.items() if is_given}
        refuse({**of_clicks, **options}, "--record")
        with working("ranking"):
            printed = _recorded(model_or_run, record, since, as_json)
        write_lines("-", printed)
        return
    with working("ranking") as doing:
        if labels:
            switches = {
                "--metrics": metrics,
                "--gain": gain,
                "--log": log,
                "--per-query": per_query or None,
                "--cosine": cosine or None,
            }
            refuse({**of_clicks, **switches}, "--labels")
            lines: Iterable[str] = _labelled(model_or_run, held_out, threshold, as_json)
        elif threshold is not None:
            raise click.UsageError("--threshold needs --labels")
        else:
            judgments = read_held_out(held_out)
            learned = None if log is None else read_click_log(log)
            known = held_out_clicks.note_known_queries(held_out, judgments, log, learned)
            if isinstance(judgments, JudgedSet):
                refuse(of_clicks, "a judged set; give a file of held-out clicks")
                try:
                    cutoffs_of(metrics or JUDGED_METRICS)
                except SentembError as error:
                    raise click.UsageError(f"--metrics {error}") from None
                chosen = metrics, gain or "exponential", cosine
                lines = _judged(model_or_run, judgments, *chosen, per_query, as_json, known)
            else:
                refuse({"--gain": gain}, "held-out clicks")
                _check_model(model_or_run, held_out)
                needs_log = [name for name in compare_with if name.endswith("-clicks")]
                if needs_log and learned is None:
                    raise click.UsageError(
                        f"--compare-with {needs_log[0]} needs --log, the log of the training"
                    )
                models = model_or_run, *compare_with
                asked = catalogue, metrics, learned, cosine, doing
                evaluation = held_out_clicks.evaluated(models, held_out, judgments, *asked)
                shown = per_query, as_json, known
                lines = held_out_clicks.lines(model_or_run, evaluation, *shown)
        printed = list(lines)
    write_lines("-", printed)
    if not (as_json or labels) and is_folder(model_or_run):
        for hint in hints(f"next: {next_step(model_or_run, titles=catalogue)}"):
            note(hint)


def _recorded(
    index: str, record: Sequence[str], since: datetime | None, as_json: bool
) -> list[str]:
    from sentemb.search.index import Index
    from sentemb.search.recorded_outcomes import evaluate_record

    result = evaluate_record(Index.open(index), searches_of(record, since))
    return [json.dumps(result.as_dict(), indent=1) if as_json else str(result)]


def _check_model(model: str, clicks: str) -> None:
    from sentemb.errors import SentembError
    from sentemb.system.files import is_folder, place_name, status

    if model == "-" or (status(model) is not None and not is_folder(model)):
        raise SentembError(
            f"{place_name(model)}: a run needs a judged set, and {clicks} is a file of held-out "
            "clicks; give the folder of a model"
        )


# -- judged sets ------------------------------------------------------------------------------


def _judged(
    model_or_run: str,
    judgments: Any,
    metrics: Sequence[str] | None,
    gain: str,
    cosine: bool,
    per_query: bool,
    as_json: bool,
    known: Mapping[str, Any],
) -> list[str]:
    from sentemb.comparison.measuring import evaluate
    from sentemb.system.files import is_folder

    if not is_folder(model_or_run):
        refuse({"--cosine": cosine or None}, "a run")
    result: Any = evaluate(
        model_or_run, judgments, metrics=metrics, gain=gain, parts=True, cosine=cosine
    )
    if as_json:
        figures = _as_dict(result, result.parts, judgments.query_ids, per_query)
        return [json.dumps({**figures, **known}, indent=1)]
    return list(_table(result, result.parts, judgments.query_ids if per_query else []))


def _as_dict(
    result: Any, alone: Mapping[str, Any], query_ids: Sequence[str], per_query: bool
) -> dict[str, Any]:
    """The figures of a ranking and, by name, of the parts of a ranker."""
    names = [f"ndcg@{cutoff}" for cutoff in result.cutoffs]
    figures: dict[str, Any] = dict(zip(names, result.mean.tolist(), strict=True))
    if alone:
        figures["parts"] = {
            name: dict(zip(names, part.mean.tolist(), strict=True)) for name, part in alone.items()
        }
    figures |= {
        "gain": result.gain,
        "ties": _TIES,
        "queries": {
            "evaluated": result.n_evaluated,
            "without_relevant": result.n_without_relevant,
            "missing": result.n_missing,
            "unknown": result.n_unknown,
            "one_grade": result.n_equal,
        },
    }
    if per_query:
        figures["per_query"] = {
            id: {
                name: None if math.isnan(value) else value
                for name, value in zip(names, values, strict=True)
            }
            for id, values in zip(query_ids, result.values.tolist(), strict=True)
        }
    return figures


def _table(result: Any, alone: Mapping[str, Any], query_ids: Sequence[str]) -> Iterator[str]:
    """The lines of the table: queries, their mean, and what the numbers mean.

    With the parts of a ranker, the mean is that of the ranker and those of the parts follow.
    """
    query_ids = list(map(visible, query_ids))
    means = {"ranker" if alone else "mean": result.mean}
    means |= {name: part.mean for name, part in alone.items()}
    width = max(len(id) for id in (*means, *query_ids))
    names = [f"NDCG@{cutoff}" for cutoff in result.cutoffs]
    yield " ".join([" " * width, *(f"{name:>8}" for name in names)])
    rows = (*result.values[: len(query_ids)], *means.values())
    for id, values in zip((*query_ids, *means), rows, strict=True):
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
    yield f"evaluated  {amount(result.n_evaluated, 'query')}, which the mean is over"
    if result.n_equal:
        yield (
            f"one grade  {result.n_equal} of them have titles of one grade only: every order of "
            "these is perfect"
        )
    yield f"left out   {amount(result.n_without_relevant, 'query')} without a relevant title"
    yield f"missing    {amount(result.n_missing, 'evaluated query')} not in the run, counted as 0"
    yield f"unknown    {amount(result.n_unknown, 'query')} of the run without judgments, ignored"


# -- labelled pairs ---------------------------------------------------------------------------


def _labelled(model_dir: str, labelled: str, threshold: str | None, as_json: bool) -> list[str]:
    from sentemb.data.labelled_pairs import read_labelled_pairs
    from sentemb.evaluation.binary import count_predictions, labelled_scores
    from sentemb.models.loading import load

    pairs = read_labelled_pairs(labelled)
    model = load(model_dir)
    chosen, source = _threshold(threshold, model, model_dir)
    result = count_predictions(labelled_scores(model, pairs), pairs.labels, chosen)
    if as_json:
        return [json.dumps(_as_binary_dict(result, source), indent=1)]
    return list(_binary_table(result, source))


def _threshold(text: str | None, model: Any, model_dir: str) -> tuple[float, str | None]:
    """The threshold, and the file that it was chosen on, if any."""
    from sentemb.data.labelled_pairs import read_labelled_pairs
    from sentemb.errors import SentembError
    from sentemb.evaluation.binary import best_threshold, labelled_scores
    from sentemb.training.objectives.objective_options import LOGISTIC

    if text is None:
        # The score is the logarithm of the odds of label 1 only where the logistic loss made it so.
        if model.training.get("objective") != LOGISTIC:
            raise SentembError(
                f"{model_dir}: was not trained on labels, so no score separates them; give "
                "--threshold with a number or a file of labelled pairs to choose it on"
            )
        return 0.0, None
    try:
        number = float(text)
    except ValueError:
        dev = read_labelled_pairs(text)
        dev.check_both_labels()
        return best_threshold(labelled_scores(model, dev), dev.labels), text
    if not math.isfinite(number):
        raise click.UsageError(f"--threshold {text}: give a finite number or a file")
    return number, None


def _as_binary_dict(result: Any, source: str | None) -> dict[str, Any]:
    figures = {name: getattr(result, name) for name in ("accuracy", "f1", "precision", "recall")}
    # JSON has no NaN.
    finite = {name: None if math.isnan(value) else value for name, value in figures.items()}
    return finite | {
        "accuracy_interval": list(result.accuracy_interval),
        "majority": result.majority,
        "threshold": result.threshold,
        "threshold_from": source,
        "counts": {
            "pairs": result.n_pairs,
            "true_positives": result.true_positives,
            "false_positives": result.false_positives,
            "true_negatives": result.true_negatives,
            "false_negatives": result.false_negatives,
        },
    }


def _binary_table(result: Any, source: str | None) -> Iterator[str]:
    low, high = result.accuracy_interval
    yield f"accuracy   {result.accuracy:.4f}, 95 % interval {low:.4f} to {high:.4f}"
    yield f"F1         {_figure(result.f1)} of label 1"
    yield f"precision  {_figure(result.precision)}"
    yield f"recall     {_figure(result.recall)}"
    yield f"majority   {result.majority:.4f} accuracy with the more frequent label for every pair"
    yield ""
    where = "" if source is None else f", the most accurate on {visible(source)}"
    yield f"threshold  {result.threshold:.6g}{where}; a higher score means label 1"
    yield f"pairs      {result.n_pairs}, of which {result.n_positive} have label 1"
    yield f"label 1    {result.true_positives} right, {result.false_negatives} wrong"
    yield f"label 0    {result.true_negatives} right, {result.false_positives} wrong"


def _figure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
