"""Figures of gates and cells: what is drawn where, on which scale, and what is refused."""

import io
import json
import warnings
import xml.etree.ElementTree
from functools import partial
from itertools import combinations, pairwise
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from click.testing import CliRunner
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from helpers import made_up_log, made_up_pair_model
from matplotlib.text import Text

import sentemb
from sentemb import SentembError, SentenceEncoder
from sentemb.analysis.figures import fonts, palette
from sentemb.analysis.figures.cell_figure import cells_figure
from sentemb.analysis.figures.drawing import figure_png, save_figure
from sentemb.analysis.figures.gate_figure import gates_figure
from sentemb.analysis.figures.heat_map import POSITIVE, SIGNED
from sentemb.analysis.figures.loss_figure import loss_figure
from sentemb.analysis.figures.palette import COLOURS, model_colours
from sentemb.analysis.gates import read_gates
from sentemb.analysis.histories import History
from sentemb.analysis.keywords import KEYWORD_SHARE, extract_keywords
from sentemb.analysis.labels import short_names
from sentemb.cli import main
from sentemb.models.pairs.registry import PAIR_MODELS
from sentemb.models.towers.registry import ENCODERS
from sentemb.text.vocabulary import Vocabulary

# Models of these tests know few words.
pytestmark = pytest.mark.filterwarnings("ignore:1 of 1 texts have no word that the model knows")

QUERY, TITLE = "hotels in shanghai", "Shanghai hotels and resorts near the river"
VARIANTS = {
    "rnn": ("rnn", {}, ["y"]),
    "lstm": ("lstm", {}, ["i", "o", "c", "y"]),
    "forget gate": ("lstm", {"forget_gate": True}, ["i", "f", "o", "c", "y"]),
    "no output gate": ("lstm", {"output_gate": False}, ["i", "c", "y"]),
    "bilstm": ("bilstm", {}, ["i", "o", "c", "y"]),
    "beside a bag": ("bilstm", {"bag_dim": 3}, ["i", "o", "c", "y"]),
}
STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def both(make_model):
    """The readings of an LSTM and of an RNN with other cells."""
    return [
        read_gates(make_model("lstm"), QUERY, TITLE, "lstm"),
        read_gates(make_model("rnn", cells=12), QUERY, TITLE, "rnn"),
    ]


def images_of(figure):
    return [ax.images[0] for ax in figure.axes if ax.images]


def labels_of(ax):
    return [label.get_text() for label in ax.get_xticklabels()]


def lightness(colours):
    """Rec. 601 luma, what a grey copy of a screen has, for (k, 4) RGBA."""
    return colours[:, :3] @ [0.299, 0.587, 0.114]


@pytest.mark.parametrize(("name", "settings", "gates"), VARIANTS.values(), ids=VARIANTS)
def test_readings_are_the_traces(make_model, name, settings, gates):
    model = make_model(name, **settings)
    reading = read_gates(model, QUERY, TITLE)
    assert reading.gates == gates
    assert reading.cosine == model.score(QUERY, TITLE)
    for text, words, side in zip(reading.texts, (QUERY, TITLE), ("query", "document"), strict=True):
        trace = model.trace(words, side)
        assert text.words == words.lower().split()
        embedding = model.encode(words, side=side)
        np.testing.assert_array_equal(text.final, embedding[: text.gates["y"].shape[0]])
        for gate, values in text.gates.items():
            np.testing.assert_array_equal(values, getattr(trace, gate).T)


