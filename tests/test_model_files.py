"""Model directories: written and read back whole; whatever is damaged says so and where."""

import json
import os
import random

import numpy as np
import pytest
from helpers import (
    FEED_FORWARD,
    VARIANTS,
    each_variant,
    made_up_model,
    run_python,
    write_any_tensors,
)
from safetensors.numpy import save_file

import sentemb
from sentemb import SentembError, SentenceEncoder
from sentemb.models.files import model_files, tensor_files
from sentemb.models.files.model_files import save_model
from sentemb.models.files.model_folder import check_place
from sentemb.models.files.saved_model import SavedModel
from sentemb.models.files.tensor_files import open_tensors, write_tensors
from sentemb.models.towers import make_encoder
from sentemb.models.towers.towers import Towers
from sentemb.system import files
from sentemb.text.vocabulary import Vocabulary

FILES = ("config.json", "model.safetensors", "vocabulary.txt")
TEXTS = ["abcd ab abc", "ab", "dcba abcd"]


def save(folder, *, cells=4, seed=0, variant=("lstm", {}), texts=TEXTS, shared=False):
    """A model, written to ``folder``."""
    model = made_up_model(variant, texts, cells=cells, dtype=np.float32, seed=seed, shared=shared)
    model.training, model.history = {"pairs": 3}, [{"epoch": 1, "loss": 0.5, "dev": None}]
    model.save_pretrained(folder)
    return model


def assert_same(read, model):
    """All that is kept of a model is equal, to the bit."""
    assert read.encoder.name == model.encoder.name
    assert read.encoder.settings() == model.encoder.settings()
    assert read.shared_towers == model.shared_towers
    assert read.vocabulary.trigrams == model.vocabulary.trigrams
    assert read.vocabulary.words == model.vocabulary.words
    assert (read.training, read.history) == (model.training, model.history)
    for side, blocks in model.parameters().items():
        assert read.parameters()[side].keys() == blocks.keys()
        for name, block in blocks.items():
            assert np.array_equal(read.parameters()[side][name], block)
            assert read.parameters()[side][name].dtype == block.dtype
        assert np.array_equal(read.encode(TEXTS, side=side), model.encode(TEXTS, side=side))


def assert_refused(folder, name):
    """Reading ``folder`` is a one-line error that names the file ``name`` in it."""
    with pytest.raises(SentembError) as caught:
        SentenceEncoder.from_pretrained(folder, threads=1)
    message = str(caught.value)
    assert str(folder / name) in message and "\n" not in message and len(message) <= 300
    return message


@pytest.mark.parametrize("shared", [False, True], ids=["two-towers", "shared"])
@pytest.mark.parametrize(**each_variant([*VARIANTS, *FEED_FORWARD]))
def test_round_trip(tmp_path, variant, shared):
    model = save(tmp_path / "m", variant=variant, shared=shared)
    read = SentenceEncoder.from_pretrained(tmp_path / "m", threads=1)
    assert_same(read, model)
    read.save_pretrained(tmp_path / "again")
    for name in FILES:
        again = (tmp_path / "again" / name).read_bytes()
        assert again == (tmp_path / "m" / name).read_bytes()


def test_trigrams_of_odd_characters_survive(tmp_path):
    odd = [
        "ñandú",
        "北京 天气",
        "🙂🙂🙂",
        "a\u0301b",
        "#a#",
        "\u2028x",
        "\x0bq\x1dw",
        "İi",
        "a\u200db",
        "\\n",
        '"' * 4,
    ]
    model = save(tmp_path / "m", texts=odd)
    read = SentenceEncoder.from_pretrained(tmp_path / "m", threads=1)
    assert read.vocabulary.trigrams == model.vocabulary.trigrams
    assert np.array_equal(read.encode_query(odd), model.encode_query(odd))


def test_an_existing_model_is_replaced_only_with_force(tmp_path):
    save(tmp_path / "m")
    before = {name: (tmp_path / "m" / name).read_bytes() for name in FILES}
    other = made_up_model(("rnn", {}), ["xyz"], dtype=np.float32)
    with pytest.raises(SentembError, match="already"):
        other.save_pretrained(tmp_path / "m")
    assert before == {name: (tmp_path / "m" / name).read_bytes() for name in FILES}
    other.save_pretrained(tmp_path / "m", force=True)
    read = SentenceEncoder.from_pretrained(tmp_path / "m", threads=1)
    assert np.array_equal(read.encode_query("xyz"), other.encode_query("xyz"))


