"""Models exported to ONNX give the vectors of the package, from the tokenisers that they bring."""

import importlib.util
import json
import re
import sys
import unicodedata
import warnings
from itertools import groupby, pairwise, zip_longest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from helpers import (
    FEED_FORWARD,
    VARIANTS,
    each_variant,
    made_up_log,
    made_up_model,
    made_up_pair_model,
    made_up_texts,
    run_python,
    tree,
)
from onnx.reference import ReferenceEvaluator

from sentemb import SIF, SentembError, SentenceEncoder, train
from sentemb.bridges.export.onnx import model as onnx_model
from sentemb.bridges.export.onnx.characters import character_table
from sentemb.bridges.export.onnx.tokeniser import Tokeniser
from sentemb.bridges.export.targets import export
from sentemb.data.click_log import read_click_log
from sentemb.models.files.model_files import fingerprint
from sentemb.models.towers.bag import Bag
from sentemb.models.towers.towers import SIDES
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.retrieval.similarity import unit_rows
from sentemb.text.words import BARE, JOINER, LETTERED, PLAIN, SPLITTINGS, WHITE_SPACE

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared/data"
INPUTS = ("features", "counts", "word_offsets", "words", "text_offsets")
RNG = np.random.default_rng(0)
KNOWN = made_up_texts(RNG, [4] * 40)
STRANGE = [
    "", "   ", "\t\n", "qqq xyz", "a", "qqq", "ab qqq", "qqq ab cd", "ab ab ab ab", "ABCD aBcD",
    "ΑΒΣ ΣΑΣ Σ ΑΣ.Β ΑΣ' 'Σ aΣ\u0301b aΣ\u0301", "İstanbul ISPARTA ıi", "straße ẞ ǅ ﬁ Ⅷ ᾈ",
    "こんにちは 世界", "مرحبا بالعالم", "नमस्ते दुनिया", "한국어 조선말",
    "\U0001f600 a\U0001f3fdb \U00010400",
    "a\u00a0b\u2003c\u3000d\u200be\u001cf\u0085g\u180eh\ufeffi", "cafe\u0301 café e\u0323\u0302",
    '"ab" (cd), [ab]! “abc” …a… ..., ? \' "" ab\'s', "c++ .net 50% a_b a-b 1²3 x٣y",
    "ＵＳＢ充電器、白(ｶﾞﾗｽ) 1½″ Foo™ \u00ad",
    "ความรู้\u200bน้ำ \u0e31ก ខ្មែរ \u17d2ខ", "\u00ad", "「」？",
    "\ud800 a\udfffb", "#a# # ##", "\x00 a\x00b", "abcd" * 6, "abcd " * 100,
]  # fmt: skip
# float32 loses digits over so many words, and gates that are closed leave nothing but rounding.
LONG = ["abcd " * 400, "abcd" * 60, "a" * 4000]
TEXTS = [*STRANGE, *made_up_texts(RNG, list(range(1, 31)) * 2, 80)]


def exported(model, folder, **options):
    return export(model, folder, "onnx", **options)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def sessions(folder):
    """The session of each side."""
    if (folder / "model.onnx").exists():
        return dict.fromkeys(SIDES, session(folder / "model.onnx"))
    return {side: session(folder / f"{side}.onnx") for side in SIDES}


def vectors_of(run, tokeniser, texts):
    (found,) = run.run(None, tokeniser.batch(texts))
    return found


def unit_vectors(model, texts, side):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return unit_rows(model.encode(texts, side=side))


