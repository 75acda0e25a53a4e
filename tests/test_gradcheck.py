"""The gradient checker: what passes, what fails, and that it names the block that is broken."""

import inspect
import json
import re
import types

import numpy as np
import pytest
from click.testing import CliRunner
from numba.core.dispatcher import Dispatcher

import sentemb
import sentemb.kernels.compiling.jit
from sentemb import SentembError
from sentemb.cli import main
from sentemb.gradients import agreement as comparison
from sentemb.gradients import traces
from sentemb.gradients.pair_problem import PairProblem
from sentemb.kernels import input_layer as word_kernels
from sentemb.kernels import lstm as lstm_kernels
from sentemb.kernels import recurrent as recurrent_kernels
from sentemb.kernels import rnn as rnn_kernels
from sentemb.models.towers import ENCODERS
from sentemb.models.towers import encoder as encoder_model
from sentemb.models.towers import lstm as lstm_model
from sentemb.models.towers import recurrent as recurrent_model
from sentemb.models.towers import rnn as rnn_model
from sentemb.models.towers.bag import Bag
from sentemb.models.towers.dssm import DSSM

pytestmark = pytest.mark.usefixtures("two_steps")

SMALL = {"cells": 3, "entries": 4, "lengths": (1, 2, 4), "n_negatives": 2, "n_texts": 0}
# For kernels in plain Python.
SLOW = {**SMALL, "entries": 2, "n_negatives": 1}
FULL = {"forget_gate": True, "peepholes": "full"}
DIAGONAL = {"forget_gate": True, "peepholes": "diagonal"}


def failing(report):
    """Names of the failing blocks without their side, which must be both sides or neither."""
    failed = {block.block for block in report.blocks if not block.passed}
    names = {block.split(".", 1)[1] for block in failed}
    assert failed == {f"{side}.{name}" for side in ("query", "document") for name in names}
    return names


# -- what passes and what fails --------------------------------------------------------------------


# The check of the scan compares it with the traces, too.
@pytest.mark.parametrize(
    ("model", "settings", "form"),
    [
        ("rnn", {}, "scan"),
        ("rnn", {}, "trace"),
        ("lstm", FULL, "scan"),
        ("lstm", FULL, "trace"),
        ("lstm", {"shared_towers": True, **DIAGONAL}, "scan"),
        ("bilstm", {}, "scan"),
        ("lstm", {"output_gate": False, **FULL}, "scan"),
        ("irnn", {"bag_dim": 2}, "scan"),
    ],
)
def test_exact_forms_pass(model, settings, form):
    report = sentemb.gradcheck(model, **SMALL, **settings, form=form)
    assert report.passed and report.repeatable and report.directional < report.tolerance
    for block in report.blocks:
        assert block.passed and block.checked >= 2 and block.analytic != 0, block
        assert block.form_difference < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize("peepholes", ["none", "diagonal", "full"])
@pytest.mark.parametrize("forget_gate", [False, True])
@pytest.mark.parametrize("model", ["lstm", "bilstm"])
def test_every_variant_passes_at_full_size(model, forget_gate, peepholes):
    assert sentemb.gradcheck(model, forget_gate=forget_gate, peepholes=peepholes).passed


WAYS = ["8 by 8", "traces", "traces cut after 3 (window)", "traces cut after 3 (cec)"]


@pytest.mark.parametrize(
    ("model", "sizes", "ways"),
    [("lstm", SMALL, WAYS), ("dssm", SMALL, WAYS[:1]), ("arc1", {}, WAYS[:1])],
)
def test_a_whole_batch_is_compared_in_every_exact_way(model, sizes, ways):
    report = sentemb.gradcheck(model, **{**sizes, "entries": 4, "n_texts": 100})
    assert [check.way for check in report.batch] == ways and report.n_texts == 100
    assert all(check.passed and 0 < check.difference < 1e-13 for check in report.batch)
    assert report.batch_line in report._repr_html_()


