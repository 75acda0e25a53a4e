"""Figures of gates: what is drawn where, on which scale, and what is refused."""

import xml.etree.ElementTree
from itertools import pairwise

import matplotlib
import numpy as np
import pytest

from sentemb import SentembError
from sentemb.analysis.figures import gates_figure, save_figure
from sentemb.analysis.gates import gate_panels

QUERY, TITLE = "hotels in shanghai", "Shanghai hotels and resorts near the river"
VARIANTS = {
    "rnn": ("rnn", {}, ["y"]),
    "lstm": ("lstm", {}, ["i", "o", "c", "y"]),
    "forget gate": ("lstm", {"forget_gate": True}, ["i", "f", "o", "c", "y"]),
    "bilstm": ("bilstm", {}, ["i", "o", "c", "y"]),
}
STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def images_of(figure):
    return [ax.images[0] for ax in figure.axes if ax.images]


def labels_of(ax):
    return [label.get_text() for label in ax.get_xticklabels()]


@pytest.mark.parametrize(("name", "settings", "gates"), VARIANTS.values(), ids=VARIANTS)
def test_panels_are_the_traces_and_zero_beyond_the_end(make_model, name, settings, gates):
    model = make_model(name, **settings)
    panels = gate_panels(model, QUERY, TITLE)
    assert panels.gates == gates
    assert panels.values.shape == (len(gates), 2, model.dim, 7)
    query, title = model.trace(QUERY), model.trace(TITLE, side="document")
    for gate, (left, right) in zip(gates, panels.values):
        np.testing.assert_array_equal(left[:, :3], getattr(query, gate).T)
        np.testing.assert_array_equal(right, getattr(title, gate).T)
    assert not panels.values[:, 0, :, 3:].any()
    assert panels.score == model.score(QUERY, TITLE)


@pytest.mark.parametrize(("name", "settings", "gates"), VARIANTS.values(), ids=VARIANTS)
def test_figure_has_a_row_per_gate_and_one_scale(make_model, name, settings, gates):
    panels = gate_panels(make_model(name, **settings), QUERY, TITLE)
    figure = gates_figure(panels)
    images = images_of(figure)
    assert len(images) == 2 * len(gates)
    for image, drawn in zip(images, panels.values.reshape(-1, *panels.values.shape[2:])):
        np.testing.assert_array_equal(image.get_array(), drawn)
    limit = np.abs(panels.values).max()
    assert {image.get_clim() for image in images} == {(-limit, limit)}
    assert images[0].cmap(images[0].norm(0.0)) == (1.0, 1.0, 1.0, 1.0)
    assert [images[column].axes.get_title() for column in (0, 1)] == ["query", "title"]
    assert labels_of(images[-2].axes) == QUERY.split()
    assert labels_of(images[-1].axes) == TITLE.lower().split()
    assert figure.get_suptitle() == f"cosine {panels.score:.4f}"


def test_cell_states_beyond_one_do_not_widen_the_scale(model):
    panels = gate_panels(model, QUERY)
    panels.values[panels.gates.index("c"), 0, 0, 0] = -7
    assert images_of(gates_figure(panels))[0].get_clim() == (-1, 1)


def test_bilstm_names_both_halves_of_its_cells(make_model):
    figure = gates_figure(gate_panels(make_model("bilstm"), QUERY))
    image = images_of(figure)[0]
    assert image.axes.lines[0].get_ydata()[0] == 7.5  # between cells 7 and 8 of 16
    names = [text.get_text() for text in image.axes.child_axes[0].get_yticklabels()]
    assert names == ["left to\nright", "right to\nleft"]


@pytest.mark.parametrize("count", [1, 2, 3, 10, 30])
@pytest.mark.parametrize("word", ["a", "hotels", "internationalisation", "酒店预订"])
@pytest.mark.filterwarnings("ignore:Glyph")
def test_labels_do_not_overlap(model, word, count):
    figure = gates_figure(gate_panels(model, " ".join([word] * count)))
    figure.draw_without_rendering()
    labels = images_of(figure)[-1].axes.get_xticklabels()
    boxes = [label.get_window_extent() for label in labels]
    if labels[0].get_rotation() == 0:
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
    else:
        # Slanted lines of text stay apart if their ends are further than √2 times their height.
        height = labels[0].get_fontsize() * figure.dpi / 72
        assert all(b.x1 - a.x1 > 2**0.5 * height for a, b in pairwise(boxes))


def test_long_words_are_shortened_and_control_characters_left_out(model):
    figure = gates_figure(gate_panels(model, "internationalisation a\0b\ud800"))
    assert labels_of(images_of(figure)[-1].axes) == ["international…", "ab"]


@pytest.mark.parametrize("ending", STARTS)
@pytest.mark.filterwarnings("error")
def test_formats_with_every_script_and_no_mathematics(model, tmp_path, ending):
    path = tmp_path / f"gates.{ending.upper()}"
    path.write_text("an older figure")
    save_figure(gates_figure(gate_panels(model, "$5 $x$ a_b^2 \\frac{ 上海 مرحبا नमस्ते")), path)
    content = path.read_bytes()
    assert content.startswith(STARTS[ending])
    if ending == "svg":
        xml.etree.ElementTree.fromstring(content)
    assert list(tmp_path.iterdir()) == [path]


def test_dollar_signs_are_drawn(model):
    figure = gates_figure(gate_panels(model, "$x$"))
    assert not images_of(figure)[-1].axes.get_xticklabels()[0].get_parse_math()


@pytest.mark.parametrize("name", ["gates.jpg", "gates", "png"])
def test_other_endings_are_refused(model, tmp_path, name):
    with pytest.raises(SentembError, match=r"use \.png, \.svg or \.pdf"):
        save_figure(matplotlib.figure.Figure(), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_refuses_texts_without_words_and_endless_ones(model):
    with pytest.raises(SentembError, match="without words"):
        gate_panels(model, QUERY, " \t")
    with pytest.raises(SentembError, match="201 words"):
        gates_figure(gate_panels(model, "word " * 201))