def assert_agrees(model, folder, texts=TEXTS):
    """The vectors of ``folder`` are those of ``model``, whatever is in a batch.

    Returns the tokeniser and the last session, that of titles.
    """
    tokeniser = Tokeniser(folder)
    for side, run in sessions(folder).items():
        found = vectors_of(run, tokeniser, texts)
        assert found.dtype == np.float32 and found.shape == (len(texts), model.dim)
        np.testing.assert_allclose(found, unit_vectors(model, texts, side), rtol=0, atol=1e-5)
        assert not found[[not model.vocabulary.split(text) for text in texts]].any()
        some = [0, 3, 9, len(texts) - 1]
        for places in [3], some[-1:], some[::-1], some + some:
            alone = vectors_of(run, tokeniser, [texts[place] for place in places])
            np.testing.assert_allclose(alone, found[places], rtol=0, atol=1e-6)
        for nothing in ([], ["", " "]):
            assert not vectors_of(run, tokeniser, nothing).any()
    return tokeniser, run


def assert_agrees_on_long_texts(model, tokeniser, titles):
    """The vectors are those of the model in float64, unless hardly anything of a vector is left."""
    exact = model.astype("float64")
    found = vectors_of(titles, tokeniser, LONG)
    assert np.isfinite(found).all()
    is_left = np.linalg.norm(exact.encode_document(LONG), axis=1) > 1e-3
    expected = unit_vectors(exact, LONG, "document")
    np.testing.assert_allclose(found[is_left], expected[is_left], rtol=0, atol=1e-5)
    assert is_left[0]


def made_up_vectors():
    words = sorted({word for text in KNOWN for word in text.split()} | {"café", "世界"})
    rows = np.random.default_rng(1).standard_normal((len(words), 6)).astype(np.float32)
    return WordVectors(words, rows, name="made-up")


def trained(**settings):
    """A small model with trigrams and words."""
    tiny = {"epochs": 1, "batch_size": 16, "threads": 1, "hard_negatives": 0, "cells": 4}
    own = {"splitting": WHITE_SPACE, "shared_towers": False, "bag_dim": 0, **settings}
    return train(made_up_log(), **tiny, word_features=2, **own)


@pytest.fixture(scope="module")
def models():
    """Models that differ in more than the encoder."""
    bare = trained(splitting=BARE)
    lstm = trained(peepholes="diagonal", forget_gate=True)
    clsm = made_up_model(("clsm", {"hidden": 7, "window": 3}), KNOWN, dtype=np.float32)
    return {
        "words": lstm,
        "bare": bare,
        "letters": trained(splitting=LETTERED),
        "shared": trained(shared_towers=True, model="bilstm"),
        "sif": SIF(made_up_vectors()).fit(KNOWN, KNOWN[:9]),
        "vectors": trained(vectors=made_up_vectors(), vector_dim=3),
        "average": SentenceEncoder.average([lstm, clsm, trained(model="irnn")]),
        "float64": made_up_model(("dssm", {"hidden": 7}), KNOWN),
        "wide": made_up_model(("bilstm", {"bag_dim": 30}), KNOWN, cells=70, dtype=np.float32),
    }


@pytest.fixture(scope="module")
def folders(models, tmp_path_factory):
    """The exports of `models`."""
    home = tmp_path_factory.mktemp("onnx")
    for name, model in models.items():
        exported(model, home / name)
    return {name: home / name for name in models}


# -- vectors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(**each_variant(VARIANTS + FEED_FORWARD))
def test_every_encoder_gives_the_vectors_of_the_package(variant, tmp_path):
    model = made_up_model(variant, KNOWN, dtype=np.float32)
    exported(model, tmp_path / "out")
    assert_agrees_on_long_texts(model, *assert_agrees(model, tmp_path / "out"))


@pytest.mark.parametrize(
    "name", ["words", "bare", "letters", "shared", "sif", "vectors", "average", "float64", "wide"]
)
def test_every_kind_of_model_gives_the_vectors_of_the_package(models, folders, name):
    assert_agrees(models[name], folders[name])


def test_another_runtime_gives_the_same_vectors(models, folders):
    tokeniser, texts = Tokeniser(folders["average"]), TEXTS[:14]
    other = ReferenceEvaluator(onnx.load(folders["average"] / "query.onnx"))
    expected = unit_vectors(models["average"], texts, "query")
    np.testing.assert_allclose(vectors_of(other, tokeniser, texts), expected, rtol=0, atol=1e-5)