@pytest.mark.parametrize(("name", "settings", "gates"), VARIANTS.values(), ids=VARIANTS)
def test_figure_has_a_row_per_gate_and_one_scale(make_model, name, settings, gates):
    reading = read_gates(make_model(name, **settings), QUERY, TITLE)
    figure = gates_figure([reading])
    images = images_of(figure)
    drawn = [text.gates[gate] for gate in gates for text in reading.texts]
    assert len(images) == len(drawn) == 2 * len(gates)
    for image, values in zip(images, drawn, strict=True):
        np.testing.assert_array_equal(image.get_array(), values)
        assert image.axes.get_xlim() == (-0.5, 6.5), "as wide as the longer text"
    limit = max(np.abs(values).max() for values in drawn)
    assert {image.get_clim() for image in images} == {(-limit, limit)}
    assert len(figure.axes) == len(images) + 1, "one colour bar"
    assert [images[column].axes.get_title() for column in (0, 1)] == ["query", "title"]
    assert labels_of(images[-2].axes) == QUERY.split()
    assert labels_of(images[-1].axes) == TITLE.lower().split()
    assert figure.get_suptitle() == f"cosine {reading.cosine:.4f}"


def test_own_scales_have_a_bar_each_and_no_blue_for_gates(make_model):
    reading = read_gates(make_model("lstm", forget_gate=True), QUERY, TITLE)
    figure = gates_figure([reading], "own")
    images = images_of(figure)
    assert len(figure.axes) == 2 * len(images)
    for image, gate in zip(images, np.repeat(reading.gates, 2), strict=True):
        values = image.get_array()
        if gate in "ifo":
            assert image.get_clim() == (values.min(), values.max())
            assert image.cmap == POSITIVE
        else:
            assert image.get_clim() == (-np.abs(values).max(), np.abs(values).max())
            assert image.cmap == SIGNED


def test_cell_states_beyond_one_do_not_widen_the_shared_scale(model):
    reading = read_gates(model, QUERY)
    reading.texts[0].gates["c"][0, 0] = -7
    assert images_of(gates_figure([reading]))[0].get_clim() == (-1, 1)
    own = images_of(gates_figure([reading], "own"))[reading.gates.index("c")]
    assert own.get_clim() == (-7, 7)


def test_only_chosen_gates_are_drawn_in_the_usual_order(both):
    lstm, rnn = both
    figure = gates_figure([lstm], gates=["y", "i"])
    images = images_of(figure)
    drawn = [text.gates[gate] for gate in ("i", "y") for text in lstm.texts]
    assert len(images) == len(drawn)
    for image, values in zip(images, drawn, strict=True):
        np.testing.assert_array_equal(image.get_array(), values)
    limit = max(np.abs(values).max() for values in drawn)
    assert {image.get_clim() for image in images} == {(-limit, limit)}, "cell states do not count"
    assert len(images_of(gates_figure([lstm, rnn], gates=["i"]))) == 2, "the RNN has none"


def test_gates_that_are_not_there_are_refused(both):
    with pytest.raises(SentembError, match=r"no forget gate f; it has i, o, c, y"):
        gates_figure(both, gates=["i", "f"])
    with pytest.raises(SentembError, match=r"unknown gate 'x'; the gates are i, f, o, c, y"):
        gates_figure(both, gates=["x"])


def test_a_figure_as_png_is_120_dots_per_inch(model):
    figure = gates_figure([read_gates(model, QUERY)], gates=["i"])
    picture = figure_png(figure)
    assert picture.startswith(STARTS["png"])
    size = [int.from_bytes(picture[k : k + 4], "big") for k in (16, 20)]
    np.testing.assert_allclose(size, figure.get_size_inches() * 120, atol=1)


def test_a_reading_shows_itself_in_a_notebook(make_model):
    reading = read_gates(make_model("lstm"), "hotels <b>", TITLE)
    shown = reading._repr_html_()
    assert "&lt;b&gt;" in shown and "<b>" not in shown
    assert shown.count("<table>") == 2
    assert f"cosine {reading.cosine:.4f}" in shown
    size = np.abs(reading.texts[0].gates["c"]).mean(axis=0)
    assert all(f">{value:.3f}<" in shown for value in size)


