"""Model directories: written and read back whole; whatever is damaged says so and where."""

import itertools
import json
import os
import random
import shutil

import numpy as np
import pytest
from helpers import each_variant, made_up_model
from safetensors.numpy import save_file

from sentemb import SentembError, SentenceEncoder

FILES = ("config.json", "model.safetensors", "vocabulary.txt")
TEXTS = ["abcd ab abc", "ab", "dcba abcd"]


def save(folder, *, cells=4, seed=0, variant=("lstm", {}), texts=TEXTS, shared=False):
    model = made_up_model(variant, texts, cells=cells, dtype=np.float32, seed=seed, shared=shared)
    model.training, model.history = {"pairs": 3}, [{"epoch": 1, "loss": 0.5, "dev": None}]
    model.save_pretrained(folder)
    return model


def assert_refused(folder, name):
    """Reading ``folder`` is a one-line error that names the file ``name`` in it."""
    with pytest.raises(SentembError) as caught:
        SentenceEncoder.from_pretrained(folder, threads=1)
    message = str(caught.value)
    assert str(folder / name) in message and "\n" not in message
    return message


@pytest.mark.parametrize("shared", [False, True], ids=["two-towers", "shared"])
@pytest.mark.parametrize(**each_variant())
def test_round_trip(tmp_path, variant, shared):
    model = save(tmp_path / "m", variant=variant, shared=shared)
    read = SentenceEncoder.from_pretrained(tmp_path / "m", threads=1)
    assert read.encoder.name == model.encoder.name
    assert read.encoder.settings() == model.encoder.settings()
    assert read.shared_towers == model.shared_towers == shared
    assert read.vocabulary.trigrams == model.vocabulary.trigrams
    assert (read.training, read.history) == (model.training, model.history)
    for side, blocks in model.parameters().items():
        assert read.parameters()[side].keys() == blocks.keys()
        for name, block in blocks.items():
            assert np.array_equal(read.parameters()[side][name], block)
            assert read.parameters()[side][name].dtype == np.float32
        assert np.array_equal(read.encode(TEXTS, side=side), model.encode(TEXTS, side=side))
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
    assert "no model" in assert_refused(tmp_path / "nowhere", "")
    (tmp_path / "empty").mkdir()
    assert "no model" in assert_refused(tmp_path / "empty", "")
    (tmp_path / "file").write_text("{}")
    assert_refused(tmp_path / "file", "")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(tmp_path, name):
    save(tmp_path / "m")
    (tmp_path / "m" / name).unlink()
    assert_refused(tmp_path / "m", "" if name == "config.json" else name)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_file_is_named(tmp_path, name, share):
    save(tmp_path / "m")
    path = tmp_path / "m" / name
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    assert_refused(tmp_path / "m", name)


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.txt"])
def test_a_flipped_bit_is_found_wherever_it_is(tmp_path, name):
    save(tmp_path / "m")
    path, places = tmp_path / "m" / name, random.Random(1)
    data = path.read_bytes()
    # Everywhere near the start, where the structure is, and here and there in the rest.
    start = min(64, len(data))
    for place in [*range(start), *(places.randrange(len(data)) for _ in range(100))]:
        damaged = bytearray(data)
        damaged[place] ^= 1 << places.randrange(8)
        path.write_bytes(damaged)
        assert_refused(tmp_path / "m", name)
    path.write_bytes(data)
    SentenceEncoder.from_pretrained(tmp_path / "m", threads=1)


def test_no_flipped_bit_of_the_configuration_gives_a_model(tmp_path):
    save(tmp_path / "m", variant=("lstm", {"forget_gate": True, "peepholes": "full"}))
    path, places = tmp_path / "m" / "config.json", random.Random(2)
    data = path.read_bytes()
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << places.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(SentembError):
            SentenceEncoder.from_pretrained(tmp_path / "m", threads=1)


@pytest.mark.parametrize(
    "old, new", [('"lstm"', '"lstn"'), ('"none"', '"nonf"'), ('"cells": 4', '"cells": 0')]
)
def test_a_setting_that_no_encoder_has_names_the_configuration(tmp_path, old, new):
    save(tmp_path / "m")
    path = tmp_path / "m" / "config.json"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    assert_refused(tmp_path / "m", "config.json")


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_model_is_found(tmp_path, name):
    save(tmp_path / "m")
    save(tmp_path / "other", cells=5, seed=1, texts=["wxyz"])
    shutil.copy(tmp_path / "other" / name, tmp_path / "m" / name)
    # A strange config.json fits neither of the two others.
    assert_refused(tmp_path / "m", "vocabulary.txt" if name == "config.json" else name)


def test_weights_of_a_model_of_the_same_shape_but_another_training_are_found(tmp_path):
    save(tmp_path / "m")
    model = save(tmp_path / "other", seed=1)
    model.training = {"pairs": 4}
    model.save_pretrained(tmp_path / "other", force=True)
    shutil.copy(tmp_path / "other" / "model.safetensors", tmp_path / "m")
    assert_refused(tmp_path / "m", "model.safetensors")


FOREIGN = {
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4,
    "a pickle": b"\x80\x04cposix\nsystem\n(S'true'\ntR.",
    "text": "häufig".encode("latin-1"),
    "a list": b"[]",
    "a number": b"7",
    "nested": b"[" * 100_000,
    "huge header": (2**40).to_bytes(8, "little") + b"{}",
}


@pytest.mark.parametrize("name, kind", list(itertools.product([*FILES, "history.jsonl"], FOREIGN)))
def test_a_foreign_file_is_refused_and_named(tmp_path, name, kind):
    save(tmp_path / "m")
    (tmp_path / "m" / name).write_bytes(FOREIGN[kind])
    assert_refused(tmp_path / "m", name)


@pytest.mark.parametrize("name", [*FILES, "history.jsonl"])
def test_a_folder_in_place_of_a_file_is_refused_and_named(tmp_path, name):
    save(tmp_path / "m")
    (tmp_path / "m" / name).unlink()
    (tmp_path / "m" / name).mkdir()
    assert_refused(tmp_path / "m", name)


def test_safetensors_of_someone_else_are_refused(tmp_path):
    save(tmp_path / "m")
    for metadata in (None, {"format": "pt"}):
        save_file({"query.W1": np.zeros((4, 3), np.float32)}, tmp_path / "m" / FILES[1], metadata)
        assert_refused(tmp_path / "m", "model.safetensors")


def change_config(folder, **changes):
    path = folder / "config.json"
    config = json.loads(path.read_text("utf-8")) | changes
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}), "utf-8")


def test_a_newer_format_asks_for_an_upgrade(tmp_path):
    save(tmp_path / "m")
    change_config(tmp_path / "m", format=3)
    assert "upgrade" in assert_refused(tmp_path / "m", "config.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"format": None},
        {"format": "1"},
        {"model": None},
        {"cells": "4"},
        {"shared_towers": 1},
        {"vocabulary_sha256": None},
        {"training": []},
    ],
    ids=str,
)
def test_a_configuration_with_wrong_values_is_named(tmp_path, changes):
    save(tmp_path / "m")
    change_config(tmp_path / "m", **changes)
    assert_refused(tmp_path / "m", "config.json")
