"""What holds for every pair model, and what the paper says of ARC-I and ARC-II."""

import itertools
import re

import naive_pairs
import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_texts, relative_error
from lab.arc1_in_arc2 import arc2_from_arc1

import sentemb
from sentemb import SentembError
from sentemb.cli import main
from sentemb.gradients import agreement, differences
from sentemb.gradients.checks import all_checks
from sentemb.gradients.differences import entry_differences
from sentemb.gradients.pair_models import PairModelProblem, PairPasses
from sentemb.kernels.dropout import dropout_rows
from sentemb.models.pairs import PAIR_MODELS, make_pair_model
from sentemb.models.pairs.head import Dropout
from sentemb.models.pairs.matcher import Matcher
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.objectives.pair_losses import PairObjective

CASES = [(name, settings) for name, one in PAIR_MODELS.items() for settings in one.variants]
SMALL = {"embedding": 3, "mlp": 6, "max_words": 9}
# A batch as large as in training has a test of its own.
QUICK = {"lengths": (3, 9), "n_negatives": 2, "n_texts": 0}
# They sum up words.
ORDER_FREE = "wordembed", "deepmatch"
# Two texts are longer than what is read.
LENGTHS = (1, 2, 5, 11, 3, 9, 10)


def case_name(case):
    return "-".join([case[0], *(re.sub(r"\W+", ".", str(value)) for value in case[1].values())])


each_case = pytest.mark.parametrize("case", CASES, ids=case_name)


def made_up_matcher(name, texts, dtype=np.float64, seed=0, **settings):
    """A pair model with nothing at zero that knows the trigrams of ``texts``."""
    rng = np.random.default_rng(seed)
    own = {one.name: one.check_default for one in PAIR_MODELS[name].parameters}
    small = {key: value for key, value in (own | SMALL).items() if key in own and value}
    model = make_pair_model(name, **small | settings)
    tokens = tokenize(texts)
    whole_words = model.reads_whole_words
    vocabulary = Vocabulary([], tokens.words) if whole_words else Vocabulary.collect(tokens)
    weights = model.initialise(len(vocabulary), rng, dtype)
    for array in weights.values():
        if array.ndim == 1:
            array[...] = 0.5 * rng.standard_normal(array.shape)
    return Matcher(model, vocabulary, weights)


@pytest.fixture(scope="module")
def workers():
    with Workers(1) as one:
        yield one


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(5)
    return made_up_texts(rng, LENGTHS), made_up_texts(rng, LENGTHS[::-1])


def all_pairs(texts):
    return [index.ravel() for index in np.indices(tuple(map(len, texts)))]


def passes_of(matcher, texts, workers, index=None):
    return PairPasses(matcher, *texts, *(index or all_pairs(texts)), workers)


def scores_of(matcher, texts, workers):
    return passes_of(matcher, texts, workers).forward().scores


# -- gradients -------------------------------------------------------------------------------------


def problem_of(case, **settings):
    """The problem of a check, small."""
    entry = all_checks()[case[0]]
    own = {one.name: one.check_default or one.default for one in entry.parameters}
    own |= {"n_negatives": 2, "lengths": (2, 4, 9), "seed": 0, "objective": None}
    return PairModelProblem(case[0], **own | entry.defaults | case[1] | settings)


@pytest.mark.usefixtures("two_steps")
@each_case
def test_every_gradient_agrees_with_differences(case):
    name, settings = case
    # The hinge's differences have no error but rounding. Errors are relative to a thousandth of the
    # largest entry of a block, or more.
    report = sentemb.gradcheck(name, **settings, **QUICK, entries=2, dropout=0.2, tolerance=1e-8)
    assert report.passed and report.repeatable, report.failed


@each_case
def test_a_batch_as_large_as_in_training(case):
    (forms,) = problem_of(case).whole_batch(300)
    for name, ours in forms.at_once.items():
        assert relative_error(ours, forms.otherwise[name]) < 1e-12, name


