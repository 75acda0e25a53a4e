"""An embedding as a part of a ranking: fitted, stored, found again; ONNX files."""

import json
import pickle
import re
import shutil
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import WordSums, list_again, write_any_tensors
from tiny_transformer import as_onnx, write_onnx, write_transformer

from sentemb import Index, SentembError, fit_ranker, load_ranker
from sentemb.bridges.server.app import create_app
from sentemb.cli import main
from sentemb.data.click_log import ClickLog, write_click_log
from sentemb.models.files.tensor_files import open_tensors
from sentemb.models.onnx_embedding import OnnxEmbedding
from sentemb.retrieval.similarity import unit_rows
from sentemb.search.index_tuning import serve_clicks, tune
from sentemb.search.ranking import embedding as module
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.sharded_index import ShardedIndex


class Knowing:
    """It knows which title each query wants, by the last word of both."""

    def __init__(self, dim=32):
        self.dim, self.asked, self.read = dim, 0, 0

    def encode_query(self, texts):
        self.asked += len(texts)
        return self._vectors(texts)

    def encode_document(self, texts):
        self.read += len(texts)
        return self._vectors(texts)

    def _vectors(self, texts):
        words = [list(text.lower().split()[-1].encode()) for text in texts]
        return [np.random.default_rng(word).standard_normal(self.dim) for word in words]


@pytest.fixture(scope="module")
def bag(make_model):
    return make_model("bag")


@pytest.fixture(scope="module")
def log():
    """Queries that have nothing in common with their titles but the last word."""
    pairs = [(f"red tub k{n % 40}", f"repair a bath k{n % 40}") for n in range(40)]
    pairs += [(f"fix {n} k{n % 40}", f"repair a bath k{n % 40}") for n in range(120)]
    return ClickLog.from_pairs(pairs)


@pytest.fixture(scope="module")
def dev():
    return ClickLog.from_pairs([(f"hotels {n} k{n}", f"repair a bath k{n}") for n in range(40)])


@pytest.fixture(scope="module")
def fitted(bag, log, dev):
    return fit_ranker(bag, log, dev, embedding=Knowing(), threads=1)


def run(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


# -- the fit ----------------------------------------------------------------------------------


def test_an_embedding_gets_the_weight_that_it_is_worth(bag, log, dev, fitted):
    without = fit_ranker(bag, log, dev, threads=1)
    assert "embedding" not in without.recipe.weights and without.embedding is None
    assert fitted.recipe.weight("embedding") > 1
    figures = fitted.dev["figures"]
    assert figures["embedding"]["hit@1"] == 1 and figures["sum"]["hit@1"] > 0.95
    (share,) = [each for each in fitted.explain("red k3", "a k3") if each.part == "embedding"]
    assert share.value == pytest.approx(1, abs=0.02) and "embedding" in str(fitted.recipe)
    assert "embedding alone" in fitted.parts_alone()


def test_a_useless_embedding_does_not_count_against_titles(bag, log, dev):
    class Opposite(Knowing):
        def encode_query(self, texts):
            return -np.array(super().encode_query(texts))

    ranker = fit_ranker(bag, log, dev, embedding=Opposite(), threads=1)
    assert ranker.recipe.weight("embedding") >= 0


def test_each_query_is_asked_for_once_and_alone(bag, log, dev):
    class Alone(Knowing):
        def encode_query(self, texts):
            assert len(texts) == 1
            return super().encode_query(texts)

    asked = Alone()
    fit_ranker(bag, log, dev, embedding=asked, threads=1)
    n_titles = len({*log.titles, *dev.titles})
    # The probe, dev queries, and the random letters of the floor.
    assert len(dev.queries) < asked.asked <= len(dev.queries) + 301
    assert asked.read == n_titles


def test_kept_queries_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "_KEPT", 3)
    made = Embedding.of(WordSums())
    texts = [f"word{n}" for n in range(10)]
    again = np.concatenate([made.queries([text]) for text in texts])
    assert np.array_equal(made.queries(texts), again) and len(made._queries) <= 3
    assert np.allclose(np.linalg.norm(again, axis=1), 1)
    assert not made.queries(["", " ?! "]).any() and not made.titles(["..."]).scales.any()