def test_only_the_exact_gradient_has_a_whole_batch():
    sizes = {**SMALL, "n_texts": 10}
    assert not sentemb.gradcheck("lstm", **SMALL).batch_line
    assert not sentemb.gradcheck("lstm", **sizes, form="printed").batch
    assert not sentemb.gradcheck("lstm", **sizes, fault="b_g").batch


def test_printed_form_passes_for_the_rnn():
    assert sentemb.gradcheck("rnn", **SMALL, form="printed").passed


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"forget_gate": True}, set()),
        ({"peepholes": "full"}, {"W3", "b3", "W4", "b4"}),
        (DIAGONAL, {"W3", "b3", "W4", "b4"}),
        ({"output_gate": False, **FULL}, set()),
    ],
)
def test_printed_form_on_one_word_is_wrong_only_through_the_output_peephole(settings, expected):
    """(43) and (44) have nothing to recur through, so only (78) can be wrong."""
    sizes = {**SMALL, "lengths": (1, 1, 1)}
    report = sentemb.gradcheck("lstm", **sizes, **settings, form="printed")
    assert report.passed == (not expected)
    assert failing(report) == expected
    for block in report.blocks:
        assert ("(78)" in block.equations) == (not block.passed)


@pytest.mark.parametrize("settings", [{}, FULL])
def test_printed_form_is_wrong_from_two_words(settings):
    sizes = {**SMALL, "lengths": (2, 2, 2), "entries": 16}
    report = sentemb.gradcheck("lstm", **sizes, **settings, form="printed")
    assert not report.passed
    for block in report.blocks:
        name = block.block.split(".")[1]
        # The last step's share is right; where the first step's y and c are factors, it is all.
        if name in ("W1", "b1", "W3", "b3", "W4", "b4"):
            assert not block.passed and ("(43)" if name[1] == "1" else "(44)") in block.equations
        assert block.cosine is None or -1 <= block.cosine <= 1 + 1e-12


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"model": "gru"}, "gru"),
        ({"form": "exact"}, "form"),
        ({"lengths": ()}, "lengths"),
        ({"lengths": (1, 0)}, "lengths"),
        ({"entries": 0}, "entries"),
        ({"n_texts": -1}, "n_texts"),
        ({"n_negatives": 0}, "n_negatives"),
        ({"tolerance": -1}, "tolerance"),
        ({"model": "rnn", "forget_gate": True}, "rnn"),
        ({"cells": 0}, "cells"),
    ],
)
def test_settings_that_make_no_problem_are_refused(arguments, word):
    with pytest.raises(SentembError, match=word):
        sentemb.gradcheck(**arguments)


# -- the command -----------------------------------------------------------------------------------

QUICK = ["--cells", "3"]


def run(*arguments):
    return CliRunner().invoke(main, ["gradcheck", *QUICK, *arguments])


def test_command_prints_every_block_and_a_verdict():
    result = run("--lengths", "1,3")
    assert result.exit_code == 0
    for block in ("query.W1", "query.Wrec3", "document.b4"):
        assert re.search(rf"^{block} .* pass$", result.stdout, re.M)
    assert re.search(r"^600 at once differ from 8 by 8 .*e-1[4-6]; traces ", result.stdout, re.M)
    assert "PASS" in result.stdout and "FAIL" not in result.stdout


def test_command_fails_for_the_printed_form_and_names_the_equations():
    result = run("--lengths", "2", "--form", "printed")
    assert result.exit_code == 1
    assert re.search(r"^query.W3 .* FAIL$", result.stdout, re.M)
    assert "(44)" in result.stdout and "PASS" not in result.stdout
    assert run("--lengths", "1", "--form", "printed").exit_code == 0


def test_command_prints_json():
    result = run("--lengths", "1,2", "--json", "--model", "rnn")
    (report,) = json.loads(result.stdout)
    assert result.exit_code == 0 and report["passed"]
    assert {block["block"] for block in report["blocks"]} == {
        f"{side}.{name}" for side in ("query", "document") for name in ("W", "Wrec", "b")
    }
    result = run("--lengths", "2", "--json", "--form", "printed")
    (report,) = json.loads(result.stdout)
    assert result.exit_code == 1 and not report["passed"]


