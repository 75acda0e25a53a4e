"""One declaration per hyper-parameter: what follows from it."""

import copy
import dataclasses
import pickle
import subprocess
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner

from sentemb import SentembError
from sentemb.cli import COMMANDS, main
from sentemb.data.click_log import ClickLogBuilder
from sentemb.models.pairs.registry import PAIR_MODEL_NAME
from sentemb.models.towers import make_encoder
from sentemb.models.towers.registry import (
    BAG_DIM,
    CELLS,
    ENCODERS,
    MODEL_NAME,
    EncoderEntry,
    encoder_parameters,
    encoders_with,
    register,
)
from sentemb.system.hyperparameters import GROUPS, Hyperparameter
from sentemb.training.pair_settings import HYPERPARAMETERS as PAIR_HYPERPARAMETERS
from sentemb.training.settings import HYPERPARAMETERS, PRESETS, Settings

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
        "objective gamma margin optimiser learning_rate decay momentum edge_momentum max_norm "
        "truncate truncation seed patience splitting neighbours max_word_features"
    )
    assert list(Settings().as_dict()) == order.split()


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_settings(preset):
    settings = Settings.of(preset).as_dict()
    assert {name: settings[name] for name in PRESETS[preset]} == PRESETS[preset]


def test_declarations_need_no_numpy():
    code = (
        "import sys, sentemb.training.settings as s, sentemb.gradients.check_options\n"
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
    for one in encoder_parameters():
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
    entry = EncoderEntry(
        "rnn again", "sentemb.models.towers.rnn:RNN", (CELLS, BAG_DIM), recurrent=True
    )
    monkeypatch.setitem(ENCODERS, "another", entry)
    assert "another" in encoders_with(CELLS)
    assert make_encoder("another", cells=4).cells == 4
    assert Settings(model="another").encoder().cells == 96
    with pytest.raises(SentembError, match="there is a model rnn already"):
        register(ENCODERS["rnn"])


# -- the command line ----------------------------------------------------------------------------


def _options(name):
    command = main.get_command(click.Context(main), name)
    return {name: option for option in command.params for name in option.opts}


def test_train_has_an_option_for_each_setting_in_its_group():
    options = _options("train")
    of_both = {one.name: one for one in PAIR_HYPERPARAMETERS}
    for one in (*HYPERPARAMETERS, *PAIR_HYPERPARAMETERS):
        assert options[one.option].group == one.group
        shown = options[one.option].help
        if one in HYPERPARAMETERS and one is not MODEL_NAME:
            assert one.help in shown
        elif one is not PAIR_MODEL_NAME:  # without what the help of two towers has said
            own = one.help.partition(": ")[2] or one.help
            assert own.removesuffix(".").lower() in shown.lower()
        if isinstance(options[one.option].type, click.Choice):
            assert set(one.choices) <= set(options[one.option].type.choices)
    for one in HYPERPARAMETERS:
        if isinstance(options[one.option].type, click.Choice):
            others = of_both[one.name].choices if one.name in of_both else ()
            expected = list(dict.fromkeys([*one.choices, *others]))
            assert list(options[one.option].type.choices) == expected
    # Every model of two towers has it.
    assert options["--shared-towers"].help.endswith(" two. Pair models: only senna, arc1.")
    shown = run("train", "--help").output
    titles = ["Model:", "Features:", "Negatives:", "Objective:", "Optimiser:", "Run:"]
    places = [shown.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)


def test_gradcheck_has_an_option_for_each_setting_of_an_encoder():
    options = _options("gradcheck")
    for one in encoder_parameters():
        assert one.help in options[one.option].help
    assert "[default: 6]" in options["--cells"].help
    assert "[default: 5]" in options["--hidden"].help


def test_the_same_option_means_the_same_in_all_commands():
    for name in COMMANDS:
        for option, declared in _options(name).items():
            if option in ("--output", "--per-query", "--json", "--side", "--compare-with"):
                short = {"--output": "-o", "--per-query": "-q"}.get(option)
                assert short is None or short in declared.opts, (name, option)