@pytest.mark.parametrize("name", FILES)
def test_files_are_replaced_by_renaming_and_never_written_into(tmp_path, name):
    save(tmp_path / "m")
    before = (tmp_path / "m" / name).read_bytes()
    os.link(tmp_path / "m" / name, tmp_path / "still the old file")
    other = made_up_model(("rnn", {}), ["xyz"], dtype=np.float32)
    other.save_pretrained(tmp_path / "m", force=True)
    assert (tmp_path / "still the old file").read_bytes() == before
    assert (tmp_path / "m" / name).read_bytes() != before
    assert not list((tmp_path / "m").glob(".*"))


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("here")
    model = made_up_model(("rnn", {}), ["xyz"], dtype=np.float32)
    with pytest.raises(SentembError, match="cannot be written") as caught:
        model.save_pretrained(tmp_path / "file" / "m")
    assert str(tmp_path / "file") in str(caught.value)


def test_what_is_no_model_directory(tmp_path):
    assert "no model here" in assert_refused(tmp_path / "nowhere", "")
    (tmp_path / "empty").mkdir()
    assert "no model here" in assert_refused(tmp_path / "empty", "")
    (tmp_path / "file").write_text("{}")
    assert_refused(tmp_path / "file", "")


FOREIGN = {
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
    "a pickle": b"\x80\x04cposix\nsystem\n(S'true'\ntR.",
    "text": "häufig".encode("latin-1"),
    "a list": b"[]",
    "a number": b"7",
    "nested": b"[" * 100_000,
    "huge header": (2**40).to_bytes(8, "little") + b"{}",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused_and_named(tmp_path, kind):
    save(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(FOREIGN[kind])
    assert_refused(tmp_path / "m", "model.safetensors")


def test_a_folder_in_place_of_the_model_is_refused(tmp_path):
    save(tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").unlink()
    (tmp_path / "m" / "model.safetensors").mkdir()
    assert_refused(tmp_path / "m", "")


def test_safetensors_of_someone_else_are_refused(tmp_path):
    save(tmp_path / "m")
    for metadata in (None, {"format": "pt"}):
        save_file(
            {"query.W1": np.zeros((4, 3), np.float32)},
            tmp_path / "m" / "model.safetensors",
            metadata,
        )
        assert_refused(tmp_path / "m", "model.safetensors")


# -- one file is the model -------------------------------------------------------------------------


def test_load_returns_the_class_for_the_kind_of_model(tmp_path):
    model = save(tmp_path / "m")
    assert json.loads((tmp_path / "m" / "config.json").read_text())["kind"] == "towers"
    read = sentemb.load(tmp_path / "m", threads=1)
    assert type(read) is SentenceEncoder
    assert_same(read, model)


def test_a_kind_of_a_later_version_is_named(tmp_path, monkeypatch):
    model = made_up_model(("lstm", {}), TEXTS, cells=4, dtype=np.float32)
    monkeypatch.setattr(Towers, "kind", "graph")
    save_model(SavedModel(model.towers), tmp_path / "m")
    with pytest.raises(SentembError, match="kind 'graph'; upgrade sentemb"):
        sentemb.load(tmp_path / "m")


def test_one_file_is_the_model(tmp_path):
    model = save(tmp_path / "m")
    for name in ("config.json", "vocabulary.txt", "words.txt", "README.md"):
        (tmp_path / "m" / name).write_text("anything")
        assert_same(SentenceEncoder.from_pretrained(tmp_path / "m", threads=1), model)
        (tmp_path / "m" / name).unlink()
    assert_same(SentenceEncoder.from_pretrained(tmp_path / "m", threads=1), model)
    (tmp_path / "m" / "model.safetensors").unlink()
    assert_refused(tmp_path / "m", "")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_truncated_model_is_named(tmp_path, share):
    save(tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    assert_refused(tmp_path / "m", "model.safetensors")


def test_a_flipped_bit_anywhere_in_a_model_is_found(tmp_path):
    save(tmp_path / "m", variant=("lstm", {"forget_gate": True, "peepholes": "full"}))
    path, places = tmp_path / "m" / "model.safetensors", random.Random(2)
    data = path.read_bytes()
    for place in range(0, len(data), 17):
        damaged = bytearray(data)
        damaged[place] ^= 1 << places.randrange(8)
        path.write_bytes(damaged)
        assert_refused(tmp_path / "m", "model.safetensors")


def rewrite(folder, change=None, history=None, **arrays):
    """Change the configuration, history or arrays of a model and repair its checksum."""
    path = folder / "model.safetensors"
    with open_tensors(path) as file:
        tensors, metadata = {name: file[name] for name in file}, file.metadata
    metadata["config"].update(change or {})
    metadata["history"] = metadata["history"] if history is None else history
    tensors.update(arrays)
    write_any_tensors(path, tensors, metadata)


@pytest.mark.parametrize(
    "change",
    [
        {"format": 7},
        {"format": 0},
        {"format": True},
        {"format": "1"},
        {"format": 1.0},
        {"format": [1] * 1000},
        {"format": None},
        {"kind": None},
        {"kind": ["towers"]},
        {"splitting": None},
        {"model": []},
        {"cells": "4"},
        {"bag_dim": 1.0},
        {"training": []},
        {"model": "lstn"},
        {"model": {}},
        {"cells": True},
        {"cells": 5},
        {"cells": 10**30},
        {"peepholes": []},
        {"forget_gate": 1},
        {"forget_gate": True},
        {"bag_dim": 2},
        {"shared_towers": True},
        {"training": None},
    ],
    ids=str,
)
def test_a_wrong_setting_with_a_right_checksum_is_refused(tmp_path, change):
    save(tmp_path / "m")
    rewrite(tmp_path / "m", change)
    message = assert_refused(tmp_path / "m", "model.safetensors")
    assert ("reads format 1" in message) == ("format" in change)


def test_a_missing_setting_is_named(tmp_path):
    for name in ("format", "kind", "splitting", "peepholes", "cells", "model", "training"):
        save(tmp_path / name)
        with open_tensors(tmp_path / name / "model.safetensors") as file:
            tensors, metadata = {key: file[key] for key in file}, file.metadata
        del metadata["config"][name]
        write_any_tensors(tmp_path / name / "model.safetensors", tensors, metadata)
        assert name in assert_refused(tmp_path / name, "model.safetensors")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["query.W1", "document.b3"])
def test_weights_that_are_not_numbers_are_refused(tmp_path, name, value):
    model = save(tmp_path / "m")
    side, block = name.split(".")
    damaged = np.ascontiguousarray(model.parameters()[side][block])
    damaged.ravel()[-1] = value
    rewrite(tmp_path / "m", **{name: damaged})
    assert "finite" in assert_refused(tmp_path / "m", "model.safetensors")


@pytest.mark.parametrize(
    "arrays",
    [
        {"query.W1": np.zeros((4, 3), np.float32)},
        {"query.W1": np.zeros((4, 13), np.int32)},
        {"vocabulary": np.zeros(3, np.float32)},
        {"vocabulary": np.frombuffer(b"\xff\xfe\n", np.uint8)},
        {"words": np.frombuffer(b"new\n", np.uint8)},
        {"another": np.zeros(3, np.float32)},
    ],
    ids=lambda arrays: next(iter(arrays)),
)
def test_strange_arrays_with_a_right_checksum_are_refused(tmp_path, arrays):
    save(tmp_path / "m")
    rewrite(tmp_path / "m", **arrays)
    assert_refused(tmp_path / "m", "model.safetensors")


@pytest.mark.parametrize(
    "line",
    ["{}", '{"epoch": 1}', '{"epoch": 1, "loss": NaN}', f'{{"epoch": 1, "loss": {"9" * 400}}}'],
    ids=lambda line: line[:20],
)
def test_a_history_with_wrong_values_is_refused(tmp_path, line):
    save(tmp_path / "new")
    try:
        history = [json.loads(line)]
    except ValueError:
        history = "no list"
    rewrite(tmp_path / "new", history=history)
    assert_refused(tmp_path / "new", "model.safetensors")


def test_the_times_of_the_history_are_those_of_the_model(tmp_path):
    model = save(tmp_path / "m")
    model.history = [{"epoch": 1, "loss": 0.5, "dev": None, "seconds": 2.5}]
    model.save_pretrained(tmp_path / "m", force=True)
    assert_same(SentenceEncoder.from_pretrained(tmp_path / "m", threads=1), model)
    plain = [{"epoch": 1, "loss": 0.5, "dev": None}]
    copied = tmp_path / "m" / "history.jsonl"
    for other in ('{"epoch": 1, "loss": 0.25, "seconds": 9}\n', '{"epoch": 1, "loss"', ""):
        copied.write_text(other)
        assert SentenceEncoder.from_pretrained(tmp_path / "m", threads=1).history == plain
    copied.unlink()
    assert SentenceEncoder.from_pretrained(tmp_path / "m", threads=1).history == plain


def test_a_pipe_is_not_waited_for(tmp_path):
    model = save(tmp_path / "m")
    for name in ("history.jsonl", "model.safetensors"):
        (tmp_path / "m" / name).unlink()
        os.mkfifo(tmp_path / "m" / name)
        if name == "history.jsonl":  # a copy, which is not needed
            assert_same(SentenceEncoder.from_pretrained(tmp_path / "m", threads=1), model)
        else:
            assert "regular" in assert_refused(tmp_path / "m", name)


def test_a_model_in_float64_keeps_its_type(tmp_path):
    model = save(tmp_path / "m").astype("float64")
    model.parameters()["query"]["b1"][...] = 1 / 3
    model.save_pretrained(tmp_path / "double")
    read = SentenceEncoder.from_pretrained(tmp_path / "double", threads=1)
    assert read.dtype == np.float64
    assert_same(read, model)


# -- where a model may be written ------------------------------------------------------------------


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_holds_something_else_is_left_alone(tmp_path, force):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "README.md").write_text("mine")
    model = made_up_model(("rnn", {}), ["xyz"], dtype=np.float32)
    with pytest.raises(SentembError, match="not a sentemb model"):
        model.save_pretrained(tmp_path / "home", force=force)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["README.md"]
    assert (tmp_path / "home" / "README.md").read_text() == "mine"


@pytest.mark.parametrize("force", [False, True])
def test_checkpoints_of_another_program_do_not_make_a_folder_ours(tmp_path, force):
    home = tmp_path / "home"
    (home / "checkpoints").mkdir(parents=True)
    (home / "checkpoints" / "epoch-1.pt").write_text("mine")
    (home / "README.md").write_text("mine")
    with pytest.raises(SentembError, match="not a sentemb model"):
        check_place(home)
    model = made_up_model(("rnn", {}), ["xyz"], dtype=np.float32)
    with pytest.raises(SentembError, match="not a sentemb model"):
        model.save_pretrained(home, force=force)
    assert (home / "README.md").read_text() == "mine"


@pytest.mark.parametrize("name", ["step-000000007.safetensors", ".sentemb-0123456789abcdef.tmp"])
def test_the_folder_of_a_training_is_ours(tmp_path, name):
    """Killed before its first checkpoint, or after; somebody keeps notes next to it."""
    (tmp_path / "m" / "checkpoints").mkdir(parents=True)
    check_place(tmp_path / "m")
    write_tensors(tmp_path / "m" / "checkpoints" / name, {"a": np.zeros(3)}, {})
    check_place(tmp_path / "m")
    if name.startswith("step"):
        (tmp_path / "m" / "notes.txt").write_text("mine")
        check_place(tmp_path / "m")


def test_a_model_that_another_process_saved_just_now_is_not_replaced(tmp_path, monkeypatch):
    """The other process wrote between the first look and the lock."""
    place, locked = tmp_path / "m", model_files.locked

    def lose_the_race(folder):
        monkeypatch.setattr(model_files, "locked", locked)
        save(place, seed=1)
        return locked(folder)

    monkeypatch.setattr(model_files, "locked", lose_the_race)
    with pytest.raises(SentembError, match="a model is there already"):
        save(place, seed=2)
    assert_same(SentenceEncoder.from_pretrained(place), save(tmp_path / "other", seed=1))


def test_a_model_of_another_program_is_left_alone(tmp_path):
    (tmp_path / "bert").mkdir()
    save_file({"w": np.zeros(3, np.float32)}, tmp_path / "bert" / "model.safetensors", {"a": "b"})
    (tmp_path / "bert" / "config.json").write_text('{"architectures": ["Bert"]}')
    before = {path.name: path.read_bytes() for path in (tmp_path / "bert").iterdir()}
    model = made_up_model(("rnn", {}), ["xyz"], dtype=np.float32)
    with pytest.raises(SentembError, match="not a sentemb model"):
        model.save_pretrained(tmp_path / "bert", force=True)
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "bert").iterdir()}


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 300, "file/m"])
def test_a_place_that_cannot_be_is_one_line(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("here")
    model = made_up_model(("rnn", {}), ["xyz"], dtype=np.float32)
    with pytest.raises(SentembError) as caught:
        model.save_pretrained(path)
    assert len(str(caught.value)) <= 300
    with pytest.raises(SentembError):
        SentenceEncoder.from_pretrained(path)
    assert os.listdir(tmp_path) == ["file"]


def test_other_files_in_the_folder_of_a_model_stay(tmp_path):
    save(tmp_path / "m")
    (tmp_path / "m" / "notes.txt").write_text("mine")
    made_up_model(
        ("lstm", {}), TEXTS, cells=4, dtype=np.float32, seed=1, shared=False
    ).save_pretrained(tmp_path / "m", force=True)
    assert (tmp_path / "m" / "notes.txt").read_text() == "mine"


def test_a_folder_whose_name_is_not_utf_8(tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), b"m\xff")
    model = save(os.fsdecode(folder))
    assert_same(SentenceEncoder.from_pretrained(os.fsdecode(folder), threads=1), model)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e13])