@pytest.mark.slow
def test_command_goes_through_all_variants():
    result = run("--lengths", "1,3", "--model", "all")
    assert result.exit_code == 0
    passed, tried = map(int, re.search(r"(\d+) of (\d+) variants pass", result.stdout).groups())
    assert passed == tried == result.stdout.count("PASS (")
    for model in ENCODERS:
        assert re.search(rf"^{model}, form", result.stdout, re.MULTILINE), model


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--lengths", "1,x"], 2),
        (["--form", "other"], 2),
        (["--cells", "0"], 1),
        (["--model", "all", "--forget-gate"], 1),
    ],
)
def test_command_refuses_wrong_usage(arguments, code):
    result = run(*arguments)
    assert result.exit_code == code
    assert "Traceback" not in result.output


# -- broken on purpose -----------------------------------------------------------------------------


def plain(kernels, monkeypatch, old="", new=""):
    """The kernels of a module as plain Python, with one place of their source replaced.

    Plain Python compiles nothing and gives the same float64 numbers. What is written in machine
    instructions stays compiled: the product and the prefetch.
    """
    source = inspect.getsource(kernels)
    if old:
        assert source.count(old) == 1, f"{kernels.__name__} must hold {old!r} just once"
        source = source.replace(old, new)
    with monkeypatch.context() as patch:
        patch.setattr(sentemb.kernels.compiling.jit, "kernel", lambda function: function)
        module = types.ModuleType(kernels.__name__)
        exec(compile(source, kernels.__file__, "exec"), module.__dict__)
    for name, value in vars(module).items():
        setattr(module, name, as_python(value, {}))
    return module


def as_python(value, made):
    """A kernel as plain Python, and whatever it calls: some kernels only kernels may call."""
    if not isinstance(value, Dispatcher):
        return value
    function = value.py_func
    if function.__name__ == "add_matmul":  # compiled, as it is machine instructions
        return value
    if function.__module__ == "sentemb.kernels.prefetch":  # which changes nothing
        return lambda *arguments: None
    if function not in made:
        own = dict(function.__globals__)
        made[function] = types.FunctionType(
            function.__code__, own, function.__name__, function.__defaults__, function.__closure__
        )
        own |= {name: as_python(one, made) for name, one in own.items()}
    return made[function]


def install(broken, user, monkeypatch):
    """Let the module ``user`` call the kernels of ``broken``."""
    names = [name for name in vars(user) if isinstance(vars(user)[name], Dispatcher)]
    taken = [name for name in names if inspect.isfunction(vars(broken).get(name))]
    assert taken, f"{user.__name__} uses no kernel of {broken.__name__}"
    for name in taken:
        monkeypatch.setattr(user, name, getattr(broken, name))


def test_whole_kernels_pass_as_plain_python(monkeypatch):
    """The ground for the broken ones below: the broken line makes them fail, not the way."""
    for kernels, user in (
        (lstm_kernels, lstm_model),
        (rnn_kernels, rnn_model),
        (recurrent_kernels, recurrent_model),
        (word_kernels, encoder_model),
    ):
        install(plain(kernels, monkeypatch), user, monkeypatch)
    for model, settings in (("rnn", {}), ("lstm", FULL), ("lstm", DIAGONAL)):
        assert sentemb.gradcheck(model, **SLOW, **settings).passed


def names(numbers, *kinds):
    """Blocks such as W3 of the given kinds and gates."""
    return {kind + number for number in numbers for kind in kinds}


