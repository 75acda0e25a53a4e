"""The training loop with a task of its own, and what it asks of tasks and logs."""

import signal

import numpy as np
import pytest
from helpers import made_up_log

from sentemb import SentembError, train
from sentemb.models.files.model_files import load_model
from sentemb.models.files.saved_model import SavedModel
from sentemb.system.parallel import Workers
from sentemb.training.batches.corpus import Corpus
from sentemb.training.contracts import LogSource, Task
from sentemb.training.identity import Identity
from sentemb.training.loop import TrainingLoop
from sentemb.training.stopping import Diverged, Interrupted, StopRequest
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.two_tower_task import TwoTowerTask


class Count:
    """A task without towers or a log: each update adds the number of its mini-batch to a bias."""

    steps = 3
    metric = "evenness"

    def __init__(self, workers, dev=()):
        # Any model will do for the folder; only the bias of one tower changes.
        self.whole = train(made_up_log(), cells=2, epochs=1, batch_size=16, threads=1).saved().model
        self.bias = self.whole.weights["query"]["bias"]
        self.bias[...] = 0
        self.workers = workers
        self.calls = []
        self.dev = list(dev)  # a figure for each epoch

    def pairs_before(self, step):
        return 10 * step

    def before_epoch(self, epoch, stopped):
        self.calls.append(("before", epoch))

    def preparation(self, epoch):
        return 5.0 if epoch == 2 else 0.0

    def lasting(self):
        return {}

    def remarks(self, epoch):
        return {"middle": True} if epoch == 1 else {}

    def plan(self, epoch, step):
        self.calls.append(("plan", epoch, step))
        return epoch * 10 + step

    def update(self, batch, update):
        self.workers.run([])  # the next mini-batch is planned meanwhile
        self.calls.append(("update", batch, update))
        if batch == 99:
            raise Diverged("no number")
        self.bias += batch
        return float(batch)

    def flush(self, update):
        self.calls.append(("flush", update))

    def measure(self):
        return {"other": 1.0, self.metric: self.dev.pop(0)} if self.dev else None

    def model(self):
        return SavedModel(self.whole.copy())

    def state(self):
        return {"bias": self.bias}

    def check_state(self, stored, epoch, step):
        stored.expect("bias", self.bias.shape, self.bias.dtype)
        stored.check()

    def restore(self, stored):
        self.bias[...] = stored["bias"]


def loop_of(output=None, seconds=60.0, epochs=3, patience=None, dev=()):
    workers = Workers(1)
    task = Count(workers, dev)
    identity = Identity({"epochs": epochs, "patience": patience}, "log", "dev" if dev else None)
    loop = TrainingLoop(task, identity, output, seconds, workers, lambda note: None)
    return task, loop


def ignore(progress):
    pass


def test_the_loop_plans_the_next_mini_batch_before_it_goes_on():
    task, loop = loop_of(epochs=2)
    loop.prepare(resume=False)
    saved = loop.run(ignore, StopRequest())
    assert task.calls == [
        ("before", 0), ("plan", 0, 0),
        ("update", 0, 0), ("plan", 0, 1), ("update", 1, 1), ("plan", 0, 2), ("update", 2, 2),
        ("flush", 3),
        ("before", 1), ("plan", 1, 0),
        ("update", 10, 3), ("plan", 1, 1), ("update", 11, 4), ("plan", 1, 2), ("update", 12, 5),
        ("flush", 6),
    ]  # fmt: skip
    assert [line["loss"] for line in saved.history] == [1.0, 11.0]
    assert [(line["epoch"], line["step"]) for line in saved.history] == [(1, 3), (2, 6)]
    assert ["middle" in line for line in saved.history] == [False, True]
    assert saved.training["pairs"] == 30 and saved.training["finished"]


