"""Effects of words on the score: against finite differences, and against scoring again."""

import numpy as np
import pytest
from helpers import each_variant, made_up_model, made_up_texts

from sentemb import SentembError, SentenceEncoder
from sentemb.analysis.attribution import left_out_effects, word_effects
from sentemb.analysis.nearest_words import neighbours
from sentemb.models.towers.towers import SIDES
from sentemb.models.towers.truncation import Truncation
from sentemb.system.parallel import Workers
from sentemb.text.batch import batch_of, tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import BARE, LETTERED, SPLITTINGS

STEP = 1e-5


def texts_with_a_repeated_word(seed=0):
    query, title = made_up_texts(np.random.default_rng(seed), [4, 7])
    return f"{query} {query.split()[0]}", title


def score_with_scaled_word(model, side, texts, place, scale):
    """The cosine when one token's letter trigrams count ``scale`` times.

    A token is a word of its own here, so that a word that stands twice can be scaled once.
    """
    weights = model.weights[side]
    batch = model.vocabulary.batch([texts[side]])
    alone = batch.word_index.size
    pieces = [
        slice(batch.feature_offsets[w], batch.feature_offsets[w + 1]) for w in batch.word_index
    ]
    projected = np.stack(
        [
            batch.feature_values[piece]
            @ weights["table"][batch.input_rows[batch.feature_ids[piece]]]
            for piece in pieces
        ]
    )
    projected[place] *= scale
    # Every token's input as one row of the input weights, counted once.
    scaled = {**weights, "table": projected}
    each = np.arange(alone, dtype=np.int32)
    one_each = type(batch)(
        word_index=each,
        offsets=batch.offsets,
        feature_offsets=np.arange(alone + 1),
        feature_ids=each,
        feature_values=np.ones(alone, np.float32),
        input_rows=each,
    )
    with Workers(1) as workers:
        vector = model.encoder.forward(scaled, one_each, workers).embeddings
    other = "document" if side == "query" else "query"
    return float(model.similarity(vector, model.encode(texts[other], side=other))[0, 0])