def test_very_large_and_very_small_vectors_have_unit_length(tmp_path):
    model = made_up_model(("bag", {}), KNOWN, dtype=np.float32)
    model.weights["query"]["table"] *= np.float32(1e30)
    model.weights["document"]["table"] *= np.float32(1e-30)
    exported(model, tmp_path / "out")
    assert_agrees(model, tmp_path / "out", KNOWN)
    run = sessions(tmp_path / "out")["document"]
    found = vectors_of(run, Tokeniser(tmp_path / "out"), KNOWN)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tldr", "occupations"])
def test_ten_thousand_real_texts(name, tmp_path):
    if not (SHARED / name).is_dir():
        pytest.skip(f"needs {SHARED / name}")
    log = read_click_log(SHARED / name / "pairs.tsv")
    texts = [*log.queries[:8000], *log.titles[: 2000 - len(STRANGE)], *STRANGE]
    assert len(texts) == 10_000
    for settings in ({}, {"model": "clsm", "hidden": 30}, {"splitting": BARE, "bag_dim": 20}):
        quick = {"epochs": 1, "batch_size": 512, "hard_negatives": 0, "cells": 32}
        model = train(log, **quick, **settings)
        folder = tmp_path / "-".join(["out", *settings])
        exported(model, folder)
        tokeniser = Tokeniser(folder)
        for side, run in sessions(folder).items():
            expected = unit_vectors(model, texts, side)
            for first in range(0, len(texts), 500):
                found = vectors_of(run, tokeniser, texts[first : first + 500])
                np.testing.assert_allclose(found, expected[first : first + 500], rtol=0, atol=1e-5)


# -- files -----------------------------------------------------------------------------------------


def test_the_files_are_valid_and_say_what_they_hold(models, folders):
    for name, folder in folders.items():
        model = models[name]
        for path in folder.glob("*.onnx"):
            loaded = onnx.load(path)
            onnx.checker.check_model(loaded, full_check=True)
            assert [(one.domain, one.version) for one in loaded.opset_import] == [("", 13)]
            assert [one.name for one in loaded.graph.input] == list(INPUTS)
            assert [one.name for one in loaded.graph.output] == ["embedding"]
            facts = {one.key: one.value for one in loaded.metadata_props}
            assert facts["model"] == model.encoder.name and facts["dim"] == str(model.dim)
            assert facts["side"] == ("both" if model.shared_towers else path.stem)
            assert facts["fingerprint"] == fingerprint(model.saved())
            assert facts["splitting"] == model.vocabulary.splitting
            assert "unit length" in facts["normalisation"] and facts["sentemb_version"]
        shared = {"model.onnx"} if model.shared_towers else {"query.onnx", "document.onnx"}
        assert {path.name for path in folder.glob("*.onnx")} == shared


def test_what_was_written_is_reported(models, tmp_path):
    done = exported(models["float64"], tmp_path / "out")
    assert sorted([*done.files, tmp_path / "out/files.json"]) == sorted(
        (tmp_path / "out").iterdir()
    )
    assert len(done.notes) == 1 and "float32" in done.notes[0]
    assert exported(models["words"], tmp_path / "out", force=True).notes == []


def test_the_same_model_gives_the_same_bytes(models, folders, tmp_path):
    models["average"].save_pretrained(tmp_path / "model")
    exported(SentenceEncoder(tmp_path / "model"), tmp_path / "out")
    assert tree(tmp_path / "out") == tree(folders["average"])


@pytest.mark.slow
def test_another_process_gives_the_same_bytes(models, folders, tmp_path):
    models["average"].save_pretrained(tmp_path / "model")
    code = (
        "import sys; from sentemb import SentenceEncoder as S; from sentemb.bridges.export.targets "
        "import export; export(S(sys.argv[1]), sys.argv[2], 'onnx')"
    )
    run_python(code, tmp_path / "model", tmp_path / "there", check=True, PYTHONHASHSEED="7")
    assert tree(tmp_path / "there") == tree(folders["average"])