@pytest.mark.parametrize("stop_at", range(1, 9))
def test_a_stopped_loop_resumes_any_task_to_the_same_result(stop_at, tmp_path):
    _, whole = loop_of()
    expected = whole.run(ignore, StopRequest()).model.weights["query"]["bias"]
    stop, seen = StopRequest(), []

    def on_progress(progress):
        seen.append(progress)
        if len([at for at in seen if not at.epoch_ended]) == stop_at:
            stop.set(signal.SIGTERM)

    _, loop = loop_of(tmp_path)
    loop.prepare(resume=False)
    with pytest.raises(Interrupted) as stopped:
        loop.run(on_progress, stop)
    assert stopped.value.signal == signal.SIGTERM
    task, loop = loop_of(tmp_path)
    loop.prepare(resume=True)
    assert loop.updates == stop_at
    loop.run(ignore, StopRequest())
    # An epoch is prepared again only if none of its mini-batches is done.
    assert [call[1] for call in task.calls if call[0] == "before"] == list(
        range((stop_at + 2) // 3, 3)
    )
    assert np.array_equal(load_model(tmp_path).model.weights["query"]["bias"], expected)


def test_a_signal_while_the_model_is_saved_stops_the_command(tmp_path):
    """The ranker that would come next may take minutes. The saved model is complete."""
    stop = StopRequest()
    _, loop = loop_of(tmp_path)
    write = loop.files.write

    def signalled(saved, folder):
        stop.set(signal.SIGTERM)
        write(saved, folder)

    loop.files = loop.files._replace(write=signalled)
    loop.prepare(resume=False)
    with pytest.raises(Interrupted, match=r"all epochs were done; continue .* --resume") as stopped:
        loop.run(ignore, stop)
    assert stopped.value.signal == signal.SIGTERM
    assert load_model(tmp_path).training["finished"]


def test_the_figure_of_the_task_decides_which_epoch_is_the_best():
    _, loop = loop_of(dev=(0.2, 0.6, 0.6, 0.5), epochs=4, patience=3)
    saved = loop.run(ignore, StopRequest())
    assert len(saved.history) == 4
    assert saved.history[1]["dev"] == {"other": 1.0, "evenness": 0.6}
    # The bias after the second epoch: 0 + 1 + 2 and 10 + 11 + 12.
    assert set(saved.model.weights["query"]["bias"].ravel()) == {36.0}
    _, loop = loop_of(dev=(0.6, 0.2, 0.1, 0.9), epochs=4, patience=2)
    assert len(loop.run(ignore, StopRequest()).history) == 3


def test_a_checkpoint_that_lacks_the_figure_of_the_task_is_refused(tmp_path):
    stop = StopRequest()
    _, loop = loop_of(tmp_path, dev=(0.2, 0.6, 0.6))
    loop.prepare(resume=False)

    def on_progress(progress):
        if progress.epoch == 2:
            stop.set(signal.SIGTERM)

    with pytest.raises(Interrupted):
        loop.run(on_progress, stop)
    task, loop = loop_of(tmp_path, dev=(0.6, 0.6))
    task.metric = "another"
    notes = []
    loop.note = notes.append
    loop.prepare(resume=True)
    assert "does not say how far" in notes[0] and loop.updates == 0


def test_divergence_is_one_error_with_its_place():
    task, loop = loop_of()
    plan = task.plan
    task.plan = lambda epoch, step: 99 if (epoch, step) == (1, 2) else plan(epoch, step)
    with pytest.raises(SentembError, match="no number at epoch 2, step 3; lower the learning"):
        loop.run(ignore, StopRequest())


def test_two_towers_and_a_log_in_memory_fulfil_the_contracts():
    settings = Settings(cells=2)
    corpus = Corpus(made_up_log(), settings)
    with Workers(1) as workers:
        assert isinstance(TwoTowerTask(corpus, settings, workers, print), Task)
        assert isinstance(Count(workers), Task)
    assert isinstance(corpus, LogSource)


@pytest.mark.parametrize("shared_towers", [False, True])
def test_a_log_gives_the_texts_of_either_side(shared_towers):
    log = made_up_log()
    corpus = Corpus(log, Settings(cells=2, shared_towers=shared_towers))
    for side, texts in (("query", log.queries), ("document", log.titles)):
        numbers = np.array([5, 0, 3], np.int32)
        found = corpus.texts(side, numbers)
        expected = corpus.vocabulary.batch([texts[number] for number in numbers])
        assert np.array_equal(found.offsets, expected.offsets)
        assert features_of(found) == features_of(expected)


def features_of(batch):
    """The features of every word, text after text, as rows of the table."""
    spans = zip(batch.feature_offsets[:-1], batch.feature_offsets[1:], strict=True)
    words = [
        sorted(batch.input_rows[batch.feature_ids[first:end]].tolist()) for first, end in spans
    ]
    return [words[word] for word in batch.word_index]