def test_every_gradient_of_the_logistic_loss_agrees_too():
    report = sentemb.gradcheck("wordembed", **QUICK, objective="logistic")
    assert report.passed and {block.block for block in report.blocks} == {
        f"pair.{name}" for name in ("W", "M1", "c1", "w", "c")
    }


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["hinge", "logistic"])
@each_case
def test_every_gradient_agrees_at_full_size(case, objective):
    for dropout in (0.0, 0.4):
        report = sentemb.gradcheck(case[0], **case[1], objective=objective, dropout=dropout)
        assert report.passed and report.repeatable, report.failed


@each_case
def test_no_kink_goes_unnoticed(case):
    """Where no decision changes, the scores are linear in any one parameter."""
    problem = problem_of(case)
    if not problem.piecewise_linear:
        assert case[0] == "urae"
        return
    rng = np.random.default_rng(0)
    linear = kinks = 0

    def scores_at(parameter, index, value):
        parameter[index] = value
        problem.loss()
        return problem._done.scores.copy(), problem.branches()

    for parameter in problem.parameters["pair"].values():
        for _ in range(4):
            index = tuple(rng.integers(parameter.shape))
            middle, h = parameter[index], rng.choice([0.03, 0.3, 1.0])
            (low, *one), (high, *two), (here, *three) = (
                scores_at(parameter, index, middle + step) for step in (-h, h, 0)
            )
            if one == two == three:
                linear += 1
                most = 1e-13 * max(1, np.abs(here).max())
                np.testing.assert_allclose(low + high, 2 * here, rtol=0, atol=most)
            else:
                kinks += 1
    assert linear and kinks


def test_the_gradient_by_the_bias_of_the_output_cancels_in_the_hinge():
    problem = problem_of(CASES[0])
    done = problem._passes.forward()
    _, V, _ = problem._loss.at(done.scores, problem._targets)
    assert np.abs(V).max() > 0.1 and abs(problem._passes.gradient(V)["c"][0]) < 1e-15


@each_case
def test_a_relu_at_zero_is_a_kink(case):
    problem = problem_of(case)
    c1 = problem.parameters["pair"]["c1"]
    problem.loss()
    on = problem._done.arrays["Y1"].copy()
    pair, unit = np.unravel_index(on.argmax(), on.shape)
    assert entry_differences(problem, c1, (unit,)).slope is not None
    c1[unit] -= on[pair, unit]
    assert entry_differences(problem, c1, (unit,)).slope is None


@pytest.mark.parametrize("case", [one for one in CASES if "maps" in one[1]], ids=case_name)
def test_a_tie_of_windows_is_a_kink(case):
    """Both windows of a query of two words get the same value in one map of layer 1."""
    problem = problem_of(case)
    blocks, vocabulary = problem.parameters["pair"], problem._passes.matcher.vocabulary
    side = "" if "W1" in blocks else "x"
    W, b = blocks[f"W1{side}"], blocks[f"b1{side}" if f"b1{side}" in blocks else "b1"]
    words = np.zeros((case[1].get("window", 3) + 1, len(blocks["W"])))
    for word, text in zip(words, problem.queries[0].split(), strict=False):
        for feature, count in vocabulary.features(text).items():
            word += count * blocks["W"][:, feature]
    apart = words[:-1].ravel() - words[1:].ravel()
    entry = 0, np.abs(apart).argmax()
    assert entry_differences(problem, W, entry).slope is not None
    b[0] += 5  # the ReLU is on, so that the maximum counts
    W[entry] -= W[0] @ apart / apart[entry[1]]
    assert entry_differences(problem, W, entry).slope is None


def test_another_topic_is_a_kink():
    problem = problem_of(("deepmatch", {}))
    W = problem.parameters["pair"]["W"]
    problem.loss()
    before = problem.branches()
    W[0] += 0.1  # the same topics, rounded
    problem.loss()
    assert problem.branches() == before
    W[0] -= 0.1
    for word in range(W.shape[1]):
        W[0, word] += 1
        problem.loss()
        assert problem.branches() != before
        W[0, word] -= 1


