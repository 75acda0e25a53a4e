"""How far the error travels: against finite differences of the score by the state of every word."""

import numpy as np
import pytest
from helpers import made_up_model

from sentemb import SentembError
from sentemb.analysis.figures.flow_figure import flow_figure
from sentemb.gradients.flow import gradient_flow

QUERY, TITLE = "ab abc cd ab dda", "abc dd cab"
TEXTS = [QUERY, TITLE]


def flow_of(model, query=QUERY, title=TITLE):
    return gradient_flow(model, query, title)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def last_output(blocks, linear, counts, start, y, c):
    """y after the last word, from the state after word ``start``; plain equations (1) and (2)."""
    if "Wrec" in blocks:
        for l in counts[start + 1 :]:
            y = blocks["W"] @ l + blocks["Wrec"] @ y + blocks["b"]
            y = y if linear else np.tanh(y)
        return y / len(counts) if linear else y
    Wp = {k: blocks.get(f"Wp{k}", np.zeros((y.size, y.size))) for k in "123"}
    Wp = {k: np.diag(given) if given.ndim == 1 else given for k, given in Wp.items()}
    for l in counts[start + 1 :]:
        x = {
            g: blocks[f"W{g}"] @ l + blocks[f"Wrec{g}"] @ y + blocks[f"b{g}"]
            for g in "1234"
            if f"b{g}" in blocks
        }
        f = sigmoid(x["2"] + Wp["2"] @ c) if "2" in x else 1.0
        c_new = f * c + sigmoid(x["3"] + Wp["3"] @ c) * np.tanh(x["4"])
        o = sigmoid(x["1"] + Wp["1"] @ c_new) if "1" in x else 1.0
        y = o * np.tanh(c_new)
        c = c_new
    return y


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def slopes(function, point, step=1e-5):
    moves = step * np.eye(point.size)
    return np.array([(function(point + m) - function(point - m)) / (2 * step) for m in moves])


@pytest.mark.parametrize(
    "variant",
    [
        ("rnn", {}),
        ("irnn", {}),
        ("lstm", {}),
        ("lstm", {"output_gate": False, "peepholes": "full"}),
        ("lstm", {"forget_gate": True, "peepholes": "diagonal"}),
        ("lstm", {"forget_gate": True, "peepholes": "full"}),
        ("bilstm", {"forget_gate": True, "peepholes": "full"}),
    ],
    ids=str,
)
def test_the_errors_are_the_slopes_of_the_score(variant):
    model = made_up_model(variant, TEXTS, cells=4)
    vectors = {"query": model.encode_query(QUERY), "document": model.encode_document(TITLE)}
    flows = flow_of(model)
    assert [(flow.side, flow.direction) for flow in flows] == [
        (side, direction)
        for side in ("query", "document")
        for direction in ("forward", "backward")[: model.encoder.directions]
    ]
    for flow in flows:
        other = vectors["document" if flow.side == "query" else "query"]
        check_norms(model, flow, vectors[flow.side], other)


def check_norms(model, flow, own, other):
    """Compare both norms at every word with differences of the score."""
    text = QUERY if flow.side == "query" else TITLE
    trace, n = model.trace(text, side=flow.side), model.encoder.cells
    words, prefix, order = text.split(), "", slice(None)
    part = slice(0, n)
    if model.encoder.directions == 2:
        prefix = f"{flow.direction}."
    if flow.direction == "backward":
        words, order, part = words[::-1], slice(None, None, -1), slice(n, 2 * n)
    assert flow.words == words
    blocks = {
        name.removeprefix(prefix): array
        for name, array in model.parameters()[flow.side].items()
        if name.startswith(prefix)
    }
    counts = np.zeros((len(words), len(model.vocabulary)))
    for t, word in enumerate(words):
        for feature, count in model.vocabulary.features(word).items():
            counts[t, feature] = count

    def score(t, y, c):
        joined = own.copy()
        joined[part] = last_output(blocks, model.encoder.name == "irnn", counts, t, y, c)
        return cosine(joined, other)

    for t in range(len(words)):
        y = trace.y[order][t, part]
        c = None if trace.c is None else trace.c[order][t, part]
        by_y = slopes(lambda y, t=t, c=c: score(t, y, c), y)
        assert flow.output[t] == pytest.approx(np.linalg.norm(by_y), rel=1e-6)
        if c is None or t == len(words) - 1:
            continue
        by_c = slopes(lambda c, t=t, y=y: score(t, y, c), c)
        # The difference holds y(t) fixed; eps(t) also counts the path through y(t).
        o, h = 1.0 if trace.o is None else trace.o[order][t, part], np.tanh(c)
        by_c += o * (1 - h**2) * by_y
        if "Wp1" in blocks:
            Wp1, delta = blocks["Wp1"], h * o * (1 - o) * by_y
            by_c += Wp1 * delta if Wp1.ndim == 1 else Wp1.T @ delta
        assert flow.cell[t] == pytest.approx(np.linalg.norm(by_c), rel=1e-6)


def test_what_remains_is_counted_from_the_last_word():
    for flow in flow_of(made_up_model(("lstm", {}), TEXTS)):
        assert flow.words_back.tolist() == list(range(len(flow.words)))[::-1]
        assert flow.remaining[-1] == 1
        assert np.allclose(flow.remaining * flow.output[-1], flow.output)


def test_float32_models_and_bags_are_read():
    exact = flow_of(made_up_model(("lstm", {"bag_dim": 3}), TEXTS))
    single = flow_of(made_up_model(("lstm", {"bag_dim": 3}), TEXTS, dtype=np.float32))
    for one, two in zip(exact, single, strict=True):
        assert one.output == pytest.approx(two.output, rel=1e-4)


@pytest.mark.parametrize(
    ("variant", "texts", "message"),
    [
        (("bag", {}), TEXTS, "model bag does not read word by word"),
        (("rnn", {}), [QUERY, " "], "without words"),
        (("rnn", {}), [QUERY, [TITLE]], "must be str, not list"),
    ],
)
def test_what_has_no_flow_is_refused(variant, texts, message):
    model = made_up_model(variant, TEXTS)
    with pytest.raises(SentembError, match=message):
        flow_of(model, *texts)


def test_the_model_answers_and_the_figure_shows_every_flow():
    models = {
        "rnn": made_up_model(("rnn", {}), TEXTS),
        "_both ways": made_up_model(("bilstm", {}), TEXTS),
    }
    flows = {name: gradient_flow(model, QUERY, TITLE) for name, model in models.items()}
    for name, model in models.items():
        for one, two in zip(flows[name], flow_of(model), strict=True):
            assert np.array_equal(one.output, two.output)
    query, title = flow_figure(flows).axes
    assert [line.get_label() for line in query.get_lines()] == [
        "rnn",
        "both ways, forward",
        "both ways, backward",
    ]
    assert query.get_title() == "query" and title.get_title() == "title"
    assert len(query.get_legend().get_texts()) == 3
    for ax, side in ((query, "query"), (title, "document")):
        drawn = [flow for some in flows.values() for flow in some if flow.side == side]
        for line, flow in zip(ax.get_lines(), drawn, strict=True):
            x, y = line.get_data()
            assert x.tolist() == flow.words_back.tolist() and np.array_equal(y, flow.remaining)