def test_bilstm_names_both_halves_of_its_cells(make_model):
    figure = gates_figure([read_gates(make_model("bilstm"), QUERY)])
    image = images_of(figure)[0]
    assert image.axes.lines[0].get_ydata()[0] == 7.5  # between cells 7 and 8 of 16
    names = [text.get_text() for text in image.axes.child_axes[0].get_yticklabels()]
    assert names == ["left to\nright", "right to\nleft"]


def test_two_models_side_by_side_say_what_one_lacks(both):
    figure = gates_figure(both)
    panels = np.array(figure.axes[:16]).reshape(4, 4)
    assert [ax.get_title() for ax in panels[0]] == [
        "lstm\nquery",
        "lstm\ntitle",
        "rnn\nquery",
        "rnn\ntitle",
    ]
    for row, absent in zip(panels, ["input gate", "output gate", "cell state", None], strict=True):
        assert all(ax.images for ax in row[:2])
        assert [[text.get_text() for text in ax.texts] for ax in row[2:]] == [
            [f"no {absent}"] if absent else []
        ] * 2
    assert panels[3, 2].images[0].get_array().shape == (12, 3)
    assert figure.get_suptitle() == (
        f"cosine {both[0].cosine:.4f} (lstm), {both[1].cosine:.4f} (rnn)"
    )


@pytest.mark.parametrize("name", ["lstm", "bilstm"])
def test_active_cells_are_the_largest_of_the_final_vector(make_model, name):
    model = make_model(name, cells=24)
    reading = read_gates(model, QUERY, TITLE)
    images = images_of(cells_figure([reading]))
    for image, text in zip(images, reading.texts, strict=True):
        active = text.active_cells()
        final = np.abs(text.final)
        assert len(active) == 10
        assert final[active].min() >= np.delete(final, active).max()
        assert (np.diff(final[active]) <= 0).all()
        np.testing.assert_array_equal(image.get_array(), text.gates["y"][active])
        labels = [label.get_text() for label in image.axes.get_yticklabels()]
        assert [int(label.split()[0]) for label in labels] == list(active)
        if name == "bilstm":
            assert [label[-1] for label in labels] == ["→" if k < 24 else "←" for k in active]
            ends = np.where(active < 24, -1, 0)
            # Encoding may differ from the pass that keeps gates in the last digits.
            np.testing.assert_allclose(
                text.gates["y"][active, ends], text.final[active], 1e-5, 1e-7, "where readings end"
            )


def test_small_models_have_fewer_active_cells(both):
    images = images_of(cells_figure(both, "own"))
    assert [image.get_array().shape for image in images] == [(8, 3), (8, 7), (10, 3), (10, 7)]
    assert images[0].axes.get_ylabel() == "lstm\ncell"


def test_a_grey_print_shows_larger_values_darker():
    assert (np.diff(lightness(POSITIVE(np.arange(255)))) < 0).all()
    assert (np.diff(lightness(SIGNED(np.arange(127, 255)))) < 0).all()
    assert (np.diff(lightness(SIGNED(np.arange(127, -1, -1)))) < 0).all()


def test_zero_is_white_and_signs_differ_in_hue():
    assert SIGNED(127) == POSITIVE(0) == (1, 1, 1, 1)
    for step in (40, 80, 120):
        below, above = SIGNED(127 - step), SIGNED(127 + step)
        assert below[2] > below[0]
        assert above[0] > above[2]


@pytest.mark.parametrize("count", [1, 3, 30])
@pytest.mark.parametrize("word", ["a", "hotels", "internationalisation", "酒店预订"])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_words_do_not_overlap(model, word, count):
    # The words stand below the last row.
    figure = gates_figure([read_gates(model, " ".join([word] * count))], gates=["y"])
    figure.draw_without_rendering()
    labels = images_of(figure)[-1].axes.get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    if labels[0].get_rotation() == 0:
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
    else:
        # Slanted lines of text stay apart if their ends are further than √2 times their height.
        height = labels[0].get_fontsize() * figure.dpi / 72
        assert all(b.x1 - a.x1 > 2**0.5 * height for a, b in pairwise(boxes))


