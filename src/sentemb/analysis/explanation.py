"""Why a query and a title have their score: words, and what the log says of similar queries."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from sentemb.analysis.labels import TEXT_NAMES, fitting
from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.bm25 import FieldTexts
from sentemb.retrieval.clicked_queries import PIN
from sentemb.retrieval.nearest import nearest
from sentemb.search.index import Index
from sentemb.search.index_files import index_folder, is_index
from sentemb.search.ranking.opening import load_best
from sentemb.search.ranking.ranker import HybridRanker, Share
from sentemb.search.ranking.recipe import MODEL_ALONE, PARTS
from sentemb.system.bounds import whole
from sentemb.system.html_tables import html_table, shade
from sentemb.system.paths import AnyPath
from sentemb.system.tables import aligned, visible
from sentemb.text.arguments import as_text, as_texts

_MOST_QUERIES = 1000
# Queries of a log that are embedded at a time.
_PORTION = 8192
# Characters of a text in a table for a terminal.
_SHOWN = 48
_EFFECTS = "effect of each word: the score minus the score without it"
_SHARES = "what each part adds to the score"
_EVIDENCE = "the nearest queries of the log, and what was clicked for them"


@dataclass(frozen=True, eq=False)
class ExplainedText:
    """The effects of the T words of a text on a score.

    Attributes
    ----------
    text : str
    words : list of str
        In reading order, length T.
    effects : (T,) float64
        The score minus the score of the pair without this word; an empty text scores 0.
    unknown : list of str
        Words of which the model knows no feature; it reads them as zero.
    new : list of str or None
        Words that no query, or no title, of the log has; None without a log.
    """

    text: str
    words: list[str]
    effects: np.ndarray
    unknown: list[str]
    new: list[str] | None

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        effects = [
            {"word": word, "effect": effect}
            for word, effect in zip(self.words, self.effects.tolist(), strict=True)
        ]
        record: dict[str, Any] = {"text": self.text, "words": effects, "unknown": self.unknown}
        return record if self.new is None else {**record, "never_in_log": self.new}


@dataclass(frozen=True)
class SimilarQuery:
    """A query of the log.

    Attributes
    ----------
    query : str
    score : float
        Its cosine with the query that is explained; the query tower reads both.
    clicked : list of (str, int)
        Titles and their clicks for this query, most clicked first.
    """

    query: str
    score: float
    clicked: list[tuple[str, int]]

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        clicked = [{"title": title, "clicks": clicks} for title, clicks in self.clicked]
        return {"query": self.query, "score": self.score, "clicked": clicked}


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a query and a title have their score; `str` and notebooks show it as tables.

    Attributes
    ----------
    score : float
        The score that the title is ranked by.
    query, title : ExplainedText
    similar : list of SimilarQuery or None
        The nearest queries of the log, nearest first; None without a log.
    shares : list of Share
        The share of each part in the score.
    """

    score: float
    query: ExplainedText
    title: ExplainedText
    similar: list[SimilarQuery] | None
    shares: list[Share]

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        record: dict[str, Any] = {
            "score": self.score,
            "parts": [share.as_dict() for share in self.shares],
            "query": self.query.as_dict(),
            "title": self.title.as_dict(),
        }
        if self.similar is None:
            return record
        return {**record, "nearest_queries": [similar.as_dict() for similar in self.similar]}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.score:.3f}  {visible(self.title.text)}"
        yield _SHARES
        yield from (f"  {line}" for line in aligned(map(_cells_of, self.shares), left=4))
        yield _EFFECTS
        for name, text in self._texts():
            falling = np.argsort(-text.effects, kind="stable")
            shown = (f"{visible(text.words[k])} {text.effects[k]:+.2f}" for k in falling)
            yield f"{name:<8}{'  '.join(shown)}"
            for remark in self._remarks(name, text):
                yield f"{'':<8}{visible(remark)}"
        if self.similar is not None:
            yield _EVIDENCE
            rows = [
                (f"{similar.score:.3f}", fitting(similar.query, _SHOWN), _clicked(similar.clicked))
                for similar in self.similar
            ]
            yield from (f"  {line}" for line in aligned(rows, left=3))

    def _texts(self) -> list[tuple[str, ExplainedText]]:
        return list(zip(TEXT_NAMES.values(), (self.query, self.title), strict=True))

    def _remarks(self, name: str, text: ExplainedText) -> Iterator[str]:
        """Lines on the words of a text that are new to the log or unknown to the model."""
        if text.new:
            yield f"in no {name} of the log: {', '.join(text.new)}"
        if text.unknown:
            yield f"the model knows nothing of: {', '.join(text.unknown)}"

    def _repr_html_(self) -> str:
        heads = ["part", "adds", "weight and value", "from"]
        parts = [
            f"<p><b>{self.score:.3f}</b> {escape(self.title.text)}</p>",
            html_table([_cells_of(share) for share in self.shares], heads),
            f"<p>{escape(_EFFECTS)}</p>",
        ]
        for name, text in self._texts():
            largest = np.abs(text.effects).max() or 1.0
            parts.append(
                html_table(
                    [("effect", *(f"{effect:+.3f}" for effect in text.effects))],
                    [name, *text.words],
                    [[shade(effect / largest) for effect in text.effects]],
                )
            )
            parts += [f"<p>{escape(remark)}</p>" for remark in self._remarks(name, text)]
        if self.similar is not None:
            rows = [
                (f"{similar.score:.3f}", similar.query, _clicked(similar.clicked))
                for similar in self.similar
            ]
            parts.append(html_table(rows, ["cosine", "query of the log", "clicked"]))
        return "".join(parts)


