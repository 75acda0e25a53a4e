"""Several models as one: the mean of their scores."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model, made_up_pair_model, made_up_texts, relative_error

import sentemb
from sentemb import SentembError, SentenceEncoder
from sentemb.cli import main
from sentemb.system.parallel import Workers

RNG = np.random.default_rng(3)
TEXTS = made_up_texts(RNG, (1, 3, 7, 2, 5))
OTHERS = made_up_texts(RNG, (4, 1, 6))
LSTM = made_up_model(("lstm", {"bag_dim": 3}), TEXTS)
DSSM = made_up_model(("dssm", {"hidden": 7}), OTHERS, cells=4, seed=1)
BAG = made_up_model(("bag", {}), TEXTS, shared=True, seed=2)
MEMBERS = [LSTM, DSSM, BAG]


def mean_score(query, titles):
    return np.mean([model.score(query, titles) for model in MEMBERS], axis=0)


def test_its_scores_are_the_means_of_the_members():
    ensemble = SentenceEncoder.average(MEMBERS)
    assert ensemble.dim == LSTM.dim + 4 + 5
    for query in TEXTS:
        np.testing.assert_allclose(
            ensemble.score(query, OTHERS + TEXTS), mean_score(query, OTHERS + TEXTS), atol=1e-12
        )


def test_a_text_has_the_same_bits_alone_and_among_others():
    ensemble = SentenceEncoder.average([model.astype("float32") for model in MEMBERS])
    together = ensemble.encode_query(TEXTS + OTHERS)
    for text, vector in zip(TEXTS + OTHERS, together, strict=True):
        assert np.array_equal(ensemble.encode_query(text), vector)


def test_a_feature_that_one_member_lacks_has_a_zero_row_there():
    ensemble = SentenceEncoder.average([LSTM, DSSM])
    only_ours = [one for one in LSTM.vocabulary.trigrams if one not in DSSM.vocabulary.trigrams]
    assert only_ours
    row = ensemble.vocabulary.trigrams.index(only_ours[0])
    table = ensemble.weights["query"]["table"]
    assert table[row, : LSTM.encoder.width].all()
    assert not table[row, LSTM.encoder.width :].any()
    row = ensemble.vocabulary.trigrams.index(DSSM.vocabulary.trigrams[0])
    own = DSSM.weights["query"]["table"][0]
    assert np.array_equal(table[row, LSTM.encoder.width :], own)


def test_the_backward_pass_is_the_gradient():
    ensemble = SentenceEncoder.average(MEMBERS)
    weights, batch = ensemble.weights["document"], ensemble.vocabulary.batch(TEXTS)
    V = np.random.default_rng(0).standard_normal((len(TEXTS), ensemble.dim))
    with Workers(1) as workers:

        def loss():
            return np.sum(V * ensemble.encoder.forward(weights, batch, workers).embeddings)

        done = ensemble.encoder.forward(weights, batch, workers)
        np.testing.assert_allclose(done.embeddings, ensemble.encode_document(TEXTS), atol=1e-12)
        gradient = ensemble.encoder.backward(weights, done, V, workers)
        for name, array in weights.items():
            found = gradient[name]
            where = batch.input_rows if name == "table" else slice(None)
            direction = np.random.default_rng(1).standard_normal(array[where].shape)
            step = 1e-6 * direction
            array[where] += step
            above = loss()
            array[where] -= 2 * step
            below = loss()
            array[where] += step
            numeric = (above - below) / 2e-6
            assert relative_error(np.sum(found * direction), numeric) < 1e-6, name


def test_it_is_stored_and_read_like_any_model(tmp_path):
    ensemble = SentenceEncoder.average(MEMBERS)
    ensemble.save_pretrained(tmp_path / "all")
    read = sentemb.load(tmp_path / "all")
    assert np.array_equal(read.encode_query(TEXTS), ensemble.encode_query(TEXTS))
    assert json.loads((tmp_path / "all" / "config.json").read_text())["format"] == 1
    assert "member2.W" in read.parameters()["query"]
    assert not read.shared_towers


def test_towers_are_shared_if_all_are():
    other = made_up_model(("rnn", {}), TEXTS, shared=True, seed=5)
    assert SentenceEncoder.average([BAG, other]).shared_towers


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([LSTM], "at least two"),
        ([], "at least two"),
        ([LSTM, SentenceEncoder.average([LSTM, BAG])], "average its members instead"),
        ([LSTM, made_up_pair_model(TEXTS)], "two towers, not of PairScorer"),
        ([LSTM, "model/"], "two towers, not of str"),
    ],
)
def test_what_cannot_be_averaged(members, message):
    with pytest.raises(SentembError, match=message):
        SentenceEncoder.average(members)


def test_an_average_is_neither_trained_nor_traced(tmp_path):
    ensemble = SentenceEncoder.average([LSTM, BAG])
    log = tmp_path / "pairs.tsv"
    log.write_text("a b\tc d\nb a\td e\n")
    with pytest.raises(SentembError, match="train its members"):
        sentemb.train(log, start_from=ensemble)
    with pytest.raises(SentembError, match="does not read word by word"):
        ensemble.trace("a b")


def test_the_command(tmp_path):
    run = CliRunner().invoke
    for name, model in (("a", LSTM), ("b", BAG)):
        model.astype("float32").save_pretrained(tmp_path / name)
    parts = [str(tmp_path / "a"), str(tmp_path / "b")]
    made = run(main, ["average", *parts, "-o", str(tmp_path / "ab")], standalone_mode=False)
    assert made.exception is None and "2 models, 13 dimensions" in made.output
    ensemble = SentenceEncoder.from_pretrained(tmp_path / "ab")
    expected = np.mean([LSTM.score(TEXTS[1], TEXTS[2]), BAG.score(TEXTS[1], TEXTS[2])])
    assert ensemble.score(TEXTS[1], TEXTS[2]) == pytest.approx(expected, abs=1e-6)
    again = run(main, ["average", *parts, "-o", str(tmp_path / "ab")], standalone_mode=False)
    assert "already" in str(again.exception)
    assert "two models" in str(
        run(main, ["average", parts[0], "-o", "x"], standalone_mode=False).exception
    )


@pytest.mark.parametrize(
    "members", [None, "lstm", [{"model": "lstm"}], [{"model": "ensemble"}] * 2]
)
def test_a_damaged_configuration_is_refused(members, tmp_path):
    from sentemb.models.files.configuration import encoder_of

    with pytest.raises(SentembError, match=r"config\.json"):
        encoder_of("config.json", {"model": "ensemble", "members": members})