def test_where_the_printed_gate_finds_a_maximum_is_a_decision():
    """Both windows of a block behind the query's words: which of the title's is larger."""
    problem = problem_of(("arc2", {"maps": (5, 4), "gate": "printed"}))
    model, weights = problem._passes.matcher.model, problem._passes.matcher.weights
    problem.loss()
    *_, first = places = model.decisions(weights, problem._done)[-problem._done.scores.size :]
    assert all(one.shape == (16, 5) and set(np.unique(one)) <= {0, 1, 2, 3} for one in places)
    weights["windows_query"][:], weights["windows_document"][:] = 0, 0
    problem.loss()
    assert not model.decisions(weights, problem._done)[-1].any() and first.any()


def test_a_hinge_at_zero_is_a_kink():
    problem = problem_of(CASES[0])
    w = problem.parameters["pair"]["w"]
    scores, targets = problem._passes.forward().scores, problem._targets
    gaps = np.repeat(scores[targets.offsets[:-1]], np.diff(targets.offsets)) - scores
    assert entry_differences(problem, w, (0,)).slope is not None
    problem._loss = PairObjective("hinge", float(gaps.max()))
    slopes = [entry_differences(problem, w, (unit,)).slope for unit in range(w.size)]
    assert None in slopes


def test_large_steps_are_for_functions_that_are_linear_between_kinks():
    class Bent:
        x, piecewise_linear = 0.0, True

        def loss(self):
            return 3 * self.x + 5 * max(0, abs(self.x) - 0.5)

        def branches(self):
            return bytes([abs(self.x) > 0.5])

    problem = Bent()
    found = differences.differences(problem, lambda x: setattr(problem, "x", x), linear=True)
    # The first two steps whose points 2h lie within the kinks.
    assert found.steps == (1.0, 0.3, 0.1, 0.03) and found.taken == 3
    assert found.slope == pytest.approx(3.0, abs=1e-14)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "softmax"}, "no objective softmax; choose hinge or logistic"),
        ({"alpha": 0.1}, "wordembed has no alpha"),
        ({"form": "trace"}, "has no form trace"),
        ({"fault": "b_g"}, "no terms to leave out"),
        ({"dropout": 1.0}, "dropout is 1.0; give"),
        ({"embedding": 3000, "mlp": 1000}, "too many weights for a check; lower embedding or mlp"),
    ],
)
def test_settings_that_do_not_apply_are_refused(settings, message):
    with pytest.raises(SentembError, match=message):
        sentemb.gradcheck("wordembed", **settings)


def test_towers_have_no_logistic_loss():
    with pytest.raises(SentembError, match="objective"):
        sentemb.gradcheck("bag", objective="logistic")


@pytest.mark.usefixtures("two_steps")
def test_the_command_takes_the_settings_of_a_pair_model(monkeypatch):
    # Twenty entries of each block take five seconds.
    monkeypatch.setattr(agreement, "_choose", lambda g, entries, rng: [(0,) * g.ndim])
    arguments = ["gradcheck", "--model", "arc2", "--lengths", "2,3"]
    result = CliRunner().invoke(main, [*arguments, "--gate", "printed"])
    assert result.exit_code == 0, result.output
    assert re.search(r"arc2, form scan: .*maps \[5, 4\], gate printed", result.output)
    assert re.search(r"^pair.W1x .* pass$", result.output, re.M)
    result = CliRunner().invoke(main, [*arguments, "--explain", "pair.b1[0]"])
    assert result.exit_code == 0 and "PASS" in result.output


# -- dropout ---------------------------------------------------------------------------------------


def naive_dropout(shape, key, layer, rate):
    """What is kept, by Python's integers: SplitMix64 as its authors print it."""
    most = 2**64 - 1
    kept = np.zeros(shape)
    for place, _ in enumerate(np.nditer(kept), 1):
        z = (key + (layer << 56) + place * 0x9E3779B97F4A7C15) & most
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & most
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & most
        kept.flat[place - 1] = ((z ^ (z >> 31)) >> 11) / 2**53 >= rate
    return kept


