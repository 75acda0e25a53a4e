"""Training in parts of a log: the number of parts and meetings decides the bits, nothing else."""

import csv
import os
import signal
from pathlib import Path

import naive
import numpy as np
import pytest
from helpers import made_up_judged_set, made_up_log, made_up_word_features

from sentemb import SentembError, train
from sentemb.data.click_log import write_click_log
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.cluster import Process
from sentemb.system.parallel import Workers
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.preparing import prepare_log
from sentemb.training.contracts import Task
from sentemb.training.meeting import average
from sentemb.training.stopping import Interrupted
from sentemb.training.towers import parts_task
from sentemb.training.towers.parts_task import PartsTask, queries_of_parts
from sentemb.training.towers.settings import MEETINGS, Settings
from sentemb.training.towers.two_tower_task import TwoTowerTask

RESULTS = Path(__file__).parents[1] / "docs/results"
LOG = made_up_log(240)
TINY = {"cells": 4, "epochs": 4, "batch_size": 16, "parts": 3, "meetings": 2, "threads": 1}
WAYS = {
    "defaults": {},
    "a title of its own for each pair": {"group_size": 1},
    "nesterov": {"optimiser": "nesterov", "learning_rate": 0.1},
    "one tower": {"shared_towers": True, "model": "rnn"},
    "bag": {"model": "bag"},
    "hinge": {"objective": "hinge", "model": "dssm"},
    "drawn": {"negatives": "corpus", "n_negatives": 3},
    "skipped": {"negatives": "log", "n_negatives": 1},
}


def bits(model):
    return {
        (side, name): array.tobytes()
        for side, arrays in model.weights.items()
        for name, array in arrays.items()
    }


def stop_after(rounds):
    """An ``on_progress`` that sends Ctrl-C after some rounds."""
    seen = []

    def on_progress(progress):
        seen.append(progress)
        if len(seen) == rounds:
            os.kill(os.getpid(), signal.SIGINT)

    return on_progress


# -- the mean -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_mean_is_that_of_a_naive_twin(dtype):
    """Rows that no part, one part, some and all parts have."""
    rng = np.random.default_rng(0)
    before = {
        "query.weights.table": rng.standard_normal((6, 3)),
        "query.weights.bias": rng.standard_normal(4),
        "query.synced.table": np.zeros(6),
    }
    before = {name: array.astype(dtype) for name, array in before.items()}
    before["query.synced.table"] = np.zeros(6, np.int64)
    of_parts = [[0, 2, 5], [2, 3, 5], [5], [0, 2, 4, 5]]  # no part has row 1
    parts = []
    for rows in of_parts:
        arrays = {
            name: rng.standard_normal((len(rows), *array.shape[1:])).astype(array.dtype)
            if name.endswith("table")
            else rng.standard_normal(array.shape).astype(array.dtype)
            for name, array in before.items()
        }
        arrays["query.synced.table"][:] = 7
        parts.append(({name: rows for name in before if name.endswith("table")}, arrays))
    expected = naive.meeting(before, parts)
    state = {name: array.copy() for name, array in before.items()}
    rows = {
        name: [np.array(of_part[name], np.int32) for of_part, _ in parts] for name in parts[0][0]
    }
    average(state, rows, (arrays for _, arrays in parts))
    assert np.array_equal(state["query.weights.table"][1], before["query.weights.table"][1])
    assert state["query.synced.table"].tolist() == [7, 0, 7, 7, 7, 7]
    for name, array in state.items():
        assert array.dtype == before[name].dtype
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=1e-6)


def test_nothing_changes_before_all_parts_are_there():
    state = {"query.weights.bias": np.ones(2)}

    def parts():
        yield {"query.weights.bias": np.zeros(2)}
        assert state["query.weights.bias"].tolist() == [1, 1]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        average(state, {}, parts())
    assert state["query.weights.bias"].tolist() == [1, 1]


# -- the parts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_every_query_is_in_one_part_and_parts_have_as_many_pairs(parts):
    log = made_up_log(2_000)
    n_queries = len(log.queries)
    found = queries_of_parts(log.query_index, n_queries, parts)
    assert len(found) == parts and all(np.all(np.diff(part) > 0) for part in found)
    assert np.array_equal(np.sort(np.concatenate(found)), np.arange(n_queries))
    most = np.bincount(log.query_index).max()
    for queries in found:
        n_pairs = np.isin(log.query_index, queries).sum()
        assert abs(n_pairs - log.query_index.size / parts) <= most