# What is broken, where, in which model, old text, new text, and the blocks that must fail: exactly
# these for a mistake that stays in its place, at least these for one that spreads through time.
KERNEL_MUTANTS = {
    "delta_1 with the wrong sign": (
        (lstm_kernels, lstm_model, "lstm", FULL),
        ("* (unity - o) * e[j]", "* (unity - o) * -e[j]"),
        ("at least", names("1", "W", "Wrec", "b", "Wp") | names("234", "W", "b")),
    ),
    "1 + h^2 for 1 - h^2": (
        (lstm_kernels, lstm_model, "lstm", {}),
        ("o * (unity - h[j] * h[j])", "o * (unity + h[j] * h[j])"),
        ("at least", names("34", "W", "Wrec", "b")),
    ),
    "i for i (1 - i) in delta_3": (
        (lstm_kernels, lstm_model, "lstm", {}),
        ("y_g * i * (unity - i)", "y_g * i"),
        ("at least", names("3", "W", "Wrec", "b")),
    ),
    "c(t) for c(t-1) in delta_2": (
        (lstm_kernels, lstm_model, "lstm", {"forget_gate": True}),
        ("before = step_rows[s - 1] if t > 0", "before = low if t > 0"),
        ("at least", names("2", "W", "Wrec", "b")),
    ),
    "no error along the cell": (
        (lstm_kernels, lstm_model, "lstm", {"forget_gate": True}),
        ("eps[j] *= f\n", "eps[j] *= 0 * f\n"),
        ("at least", names("234", "W", "b")),
    ),
    "output gate left out of the recurrent product": (
        (lstm_kernels, lstm_model, "lstm", {}),
        (
            "add_matmul(E[:running], D[low:high], recurrent)",
            "add_matmul(E[:running], D[low:high, n:], recurrent[n:])",
        ),
        ("at least", names("134", "W", "b")),
    ),
    "no way back through Wp1, matrix": (
        (lstm_kernels, lstm_model, "lstm", FULL),
        ("add_matmul(rho[:running], D[low:high, :n], matrices[0])", "pass"),
        ("at least", names("234", "W", "b")),
    ),
    "no way back through Wp3, diagonal": (
        (lstm_kernels, lstm_model, "lstm", DIAGONAL),
        ("_add_product(eps, vectors[2], d[input_:candidate])", "pass"),
        ("at least", names("34", "W", "b")),
    ),
    "half of dWp1, diagonal": (
        (lstm_kernels, lstm_model, "lstm", DIAGONAL),
        ("_add_product(dp[0], D[r, :n], C[r])", "_add_product(dp[0], D[r, :n], C[r] / 2)"),
        ("exactly", {"Wp1"}),
    ),
    "delta_3 for delta_2 in dWp2, matrix": (
        (lstm_kernels, lstm_model, "lstm", FULL),
        (
            "add_matmul(dP[1], c_last, D[low:high, forget:])",
            "add_matmul(dP[1], c_last, D[low:high, input_:candidate])",
        ),
        ("exactly", {"Wp2"}),
    ),
    "y(t) for y(t-1) in dWrec": (
        (recurrent_kernels, recurrent_model, "lstm", {"forget_gate": True}),
        ("Y[before : before + high - low].T", "Y[low:high].T"),
        ("exactly", names("1234", "Wrec")),
    ),
    "errors of two texts exchanged at their start": (
        (recurrent_kernels, None, "lstm", {}),
        (
            "for k in range(first, end):\n        v = V[order[first_text + k]",
            "for k in range(first, end):\n        v = V[order[first_text + k - 1]",
        ),
        ("exactly", names("134", "W", "Wrec", "b")),
    ),
    "no slope of the cell without output gate": (
        (lstm_kernels, lstm_model, "lstm", {"output_gate": False}),
        ("eps[j] += (unity - h[j] * h[j]) * e[j]", "eps[j] += e[j]"),
        ("at least", names("34", "W", "Wrec", "b")),
    ),
    "a slope of tanh in the linear RNN": (
        (rnn_kernels, rnn_model, "irnn", {}),
        ("if linear:", "if False:"),
        ("exactly", {"W", "Wrec", "b"}),
    ),
    "1 - y for 1 - y^2 in the RNN": (
        (rnn_kernels, rnn_model, "rnn", {}),
        ("(unity - y[j] * y[j]) * e[j]", "(unity - y[j]) * e[j]"),
        ("exactly", {"W", "Wrec", "b"}),
    ),
}


