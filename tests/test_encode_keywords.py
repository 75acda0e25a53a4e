"""``encode`` with the keywords of sentence-transformers."""

import inspect
import io
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from helpers import made_up_model

from sentemb import SIF, SentembError, SentenceEncoder
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.models.words.precision import in_precision

TEXTS = ["paris hotel", "", "hotel in rome", "日本 語", "cheap hotel " * 9]


@pytest.fixture(scope="module")
def encoder():
    return made_up_model(("lstm", {"bag_dim": 3}), TEXTS, dtype=np.float32)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


# -- what is accepted ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keywords",
    [
        {"batch_size": 1},
        {"device": "cpu"},
        {"device": "cpu:0"},
        {"convert_to_numpy": True, "convert_to_tensor": False},
        {"prompt": None, "prompt_name": None, "task": None},
        {"prompt": ""},
        {"output_value": "sentence_embedding", "pool": None, "chunk_size": 7},
        {"show_progress_bar": False, "normalize_embeddings": np.False_, "truncate_dim": None},
        {"precision": "float32"},
    ],
    ids=str,
)
def test_what_changes_nothing_is_accepted(encoder, keywords):
    for encode in (encoder.encode, encoder.encode_query, encoder.encode_document):
        assert np.array_equal(encode(TEXTS, **keywords), encode(TEXTS))


@pytest.mark.parametrize("name", ["texts", "sentences", "inputs"])
def test_texts_have_three_names(encoder, name):
    assert np.array_equal(encoder.encode(**{name: TEXTS}), encoder.encode(TEXTS))
    assert np.array_equal(encoder.encode_document(**{name: "a"}), encoder.encode_document("a"))
    if name != "texts":
        with pytest.raises(SentembError, match="give one of them"):
            encoder.encode(TEXTS, **{name: TEXTS})


def test_the_side_has_three_names(encoder):
    query, title = encoder.encode_query(TEXTS), encoder.encode_document(TEXTS)
    assert not np.array_equal(query, title)
    for name in ("side", "task", "prompt_name"):
        assert np.array_equal(encoder.encode(TEXTS, **{name: "query"}), query)
        assert np.array_equal(encoder.encode(TEXTS, **{name: "document"}), title)
    assert np.array_equal(encoder.encode(TEXTS, "document"), title)
    assert np.array_equal(encoder.encode(TEXTS), query)
    assert np.array_equal(encoder.encode_document(TEXTS, prompt_name="document"), title)
    with pytest.raises(SentembError, match="different towers"):
        encoder.encode_query(TEXTS, prompt_name="document")
    with pytest.raises(SentembError, match="different towers"):
        encoder.encode(TEXTS, task="query", prompt_name="document")


def test_numbers_are_cut_off_before_vectors_get_unit_length(encoder):
    cut = encoder.encode(TEXTS, truncate_dim=3, normalize_embeddings=True)
    expected = encoder.encode(TEXTS)[:, :3]
    expected = expected / np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-30)
    np.testing.assert_allclose(cut, expected, rtol=1e-6)
    assert cut.flags.c_contiguous and encoder.encode("paris", truncate_dim=3).shape == (3,)


def test_notebooks_show_every_keyword(encoder):
    for encode in (encoder.encode, encoder.encode_query, encoder.encode_document):
        shown = inspect.signature(encode).parameters
        assert not any(one.kind == one.VAR_KEYWORD for one in shown.values())
        given = {name: one.default for name, one in shown.items() if one.kind == one.KEYWORD_ONLY}
        assert len(given) == 14
        assert np.array_equal(encode(TEXTS, **given), encode(TEXTS))


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"task": "clustering"}, "task must be query or document"),
        ({"prompt_name": "passage"}, "prompt_name must be query or document"),
        ({"prompt": "query: "}, "has no prompts"),
        ({"precision": "int4"}, "one of float32, float16, int8"),
        ({"precision": 8}, "precision is 8"),
        ({"truncate_dim": 0}, "truncate_dim is 0"),
        ({"truncate_dim": 1000}, "from 1 to 8"),
        ({"device": "cuda"}, "computes on the cpu"),
        ({"device": ["cpu", "cpu"]}, "computes on the cpu"),
        ({"show_progress_bar": "yes"}, "give True or False"),
        ({"normalize_embeddings": None}, "give True or False"),
        ({"convert_to_numpy": "no"}, "give True or False"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": 2.5}, "batch_size is 2.5"),
        ({"pool": {}}, "threads"),
        ({"output_value": "token_embeddings"}, "trace"),
        ({"output_value": None}, "one vector per text"),
        ({"normalise_embeddings": True}, "encode has no normalise_embeddings"),
    ],
    ids=str,
)
def test_what_a_model_cannot_do_is_refused(encoder, keywords, told):
    for encode in (encoder.encode, encoder.encode_query, encoder.encode_document):
        with pytest.raises(SentembError, match=told) as caught:
            encode(TEXTS, **keywords)
        assert len(str(caught.value)) <= 300


def test_tensors_need_torch(encoder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SentembError, match=r"convert_to_tensor .*sentemb\[sentence-transformers\]"):
        encoder.encode(TEXTS, convert_to_tensor=True)
    with pytest.raises(SentembError, match="convert_to_numpy=False needs torch"):
        encoder.encode(TEXTS, convert_to_numpy=False)


