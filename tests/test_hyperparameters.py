"""One declaration per hyper-parameter: what follows from it."""

import copy
import dataclasses
import pickle
import subprocess
import sys
import tomllib

import click
import numpy as np
import pytest
from click.testing import CliRunner

from sentemb import SentembError
from sentemb.cli import COMMANDS, main
from sentemb.cli import train as train_command
from sentemb.data.click_log import ClickLogBuilder
from sentemb.models.family import ModelEntry
from sentemb.models.towers import make_encoder
from sentemb.models.towers.registry import BAG_DIM, CELLS, ENCODERS
from sentemb.system.hyperparameters import GROUPS, Hyperparameter
from sentemb.training.families import FAMILIES, SPECIAL, family_of, model_names
from sentemb.training.towers.settings import HYPERPARAMETERS, PRESETS, Settings

TINY = {"cells": 3, "epochs": 2, "batch_size": 4, "hard_negatives": 0, "threads": 1}


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def made_up_log():
    builder = ClickLogBuilder()
    for number in range(12):
        builder.add(f"query {number % 4} ab", f"title {number} cd")
    return builder.build()


# -- declarations --------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", HYPERPARAMETERS, ids=lambda one: one.name)
def test_a_declaration_is_whole(declared):
    assert declared.group in GROUPS
    assert declared.help.endswith(".")
    if declared.default is None:
        assert declared.optional
        assert declared.default_text
    else:
        assert declared.checked(declared.default) == declared.default
    assert (declared.checked(None) is None) if declared.optional else True


def test_the_fields_of_settings_are_those_declared():
    assert [field.name for field in dataclasses.fields(Settings)] == [
        one.name for one in HYPERPARAMETERS
    ]
    for one in HYPERPARAMETERS:
        assert f"\n{one.name} : " in Settings.__doc__
        assert one.help in Settings.__doc__


