"""Several trainings that differ in their seed, and the average of their models.

The trainings run one after the other, each in a folder inside the checkpoints of the output. So a
training that is stopped keeps the members that are finished, and resumes the one that is not. On a
cluster they run at the same time, and a worker cannot write there: a training that is stopped keeps
the members that are finished, and the others begin again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from sentemb.errors import SentembError
from sentemb.models.contracts import Embedder
from sentemb.models.files.history import best_epoch
from sentemb.models.files.model_files import load_model, write_model, write_tensors_of
from sentemb.models.files.saved_model import SavedModel
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.files import make_folder
from sentemb.system.locks import locked
from sentemb.training.checkpoints import (
    has_checkpoints,
    member_folder,
    member_seeds,
    remove_checkpoints,
)
from sentemb.training.dev import Dev
from sentemb.training.identity import Identity
from sentemb.training.loop import ModelFiles
from sentemb.training.output import check_output, is_finished, make_room
from sentemb.training.progress import Progress
from sentemb.training.run import Run
from sentemb.training.stopping import Interrupted

# In the record of an average: for each member the epoch that was kept and its dev figures, then
# those of the average.
KEPT_EPOCHS, DEV_OF_SEEDS, DEV_OF_AVERAGE = "kept_epochs", "dev_of_seeds", "dev_of_average"
# A member is one file: it is there until the average is.
MEMBER_FILES = ModelFiles(write_tensors_of, load_model)


# Trains the members of some seeds, in folders of the output if there is one.
Train: TypeAlias = Callable[[range, Path | None, Run], list[SavedModel]]


def train_members(
    train: Train,
    identity: Identity,
    dev: Dev[Embedder] | None,
    n_bytes: int,
    run: Run,
) -> SavedModel:
    """Train a model for each seed; the result is their average, in the output of ``run`` too.

    ``train`` trains the member of each seed: `one_by_one` or `at_once`. ``identity`` is everything
    that decides the average, ``dev`` the set that it is measured on, and ``n_bytes`` the size of a
    member.

    Raises `SentembError` as `Run.train` does; a message about a member begins with its seed. Raises
    `Interrupted` after Ctrl-C or SIGTERM, once the checkpoint of the member is written; on a
    cluster after Ctrl-C, at once.
    """
    seeds = identity.each_seed()
    output = None if run.output is None else Path(run.output)
    with contextlib.nullcontext() if output is None else locked(make_folder(output)):
        if output is not None:
            # Another training may have ended here while this one read its data.
            check_output(output, run.resume, run.force)
            if run.resume and is_finished(output, identity):
                run.note(f"the training of {output} is already finished")
                remove_checkpoints(output)
                return load_model(output)
            if run.resume:
                _check_members(output, seeds)
            else:
                # For the members and their average.
                make_room(output, 2 * len(seeds) * n_bytes)
        members = train(seeds, output, run)
        saved = _average(members, identity, dev, run.threads)
        if output is not None:
            try:
                write_model(saved, output)
            except SentembError as error:
                why = f"{error}; make room there and continue with --resume"
                raise SentembError(why) from error
            remove_checkpoints(output)
    return saved


def _check_members(output: Path, seeds: range) -> None:
    """Raise a `SentembError` if a training of other seeds was stopped in ``output``."""
    other_seeds = [seed for seed in member_seeds(output) if seed not in seeds]
    if other_seeds or has_checkpoints(output):
        what = f"seed {other_seeds[0]}" if other_seeds else "one seed only"
        raise SentembError(
            f"{output}: a training of {what} was stopped there; resume with the same settings, or "
            "start again with --force"
        )


def one_by_one(
    train: Callable[[int, Run], SavedModel], seeds: range, output: Path | None, run: Run
) -> list[SavedModel]:
    """The members, one after the other: ``train`` gets a seed and the run of its member."""
    return [_member(train, seed, seeds, output, run) for seed in seeds]


def at_once(
    train: Callable[[Sequence[int]], Iterator[tuple[SavedModel, list[str]]]],
    identities: Mapping[int, Identity],
    seeds: range,
    output: Path | None,
    run: Run,
) -> list[SavedModel]:
    """The members, at the same time, but for those that an earlier run has finished.

    ``train`` yields the member of each seed that it is given and the notes of its training, in the
    order of the seeds. ``identities`` has for each seed what decides its member.
    """
    members: dict[int, SavedModel] = {}
    if output is not None and run.resume:
        for seed in seeds:
            folder = member_folder(output, seed)
            if is_finished(folder, identities[seed]):
                members[seed] = load_model(folder)
    left = [seed for seed in seeds if seed not in members]
    run.note(f"training {len(left)} of {len(seeds)} seeds on the workers")
    trained = train(left)
    try:
        for seed in left:
            try:
                saved, notes = next(trained)
                if output is not None:
                    MEMBER_FILES.write(saved, make_folder(member_folder(output, seed)))
            except SentembError as error:
                raise SentembError(f"seed {seed}: {error}") from error
            members[seed] = saved
            done = f"loss {saved.history[-1]['loss']:.4f}, {len(members)} of {len(seeds)} finished"
            for text in (*notes, done):
                run.note(f"seed {seed}: {text}")
    except KeyboardInterrupt:
        how = "nothing was kept, as there is no output"
        if output is not None:
            how = "continue with the same command and --resume"
        where = f"stopped with {len(members)} of {len(seeds)} seeds finished"
        raise Interrupted(f"{where}; {how}") from None
    return [members[seed] for seed in seeds]


def _member(
    train: Callable[[int, Run], SavedModel],
    seed: int,
    seeds: range,
    output: Path | None,
    run: Run,
) -> SavedModel:
    """The member of ``seed``, trained now or before the training was stopped."""

    def note(text: str) -> None:
        run.note(f"seed {seed}: {text}")

    member_run = replace(
        run,
        output=None if output is None else member_folder(output, seed),
        force=False,
        on_progress=_for_all(run.on_progress, seed, seeds[-1] - seed),
        note=note,
    )
    try:
        saved = train(seed, member_run)
    except Interrupted as interrupted:
        raise Interrupted(f"seed {seed}: {interrupted}", interrupted.signal) from None
    except SentembError as error:
        raise SentembError(f"seed {seed}: {error}") from error
    return saved


def _for_all(
    on_progress: Callable[[Progress], None], seed: int, n_later: int
) -> Callable[[Progress], None]:
    """``on_progress`` with the seed, and with the time left for ``n_later`` members more."""

    def report(progress: Progress) -> None:
        in_all = progress.seconds_left + n_later * progress.seconds_in_all
        on_progress(replace(progress, seed=seed, seconds_left=in_all))

    return report


def _average(
    members: list[SavedModel], identity: Identity, dev: Dev[Embedder] | None, threads: int | None
) -> SavedModel:
    """The average of ``members``, with the record of the whole training."""
    average = SentenceEncoder.average([SentenceEncoder.of(member, threads) for member in members])
    record: dict[str, Any] = identity.record(members[0].training["pairs"], finished=True)
    best = [best_epoch(member.history) for member in members]
    lines = [line for line in best if line is not None]
    if dev is not None and lines:
        record[KEPT_EPOCHS] = [line["epoch"] for line in lines]
        record[DEV_OF_SEEDS] = {
            name: [line["dev"][name] for line in lines] for name in lines[0]["dev"]
        }
        record[DEV_OF_AVERAGE] = dev.measure(average)
    return replace(average.saved(), training=record)