# -- tokenisers ------------------------------------------------------------------------------------


def load_tokeniser(folder):
    """The module in the folder, which must not import sentemb."""
    source = (folder / "tokeniser.py").read_text("utf-8")
    assert "import sentemb" not in source and "from sentemb" not in source
    spec = importlib.util.spec_from_file_location("tokeniser", folder / "tokeniser.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Tokeniser(folder)


@pytest.mark.parametrize("name", ["words", "bare", "letters", "sif", "vectors"])
def test_the_tokeniser_in_python_reads_texts_as_the_package_does(models, folders, name):
    ours, found = models[name].vocabulary.batch(TEXTS), load_tokeniser(folders[name]).batch(TEXTS)
    assert ours.feature_ids.size > 4
    np.testing.assert_array_equal(found["features"], ours.input_rows[ours.feature_ids])
    np.testing.assert_array_equal(found["counts"], ours.feature_values)
    np.testing.assert_array_equal(found["word_offsets"], ours.feature_offsets)
    np.testing.assert_array_equal(found["words"], ours.word_index)
    np.testing.assert_array_equal(found["text_offsets"], ours.offsets)


def test_python_adds_no_other_lower_case_of_several_characters():
    """The README has the only one in words, all others are in `character_table`."""
    several = [chr(code) for code in range(sys.maxunicode + 1) if len(chr(code).lower()) > 1]
    assert several == ["\u0130"] and "\u0130".lower() == "i\u0307"
    assert "\u03a3".lower() == "\u03c3" and "a\u03a3".lower() == "a\u03c2"
    table = dict(line.split(" ", 1) for line in character_table().splitlines())
    assert set(table) == {
        "space", "word", "cased", "ignored", "lower", "before", "after",
        "unspaced", "marks", "separators", "unchanged", "silent",
    }  # fmt: skip


def example_of(folder, language):
    """The listing in a README."""
    page = (folder / "README.md").read_text("utf-8")
    return re.search(rf"^```{language}\n(.*?)^```", page, re.M | re.S)[1]


def table_of(folder):
    """``characters.txt``: sets of code points, and lower cases; and what is made of them once."""
    found = {}
    for line in (folder / "characters.txt").read_text("utf-8").splitlines():
        name, *entries = line.split(" ")
        found[name] = {}
        for entry in entries:
            codes, _, lower = entry.partition(">")
            first, last = (int(code, 16) for code in codes.split("-"))
            for code in range(first, last + 1):
                found[name][chr(code)] = chr(int(lower or "0", 16) + code - first)
    found["letters"] = found["unspaced"].keys() | found["marks"].keys() | {"\u17d2"}
    found["pieces"] = re.compile(f"([{''.join(found['space'])}]+)")
    return found


def lower_as_described(text, table):
    """Lower case by the README alone."""
    found = []
    for place, letter in enumerate(text):
        if letter == "\u0130":
            found.append("i\u0307")
        elif letter == "\u03a3":
            near = [
                next((one for one in side if one not in table["ignored"]), "")
                for side in (text[:place][::-1], text[place + 1 :])
            ]
            before, after = (one in table["cased"] for one in near)
            found.append("\u03c2" if before and not after else "\u03c3")
        else:
            found.append(table["lower"].get(letter, letter))
    return "".join(found)


def composed_as_described(text, table):
    """The first steps of bare words by the README alone."""
    text = "".join(one for one in text.replace("\u200b", " ") if one not in table["silent"])
    runs = groupby(unicodedata.normalize("NFC", text), lambda one: one in table["unchanged"])
    text = "".join(
        "".join(run) if is_unchanged else unicodedata.normalize("NFKC", "".join(run))
        for is_unchanged, run in runs
    )
    return text.translate({0x130: "i", 0x131: "i"})


def letters_as_described(run, table):
    """The letters of a run of those without blanks by the README alone."""
    letters = []
    for place, sign in enumerate(run):
        if sign in table["unspaced"] and (not place or run[place - 1] != "\u17d2"):
            letters.append("")
        letters[-1] += sign
    return letters


def run_as_described(run, splitting, table):
    """The words of a run of letters without blanks by the README alone."""
    letters = letters_as_described(run, table)
    pairs = [a + b for a, b in pairwise(letters)]
    if splitting == BARE:
        return pairs or letters
    return [word for both in zip_longest(letters, pairs) for word in both if word]


def bare_as_described(piece, splitting, table):
    """The words of a piece without white space by the README alone."""
    runs = []
    for sign in piece:
        kind = "unspaced" if sign in table["unspaced"] else "others"
        if sign in table["separators"]:
            kind = "separators"
        elif sign in table["marks"] and runs:
            kind = runs[-1][0].replace("separators", "others")
        if not runs or runs[-1][0] != kind:
            runs.append([kind, ""])
        runs[-1][1] += sign
    found = []
    for kind, run in runs:
        if kind == "unspaced":
            found += run_as_described(run, splitting, table)
        elif kind == "others":
            found.append(run.lstrip("".join(table["before"])).rstrip("".join(table["after"])))
    return list(filter(None, found)) or [piece]


def split_as_described(text, splitting, table):
    """The words of a text by the README alone."""
    parts = joined_as_described(text, table) if splitting == LETTERED else [text]
    return [
        word
        for k, part in enumerate(parts)
        for word in ([part] if k % 2 else words_as_described(part, splitting, table))
    ]


def words_as_described(text, splitting, table):
    """The same for a text in which no two letters are joined."""
    is_bare = splitting in (BARE, LETTERED)
    read = composed_as_described(text, table) if is_bare else text
    read = lower_as_described(read, table)
    is_in = (lambda one: one in table["word"]) if splitting == PLAIN else (
        lambda one: one not in table["space"]
    )  # fmt: skip
    words = ["".join(run) for inside, run in groupby(read, is_in) if inside]
    if not is_bare:
        return words
    parts = [part for word in words for part in bare_as_described(word, splitting, table)]
    return parts or text.split()


def joined_as_described(text, table):
    """Texts, and between them the words that are two letters with U+2060 between them."""
    parts = [""]
    for piece in table["pieces"].split(text):
        halves = piece.split(JOINER)
        if len(halves) == 2 and all(
            half and half[0] in table["unspaced"] and table["letters"].issuperset(half)
            and len(letters_as_described(half, table)) == 1 for half in halves
        ):  # fmt: skip
            parts += ["".join(halves), ""]
        else:
            parts[-1] += piece
    return parts


def test_the_description_of_the_readme_holds_for_texts_without_blanks(folders):
    table, rng = table_of(folders["letters"]), np.random.default_rng(2)
    letters = [*"東京ｶﾞー豆、 aÉ.(ขกำខម\u17d2្ា", JOINER, JOINER, " ", "\u3099", "\u200b"]
    for _ in range(4_000):
        text = "".join(rng.choice(letters, rng.integers(1, 9)))
        for splitting in (BARE, LETTERED):
            assert split_as_described(text, splitting, table) == SPLITTINGS[splitting](text), text


@pytest.mark.parametrize("name", ["words", "bare", "letters", "sif", "vectors"])
def test_the_description_of_the_readme_finds_the_words_of_the_examples(models, folders, name):
    table, splitting = table_of(folders[name]), models[name].vocabulary.splitting
    tokeniser = load_tokeniser(folders[name])
    lines = (folders[name] / "examples.jsonl").read_text("utf-8").splitlines()
    assert len(lines) > 10
    for row in map(json.loads, lines):
        assert row["words"] == split_as_described(row["text"], splitting, table)
        assert row["words"] == models[name].vocabulary.split(row["text"])
        found = [[list(entry) for entry in tokeniser.features(one).items()] for one in row["words"]]
        assert row["features"] == found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["words", "bare", "letters", "sif"])
