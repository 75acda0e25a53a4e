"""Work on a cluster of Dask: the same bytes as in one process, also after a worker is lost."""

import contextlib
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import dask
import distributed
import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_judged_set, made_up_log

from sentemb import SentembError, SentenceEncoder, train
from sentemb.cli import main
from sentemb.data.click_log import write_click_log
from sentemb.models import cluster_encoding as encoding
from sentemb.models.face import TextWarning
from sentemb.models.towers import make_encoder
from sentemb.search.index import Index
from sentemb.system import cluster as clusters
from sentemb.system.cluster import Cluster, opened
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.batches.preparing import prepare_log
from sentemb.training.stopping import Interrupted

WORDS = ["red", "blue", "green", "warm", "cold", "small", "large", "old", "new", "soft", "hard"]


@pytest.fixture(scope="module")
def client():
    """Two processes; if one is killed, another one is started.

    They are forks of a process that has imported Dask: tests kill ten of them.
    """
    settings = {"processes": True, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with (
        dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **settings) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def of_threads():
    """A function that makes a cluster of some workers that are threads of this process."""
    with contextmanager(_of_threads)() as make:
        yield make


def _of_threads():
    made = []

    def make(count):
        local = distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=False,
            dashboard_address="127.0.0.1:0",
            memory_limit=0,
        )
        made.append(local)
        made.append(distributed.Client(local, set_as_default=False))
        return made[-1]

    yield make
    for one in reversed(made):
        one.close(timeout=5)


def kill_one(client):
    """End one of the processes of a cluster at once."""
    first = min(client.nthreads())
    os.kill(client.run(os.getpid, workers=[first])[first], signal.SIGKILL)


def texts(count, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(1, 7))) for _ in range(count)]


# -- opening ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dask", ["here", "local:0", "local:x", "tcp://", "host:1", 3, "tcp://h"])
def test_what_is_no_cluster_is_refused(dask):
    with pytest.raises(SentembError, match="local:"), opened(dask):
        pass


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(clusters, "_TO_CONNECT", 0.3)
    began = time.monotonic()
    with pytest.raises(SentembError, match="no scheduler of Dask answers"):
        opened("tcp://127.0.0.1:9").__enter__()
    assert time.monotonic() - began < 5


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch, client):
    monkeypatch.setattr(clusters, "_TO_CONNECT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        others = f"tcp://127.0.0.1:{silent.getsockname()[1]}", min(client.nthreads())
        for address in others:  # the second is a worker
            began = time.monotonic()
            with pytest.raises(SentembError, match="no scheduler of Dask answers"):
                opened(address).__enter__()
            assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "frame",
    [b"abc", b"", bytes(8), bytes(16), b"\1" + bytes(7), b"\1" + bytes(7) + b"\1" + bytes(7) + b"x",
     b"\1" + bytes(7) + b"\3" + bytes(7) + b"\xa1xx", b"\xff" * 8, b"HTTP/1.1 400"],
)  # fmt: skip
def test_a_server_that_answers_something_else_is_named(frame):
    """Whatever the bytes, and whatever the reader of Dask makes of them."""

    def answer():
        with contextlib.suppress(OSError):
            while True:
                other, _ = server.accept()
                with other:
                    other.sendall(struct.pack("<Q", len(frame)) + frame)
                    time.sleep(0.2)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(SentembError, match=f"{address}: no scheduler of Dask answers there"):
            opened(address).__enter__()


def test_no_logger_of_dask_speaks_and_all_have_their_levels_again():
    own = logging.getLogger("distributed.client")
    before = own.level
    assert before < logging.CRITICAL
    with clusters._quiet():
        assert not own.isEnabledFor(logging.ERROR)
    assert own.level == before


def test_tls_without_certificates_is_an_error():
    with pytest.raises(SentembError, match=r"no certificates for it; name them"):
        opened("tls://127.0.0.1:9").__enter__()


def test_a_worker_with_other_versions_is_named():
    class Client:
        def run(self, function, workers, on_error):
            own = function()
            answer = other if isinstance(other, Exception) else {**own, **other}
            return dict(zip(workers, (own, answer), strict=True))

    client, other, both = Client(), {}, ["tcp://one:1", "tcp://two:2"]
    clusters._check_versions(client, both)
    for name in ("sentemb", "numpy", "numba"):
        other = {name: "0.0.7"}
        with pytest.raises(SentembError, match=rf"worker tcp://two:2 has {name} 0\.0\.7.*process"):
            clusters._check_versions(client, both)
    other = TypeError("code() takes 18 arguments")
    with pytest.raises(SentembError, match=r"tcp://two:2 cannot say its versions: code.*Python"):
        clusters._check_versions(client, both)
    other = OSError("it has just ended")
    clusters._check_versions(client, both)


