"""``sentemb prepare``: a click log as a folder that training maps into memory."""

import time
from typing import Any

import click

from sentemb.cli.common import duration
from sentemb.cli.options import Written, option, written_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import summarise
from sentemb.system.terminal import ProgressLine
from sentemb.text.words import NEW, SPLITTINGS


@new_command("prepare")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@written_option(Written(is_folder=True), "Folder of the prepared log.", metavar="FOLDER")
@option(
    "--splitting",
    type=click.Choice(list(SPLITTINGS)),
    default=NEW,
    show_default=True,
    help="How the training will split texts into words: its own --splitting, or that of the model "
    "in --start-from.",
)
@option(
    "--skip-bad-lines",
    is_flag=True,
    help="Skip and count malformed lines of the log instead of stopping at the first.",
)
def command(
    logs: tuple[str, ...], output: str, splitting: str, skip_bad_lines: bool, force: bool
) -> None:
    """Prepare a click log that is larger than memory.

    LOG is a click log as for `sentemb train`; - is standard input. Several files are read as one.
    Of a folder all logs are read, in the order of their names: files that end in .tsv, .tsv.gz,
    .jsonl, .jsonl.gz or .parquet. Parquet has the columns query, title and, optionally, clicks, and
    needs the extra sentemb[parquet].

    `sentemb train FOLDER` maps the arrays of the folder into memory page by page, and trains the
    same model as on LOG. Preparing takes 30 to 50 bytes of memory for each distinct query, title
    and pair.

    The folder serves every model with two towers. Pair models and all other commands read LOG. To
    measure on held-out clicks, split the log first.

    \b
    sentemb prepare clicks.tsv.gz -o prepared/
    sentemb train prepared/ -o model/
    sentemb prepare 2025.parquet 2026/ -o prepared/
    sentemb split clicks.tsv.gz -o log/
    sentemb prepare log/pairs.tsv -o prepared/
    sentemb train prepared/ --dev log/dev.tsv -o model/
    """
    from sentemb.training.batches.preparing import prepare_log

    line = ProgressLine()
    shown = _Shown(line)
    try:
        prepared = prepare_log(
            logs,
            output,
            splitting=splitting,
            skip_bad_lines=skip_bad_lines,
            force=force,
            on_note=line.note,
            on_progress=shown.show,
        )
    finally:
        line.close()
    counts = {
        "pairs": len(prepared.clicks),
        "queries": len(prepared.queries),
        "titles": len(prepared.titles),
    }
    shown_counts = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    summarise(
        output, counts, f"{output}: {shown_counts}", f"next: sentemb train {output} -o model/"
    )


class _Shown:
    """Draws how far the preparation is, and how long the stage will take."""

    def __init__(self, line: ProgressLine) -> None:
        self._line, self._stage, self._began = line, "", 0.0

    def show(self, progress: Any) -> None:
        if progress.stage != self._stage:
            self._stage, self._began = progress.stage, time.monotonic()
        if not self._line.is_due:
            return
        parts = [f"{progress.stage}: {progress.done:,} {progress.unit}"]
        if progress.share:
            left = (time.monotonic() - self._began) * (1 / progress.share - 1)
            parts.append(f"{progress.share:.0%}, {duration(max(0, left))} left")
        self._line.draw(", ".join(parts))
