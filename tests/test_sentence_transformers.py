"""Our models inside sentence-transformers: the same vectors, both towers, its own evaluator."""

import copy
import importlib
import json
import multiprocessing
import os
import pickle
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import made_up_log, made_up_model, made_up_pair_model

from sentemb import Index, SentembError, SentenceEncoder, train
from sentemb.bridges.export.targets import export
from sentemb.evaluation.held_out import evaluate_clicks
from sentemb.models.files.sentence_transformers_files import MODULE_CLASS, MODULES, SETTINGS
from sentemb.retrieval.nearest import TitleVectors

TEXTS = [
    "paris hotel",
    "hotel in rome",
    "",
    "日本 語 é",
    "\U0001f600",
    "q" * 300,
    "Hotel\nin  rome",
]
TLDR = Path(__file__).parents[2] / "shared/data/tldr"
REASON = "sentence-transformers is optional and takes seconds to import"


@pytest.fixture(scope="module")
def st():
    """The package, told not to ask a hub."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield pytest.importorskip("sentence_transformers", reason=REASON)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def encoder_of(variant=("lstm", {"bag_dim": 3}), texts=TEXTS, **settings):
    return made_up_model(variant, [text for text in texts if text], dtype=np.float32, **settings)


def opened(st, folder, **settings):
    return st.SentenceTransformer(str(folder), trust_remote_code=True, device="cpu", **settings)


# -- files: without sentence-transformers ----------------------------------------------------------


def test_every_new_folder_of_two_towers_names_the_module(tmp_path):
    encoder = encoder_of()
    encoder.save_pretrained(tmp_path / "model")
    Index.build(encoder, ["paris hotel"]).save(tmp_path / "index")
    for folder in (tmp_path / "model", tmp_path / "index/model"):
        (module,) = json.loads((folder / MODULES).read_text())
        assert module["type"] == MODULE_CLASS and module["path"] == ""
        assert json.loads((folder / SETTINGS).read_text())["similarity_fn_name"] == "cosine"


def test_a_pair_model_has_no_vectors_and_so_no_module(tmp_path):
    encoder_of().save_pretrained(tmp_path / "model")
    made_up_pair_model(TEXTS[:2]).save_pretrained(tmp_path / "model", force=True)
    names = set(os.listdir(tmp_path / "model"))
    assert "model.safetensors" in names and not names & {MODULES, SETTINGS}


def test_a_folder_of_an_earlier_version_is_exported(tmp_path):
    encoder = encoder_of()
    encoder.save_pretrained(tmp_path / "old")
    for name in (MODULES, SETTINGS):
        (tmp_path / "old" / name).unlink()
    old = SentenceEncoder(tmp_path / "old")
    done = export(old, tmp_path / "new", "sentence-transformers")
    assert {path.name for path in done.files} == set(os.listdir(tmp_path / "new"))
    assert {MODULES, SETTINGS} <= {path.name for path in done.files}
    tensors = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("old", "new")]
    assert tensors[0] == tensors[1]
    with pytest.raises(SentembError, match="a model is there already"):
        export(old, tmp_path / "new", "sentence-transformers")
    export(old, tmp_path / "new", "sentence-transformers", force=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("mine")
    with pytest.raises(SentembError, match="holds other files"):
        export(old, tmp_path / "mine", "sentence-transformers", force=True)
    index = Index.build(old, ["paris hotel"])
    export(index, tmp_path / "of index", "sentence-transformers")
    assert (tmp_path / "of index/model.safetensors").read_bytes() == tensors[0]


@pytest.mark.parametrize("missing", ["torch", "sentence_transformers.base.modules"])
def test_without_the_package_the_module_says_what_to_install(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    if missing != "torch":
        monkeypatch.setitem(sys.modules, "torch", sys)  # anything that can be imported
    name, _, _ = MODULE_CLASS.rpartition(".")
    monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(SentembError, match=r"pip install 'sentemb\[sentence-transformers\]'"):
        importlib.import_module(name)


# -- in the package --------------------------------------------------------------------------------


def judged_by_both(st, folder, model, queries, titles, relevant, log):
    """Figures of the evaluator of sentence-transformers, and ours."""
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator

    evaluator = InformationRetrievalEvaluator(
        dict(enumerate(queries)), dict(enumerate(titles)), relevant, write_csv=False, name="x"
    )
    theirs = evaluator(opened(st, folder))
    metrics = ("hit@1", "mrr@10", "recall@10", "ndcg@10")
    ours = evaluate_clicks(TitleVectors(model, titles), log, titles, metrics).mean
    names = ("accuracy@1", "mrr@10", "recall@10", "ndcg@10")
    return [theirs[f"x_cosine_{name}"] for name in names], ours


def judged_by_clicks(log):
    """Queries, titles and for each query the places of its clicked titles."""
    pairs = list(zip(log.query_index.tolist(), log.title_index.tolist(), strict=True))
    relevant = {query: {title for q, title in pairs if q == query} for query, _ in pairs}
    return log.queries, log.titles, relevant


def test_a_model_folder_opens_there(st, tmp_path):
    """One long test: whatever imports sentence-transformers takes seconds before it begins."""
    log = made_up_log(n_pairs=80)
    encoder = encoder_of(texts=[*TEXTS, *log.queries, *log.titles], cells=16)
    encoder.save_pretrained(tmp_path / "model")
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        st.SentenceTransformer(str(tmp_path / "model"))
    model = opened(st, tmp_path / "model")
    texts = TEXTS * 9  # more than one of its batches
    query, title = encoder.encode_query(texts), encoder.encode_document(texts)
    assert not np.array_equal(query, title)
    # Both towers, to the bit.
    for found in (
        model.encode(texts),
        model.encode_query(texts),
        model.encode(texts, task="query"),
        model.encode(texts, prompt_name="query"),
        model.encode(texts, batch_size=1),
    ):
        assert np.array_equal(found, query) and found.dtype == np.float32
    for found in (
        model.encode_document(texts),
        model.encode(texts, task="document"),
        model.encode(texts, prompt_name="document"),
        model.encode_document(texts, convert_to_tensor=True).numpy(),
    ):
        assert np.array_equal(found, title)
    assert np.array_equal(model.encode_document("paris hotel"), title[0])
    assert not model.encode([""]).any()
    assert model.get_embedding_dimension() == encoder.dim and model.max_seq_length is None
    # Precision is the same here and there.
    for precision in ("int8", "uint8", "binary", "ubinary"):
        theirs = model.encode_document(texts, precision=precision)
        ours = encoder.encode_document(texts, precision=precision)
        assert np.array_equal(theirs, ours) and theirs.dtype == ours.dtype
    both = [one.encode(texts, convert_to_numpy=False) for one in (model, encoder)]
    assert all(map(lambda a, b: a.equal(b), *both)) and len(both[0]) == len(texts)
    # What has no answer is refused, and never answered with the other tower.
    for keywords, told in (
        ({"task": "clustering"}, "task must be query or document"),
        ({"prompt": "query: "}, "has no prompts"),
        ({"task": "query", "prompt_name": "document"}, "different towers"),
    ):
        with pytest.raises(SentembError, match=told):
            model.encode(texts, **keywords)
    for wrong in (["paris", None], ["paris", 3], [{"text": "paris"}], [("paris", "rome")], [1.5]):
        with pytest.raises((SentembError, ValueError)):
            model.encode(wrong)
    with pytest.raises(SentembError, match="reads texts as a whole"):
        model.max_seq_length = 128
    # Saved and opened again, and opened by us.
    model.truncate_dim = 5
    model.save_pretrained(str(tmp_path / "again"))
    again = opened(st, tmp_path / "again", model_kwargs={"threads": 1})
    assert np.array_equal(again.encode_document(texts), title[:, :5])
    assert np.array_equal(SentenceEncoder(tmp_path / "again").encode_document(texts), title)
    model.truncate_dim = None
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(copied.encode_document(texts), title)
    # Its scores and its evaluator agree with ours.
    scores = model.similarity(query[:5], title[:7]).numpy()
    np.testing.assert_allclose(scores, encoder.similarity(query[:5], title[:7]), atol=1e-6)
    (found, *_) = st.util.semantic_search(query[:1], title[:7], top_k=1)
    assert found[0]["corpus_id"] == scores[0].argmax()
    judged = judged_by_clicks(log)
    theirs, ours = judged_by_both(st, tmp_path / "model", encoder, *judged, log)
    assert theirs == pytest.approx(ours, abs=1e-12) and 0 < min(theirs) < max(theirs) < 1


@pytest.mark.slow
@pytest.mark.parametrize("variant", [("bilstm", {}), ("dssm", {"hidden": 7}), ("bag", {})])
@pytest.mark.parametrize("shared", [False, True])
def test_every_kind_of_model_opens_there(st, tmp_path, variant, shared):
    encoder = encoder_of(variant, shared=shared)
    encoder.save_pretrained(tmp_path / "model")
    model = opened(st, tmp_path / "model")
    for task in ("query", "document"):
        assert np.array_equal(model.encode(TEXTS, task=task), encoder.encode(TEXTS, task=task))


@pytest.mark.slow
def test_averages_and_doubles_open_there(st, tmp_path):
    average = SentenceEncoder.average([encoder_of(seed=seed) for seed in (0, 1)])
    for number, encoder in enumerate((average, encoder_of().astype("float64"))):
        encoder.save_pretrained(tmp_path / f"{number}")
        found = opened(st, tmp_path / f"{number}").encode_document(TEXTS)
        assert (
            np.array_equal(found, encoder.encode_document(TEXTS)) and found.dtype == encoder.dtype
        )


@pytest.mark.slow
def test_processes_forks_and_threads(st, tmp_path):
    encoder = encoder_of()
    encoder.save_pretrained(tmp_path / "model")
    model = opened(st, tmp_path / "model")
    texts = TEXTS * 30
    expected = encoder.encode_document(texts)
    assert np.array_equal(model.encode_document(texts, device=["cpu", "cpu"]), expected)
    pool = model.start_multi_process_pool(["cpu"])
    try:
        assert np.array_equal(model.encode_document(texts, pool=pool), expected)
    finally:
        model.stop_multi_process_pool(pool)
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    child = fork.Process(target=lambda: answers.put(model.encode_document(texts)))
    child.start()
    assert np.array_equal(answers.get(timeout=60), expected)
    child.join(60)
    found = [None] * 4

    def encode(number):
        found[number] = model.encode_document(texts)

    threads = [threading.Thread(target=encode, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(one, expected) for one in found)


@pytest.mark.slow
def test_layers_on_top_are_trained_and_the_model_is_not(st, tmp_path):
    torch = pytest.importorskip("torch", reason=REASON)
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from sentemb.bridges.sentence_transformers import SentembModule

    encoder = encoder_of()
    alone = st.SentenceTransformer(modules=[SentembModule(encoder)], device="cpu")
    assert np.array_equal(
        alone.encode(TEXTS, prompt_name="document"), encoder.encode_document(TEXTS)
    )
    assert not list(alone.parameters())
    model = st.SentenceTransformer(
        modules=[SentembModule(encoder), Dense(encoder.dim, 4)], device="cpu"
    )
    before = encoder.encode(TEXTS)
    loss = MultipleNegativesRankingLoss(model)
    optimiser = torch.optim.Adam(model.parameters(), 0.05)
    losses = []
    for _ in range(20):
        features = [model.preprocess(TEXTS[:2], task=task) for task in ("query", "document")]
        value = loss(features, None)
        value.backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(value.item())
    assert losses[-1] < losses[0] and np.array_equal(encoder.encode(TEXTS), before)
    model.save_pretrained(str(tmp_path / "model"))
    again = opened(st, tmp_path / "model")
    assert np.array_equal(again.encode_document(TEXTS), model.encode_document(TEXTS))


@pytest.mark.slow
def test_the_evaluator_agrees_on_a_real_set(st, tmp_path):
    if not TLDR.is_dir():
        pytest.skip("needs ../shared/data/tldr")
    from sentemb.data.click_log import ClickLogBuilder
    from sentemb.data.judged_set import read_judged_set

    model = train(TLDR / "pairs.tsv", epochs=1, hard_negatives=0, cells=32)
    model.save_pretrained(tmp_path / "model")
    judged = read_judged_set(TLDR / "test")
    # Ours counts titles of equal text once.
    titles = list(dict.fromkeys(judged.titles))
    place_of = {title: place for place, title in enumerate(titles)}
    builder, relevant = ClickLogBuilder(), {}
    for query, text in enumerate(judged.queries):
        span = slice(*judged.offsets[query : query + 2])
        clicked = judged.title_index[span][judged.grade[span] > 0]
        relevant[query] = {place_of[judged.titles[title]] for title in clicked}
        for title in relevant[query]:
            builder.add(text, titles[title], 1)
    log = builder.build()
    theirs, ours = judged_by_both(
        st, tmp_path / "model", model, judged.queries, titles, relevant, log
    )
    # A few titles have equal vectors, and no order.
    assert theirs == pytest.approx(ours, abs=1e-3) and min(theirs) > 0.05
