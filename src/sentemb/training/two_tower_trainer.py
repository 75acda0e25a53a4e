"""From a click log to two towers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sentemb.data.click_log import Clicks
from sentemb.errors import SentembError
from sentemb.objectives.options import HINGE
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.training.corpus import Corpus
from sentemb.training.dev import DevPlan, DevSource, check_patience
from sentemb.training.identity import Identity
from sentemb.training.progress import Progress
from sentemb.training.run import Run, read_log
from sentemb.training.settings import Settings
from sentemb.training.start import Start
from sentemb.training.two_tower_task import TwoTowerTask

# How near to twice the margin the loss of an epoch is when all texts are alike.
_COLLAPSED = 0.01


def train_two_towers(
    pairs: Clicks,
    dev: DevSource | None,
    start_from: AnyPath | SentenceEncoder | None,
    preset: str | None,
    skip_bad_lines: bool,
    settings: dict[str, Any],
    run: Run,
) -> SentenceEncoder:
    """Train two towers; `sentemb.train` describes parameters and errors."""
    start = None if start_from is None else Start.of(start_from)
    if start is not None:
        settings = start.settings(preset, settings)
    chosen = Settings.of(preset, **settings)
    run.check(start_from)
    check_patience(chosen.patience, dev)
    plan = DevPlan.of(dev)
    with Workers(run.threads) as workers:
        # The log itself is not kept: it takes several times the memory of the corpus.
        log = read_log(pairs, skip_bad_lines, chosen.negatives, run.note)
        log, held_out = plan.apply(log, run.note)
        corpus = Corpus(log, chosen, None if start is None else start.towers.vocabulary)
        del log
        if start is not None:
            _note_unknown_words(corpus, start, run.note)
        identity = Identity(
            chosen.as_dict(),
            corpus.fingerprint(),
            None if held_out is None else held_out.fingerprint(),
            None if start is None else start.record(),
            plan.record(),
        )
        task = TwoTowerTask(corpus, chosen, workers, run.note, start, held_out)
        del start  # the towers have what they need of it
        watched = replace(run, on_progress=_noting_collapse(run.on_progress, chosen, run.note))
        return SentenceEncoder.of(watched.train(task, identity, workers), run.threads)


def _noting_collapse(
    on_progress: Callable[[Progress], None], settings: Settings, note: Callable[[str], None]
) -> Callable[[Progress], None]:
    """``on_progress``, which also notes once if the hinge has made all texts alike.

    Every cosine is then about 1, and each of the two hinges of a pair is the margin.
    """
    if settings.objective != HINGE:
        return on_progress
    noted: list[int] = []

    def report(progress: Progress) -> None:
        on_progress(progress)
        is_collapsed = math.isclose(progress.loss, 2 * settings.margin, rel_tol=_COLLAPSED)
        if progress.epoch_ended and is_collapsed and not noted:
            noted.append(progress.epoch)
            note(
                f"epoch {progress.epoch}: the loss is twice the margin: nearly all texts have the "
                "same embedding; lower the learning rate or take another model or objective"
            )

    return report


def _note_unknown_words(corpus: Corpus, start: Start, note: Callable[[str], None]) -> None:
    share = corpus.unknown_share()
    if share == 1:
        raise SentembError(
            f"no word of the log is in the vocabulary of {start}; start from a model of the same "
            "language"
        )
    note(
        f"{share:.1%} of the words of the log are not in the vocabulary of {start} and are ignored"
    )
