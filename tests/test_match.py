"""`sentemb plot-match`: the shares are exact, the figure shows them, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import naive_pairs
import numpy as np
import pytest
from click.testing import CliRunner

from sentemb import PairScorer, SentembError
from sentemb.analysis.figures.drawing import save_figure
from sentemb.analysis.figures.match_figure import match_figure
from sentemb.analysis.pair_effects import match
from sentemb.cli import main
from sentemb.models.pairs import PAIR_MODELS, make_pair_model
from sentemb.text.vocabulary import Vocabulary

QUERY, TITLE = "hotels in old shanghai", "Cheap rooms and resorts near the bund unread"
WORDS = [*QUERY.split(), *TITLE.lower().split()]
ARC2 = [
    {"maps": (5, 4), "max_words": 7},  # as long as the longer text: the last windows are missing
    {"maps": (4, 3, 5), "max_words": 15, "gate": "printed"},
    {"maps": (6,), "max_words": 7, "gate": "printed"},
    {"maps": (6,), "max_words": 9, "window": 2, "mlp_layers": 2},
]


def scorer_of(name, seed=0, dtype=np.float64, **settings):
    """A model whose features are whole words, with random biases."""
    vocabulary = Vocabulary([], WORDS)
    model = make_pair_model(name, **{"mlp": 5, "max_words": 7, **settings})
    rng = np.random.default_rng(seed)
    weights = model.initialise(len(vocabulary), rng, dtype)
    for array_name, array in weights.items():
        if "bias" in array_name:
            array[...] = 0.3 * rng.standard_normal(array.shape)
    return PairScorer(model, vocabulary, weights, threads=1)


def twin_of(scorer):
    """Its parameters as the naive twin calls them."""
    named = scorer.parameters()
    layers = scorer.model.mlp_layers
    own = {"Ws": named["w"][None], "bs": named["c"]}
    for k in range(1, layers + 1):
        own |= {f"Wm{k}": named[f"M{k}"], f"bm{k}": named[f"c{k}"]}
    return named | own


@pytest.fixture(scope="module", params=ARC2, ids=str)
def arc2(request):
    scorer = scorer_of("arc2", **request.param)
    return scorer, match(scorer, QUERY, TITLE)


@pytest.mark.parametrize("name", PAIR_MODELS)
def test_shares_of_words_are_derivatives_and_add_up(name):
    settings = {
        "arc1": {"maps": (4, 3)}, "arc2": {"maps": (4, 3)}, "senna": {"maps": (4,)},
        "urae": {"cells": 3}, "deepmatch": {"nodes": 10},
    }  # fmt: skip
    scorer = scorer_of(name, **settings.get(name, {}))
    found = match(scorer, QUERY, TITLE)
    assert found.score == scorer.score(QUERY, TITLE)
    # tanh layers and products of both texts leave a rest.
    assert (abs(found.rest) < 1e-12) == (name not in ("urae", "deepmatch"))
    assert (found.cells is not None) == (name == "arc2")
    assert found.texts["title"].n_cut == 1 and found.texts["query"].n_cut == 0
    # The topics of a word, which come first, are names and not numbers.
    first = len(scorer.parameters()["W"]) // 6 if name == "deepmatch" else 0
    table, h = scorer.parameters()["W"][first:], 1e-6
    for text in found.texts.values():
        for word, share in zip(text.words, text.shares, strict=True):
            column = table[:, WORDS.index(word)]
            vector, scores = column.copy(), []
            for scale in (1 + h, 1 - h):
                column[:] = scale * vector
                scores.append(scorer.score(QUERY, TITLE))
            column[:] = vector
            assert share == pytest.approx((scores[0] - scores[1]) / (2 * h), rel=1e-6, abs=1e-8)


def test_cells_add_up_to_the_score(arc2):
    _, found = arc2
    total = found.cells.shares.sum() + sum(found.cells.biases.values())
    assert total == pytest.approx(found.score, abs=1e-12)
    assert set(found.biases) - set(found.cells.biases) == {"windows_bias"}
    assert abs(found.rest) < 1e-12


def test_cells_and_pooled_planes_are_those_of_the_slow_twin(arc2):
    scorer, found = arc2
    model, p, h = scorer.model, twin_of(scorer), 1e-6
    X, Y = (
        np.array([p["W"][:, WORDS.index(word)] for word in text.words])
        for text in found.texts.values()
    )
    own = (model.max_words, model.window, model.gate)
    Z, on = naive_pairs.arc2_first_plane(p, X, Y, *own)

    def score(plane):
        pooled = naive_pairs.pool(plane, on)
        for layer in range(1, len(model.maps)):
            weights = p[f"W{2 * layer + 1}"], p[f"b{2 * layer + 1}"]
            pooled = naive_pairs.pool(*naive_pairs.convolve(*weights, *pooled, model.window))
        return naive_pairs.mlp_score(p, pooled[0].reshape(-1), model.mlp_layers)

    # Behind a text all cells are equal: they are scaled together, or maxima would have kinks.
    shares = np.zeros(found.cells.shares.shape)
    n_rows, n_columns = found.cells.n_windows
    for i, j in np.ndindex(shares.shape):
        cells = slice(i, i + 1 if i < n_rows else None), slice(j, j + 1 if j < n_columns else None)
        scores = []
        for scale in (1 + h, 1 - h):
            plane = Z.copy()
            plane[cells] *= scale
            scores.append(score(plane))
        shares[i, j] = (scores[0] - scores[1]) / (2 * h)
    np.testing.assert_allclose(found.cells.shares, shares, atol=1e-8)
    naive = naive_pairs.arc2_planes(p, X, Y, *own[:2], len(model.maps), model.gate)
    for number, (ours, (values, _)) in enumerate(zip(found.cells.pooled, naive, strict=True), 1):
        rows, columns = ours.values.shape
        assert (ours.layer, ours.stride) == (2 * number, 2**number)
        np.testing.assert_allclose(ours.values, values.mean(axis=2)[:rows, :columns], atol=1e-12)


def test_the_figure_shows_the_shares():
    found = match(scorer_of("arc2", maps=(5, 4), max_words=9), QUERY, TITLE)
    figure = match_figure(found)
    panels = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    query, title, windows, layer_2, layer_4 = panels
    for ax, text in zip((query, title), found.texts.values(), strict=True):
        np.testing.assert_array_equal([bar.get_height() for bar in ax.patches], text.shares)
        assert [label.get_text() for label in ax.get_xticklabels()] == text.words
    (image,) = windows.images
    np.testing.assert_array_equal(image.get_array(), found.cells.shares)
    assert image.get_clim() == (-np.abs(found.cells.shares).max(), np.abs(found.cells.shares).max())
    rows = [label.get_text() for label in windows.get_yticklabels()]
    assert rows == ["hotels in old", "in old shanghai", "old shanghai", "shanghai"]
    for ax, plane in zip((layer_2, layer_4), found.cells.pooled, strict=True):
        np.testing.assert_array_equal(ax.collections[0].get_array(), plane.values)
    assert figure.get_suptitle().startswith(f"arc2: score {found.score:.3f}".replace("-", "−"))
    curved = replace(found, score=found.score + 1)
    assert "rest 1.000" in match_figure(curved).get_suptitle()


@pytest.mark.filterwarnings("ignore:no installed font has")
@pytest.mark.filterwarnings("error")
def test_texts_of_every_script_and_length(tmp_path):
    vocabulary = Vocabulary([], ["$x_1$", "上海"])
    settings = {"maps": (2, 2), "gate": "printed", "embedding": 2, "mlp": 2, "max_words": 210}
    model = make_pair_model("arc2", **settings)
    weights = model.initialise(2, np.random.default_rng(0))
    scorer = PairScorer(model, vocabulary, weights, threads=1)
    figure = match_figure(match(scorer, "$x_1$", "上海 " + "unknown " * 6))
    save_figure(figure, tmp_path / "match.svg")
    with pytest.raises(SentembError, match="201 words, a figure has room for 200"):
        match_figure(match(scorer, "word " * 201, "上海"))


class TestCommands:
    """Every command with a pair model: it works, or says in one line what to use."""

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        saved = scorer_of("arc2", dtype=np.float32, maps=(5, 4), max_words=9)
        saved.training = {"objective": "hinge"}
        saved.save_pretrained("m")
        Path("q.tsv").write_text(f"q1\t{QUERY}\n")
        Path("log.tsv").write_text(f"{QUERY}\t{TITLE}\ncheap rooms\told hotels\n")
        Path("sts.tsv").write_text(f"1\t{QUERY}\t{TITLE}\n2\trooms\tresorts\n3\told\tnear\n")

    def run(self, *arguments, code=0):
        result = CliRunner().invoke(main, list(arguments))
        assert result.exit_code == code, result.output
        return result

    def test_plot_match(self):
        said = self.run("plot-match", "m", QUERY, TITLE, "-o", "x.png").stdout
        assert said == "x.png: 4 and 8 words, 4 x 7 windows\n"
        assert Path("x.png").read_bytes().startswith(b"\x89PNG")
        found = json.loads(self.run("plot-match", "m", QUERY, TITLE, "--json").stdout)
        total = found["rest"] + sum(found["biases"].values())
        for name in ("query", "title"):
            total += sum(word["share"] for word in found[name]["words"])
        assert total == pytest.approx(found["score"], abs=1e-9)
        assert found["title"]["text"] == TITLE
        assert np.shape(found["cells"]["shares"]) == (4, 7)

    def test_score_prints_plain_numbers(self):
        lines = self.run("score", "m", QUERY, TITLE, "old rooms").stdout.splitlines()
        scores = [float(line.split("\t")[0]) for line in lines]
        found = json.loads(self.run("score", "m", QUERY, TITLE, "old rooms", "--json").stdout)
        assert scores == pytest.approx([one["score"] for one in found["titles"]], abs=1e-6)
        assert "1 of 2 texts have no words" in self.run("score", "m", QUERY, " ").stderr

    @pytest.mark.parametrize(
        "arguments",
        [
            "encode m q.tsv -o x.npy",
            "keywords m text",
            "topics m q.tsv",
            "plot-gates m text",
            "sts m sts.tsv",
            "train log.tsv -o x --model lstm --start-from m",
            "vectors show m",
            "sif m -o x",
            "plot-loss m",
        ],
    )
    def test_others_say_what_to_use(self, arguments):
        said = self.run(*arguments.split(), code=1).stderr.splitlines()
        assert len(said) == 1 and said[0].startswith("Error: m"), said
        if arguments.split()[0] in ("encode", "keywords", "topics", "plot-gates", "sts"):
            assert "`sentemb score`, `rank`, `evaluate` or `plot-match`" in said[0]

    def test_the_card_names_the_best_epoch_by_accuracy(self):
        saved = scorer_of("wordembed")
        saved.history = [
            {"epoch": epoch, "loss": 0.5, "dev": {"accuracy": accuracy}}
            for epoch, accuracy in enumerate((0.5, 0.75, 0.625), 1)
        ]
        saved.save_pretrained("labels")
        card = Path("labels/README.md").read_text()
        assert "Best on the dev set after epoch 2: accuracy 0.750." in card

    def test_wrong_input_of_plot_match(self, model_dir, tmp_path):
        said = self.run("plot-match", str(model_dir), "a", "b", code=1).stderr
        assert "has two towers and is not a pair model; use `sentemb plot-gates`" in said
        said = self.run("plot-match", "m", QUERY, " ", code=1).stderr
        assert said == "Error: m: a text without words has no shares; give one with words\n"
        assert "use .png" in self.run("plot-match", "m", "a", "b", "-o", "x.gif", code=1).stderr
        broken = scorer_of("wordembed")
        broken.parameters()["c"][0] = np.inf
        with pytest.raises(SentembError, match="the score is not finite"):
            match(broken, QUERY, TITLE)