def test_the_description_of_the_readme_holds_for_any_character(models, folders, name):
    table, splitting = table_of(folders[name]), models[name].vocabulary.splitting
    for letter in map(chr, range(1, sys.maxunicode + 1)):
        text = f"A{letter}\u03a3{letter}B \u03a3{letter} {letter}c"
        assert split_as_described(text, splitting, table) == SPLITTINGS[splitting](text), letter


# -- examples --------------------------------------------------------------------------------------


def test_the_example_in_python_runs(models, folders, monkeypatch, capsys):
    for name in ("words", "shared"):
        monkeypatch.chdir(folders[name])
        monkeypatch.syspath_prepend(folders[name])
        monkeypatch.delitem(sys.modules, "tokeniser", raising=False)
        example = example_of(folders[name], "python")
        exec(compile(example, "README.md", "exec"), {})
        monkeypatch.delitem(sys.modules, "tokeniser")
        query = "cheap hotel in paris"
        titles = ["Affordable Lodging in Paris", "Paris Hair Salons"]
        assert query in example and all(title in example for title in titles)
        printed = np.array(capsys.readouterr().out.strip("[] \n").split(), float)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Q = models[name].encode_query(query, normalize_embeddings=True)
            T = models[name].encode_document(titles, normalize_embeddings=True)
        np.testing.assert_allclose(printed, T @ Q, atol=1e-5)


