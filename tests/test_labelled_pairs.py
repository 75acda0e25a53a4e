"""Labelled pairs: reading, importing, accuracy and F1, the best threshold, the commands."""

import gzip
import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from lab.sets.labelled_files import import_labelled

from sentemb import PairScorer, SentembError, load
from sentemb.cli import main
from sentemb.data.labelled_pairs import (
    LabelledPairs,
    read_labelled_pairs,
    write_labelled_pairs,
)
from sentemb.evaluation.binary import (
    best_threshold,
    count_predictions,
    labelled_scores,
)
from sentemb.models.pairs import make_pair_model
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary

SHARED = Path(__file__).parents[2] / "shared" / "data"


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def made_up(*labels):
    texts = [f"text {k}" for k in range(len(labels))]
    return LabelledPairs(np.array(labels, np.int8), texts, texts[::-1])


# -- reading ------------------------------------------------------------------------------------


def test_read_and_write(tmp_path):
    path = tmp_path / "l.tsv.gz"
    path.write_bytes(gzip.compress("\ufeff1\tA  b \tc\r\n 0 \td\té f\n".encode()))
    pairs = read_labelled_pairs(path)
    assert pairs.labels.dtype == np.int8 and pairs.labels.tolist() == [1, 0]
    assert (pairs.first, pairs.second) == (["A  b", "d"], ["c", "é f"])
    assert len(pairs) == 2 and pairs.n_positive == 1 and pairs.name == str(path)
    assert repr(pairs) == "LabelledPairs(2 pairs, 1 with label 1)"
    write_labelled_pairs(pairs, tmp_path / "again.tsv")
    again = read_labelled_pairs(tmp_path / "again.tsv")
    assert again.fingerprint() == pairs.fingerprint()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\ta\tb\n0\ta\tb\nyes\ta\tb\n", r"l\.tsv:3: label must be 0 or 1, not 'yes'"),
        ("label\ta\tb\n", r":1: label must be 0 or 1, not 'label'"),
        ("1.0\ta\tb\n", r":1: label must be 0 or 1, not '1\.0'"),
        ("\ta\tb\n", r":1: label must be 0 or 1, not ''"),
        ("1\ta\tb\n1\ta\n", r":2: 2 columns; write label<TAB>text<TAB>text as in line 1"),
        ("1\ta\n", r":1: 2 columns; write label<TAB>text<TAB>text, no other tabs"),
        ("1\ta\tb\tc\n", r":1: 4 columns"),
        ("1\ta\tb\n0\t \tb\n", r":2: the text is empty; give it at least one word"),
        ("1\ta\tb\n\n0\ta\tb\n", r":2: 1 column"),
        (b"1\ta\t\xff\n", r":1:5: not valid UTF-8"),
        ("1\ta\tb\0\n", r":1:6: a NUL character"),
        ("", r": the input is empty; give label<TAB>text<TAB>text lines"),
    ],
)
def test_bad_lines(content, message, tmp_path):
    with pytest.raises(SentembError, match=message):
        read_labelled_pairs(written(tmp_path / "l.tsv", content))


def test_one_class_cannot_be_trained_on(tmp_path):
    for label in (0, 1):
        pairs = read_labelled_pairs(written(tmp_path / "l.tsv", f"{label}\ta\tb\n" * 2))
        with pytest.raises(
            SentembError, match=rf"l\.tsv: only label {label}, so there is nothing to tell apart"
        ):
            pairs.check_both_labels()
    made_up(0, 1).check_both_labels()


def test_what_is_not_labelled_pairs():
    for labels, first, second in (
        ([1, 0], ["a"], ["b"]),
        ([1], ["a"], ["b", "c"]),
        ([], [], []),
        ([[1]], ["a"], ["b"]),
    ):
        with pytest.raises(SentembError, match="give one of each for every pair, at least one"):
            LabelledPairs(np.array(labels, np.int8), first, second)
    with pytest.raises(SentembError, match="label must be 0 or 1, not 2"):
        made_up(0, 2)


def test_the_fingerprint_sees_every_label_and_text():
    labels = np.array([1, 0], np.int8)
    same = LabelledPairs(labels, ["a", "b"], ["c", "d"])
    others = [
        LabelledPairs(labels[::-1].copy(), ["a", "b"], ["c", "d"]),
        LabelledPairs(labels, ["b", "a"], ["c", "d"]),
        LabelledPairs(labels, ["a", "b"], ["d", "c"]),
        LabelledPairs(labels, ["c", "d"], ["a", "b"]),
    ]
    prints = {one.fingerprint() for one in (same, *others)}
    assert len(prints) == 5
    renamed = LabelledPairs(labels, ["a", "b"], ["c", "d"], "other")
    assert renamed.fingerprint() == same.fingerprint()


# -- importing ----------------------------------------------------------------------------------