def test_settings_are_frozen_equal_by_value_and_picklable():
    settings = Settings(cells=7, seed=3)
    assert pickle.loads(pickle.dumps(settings)) == settings == Settings(**settings.as_dict())
    assert copy.deepcopy(settings) == settings != Settings(cells=7)
    assert hash(settings) == hash(Settings(cells=7, seed=3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.cells = 5


def test_settings_are_written_in_the_order_of_earlier_versions():
    order = (
        "model cells forget_gate peepholes bag_dim output_gate hidden window layers activation "
        "shared_towers word_features epochs batch_size negatives n_negatives hard_negatives "
        "objective gamma margin optimiser learning_rate decay momentum max_norm "
        "truncate truncation seed patience splitting group_size max_word_features "
        "parts meetings teacher_share"
    )
    assert list(Settings().as_dict()) == order.split()


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_settings(preset):
    settings = Settings.of(preset).as_dict()
    assert {name: settings[name] for name in PRESETS[preset]} == PRESETS[preset]


def test_declarations_need_no_numpy():
    code = (
        "import sys, sentemb.training.towers.settings as s, sentemb.gradients.check_options\n"
        "s.Settings.of('large', cells=3)\n"
        "assert not {'numba', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("bounds", "right", "wrong", "expected"),
    [
        ({"kind": int, "least": 1, "most": 1000}, [1, np.int64(1000)], [0, 1001, 1.0, True, "1"],
         "an integer from 1 to 1,000"),
        ({"kind": float, "above": 0, "most": 2}, [1, 0.5, np.float32(2)], [0, 2.1, float("nan")],
         "a number above 0 and at most 2"),
        ({"kind": float, "least": 0, "below": 1}, [0, 0.999], [1, -1e-9, None, True],
         "a number of at least 0 and below 1"),
        ({"kind": bool}, [True, False], [0, 1, None, "yes"], "True or False"),
        ({"kind": int, "choices": (1, 3)}, [1, np.int32(3)], [2, True, "1", None, []],
         "one of 1, 3"),
        ({"kind": str, "choices": ("a", "b")}, ["a"], ["c", None, [], {}], "one of a, b"),
        ({"kind": int, "least": 0, "most": 9, "words": ("all",)}, [3, "all"], ["al", 10],
         "an integer from 0 to 9 or all"),
    ],
)  # fmt: skip
def test_values_are_checked(bounds, right, wrong, expected):
    declared = Hyperparameter(name="size", default=None, help="", group=GROUPS[0], **bounds)
    for value in right:
        checked = declared.checked(value)
        assert checked == value
        assert type(checked) in (int, float, bool, str)
    for value in wrong:
        with pytest.raises(SentembError) as caught:
            declared.checked(value)
        assert str(caught.value) == f"size is {value!r}; give {expected}"


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_has_what_is_declared(name):
    encoder = make_encoder(name)
    entry = ENCODERS[name]
    assert encoder.name == name
    assert encoder.recurrent == entry.recurrent
    assert encoder.settings() == {one.name: one.default for one in entry.parameters}
    for one in ENCODERS.parameters:
        if one not in entry.parameters:
            other = next(value for value in (1, True, "full", "linear") if _fits(one, value))
            with pytest.raises(SentembError) as caught:
                make_encoder(name, **{one.name: other})
            only = ", ".join(entry.names)
            assert f"the model {name} has no {one.name}, only {only}" in str(caught.value)
            make_encoder(name, **{one.name: one.unset})


def _fits(declared, value):
    try:
        return declared.checked(value) != declared.unset
    except SentembError:
        return False


def test_an_encoder_can_be_registered_while_the_program_runs(monkeypatch):
    entry = ModelEntry(
        "rnn again", "sentemb.models.towers.rnn:RNN", (CELLS, BAG_DIM), recurrent=True
    )
    monkeypatch.setitem(ENCODERS, "another", entry)
    assert "another" in ENCODERS.having(CELLS)
    assert make_encoder("another", cells=4).cells == 4
    assert Settings(model="another").encoder().cells == 96
    with pytest.raises(SentembError, match="there is a model rnn already"):
        ENCODERS.register(ENCODERS["rnn"])


# -- the command line ----------------------------------------------------------------------------


def _options(name):
    command = main.get_command(click.Context(main), name)
    return {name: option for option in command.params for name in option.opts}


@pytest.mark.parametrize("model", model_names())
def test_train_has_the_options_of_the_model_in_their_groups(model):
    family = family_of(model)
    names = ["-h", "--help"]
    command = main.get_command(click.Context(main), "train")
    context = click.Context(command, info_name="train", help_option_names=names)
    context.meta[train_command._MODEL] = model
    options = {opt: o for o in context.command.get_params(context) for opt in o.opts}
    declared = family.parameters_of(model)
    for parameter in declared:
        option = options.pop(parameter.option)
        assert option.group == parameter.group
        if parameter is not family.models.model:
            assert parameter.help in option.help
            if isinstance(option.type, click.Choice):
                assert list(option.type.choices) == list(parameter.choices)
    others = {p.option for f in FAMILIES for p in f.settings.parameters}
    assert not others & set(options)
    unread = set(SPECIAL) - family.reads
    assert not {name.removeprefix("--").replace("-", "_") for name in options} & unread


def test_the_groups_of_train_are_in_order():
    shown = run("train", "--help").output
    titles = ["Model:", "Features:", "Negatives:", "Objective:", "Optimiser:", "Run:"]
    positions = [shown.index(f"\n{title}\n") for title in titles]
    assert positions == sorted(positions)
    assert "--maps" not in shown and "--peepholes" in shown
    shown = run("train", "--model", "arc2", "--help").output
    assert "--maps" in shown and "--peepholes" not in shown and "--teacher" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--maps", "5"], "--maps is not for lstm; leave it out, or choose senna, arc1, arc2"),
        (["--model", "rnn", "--peepholes", "full"], "--peepholes is not for rnn; leave it out"),
        (["--model=arc2", "--seeds", "2"], "--seeds is not for arc2; leave it out, or choose lstm"),
        (["--model", "gru"], "'gru' is not one of 'lstm'"),
        (["--nothing", "1"], "No such option"),
    ],
)
def test_train_says_which_models_an_option_is_for(arguments, message):
    result = run("train", "pairs.tsv", "-o", "model", *arguments, code=2)
    assert message in result.output