@pytest.mark.parametrize("shared", [False, True], ids=["two towers", "shared"])
@pytest.mark.parametrize(**each_variant())
def test_gradient_times_input_is_the_derivative_by_a_scale_on_the_word(variant, shared):
    query, title = texts_with_a_repeated_word()
    model = made_up_model(variant, [query, title], shared=shared)
    texts = {"query": query, "document": title}
    effects = word_effects(model, query, title)
    for side, text in texts.items():
        assert effects[side].words == text.split()
        numeric = [
            (
                score_with_scaled_word(model, side, texts, place, 1 + STEP)
                - score_with_scaled_word(model, side, texts, place, 1 - STEP)
            )
            / (2 * STEP)
            for place in range(len(text.split()))
        ]
        np.testing.assert_allclose(effects[side].gradient, numeric, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(**each_variant())
def test_left_out_is_the_difference_of_two_scores(variant):
    query, title = texts_with_a_repeated_word(seed=1)
    model = made_up_model(variant, [query, title])
    effects = word_effects(model, query, title)
    for place in range(len(query.split())):
        words = query.split()
        del words[place]
        expected = model.score(query, title) - model.score(" ".join(words), title)
        assert effects["query"].left_out[place] == pytest.approx(expected, abs=1e-12)
    for place in range(len(title.split())):
        words = title.split()
        del words[place]
        expected = model.score(query, title) - model.score(query, " ".join(words))
        assert effects["document"].left_out[place] == pytest.approx(expected, abs=1e-12)


def test_the_only_word_of_a_text_has_the_whole_score_as_its_effect(model):
    effects = word_effects(model, "shanghai", "hotels")
    score = model.score("shanghai", "hotels")
    assert effects["query"].left_out == pytest.approx([score], abs=1e-6)
    assert effects["document"].left_out == pytest.approx([score], abs=1e-6)


def test_a_word_without_known_trigrams_has_no_input(model):
    effects = word_effects(model, "hotels 上海 shanghai", "shanghai hotels")
    assert effects["query"].gradient[1] == 0
    assert np.all(effects["query"].gradient[[0, 2]] != 0)


def test_texts_that_embed_to_nothing_have_no_effects(make_model):
    silent = make_model()
    for array in silent.weights["document"].values():
        array[...] = 0
    effects = word_effects(silent, "hotels in shanghai", "bath tub")
    for side in effects.values():
        assert not side.left_out.any()
        assert not side.gradient.any()


def test_a_text_without_words_is_refused(model):
    with pytest.raises(SentembError, match="without words"):
        word_effects(model, "hotels", " ")


@pytest.mark.parametrize(**each_variant())
@pytest.mark.parametrize("truncation", [None, Truncation(2)], ids=["whole", "two steps"])
def test_errors_at_the_inputs_sum_to_the_gradient_of_the_biases(variant, truncation):
    texts = made_up_texts(np.random.default_rng(2), [3, 1, 6, 0, 2])
    model = made_up_model(variant, texts)
    weights, batch = model.weights["query"], model.vocabulary.batch(texts)
    V = np.random.default_rng(3).standard_normal((batch.n_texts, model.dim))
    with Workers(1) as workers:
        done = model.encoder.forward(weights, batch, workers)
        errors = model.encoder.input_errors(weights, done, V, workers, truncation=truncation)
        whole = model.encoder.backward(weights, done, V, workers, truncation=truncation)
    np.testing.assert_allclose(
        np.concatenate([D.sum(axis=0) for D in errors]), whole["bias"], rtol=1e-10, atol=1e-12
    )


def test_a_notebook_shows_both_effects_of_every_word(model):
    effects = word_effects(model, "hotels in <shanghai>", "shanghai hotels")["query"]
    shown = effects._repr_html_()
    assert "&lt;shanghai&gt;" in shown and "<shanghai>" not in shown
    for value in (*effects.left_out, *effects.gradient):
        assert f">{value:+.3f}<" in shown


@pytest.mark.parametrize("splitting", [BARE, LETTERED])
def test_a_text_of_letters_and_pairs_is_scored_without_one_of_them(splitting):
    """What is left out is one word; its letters, which are words too, stay."""
    query, title = "毒キノコ 図鑑", "キノコ図鑑 pocket"
    split = SPLITTINGS[splitting]
    tokens = tokenize([query, title], split)
    vocabulary = Vocabulary.collect(tokens, word_features=1, splitting=splitting)
    one = made_up_model(("lstm", {}), [query])
    rng = np.random.default_rng(1)
    sides = {side: one.encoder.initialise(len(vocabulary), rng, np.float64) for side in SIDES}
    model = SentenceEncoder(one.encoder, vocabulary, sides)
    words = {"query": split(query), "document": split(title)}

    def cosine(query_words, title_words):
        with Workers(1) as workers:
            vectors = []
            for side, given in (("query", query_words), ("document", title_words)):
                batch = batch_of(tokenize([" ".join(given)], str.split), vocabulary)
                vectors.append(model.encoder.forward(sides[side], batch, workers).embeddings)
        return float(model.similarity(*vectors)[0, 0])

    effects = word_effects(model, query, title)
    total, *of_sides = left_out_effects(model, *words.values(), vocabulary)
    whole = cosine(*words.values())
    assert total == pytest.approx(whole)
    for side, of_side in zip(words, of_sides, strict=True):
        for place in range(len(words[side])):
            left = {**words, side: [*words[side][:place], *words[side][place + 1 :]]}
            expected = whole - cosine(*left.values())
            assert effects[side].left_out[place] == pytest.approx(expected, abs=1e-9)
            assert of_side[place] == pytest.approx(expected, abs=1e-6)
    (near,) = neighbours(model, ["図鑑"], words["document"], 1)
    assert near and near[0].word != "図鑑"