MSRP_HEAD = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"


def test_the_paraphrase_corpus(tmp_path):
    content = (
        MSRP_HEAD + '1\t702876\t702977\tHe said, "I  don’t."\t"No," he said.\r\n'
        "0\t1\t2\tA 5,000-ton ship\tShips\r\n"
    )
    source, out = written(tmp_path / "msr.txt", content), tmp_path / "out.tsv"
    pairs = import_labelled(source, out)
    assert out.read_bytes().decode() == (
        '1\tHe said, "I don’t."\t"No," he said.\n0\tA 5,000-ton ship\tShips\n'
    )
    assert pairs.fingerprint() == read_labelled_pairs(out).fingerprint()
    import_labelled(source, out, words=True, force=True)
    assert out.read_text().splitlines() == [
        "1\the said i don't\tno he said",
        "0\ta 5,000 ton ship\tships",
    ]


def test_plain_lines_and_similarity_sets(tmp_path):
    plain = written(tmp_path / "a.tsv", "1\tA\u00a0 b \tc\n0\td\te\n")
    import_labelled(plain, tmp_path / "out.tsv")
    assert (tmp_path / "out.tsv").read_text() == "1\tA b\tc\n0\td\te\n"
    scores = written(tmp_path / "s.tsv", "4\ta\tb\n3.9\tc\td\n5\te\tf\n")
    pairs = import_labelled(scores, tmp_path / "out2.tsv", positive_from=4)
    assert pairs.labels.tolist() == [1, 0, 1] and pairs.first == ["a", "c", "e"]


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (MSRP_HEAD + "1\t1\t2\ta\r\n", {}, r"in\.tsv:2: 4 columns, not 5 as in the head; give"),
        (MSRP_HEAD + "1\t1\t2\ta\tb\r\n2\t1\t2\ta\tb", {}, r":3: label must be 0 or 1, not '2'"),
        (MSRP_HEAD + "1\t1\t2\ta\t \r\n", {}, r":2: the text is empty"),
        (MSRP_HEAD, {}, "the input is empty"),
        ("", {}, "the input is empty"),
        ("3.6\ta\tb\n", {}, r":1: label must .* '3\.6'; for scores, give --positive-from"),
        ("1\ta\tb\n0\tc\n", {}, r":2: 2 columns; write label<TAB>text<TAB>text as in line 1"),
        ("1\ta\t?!\n", {"words": True}, r":1: the text '\?!' has no letters or digits"),
        (MSRP_HEAD + "1\t1\t2\t-\tb\r\n", {"words": True}, r":2: the text '-' has no letters"),
        ("1\ta\tb\n5\tc\td\n", {"positive_from": 6}, r"from 1 to 5, so --positive-from 6 gives"),
        ("1\ta\tb\n5\tc\td\n", {"positive_from": 1}, "gives all pairs the label 1; choose"),
        ("x\ta\tb\n", {"positive_from": 1}, r":1: the score 'x' is not a number"),
        ("1\ta\tb\n", {"positive_from": math.nan}, "positive_from is nan; give a number"),
    ],
)
def test_what_cannot_be_imported(content, settings, message, tmp_path):
    source = written(tmp_path / "in.tsv", content)
    with pytest.raises(SentembError, match=message):
        import_labelled(source, tmp_path / "out.tsv", **settings)
    assert not (tmp_path / "out.tsv").exists()


@pytest.mark.usefixtures("laboratory")
def test_import_command(tmp_path):
    source = written(tmp_path / "in.tsv", "1\ta\tb\n0\tc\td\n1\te\tf\n")
    out = tmp_path / "out.tsv"

    def run(source, out, *options, **settings):
        arguments = ["data", "labelled", str(source), "-o", str(out), *options]
        return CliRunner().invoke(main, arguments, **settings)

    assert run(source, out).stdout == "pairs: 3\nlabel 1: 2\nlabel 0: 1\n"
    again = run(source, out)
    assert (
        again.exit_code == 1 and "out.tsv: exists; name another file or use --force" in again.stderr
    )
    assert run(source, out, "--force").exit_code == 0
    # Standard input can be read only once, whatever the format.
    streamed = run("-", "-", input=source.read_text())
    assert (
        streamed.stdout == source.read_text()
        and streamed.stderr == "pairs: 3\nlabel 1: 2\nlabel 0: 1\n"
    )


# -- accuracy and F1 ----------------------------------------------------------------------------


def naive_counts(scores, labels, threshold):
    """(true positives, false positives, true negatives, false negatives), pair by pair."""
    counts = {(p, y): 0 for p in (0, 1) for y in (0, 1)}
    for score, label in zip(scores, labels, strict=True):
        counts[1 if score > threshold else 0, label] += 1
    return counts[1, 1], counts[1, 0], counts[0, 0], counts[0, 1]