def test_importing_the_package_loads_neither_torch_nor_click():
    code = (
        "import sys, sentemb; sentemb.SentenceEncoder; import sentemb.bridges.export.targets;"
        "print({'torch', 'sentence_transformers', 'click'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


# -- precision -------------------------------------------------------------------------------------


def test_bytes_cut_the_range_of_each_column_into_steps():
    vectors = np.array([[0, 5, -255], [255, 5, 255], [127.9, 5, 0], [1, 5, 252.5]], np.float32)
    # The steps of the last column are 2; the second column has no range.
    expected = np.array([[0, 0, 0], [255, 0, 255], [127, 0, 127], [1, 0, 253]])
    found = in_precision(np.tile(vectors, (25, 1)), "uint8")
    assert found.dtype == np.uint8 and np.array_equal(found[:4], expected)
    signed = in_precision(np.tile(vectors, (25, 1)), "int8")
    assert signed.dtype == np.int8 and np.array_equal(signed[:4], expected - 128)


def test_bits_say_which_numbers_are_positive():
    vectors = np.array([[1, -1, 0, 2, 0, 0, 0, 3, 4], [-1] * 9])
    assert in_precision(vectors, "ubinary").tolist() == [[0b10010001, 0b10000000], [0, 0]]
    assert in_precision(vectors, "binary").tolist() == [[17, 0], [-128, -128]]


def test_precisions_of_encode(encoder):
    whole = encoder.encode(TEXTS)
    assert np.array_equal(encoder.encode(TEXTS, precision="float16"), whole.astype(np.float16))
    for precision, dtype, width in [("int8", "int8", 8), ("ubinary", "uint8", 1)]:
        several = encoder.encode(TEXTS, precision=precision)
        assert several.dtype == dtype and several.shape == (len(TEXTS), width)
        assert np.array_equal(several, in_precision(whole, precision))
        nothing = encoder.encode([], precision=precision)
        assert nothing.dtype == dtype and nothing.shape == (0, width)
    one = encoder.encode(TEXTS[0], precision="binary")
    assert np.array_equal(one, in_precision(whole[:1], "binary")[0])
    with pytest.raises(SentembError, match="this call has one text"):
        encoder.encode("paris", precision="int8")


def test_few_texts_are_a_poor_scale(encoder):
    with pytest.warns(UserWarning, match="only 5") as caught:
        encoder.encode(TEXTS, precision="int8")
    assert {one.filename for one in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.encode(["paris hotel", "rome"] * 50, precision="int8")


def test_a_model_of_doubles_keeps_its_precision_unless_asked(encoder):
    doubles = encoder.astype("float64")
    assert doubles.encode(TEXTS).dtype == np.float64
    assert doubles.encode(TEXTS, precision="float32").dtype == np.float32


# -- other kinds of models -------------------------------------------------------------------------


def test_averages_and_sif_take_the_keywords(encoder):
    other = made_up_model(("bag", {}), TEXTS, cells=4, dtype=np.float32)
    average = SentenceEncoder.average([encoder, other])
    words = WordVectors(["paris", "hotel", "rome"], np.eye(3, dtype=np.float32) + 1)
    sif = SIF(words, components=0).fit(["paris hotel"], ["hotel rome"], threads=1)
    for model in (average, sif):
        assert model.get_embedding_dimension() == model.dim
        kept = model.encode(TEXTS, truncate_dim=2, batch_size=1, task="document")
        assert np.array_equal(kept, model.encode_document(TEXTS)[:, :2])


def test_what_sentence_transformers_asks_a_model(encoder):
    assert (encoder.similarity_fn_name, encoder.max_seq_length, encoder.device) == (
        "cosine",
        None,
        "cpu",
    )
    assert encoder.get_sentence_embedding_dimension() == encoder.dim == 8
    assert encoder.to("cpu").eval() is encoder
    encoder.max_seq_length = None
    with pytest.raises(SentembError, match="reads texts as a whole"):
        encoder.max_seq_length = 128
    with pytest.raises(SentembError, match="computes on the cpu"):
        encoder.to("cuda")


# -- progress --------------------------------------------------------------------------------------


class _Screen(io.StringIO):
    def __init__(self, is_terminal):
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self):
        return self._is_terminal


def shown(encoder, monkeypatch, show, is_terminal, seconds_per_look=0.0, texts=TEXTS * 1800):
    """What standard error shows; the clock advances whenever it is looked at."""
    screen, now = _Screen(is_terminal), [0.0]

    def look():
        now[0] += seconds_per_look
        return now[0]

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", screen)
        patch.setattr(time, "monotonic", look)
        encoder.encode(texts, show_progress_bar=show)
    return screen.getvalue()


def test_progress_is_shown_where_it_is_asked_for(encoder, monkeypatch):
    assert shown(encoder, monkeypatch, True, False) == "9,000 texts, 0.0 seconds\n"
    assert shown(encoder, monkeypatch, True, False, texts=TEXTS) == "5 texts, 0.0 seconds\n"
    slow = shown(encoder, monkeypatch, True, False, 20.0)
    assert slow.startswith("8,192 of 9,000 texts\n9,000 of 9,000 texts\n")
    redrawn = shown(encoder, monkeypatch, True, True, 20.0)
    assert "\r\x1b[K8,192 of 9,000 texts\r\x1b[K9,000 of" in redrawn
    assert redrawn.rstrip().endswith("seconds")


def test_nobody_sees_progress_without_asking_but_on_a_terminal(encoder, monkeypatch):
    assert shown(encoder, monkeypatch, None, False, 20.0) == ""
    assert shown(encoder, monkeypatch, None, True) == ""
    assert shown(encoder, monkeypatch, None, True, 20.0, texts=TEXTS) == ""
    assert shown(encoder, monkeypatch, False, True, 20.0) == ""
    long = shown(encoder, monkeypatch, None, True, 20.0)
    assert "8,192 of 9,000" in long and long.endswith("\r\x1b[K")