def test_dropout_is_a_function_of_key_layer_and_place():
    key, rate, shape = np.uint64(2**64 - 5), 0.3, (150, 50)
    masks = []
    for layer in (0, 2):
        X = np.full(shape, 7.0)
        for part in ((0, 13), (13, 150)):
            dropout_rows(X, key, layer, rate, *part)
        masks.append(X)
        np.testing.assert_allclose(X, naive_dropout(shape, int(key), layer, rate) * 7 / 0.7)
        assert (X == 0).mean() == pytest.approx(rate, abs=0.03)
        # No two rows, and no two columns, are dropped together more often than by chance.
        assert np.abs(np.corrcoef(X == 0) - np.eye(150)).max() < 0.7
    assert (masks[0] != masks[1]).mean() == pytest.approx(2 * rate * (1 - rate), abs=0.04)


def test_updates_drop_different_values():
    one, other = Dropout.of(0.5, 3, 0), Dropout.of(0.5, 3, 1)
    assert one.key != other.key and one == Dropout.of(0.5, 3, 0) and one.scale == 2
    assert Dropout.of(0.0, 3, 0) is None


# -- every pair model ------------------------------------------------------------------------------


@each_case
def test_blocks_are_views_of_all_weights(case, texts):
    matcher = made_up_matcher(case[0], texts[0], **case[1])
    for block in matcher.parameters().values():
        block += 1
    changed = made_up_matcher(case[0], texts[0], **case[1]).weights
    for name, array in matcher.weights.items():
        np.testing.assert_array_equal(array, changed[name] + 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each_case
def test_a_pair_alone_is_the_pair_in_any_batch(case, dtype, texts, workers):
    matcher = made_up_matcher(case[0], [*texts[0], *texts[1]], dtype, **case[1])
    together = scores_of(matcher, texts, workers)
    assert together.dtype == dtype and np.unique(together).size > 30
    first = np.zeros(1, np.int64)
    for k in range(0, 49, 5):
        pair = [texts[0][k // 7]], [texts[1][k % 7]]
        assert passes_of(matcher, pair, workers, (first, first)).forward().scores[0] == together[k]


@each_case
def test_results_do_not_depend_on_threads(case, texts, workers):
    matcher = made_up_matcher(case[0], [*texts[0], *texts[1]], np.float32, **case[1])
    V = np.random.default_rng(0).standard_normal(49).astype(np.float32)
    with Workers(3) as three:
        found = [passes_of(matcher, texts, some).gradient(V) for some in (workers, three)]
    for name, block in found[0].items():
        assert block.tobytes() == found[1][name].tobytes(), name


@each_case
def test_only_sums_of_words_do_not_see_the_order(case, workers):
    words = ["ab", "bc", "cd", "da"]
    turned = [" ".join(order) for order in itertools.permutations(words)], [" ".join(words)]
    matcher = made_up_matcher(case[0], turned[0], **case[1])
    spread = np.ptp(scores_of(matcher, turned, workers))
    assert spread < 1e-12 if case[0] in ORDER_FREE else spread > 1e-3


# -- ARC-I and ARC-II ------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("maps", "window", "most"), [((5,), 3, 6), ((4, 3), 3, 9), ((3, 4, 2), 3, 17), ((3, 2), 2, 8)]
)
def test_arc1_is_a_special_case_of_arc2(maps, window, most, shared, workers):
    """Section 3.3: equal with the gate "and", not with the gate of equation (3) to the letter."""
    lengths = (1, 2, 3, most - 1, most, most + 2)
    rng = np.random.default_rng(0)
    both = made_up_texts(rng, lengths), made_up_texts(rng, lengths)
    settings = {"maps": maps, "window": window, "max_words": most, "mlp_layers": 2}
    arc1 = made_up_matcher("arc1", [*both[0], *both[1]], **settings, shared_towers=shared)
    expected = scores_of(arc1, both, workers)
    assert np.ptp(expected) > 0.1
    arc2 = arc2_from_arc1(arc1)
    np.testing.assert_allclose(scores_of(arc2, both, workers), expected, rtol=0, atol=1e-12)
    # Texts in which a word begins every window have no padding that the gates treat differently.
    whole = np.minimum.outer(lengths, lengths).ravel() > most - window
    printed = np.abs(scores_of(arc2_from_arc1(arc1, "printed"), both, workers) - expected)
    assert printed[whole].max() < 1e-12 and printed[~whole].max() > 1e-3


def test_only_arc1_becomes_an_arc2():
    with pytest.raises(SentembError, match="the model is wordembed, not arc1"):
        arc2_from_arc1(made_up_matcher("wordembed", ["a b"]))


def devoted_map(gate, n_query, n_title, seed):
    """z^(1) of one map that reads the query alone, and where it is on."""
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n_query, 3)), rng.standard_normal((n_title, 3))
    p = {"W1x": rng.standard_normal((1, 9)), "W1y": np.zeros((1, 9)), "b1": np.array([0.3])}
    Z, on = naive_pairs.arc2_first_plane(p, X, Y, 12, 3, gate)
    one_sided = [
        naive_pairs.relu(p["W1x"] @ naive_pairs.window_of(X, i, 3) + p["b1"])[0]
        for i in range(n_query)
    ]
    return Z, on, one_sided


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("gate", "rank"), [("and", 1), ("printed", 2)])
def test_the_rank_of_a_devoted_map(gate, rank, seed):
    """Section 3.3 calls it of rank one. With the printed gate padding adds a second part."""
    Z, _, _ = devoted_map(gate, 6, 4, seed)
    assert np.linalg.matrix_rank(Z[:, :, 0]) == rank
    unpadded, _, _ = devoted_map(gate, 12, 12, seed)
    assert np.linalg.matrix_rank(unpadded[:, :, 0]) == 1