def test_titles_are_read_in_portions(monkeypatch):
    monkeypatch.setattr(module, "_TITLES", 4)
    texts, steps = ["red hat", "...", *(f"bag {n}" for n in range(9))], []
    rows = Embedding.of(WordSums()).titles(texts, lambda *step: steps.append(step))
    whole = Embedding.of(WordSums(seed=0)).titles(texts[:4])
    assert np.array_equal(rows.codes[:4], whole.codes) and not rows.scales[1]
    assert steps == [(4, 11), (8, 11), (11, 11)]


@pytest.mark.parametrize("wrong", [3, None, object(), ["a"], ""])
def test_what_is_not_an_embedding_is_refused(wrong):
    with pytest.raises(SentembError, match="is not an embedding; give a name, or an object with"):
        Embedding.of(wrong)


@pytest.mark.parametrize(
    "vectors", [np.ones(3), np.ones((2, 3)), [[np.nan, 1]], np.ones((1, 2, 3))]
)
def test_wrong_vectors_are_refused(vectors):
    wrong = Knowing()
    wrong.encode_query = lambda texts: vectors
    with pytest.raises(SentembError, match="must give a finite vector for each text"):
        Embedding.of(wrong)


# -- files ------------------------------------------------------------------------------------


@pytest.fixture
def folder(bag, fitted, tmp_path):
    bag.save_pretrained(tmp_path / "model")
    fitted.save(tmp_path / "model")
    return tmp_path / "model"


def test_an_object_has_to_be_given_again(folder, fitted):
    opened = load_ranker(folder)
    queries, titles = ["hotels k3", "red k9"], ["a k3", "red tub", "b k9"]
    with pytest.raises(SentembError, match=r"give it again with ranker\.embedding\.use"):
        opened.over(titles).find(queries, 2)
    with pytest.raises(SentembError, match="is not the one that the ranker was fitted with"):
        opened.embedding.use(WordSums(dim=32))
    with pytest.raises(SentembError, match="is not the one"):
        opened.embedding.use(Knowing(dim=8))
    opened.embedding.use(Knowing())
    found, expected = (one.over(titles).find(queries, 3) for one in (opened, fitted))
    assert all(map(np.array_equal, found, expected))
    again = pickle.loads(pickle.dumps(opened.over(titles)))
    assert all(map(np.array_equal, again.find(queries, 3), expected))


@pytest.mark.parametrize(
    ("description", "tensor"),
    [
        ({"embedding": 3}, None),
        ({"embedding": None}, None),
        ({}, lambda probe: probe * 2),
        ({}, lambda probe: probe.astype(np.float64)),
        ({}, lambda probe: probe[None]),
        ({}, lambda probe: probe + np.float32(np.nan)),
        ({}, lambda probe: probe[:0]),
    ],
)
def test_a_damaged_embedding_is_refused(folder, description, tensor):
    path = folder / "ranker/ranker.safetensors"
    with open_tensors(path) as file:
        tensors = {name: np.array(values) for name, values in file.checked()}
        told = file.metadata | description
    if tensor is not None:
        tensors["embedding_probe"] = tensor(tensors["embedding_probe"])
    write_any_tensors(path, tensors, told)
    with pytest.raises(SentembError, match=r"the ranker is damaged.*embedding") as caught:
        load_ranker(folder)
    assert "\n" not in str(caught.value)


def test_an_index_encodes_a_title_once(fitted, log, dev, tmp_path):
    titles = list(dict.fromkeys([*log.titles, *dev.titles]))
    known = Knowing()
    fitted.embedding.use(known)
    known.asked = known.read = 0
    index = Index.build(fitted, titles, threads=1)
    assert known.read in (0, len(titles))  # the fit may have read the same ones
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", 1)
    again = Knowing()
    opened.ranker.embedding.use(again)
    serve_clicks(opened, opened.ranker.clicks)
    tune(opened, dev, log)
    assert again.read == 0 and opened.recipe.weight("embedding") > 0
    opened.add(["one more k3"], ["new"])
    assert again.read == 1
    assert {hit.id for hit in opened.search("whatever k3", 2)} >= {"new"}
    tune(opened, dev, log, embedding=WordSums())
    assert opened.ranker.embedding.dim == 10


def test_indexes_with_other_embeddings_are_not_searched_together(bag, log, dev):
    rankers = [fit_ranker(bag, log, dev, embedding=each, threads=1) for each in made_two()]
    titles = [["a k3", "b k4"], ["c k5"]]
    same = [Index.build(rankers[0], texts, [t.split()[1] for t in texts]) for texts in titles]
    assert ShardedIndex(dict(zip("ab", same, strict=True))).search("red k5", 1)[0].title == "c k5"
    other = same[1].ranked_by(rankers[0].serving(rankers[0].clicks))
    other.ranker.embedding = rankers[1].embedding
    same[1].adopt(other, same[1].snapshot)
    with pytest.raises(SentembError, match="another ranker"):
        ShardedIndex(dict(zip("ab", same, strict=True)))