def naive_figures(tp, fp, tn, fn):
    accuracy = (tp + tn) / (tp + fp + tn + fn)
    precision = tp / (tp + fp) if tp + fp else math.nan
    recall = tp / (tp + fn) if tp + fn else math.nan
    f1 = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else math.nan
    return accuracy, precision, recall, f1


# Few different scores, so that many are equal.
few_scores = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 1.0, 1e308, -1e308, 5e-324])
some_pairs = st.lists(st.tuples(few_scores, st.integers(0, 1)), min_size=1, max_size=12)


@given(some_pairs, few_scores)
def test_counts_and_figures_are_those_of_plain_loops(pairs, threshold):
    scores, labels = map(list, zip(*pairs, strict=True))
    found = count_predictions(scores, labels, threshold)
    counts = naive_counts(scores, labels, threshold)
    assert counts == (
        found.true_positives,
        found.false_positives,
        found.true_negatives,
        found.false_negatives,
    )
    figures = found.accuracy, found.precision, found.recall, found.f1
    np.testing.assert_equal(figures, naive_figures(*counts))
    assert found.n_pairs == len(pairs) and found.n_positive == sum(labels)
    assert found.majority == max(sum(labels), len(labels) - sum(labels)) / len(labels)


@given(some_pairs)
def test_the_best_threshold_is_the_lowest_of_the_most_accurate(pairs):
    scores, labels = map(list, zip(*pairs, strict=True))
    chosen = best_threshold(scores, labels)
    # A threshold at each score, and one below all, make every possible prediction.
    levels = [-math.inf, *sorted(set(scores))]
    right = [sum((s > t) == y for s, y in pairs) for t in levels]
    first = right.index(max(right))
    assert sum((s > chosen) == y for s, y in pairs) == max(right)
    assert [s > chosen for s in scores] == [s > levels[first] for s in scores]
    # Neighbours that are not next to each other as numbers have the threshold between them.
    if 0 < first < len(levels) - 1 and levels[first + 1] - levels[first] > 1e-300:
        assert levels[first] < chosen < levels[first + 1]
        assert chosen == levels[first] / 2 + levels[first + 1] / 2


def test_a_threshold_between_neighbouring_numbers():
    low = 1 + np.finfo(float).eps
    high = np.nextafter(low, 2)
    # Their middle rounds to the upper one, which would then not be above it.
    assert low / 2 + high / 2 == high
    assert best_threshold([low, high], [0, 1]) == low


def test_figures_of_one_example():
    scores = [0.9, 0.8, 0.4, 0.35, 0.1, -0.2, 0.7, 0.05]
    labels = [1, 1, 1, 0, 0, 0, 0, 1]
    found = count_predictions(scores, labels, 0.375)
    assert (found.accuracy, found.precision, found.recall, found.f1) == (0.75, 0.75, 0.75, 0.75)
    low, high = found.accuracy_interval
    # The bounds p solve |share - p| = z sqrt(p (1 - p) / n).
    for bound in (low, high):
        assert abs(0.75 - bound) == pytest.approx(
            1.959964 * math.sqrt(bound * (1 - bound) / 8), 1e-6
        )
    sure = count_predictions([1.0, 2.0], [1, 1], 0.0)
    assert sure.accuracy_interval[1] == 1 and sure.accuracy_interval[0] < 0.5


def test_scores_that_cannot_be_counted():
    for scores, labels, message in (
        ([1.0], [1, 0], "give one of each"),
        ([], [], "at least one"),
        ([math.nan], [1], "a score is not finite"),
        ([1.0], [2], "a label is not 0 or 1"),
    ):
        for function in (best_threshold, lambda s, y: count_predictions(s, y, 0)):
            with pytest.raises(SentembError, match=message):
                function(scores, labels)
    with pytest.raises(SentembError, match="the threshold is nan; give a finite number"):
        count_predictions([1.0], [1], math.nan)


# -- sentemb evaluate --labels --------------------------------------------------------------------

WORDS = ["hotels", "in", "shanghai", "cheap", "flights", "to", "rome", "fix", "leaking", "tap"]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    rng = np.random.default_rng(1)
    folder = tmp_path_factory.mktemp("labelled")
    for name, n in (("dev.tsv", 30), ("test.tsv", 40)):
        texts = [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(2 * n)]
        labels = rng.integers(0, 2, n).astype(np.int8)
        write_labelled_pairs(LabelledPairs(labels, texts[:n], texts[n:]), folder / name)
    return folder


def evaluate(*arguments):
    return CliRunner().invoke(main, ["evaluate", *map(str, arguments)])