# Two rows show every gap that four have. The RNN lacks the first gate, whose own scale has no blue.
two_gates = partial(gates_figure, gates=["o", "y"])


@pytest.mark.parametrize(
    ("draw", "words", "cells", "scale"),
    [
        (two_gates, 1, 1, "shared"),
        (two_gates, 30, 300, "own"),
        (cells_figure, 1, 1, "own"),
        (cells_figure, 30, 300, "shared"),
    ],
)
def test_axes_do_not_overlap(make_model, draw, scale, words, cells):
    long_name = "a long name of a folder that goes on"
    readings = [
        read_gates(make_model(name, cells=cells), "hotels", "shanghai " * words, long_name)
        for name in ("bilstm", "rnn")
    ]
    figure = draw(readings, scale)
    figure.draw_without_rendering()
    # Each with its labels and titles; a pixel is lost to rounding.
    boxes = [ax.get_tightbbox().padded(-1) for ax in figure.axes]
    page = figure.bbox.padded(1)
    for a, b in combinations(boxes, 2):
        assert not a.overlaps(b)
    for box in boxes:
        assert page.x0 <= box.x0 and box.x1 <= page.x1
        assert page.y0 <= box.y0 and box.y1 <= page.y1


def test_long_words_are_shortened_and_control_characters_left_out(model):
    figure = gates_figure([read_gates(model, "internationalisation a\0b\ud800")])
    assert labels_of(images_of(figure)[-1].axes) == ["international…", "ab"]


def test_letters_come_from_whatever_font_has_them(model, tmp_path, monkeypatch):
    # matplotlib brings a font with circled letters; one of them nobody shall have.
    whole = fonts._letters_of
    monkeypatch.setattr(fonts, "_letters_of", lambda path: set(whole(path)) - {ord("ⓑ")})
    figure = gates_figure([read_gates(model, "Ⓐ Ⓑ 5")], gates=["y"])
    with pytest.warns(UserWarning, match="no installed font has ⓑ, so boxes are drawn; install"):
        save_figure(figure, tmp_path / "gates.svg")
    assert "ⓐ" in {text.get_text() for text in figure.findobj(Text)}