@pytest.mark.parametrize(
    ("kernels", "user", "model", "errors"),
    [
        (lstm_kernels, lstm_model, "lstm", "_set_output_error(d, eps, E[{}], H[low + k], vectors)"),
        (rnn_kernels, rnn_model, "rnn", "d, y, e = D[low + k], Y[low + k], E[{}]"),
    ],
    ids=["lstm", "rnn"],
)
def test_a_wrong_error_from_the_eighth_text_of_a_block_on_is_found(
    kernels, user, model, errors, monkeypatch
):
    """Differences cannot see it: their blocks have three texts at most."""
    change = errors.format("k"), errors.format("min(k, 6)")
    install(plain(kernels, monkeypatch, *change), user, monkeypatch)
    # In blocks of eight.
    report = sentemb.gradcheck(model, **{**SLOW, "n_texts": 64})
    assert all(block.passed for block in report.blocks) and report.directional < report.tolerance
    assert [check.passed for check in report.batch] == [False] * len(WAYS) and not report.passed
    assert (
        report.batch_line.endswith(": FAIL")
        and f" in {report.batch[0].block};" in report.batch_line
    )


def failing_blocks_of(model, settings):
    report = sentemb.gradcheck(model, **SLOW, **settings)
    assert not report.passed
    return failing(report)


@pytest.mark.parametrize("mutant", KERNEL_MUTANTS)
def test_a_broken_line_is_found_in_its_blocks(mutant, monkeypatch):
    (kernels, user, model, settings), change, (extent, expected) = KERNEL_MUTANTS[mutant]
    broken = plain(kernels, monkeypatch, *change)
    if user is None:  # called by the kernels of the LSTM
        scan = plain(lstm_kernels, monkeypatch)
        scan.start_errors = broken.start_errors
        broken, user = scan, lstm_model
    install(broken, user, monkeypatch)
    failed = failing_blocks_of(model, settings)
    assert failed == expected if extent == "exactly" else failed >= expected


def test_a_trigram_that_a_word_holds_twice_counted_once_is_found(monkeypatch):
    broken = plain(word_kernels, monkeypatch, "o[j] += weight * s[j]", "o[j] += s[j]")
    install(broken, encoder_model, monkeypatch)
    assert failing_blocks_of("lstm", {}) == names("134", "W")


def swap_biases(encoder, gradient):
    n = encoder.cells
    bias = gradient["bias"]
    bias[: 2 * n] = np.concatenate([bias[n : 2 * n], bias[:n]])


def transpose_peepholes(encoder, gradient):
    gradient["peepholes"] = gradient["peepholes"].transpose(0, 1, 3, 2)


def scale_slightly(encoder, gradient):
    gradient["recurrent"] *= 1 + 1e-5


def lose_a_block(encoder, gradient):
    gradient["recurrent"][:, :, : encoder.cells] = 0


def spoil_gradient(monkeypatch, spoil, encoder=lstm_model.LSTM):
    """Let ``spoil(encoder, gradient)`` change every gradient of a class of encoders."""
    whole = encoder.backward_tasks

    def broken(self, *arguments, **more):
        gradient = yield from whole(self, *arguments, **more)
        spoil(self, gradient)
        return gradient

    monkeypatch.setattr(encoder, "backward_tasks", broken)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (swap_biases, {"b1", "b3"}),
        (transpose_peepholes, {"Wp1", "Wp2", "Wp3"}),
        (scale_slightly, names("1234", "Wrec")),
        (lose_a_block, {"Wrec1"}),
    ],
)
def test_a_gradient_in_the_wrong_place_is_found(spoil, expected, monkeypatch):
    spoil_gradient(monkeypatch, spoil)
    assert failing_blocks_of("lstm", FULL) == expected