def made_two():
    class Other(Knowing):
        def _vectors(self, texts):
            return -np.array(super()._vectors(texts))

    return Knowing(), Other()


@pytest.mark.parametrize("name", ["codes", "scales"])
def test_damaged_vectors_are_refused(fitted, tmp_path, name):
    Index.build(fitted, ["a k3", "b k4", "c k5"], threads=1).save(tmp_path / "index")
    file = tmp_path / f"index/embedding/{name}.npy"
    whole = np.load(file)
    for wrong in (whole[1:], whole[:, :-1] if whole.ndim == 2 else whole * 200):
        np.save(file, wrong)
        list_again(tmp_path / "index")
        with pytest.raises(SentembError, match=r"the index is damaged"):
            Index.open(tmp_path / "index")


# -- commands ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shop(bag, fitted, log, dev, tmp_path_factory):
    """A model with its log, held-out clicks, titles and an ONNX file."""
    place = tmp_path_factory.mktemp("embedding")
    bag.save_pretrained(place / "model")
    write_click_log(log, place / "pairs.tsv")
    write_click_log(dev, place / "dev.tsv")
    titles = [f"t{n}\t{title}\n" for n, title in enumerate(dict.fromkeys(log.titles))]
    (place / "titles.tsv").write_text("".join(titles))
    write_onnx(place / "small", [*log.queries, *log.titles])
    tune = "tune", place / "model", place / "dev.tsv", "--log", place / "pairs.tsv"
    told = run(*tune, "--embedding", place / "small/onnx/model.onnx").stdout
    assert "embedding" in told and "another embedding" in told
    run("index", place / "model", place / "titles.tsv", "-o", place / "index")
    return place


def test_every_command_gives_a_pair_the_same_score(shop):
    query = "hotels k3"
    hits = json.loads(run("search", shop / "index", query, "-k", 3, "--json").stdout)["titles"]
    assert "embedding" in hits[0]["parts"]
    arguments = "--query", query, shop / "titles.tsv", "--json", "-k", 3
    ranked = json.loads(run("rank", shop / "model", *arguments).stdout.splitlines()[0])
    assert {hit["id"]: hit["score"] for hit in ranked["titles"]} == pytest.approx(
        {hit["id"]: hit["score"] for hit in hits}
    )
    explained = run("explain", shop / "index", query, hits[0]["id"], "--json").stdout
    assert f'"score": {hits[0]["score"]}' in explained
    (told,) = re.findall("^embedding +(/.*)$", run("info", shop / "index").stdout, re.M)
    assert told == str(shop / "small/onnx/model.onnx")
    held_out = "evaluate", shop / "model", shop / "dev.tsv", "--catalogue", shop / "titles.tsv"
    assert "embedding alone" in run(*held_out).stdout


def test_a_missing_embedding_is_named(shop, tmp_path, monkeypatch):
    shutil.copytree(shop, tmp_path / "shop", symlinks=True)
    path = shop / "small/onnx/model.onnx"
    path.rename(shop / "away")
    try:
        refused = run("search", shop / "index", "hotels", code=1).stderr
        assert f"{path}: the embedding of the ranker is missing; put it back" in refused
        assert run("search", shop / "index", "hotels k3", "--cosine").stdout
        assert run("info", shop / "index").stdout
        with pytest.raises(SentembError, match="is missing"):
            create_app(Index.open(shop / "index"))
    finally:
        (shop / "away").rename(path)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    refused = run("search", shop / "index", "hotels", code=1).stderr
    assert "needs onnxruntime, which is not installed; pip install 'sentemb[embedding]'" in refused
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    tune = "tune", shop / "model", shop / "dev.tsv", "--log", shop / "pairs.tsv", "--dry-run"
    refused = run(*tune, "--embedding", "some/name", code=1).stderr
    assert "pip install 'sentemb[sentence-transformers]'" in refused
    refused = run(*tune, "--embedding", tmp_path / "none.onnx", code=1).stderr
    assert f"{tmp_path}/none.onnx: not found; check the path" in refused