@pytest.mark.parametrize("model", model_names())
def test_show_config_prints_the_settings_of_a_training_without_options(model, tmp_path):
    config = tmp_path / "train.toml"
    config.write_text(run("train", "--model", model, "--show-config").output)
    shown = tomllib.loads(config.read_text())
    family = family_of(model)
    declared = {p.name: p for p in family.parameters_of(model)}
    settings = {name: value for name, value in shown.items() if name in declared}
    default = family.settings.of(model=model)
    for name, value in default.as_dict().items():
        if name in settings and value is not None:
            assert settings[name] == value
    of_log = set(family.settings.left_to_the_log(None, {"model": model}))
    for name in set(declared) - set(settings):
        assert declared[name].default_text
        assert getattr(default, name) is None or name in of_log
    assert family.settings.of(**settings).of_model() is not None
    assert run("train", "--config", str(config), "--show-config").output == config.read_text()


def test_show_config_needs_no_log_and_no_output_folder(tmp_path):
    assert "epochs = 9\n" in run("train", "--show-config").output
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "notes.txt").write_text("")
    run("train", "pairs.tsv", "-o", str(tmp_path / "model"), "--show-config")
    large = run("train", "--preset", "large", "--bag-dim", "64", "--show-config").output
    assert 'model = "bilstm"\n' in large and "cells = 192\nforget_gate = false\n" in large
    assert "bag_dim = 64\n" in large and "# meetings: 15 with parts\n" in large
    started = run("train", "--start-from", "old", "--epochs", "4", "--show-config").output
    assert "epochs = 4\n" in started and "# cells: depends on --start-from\n" in started
    assert "Missing argument 'PAIRS'" in run("train", "-o", "model", code=2).output


def test_a_training_is_configured_by_a_file(tmp_path):
    config = tmp_path / "train.toml"
    common = ["train", "pairs.tsv", "-o", "model"]
    shown = run(*common, "--model", "arc2", "--maps", "5,4", "--seed", "3", "--show-config")
    assert 'model = "arc2"\n' in shown.output and "maps = [5, 4]\n" in shown.output
    assert "mlp = 200\n" in shown.output and "seed = 3\n" in shown.output
    config.write_text(shown.output)
    again = run(*common, "--config", str(config), "--show-config", "--seed", "4")
    assert again.output == shown.output.replace("seed = 3", "seed = 4")
    config.write_text("cells = 3\npeephole = 1\n")
    result = run(*common, "--config", str(config), code=2)
    assert "unknown setting peephole" in result.output
    config.write_text("model = 'arc2'\nbag-dim = 3\n")
    result = run(*common, "--config", str(config), code=2)
    assert "--bag-dim is not for arc2" in result.output
    for text, said in (
        ("epochs = 2.9", "'2.9' is not a valid integer"),
        ("seed = true", "seed takes a value"),
        ("dev = true", "dev takes a value"),
        ("preset = ['small']", "'small' is not one of"),
    ):
        config.write_text(text)
        assert said in run(*common, "--config", str(config), code=2).output
    config.write_text("dev = 0.05\nlearning-rate = 1e-3\nforget-gate = true\n")
    shown = run("train", "--config", str(config), "--show-config").output
    assert "forget_gate = true\n" in shown and "learning_rate = 0.001\n" in shown
    # A number is the text of an option that takes a path, not the number of an open file.
    (tmp_path / "pairs.tsv").write_text("a\tb\n")
    config.write_text("dev = 0.05")
    args = ("train", tmp_path / "pairs.tsv", "-o", tmp_path / "m", "--config", config)
    assert "no line is on the dev side" in run(*args, code=1).output
    config.write_text("cells = ")
    assert "is not TOML" in run(*common, "--config", str(config), code=1).output


def test_gradcheck_has_an_option_for_each_form_of_an_encoder():
    options = _options("gradcheck")
    for one in ENCODERS.parameters:
        if one.kind in (bool, str):
            assert one.help in options[one.option].help
    assert "[default: 6]" in options["--cells"].help
    assert len(options) <= 18


def test_the_same_option_means_the_same_in_all_commands():
    for name in COMMANDS:
        for option, declared in _options(name).items():
            if option in ("--output", "--per-query", "--json", "--side", "--compare-with"):
                short = {"--output": "-o"}.get(option)
                assert short is None or short in declared.opts, (name, option)
