"""The answers of the server, as JSON-serialisable values; nothing here knows of HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sentemb.analysis.explanation import Explainer, unknown_words
from sentemb.bridges.page.search_page import facts_of
from sentemb.data.click_log import ClickLog
from sentemb.models.files.model_files import fingerprint
from sentemb.models.sentence_encoder import GateTrace
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.search.filters import known_column, sort_order
from sentemb.search.index import Index
from sentemb.search.searcher import Hit
from sentemb.system.bounds import valid_unicode
from sentemb.system.time_limits import check_time
from sentemb.version import __version__

# Pairs of a query and a title, and characters of queries, that are scored between two looks at the
# clock.
_PAIRS, _CHARACTERS = 20_000_000, 20_000
# Gates as an answer names them, and as `GateTrace` does.
_GATES = {
    "input": "i",
    "forget": "f",
    "output": "o",
    "candidate": "y_g",
    "cell": "c",
    "y": "y",
}
_DECIMALS = 3


class Answers:
    """Searches an index and explains its results; several threads may use one object.

    The index must not change while it is in use; the page calls it ``name``. The ``log`` is
    evidence for explanations; its queries are embedded here, once, and ``on_progress`` is called
    with the numbers of those that are embedded and of all.
    """

    def __init__(
        self,
        index: Index,
        log: ClickLog | None = None,
        name: str = "index",
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.index, self.name, self._has_log = index, valid_unicode(name), log is not None
        self._explainer = Explainer(index.ranker, log, on_progress)
        self._is_recurrent = isinstance(index.model.encoder, RecurrentEncoder)
        self._model_sha256 = fingerprint(index.model.saved())
        source = index.snapshot.source
        # Of the model, and of the index, if it is in a folder.
        self.identity = self._model_sha256, "" if source is None else source[1]
        self._began = time.monotonic()
        # Made on first use, which takes a moment, or fails.
        if index.ranker.embedding is not None:
            index.ranker.embedding.open()
        for _ in range(2):  # the table of the ids from the second time on
            index.rows_of([])
        index.suggest("")

    def facts(self) -> dict[str, Any]:
        """Facts about the index and the requests that it can answer."""
        return facts_of(self.index, self.name, self._has_log)

    def health(self) -> dict[str, Any]:
        """That the server runs, for how long, and the facts."""
        return {
            "status": "ok",
            "version": __version__,
            "uptime_seconds": round(time.monotonic() - self._began, 3),
            "dim": self.index.model.dim,
            "dtype": self.index.dtype,
            "model_sha256": self._model_sha256,
            **self.facts(),
        }

    def search(self, queries: Sequence[str], k: int, **asked: Any) -> list[dict[str, Any]]:
        """Search the index for each query, with the arguments of `Index.search`.

        Queries are searched in portions, and the clock of `sentemb.system.time_limits` is looked at
        before each.
        """
        results = []
        for part in _portions(queries, max(1, _PAIRS // max(1, len(self.index)))):
            check_time()
            hits = self.index.search(part, k, **asked)
            results += [self._result(*pair) for pair in zip(part, hits, strict=True)]
        return results

    def similar(self, id: str, k: int, **asked: Any) -> dict[str, Any]:
        """The titles similar to another, with the arguments of `Index.similar`; see `search`."""
        return self._result(self.title_of(id) or "", self.index.similar(id, k, **asked))

    def check_fields(self, fields: Mapping[str, Any]) -> None:
        """Raise a `SentembError` for a condition or a field that is wrong; see `search`."""
        columns = self.index.fields
        if "where" in fields:
            columns.mask(fields["where"])
        if "sort" in fields:
            sort_order(fields["sort"], columns.types)
        for name in fields.get("facets", ()):
            known_column(name, columns.types)

    def _result(self, query: str, hits: list[Hit]) -> dict[str, Any]:
        is_named = self.index.has_id(query)
        result: dict[str, Any] = {
            "query": query,
            # The model need not know an id that was found.
            "unknown": [] if is_named else unknown_words(self.index.model, query),
            "hits": list(hits),
        }
        if facets := getattr(hits, "facets", {}):
            result["facets"] = facets
        for name, attribute in (("no_match", "reason"), ("did_you_mean", "did_you_mean")):
            if (value := getattr(hits, attribute, None)) is not None:
                result[name] = value
        if nearest := getattr(hits, "nearest", []):
            result["nearest"] = nearest
        return result

    def suggest(self, begun: str) -> dict[str, Any]:
        """Frequent queries that begin with a text; see `Index.suggest`."""
        return {"query": begun, "suggestions": self.index.suggest(begun)}

    def n_unknown(self, ids: Sequence[str]) -> int:
        """How many of ``ids`` are not in the index."""
        return int((self.index.rows_of(ids) < 0).sum())

    def title_of(self, id: str) -> str | None:
        """The title with this id, or None."""
        product = self.index.get(id)
        return None if product is None else str(product["title"])

    def n_words(self, text: str) -> int:
        """The number of words that the model reads in ``text``."""
        return len(self.index.model.vocabulary.split(text))

    def explain(self, query: str, id: str, cosine: bool = False) -> dict[str, Any]:
        """Why a title has its score; see `sentemb.analysis.explanation.Explanation.as_dict`.

        ``id`` is that of a title of the index. ``ranker``, the score and the share of each part in
        it, takes the place of ``parts``. For ``cosine`` see `Index.search`.
        """
        title = self.title_of(id)
        assert title is not None  # the caller has looked
        searched = self.index.searched_texts(id)
        explained = self._explainer.explain(query, title, id=id, cosine=cosine, searched=searched)
        explanation = explained.as_dict()
        del explanation["parts"]
        (shares,) = self.index.explain(query, [id], cosine)
        score = sum(share.added for share in shares)
        return {
            **explanation,
            "ranker": {"score": score, "parts": [share.as_dict() for share in shares]},
        }

    def gates(self, query: str, title: str) -> dict[str, Any] | None:
        """The gates of the cells, word by word; None if the model has none."""
        if not self._is_recurrent:
            return None
        trace = self.index.model.trace
        return {
            "query": _gates(trace(query, side="query")),
            "title": _gates(trace(title, side="document")),
        }

    def encode(self, texts: Sequence[str], side: str, normalise: bool) -> dict[str, Any]:
        """The embeddings of texts; zeros for a text without words."""
        model = self.index.model
        vectors = model.encode(texts, side=side, normalize_embeddings=normalise)
        return {"side": side, "dim": model.dim, "vectors": vectors.tolist()}


def _portions(queries: Sequence[str], most: int) -> Iterator[list[str]]:
    """Queries in portions of at most ``most``, and of few if they are long."""
    portion: list[str] = []
    n_characters = 0
    for query in queries:
        n_characters += len(query)
        if portion and (len(portion) == most or n_characters > _CHARACTERS):
            yield portion
            portion, n_characters = [], len(query)
        portion.append(query)
    if portion:
        yield portion


def _gates(trace: GateTrace) -> dict[str, Any]:
    """Each gate that the model has as one list of numbers per word."""
    gates = {name: getattr(trace, attribute) for name, attribute in _GATES.items()}
    return {
        "words": trace.words,
        "gates": {
            name: values.astype(float).round(_DECIMALS).tolist()
            for name, values in gates.items()
            if values is not None
        },
    }