def test_workers_that_come_later_are_asked_for_their_versions(of_threads, monkeypatch):
    client = of_threads(1)
    with opened(client) as cluster:
        (before,) = cluster.workers()
        asked = []
        monkeypatch.setattr(clusters, "_check_versions", lambda _, which: asked.append(which))
        client.cluster.scale(2)
        client.wait_for_workers(2, timeout=10)
        assert {*cluster.workers()} == {before, *asked[0]} and len(asked[0]) == 1
        cluster.workers()
        assert asked[1] == []


def test_workers_that_cannot_be_started_are_an_error(monkeypatch):
    def failing(**settings):
        raise RuntimeError("Nanny failed to start.") from OSError("too many open files")

    monkeypatch.setattr(distributed, "LocalCluster", failing)
    with pytest.raises(SentembError, match="local:2: the workers cannot be started: too many open"):
        opened("local:2").__enter__()


SCRIPT = "from sentemb.system.main_guard import unguarded_call\n"


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("print(unguarded_call())", 2),
        ("def go():\n    print(unguarded_call())\n\ngo()  # __name__ == '__main__'", 5),
        ("for _ in range(1):\n    if True:\n        print(unguarded_call())", 4),
        ("if __name__ == '__main__':\n    print(unguarded_call())", None),
        ("def go():\n    print(unguarded_call())\n\nif '__main__' == __name__:\n    go()", None),
        ("if __name__ == '__main__':\n    pass\nprint(unguarded_call())", 4),
    ],
)
def test_a_script_that_every_worker_would_run_again_is_named(tmp_path, script, line):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + script)
    said = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True).stdout
    assert said.strip() == (f"{path}:{line}" if line else "None")


@pytest.mark.parametrize("guard", ["", "if __name__ == '__main__': "])
def test_a_script_from_standard_input_is_told_to_be_a_file(guard):
    script = f"from sentemb.system.cluster import opened\n{guard}opened('local:1').__enter__()"
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True)
    assert "local:1 starts processes that run <stdin> again, and there is no such" in done.stderr


def test_the_remedy_for_such_a_script_is_a_guard(monkeypatch):
    def cluster(**settings):
        raise RuntimeError("Nanny failed to start worker process")

    monkeypatch.setattr(distributed, "LocalCluster", cluster)
    monkeypatch.setattr(clusters, "unguarded_call", lambda: "s.py:2")
    with pytest.raises(SentembError, match=r"^s\.py:2: local:2 starts .* below `if __name__"):
        opened("local:2").__enter__()


def test_a_scheduler_without_workers_is_an_error(monkeypatch, of_threads):
    monkeypatch.setattr(clusters, "_TO_BEGIN", 0.2)
    with pytest.raises(SentembError, match="has no workers; start some"):
        opened(of_threads(0)).__enter__()


def test_a_task_does_not_wait_for_ever(monkeypatch, of_threads):
    monkeypatch.setattr(clusters, "_WITHOUT_WORKERS", 0.2)
    monkeypatch.setattr(clusters, "_BETWEEN_LOOKS", 0.1)
    client = of_threads(0)
    cluster = Cluster(client, "tcp://host:1")
    with pytest.raises(SentembError, match="all workers of tcp://host:1 are lost"):
        cluster.result(cluster.submit(len, "text"))
    client.cluster.close()
    with pytest.raises(SentembError, match="the scheduler of tcp://host:1 is lost"):
        cluster.result(cluster.submit(len, "text"))


def test_an_error_of_a_task_is_raised(client):
    with opened(client) as cluster, pytest.raises(SentembError, match="side must be"):
        encoder = SentenceEncoder(*encoder_and_weights())
        list(encoding.encoded(encoder, [["a"]], "left", cluster=cluster))


def encoder_and_weights():
    encoder = make_encoder("lstm", cells=8)
    vocabulary = Vocabulary.collect(tokenize(WORDS))
    rng = np.random.default_rng(0)
    weights = {side: encoder.initialise(len(vocabulary), rng) for side in ("query", "document")}
    return encoder, vocabulary, weights


def test_no_more_portions_are_under_way_than_the_workers_can_do(client):
    begun = []

    def portions():
        for number in range(12):
            begun.append(number)
            yield ("x" * number,)

    with opened(client) as cluster:
        found = cluster.in_order(len, portions())
        assert next(found) == 0 and len(begun) <= 2 * 2
        assert list(found) == list(range(1, 12))


