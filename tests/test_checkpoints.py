"""Arrays that several checkpoints have, in files of their own, and when checkpoints are written."""

import os
import shutil
import signal
import time
import weakref

import numpy as np
import pytest
from helpers import made_up_log

from sentemb.models.files.tensor_files import open_tensors
from sentemb.training import loop
from sentemb.training.checkpoints import (
    open_checkpoint,
    take_up_checkpoint,
    write_checkpoint,
    write_lasting,
)
from sentemb.training.negatives import hard_negatives
from sentemb.training.stopping import Interrupted
from sentemb.training.trainer import train

# 4 mini-batches an epoch; hard negatives are looked up before epochs 3 and 6.
SETTINGS = {
    "cells": 6, "epochs": 7, "batch_size": 16, "threads": 1, "hard_negatives": 2, "group_size": 1,
    "learning_rate": 0.05, "checkpoint_seconds": 0,
}  # fmt: skip


class Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def whole_training():
    return train(made_up_log(), **SETTINGS).weights


def same_as(weights, model):
    return all(
        np.array_equal(array, model.weights[side][name])
        for side, arrays in weights.items()
        for name, array in arrays.items()
    )


def killed_at(output, epoch, step):
    """A training that ends without a word after a mini-batch; its files by kind, oldest first."""

    def kill(progress):
        if (progress.epoch, progress.step) == (epoch, step):
            raise Killed

    with pytest.raises(Killed):
        train(made_up_log(), output=output, on_progress=kill, **SETTINGS)
    return files_of(output)


def files_of(output):
    names = sorted((output / "checkpoints").iterdir())
    return [path for path in names if path.name.startswith("step-")], [
        path for path in names if path.name.startswith("hard_titles-")
    ]


def resumed(output):
    notes = []
    model = train(made_up_log(), output=output, resume=True, on_note=notes.append, **SETTINGS)
    assert not (output / "checkpoints").exists()
    return model, notes


def test_hard_negatives_are_written_once_per_look_up(tmp_path, monkeypatch, whole_training):
    written, write = [], loop.write_lasting

    def remember(output, name, array):
        written.append(name)
        return write(output, name, array)

    monkeypatch.setattr(loop, "write_lasting", remember)
    steps, titles = killed_at(tmp_path / "m", 6, 4)
    assert written == ["hard_titles", "hard_titles"]
    # Those of the first look-up were removed with the last checkpoint that referred to them.
    assert len(steps) == 2 and len(titles) == 1
    for path in steps:
        with open_tensors(path) as file:
            assert "hard_titles" not in file
            assert file.metadata["lasting"] == {"hard_titles": titles[0].name}
    model, _ = resumed(tmp_path / "m")
    assert written == ["hard_titles", "hard_titles"], "a resumed training knows the file"
    assert same_as(whole_training, model)


def test_older_hard_negatives_stay_until_no_checkpoint_refers_to_them(tmp_path):
    steps, titles = killed_at(tmp_path / "m", 6, 2)
    referred = []
    for path in steps:
        with open_tensors(path) as file:
            referred += file.metadata["lasting"].values()
    assert len(steps) == len(titles) == 2
    assert sorted(referred) == [path.name for path in titles]