def test_a_model_that_could_not_be_read_does_not_replace_one(tmp_path, value):
    model = save(tmp_path / "m")
    wild = SentenceEncoder.from_pretrained(tmp_path / "m")
    wild.parameters()["document"]["W1"][0, 0] = value
    with pytest.raises(SentembError, match=r"document\.W1 has a value"):
        wild.save_pretrained(tmp_path / "m", force=True)
    assert_same(SentenceEncoder.from_pretrained(tmp_path / "m"), model)


def test_other_users_may_read_a_model_if_the_umask_says_so(tmp_path):
    before = os.umask(0o027)
    try:
        save(tmp_path / "m")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "m").iterdir()}
    assert set(modes.values()) == {0o640}, modes


def test_tensors_are_written_to_the_file_that_is_swept(tmp_path):
    """A file of any other name would stay for good after a kill."""
    with files.replacing(tmp_path / "made") as temporary:
        locked = temporary.stat().st_ino
        tensor_files._save_file({"a": np.arange(5)}, temporary, "{}")
        assert temporary.stat().st_ino == locked
        assert os.listdir(tmp_path) == [temporary.name]


def test_tensor_files_are_those_of_the_safetensors_library(tmp_path):
    rng = np.random.default_rng(0)
    tensors = {
        "words": np.frombuffer(b"abc", np.uint8),
        "b": rng.normal(size=(3, 4)).astype(np.float32),
        "a": rng.normal(size=5),
        "i": np.arange(3, dtype=np.int32),
        "l": np.arange(2),
        "none": np.zeros((0, 3), np.float32),
    }
    write_tensors(tmp_path / "ours", tensors, {"a": 'ü "quoted"\n'})
    with open_tensors(tmp_path / "ours") as file:
        file.check()
        own = json.dumps({"contents": file.metadata, "sha256": file._sha256})
    save_file(tensors, tmp_path / "theirs", {"sentemb": own})
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