def words_of(batch, text):
    """The words of a text, each as its features and values."""
    tokens = batch.word_index[batch.offsets[text] : batch.offsets[text + 1]]
    spans = [slice(*batch.feature_offsets[word : word + 2]) for word in tokens]
    return [
        list(
            zip(
                batch.input_rows[batch.feature_ids[span]].tolist(),
                batch.feature_values[span].tolist(),
                strict=True,
            )
        )
        for span in spans
    ]


@pytest.mark.parametrize("shared", [False, True])
def test_a_part_has_the_pairs_of_its_queries(shared):
    log = made_up_log(80, skipped=True)
    corpus = Corpus(log, Settings(shared_towers=shared, hard_negatives=0))
    assert corpus.sorted_titles.size  # what is computed for the whole is not that of a part
    queries = queries_of_parts(log.query_index, corpus.n_queries, 3)[1]
    part = corpus.part(queries)
    texts = {
        (side, whole): [
            words_of(of.texts(side, np.array([number], np.int32)), 0) for number in range(count)
        ]
        for whole, of in (("whole", corpus), ("part", part))
        for side, count in (("query", of.n_queries), ("document", of.n_titles))
    }
    assert texts["query", "part"] == [texts["query", "whole"][number] for number in queries]

    def pairs(of, whole, chosen):
        return [
            (
                texts["query", whole][of.query_index[pair]],
                texts["document", whole][of.title_index[pair]],
                [
                    texts["document", whole][title]
                    for title in of.skipped[slice(*of.skipped_offsets[pair : pair + 2])]
                ],
                of.weights[pair],
            )
            for pair in chosen
        ]

    of_part = np.flatnonzero(np.isin(corpus.query_index, queries))
    assert part.n_pairs == of_part.size and part.sorted_titles.size == part.n_pairs
    assert pairs(part, "part", range(part.n_pairs)) == pairs(corpus, "whole", of_part)
    for number, query in enumerate(queries):
        clicked = [
            texts["document", whole][title]
            for whole, of, asked in (("part", part, number), ("whole", corpus, query))
            for title in of.query_titles[slice(*of.query_offsets[asked : asked + 2])]
        ]
        assert clicked[: len(clicked) // 2] == clicked[len(clicked) // 2 :]


# -- the training -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_threads_and_a_stop_do_not_change_the_bits(way, tmp_path):
    log = made_up_log(120, skipped=True)
    settings = TINY | WAYS[way]
    whole = bits(train(log, **settings))
    assert bits(train(log, **settings | {"threads": 2})) == whole
    # In the middle of the epoch after the look-up, and at the end of the one before it.
    for stop in (4, 5):
        out = tmp_path / f"{stop}"
        with pytest.raises(Interrupted):
            train(log, output=out, on_progress=stop_after(stop + stop // 2), **settings)
        assert bits(train(log, output=out, resume=True, **settings)) == whole


@pytest.mark.parametrize("other", [{"parts": 2}, {"meetings": 3}])
def test_parts_and_meetings_change_the_model(other):
    log = made_up_log(240)
    assert bits(train(log, **TINY | other)) != bits(train(log, **TINY))


def test_one_part_is_the_usual_training():
    settings = {name: value for name, value in TINY.items() if name not in ("parts", "meetings")}
    assert bits(train(LOG, **settings, parts=1)) == bits(train(LOG, **settings))


@pytest.mark.parametrize("group_size", [1, 4])
def test_rounds_of_one_part_are_the_usual_updates(group_size):
    """The same mini-batches, the same rows, and a mean over one."""
    log = made_up_log(128)
    settings = Settings(cells=4, epochs=3, batch_size=16, group_size=group_size)
    corpus = Corpus(log, settings)
    assert corpus.n_pairs % 16 == 0
    of_parts = Settings(**settings.as_dict())
    of_parts._set("meetings", 3)
    with Workers(1) as workers:
        usual = TwoTowerTask(corpus, settings, workers, print)
        parts = PartsTask(corpus, of_parts, workers, print, executor=Process(1))
        assert isinstance(parts, Task) and parts.steps == 3
        for epoch in range(3):
            for task in (usual, parts):
                task.before_epoch(epoch, lambda: False)
                for step in range(task.steps):
                    task.update(task.plan(epoch, step), epoch * task.steps + step)
            assert [parts.pairs_before(step) for step in range(4)] == [
                16 * (step * usual.steps // 3) for step in range(4)
            ]
        expected = usual.state()
        assert all(np.array_equal(array, expected[name]) for name, array in parts.state().items())


def test_a_prepared_log_gives_the_bits_of_its_file(tmp_path):
    write_click_log(LOG, tmp_path / "log.tsv")
    prepare_log(tmp_path / "log.tsv", tmp_path / "prepared")
    from_memory = train(tmp_path / "log.tsv", **TINY)
    assert bits(train(tmp_path / "prepared", **TINY)) == bits(from_memory)
    assert from_memory.training["parts"] == 3 and from_memory.training["meetings"] == 2


def test_the_best_epoch_on_dev_is_kept_and_a_training_ends_early():
    seen = []
    settings = TINY | {"epochs": 8, "patience": 1, "learning_rate": 0.02}
    model = train(LOG, dev=made_up_judged_set(LOG), on_progress=seen.append, **settings)
    figures = [line["dev"]["ndcg@1"] for line in model.history]
    assert len(figures) < 8 and np.argmax(figures) == len(figures) - 2
    assert {(progress.steps, progress.step) for progress in seen} == {(2, 1), (2, 2)}
    assert model.history[0]["loss"] > 0 and model.history[2]["hard_negatives_ranked"]


def test_parts_start_from_a_model_and_from_word_vectors():
    first = train(LOG, **TINY)
    settings = {name: value for name, value in TINY.items() if name not in ("cells", "epochs")}
    more = made_up_log(240, seed=1)
    continued = train(more, start_from=first, **settings)
    assert len(continued.vocabulary) > len(first.vocabulary) and len(continued.history) == 3
    words = sorted({word for text in [*LOG.queries, *LOG.titles] for word in text.split()})
    features = made_up_word_features(words)
    vectors = WordVectors(features.words, np.asarray(features.vectors, np.float32))
    model = train(LOG, vectors=vectors, vector_dim=3, **TINY)
    assert bits(model) == bits(train(LOG, vectors=vectors, vector_dim=3, **TINY | {"threads": 2}))
    assert bits(model) != bits(first)


def test_several_seeds_are_trained_in_parts():
    both = train(LOG, seeds=2, **TINY)
    one = train(LOG, seed=1, **TINY)
    assert both.training["seeds"] == [0, 1] and both.training["parts"] == 3
    side = both.weights["query"]
    assert any(np.isin(one.weights["query"]["table"][5], array).all() for array in side.values())


def test_what_parts_cost_is_noted_before_the_training():
    notes = []
    train(LOG, on_note=notes.append, on_progress=lambda progress: notes.append(None), **TINY)
    (note,) = [note for note in notes[: notes.index(None)] if "updates" in note]
    assert "each of 3 parts has 20 updates; parts rank worse than one" in note
    assert "fewer than 300 updates a part" in note and "give fewer parts" in note


# Pairs of the sets of docs/results.
PAIRS = {"tldr": 26_048, "msdocs_index": 110_051}


def test_the_note_has_the_figures_of_the_results():
    """What it says that parts cost is the most that any number of meetings cost."""
    lost = {}  # by parts and updates of each
    for name, pairs in PAIRS.items():
        with open(RESULTS / f"parts-quality-in-parts-{name}.csv", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                parts = int(row["parts"])
                updates = Settings().epochs * -(-pairs // (512 * parts))
                if parts > 1:
                    change = float(row["minus one part: NDCG@1"])
                    lost.setdefault((parts, updates), []).append(-change)
    most = {few: max(x for (n, _), of in lost.items() if (n <= 4) == few for x in of)
            for few in (True, False)}  # fmt: skip
    note = parts_task._cost(4, 299)
    assert (
        f"by up to {most[True]:.3f} of NDCG@1 with 2 or 4 parts and {most[False]:.3f} with" in note
    )
    of_few = [x for (_, updates), of in lost.items() if updates < 300 for x in of]
    assert f"all lost, {min(of_few):.3f} to {max(of_few):.3f}: give fewer parts" in note
    assert "fewer" not in parts_task._cost(4, 300)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parts": 1}, "meetings are those of parts; give parts too"),
        ({"parts": 0}, "parts is 0"),
        ({"meetings": 0}, "meetings is 0"),
        ({"parts": 200, "meetings": None}, "too few queries for 200 parts; give fewer parts"),
        ({"parts": 70, "batch_size": 2}, "too few queries for 70 parts"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(SentembError, match=message):
        train(LOG, **TINY | settings)


def test_parts_have_a_default_number_of_meetings():
    assert Settings(parts=2).meetings == MEETINGS and Settings().meetings is None
    assert train(LOG, **TINY | {"meetings": 1000}).history[-1]["step"] == 20


def test_a_pair_model_has_no_parts():
    with pytest.raises(SentembError, match="parts is not for"):
        train(LOG, model="arc1", parts=2)
