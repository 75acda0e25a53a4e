"""A small model for tests that use one and do not ask how well it ranks."""

import gc
import os
import shutil
import signal
import tempfile

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from sentemb.system import parallel

# A shell lets jobs in the background ignore Ctrl-C, and their children too; some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The default examples are the same every time, and no health check of Hypothesis stops a run: a
# test that passed fails after a change only. `make test-slow` draws other examples every time. A
# busy machine may take longer for one example than the deadline of Hypothesis. A profile inherits
# from that of the environment: where CI is set, Hypothesis would repeat "random" examples too.
# Half of the usual 100 examples: more of the same ones would find nothing new.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=50,
    suppress_health_check=[*HealthCheck],
)
settings.register_profile("random", derandomize=False, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def quick_disk():
    """Nothing waits for the disk, which takes milliseconds per file: no test cuts the power."""

    def fsync(handle):
        os.fstat(handle)  # it must be an open file

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        yield


@pytest.fixture
def laboratory(monkeypatch):
    """Let the package know, for one test, the checks and commands of `python -m lab`."""
    from lab import checks, commands

    from sentemb.cli import data
    from sentemb.gradients.checks import CHECKS

    for entry in checks.LAB_CHECKS:
        monkeypatch.setitem(CHECKS, entry.name, entry)
    for command in commands.LAB_COMMANDS:
        monkeypatch.setitem(data.command.commands, command.name, command)


TEXTS = ["hotels in shanghai", "shanghai hotels and resorts", "fix a bath tub", "bath tub repair"]


@pytest.fixture
def fine_parts(monkeypatch):
    """Work is cut into as many parts as there may be, however little each of them has."""
    monkeypatch.setattr(parallel, "PAYS", 1)
    monkeypatch.setattr(parallel, "_ADDED_ANYWAY", parallel.PARTS)


@pytest.fixture(scope="session")
def make_model():
    """A function that makes an untrained model of ``name`` with its settings."""
    # Not at the top: the process that starts the workers needs no Numba.
    from sentemb import SentenceEncoder
    from sentemb.models.towers import make_encoder
    from sentemb.text.batch import tokenize
    from sentemb.text.vocabulary import Vocabulary

    def make(name="lstm", **settings):
        encoder = make_encoder(name, **{"cells": 8, **settings})
        vocabulary = Vocabulary.collect(tokenize(TEXTS))
        rng = np.random.default_rng(0)
        weights = {side: encoder.initialise(len(vocabulary), rng) for side in ("query", "document")}
        return SentenceEncoder(encoder, vocabulary, weights)

    return make


@pytest.fixture(scope="session")
def model(make_model):
    return make_model()


@pytest.fixture(scope="session")
def model_dir(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "tiny"
    model.save_pretrained(path)
    return str(path)


@pytest.fixture
def two_steps(request, monkeypatch):
    """Differences of smooth losses take two steps, not the best of five: half of the time.

    For tests of what a check finds. At full size the steps are all there.
    """
    from sentemb.gradients import differences

    if "slow" not in request.keywords:
        monkeypatch.setattr(differences, "STEPS", (1e-3, 3e-4))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and tests stay to the end: looking for garbage in them took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        # Old from now on. If they stayed frozen, every kernel that is loaded would count them.
        gc.freeze()
        gc.unfreeze()
        gc.set_threshold(20_000, 20)  # with 700 and 10 it took a twentieth
        gc.enable()


def pytest_sessionfinish():
    """At its end pytest looks for garbage five times, through all that was loaded: a second."""
    gc.freeze()


def pytest_configure(config):
    """Under nohup SIGHUP is ignored, by this process and its children; tests send it to servers."""
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    _have_files_in_memory(config)


def _have_files_in_memory(config):
    """Quick tests make 200,000 small files: on a disk each takes ten times as long.

    They are gone at the end; with TMPDIR they are on the disk, and stay as those of pytest do.
    """
    quick, memory = config.option.markexpr, "/dev/shm"
    if "TMPDIR" in os.environ or not quick or not os.path.isdir(memory):
        return
    about = os.statvfs(memory)
    if not about.f_flag & os.ST_NOEXEC and about.f_bavail * about.f_frsize > 2e9:
        folder = f"{memory}/t{os.getpid()}"  # short: messages that name files are cut off
        os.mkdir(folder)
        os.environ["TMPDIR"], tempfile.tempdir = folder, None
        config.option.basetemp = f"{folder}/p"
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