DAMAGES = {
    "missing": lambda path, other: path.unlink(),
    "truncated": lambda path, other: path.write_bytes(path.read_bytes()[:-40]),
    "empty": lambda path, other: path.write_bytes(b""),
    "foreign": lambda path, other: path.write_bytes(b"\x89PNG" * 400),
    "flipped": lambda path, other: path.write_bytes(
        path.read_bytes()[:-40] + b"\x01" + path.read_bytes()[-39:]
    ),
    "those of another look-up": lambda path, other: path.write_bytes(other.read_bytes()),
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A training whose two checkpoints have the hard negatives of one look-up each."""
    output = tmp_path_factory.mktemp("killed") / "m"
    killed_at(output, 6, 2)
    return output


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_checkpoint_whose_hard_negatives_are_lost_is_passed_over(
    damage, tmp_path, killed, whole_training
):
    steps, _ = files_of(shutil.copytree(killed, tmp_path / "m"))
    of_step = {}
    for path in steps:
        with open_tensors(path) as file:
            of_step[path] = path.parent / file.metadata["lasting"]["hard_titles"]
    older, newest = steps
    DAMAGES[damage](of_step[newest], of_step[older])
    model, notes = resumed(tmp_path / "m")
    (note,) = [note for note in notes if "passed over" in note]
    assert newest.name in note and of_step[newest].name in note
    assert "continuing at epoch 5, step 4 of 4" in notes
    assert same_as(whole_training, model)


def test_a_kill_between_both_files_leaves_the_older_checkpoint(
    tmp_path, monkeypatch, whole_training
):
    write, seen = loop.write_checkpoint, []

    def kill(output, update, arrays, progress, lasting):
        seen.append(lasting.get("hard_titles"))
        if len(set(seen) - {None}) == 2:
            raise Killed
        write(output, update, arrays, progress, lasting)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(loop, "write_checkpoint", kill)
        train(made_up_log(), output=tmp_path / "m", **SETTINGS)
    steps, titles = files_of(tmp_path / "m")
    assert len(steps) == 2 and {path.name for path in titles} == set(seen) - {None}
    model, notes = resumed(tmp_path / "m")
    assert "continuing at epoch 5, step 4 of 4" in notes
    assert same_as(whole_training, model)


def test_old_lists_are_gone_before_new_ones_are_made(tmp_path, monkeypatch):
    look_up, made, alive = hard_negatives.look_up, [], []

    def remember(*given, **options):
        alive.extend(lists() is not None for lists in made)
        found = look_up(*given, **options)
        made.append(weakref.ref(found))
        return found

    monkeypatch.setattr(hard_negatives, "look_up", remember)
    train(made_up_log(), output=tmp_path / "m", **SETTINGS)
    assert alive == [False]


def test_the_lists_of_a_stopped_look_up_are_not_kept(tmp_path, whole_training):
    notes = []

    def stop(note):
        notes.append(note)
        if "epoch 6: looking up" in note:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        train(made_up_log(), output=tmp_path / "m", on_note=stop, **SETTINGS)
    _, titles = files_of(tmp_path / "m")
    assert len(titles) == 1
    model, _ = resumed(tmp_path / "m")
    assert same_as(whole_training, model)


@pytest.mark.parametrize("wrong", [
    [], {"hard_titles": 3}, {"hard_titles": "../../secret"}, {"other": "hard_titles-" + "0" * 16},
    {"hard_titles": "step-000000001.safetensors"},
], ids=str)  # fmt: skip
def test_a_reference_to_anything_else_is_refused(wrong, tmp_path):
    write_checkpoint(tmp_path, 1, {"a": np.zeros(2)}, {"number": 1})
    write_checkpoint(tmp_path, 2, {"a": np.zeros(2)}, {"number": 2, "lasting": wrong})
    found, notes = [], []
    assert take_up_checkpoint(
        tmp_path, lambda one: found.append(one.metadata["number"]), notes.append
    )
    assert found == [1] and "does not say where" in notes[0]


def test_a_checkpoint_is_one_state_whatever_its_files(tmp_path):
    lists = np.arange(6, dtype=np.int32).reshape(2, 3)
    name = write_lasting(tmp_path, "lists", lists)
    write_checkpoint(tmp_path, 7, {"a": np.ones(2)}, {}, {"lists": name})
    (path,) = (tmp_path / "checkpoints").glob("step-*")
    with open_checkpoint(path) as found:
        assert "a" in found and "lists" in found and "other" not in found
        assert found.shape("lists") == (2, 3) and found.shape("other") is None
        assert np.array_equal(found["lists"], lists) and found["a"].tolist() == [1, 1]
        found.expect("lists", (2, 3), np.int32)
        found.check()


@pytest.mark.parametrize(("seconds", "expected"), [(0, 12), (3, 2), (10, 1)])
def test_a_checkpoint_waits_for_20_times_the_time_of_the_last(
    seconds, expected, tmp_path, monkeypatch
):
    """Mini-batches take a second and checkpoints a quarter of one."""
    now, written = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def write(output, update, *others):
        written.append(update)
        now[0] += 0.25

    monkeypatch.setattr(loop, "write_checkpoint", write)

    def pass_a_second(progress):
        if not progress.epoch_ended:
            now[0] += 1

    settings = {**SETTINGS, "epochs": 3, "hard_negatives": 0, "checkpoint_seconds": seconds}
    train(made_up_log(), output=tmp_path / "m", on_progress=pass_a_second, **settings)
    assert len(written) == expected


def test_damaged_checkpoints_do_not_crowd_out_those_that_are_written(tmp_path, whole_training):
    output = tmp_path / "m"
    steps, _ = killed_at(output, 2, 2)
    start = steps[-1].read_bytes()[:100]
    # A kill before old ones are removed leaves more than two.
    for update in (26, 27):
        steps[-1].with_name(f"step-{update:09d}.safetensors").write_bytes(start)

    def kill(progress):
        if (progress.epoch, progress.step) == (2, 4):
            raise Killed

    with pytest.raises(Killed):
        train(made_up_log(), output=output, resume=True, on_progress=kill, **SETTINGS)
    assert [path.name for path in files_of(output)[0]] == [
        f"step-{number:09d}.safetensors" for number in (6, 7)
    ]
    model, notes = resumed(output)
    assert "continuing at epoch 2, step 3 of 4" in notes
    assert same_as(whole_training, model)


def test_checkpoints_that_are_all_damaged_are_said_to_be(tmp_path):
    for path in killed_at(tmp_path / "m", 2, 2)[0]:
        path.write_bytes(b"")
    _, notes = resumed(tmp_path / "m")
    assert "no checkpoint can be used; starting from the beginning" in notes