def test_ctrl_c_is_not_for_local_workers():
    with opened("local:1") as cluster:
        task = cluster.submit(signal.getsignal, signal.SIGINT)
        assert cluster.result(task) == signal.SIG_IGN


def test_a_task_that_ends_its_workers_is_given_up(client):
    with opened(client) as cluster:
        task = cluster.submit(os.abort)
        with pytest.raises(SentembError, match="several workers of the cluster ended during"):
            cluster.result(task)


# -- training in parts --------------------------------------------------------------------------


LOG = made_up_log(240)
PARTS = {"cells": 4, "epochs": 3, "batch_size": 16, "parts": 3, "meetings": 2, "threads": 1}


def weights(model):
    return [
        array.tobytes() for side in sorted(model.weights) for array in model.weights[side].values()
    ]


@cache
def alone(kind):
    """The weights that one process trains."""
    return weights(train(LOG, **{"parts": PARTS, "seeds": SEEDS}[kind]))


def test_parts_have_the_bits_of_one_process_with_any_number_of_workers(of_threads, tmp_path):
    whole = alone("parts")
    one, three = of_threads(1), of_threads(3)
    for client in (one, three):
        assert weights(train(LOG, dask=client, **PARTS)) == whole

    def stop(progress):
        if progress.epoch == 2:
            os.kill(os.getpid(), signal.SIGINT)

    out = tmp_path / "model"
    with pytest.raises(Interrupted):
        train(LOG, dask=three, output=out, on_progress=stop, **PARTS)
    assert weights(train(LOG, dask=one, output=out, resume=True, **PARTS)) == whole


def test_a_worker_that_is_lost_in_a_round_changes_no_bit(client):
    rounds = []

    def lose(progress):
        rounds.append(progress)
        if len(rounds) == 3:
            kill_one(client)

    settings = PARTS | {"model": "rnn", "hard_negatives": 2}
    lost = train(LOG, dask=client, on_progress=lose, **settings)
    assert weights(lost) == weights(train(LOG, **settings))


def test_two_trainings_on_a_cluster_do_not_mix(client):
    settings = [PARTS, PARTS | {"seed": 1, "model": "bag"}]
    with ThreadPoolExecutor(2) as executor:
        both = list(executor.map(lambda chosen: train(LOG, dask=client, **chosen), settings))
    assert [weights(model) for model in both] == [
        weights(train(LOG, **chosen)) for chosen in settings
    ]


# -- several seeds ------------------------------------------------------------------------------

SEEDS = {"cells": 4, "epochs": 3, "batch_size": 16, "seeds": 3, "hard_negatives": 2, "threads": 1}


def test_seeds_have_the_bits_of_one_process_also_after_a_worker_is_lost(client, tmp_path):
    def lose(text):
        notes.append(text)
        if "1 of 3 finished" in text:
            kill_one(client)

    notes = []
    first = train(LOG, **SEEDS | {"seeds": 1, "seed": 7})
    settings = SEEDS | {"dev": made_up_judged_set(LOG), "start_from": first}
    settings.pop("cells")
    here = train(LOG, **settings)
    there = train(LOG, dask=client, on_note=lose, **settings)
    assert weights(there) == weights(here)
    for name in ("kept_epochs", "dev_of_seeds", "dev_of_average", "seeds"):
        assert there.training[name] == here.training[name]
    assert "training 3 of 3 seeds on the workers" in notes
    assert [note[:6] for note in notes if "looking up hard negatives" in note] == [
        f"seed {seed}" for seed in range(3)
    ]
    prepare_log(written(tmp_path), tmp_path / "prepared")
    there = train(tmp_path / "prepared", dask=client, **SEEDS)
    assert weights(there) == alone("seeds")


def written(folder):
    write_click_log(LOG, folder / "log.tsv")
    return folder / "log.tsv"


@pytest.mark.parametrize("resume_on", ["workers", "here"])
def test_seeds_that_are_finished_are_not_trained_again(client, tmp_path, resume_on):
    def stop(text):
        if "1 of 3 finished" in text:
            raise KeyboardInterrupt

    out, notes, reports = tmp_path / "model", [], []
    with pytest.raises(Interrupted, match=r"stopped with 1 of 3 seeds finished; continue with"):
        train(LOG, dask=client, output=out, on_note=stop, **SEEDS)
    with pytest.raises(SentembError, match="a training that was stopped is there; use --resume"):
        train(LOG, dask=client, output=out, **SEEDS)
    more = {"on_note": notes.append, "on_progress": reports.append, "output": out, "resume": True}
    both = train(LOG, dask=client if resume_on == "workers" else None, **more, **SEEDS)
    assert weights(both) == alone("seeds")
    if resume_on == "workers":
        assert "training 2 of 3 seeds on the workers" in notes
    else:
        assert {one.seed for one in reports} == {1, 2}
    assert not (out / "checkpoints").exists()


