"""``sentemb train``: a model from a click log."""

import shutil
import sys
import time

import click

from sentemb.cli.program import draw, is_terminal, note, say
from sentemb.models import ENCODERS
from sentemb.training.settings import HARD_NEGATIVES, PRESETS, Settings

REDRAW_SECONDS = 0.2


def _all_or_number(ctx, parameter, value):
    if value is None or value == "all":
        return value
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter("give a whole number, or all") from None


def _setting(flag, text, **kind):
    """An option for a field of `Settings`: unset unless given, so that presets can set it."""
    default = Settings.__dataclass_fields__[flag[2:].replace("-", "_")].default
    if default is not None and not kind.get("is_flag"):
        text = f"{text} [default: {default}]"
    return click.option(flag, default=None, help=text, **kind)


@click.command("train")
@click.argument("pairs", type=click.Path(allow_dash=True))
@click.option("-o", "--output", required=True, type=click.Path(), help="Folder of the model.")
@click.option("--dev", type=click.Path(), help="Judged set, measured after every epoch.")
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help="paper: what the paper used; large: a wider model for some minutes of training.",
)
@_setting("--model", "Encoder.", type=click.Choice(list(ENCODERS)))
@_setting("--cells", "Cells in each direction, 1 to 1000.", type=int)
@_setting("--forget-gate", "LSTM with forget gate.", is_flag=True)
@_setting(
    "--peepholes",
    "Connections from the cell to its gates.",
    type=click.Choice(["none", "diagonal", "full"]),
)
@_setting(
    "--bag",
    "Numbers of a linear bag of words beside the last output of lstm, bilstm and rnn; 0 for none.",
    type=int,
)
@_setting("--hidden", "Hidden layer of dssm and clsm. [default: 288]", type=int)
@_setting("--window", "Words under clsm's convolution: 1, 3 or 5. [default: 3]", type=int)
@_setting("--shared-towers", "One tower for queries and titles.", is_flag=True)
@_setting(
    "--word-features",
    "Words that stand so often in the log are features beside their trigrams; 0 for none.",
    type=int,
)
@_setting("--epochs", "Times through the log. [default: 10 with adam, else 30]", type=int)
@_setting("--batch-size", "Pairs of one update.", type=int)
@_setting(
    "--negatives",
    "Where unclicked titles come from: the mini-batch, all titles, or the titles that the log says "
    "were skipped.",
    type=click.Choice(["batch", "corpus", "log"]),
)
@_setting(
    "--n-negatives",
    "Unclicked titles of each pair. [default: all with batch, else 4]",
    callback=_all_or_number,
    metavar="N|all",
)
@_setting(
    "--hard-negatives",
    "Titles a pair that the model itself ranks high, unclicked, beside those of the mini-batch; 0 "
    f"for none. [default: {HARD_NEGATIVES} with all titles of the batch]",
    type=int,
)
@_setting("--gamma", "Smoothing factor of the softmax.", type=float)
@_setting("--optimiser", "Adam, or the paper's.", type=click.Choice(["adam", "nesterov"]))
@_setting(
    "--learning-rate",
    "For the mean loss of a mini-batch. [default: 0.005 with adam, else 0.1]",
    type=float,
)
@_setting(
    "--decay",
    "Of the learning rate. [default: linear with adam, else none]",
    type=click.Choice(["linear", "none"]),
)
@_setting("--momentum", "Of most updates, with nesterov.", type=float)
@_setting("--edge-momentum", "Of the first and last 2 % of updates, with nesterov.", type=float)
@_setting("--max-norm", "A tower's longest gradient.", type=float)
@_setting("--truncate", "Steps through which errors travel back. [default: all]", type=int)
@_setting(
    "--truncation",
    "Beyond them: stop, or go on along the cell.",
    type=click.Choice(["window", "cec"]),
)
@_setting("--patience", "Stop after so many epochs without a better dev figure.", type=int)
@_setting("--seed", "Of everything random.", type=int)
@click.option("--threads", type=int, help="The result is the same for any number. [default: all]")
@click.option("--resume", is_flag=True, help="Go on from the last checkpoint.")
@click.option("--force", is_flag=True, help="Replace a model that is there.")
@click.option("--skip-bad-lines", is_flag=True, help="Count bad lines instead of stopping.")
@click.option(
    "--checkpoint-seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="Time between checkpoints.",
)
def command(pairs, output, checkpoint_seconds, **options):
    """Train a model on a click log.

    PAIRS is a click log: lines of query, tab, clicked title and, if you like, tab, clicks; .gz and
    - (standard input) work too; or JSON lines with "query", "clicked" and "skipped". With --dev the
    model of the best epoch is kept, else that of the last.

    \b
    sentemb train pairs.tsv --dev dev/ -o model/
    """
    from sentemb.storage.history import best_epoch
    from sentemb.training.stopping import Interrupted
    from sentemb.training.trainer import train

    began = time.monotonic()
    show = _ProgressLine()
    given = {name: value for name, value in options.items() if value is not None}
    try:
        model = train(
            pairs,
            output=output,
            checkpoint_seconds=checkpoint_seconds,
            on_progress=show,
            on_note=show.note,
            **given,
        )
    except Interrupted as interrupted:
        show.note(str(interrupted))
        sys.exit(128 + interrupted.signal)
    finally:
        show.close()
    last = model.history[-1]
    say(
        f"{output}: {model.encoder.name}, {model.encoder.cells} cells, "
        f"{model.vocabulary}, {model.training['pairs']:,} pairs, "
        f"{last['epoch']} epoch{'s' if last['epoch'] > 1 else ''}, loss {last['loss']:.4f}, "
        f"{time.monotonic() - began:.0f} s"
    )
    best = best_epoch(model.history)
    if best is not None:
        figures = ", ".join(f"{name} {value:.3f}" for name, value in best["dev"].items())
        say(f"kept epoch {best['epoch']}, on dev: {figures}")
    say(f'next: sentemb score {output} "a query" "a title"')


class _ProgressLine:
    """Progress on stderr: one line that is redrawn on a terminal, one line an epoch elsewhere."""

    def __init__(self):
        self._terminal = is_terminal()
        self._drawn = 0.0
        self._open = False

    def __call__(self, progress):
        now = time.monotonic()
        ended = progress.step == progress.steps
        if self._terminal and (ended or now - self._drawn >= REDRAW_SECONDS):
            self._drawn = now
            # A longer line would wrap, and could not be drawn over.
            columns = shutil.get_terminal_size().columns
            draw(f"\r\x1b[K{_describe(progress)[: columns - 1]}")
            self._open = True
        if progress.epoch_ended:
            self.note(_describe(progress))

    def note(self, message):
        """A line that stays."""
        self.close()
        note(message)

    def close(self):
        if self._open:
            draw("\r\x1b[K")
            self._open = False


def _describe(progress):
    parts = [f"epoch {progress.epoch}/{progress.epochs}"]
    if not progress.epoch_ended:
        parts.append(f"step {progress.step}/{progress.steps}")
    parts.append(f"loss {progress.loss:.4f}")
    if progress.dev:
        parts += [f"{name} {value:.3f}" for name, value in progress.dev.items()]
    parts.append(f"{progress.pairs_per_second:,.0f} pairs/s")
    parts.append(f"{_duration(progress.seconds_left)} left")
    return ", ".join(parts)


def _duration(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