@pytest.mark.parametrize("seed", range(3))
def test_pooling_over_cells_is_pooling_over_windows_in_a_devoted_map(seed):
    Z, on, one_sided = devoted_map("and", 7, 5, seed)
    M, _ = naive_pairs.pool(Z, on)
    pooled = [max(one_sided[2 * p : 2 * p + 2]) for p in range(4)]
    expected = np.outer([*pooled, 0], [1, 1, 1, 0, 0])
    np.testing.assert_allclose(M[:, :, 0], expected, atol=1e-14)


@pytest.mark.parametrize("gate", ["and", "printed"])
def test_padding_does_not_reach_the_score(gate, workers):
    """A longer ``max_words`` adds cells; with the same weights the score must not change.

    No text here is so long that a window would begin in it that the shorter plane has no room for.
    """
    rng = np.random.default_rng(0)
    both = made_up_texts(rng, (1, 3, 4)), made_up_texts(rng, (4, 2, 3))
    short = made_up_matcher("arc2", [*both[0], *both[1]], maps=(4, 3), max_words=9, gate=gate)
    long = made_up_matcher("arc2", [*both[0], *both[1]], maps=(4, 3), max_words=13, gate=gate)
    (small, large), weights = ((m.model.sizes[-1][1] for m in (short, long)), dict(short.weights))
    mlp = long.weights["mlp1"].reshape(large, large, 3, -1)
    mlp[:small, :small] = weights.pop("mlp1").reshape(small, small, 3, -1)
    long.weights.update(weights)
    change = np.abs(scores_of(long, both, workers) - scores_of(short, both, workers)).max()
    assert change < 1e-13 if gate == "and" else change > 1e-3


def test_cells_keep_the_order_of_the_words(workers):
    """Section 3.2: where a map is largest moves on with the word that it is large for."""
    queries = [" ".join(["x"] * place + ["marker"] + ["x"] * (8 - place)) for place in range(9)]
    matcher = made_up_matcher("arc2", queries, maps=(1,), max_words=9, window=1)
    matcher.weights["table"][:] = 0
    for feature in matcher.vocabulary.features("marker"):
        matcher.weights["table"][feature] = 1
    matcher.weights["windows_query"][:], matcher.weights["windows_document"][:] = 1, 0
    passes = passes_of(matcher, (queries, ["x x"]), workers)
    planes = passes.forward().arrays["M1"].reshape(9, 5, 1)
    assert planes.argmax(axis=1).ravel().tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4]
