"""Similarity sets, correlation, and `sentemb sts`."""

import gzip
import json
import math
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model, made_up_texts
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sentemb import SIF, SentembError, load, sts
from sentemb.cli import COMMANDS, main
from sentemb.data.similarity_set import SimilaritySet, find_similarity_sets, read_similarity_set
from sentemb.evaluation.correlation import pearson, ranks, spearman
from sentemb.models.vectors.word_vectors import WordVectors

DIM = 8
WORDS = ["the", "of", "red", "green", "house", "tree", "car", "sky", "sea", "hill", "dog", "cat"]


def rows(*lines):
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(0)
    # A common direction, which removal changes the cosines by.
    table = rng.standard_normal((len(WORDS), DIM)) + 2 * rng.standard_normal(DIM)
    return WordVectors(WORDS, table.astype(np.float32), name="made up")


@pytest.fixture(scope="module")
def weighted(vectors):
    return SIF(vectors, components=0).fit()


@pytest.fixture(scope="module")
def model_dir(weighted, tmp_path_factory):
    path = tmp_path_factory.mktemp("sts") / "weighted"
    weighted.save_pretrained(path)
    return path


def made_up_set(name, seed, n=30):
    rng = np.random.default_rng(seed)
    first, second = (
        [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(n)] for _ in range(2)
    )
    return SimilaritySet(name, rng.integers(0, 11, n) / 2, first, second)