@pytest.mark.parametrize("lengths", [(1, 2, 4), (1, 1)])
def test_a_block_that_nothing_uses_is_found(lengths, monkeypatch):
    """Its gradient and its differences agree, both being zero: that alone is no proof."""
    shapes, blocks, whole = Bag.shapes, Bag.blocks, Bag.backward_tasks

    def idle_gradient(self, weights, *arguments):
        gradient = yield from whole(self, weights, *arguments)
        return gradient | {"idle": np.zeros_like(weights["idle"])}

    monkeypatch.setattr(Bag, "shapes", lambda self, n: shapes(self, n) | {"idle": (4,)})
    monkeypatch.setattr(Bag, "blocks", lambda self, w: blocks(self, w) | {"idle": w["idle"]})
    monkeypatch.setattr(Bag, "backward_tasks", idle_gradient)
    report = sentemb.gradcheck("bag", **{**SMALL, "lengths": lengths})
    assert not report.passed and failing(report) == {"idle"}


def test_a_forward_pass_that_the_gradient_does_not_follow_is_found(monkeypatch):
    forward = plain(
        lstm_kernels, monkeypatch, "c[j] = f[j] * c_last[j] + i[j]", "c[j] = c_last[j] + i[j]"
    )
    monkeypatch.setattr(lstm_model, "lstm_forward", forward.lstm_forward)
    report = sentemb.gradcheck("lstm", **SLOW, forget_gate=True)
    assert failing(report) >= names("2", "W", "Wrec", "b")


@pytest.fixture
def compare_first_entries(monkeypatch):
    """Only the first entry of each block is compared with differences."""
    monkeypatch.setattr(comparison, "_choose", lambda g, entries, rng: [(0,) * g.ndim])


def test_a_wrong_entry_that_no_block_compares_is_found_in_random_directions(
    compare_first_entries, monkeypatch
):
    def spoil_last(encoder, gradient):
        gradient["output"][-1, -1] += 0.1

    assert sentemb.gradcheck("dssm", **SMALL).passed
    spoil_gradient(monkeypatch, spoil_last, DSSM)
    report = sentemb.gradcheck("dssm", **SMALL)
    assert all(block.passed for block in report.blocks)
    assert report.directional > report.tolerance and not report.passed


def test_a_wrong_printed_entry_that_is_not_compared_is_found_in_its_block(
    compare_first_entries, monkeypatch
):
    whole = PairProblem.gradient

    def gradient(self, form="scan", truncation=None):
        found = whole(self, "scan", truncation)
        if form == "printed":
            for blocks in found.values():
                blocks["Wrec3"][-1, -1] += 1e-3
        return found

    monkeypatch.setattr(PairProblem, "gradient", gradient)
    assert sentemb.gradcheck("lstm", **SMALL).passed
    assert failing(sentemb.gradcheck("lstm", **SMALL, form="printed")) == {"Wrec3"}


def test_forms_that_differ_are_found(monkeypatch):
    whole = traces._lstm_signals

    def slightly_off(*arguments):
        return whole(*arguments) * (1 + 1e-8)

    monkeypatch.setattr(traces, "_lstm_signals", slightly_off)
    report = sentemb.gradcheck("lstm", **SMALL)
    assert not report.passed and failing(report) == names("134", "W", "Wrec", "b")
    for block in report.blocks:
        assert block.relative < report.tolerance and 1e-9 < block.form_difference < 1e-7


def test_bits_that_differ_from_call_to_call_are_found(monkeypatch):
    whole, calls = lstm_model.LSTM.backward_tasks, []

    def unsteady(self, *arguments, **more):
        gradient = yield from whole(self, *arguments, **more)
        calls.append(1)
        gradient["bias"] *= 1 + 1e-14 * len(calls)
        return gradient

    monkeypatch.setattr(lstm_model.LSTM, "backward_tasks", unsteady)
    report = sentemb.gradcheck("lstm", **SMALL)
    assert not report.repeatable and not report.passed