def test_a_seed_that_fails_on_a_worker_is_named(client):
    with pytest.raises(SentembError, match=r"^seed 0: .*lower the learning rate"):
        train(LOG, dask=client, learning_rate=1e20, **SEEDS)


def test_seeds_are_trained_one_after_the_other_in_their_parts(client):
    settings = PARTS | {"seeds": 2}
    there = train(LOG, dask=client, **settings)
    assert weights(there) == weights(train(LOG, **settings))


def test_dask_is_for_parts_and_seeds(tmp_path):
    with pytest.raises(SentembError, match="dask trains the parts of a log or several seeds; give"):
        train(LOG, dask="local:1")
    with pytest.raises(SentembError, match="dask is not for"):
        train(LOG, dask="local:1", model="arc1")
    write_click_log(LOG, tmp_path / "log.tsv")
    options = ["--cells", "4", "--epochs", "1", "--batch-size", "16", "--parts", "2"]
    there, here = str(tmp_path / "there"), str(tmp_path / "here")
    arguments = ["train", str(tmp_path / "log.tsv"), *options, "--quiet", "-o"]
    for more in ([there, "--dask", "local:2"], [here]):
        done = CliRunner().invoke(main, [*arguments, *more])
        assert done.exit_code == 0, done.output + done.stderr
    models = [weights(SentenceEncoder.from_pretrained(folder)) for folder in (there, here)]
    assert models[0] == models[1]


# -- encoding -----------------------------------------------------------------------------------


def test_vectors_have_the_bytes_of_one_process_after_a_worker_is_lost(client, monkeypatch):
    monkeypatch.setattr(encoding, "PORTION", 64)
    model = SentenceEncoder(*encoder_and_weights())
    lines = [*texts(1500), "", "?"]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", TextWarning)
        one = list(encoding.encoded(model, encoding.portions_of(lines), "document"))
    found = []
    with opened(client) as cluster, warnings.catch_warnings(record=True) as told_there:
        warnings.simplefilter("always", TextWarning)
        for vectors in encoding.encoded(
            model, encoding.portions_of(lines), "document", cluster=cluster
        ):
            found.append(vectors)
            if len(found) == 4:
                kill_one(client)
    assert [rows.tobytes() for rows in found] == [rows.tobytes() for rows in one]
    assert [str(one.message) for one in told_there] == [str(one.message) for one in told]


def test_encode_and_index_take_a_cluster(client, monkeypatch, tmp_path):
    monkeypatch.setattr(encoding, "PORTION", 16)
    SentenceEncoder(*encoder_and_weights()).save_pretrained(tmp_path / "model")
    titles = texts(40)
    (tmp_path / "titles").write_text("\n".join([*titles, ""]))
    address = client.scheduler.address
    for name, more in (("one.npy", []), ("two.npy", ["--dask", address])):
        out = ["-o", str(tmp_path / name)]
        ran = CliRunner().invoke(
            main, ["encode", str(tmp_path / "model"), str(tmp_path / "titles"), *out, *more]
        )
        assert ran.exit_code == 0, ran.output
    assert (tmp_path / "one.npy").read_bytes() == (tmp_path / "two.npy").read_bytes()
    model = SentenceEncoder(tmp_path / "model")
    for dtype in ("float32", "int8"):
        one, two = (Index.build(model, titles, dtype=dtype, dask=dask) for dask in (None, client))
        one.save(tmp_path / f"{dtype}1")
        two.save(tmp_path / f"{dtype}2")
        for file in sorted((tmp_path / f"{dtype}1").rglob("*")):
            twin = tmp_path / f"{dtype}2" / file.relative_to(tmp_path / f"{dtype}1")
            assert file.is_dir() or file.read_bytes() == twin.read_bytes(), file


def test_a_changed_index_takes_no_cluster(tmp_path):
    ran = CliRunner().invoke(main, ["index", str(tmp_path), "--add", "x", "--dask", "local"])
    assert ran.exit_code == 2 and "--dask is for a new index" in ran.output