# -- how texts are split ---------------------------------------------------------------------------


def bag_of_words(splitting):
    table = np.arange(6, dtype=np.float32).reshape(3, 2) + 1
    vocabulary = Vocabulary([], ["red", "shoes", "tea"], splitting)
    towers = Towers.of(make_encoder("bag", cells=2), vocabulary, {"query": {"table": table}})
    return SentenceEncoder.of(SavedModel(towers))


@pytest.mark.parametrize("splitting", ["words", "white-space"])
def test_a_model_splits_texts_as_it_did_before_it_was_saved(tmp_path, splitting):
    model = bag_of_words(splitting)
    model.save_pretrained(tmp_path / "m")
    read = SentenceEncoder.from_pretrained(tmp_path / "m")
    assert read.vocabulary.splitting == splitting
    texts = ["Red, shoes!", "red shoes", "tea."]
    assert np.array_equal(read.encode(texts), model.encode(texts))
    config = json.loads((tmp_path / "m/config.json").read_text())
    assert (config["format"], config["splitting"]) == (1, splitting)
    alike = read.encode("Red, shoes!").tolist() == read.encode("red shoes").tolist()
    assert alike == (splitting == "words")


def test_an_unknown_splitting_is_refused(tmp_path):
    model = bag_of_words("words")
    model.vocabulary.splitting = "syllables"
    model.save_pretrained(tmp_path / "m")
    assert "splitting" in assert_refused(tmp_path / "m", "model.safetensors")


def test_reading_an_array_takes_the_memory_of_the_array(tmp_path):
    """If the file were mapped, its pages would count as memory too."""
    code = """
import sys
import numpy as np
from sentemb.models.files.tensor_files import open_tensors, write_tensors

def resident():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(lines["VmRSS"].split()[0]) / 1e3

write_tensors(sys.argv[1], {name: np.ones(2_500_000) for name in "abcd"}, {})
with open_tensors(sys.argv[1]) as file:
    file["a"][:10].sum()
    before = resident()
    for name in "abcd":
        file[name]
    print(resident() - before)
"""
    assert float(run_python(code, tmp_path / "f", check=True).stdout) < 20  # MB, of 80