def test_a_font_that_was_installed_since_is_used(model, tmp_path, monkeypatch):
    # The list of fonts that matplotlib keeps is older than this font.
    builder = FontBuilder(1000)
    builder.setupGlyphOrder([".notdef", "bath"])
    builder.setupCharacterMap({ord("浴"): "bath"})
    box = TTGlyphPen(None)
    box.moveTo((0, 0))
    for corner in ((900, 0), (900, 900), (0, 900)):
        box.lineTo(corner)
    box.closePath()
    builder.setupGlyf({".notdef": box.glyph(), "bath": box.glyph()})
    builder.setupHorizontalMetrics({".notdef": (1000, 0), "bath": (1000, 0)})
    builder.setupHorizontalHeader(ascent=900, descent=0)
    builder.setupNameTable({"familyName": "Bath Sans", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    builder.save(tmp_path / "bath.ttf")
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    paths = [str(tmp_path / "bath.ttf"), str(tmp_path / "broken.ttf")]
    monkeypatch.setattr(fonts.fontManager, "ttflist", [*fonts.fontManager.ttflist])
    figure = gates_figure([read_gates(model, "浴 hotels")], gates=["y"])
    monkeypatch.setattr(fonts, "findSystemFonts", lambda: [])
    with pytest.warns(UserWarning, match="no installed font has 浴, so boxes are drawn; install"):
        figure_png(figure)
    monkeypatch.setattr(fonts, "findSystemFonts", lambda: paths)
    assert fonts.lend_fonts(figure) == []
    assert all("Bath Sans" in text.get_fontfamily() for text in figure.findobj(Text))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(figure, tmp_path / "gates.pdf")


@pytest.mark.parametrize("ending", STARTS)
@pytest.mark.filterwarnings("ignore:no installed font has")
@pytest.mark.filterwarnings("ignore:1 of 1 texts have no word that the model knows")
@pytest.mark.filterwarnings("error")
def test_formats_with_every_script_and_no_mathematics(model, tmp_path, ending):
    path = tmp_path / f"gates.{ending.upper()}"
    path.write_text("an older figure")
    odd = read_gates(model, "$5 $x$ a_b^2 \\frac{ 上海 мир 🏨 مرحبا नमस्ते", name="$x_")
    save_figure(gates_figure([odd, odd], gates=["y"]), path)
    content = path.read_bytes()
    assert content.startswith(STARTS[ending])
    if ending == "svg":
        xml.etree.ElementTree.fromstring(content)
    assert list(tmp_path.iterdir()) == [path]


def test_dollar_signs_are_drawn(model):
    figure = gates_figure([read_gates(model, "$x$")])
    assert not images_of(figure)[-1].axes.get_xticklabels()[0].get_parse_math()


@pytest.mark.parametrize("name", ["gates.jpg", "gates", "png"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(SentembError, match=r"use \.png, \.svg or \.pdf"):
        save_figure(matplotlib.figure.Figure(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_refuses_texts_without_words_and_endless_ones(model):
    with pytest.raises(SentembError, match="without words"):
        read_gates(model, QUERY, " \t")
    for draw in (gates_figure, cells_figure):
        with pytest.raises(SentembError, match="201 words"):
            draw([read_gates(model, "word " * 201)])


def test_short_names_tell_paths_apart():
    assert short_names(["a/lstm", "b/rnn/"]) == ["lstm", "rnn"]
    assert short_names(["a/model", "b/model"]) == ["a/model", "b/model"]
    assert short_names(["model", "./model"]) == ["model", "model"]


class TestCommand:
    @pytest.fixture(autouse=True)
    def folder(self, make_model, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        make_model("lstm", cells=12).save_pretrained("lstm")
        make_model("rnn", cells=8).save_pretrained("rnn")

    def run(self, *arguments, code=0):
        result = CliRunner().invoke(main, ["plot-gates", "lstm", QUERY, *arguments])
        assert result.exit_code == code, result.output
        return result

    def test_numbers_of_gates(self):
        result = self.run(
            "--title", TITLE, "--compare-with", "rnn", "--output-numbers", "gates.npz"
        )
        notes = result.stderr.splitlines()
        assert result.stdout == "gates.png: i, o, c, y of 12 cells, against y of 8 cells\n"
        unknown = "'near', 'the', 'river'; these words are read as zero"
        assert notes == [f"note: {name} knows nothing of {unknown}" for name in ("lstm", "rnn")]
        numbers = np.load("gates.npz")
        shapes = {"i": 12, "o": 12, "c": 12, "y": 12}
        expected = {
            f"{prefix}{side}.{gate}": (cells, words)
            for prefix, gates in {"": shapes, "against.": {"y": 8}}.items()
            for gate, cells in gates.items()
            for side, words in {"query": 3, "title": 7}.items()
        }
        for prefix in ("", "against."):
            expected[f"{prefix}query.words"], expected[f"{prefix}title.words"] = (3,), (7,)
            expected[f"{prefix}cosine"] = ()
        assert {name: numbers[name].shape for name in numbers} == expected
        assert list(numbers["query.words"]) == QUERY.split()

    def test_one_gate(self):
        result = self.run(
            "--gates", "i, y", "--compare-with", "rnn", "--output-numbers", "gates.npz"
        )
        assert result.stdout == "gates.png: i, y of 12 cells, against y of 8 cells\n"
        assert set(np.load("gates.npz")) == {
            "query.words", "query.i", "query.y", "against.query.words", "against.query.y"
        }  # fmt: skip
        result = self.run("--gates", "i", "--compare-with", "rnn", "--force")
        assert result.stdout == "gates.png: i of 12 cells, against nothing of 8 cells\n"

    def test_numbers_of_cells(self):
        arguments = ("--view", "cells", "-o", "cells.svg", "--output-numbers", "cells.npz")
        result = self.run(*arguments)
        assert result.stdout == "cells.svg: y of the most active of 12 cells\n"
        assert json.loads(self.run(*arguments, "--force", "--json").stdout) == {
            "output": "cells.svg",
            "drawn": {"lstm": "y of the most active of 12 cells"},
            "output_numbers": "cells.npz",
        }
        numbers = np.load("cells.npz")
        assert {name: numbers[name].shape for name in numbers} == {
            "query.words": (3,),
            "query.cells": (10,),
            "query.y": (10, 3),
        }

    def test_an_archive_has_nothing_but_the_numbers(self, monkeypatch):
        """NumPy 2.0 takes every keyword for an array."""
        keywords = {}
        monkeypatch.setattr(np, "savez", lambda file, **arrays: keywords.update(arrays))
        self.run("--gates", "i", "--output-numbers", "gates.npz")
        assert keywords.keys() == {"query.words", "query.i"}

    def test_mistakes(self):
        Path("file").touch()
        assert "end in .npz" in self.run("--output-numbers", "gates.csv", code=1).stderr
        assert "there is no model here" in self.run("--compare-with", "nowhere", code=1).stderr
        assert (
            "cannot be written"
            in self.run("--output-numbers", "file/x.npz", "--force", code=1).stderr
        )
        self.run("--colours", "none", code=2)
        assert "no forget gate f" in self.run("--gates", "f", "--force", code=1).stderr
        assert (
            "for --view gates"
            in self.run("--gates", "i", "--view", "cells", "--force", code=2).stderr
        )
        assert not Path("gates.csv").exists()


# -- one call, for notebooks -----------------------------------------------------------------------


def test_a_drawing_is_shown_at_120_dots_per_inch_and_saved(model, tmp_path):
    drawing = sentemb.plot_gates(model, QUERY, TITLE, gates=["i"], scale="own")
    picture, described = drawing._repr_png_()
    assert picture == figure_png(gates_figure([read_gates(model, QUERY, TITLE)], "own", ["i"]))
    width, _ = matplotlib.image.imread(io.BytesIO(picture)).shape[1::-1]
    assert width == int(drawing.figure.get_figwidth() * 120)
    assert "cosine" in described["alt"] and "query: input gate i cell" in described["alt"]
    assert repr(drawing).startswith(f"Drawing({described['alt']}; ")
    # A notebook keeps every form of a result, so a figure has one: SVG of many cells is large.
    assert not hasattr(drawing, "_repr_svg_")
    drawing.save(tmp_path / "gates.svg")
    assert (tmp_path / "gates.svg").read_bytes().startswith(STARTS["svg"])
    with pytest.raises(SentembError, match=r"use \.png, \.svg or \.pdf"):
        drawing.save(tmp_path / "gates.jpg")


def test_figures_of_two_models_name_both(make_model):
    first, second = make_model("lstm"), make_model("rnn", cells=12)
    figure = sentemb.plot_cells(first, QUERY, compare_with=second).figure
    texts = " ".join(text.get_text() for text in figure.findobj(Text))
    assert "lstm" in texts and "rnn" in texts
    same = sentemb.plot_keywords(first, QUERY, compare_with=first).figure
    assert [ax.get_title() for ax in same.axes] == ["lstm 1", "lstm 2"]
    with pytest.raises(SentembError, match="scale must be shared or own, not 'each'"):
        sentemb.plot_gates(first, QUERY, scale="each")


def test_models_that_split_a_text_into_other_words_are_not_drawn_under_one_label(model):
    known = model.vocabulary
    bare = SentenceEncoder(
        model.encoder, Vocabulary(known.trigrams, known.words, "bare"), model.weights
    )
    assert len(read_gates(bare, "東京都 hub").texts[0].words) == 3
    for draw in (sentemb.plot_keywords, sentemb.plot_cells):
        draw(model, "hotels in", compare_with=bare)
        with pytest.raises(SentembError, match="other words; compare models of one --splitting"):
            draw(model, "東京都 hub", compare_with=bare)
    sentemb.plot_gates(model, "東京都 hub", compare_with=bare)  # each panel has its own words


@pytest.mark.parametrize("name", ["lstm", "bilstm"])
def test_keywords_are_bars_above_40_percent_of_the_cells(make_model, name):
    model = make_model(name)
    found = extract_keywords(model, TITLE, "document")
    (ax,) = sentemb.plot_keywords(model, TITLE, "document").figure.axes
    heights = [[bar.get_height() for bar in bars] for bars in ax.containers]
    assert heights == found.counts.clip(0).tolist()
    assert ax.lines[0].get_ydata()[0] == KEYWORD_SHARE * found.cells
    bold = [label.get_fontweight() == "bold" for label in ax.get_xticklabels()]
    assert bold == [bool(verdict) for verdict in found.verdicts]
    with pytest.raises(SentembError, match="a figure has room for 200"):
        sentemb.plot_keywords(model, "a " * 201)


def test_the_loss_of_a_model_is_that_of_its_folder(tmp_path, model):
    trained = sentemb.train(made_up_log(), output=tmp_path / "m", cells=4, epochs=3)
    figure = sentemb.plot_loss({"here": trained, "there": tmp_path / "m"}).figure
    # The lines come first, then the marks of new hard negatives.
    here, there = (line.get_xydata().tolist() for line in figure.axes[0].lines[:2])
    assert here == there == [[line["epoch"], line["loss"]] for line in trained.history]
    assert "m" in [
        text.get_text() for text in sentemb.plot_loss(tmp_path / "m").figure.findobj(Text)
    ]
    for wrong in (model, tmp_path, {}):
        with pytest.raises(SentembError):
            sentemb.plot_loss(wrong)


def test_pair_models_and_gradients_have_figures(make_model):
    scorer = made_up_pair_model([QUERY, TITLE])
    picture, described = sentemb.plot_match(scorer, QUERY, TITLE)._repr_png_()
    assert picture.startswith(STARTS["png"]) and "share of the score" in described["alt"]
    flow = sentemb.plot_gradient_flow({"one": make_model("lstm")}, QUERY, TITLE)
    assert len(flow.figure.axes) == 2 and "curves one" in repr(flow)
    alone = sentemb.plot_gradient_flow(make_model("rnn"), QUERY, TITLE)
    assert "rnn" in [text.get_text() for text in alone.figure.findobj(Text)]


def test_a_model_has_one_colour_in_all_figures(make_model, tmp_path):
    models = {"LSTM": make_model("lstm"), "my-rnn": make_model("rnn")}
    history = History([1, 2], [2.0, 1.0], [{}, {}])
    flow = sentemb.plot_gradient_flow(models, QUERY, TITLE).figure.axes[0].lines
    for names in (["LSTM", "my-rnn"], ["my-rnn", "dssm", "LSTM"]):
        loss = loss_figure([history] * len(names), names).axes[0].lines
        colours = dict(zip(names, (line.get_color() for line in loss), strict=True))
        assert [colours[name] for name in models] == [line.get_color() for line in flow]


def test_colours_differ_and_do_not_depend_on_order():
    names = ["shop-may", "lstm-32", "lstm-96", "arc2", "shop-june", "bag-hard", "may-bilstm_2"]
    colours = dict(zip(names, model_colours(names), strict=True))
    assert set(colours.values()) == set(COLOURS)
    assert model_colours(names[::-1]) == list(colours.values())[::-1]
    assert colours["lstm-32"] == model_colours(["LSTM"])[0]
    assert model_colours(["shop-may"]) == model_colours(["lstm", "shop-may"])[1:]
    assert set(palette._OF_MODEL) == {*ENCODERS, *PAIR_MODELS}