def _cells_of(share: Share) -> list[str]:
    """A row of a table: the part, what it adds, how, and where its value comes from."""
    source = ""
    if share.nearest is not None:
        kind = "clicked query" if share.nearest.is_clicked else "the title itself"
        source = f"{kind}: {fitting(share.nearest.text, _SHOWN)}"
    elif share.clicks is not None:
        pins, clicks = divmod(share.clicks, PIN)
        counted = f"{clicks:,} {'click' if clicks == 1 else 'clicks'} for this query"
        source = f"pinned to this query, and {counted}" if pins else counted
    elif share.examined is not None:
        source = f"looked at {share.examined:.1f} times for this query"
    elif share.words:
        source = "  ".join(f"{visible(word)} {value:.2f}" for word, value in share.words)
    how = f"{share.weight:g} × {share.value:.3f}"
    return [PARTS[share.part], f"{share.added:+.3f}", how, source]


def _clicked(clicked: Sequence[tuple[str, int]]) -> str:
    """The most clicked title and how many others there are."""
    (title, clicks), *rest = clicked
    times = f"{clicks:,} × " if clicks > 1 else ""
    ending = f" and {len(rest):,} more" if rest else ""
    return f"{times}{fitting(title, _SHOWN)}{ending}"


class Explainer:
    """Explains scores of one model, with evidence from a click log that is embedded once.

    Several threads may use one object.

    Parameters
    ----------
    ranker : HybridRanker or SentenceEncoder
        The ranker of a model with two towers, or the model, which is ranked by its cosine.
    log : ClickLog, optional
        Shows which queries are the nearest, what was clicked for them, and which words are new.
    on_progress : function, optional
        Called with the numbers of queries of the log that are embedded and of all.

    Raises
    ------
    SentembError
        For a pair model.

    Examples
    --------
    >>> from sentemb.data.click_log import read_click_log
    >>> explainer = Explainer(model, read_click_log("pairs.tsv"))  # doctest: +SKIP
    >>> print(explainer.explain("coder", "Medical Records Specialists"))  # doctest: +SKIP
    """

    def __init__(
        self,
        ranker: HybridRanker | SentenceEncoder,
        log: ClickLog | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        if isinstance(ranker, PairScorer):
            raise SentembError(
                f"explain needs the vectors of a model with two towers, and a {ranker.model.name} "
                "has none; `sentemb plot-match` shows what carries its scores"
            )
        if isinstance(ranker, SentenceEncoder):
            ranker = HybridRanker(ranker, MODEL_ALONE)
        self.ranker, self.model = ranker, ranker.model
        self._evidence = None if log is None else _Evidence(self.model, log, on_progress)

    def explain(
        self,
        query: str,
        title: str,
        k: int = 5,
        id: str | None = None,
        cosine: bool = False,
        searched: Sequence[FieldTexts] = (),
    ) -> Explanation:
        """Explain the score of a query and a title, each with at least one word.

        ``k`` is the number of queries of the log to show. ``id`` is that of the title, by which its
        clicks are known; by default its text. ``cosine`` explains the cosine of the model alone.
        ``searched`` are the fields of the title in which words are searched. Raises `SentembError`
        for a text without words.
        """
        whole("k", k, 1, _MOST_QUERIES)
        query_words, title_words = _words_of(self.model, query, title)
        ranker = HybridRanker(self.model, MODEL_ALONE) if cosine else self.ranker
        effects = ranker.left_out(query, title, query_words, title_words, id, searched)
        evidence = self._evidence
        seen = (None, None) if evidence is None else (evidence.query_words, evidence.title_words)
        return Explanation(
            effects.score,
            self._explained(query, effects.of_query, seen[0]),
            self._explained(title, effects.of_title, seen[1]),
            None if evidence is None else evidence.similar_queries(query, k),
            ranker.explain(query, title, id, searched),
        )

    def _explained(self, text: str, effects: np.ndarray, seen: set[str] | None) -> ExplainedText:
        """One of the two texts; ``seen`` are the words of its side of the log."""
        words = self.model.vocabulary.split(text)
        new = None if seen is None else [word for word in dict.fromkeys(words) if word not in seen]
        return ExplainedText(text, words, effects, unknown_words(self.model, text), new)


def explain(
    model: SentenceEncoder | HybridRanker | Index | AnyPath,
    query: str,
    title: str | None = None,
    log: ClickLog | None = None,
    titles: Sequence[str] | None = None,
    k: int = 5,
    *,
    cosine: bool = False,
) -> Explanation:
    """Explain the score of a query and a title, with evidence from a click log.

    For many explanations make one `Explainer`: it embeds the queries of the log once.

    Parameters
    ----------
    model : SentenceEncoder, HybridRanker, Index or path
        The ranker of a model with two towers, or the model, which is ranked by its cosine. Or an
        index; a path is the folder of a model or of an index.
    query : str
        A query with at least one word.
    title : str, optional
        A title with at least one word; for an index also the id of one of its titles. By default
        the best one of ``titles``, or if these are not given of the index, or of the log's titles.
    log : ClickLog, optional
        Shows which queries are the nearest, what was clicked for them, and which words are new.
    titles : sequence of str, optional
        Where to look for the best title.
    k : int
        How many queries of the log to show.
    cosine : bool
        Explain the cosine of the model alone.

    Returns
    -------
    Explanation

    Raises
    ------
    SentembError
        For a pair model, for a text without words, or without any title to explain.

    Examples
    --------
    >>> from sentemb.data.click_log import read_click_log
    >>> log = read_click_log("pairs.tsv")  # doctest: +SKIP
    >>> print(explain(model, "coder", log=log))  # doctest: +SKIP
    """
    opened: Any = model
    if isinstance(model, str | os.PathLike):
        has_index = is_index(index_folder(model))
        opened = Index.open(model) if has_index else load_best(model, cosine=cosine)
    id: str | None = None
    searched: Sequence[FieldTexts] = ()
    if isinstance(opened, Index):
        if title is not None or titles is None:
            id, title = _of_index(opened, query, title, cosine)
            searched = opened.searched_texts(id)
        opened = (opened.model_alone() if cosine else opened).ranker
    elif cosine and isinstance(opened, HybridRanker):
        opened = opened.model
    ranker = Explainer(opened).ranker  # refuses a pair model before the titles are read
    whole("k", k, 1, _MOST_QUERIES)
    catalogue = log.titles if titles is None and log is not None else titles
    if title is None:
        if not catalogue:
            raise SentembError("nothing to explain; give a title, some titles or a log")
        catalogue = as_texts(catalogue)
        best = ranker.rank(as_text(query), catalogue, 1)
        if not best:
            raise SentembError("nothing is found for this query; give a title to explain")
        title = catalogue[best[0][0]]
    _words_of(ranker.model, query, title)  # refuses a text without words before the log is read
    return Explainer(ranker, log).explain(query, title, k, id, searched=searched)


def _of_index(index: Index, query: str, given: str | None, cosine: bool) -> tuple[str | None, str]:
    """Id and title of what is explained: ``given``, a title or an id, or the best title."""
    if given is None:
        hits = index.search(as_text(query), 1, cosine=cosine)
        if not hits:
            raise SentembError("the index finds nothing for this query; give a title to explain")
        return hits[0].id, hits[0].title
    # The first product that has the title.
    same = (id for id, title in zip(index.ids, index.titles, strict=True) if title == given)
    id = next(same, None) or index.id_named(as_text(given))
    return id, given if id is None else index[id]["title"]


def _words_of(model: SentenceEncoder, *texts: str) -> list[list[str]]:
    """The words of each text, of which there must be some."""
    words = [model.vocabulary.split(as_text(text)) for text in texts]
    if not all(words):
        raise SentembError("a text without words cannot be explained; give one with words")
    return words


def unknown_words(model: SentenceEncoder, text: str) -> list[str]:
    """The distinct words of a text of which the model knows no feature; it reads them as zero."""
    words = list(dict.fromkeys(model.vocabulary.split(text)))
    known = model.vocabulary.knows(words).tolist()
    return [word for word, is_known in zip(words, known, strict=True) if not is_known]


class _Evidence:
    """The queries of a log with their vectors, what was clicked for them, and all words."""

    def __init__(
        self,
        model: SentenceEncoder,
        log: ClickLog,
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        self._model, self._log = model, log
        split = model.vocabulary.split
        self.query_words = {word for text in log.queries for word in split(text)}
        self.title_words = {word for text in log.titles for word in split(text)}
        n = len(log.queries)
        self._vectors = np.empty((n, model.dim), model.dtype)
        for first in range(0, n, _PORTION):
            portion = slice(first, min(first + _PORTION, n))
            self._vectors[portion] = model.unit_vectors(log.queries[portion], "query")
            if on_progress is not None:
                on_progress(portion.stop, n)
        # Pairs by query, the most clicked first, equally clicked ones in the order of the log.
        self._pairs = np.lexsort((-log.clicks, log.query_index))
        self._first = np.searchsorted(log.query_index[self._pairs], np.arange(n + 1))

    def similar_queries(self, query: str, k: int) -> list[SimilarQuery]:
        """The ``k`` queries of the log whose vectors are nearest to that of ``query``."""
        log = self._log
        indices, scores = nearest(self._model.unit_vectors([query], "query"), self._vectors, k)
        similar = []
        for q, score in zip(indices[0].tolist(), scores[0].tolist(), strict=True):
            pairs = self._pairs[self._first[q] : self._first[q + 1]]
            clicked = [log.titles[t] for t in log.title_index[pairs]]
            counts = log.clicks[pairs].tolist()
            similar.append(
                SimilarQuery(log.queries[q], score, list(zip(clicked, counts, strict=True)))
            )
        return similar
