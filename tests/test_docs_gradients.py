"""The listings of docs/gradients.md are run as printed and must agree with the package."""

import importlib.util
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sentemb import loss_and_gradient
from sentemb.cli import main
from sentemb.gradients.pair_models import PairPasses
from sentemb.kernels.nesterov import coefficients
from sentemb.models.pairs import make_pair_model
from sentemb.models.pairs.matcher import Matcher
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers import make_encoder
from sentemb.models.towers.towers import SIDES
from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.objectives.candidates import BatchCandidates
from sentemb.training.objectives.hinge import hinge_loss

DOCUMENT = Path(__file__).parents[1] / "docs" / "gradients.md"
GAMMA = 10.0
# The title "bad cab" is shared by both pairs, and lengths go from 1 to 5.
QUERIES = ["abc de bad abc", "cab"]
TITLES = ["bad cab", "e deed abc cab e"]
NEGATIVES = [["dad ace", "bee"], ["bad cab", "ace bee dad"]]

LSTMS = {
    "reduced": {"forget_gate": False, "peepholes": "none"},
    "forget": {"forget_gate": True, "peepholes": "none"},
    "diagonal": {"forget_gate": True, "peepholes": "diagonal"},
    "full": {"forget_gate": True, "peepholes": "full"},
}


def listings():
    """All blocks that define functions, as one source text."""
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    return "\n".join(block for block in blocks if "def " in block)


def run(source):
    names = {}
    exec(compile(source, DOCUMENT.name, "exec"), names)
    return names


def make_model(encoder):
    rng = np.random.default_rng(0)
    texts = [*QUERIES, *TITLES, *(title for some in NEGATIVES for title in some)]
    vocabulary = Vocabulary.collect(tokenize(texts))
    weights = {
        side: {
            name: 0.7 * rng.standard_normal(shape)
            for name, shape in encoder.shapes(len(vocabulary)).items()
        }
        for side in SIDES
    }
    return SentenceEncoder(encoder, vocabulary, weights, threads=1)


def trigram_counts(model, text):
    """l(t) in row t - 1."""
    l = np.zeros((len(text.split()), len(model.vocabulary)))
    for row, word in zip(l, text.split(), strict=True):
        for trigram, count in model.vocabulary.features(word).items():
            row[trigram] = count
    return l


def dicts_of(blocks):
    """(W, Wrec, b, Wp) as the LSTM listing takes them."""
    n, d = blocks["W1"].shape
    W = {g: blocks.get(f"W{g}", np.zeros((n, d))) for g in (1, 2, 3, 4)}
    Wrec = {g: blocks.get(f"Wrec{g}", np.zeros((n, n))) for g in (1, 2, 3, 4)}
    # Without forget gate: sigmoid(1000) is 1 to the last bit.
    b = {g: blocks.get(f"b{g}", np.full(n, 1000.0)) for g in (1, 2, 3, 4)}
    Wp = {}
    for k in (1, 2, 3):
        given = blocks.get(f"Wp{k}", np.zeros(n))
        Wp[k] = np.diag(given) if given.ndim == 1 else given
    return W, Wrec, b, Wp


def listing_gradient(names, model):
    """(loss, gradient) by the listings alone, pair by pair."""
    parameters = model.parameters()
    recurrent = "Wrec" in parameters["query"]
    total, loss = {side: {} for side in SIDES}, 0.0

    def forward(side, text):
        l = trigram_counts(model, text)
        if recurrent:
            y = model.trace(text, side).y
            return l, (np.vstack([np.zeros_like(y[:1]), y]),)
        return l, names["lstm_forward"](l, *dicts_of(parameters[side]))

    def add_backward(side, l, values, v):
        if recurrent:
            gradient = names["rnn_backward"](l, v, parameters[side]["Wrec"], *values)
        else:
            _, Wrec, _, Wp = dicts_of(parameters[side])
            gradient = names["lstm_backward"](l, v, Wrec, Wp, *values)
        for name, array in gradient.items():
            total[side][name] = total[side].get(name, 0) + array

    for query, clicked, others in zip(QUERIES, TITLES, NEGATIVES, strict=True):
        l_Q, q = forward("query", query)
        titles = [forward("document", title) for title in [clicked, *others]]
        y_D = np.array([values[0][-1] for _, values in titles])
        pair_loss, v_Q, v_D = names["loss_and_start"](q[0][-1], y_D, GAMMA)
        loss += pair_loss
        add_backward("query", l_Q, q, v_Q)
        for (l, values), v in zip(titles, v_D, strict=True):
            add_backward("document", l, values, v)
    return loss, total