def test_another_file_in_the_place_of_the_embedding_is_refused(shop, log):
    path = shop / "small/onnx/model.onnx"
    whole = path.read_bytes()
    shutil.rmtree(shop / "small")
    write_onnx(shop / "small", [*log.queries, *log.titles], seed=1)
    try:
        refused = run("search", shop / "index", "hotels", code=1).stderr
        assert "is not the one that the ranker was fitted with" in refused
    finally:
        path.write_bytes(whole)


def test_exports_say_that_the_embedding_is_left_out(shop, tmp_path):
    index = Index.open(shop / "index")
    for to, said in (
        ("page", "the embedding is left out, because a browser cannot run it"),
        ("elasticsearch", "the embedding is left out, though the weights were fitted with it"),
    ):
        told = run("export", shop / "index", "-o", tmp_path / to, "--to", to).stderr
        assert said in told
    weights = index.recipe.weights
    assert '"part":"embedding"' not in (tmp_path / "page").read_text()
    assert weights["embedding"] > 0


# -- ONNX -------------------------------------------------------------------------------------

TEXTS = [
    "red hat",
    "blue bag of cotton",
    "large woollen coat",
    "green",
    "nowhere known",
    "red " * 30,
]


def test_tokens_are_averaged_without_padding(tmp_path):
    made = OnnxEmbedding(write_onnx(tmp_path, TEXTS))
    together = made.encode_document(TEXTS)
    alone = np.concatenate([made.encode_query([text]) for text in TEXTS])
    assert together.shape == (6, 16) and np.allclose(together, alone, atol=1e-6)
    hat, red = (made.encode_query([text])[0] for text in ("hat", "red"))
    marks = made.encode_query([""])[0]
    # The mean over [CLS], the words and [SEP].
    assert np.allclose(made.encode_query(["red hat"])[0] * 4, 3 * hat + 3 * red - 2 * marks)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pooling", "prompts"), [("mean", None), ("cls", {"query": "red ", "document": "large "})]
)
def test_vectors_are_those_of_sentence_transformers(tmp_path, pooling, prompts):
    model = write_transformer(tmp_path, TEXTS, pooling, prompts)
    made = OnnxEmbedding(as_onnx(model, tmp_path))
    for name in ("encode_query", "encode_document"):
        found = unit_rows(getattr(made, name)(TEXTS))
        np.testing.assert_allclose(found, getattr(model, name)(TEXTS), atol=1e-6)
    opened = Embedding.of(tmp_path)
    assert opened.is_like(Embedding.of(tmp_path / "model.onnx"))
    assert np.allclose(opened.queries(TEXTS), model.encode_query(TEXTS), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "tokens are pooled by max"),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "pooled by lasttoken"),
        ("modules.json", [{"type": "sentence_transformers.models.Dense"}], "has the layer .*Dense"),
        ("modules.json", "{", "cannot be read"),
        ("tokenizer.json", "{", "cannot be opened"),
        ("onnx/model.onnx", "x", "cannot be opened"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, name, content, said):
    path = write_onnx(tmp_path, TEXTS)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / name).write_text(text)
    with pytest.raises(SentembError, match=said) as caught:
        Embedding.of(path)
    assert "\n" not in str(caught.value)


def test_settings_next_to_the_tokeniser_count(tmp_path):
    path = write_onnx(tmp_path, TEXTS)
    plain = OnnxEmbedding(path).encode_query(["red hat"])
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 3}')
    cut = OnnxEmbedding(path).encode_query(["red hat"])
    assert np.allclose(cut, OnnxEmbedding(path).encode_query(["red"])) and not np.allclose(
        cut, plain
    )
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 1e30}')
    assert np.array_equal(OnnxEmbedding(path).encode_query(["red hat"]), plain)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling/config.json").write_text('{"pooling_mode_cls_token": true}')
    first = OnnxEmbedding(path).encode_query(["red hat", "green"])
    assert np.array_equal(first[0], first[1])  # a token alone says nothing of the words here


@pytest.mark.parametrize(
    ("missing", "said"),
    [("tokenizer.json", "tokenizer.json is missing next"), ("onnx/model.onnx", "no such file")],
)
def test_a_file_that_is_missing_is_named(tmp_path, missing, said):
    path = write_onnx(tmp_path, TEXTS)
    (tmp_path / missing).unlink()
    with pytest.raises(SentembError, match=said):
        OnnxEmbedding(path)
