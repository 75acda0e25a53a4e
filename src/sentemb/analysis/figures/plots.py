"""Figures of models in one call, for notebooks and programs: `sentemb.plot_gates` and others."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sentemb.analysis.figures.cell_figure import cells_figure
from sentemb.analysis.figures.drawing import description, figure_png, save_figure
from sentemb.analysis.figures.flow_figure import flow_figure
from sentemb.analysis.figures.gate_figure import gates_figure
from sentemb.analysis.figures.keyword_figure import keywords_figure
from sentemb.analysis.figures.loss_figure import loss_figure
from sentemb.analysis.figures.match_figure import match_figure
from sentemb.analysis.gates import GateReading, read_gates
from sentemb.analysis.histories import History, figure_of, read_history
from sentemb.analysis.keywords import extract_keywords
from sentemb.analysis.pair_effects import match
from sentemb.errors import SentembError
from sentemb.gradients.flow import gradient_flow
from sentemb.models.face import Face
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.paths import AnyPath


class Drawing:
    """A figure that a notebook shows when it is the last value of a cell.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Any figure.

    Attributes
    ----------
    figure : matplotlib.figure.Figure
        To change it further.
    """

    def __init__(self, figure: Any) -> None:
        self.figure = figure

    def __repr__(self) -> str:
        width, height = self.figure.get_size_inches()
        shown = description(self.figure)
        return f"Drawing({shown}; {width:.1f} x {height:.1f} inches; save(path) writes it)"

    def _repr_png_(self) -> tuple[bytes, dict[str, str]]:
        # A notebook keeps what follows the picture; JupyterLab reads it to a reader who is blind.
        return figure_png(self.figure), {"alt": description(self.figure)}

    def save(self, path: AnyPath) -> None:
        """Write the figure as .png, .svg or .pdf, replacing an earlier one.

        Raises
        ------
        SentembError
            For another ending, or a file that cannot be written.
        """
        save_figure(self.figure, path)


def plot_gates(
    model: SentenceEncoder,
    query: str,
    title: str | None = None,
    *,
    gates: Iterable[str] | None = None,
    scale: str = "shared",
    compare_with: SentenceEncoder | None = None,
) -> Drawing:
    """Draw the gates, cell states and outputs of a model, word by word.

    Parameters
    ----------
    model : SentenceEncoder
        A recurrent model.
    query : str
        Read by the query tower.
    title : str, optional
        Read by the document tower and drawn next to the query.
    gates : iterable of str, optional
        Some of i, f, o, c, y; by default all that the model has.
    scale : {"shared", "own"}
        One colour scale for the whole figure, or one per panel.
    compare_with : SentenceEncoder, optional
        Another model that reads the same texts, drawn next to the first.

    Returns
    -------
    Drawing

    Raises
    ------
    SentembError
        If a model is not recurrent, for a text without words or with more than 200, or for a gate
        that no model has.

    Notes
    -----
    After Figures 4, 5 and 8 to 10 of Palangi et al. (arXiv 1502.06922).
    """
    _check_scale(scale)
    readings = _readings(model, compare_with, query, title)
    return Drawing(gates_figure(readings, scale, gates))


def plot_cells(
    model: SentenceEncoder,
    query: str,
    title: str | None = None,
    *,
    scale: str = "shared",
    compare_with: SentenceEncoder | None = None,
) -> Drawing:
    """Draw the outputs of the ten cells that are most active in the final vector, word by word.

    After Figures 6, 11 and 12 of Palangi et al.; parameters and errors are those of `plot_gates`.
    Two models must split the texts into the same words.
    """
    _check_scale(scale)
    return Drawing(cells_figure(_readings(model, compare_with, query, title), scale))


def plot_keywords(
    model: SentenceEncoder,
    text: str,
    side: str = "query",
    *,
    threshold: float | None = None,
    compare_with: SentenceEncoder | None = None,
) -> Drawing:
    """Draw how many of the most active cells change at each word; keywords are bold.

    Parameters
    ----------
    model : SentenceEncoder
        A recurrent model.
    text : str
        A text with at least one word.
    side : {"query", "document"}
        Which tower reads it.
    threshold : float, optional
        Smallest change of a cell that counts, instead of the mean change in the text.
    compare_with : SentenceEncoder, optional
        Another model, drawn below the first.

    Returns
    -------
    Drawing

    Raises
    ------
    SentembError
        If a model is not recurrent, for a text without words or with more than 200, or if the
        models split it into other words.

    Notes
    -----
    After Tables I, II and V to X of Palangi et al.
    """
    models = [model] if compare_with is None else [model, compare_with]
    keywords = [extract_keywords(model, text, side, threshold) for model in models]
    return Drawing(keywords_figure(keywords, _names(models)))


def plot_loss(
    runs: Mapping[str, Any] | AnyPath | SentenceEncoder | PairScorer,
    metrics: Sequence[str] | None = None,
) -> Drawing:
    """Draw the training cost, epoch by epoch, and metrics of the dev set if there is one.

    Parameters
    ----------
    runs : model, path, or dict of them
        Trained models or their folders; the keys of a dict are the names of the curves.
    metrics : sequence of str, optional
        Metrics of the dev set, such as ``["ndcg@10"]``, each drawn below the cost. By default the
        one that decides which epoch is kept.

    Returns
    -------
    Drawing

    Raises
    ------
    SentembError
        For a model or a folder without the history of a training.

    Notes
    -----
    After Figure 7 of Palangi et al.
    """
    named = runs if isinstance(runs, Mapping) else {_run_name(runs): runs}
    if not named:
        raise SentembError("no runs were given; give a trained model or its folder")
    histories = [_history(name, run) for name, run in named.items()]
    return Drawing(loss_figure(histories, list(named), metrics or [figure_of(histories)]))


def plot_match(model: PairScorer, query: str, title: str) -> Drawing:
    """Draw what carries the score of a pair model.

    Parameters
    ----------
    model : PairScorer
        For arc2 the figure also has its planes.
    query, title : str
        The pair.

    Returns
    -------
    Drawing

    Raises
    ------
    SentembError
        For a text without words or with more than 200.
    """
    return Drawing(match_figure(match(model, query, title)))


def plot_gradient_flow(
    models: Mapping[str, SentenceEncoder] | SentenceEncoder, query: str, title: str
) -> Drawing:
    """Draw how far the error of a pair's score travels back through both texts.

    Parameters
    ----------
    models : SentenceEncoder, or dict of them
        Recurrent models; the keys of a dict are the names of the curves.
    query, title : str
        The pair.

    Returns
    -------
    Drawing

    Raises
    ------
    SentembError
        If a model is not recurrent, or for a text without words.
    """
    named = models if isinstance(models, Mapping) else {models.encoder.name: models}
    return Drawing(
        flow_figure({name: gradient_flow(model, query, title) for name, model in named.items()})
    )


def _readings(
    model: SentenceEncoder, compare_with: SentenceEncoder | None, query: str, title: str | None
) -> list[GateReading]:
    models = [model] if compare_with is None else [model, compare_with]
    named = zip(models, _names(models), strict=True)
    return [read_gates(model, query, title, name) for model, name in named]


def _names(models: Sequence[SentenceEncoder]) -> list[str]:
    """The kinds of some models, numbered if they do not differ."""
    names = [model.encoder.name for model in models]
    if len(set(names)) == len(names):
        return names
    return [f"{name} {number}" for number, name in enumerate(names, 1)]


def _check_scale(scale: str) -> None:
    if scale not in ("shared", "own"):
        raise SentembError(f"scale must be shared or own, not {scale!r}")


def _run_name(run: Any) -> str:
    return run.shape.name if isinstance(run, Face) else Path(run).name


def _history(name: str, run: Any) -> History:
    if not isinstance(run, Face):
        return read_history(run)
    if not run.history:
        raise SentembError(f"{name}: no epoch is recorded; give a trained model")
    return History.of(run.history, run.training)