def test_evaluate_a_tower(model_dir, labelled):
    model = load(model_dir)
    dev, test = (read_labelled_pairs(labelled / name) for name in ("dev.tsv", "test.tsv"))
    expected = best_threshold(labelled_scores(model, dev), dev.labels)
    scores = [model.score(a, [b])[0] for a, b in zip(test.first, test.second, strict=True)]
    np.testing.assert_allclose(labelled_scores(model, test), scores, rtol=0, atol=1e-6)

    arguments = model_dir, labelled / "test.tsv", "--labels", "--threshold"
    result = evaluate(*arguments, labelled / "dev.tsv", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["threshold"] == expected and found["threshold_from"] == str(labelled / "dev.tsv")
    tp, fp, tn, fn = naive_counts(labelled_scores(model, test).tolist(), test.labels, expected)
    assert found["counts"] == {
        "pairs": 40,
        "true_positives": tp,
        "false_positives": fp,
        "true_negatives": tn,
        "false_negatives": fn,
    }
    accuracy, _, _, f1 = naive_figures(tp, fp, tn, fn)
    assert found["accuracy"] == accuracy and found["accuracy_interval"][0] < accuracy
    np.testing.assert_equal(found["f1"], f1)

    nothing = evaluate(*arguments, "2", "--json")
    assert json.loads(nothing.stdout)["precision"] is None
    assert json.loads(nothing.stdout)["threshold_from"] is None
    table = evaluate(*arguments, "-1.5").stdout.splitlines()
    assert table[0].startswith(f"accuracy   {test.n_positive / 40:.4f}, 95 % interval ")
    assert table[-2:] == [
        f"label 1    {test.n_positive} right, 0 wrong",
        f"label 0    0 right, {40 - test.n_positive} wrong",
    ]
    assert "precision  -" in evaluate(*arguments, "2").stdout


def test_evaluate_a_pair_model(labelled, tmp_path):
    vocabulary = Vocabulary.collect(tokenize(WORDS), word_features=1)
    model = make_pair_model("wordembed", embedding=5, mlp=4, max_words=4)
    weights = model.initialise(len(vocabulary), np.random.default_rng(0))
    test = read_labelled_pairs(labelled / "test.tsv")
    # Half of the scores are above 0.
    weights["output_bias"] -= np.median(
        labelled_scores(PairScorer(model, vocabulary, weights), test)
    )
    for objective in ("logistic", "hinge"):
        scorer = PairScorer(model, vocabulary, weights, {"objective": objective}, threads=1)
        scorer.save_pretrained(tmp_path / objective)
    scores = labelled_scores(scorer, test)
    assert np.count_nonzero(scores > 0) == pytest.approx(len(test) / 2, abs=2)

    arguments = labelled / "test.tsv", "--labels", "--json"
    found = json.loads(evaluate(tmp_path / "logistic", *arguments).stdout)
    tp, _, tn, _ = naive_counts(scores.tolist(), test.labels, 0)
    assert found["threshold"] == 0 and found["counts"]["true_positives"] == tp
    assert found["accuracy"] == (tp + tn) / 40
    # The scores of a ranking loss have no zero.
    hinge = evaluate(tmp_path / "hinge", *arguments)
    assert hinge.exit_code == 1 and "give --threshold" in hinge.stderr
    dev = evaluate(tmp_path / "hinge", *arguments, "--threshold", labelled / "dev.tsv")
    assert json.loads(dev.stdout)["threshold"] != 0


def test_evaluate_labels_refuses(model_dir, labelled, tmp_path):
    test = labelled / "test.tsv"
    one_class = written(tmp_path / "one.tsv", "1\ta\tb\n")
    for arguments, code, message in (
        (
            ["--labels"],
            1,
            "was not trained on labels, so no score separates them; give --threshold",
        ),
        (["--labels", "--metrics", "ndcg@1"], 2, "--metrics does not go with --labels"),
        (["--labels", "--gain", "linear"], 2, "--gain does not go with --labels"),
        (["--labels", "--per-query"], 2, "--per-query does not go with --labels"),
        (["--threshold", "1"], 2, "--threshold needs --labels"),
        (["--labels", "--threshold", "inf"], 2, "give a finite number or a file"),
        (["--labels", "--threshold", str(one_class)], 1, "one.tsv: only label 1, so there is"),
        (["--labels", "--threshold", "none.tsv"], 1, "none.tsv: cannot be read"),
    ):
        result = evaluate(model_dir, test, *arguments)
        assert result.exit_code == code and message in result.stderr
    result = evaluate(test, test, "--labels", "--threshold", "1")
    assert result.exit_code == 1 and "there is no model here" in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "sts" / "sick").is_dir(), reason="there is no ../shared/data/sts")
def test_sick_as_paraphrase(tmp_path):
    pairs = import_labelled(
        SHARED / "sts" / "sick" / "test.tsv", tmp_path / "test.tsv", positive_from=4
    )
    assert len(pairs) == 4927 and pairs.n_positive == 1833
