"""Models and texts that several test files make up."""

import numpy as np

from sentemb.models import make_encoder
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary

LSTM_SETTINGS = [
    {"forget_gate": forget_gate, "peepholes": peepholes}
    for forget_gate in (False, True)
    for peepholes in ("none", "diagonal", "full")
]
VARIANTS = [
    ("rnn", {}),
    *(("lstm", settings) for settings in LSTM_SETTINGS),
    ("bilstm", {}),
    ("bilstm", {"forget_gate": True, "peepholes": "full"}),
]


def variant_name(variant):
    """What pytest prints for one of `VARIANTS`."""
    name, settings = variant
    forget = "-forget" if settings.get("forget_gate") else ""
    return f"{name}{forget}-{settings.get('peepholes', 'none')}"


def each_variant(variants=VARIANTS):
    """Keyword arguments of ``pytest.mark.parametrize`` for tests that take ``variant``."""
    return {"argnames": "variant", "argvalues": variants, "ids": map(variant_name, variants)}


def made_up_words(rng, count):
    """Words over a small alphabet, so that trigrams repeat within and between them."""
    return ["".join(rng.choice(list("abcd"), rng.integers(1, 8))) for _ in range(count)]


def made_up_texts(rng, lengths, n_words=30):
    """A text of each length, words repeated."""
    words = made_up_words(rng, n_words)
    return [" ".join(rng.choice(words, length)) for length in lengths]


def made_up_weights(encoder, n_trigrams, rng, dtype=np.float64, scale=0.5):
    """Weights with nothing at zero, small enough that no gate saturates."""
    weights = {}
    for name, shape in encoder.shapes(n_trigrams).items():
        array = scale * rng.standard_normal(shape)
        if name == "recurrent" or len(shape) == 4:
            array /= np.sqrt(encoder.cells)
        weights[name] = array.astype(dtype)
    return weights


def made_up_model(variant, texts, *, cells=5, dtype=np.float64, shared=False, seed=0, **settings):
    """A `SentenceEncoder` of one of `VARIANTS` that knows the trigrams of ``texts``."""
    name, own = variant
    rng = np.random.default_rng(seed)
    encoder = make_encoder(name, cells=cells, **own)
    vocabulary = Vocabulary.collect(tokenize(texts))
    weights = {"query": made_up_weights(encoder, len(vocabulary), rng, dtype)}
    weights["document"] = (
        weights["query"] if shared else made_up_weights(encoder, len(vocabulary), rng, dtype)
    )
    return SentenceEncoder(encoder, vocabulary, weights, threads=1, **settings)


def relative_error(ours, theirs):
    """Largest difference, relative to the largest entry of ``theirs``."""
    return np.abs(ours - theirs).max(initial=0) / max(np.abs(theirs).max(initial=0), 1e-300)