def largest_error(ours, package):
    """Largest difference of any block, relative to the block's largest entry."""
    errors = []
    for side in SIDES:
        for name, expected in package[side].items():
            got = ours[side][name]
            if expected.ndim < got.ndim:
                got = np.diagonal(got)
            errors.append(np.abs(got - expected).max() / np.abs(expected).max())
    return max(errors)


@pytest.fixture(scope="module")
def names():
    return run(listings())


@pytest.mark.parametrize("variant", LSTMS)
def test_lstm_listing(names, variant):
    model = make_model(make_encoder("lstm", cells=5, **LSTMS[variant]))
    expected_loss, expected = loss_and_gradient(model, QUERIES, TITLES, NEGATIVES, GAMMA)
    loss, gradient = listing_gradient(names, model)
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    assert largest_error(gradient, expected) < 1e-12


@pytest.mark.parametrize("variant", LSTMS)
def test_lstm_forward_listing(names, variant):
    model = make_model(make_encoder("lstm", cells=5, **LSTMS[variant]))
    blocks = model.parameters()["document"]
    values = names["lstm_forward"](trigram_counts(model, TITLES[1]), *dicts_of(blocks))
    trace = model.trace(TITLES[1], "document")
    for name, value in zip(("y", "c", "o", "f", "i", "y_g"), values, strict=True):
        expected = getattr(trace, name)
        if expected is None:
            expected = np.ones_like(trace.y)
        np.testing.assert_allclose(value[1:], expected, rtol=1e-12, atol=1e-14)


def test_rnn_listing(names):
    model = make_model(make_encoder("rnn", cells=5))
    expected_loss, expected = loss_and_gradient(model, QUERIES, TITLES, NEGATIVES, GAMMA)
    loss, gradient = listing_gradient(names, model)
    assert loss == pytest.approx(expected_loss, rel=1e-12)
    assert largest_error(gradient, expected) < 1e-12


def test_hinge_listing(names):
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((7, 4)), rng.standard_normal((7, 4))
    clicked = rng.permutation(7)
    loss, *ours = names["hinge_and_start"](*Y, clicked, 0.4)
    none = np.zeros(8, np.int64), np.zeros(0, np.int32)
    pairs = BatchCandidates(np.arange(7, dtype=np.int32), clicked.astype(np.int32), *none)
    with Workers(1) as workers:
        losses, *expected, _ = hinge_loss(*Y, pairs, 0.4, np.ones(7), workers, Workspace())
    assert loss == pytest.approx(losses.sum(), rel=1e-12) and (losses > 0).sum() > 2
    for found, right in zip(ours, expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-13)


# What stands in the listing, and what a mistaken one would have.
MUTATIONS = [
    ("h * o[t] * (1 - o[t]) * e", "h * o[t] * e"),
    ("h * o[t] * (1 - o[t]) * e", "o[t] * (1 - o[t]) * e"),
    ("o[t] * (1 - h**2) * e", "o[t] * e"),
    ("o[t] * (1 - h**2) * e", "(1 - h**2) * e"),
    (" + Wp[1].T @ delta[1][t]", ""),
    ("delta[1][t] + rho", "delta[1][t]"),
    ("c[t - 1] * f[t] * (1 - f[t]) * eps", "f[t] * (1 - f[t]) * eps"),
    ("c[t - 1] * f[t] * (1 - f[t]) * eps", "eps"),
    ("y_g[t] * i[t] * (1 - i[t]) * eps", "i[t] * (1 - i[t]) * eps"),
    ("y_g[t] * i[t] * (1 - i[t]) * eps", "eps"),
    ("i[t] * (1 - y_g[t] ** 2) * eps", "(1 - y_g[t] ** 2) * eps"),
    ("i[t] * (1 - y_g[t] ** 2) * eps", "eps"),
    ("rho = f[t] * eps", "rho = eps"),
    ("rho = f[t] * eps + ", "rho = "),
    (" + Wp[2].T @ delta[2][t]", ""),
    (" + Wp[3].T @ delta[3][t]", ""),
    ("Wrec[g].T @ delta[g][t] for g in (1, 2, 3, 4)", "Wrec[g].T @ delta[g][t] for g in (2, 3, 4)"),
    ("Wrec[g].T @ delta[g][t] for g in (1, 2, 3, 4)", "Wrec[g].T @ delta[g][t] for g in (1, 3, 4)"),
    ("Wrec[g].T @ delta[g][t] for g in (1, 2, 3, 4)", "Wrec[g].T @ delta[g][t] for g in (1, 2, 4)"),
    ("Wrec[g].T @ delta[g][t] for g in (1, 2, 3, 4)", "Wrec[g].T @ delta[g][t] for g in (1, 2, 3)"),
    ("Wrec[g].T @", "Wrec[g] @"),
    ("c[1:] if g == 1 else c[:-1]", "c[:-1]"),
    ("dR[0] -= gamma", "dR[0] += gamma"),
    ("(u_D - R[:, None] * u_Q) / norm_Q", "u_D / norm_Q"),
    ("* (u_Q - R[:, None] * u_D) / norm_D", "* (u_Q - R[:, None] * u_D)"),
]