def test_the_page_has_the_example_of_the_readme(folders):
    page = (ROOT / "docs/onnx.md").read_text("utf-8")
    assert f"```python\n{example_of(folders['words'], 'python')}```" in page


# -- what is refused -------------------------------------------------------------------------------


def refused(model, out, message, **options):
    before = tree(out.parent)
    with pytest.raises(SentembError, match=message):
        exported(model, out, **options)
    assert tree(out.parent) == before


def test_a_pair_model_is_refused(tmp_path):
    refused(made_up_pair_model(KNOWN), tmp_path / "out", "scores pairs and has no vector of a text")


def test_a_model_that_float32_cannot_hold_is_refused(models, tmp_path, monkeypatch):
    model = made_up_model(("dssm", {"hidden": 7}), KNOWN)
    model.weights["document"]["bias"][3] = 1e39
    refused(model, tmp_path / "out", r"document.bias has a value that is not a finite number")
    monkeypatch.setattr(onnx_model, "_MOST_BYTES", 1000)
    refused(models["words"], tmp_path / "out", "GB of weights")


def test_an_encoder_of_somebody_else_is_refused(tmp_path):
    class Other(Bag):
        name = "bag"

    model = made_up_model(("bag", {}), KNOWN)
    other = SentenceEncoder(Other(cells=5), model.vocabulary, model.weights)
    refused(other, tmp_path / "out", "bag cannot be exported to ONNX")


def test_only_an_export_is_replaced(models, tmp_path):
    out = tmp_path / "out"
    exported(models["words"], out)
    (out / "__pycache__").mkdir()
    refused(models["shared"], out, "is not empty")
    exported(models["shared"], out, force=True)
    assert {path.name for path in out.glob("*.onnx")} == {"model.onnx"}
    (out / "notes.txt").write_text("mine")
    exported(models["words"], out, force=True)
    assert (out / "notes.txt").read_text() == "mine" and (out / "__pycache__").is_dir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign/README.md").write_text("mine")
    why = "holds other files than an export, such as README.md"
    refused(models["words"], tmp_path / "foreign", why, force=True)
    refused(models["words"], out / "notes.txt", "is a file")


def test_without_the_package_nothing_is_written(models, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    refused(
        models["words"], tmp_path / "out", r"--to onnx needs onnx.*pip install 'sentemb\[onnx\]'"
    )


def test_a_disk_that_is_full_leaves_nothing(models, tmp_path, monkeypatch):
    def full(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(onnx_model, "write_text", full)
    refused(models["words"], tmp_path / "out", "No space left")
