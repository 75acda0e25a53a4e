"""The ranker of a model: a weighted sum of cosine, BM25 and the memory of the click log.

    score(q, t) = w_cosine · cosine(q, t)
                + w_bm25 · BM25(q, t) / max over all titles of BM25(q, ·)
                + w_memory · memory(q, t)

`sentemb.ranking.parts` defines the parts; docs/ranker.md says when the sum helps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sentemb.bounds import whole
from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.kernels.top_k import top_k
from sentemb.models.ranking import how_many
from sentemb.ranking.memory import Remembered
from sentemb.ranking.parts import TitleParts, weighted_sum
from sentemb.ranking.ranker_files import StoredRanker, write_ranker
from sentemb.ranking.recipe import COSINE, MEMORY, PART_NAMES, PARTS, Recipe
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.storage.model_files import fingerprint, load_model
from sentemb.system.files import path_of
from sentemb.system.html_tables import facts_table
from sentemb.system.locks import locked
from sentemb.system.parallel import Turn, Workers
from sentemb.system.paths import AnyPath
from sentemb.text.checks import as_pairs, as_text, as_texts


@dataclass(frozen=True)
class Share:
    """What one part adds to the score of a query and a title.

    Attributes
    ----------
    part : str
        "cosine", "bm25" or "memory".
    weight, value : float
        The part adds ``weight * value`` to the score.
    nearest : Remembered or None
        Of the memory: the clicked query of the title that is nearest to the query, and its cosine.
        None if the title has no clicked query.
    """

    part: str
    weight: float
    value: float
    nearest: Remembered | None = None

    @property
    def added(self) -> float:
        """``weight * value``."""
        return self.weight * self.value

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        found: dict[str, Any] = {"part": self.part, "weight": self.weight, "value": self.value}
        found["added"] = self.added
        if self.part == MEMORY:
            found["nearest_query"] = None if self.nearest is None else self.nearest._asdict()
        return found


class HybridRanker:
    """Ranks titles by the sum of cosine, BM25 and the memory of the log.

    It is a `sentemb.protocols.Ranker` and, over its own titles, a `sentemb.protocols.Retriever`.
    It can be pickled, together with its model and its clicks. `sentemb.fit_ranker` makes one and
    `sentemb.load_ranker` reads the one of a model folder.

    Parameters
    ----------
    model : SentenceEncoder
        A model with two towers.
    recipe : Recipe
        The weights of the parts and the parameters of BM25.
    clicks : ClickLog or a function that returns one, optional
        The pairs that BM25 and the memory read. A function is called when they are first needed.
    titles : sequence of str, optional
        The catalogue that `find` ranks. By default the titles of ``clicks``.
    dev : dict, optional
        The dev figures of the sum and of its parts, as `sentemb.fit_ranker` measured them.
    threads : int, optional
        By default all processors. No score depends on it.

    Attributes
    ----------
    model : SentenceEncoder
    recipe : Recipe
    dev : dict

    Raises
    ------
    SentembError
        If the recipe needs clicks and there are none.

    Examples
    --------
    >>> import sentemb
    >>> ranker = sentemb.load_ranker("model/")  # doctest: +SKIP
    >>> ranker.rank("fix tap", ["Repair a Faucet", "Paint a Wall"])  # doctest: +SKIP
    [(0, 1.31), (1, 0.2)]
    """

    def __init__(
        self,
        model: SentenceEncoder,
        recipe: Recipe,
        clicks: ClickLog | Callable[[], ClickLog] | None = None,
        titles: Sequence[str] | None = None,
        dev: dict[str, Any] | None = None,
        threads: int | None = None,
    ) -> None:
        if recipe.needs_clicks and clicks is None:
            raise SentembError(f"the ranker {recipe} needs a click log; give its clicks")
        self.model, self.recipe, self.dev = model, recipe, dev or {}
        self._clicks, self._threads = clicks, threads
        self._workers = Workers(threads)
        self._titles = None if titles is None else as_texts(titles)
        self._prepared: TitleParts | None = None
        self._turn = Turn()

    def __getstate__(self) -> dict[str, Any]:
        # What is prepared is left out, and a function that reads the clicks cannot be pickled.
        return {
            "model": self.model,
            "recipe": self.recipe,
            "clicks": self.clicks if self.recipe.needs_clicks else None,
            "titles": self._titles,
            "dev": self.dev,
            "threads": self._threads,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"HybridRanker({self.recipe})"

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"score": str(self.recipe)}
        for part, figures in self.dev.get("figures", {}).items():
            name = PART_NAMES.get(part, part)
            facts |= {f"{metric} on dev, {name}": value for metric, value in figures.items()}
        return facts_table(facts)

    @property
    def clicks(self) -> ClickLog | None:
        """The pairs that BM25 and the memory read; None if no part reads them."""
        with self._turn.lock:
            if callable(self._clicks):
                self._clicks = self._clicks()
            return self._clicks

    @property
    def titles(self) -> list[str]:
        """The catalogue that `find` ranks.

        Raises
        ------
        SentembError
            If the ranker has none: it was given no titles, and no part needs the clicks.
        """
        if self._titles is None:
            if self.clicks is None:
                raise SentembError(
                    "the ranker has no titles of its own; give some, as with ranker.over(titles)"
                )
            self._titles = self.clicks.titles
        return self._titles

    def has_titles(self, titles: Sequence[str]) -> bool:
        """Whether the ranker was given these titles as its catalogue."""
        return self._titles is not None and self._titles == list(titles)

    def over(self, titles: Sequence[str]) -> HybridRanker:
        """The same ranker with another catalogue for `find`."""
        return self._with(self.recipe, titles)

    def alone(self, part: str) -> HybridRanker:
        """The ranker that consists of one part, ``"cosine"``, ``"bm25"`` or ``"memory"``."""
        other = self._with(self.recipe.alone(part), self._titles)
        if other.recipe.needs_clicks or part == COSINE:
            # What has been prepared serves every sum of the same parts.
            other._prepared = self._prepared
        return other

    def parts_alone(self) -> dict[str, HybridRanker]:
        """Each part of the sum as a ranker of its own, and the cosine in any case.

        Returns
        -------
        dict of str to HybridRanker
            By the names that tables have for them, such as "BM25 alone". Empty for a ranker that is
            the cosine.
        """
        if self.recipe.parts == (COSINE,):
            return {}
        names = [part for part in PARTS if part == COSINE or self.recipe.weight(part)]
        return {f"{PART_NAMES[part]} alone": self.alone(part) for part in names}

    def _with(self, recipe: Recipe, titles: Sequence[str] | None) -> HybridRanker:
        # The function that reads the clicks is called once, not by each copy.
        clicks = self.clicks if recipe.needs_clicks else None
        return HybridRanker(self.model, recipe, clicks, titles, self.dev, self._threads)

    # -- scores -------------------------------------------------------------------------------

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Scores of some pairs; see `sentemb.protocols.Ranker`.

        ``titles`` is the catalogue: BM25 counts words in it, and divides by its highest score in
        it. So a score depends on the other titles, for a judged set on the titles of the set.

        Parameters
        ----------
        queries, titles : list of str
            The texts that pairs are made of.
        query_index, title_index : (k,) int
            Pair j is ``queries[query_index[j]]`` with ``titles[title_index[j]]``.

        Returns
        -------
        (k,) float64
            Higher is better.

        Raises
        ------
        SentembError
            For what is not a list of texts, or indices that are not integers within the texts.
        """
        first, second = as_texts(queries), as_texts(titles)
        pairs = as_pairs(query_index, title_index, len(first), len(second))
        found = self._parts(second).of_pairs(first, *pairs, self.recipe.parts)
        return np.asarray(weighted_sum(self.recipe, found), np.float64)

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The titles of the catalogue with the highest scores; see `sentemb.protocols.Retriever`.

        Every title is scored, so the result is exact.

        Parameters
        ----------
        queries : sequence of str
            The queries.
        k : int
            Titles per query, from 1; at most all are found.

        Returns
        -------
        places, scores : (m, k) int64, (m, k) float64
            Best first, equal scores in the order of the titles.
        """
        asked, titles = as_texts(queries), self.titles
        k = min(whole("k", k, 1, 2**31 - 1), len(titles))
        places, scores = np.empty((len(asked), k), np.int64), np.empty((len(asked), k))
        for some, parts in self._parts(titles).of_all(asked, self.recipe.parts):
            total = weighted_sum(self.recipe, parts)
            best = places[some]
            self._workers.over(len(best), top_k, best, total)
            scores[some] = np.take_along_axis(total, best, axis=1)
        return places, scores

    @overload
    def rank(  # type: ignore[overload-overlap]
        self, query: str, titles: Sequence[str] | None = None, top_k: int | None = None
    ) -> list[tuple[int, float]]: ...
    @overload
    def rank(
        self, query: Sequence[str], titles: Sequence[str] | None = None, top_k: int | None = None
    ) -> list[list[tuple[int, float]]]: ...

    def rank(
        self,
        query: str | Sequence[str],
        titles: Sequence[str] | None = None,
        top_k: int | None = None,
    ) -> list[tuple[int, float]] | list[list[tuple[int, float]]]:
        """The best titles for a query, or for each of several queries.

        Parameters
        ----------
        query : str or list of str
            One query, or a list of them.
        titles : list of str, optional
            The titles to rank; by default those of the ranker.
        top_k : int, optional
            How many to return; by default all.

        Returns
        -------
        list of (int, float), or a list of such lists
            Index in ``titles`` and score, best first, equal scores in the order given. One list for
            each query if there is a list of them.
        """
        over = self if titles is None else self.over(titles)
        k = how_many(top_k, len(over.titles))
        queries = [query] if isinstance(query, str) else as_texts(query)
        if not over.titles or not queries:
            rankings: list[list[tuple[int, float]]] = [[] for _ in queries]
        else:
            places, scores = over.find(queries, k)
            rankings = [
                list(zip(*row, strict=True))
                for row in zip(places.tolist(), scores.tolist(), strict=True)
            ]
        return rankings[0] if isinstance(query, str) else rankings

    # -- explanations -------------------------------------------------------------------------

    def explain(self, query: str, title: str) -> list[Share]:
        """What each part adds to the score of a query and a title.

        Parameters
        ----------
        query, title : str
            The texts. A title that is not among `titles` is scored as if it were.

        Returns
        -------
        list of Share
            One for each part with a weight. What they add is the score.
        """
        query, title = as_text(query), as_text(title)
        catalogue = self.titles if self._titles is not None or self.clicks is not None else []
        if title not in catalogue:
            catalogue = [*catalogue, title]
        place = catalogue.index(title)
        pair = np.zeros(1, np.int64), np.array([place])
        parts = self._parts(catalogue)
        found = parts.of_pairs([query], *pair, self.recipe.parts)
        shares = []
        for part in self.recipe.parts:
            nearest = parts.nearest(query, place) if part == MEMORY else None
            shares.append(Share(part, self.recipe.weight(part), float(found[part][0]), nearest))
        return shares

    # -- files --------------------------------------------------------------------------------

    def save(self, folder: AnyPath) -> None:
        """Write the ranker into the folder of its model, in place of the one there.

        The ranker is then the one before or the new one, also if the process is killed. If a part
        reads the log, the file holds its queries and clicked titles as plain text.

        Parameters
        ----------
        folder : path
            Holds the model of this ranker.

        Raises
        ------
        SentembError
            If the folder holds another model, another process writes there, or it cannot be
            written.
        """
        place, sha256 = path_of(folder), fingerprint(self.model.saved())
        if fingerprint(load_model(place)) != sha256:
            raise SentembError(
                f"{folder}: holds another model than that of the ranker; save the model there "
                "first, or name its folder"
            )
        clicks = self.clicks if self.recipe.needs_clicks else None
        with locked(place):
            write_ranker(place, StoredRanker(sha256, self.recipe, self.dev, clicks))

    # -- inside -------------------------------------------------------------------------------

    def _parts(self, titles: list[str]) -> TitleParts:
        """The parts over ``titles``; those of the last catalogue are kept."""
        with self._turn.lock:
            if self._prepared is None or self._prepared.titles != titles:
                # Read only if a part with a weight needs them.
                clicks = self.clicks if self.recipe.needs_clicks else None
                self._prepared = TitleParts(self.model, titles, self.recipe, clicks, self._workers)
            return self._prepared


class CatalogueRanker:
    """The scores of a ranker over its own titles, for some of them: a `sentemb.protocols.Ranker`.

    `HybridRanker.score_pairs` takes the titles that it is given for the catalogue. Where titles are
    scored in portions, that would make a score depend on the portion.

    Parameters
    ----------
    ranker : HybridRanker
        Its titles are the catalogue.
    """

    def __init__(self, ranker: HybridRanker) -> None:
        self._ranker = ranker
        self._place_of = {title: place for place, title in enumerate(ranker.titles)}

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Scores of some pairs, (k,) float64; ``titles`` are in the catalogue."""
        places = np.array([self._place_of[title] for title in titles], np.int64)
        return self._ranker.score_pairs(
            queries, self._ranker.titles, query_index, places[title_index]
        )
