"""``sentemb train``: a model from a click log."""

import sys
import time
from typing import Any

import click

from sentemb.cli.common import ProgressLine, duration
from sentemb.cli.options import command as new_command
from sentemb.cli.options import given, option, option_of, threads_option
from sentemb.cli.program import say
from sentemb.hyperparameters import MODEL, RUN
from sentemb.models.registry import SHARED_TOWERS
from sentemb.training.settings import HYPERPARAMETERS, PRESETS

# A model to start from may switch these on.
_OFF = {SHARED_TOWERS.name: "--separate-towers"}


def _settings(function: Any) -> Any:
    """``function`` with an option for every hyper-parameter."""
    for declared in reversed(HYPERPARAMETERS):
        function = option_of(declared, off=_OFF.get(declared.name, ""))(function)
    return function


@new_command("train")
@click.argument("pairs", type=click.Path(allow_dash=True))
@option(
    "--start-from",
    "--init",
    "start_from",
    type=click.Path(),
    metavar="MODEL_DIR",
    help="Start from the weights and the vocabulary of this model; --model and the shape default "
    "to its own. A bag can start any other model, which takes its rows as word vectors. "
    "--word-features does not apply.",
    group=MODEL,
)
@option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help="Start from other defaults: paper is what the paper used, large a wider model that takes "
    "a few minutes to train.",
    group=MODEL,
)
@option(
    "-o",
    "--output",
    required=True,
    type=click.Path(),
    help="Folder of the model.",
    group=RUN,
)
@option(
    "--dev",
    type=click.Path(),
    help="Judged set on which NDCG is measured after every epoch.",
    group=RUN,
)
@_settings
@threads_option(group=RUN)
@option("--resume", is_flag=True, help="Continue from the last checkpoint.", group=RUN)
@option("--force", is_flag=True, help="Replace the model in the output folder.", group=RUN)
@option(
    "--skip-bad-lines",
    is_flag=True,
    help="Skip and count malformed lines of the log instead of stopping at the first.",
    group=RUN,
)
@option(
    "--checkpoint-seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="Seconds between checkpoints.",
    group=RUN,
)
def command(pairs: str, output: str, checkpoint_seconds: float, **options: Any) -> None:
    """Train a model on a click log.

    PAIRS is a click log with one line per pair: query, tab, clicked title and, optionally, another
    tab and the number of clicks. It may also be JSON lines with "query", "clicked" and "skipped".
    Files that end in .gz are unpacked; - is standard input. With --dev the model of the best epoch
    is kept, otherwise that of the last epoch.

    \b
    sentemb train pairs.tsv --dev dev/ -o model/
    """
    from sentemb.training.stopping import Interrupted
    from sentemb.training.trainer import train

    began = time.monotonic()
    line = ProgressLine()
    try:
        model = train(
            pairs,
            output=output,
            checkpoint_seconds=checkpoint_seconds,
            on_progress=lambda progress: _show(progress, line),
            on_note=line.note,
            **given(options),
        )
    except Interrupted as interrupted:
        line.note(str(interrupted))
        sys.exit(128 + interrupted.signal)
    finally:
        line.close()
    _summarise(model, output, time.monotonic() - began)


def _summarise(model: Any, output: str, seconds: float) -> None:
    from sentemb.storage.history import best_epoch

    last = model.history[-1]
    say(
        f"{output}: {model.encoder.name}, {model.encoder.cells} cells, "
        f"{model.vocabulary}, {model.training['pairs']:,} pairs, "
        f"{last['epoch']} epoch{'s' if last['epoch'] > 1 else ''}, loss {last['loss']:.4f}, "
        f"{seconds:.0f} s"
    )
    best = best_epoch(model.history)
    if best is not None:
        figures = ", ".join(f"{name} {value:.3f}" for name, value in best["dev"].items())
        say(f"kept epoch {best['epoch']}, on dev: {figures}")
    say(f'next: sentemb score {output} "a query" "a title"')


def _show(progress: Any, line: ProgressLine) -> None:
    """One line that is redrawn on a terminal; one line per epoch elsewhere."""
    if line.is_due or progress.step == progress.steps:
        line.draw(_describe(progress))
    if progress.epoch_ended:
        line.note(_describe(progress))


def _describe(progress: Any) -> str:
    parts = [f"epoch {progress.epoch}/{progress.epochs}"]
    if not progress.epoch_ended:
        parts.append(f"step {progress.step}/{progress.steps}")
    parts.append(f"loss {progress.loss:.4f}")
    if progress.dev:
        parts += [f"{name} {value:.3f}" for name, value in progress.dev.items()]
    parts.append(f"{progress.pairs_per_second:,.0f} pairs/s")
    parts.append(f"{duration(progress.seconds_left)} left")
    return ", ".join(parts)