@pytest.mark.parametrize(("right", "wrong"), MUTATIONS)
def test_every_term_of_the_listing_counts(right, wrong):
    source = listings()
    assert source.count(right) == 1
    model = make_model(make_encoder("lstm", cells=5, **LSTMS["full"]))
    _, expected = loss_and_gradient(model, QUERIES, TITLES, NEGATIVES, GAMMA)
    _, gradient = listing_gradient(run(source.replace(right, wrong)), model)
    assert largest_error(gradient, expected) > 1e-2


@pytest.mark.parametrize(("start", "end"), [(0, 1), (3, 9), (7, 25), (0, 40), (24, 40)])
def test_momentum_listing(names, start, end):
    bounds, momenta = np.array([0, 8, 24, 40]), np.array([0.9, 0.995, 0.9])
    pair = (1.0, 0.0)
    for low, high, mu in zip(bounds[:-1], bounds[1:], momenta, strict=True):
        updates = min(end, high) - max(start, low)
        if updates > 0:
            pair = names["in_a_row"](pair, names["idle"](mu, updates))
    v, theta = 1.0, 0.0
    for k in range(start, end):
        v *= momenta[np.searchsorted(bounds, k, side="right") - 1]
        theta += v
    assert pair == pytest.approx((v, theta), rel=1e-12)
    assert pair == pytest.approx(coefficients(start, end, bounds, momenta), rel=1e-12)


