"""`sentemb plot-loss`: what is drawn of which run, and what is refused."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner
from helpers import made_up_log

from sentemb import SentembError, plot_loss, train
from sentemb.analysis.figures.drawing import save_figure
from sentemb.analysis.figures.loss_figure import loss_figure
from sentemb.analysis.histories import History, figure_of, read_history, run_names
from sentemb.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_run(name, losses, dev=None):
    """A folder with the history of a training."""
    Path(name).mkdir(parents=True)
    lines = []
    for epoch, loss in enumerate(losses, 1):
        measured = {"ndcg@1": dev[epoch - 1], "ndcg@10": 0.9} if dev else None
        lines.append(json.dumps({"epoch": epoch, "step": epoch, "loss": loss, "dev": measured}))
    Path(name, "history.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return name


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["plot-loss", *arguments])
    assert result.exit_code == code, result.output
    return result.output


def curves_of(ax):
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in ax.lines]


def test_cost_on_a_logarithmic_scale_and_dev_below():
    lstm = read_history(write_run("lstm", [3.0, 2.0, 1.5], [0.5, 0.6, 0.7]))
    rnn = read_history(write_run("rnn", [4.0, 3.0]))
    cost, dev = loss_figure([lstm, rnn], ["lstm", "rnn"]).axes
    assert cost.get_yscale() == "log"
    assert curves_of(cost) == [([1, 2, 3], [3.0, 2.0, 1.5]), ([1, 2], [4.0, 3.0])]
    assert curves_of(dev) == [([1, 2, 3], [0.5, 0.6, 0.7]), ([], [])]
    assert dev.get_ylabel() == "NDCG@1 on dev"
    (dev,) = loss_figure([lstm], ["lstm"], ["ndcg@10"]).axes[1:]
    assert curves_of(dev) == [([1, 2, 3], [0.9, 0.9, 0.9])]
    assert len(loss_figure([rnn], ["rnn"]).axes) == 1
    assert len(loss_figure([lstm], ["lstm"], ["ndcg@3"]).axes) == 1


def test_styles_differ_without_colour():
    history = History([1, 2], [2.0, 1.0], [{}, {}])
    (ax,) = loss_figure([history] * 20, ["run"] * 20).axes
    looks = [(line.get_linestyle(), line.get_marker()) for line in ax.lines]
    assert len(set(looks)) == 20
    assert len({line.get_color() for line in ax.lines}) == 7


@pytest.mark.parametrize(
    ("losses", "runs"),
    [
        ([3.1], 1),
        ([3.1, 2.9], 1),
        ([3.0, 1.0, 0.3], 1),
        ([2.2, 0.58], 1),
        ([2.2, 0.58], 40),
        ([5, 0.1, 2e-6], 1),
        ([5, 0.1, 2e-6], 40),
        ([1, 0], 1),
        ([0], 1),
    ],
)
@pytest.mark.filterwarnings("error")
def test_numbers_are_plain_and_nothing_is_covered(losses, runs):
    epochs = list(range(1, len(losses) + 1))
    history = History(epochs, losses, [{"ndcg@1": 0.5}] * len(losses))
    figure = loss_figure([history] * runs, ["_a name of $30$ letters and more"] * runs)
    figure.draw_without_rendering()
    cost, dev = figure.axes
    low, high = cost.get_ylim()
    ticks = [
        label
        for place, label in zip(cost.get_yticks(), cost.get_yticklabels(), strict=True)
        if low <= place <= high
    ]
    assert len(ticks) >= (4 if losses == [2.2, 0.58] else 2) or not any(losses)
    heights = sorted((box.y0, box.y1) for box in (tick.get_window_extent() for tick in ticks))
    assert all(below[1] < above[0] for below, above in pairwise(heights))
    assert all("$" not in tick.get_text() for tick in ticks)
    inside = [tick for tick in dev.get_xticks() if dev.get_xlim()[0] <= tick <= dev.get_xlim()[1]]
    assert inside == epochs
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert not any(box.overlaps(ax.get_tightbbox()) for ax in figure.axes)
    assert box.x1 <= figure.bbox.x1 and box.y0 >= 0
    assert [text.get_text() for text in legend.get_texts()] == [
        "_a name of $30$ letters and more"
    ] * runs


class TestHardNegatives:
    def marks_of(self, ax):
        """Epochs and costs of the filled marks."""
        filled = [line for line in ax.lines if line.get_linestyle() == "None"]
        return [point for line in filled for point in zip(*line.get_data(), strict=True)]

    def test_epochs_of_new_hard_negatives_are_marked(self):
        losses = [4.0, 2.0, 3.0, 2.5, 2.0, 1.9]
        plain = History(list(range(1, 7)), losses, [{}] * 6)
        other = History(list(range(1, 7)), losses, [{}] * 6, ranked=[3, 6])
        figure = loss_figure([plain, other], ["plain", "other"])
        assert self.marks_of(figure.axes[0]) == [(3, 3.0), (6, 1.9)]
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        assert names == ["plain", "other", "new hard negatives"]
        figure = loss_figure([plain], ["plain"])
        assert self.marks_of(figure.axes[0]) == []
        assert len(figure.legends[0].get_texts()) == 1

    def test_a_training_records_them(self):
        settings = {"cells": 2, "epochs": 7, "batch_size": 16, "threads": 1}
        model = train(made_up_log(), output="hard", hard_negatives=1, **settings)
        expected = [3, 6]
        marked = [line["epoch"] for line in model.history if "hard_negatives_ranked" in line]
        assert marked == read_history("hard").ranked == expected
        assert read_history("hard/history.jsonl").ranked == expected
        assert self.marks_of(plot_loss(model).figure.axes[0])
        # As written before histories recorded it: the settings tell.
        path = Path("hard/history.jsonl")
        path.write_text(path.read_text().replace(', "hard_negatives_ranked": true', ""))
        assert "ranked" not in path.read_text() and read_history("hard").ranked == expected
        Path("hard/config.json").write_text("{")
        assert read_history("hard").ranked == []
        easy = train(made_up_log(), hard_negatives=0, **settings)
        assert not any("hard_negatives_ranked" in line for line in easy.history)

    def test_a_pair_model_has_its_lists_before_the_training(self):
        lines = [{"epoch": epoch, "loss": 1.0} for epoch in range(1, 8)]
        assert History.of(lines, {"hard_negatives": 2, "teacher": "bm25"}).ranked == []
        assert History.of(lines, {"hard_negatives": 2}).ranked == [3, 6]
        assert History.of(lines, {}).ranked == []


@pytest.mark.filterwarnings("ignore:no installed font has")
@pytest.mark.filterwarnings("error")
def test_labels_of_every_script(tmp_path):
    history = History([1], [2.0], [{}])
    labels = ["$x_1$", "上海 🏨", "_hidden", "мир\n\0", ""]
    figure = loss_figure([history] * 5, labels)
    save_figure(figure, tmp_path / "loss.svg")
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["$x_1$", "上海 🏨", "_hidden", "мир", ""]


def test_runs_are_called_by_their_folders():
    for name in ("a/model", "b/model", "rnn"):
        write_run(name, [1.0])
    assert run_names(["a/model", "rnn/history.jsonl"]) == ["model", "rnn"]
    assert run_names(["a/model/history.jsonl", "b/model"]) == ["a/model", "b/model"]


def test_an_untrained_model_has_no_cost(model):
    model.save_pretrained("untrained")
    with pytest.raises(SentembError, match="no epoch is recorded here; give a trained model"):
        read_history("untrained")


def test_command_writes_a_figure():
    write_run("lstm", [3.0, 2.0], [0.5, 0.6])
    write_run("rnn", [4.0, 0])
    said = run("lstm", "rnn/history.jsonl")
    assert said == (
        "rnn/history.jsonl: a cost of 0 cannot be drawn on a logarithmic scale\n"
        "loss.png: training cost of 2 runs, ndcg@1 of 1\n"
    )
    assert Path("loss.png").read_bytes().startswith(b"\x89PNG")
    run("lstm", "rnn", "--label", "one", "--label", "two", "--metrics", "ndcg@10", "-o", "x.svg")
    assert Path("x.svg").read_bytes().startswith(b"<?xml")


def test_trainings_on_labels_show_their_accuracy():
    write_run("labels", [0.7, 0.5], [0.6, 0.8])
    text = Path("labels/history.jsonl").read_text().replace('"ndcg@1"', '"accuracy"')
    Path("labels/history.jsonl").write_text(text.replace(', "ndcg@10": 0.9', ""))
    write_run("clicks", [1.0, 0.9], [0.5, 0.6])
    labels, clicks = read_history("labels"), read_history("clicks")
    assert figure_of([labels]) == "accuracy" and figure_of([labels, clicks]) == "ndcg@1"
    (dev,) = loss_figure([labels], ["labels"], ["accuracy"]).axes[1:]
    assert dev.get_ylabel() == "accuracy on dev"
    assert curves_of(dev) == [([1, 2], [0.6, 0.8])]
    assert run("labels") == "loss.png: training cost of 1 run, accuracy of 1\n"
    assert run("labels", "clicks", "--force") == "loss.png: training cost of 2 runs, ndcg@1 of 1\n"


BAD_LINES = {
    "{": "not JSON",
    "[" * 100_000: "not JSON",
    "[1]": "not a JSON object",
    "": "not JSON",
    '{"loss": 1}': "the epoch is None",
    '{"epoch": true, "loss": 1}': "the epoch is True",
    '{"epoch": 1, "loss": 1}': "epoch 1 comes after epoch 1",
    '{"epoch": 2, "loss": NaN}': "the loss is nan",
    '{"epoch": 2, "loss": -1}': "the loss is -1",
    '{"epoch": 2, "loss": "1"}': "the loss is '1'",
    '{"epoch": 2, "loss": 1, "dev": [1]}': "dev is not",
    '{"epoch": 2, "loss": 1, "dev": {"ndcg@1": null}}': "dev is not",
}


@pytest.mark.parametrize(("line", "reason"), BAD_LINES.items(), ids=range(len(BAD_LINES)))
def test_damaged_lines_are_named(line, reason):
    Path("history.jsonl").write_text(f'{{"epoch": 1, "loss": 1}}\n{line}\n')
    said = run("history.jsonl", code=1)
    assert said.startswith(f"Error: history.jsonl:2: {reason}")
    assert said.count("\n") == 1
    assert not Path("loss.png").exists()


def test_mistakes():
    write_run("lstm", [3.0])
    Path("empty").mkdir()
    Path("latin").write_bytes(b'{"epoch": \xfc}')
    assert "Missing argument 'RUN...'" in run(code=2)
    assert "2 runs, but 1 labels" in run("lstm", "lstm", "--label", "a", code=2)
    run("lstm", "--metrics", "ndcg@5", code=2)
    assert "empty: no history.jsonl is here" in run("empty", code=1)
    assert "nowhere: cannot be read" in run("nowhere", code=1)
    assert "latin:1:11: not valid UTF-8" in run("latin", code=1)
    assert "use .png, .svg or .pdf" in run("lstm", "-o", "loss.jpg", code=1)
    assert "cannot be written" in run("lstm", "-o", "latin/loss.png", code=1)


def test_the_metrics_are_those_that_training_writes():
    from sentemb.cli.plot_loss import command
    from sentemb.models.files.history import ACCURACY
    from sentemb.training.dev import CLICKS_METRICS, DEV_CUTOFFS

    (metrics,) = (option for option in command.params if option.name == "metrics")
    assert list(metrics.type.choices) == [
        *(f"ndcg@{k}" for k in DEV_CUTOFFS),
        *CLICKS_METRICS,
        ACCURACY,
    ]