def write_set(path, one):
    path.parent.mkdir(parents=True, exist_ok=True)
    pairs = zip(one.scores.tolist(), one.first, one.second, strict=True)
    path.write_text("".join(f"{score}\t{a}\t{b}\n" for score, a, b in pairs), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two years with three sets, and a file of labels."""
    path = tmp_path_factory.mktemp("tasks") / "sts"
    for seed, name in enumerate(["2012/a", "2012/b", "2013/c"]):
        write_set(path / f"{name}.tsv", made_up_set(name, seed))
    (path / "2013/labels.tsv").write_text("NEUTRAL\tthe sea\tthe sky\n")
    return path


# -- reading -----------------------------------------------------------------------------------


def test_read(tmp_path):
    text = "5\tA  red house \tthe sky\n\ufeff0.25\tÄ b\tc\n".replace("\n", "\r\n")
    (tmp_path / "2012").mkdir()
    path = tmp_path / "2012" / "task.tsv"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\ufeff", "").encode())
    read = read_similarity_set(path)
    assert read.name == (tmp_path / "2012" / "task").as_posix()
    assert read.folder == (tmp_path / "2012").as_posix()
    assert read.scores.tolist() == [5, 0.25] and read.scores.dtype == np.float64
    assert (read.first, read.second) == (["A  red house", "Ä b"], ["the sky", "c"])
    packed = tmp_path / "2012" / "task.tsv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    again = read_similarity_set(packed)
    assert again.name == read.name and again.fingerprint() == read.fingerprint()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\ta\tb\n2 a b\n", ":2: 1 column; write score<TAB>text<TAB>text"),
        (b"1\ta\n", ":1: 2 columns; write score<TAB>text<TAB>text"),
        (b"1\ta\tb\tc\n", ":1: 4 columns"),
        (b"1\ta\tb\n\n2\tc\td\n", ":2: 1 column"),
        (b"NEUTRAL\ta\tb\n", ":1: the score 'NEUTRAL' is not a number"),
        (b"nan\ta\tb\n", ":1: the score 'nan' is not a number"),
        (b"1\ta\tb\n-inf\ta\tb\n", ":2: the score '-inf' is not a number"),
        (b"1e999\ta\tb\n", ":1: the score '1e999' is not a number"),
        (b"1_0\ta\tb\n", ":1: the score '1_0' is not a number"),
        (b"\ta\tb\n", ":1: the score '' is not a number"),
        (b"1\ta\t \n", ":1: the text is empty"),
        (b"1\t\tb\n", ":1: the text is empty"),
        (b"", ": the input is empty; give score<TAB>text<TAB>text lines"),
        (b"3\ta\tb\n", ": all scores are equal"),
        (b"3\ta\tb\n3.0\tc\td\n", ": all scores are equal"),
        (b"\xff\xfe1\0", ": is UTF-16, not text; save it as UTF-8"),
        (b"\xff1\0", ":1:1: not valid UTF-8"),
        (b"1\ta\0\tb\n", ":1:4: a NUL character"),
    ],
)
def test_bad_files(tmp_path, content, message):
    path = tmp_path / "task.tsv"
    path.write_bytes(content)
    with pytest.raises(SentembError) as caught:
        read_similarity_set(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_what_is_not_packed_and_what_is_not_there(tmp_path):
    path = tmp_path / "task.tsv.gz"
    path.write_bytes(b"1\ta\tb\n2\ta\tb\n")
    with pytest.raises(SentembError, match="not a whole gzip file"):
        read_similarity_set(path)
    with pytest.raises(SentembError, match="No such file"):
        read_similarity_set(tmp_path / "other.tsv")


@pytest.mark.parametrize(
    ("scores", "first", "message"),
    [
        ([1.0, 2.0, 3.0], ["a", "b"], "3 scores, 2 first and 2 second texts"),
        ([1.0, math.nan], ["a", "b"], "not finite"),
        ([1.0, 1.0], ["a", "b"], "all scores are equal"),
    ],
)
def test_sets_that_cannot_be(scores, first, message):
    with pytest.raises(SentembError, match=message):
        SimilaritySet("made up", np.array(scores), first, ["c", "d"])


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(
    lambda text: text.replace("\ufeff", "").strip() == text
)
numbers = st.floats(-1e300, 1e300)


@given(pairs=st.lists(st.tuples(numbers, texts, texts), min_size=2))
def test_what_is_written_is_read_back(tmp_path_factory, pairs):
    path = tmp_path_factory.mktemp("round") / "task.tsv"
    path.write_bytes("".join(f"{score!r}\t{a}\t{b}\n" for score, a, b in pairs).encode())
    if len({score for score, _, _ in pairs}) == 1:
        with pytest.raises(SentembError, match="all scores are equal"):
            read_similarity_set(path)
        return
    read = read_similarity_set(path)
    assert list(zip(read.scores.tolist(), read.first, read.second, strict=True)) == pairs


@given(content=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "task.tsv"
    path.write_bytes(content)
    try:
        read = read_similarity_set(path)
    except SentembError as error:
        place = str(error)[: len(str(path))]
    else:
        place = read.name + ".tsv"
    assert place == str(path)


def test_the_fingerprint_depends_on_everything():
    one = made_up_set("a", 0)
    others = [
        SimilaritySet("b", one.scores + 1, one.first, one.second),
        SimilaritySet("b", one.scores, one.second, one.first),
        SimilaritySet("b", one.scores, [*one.first[:-1], "x"], one.second),
    ]
    assert len({some.fingerprint() for some in [one, *others]}) == 4
    assert SimilaritySet("b", one.scores, one.first, one.second).fingerprint() == one.fingerprint()


def test_folders_are_walked_and_other_files_named(folder, tmp_path):
    place = shutil.copytree(folder, tmp_path / "sts")
    (place / "notes.txt").write_text("not read")
    (place / "2012" / "loop").symlink_to(place)
    sets, skipped = find_similarity_sets([place / "2012" / "b.tsv", place])
    assert [one.name.removeprefix(f"{place}/") for one in sets] == ["2012/b", "2012/a", "2013/c"]
    assert skipped == [
        f"skipped {place}/2013/labels.tsv:1: the score 'NEUTRAL' is not a number; correct it"
    ]
    with pytest.raises(SentembError, match=r"labels\.tsv:1: the score 'NEUTRAL'"):
        find_similarity_sets([place / "2013" / "labels.tsv"])
    for name in ("a", "b"):
        (place / "2012" / f"{name}.tsv").write_text("x\ty\tz\n")
    (place / "2012" / "loop").unlink()
    with pytest.raises(SentembError, match=r"2012: holds no .*; the first of 2: .*a\.tsv:1: the"):
        find_similarity_sets([place / "2012"])
    with pytest.raises(SentembError, match="a path is None"):
        find_similarity_sets([None])
    (place / "empty").mkdir()
    with pytest.raises(SentembError, match=r"empty: holds no .* lines$"):
        find_similarity_sets([place / "empty"])


# -- correlation -------------------------------------------------------------------------------


@given(
    x=st.lists(st.integers(-4, 4) | st.floats(-1e3, 1e3), min_size=2, max_size=40), data=st.data()
)
def test_correlations_are_those_of_scipy(x, data):
    y = data.draw(st.lists(st.integers(-4, 4), min_size=len(x), max_size=len(x)))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(pearson(x, y)) and math.isnan(spearman(x, y))
        return
    assert ranks(np.array(x, float)).tolist() == stats.rankdata(x).tolist()
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    if np.ptp(x) > 1e-6 * np.abs(x).max():  # else scipy itself warns of rounding
        assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)


def test_correlations_by_hand():
    assert pearson([1, 2, 3], [2, 4, 6.0]) == 1
    assert pearson([1, 2, 3], [3, 2, 1]) == -1
    assert spearman([1, 10, 100, 1000], [1, 2, 3, 4]) == 1
    assert spearman([1, 1, 2], [1, 2, 3]) == pytest.approx(math.sqrt(3) / 2)
    # Neither squares nor differences of huge or tiny numbers leave the range of a float.
    huge = np.array([1.7e308, 1.6e308, -1.5e308])
    assert pearson(huge, huge / 1e300) == pytest.approx(1)
    assert pearson(huge * 1e-308 * 1e-300, huge) == pytest.approx(1)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1, 2], "shapes"),
        ([[1, 2, 3]], "shapes"),
        ([1, 2, math.nan], "finite"),
        ([1, math.inf, 2], "finite"),
    ],
)
@pytest.mark.parametrize("correlate", [pearson, spearman])
def test_wrong_arguments_of_correlations(correlate, x, message):
    for pair in ((x, [1, 2, 3]), ([1, 2, 3], x)):
        with pytest.raises(SentembError, match=message):
            correlate(*pair)
    with pytest.raises(SentembError, match="at least 2"):
        correlate([1], [1])


# -- sts ---------------------------------------------------------------------------------------


def by_numpy(vectors, sets, one, k, sides="one", weighted=False):
    """Cosines of Algorithm 1 whose components come from ``sets``."""
    p = 1 / np.arange(2, len(WORDS) + 2)
    rows = vectors.vectors.astype(float) * (1e-3 / (1e-3 + p / p.sum()))[:, None]

    def averages(texts):
        return np.array(
            [np.mean([rows[WORDS.index(word)] for word in text.split()], axis=0) for text in texts]
        )

    A = np.vstack([averages(some.first) for some in sets])
    B = np.vstack([averages(some.second) for some in sets])

    def removed(X, from_texts):
        _, s, Vt = np.linalg.svd(from_texts, full_matrices=False)
        strengths = s[:k] ** 2 / (s[:k] ** 2).sum() if weighted else np.ones(k)
        return X - (X @ Vt[:k].T * strengths) @ Vt[:k]

    both = np.vstack([A, B])
    a = removed(averages(one.first), A if sides == "each" else both)
    b = removed(averages(one.second), B if sides == "each" else both)
    return (a * b).sum(axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


@pytest.mark.parametrize("fit_u", ["each-file", "all"])
@pytest.mark.parametrize(
    ("components", "sides", "removal"),
    [(0, "one", "full"), (1, "one", "full"), (2, "each", "full"), (3, "one", "weighted")],
)
def test_components_come_from_the_texts_asked_for(
    vectors, weighted, fit_u, components, sides, removal
):
    sets = [made_up_set(f"y/{seed}", seed) for seed in range(3)]
    found = sts(weighted, sets, fit_u, components, sides, removal)
    for one, measured in zip(sets, found.sets, strict=True):
        fitted_on = sets if fit_u == "all" else [one]
        cosines = by_numpy(vectors, fitted_on, one, components, sides, removal == "weighted")
        assert measured.pearson == pytest.approx(pearson(cosines, one.scores), abs=1e-5)
        assert measured.spearman == pytest.approx(spearman(cosines, one.scores), abs=0.02)
        assert (measured.name, measured.pairs, measured.unknown) == (one.name, 30, 0)


def test_a_model_of_fitted_components_is_that_of_its_own_texts(vectors, weighted):
    one = made_up_set("a", 1)
    fitted = SIF(vectors, components=2).fit(one.first, one.second)
    ours, theirs = sts(fitted, [one]).mean, sts(weighted, [one], "each-file", 2).mean
    assert ours.pearson == pytest.approx(theirs.pearson, abs=1e-5)


def test_the_first_text_is_a_query_and_means_are_over_folders():
    rng = np.random.default_rng(0)
    texts = made_up_texts(rng, [3] * 40)
    model = made_up_model(("lstm", {}), texts)
    sets = [
        SimilaritySet(name, rng.random(10), texts[k : k + 10], texts[k + 10 : k + 20])
        for k, name in enumerate(["y/a", "x/b", "y/c"])
    ]
    found = sts(model, sets)
    for one, measured in zip(sets, found.sets, strict=True):
        Q, D = model.encode_query(one.first), model.encode_document(one.second)
        cosines = model.similarity_pairwise(Q, D)
        assert measured.pearson == pytest.approx(stats.pearsonr(cosines, one.scores)[0], abs=1e-9)
    a, b, c = found.sets
    assert [(one.name, one.pairs) for one in found.folders] == [("y", 20), ("x", 10)]
    assert found.folders[0].pearson == pytest.approx((a.pearson + c.pearson) / 2)
    assert found.folders[0].spearman == pytest.approx((a.spearman + c.spearman) / 2)
    mean = ((a.pearson + c.pearson) / 2 + b.pearson) / 2
    assert found.mean.pearson == pytest.approx(mean) and found.mean.pairs == 30


def test_texts_without_a_known_word_are_counted(weighted):
    first = ["the sea", "zzz", "zzz sky", "!"]
    second = ["the sky", "sea vvv", "yyy xxx", "car"]
    found = sts(weighted, [SimilaritySet("a", np.array([1.0, 2, 3, 4]), first, second)]).sets[0]
    assert found.unknown == 3  # a known word among others is enough
    none = SimilaritySet("b", np.array([1.0, 2]), ["zzz", "yyy"], ["the", "car"])
    measured = sts(weighted, [none, made_up_set("c", 0)])
    assert math.isnan(measured.sets[0].pearson) and math.isnan(measured.mean.spearman)


def test_what_sts_refuses(vectors, weighted):
    one = made_up_set("2012/a", 0)
    lstm = made_up_model(("lstm", {}), one.first)
    removed = SIF(vectors).fit(one.first, one.second)
    # A folder may say anything about its training.
    liar = made_up_model(("lstm", {}), one.first, training={"method": "sif", "components": 0})
    for model in (lstm, removed, liar):
        for fit_u in ("each-file", "all"):
            with pytest.raises(SentembError, match=f"fit_u {fit_u} needs a SIF model"):
                sts(model, [one], fit_u)
    unknown = SimilaritySet("2012/b", np.array([1.0, 2]), ["zzz", "yyy"], ["xxx", "vvv"])
    with pytest.raises(SentembError, match="2012/b: 0 texts with known words are too few"):
        sts(weighted, [one, unknown], "each-file")
    for arguments, message in (
        ((weighted, [one], "file"), "fit_u is 'file'; give one of model, each-file, all"),
        ((weighted, [one], "all", DIM), f"components is {DIM}; give fewer than {DIM}"),
        ((weighted, [one], "all", 1, "both"), "sides is 'both'"),
        ((weighted, []), "no similarity sets"),
        ((weighted, ["a.tsv"]), "no similarity sets"),
        (("model/", [one]), "the model is 'model/'"),
    ):
        with pytest.raises(SentembError, match=message):
            sts(*arguments)


# -- the command -------------------------------------------------------------------------------


def run(*arguments, code=0, **settings):
    result = CliRunner().invoke(main, ["sts", *map(str, arguments)], **settings)
    assert result.exit_code == code, result.output
    return result


def test_the_command(folder, model_dir, weighted):
    result = run(model_dir, folder, "--fit-u", "each-file", "--components", "2")
    sets = [read_similarity_set(folder / f"{name}.tsv") for name in ("2012/a", "2012/b", "2013/c")]
    found = sts(weighted, sets, "each-file", 2)
    expected = [["set", "pairs", "Pearson", "Spearman"]]
    for name, one in zip(
        ["2012/a", "2012/b", "2013/c", "mean of 2012", "mean of 2013", "mean"],
        [*found.sets, *found.folders, found.mean],
        strict=True,
    ):
        figures = [f"{100 * one.pearson:.1f}", f"{100 * one.spearman:.1f}"]
        expected.append([name, str(one.pairs), *figures])
    assert [line.split("  ")[0] for line in result.stdout.splitlines()] == [r[0] for r in expected]
    assert result.stdout.split() == " ".join(" ".join(row) for row in expected).split()
    assert "labels.tsv:1: the score 'NEUTRAL'" in result.stderr
    said = json.loads(run(model_dir, folder, "--fit-u", "each-file", "--json").stdout)
    assert said["fit_u"] == "each-file"
    one = sts(weighted, sets, "each-file")
    assert [r["pearson"] for r in said["sets"]] == [r.pearson for r in one.sets]
    assert said["mean"]["spearman"] == one.mean.spearman
    markdown = run(model_dir, folder / "2012/a.tsv", "--markdown").stdout.splitlines()
    assert markdown[0] == "| set | pairs | Pearson | Spearman |" and markdown[2].startswith(
        "| 2012/a |"
    )
    assert len(markdown) == 3


def test_one_set_from_standard_input_without_known_words(model_dir):
    said = run(model_dir, "-", input="1\tzzz\tthe\n2\tyyy\tsea\n")
    assert said.stdout.split() == ["set", "pairs", "Pearson", "Spearman", "-", "2", "-", "-"]
    assert said.stderr == (
        "2 of 4 texts have no word that the model knows\n"
        "-: all cosines are equal; the correlation is undefined\n"
    )
    said = run(model_dir, "-", "--json", input="1\tzzz\tthe\n2\tyyy\tsea\n")
    assert json.loads(said.stdout)["mean"]["pearson"] is None


def test_wrong_usage(folder, model_dir, tmp_path):
    usage = run(model_dir, folder, "--components", "2", code=2).stderr
    assert "--components needs --fit-u each-file or all" in usage
    assert "not both" in run(model_dir, folder, "--json", "--markdown", code=2).stderr
    assert "Missing argument" in run(model_dir, code=2).stderr
    for arguments, message in (
        ((tmp_path / "none", folder / "2012"), "there is no model here"),
        ((model_dir, tmp_path / "none.tsv"), "No such file"),
        ((model_dir, ""), "No such file"),
        ((model_dir, folder / "2013" / "labels.tsv"), "labels.tsv:1"),
        ((model_dir, folder / "2012", "--fit-u", "all", "--components", DIM), "give fewer than"),
    ):
        refused = run(*arguments, code=1)
        assert message in refused.stderr and refused.stderr.count("\n") == 1
        assert refused.stdout == ""
    assert f"\n  {COMMANDS['sts']}\n" in run("-h").output


def test_load_gives_what_sts_takes(model_dir, weighted):
    one = made_up_set("a", 0)
    assert sts(load(model_dir), [one], "each-file") == sts(weighted, [one], "each-file")