def equation_rows():
    """The cells of each row of the table of equations."""
    section = DOCUMENT.read_text(encoding="utf-8").split("## 8. ")[1].split("## 9. ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line[:3] == "| ("]
    assert {len(row) for row in rows} == {5}
    return [[cell.strip() for cell in row] for row in rows]


def numbers_in(cell):
    """The equation numbers of "(7), (45)" or "(48)–(51), (53)"."""
    numbers = []
    for first, last in re.findall(r"\((\d+)\)(?:–\((\d+)\))?", cell):
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def test_every_numbered_equation_is_listed_once():
    numbers = [number for row in equation_rows() for number in numbers_in(row[0])]
    assert sorted(numbers) == list(range(1, 113))


def test_every_equation_has_a_status_and_a_place_that_exists():
    statuses = ("exact", "partial", "misprint", "**not the gradient**")
    for _, _, place, status, _ in equation_rows():
        assert status.startswith(statuses)
        names = re.findall(r"`([\w.]+)`", place)
        assert names or place == "not used"
        for name in names:
            module, function = name.rsplit(".", 1)
            assert hasattr(importlib.import_module(f"sentemb.{module}"), function)


def pair_passes(name, **settings):
    """A pair model with nothing at zero on some pairs of texts of 1 to 9 words."""
    rng = np.random.default_rng(0)
    texts = ["abc de bad abc cab e", "cab", "bad cab ace de dad be e bad ad", "e deed abc cab e"]
    vocabulary = Vocabulary.collect(tokenize(texts))
    model = make_pair_model(name, embedding=3, mlp=5, max_words=9, window=3, **settings)
    weights = model.initialise(len(vocabulary), rng, np.float64)
    for array in weights.values():
        if array.ndim == 1:
            array[...] = 0.5 * rng.standard_normal(array.shape)
    matcher = Matcher(model, vocabulary, weights)
    index = [one.ravel() for one in np.indices((4, 4))]
    return PairPasses(matcher, texts, texts, *index, Workers(1)), texts, index


def mlp(p, h, v):
    """s, the gradient of v s by the MLP's blocks, and that at h."""
    y = np.maximum(0, p["M1"] @ h + p["c1"])
    da = v * p["w"] * (y > 0)
    gradient = {"M1": np.outer(da, h), "c1": da, "w": v * y, "c": np.array([v])}
    return p["w"] @ y + p["c"][0], gradient, p["M1"].T @ da


def flat(cells, shape):
    """Cells that are on, in a plane or row of full size."""
    whole = np.zeros(shape)
    whole[tuple(slice(n) for n in cells.shape)] = cells
    return whole.ravel()


def add_texts(gradient, p, sides):
    """dW += sum over the words of dx l^T."""
    for l, dx in sides:
        gradient["W"] = gradient.get("W", 0) + dx.T @ l
    return gradient


def arc1_of_listing(names, p, l_x, l_y, v):
    layers, sides = [], []
    for l, side in ((l_x, "x"), (l_y, "y")):
        z, kept = l @ p["W"].T, []
        for number, size in ((1, 7), (3, 2)):
            inputs = z
            block = p[f"W{number}{side}"], p[f"b{number}{side}"]
            z, own = names["arc1_layer"](inputs, *block, 3, size)
            kept.append((number, inputs, own))
        layers.append((side, kept, z))
    h = np.concatenate([flat(z, (1, 4)) for _, _, z in layers])
    s, gradient, dh = mlp(p, h, v)
    for l, (side, kept, z), D in zip((l_x, l_y), layers, np.split(dh, 2), strict=True):
        D = D.reshape(1, 4)[: len(z)]
        for number, inputs, own in reversed(kept):
            W = p[f"W{number}{side}"]
            dW, db, D = names["arc1_layer_backward"](D, inputs, W, 3, own)
            gradient |= {f"W{number}{side}": dW, f"b{number}{side}": db}
        sides.append((l, D))
    return s, add_texts(gradient, p, sides)


def arc2_of_listing(names, p, l_x, l_y, v):
    x, y, W3 = l_x @ p["W"].T, l_y @ p["W"].T, p["W3"].reshape(4, 3, 3, 5)
    first = p["W1x"], p["W1y"]
    z, texts = names["arc2_first_plane"](x, y, *first, p["b1"], 3, 7)
    last, kept = names["arc2_layer"](z, W3, p["b3"], 3, 2)
    s, gradient, dh = mlp(p, flat(last, (1, 1, 4)), v)
    D = dh.reshape(1, 1, 4)[: len(last), : last.shape[1]]
    dW3, gradient["b3"], dz = names["arc2_layer_backward"](D, z, W3, 3, kept)
    gradient["W3"] = dW3.reshape(4, -1)
    found = names["arc2_first_plane_backward"](dz, z, x, y, *first, 3, texts)
    gradient["W1x"], dx, gradient["W1y"], dy, gradient["b1"] = found
    return s, add_texts(gradient, p, [(l_x, dx), (l_y, dy)])


def pair_error(names, name, of_listing):
    """Largest difference between the listings and the package, relative to the largest entry."""
    passes, texts, (queries, titles) = pair_passes(name, maps=(5, 4))
    p, vocabulary = passes.matcher.parameters(), passes.matcher.vocabulary
    counts = []
    for text in texts:
        l = np.zeros((len(text.split()), len(vocabulary)))
        for row, word in zip(l, text.split(), strict=True):
            for feature, count in vocabulary.features(word).items():
                row[feature] = count
        counts.append(l)
    scores = passes.forward().scores.copy()
    V = np.random.default_rng(1).standard_normal(16)
    expected, total = passes.gradient(V), {}
    errors = []
    for q, t, v, score in zip(queries, titles, V, scores, strict=True):
        s, gradient = of_listing(names, p, counts[q], counts[t], v)
        errors.append(abs(s - score))
        for block, array in gradient.items():
            total[block] = total.get(block, 0) + array
    assert total.keys() == expected.keys()
    return max(
        *errors,
        *(
            np.abs(total[block] - array).max() / np.abs(array).max()
            for block, array in expected.items()
        ),
    )


PAIR_LISTINGS = {"arc1": arc1_of_listing, "arc2": arc2_of_listing}


@pytest.mark.parametrize("name", PAIR_LISTINGS)
def test_listing_of_pair_models(names, name):
    assert pair_error(names, name, PAIR_LISTINGS[name]) < 1e-12


PAIR_MUTATIONS = [
    ("u[second] > u[first]", "u[second] < u[first]", "arc1"),
    ("D * (pooled > 0)", "D", "arc1"),
    ("add_windows(dx, da @ W, k)", "add_windows(dx, da @ W, 1)", "arc1"),
    ("dx[i + o] += part", "dx[i] += part", "arc1"),
    ("delta, gradient = D * (z > 0), []", "delta, gradient = D, []", "arc2"),
    ("(y, Wy, delta.sum(axis=0))", "(y, Wy, delta.sum(axis=0) / 2)", "arc2"),
    ("D[place] * (pooled[place] > 0)", "D[place]", "arc2"),
    ("d_room[i : i + k, j : j + k] += delta * W[f]", "d_room[i, j] += delta * W[f, 0, 0]", "arc2"),
]


@pytest.mark.parametrize(("right", "wrong", "name"), PAIR_MUTATIONS)
def test_every_term_of_the_pair_listing_counts(right, wrong, name):
    source = listings()
    assert source.count(right) == 1
    try:
        error = pair_error(run(source.replace(right, wrong)), name, PAIR_LISTINGS[name])
    except ValueError:  # the shapes no longer fit
        return
    assert error > 1e-3


# -- the course ------------------------------------------------------------------------------------


def _make_equations():
    path = DOCUMENT.with_name("make_equations.py")
    found = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


make_equations = _make_equations()
EXERCISES = re.findall(
    r"> \*\*Exercise (\d+)\.\*\* .*?>\n> `sentemb (gradcheck.*?)`\n>\n((?:> [^\n]+\n)+)",
    DOCUMENT.read_text(encoding="utf-8"),
    re.DOTALL,
)


def test_exercises_are_numbered_in_the_order_of_the_page():
    assert [int(number) for number, *_ in EXERCISES] == list(range(1, 13))


@pytest.mark.ci
@pytest.mark.parametrize(
    ("command", "answer"), [pytest.param(*rest, id=number) for number, *rest in EXERCISES]
)
def test_the_answer_of_an_exercise_is_in_the_output_of_its_command(command, answer):
    output = " ".join(CliRunner().invoke(main, shlex.split(command)).output.split())
    told = re.findall(r"`([^`]+)`", answer.replace("\n> ", " "))
    assert answer.startswith("> *Answer.* ") and told
    for words in told:
        assert words in output, words


def test_the_table_of_equations_is_that_of_the_docstrings():
    text = DOCUMENT.read_text(encoding="utf-8")
    shown = text.split(make_equations.BEGIN)[1].split(make_equations.END)[0]
    assert shown == make_equations.table(), "run: python docs/make_equations.py"


def test_every_function_of_the_table_of_statuses_names_one_of_its_equations():
    named = {place.name for some in make_equations.places().values() for place in some}
    rows = re.findall(
        r"^\| (\(\d.*?) \|.*?\| (`kernels[^|]*) \|", DOCUMENT.read_text("utf-8"), re.M
    )
    assert len(rows) > 30
    for equations, code in rows:
        for function in re.findall(r"`(kernels[\w.]+)`", code):
            assert function in named, (equations, function)


@pytest.mark.parametrize("number", ["113", "abc"])
def test_a_number_without_an_equation_is_refused(number, monkeypatch):
    monkeypatch.setattr("sys.argv", ["make_equations.py", number])
    with pytest.raises(SystemExit, match=f"no docstring names the equation {number}"):
        make_equations.main()


@pytest.mark.parametrize("number", ["44", "(44)"])
def test_an_equation_leads_to_its_lines(number, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["make_equations.py", number])
    make_equations.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for line in lines:
        place, name, _ = line.split(maxsplit=2)
        file, row = place.split(":")
        code = (DOCUMENT.parents[1] / file).read_text(encoding="utf-8").splitlines()
        assert f"def {name.rpartition('.')[2]}(" in code[int(row) - 1]
