"""SIF: weighted averages of word vectors without their common component, as a linear bag.

Arora, Liang and Ma, "A simple but tough-to-beat baseline for sentence embeddings" (ICLR 2017),
Algorithm 1. With a fixed component u, the vector of a text is a sum over its words of
(I - u u^T) weight(w) v_w, divided by their number, which does not change the cosine. So SIF is
a `bag` whose row for the word w is (I - u u^T) weight(w) v_w.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.kernels.sif import remove_components
from sentemb.models.files.saved_model import SavedModel
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers import make_encoder
from sentemb.models.towers.registry import MAX_CELLS
from sentemb.models.towers.towers import SIDES, Towers
from sentemb.models.vectors.averages import Moments, moments, only_known
from sentemb.models.vectors.components import Components, common_components
from sentemb.models.vectors.counts import checked_counts, read_counts
from sentemb.models.vectors.probabilities import relative_frequencies, zipf
from sentemb.models.vectors.reading import read_word_vectors
from sentemb.models.vectors.vector_limits import MAX_NUMBER, first_unsound, is_sound
from sentemb.models.vectors.vector_options import (
    CENTRE,
    COMPONENTS,
    HYPERPARAMETERS,
    KEEP,
    P_SOURCES,
    REMOVAL,
    SIDES_OPTION,
    UNKNOWN_P,
    WEIGHTS,
    A,
)
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.models.vectors.word_weights import (
    idf_code_weights,
    idf_weights,
    sif_weights,
    usif_weights,
)
from sentemb.retrieval.tokenizing import tokenize_all
from sentemb.system.bounds import brief
from sentemb.system.contracts import Arrays
from sentemb.system.html_tables import facts_table
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_texts
from sentemb.text.batch import Tokens
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import PLAIN, plain_words

# Rows that are in memory in float64 at once: of a sum, whose bits depend on it, and of a table,
# where they stay in the processor's cache.
_SUMMED_ROWS, _ROWS = 16_384, 1024


class SIF:
    """Turns word vectors into a model without training.

    Parameters
    ----------
    vectors : WordVectors or path
        See `read_word_vectors`. Texts are split into lower-cased runs of letters, digits and
        ``_``; vectors of other words are not used. A word that only has a vector in capitals has
        that of its first spelling.
    weights : {"sif", "usif", "idf", "idf-code", "none"}
        The weight of a word; idf is computed from the texts.
    a : float
        The a of a / (a + p(w)).
    p : {"rank", "texts", "vectors"}, mapping or path
        Source of the word probabilities: Zipf's law and the rank of a word among the vectors, or
        counts: those in the texts, those stored with the vectors, a mapping from word to count,
        or a file with one word and its count per line.
    unknown_p : {"rank", "zero", "one"}
        The probability of a word without a count; see `relative_frequencies`.
    centre : {"none", "vocabulary", "probability"}
        The mean that is subtracted from every word vector.
    keep : {"all", "texts"}
        Words of the model: all that have a vector, or only those in the texts.
    components : int
        How many common components are removed, less than the length of a vector.
    removal : {"full", "weighted"}
        See `common_components`.
    sides : {"one", "each"}
        Whether queries and titles have the same components.

    Attributes
    ----------
    components_ : dict of Components
        After `fit`: what was removed on the sides ``"query"`` and ``"document"``.

    Raises
    ------
    SentembError
        For a wrong setting, or vectors that cannot be read.

    Examples
    --------
    ::

        model = SIF("glove.6B.100d.txt").fit(queries, titles)
        model.score("cheap flights", ["Low-cost air travel", "Cheap shoes"])
    """

    def __init__(
        self,
        vectors: WordVectors | AnyPath,
        *,
        weights: str = WEIGHTS.default,
        a: float = A.default,
        p: str | Mapping[str, int] | AnyPath = "rank",
        unknown_p: str = UNKNOWN_P.default,
        centre: str = CENTRE.default,
        keep: str = KEEP.default,
        components: int = COMPONENTS.default,
        removal: str = REMOVAL.default,
        sides: str = SIDES_OPTION.default,
    ) -> None:
        given = {
            "weights": weights,
            "a": a,
            "unknown_p": unknown_p,
            "centre": centre,
            "keep": keep,
            "components": components,
            "removal": removal,
            "sides": sides,
        }
        self.settings = {
            parameter.name: parameter.checked(given[parameter.name])
            for parameter in HYPERPARAMETERS
        }
        if self.settings["a"] != A.default and weights != WEIGHTS.default:
            raise SentembError(f"the weights {weights} have no a; leave a out")
        self.vectors: WordVectors = _read(vectors)
        vectors = self.vectors
        if not len(vectors) or not 1 <= vectors.dim <= MAX_CELLS:
            raise SentembError(
                f"{vectors.name}: {len(vectors):,} vectors of length {vectors.dim}; give some of "
                f"length 1 to {MAX_CELLS}"
            )
        self._p_name, self._counts = named_counts(p, vectors)
        if components >= vectors.dim:
            raise SentembError(
                f"components is {components}; give fewer than {vectors.dim}, the length of a vector"
            )
        self.components_: dict[str, Components] = {}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"SIF({self.vectors!r}, p={self._p_name!r}, {settings})"

    def _repr_html_(self) -> str:
        """The settings, and after `fit` the components that were removed."""
        settings = {name: str(value) for name, value in self.settings.items()}
        facts = facts_table({"vectors": self.vectors, "p": self._p_name, **settings})
        if not self.components_:
            return f"{facts}<p>not fitted yet</p>"
        removed = self.distinct_components().items()
        shown = (
            f"<p>{f'removed from {side}' if side else 'removed'}</p>{components._repr_html_()}"
            for side, components in removed
        )
        return facts + "".join(shown)

    def fit(
        self,
        queries: Sequence[str] = (),
        titles: Sequence[str] = (),
        threads: int | None = None,
        also: Sequence[str] = (),
    ) -> SentenceEncoder:
        """Make the model; its components (and idf weights) come from these texts.

        Parameters
        ----------
        queries, titles : list of str
            With ``sides="one"`` they form one set of texts, and one of the lists may be empty. Both
            may be empty if no setting needs texts. A text that occurs twice counts twice.
        threads : int, optional
            By default all processors. The model has the same bits for any number.
        also : list of str
            Texts whose words a model with ``keep="texts"`` also keeps. They have no other effect.

        Returns
        -------
        SentenceEncoder
            A linear bag: whatever works with a trained bag works with it.

        Raises
        ------
        SentembError
            If the settings need more texts.
        """
        texts = {"query": as_texts(queries), "document": as_texts(titles)}
        tokens = {side: tokenize_all(of_side, plain_words) for side, of_side in texts.items()}
        self._check_texts(tokens)
        rows_of = {side: self.vectors.rows(of_side.words) for side, of_side in tokens.items()}
        p = self._probabilities(tokens)
        weights = self._weights(p, tokens)
        mean = self._mean(p)
        with Workers(threads) as workers:
            self.components_ = self._components(tokens, rows_of, weights, mean, workers)
            of_also = self.vectors.rows(tokenize_all(as_texts(also), plain_words).words)
            rows = self._rows([*rows_of.values(), of_also])
            words = list(map(self.vectors.words.__getitem__, rows.tolist()))
            table = self._table(rows, weights, mean)
            if not table.any():
                raise SentembError(
                    "all word vectors times their weights are 0; give other texts, counts or "
                    "weights"
                )
            tables: dict[str, Arrays] = {}
            shared = self.components_["query"] is self.components_["document"]
            for side in SIDES[:1] if shared else SIDES:
                # The last side needs no copy.
                side_table = table if side == SIDES[-1] or shared else table.copy()
                removed = self.components_[side]
                if len(removed.strengths):
                    arguments = side_table, removed.directions, removed.strengths
                    workers.over(len(side_table), remove_components, *arguments)
                tables[side] = {"table": side_table}
        towers = Towers.of(
            make_encoder("bag", cells=self.vectors.dim), Vocabulary([], words, PLAIN), tables
        )
        return SentenceEncoder.of(SavedModel(towers, self._record(texts)), threads)

    def distinct_components(self) -> dict[str, Components]:
        """The removed components by side, or under ``""`` if both sides have the same."""
        if not self.components_:
            raise SentembError("no components are known yet; call fit first")
        query, document = (self.components_[side] for side in SIDES)
        if query is document:
            return {"": query}
        return {"queries": query, "titles": document}

    # -- the parts of `fit` -------------------------------------------------------------------

    def _check_texts(self, tokens: Mapping[str, Tokens]) -> None:
        n_texts = {side: side_tokens.offsets.size - 1 for side, side_tokens in tokens.items()}
        settings = self.settings
        if settings["sides"] == "each" and settings["components"]:
            missing = [side for side in SIDES if not n_texts[side]]
            if missing:
                what = {"query": "queries", "document": "titles"}[missing[0]]
                raise SentembError(
                    f"components for each side need queries and titles, and there are no {what}; "
                    "add a click log or a judged set, or set sides to one"
                )
        needs = {
            f"components {settings['components']}": settings["components"] > 0,
            f"weights {settings['weights']}": settings["weights"].startswith("idf"),
            "p texts": self._p_name == "texts",
            "keep texts": settings["keep"] == "texts",
        }
        asking = next((name for name, needed in needs.items() if needed), None)
        if asking is not None and not any(n_texts.values()):
            remedy = "set it to 0" if asking.startswith("components") else "choose another value"
            raise SentembError(f"{asking} needs texts, and there are none; give texts, or {remedy}")

    def _probabilities(self, tokens: Mapping[str, Tokens]) -> NDArray[np.float64]:
        """p(w) of every word that has a vector."""
        words = self.vectors.words
        counts = self._counts
        if self._p_name == "texts":
            total: Counter[str] = Counter()
            for side_tokens in tokens.values():
                used = np.bincount(side_tokens.word_index, minlength=len(side_tokens.words))
                total.update(dict(zip(side_tokens.words, used.tolist(), strict=True)))
            counts = total
        if counts is None:
            return zipf(len(words))
        return relative_frequencies(words, counts, self.settings["unknown_p"])

    def _weights(self, p: NDArray[np.float64], tokens: Mapping[str, Tokens]) -> NDArray[np.float64]:
        """The weight of every word that has a vector."""
        kind = self.settings["weights"]
        if kind == "sif":
            return sif_weights(p, self.settings["a"])
        if kind == "usif":
            return usif_weights(p)
        if kind == "none":
            return np.ones(len(p))
        formula = idf_weights if kind == "idf" else idf_code_weights
        return formula(self.vectors.words, _joined(tokens))

    def _mean(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean word vector, (d,)."""
        total = np.zeros(self.vectors.dim)
        if self.settings["centre"] == "none":
            return total
        shares = np.ones(len(p)) if self.settings["centre"] == "vocabulary" else p
        for low, rows in self._portions(np.arange(len(p)), _SUMMED_ROWS):
            # Not a product of matrices: its bits depend on the number of threads of the BLAS.
            total += (rows * shares[low : low + len(rows), None]).sum(axis=0)
        mean: NDArray[np.float64] = total / shares.sum()
        return mean

    def _portions(
        self, rows: NDArray[np.int64], size: int
    ) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield word vectors in float64, in portions, each with the place where it begins."""
        for low in range(0, rows.size, size):
            portion = self.vectors.vectors[rows[low : low + size]].astype(np.float64)
            if not is_sound(portion):
                row = rows[low + first_unsound(portion)]
                raise SentembError(
                    f"{self.vectors.name or 'word vectors'}: the vector of "
                    f"{brief(self.vectors.words[row])} has a number that is NaN, infinite or above "
                    f"{MAX_NUMBER:.0e}; leave the word out"
                )
            yield low, portion

    def _table(
        self, rows: NDArray[np.int64], weights: NDArray[np.float64], mean: NDArray[np.float64]
    ) -> NDArray[np.float32]:
        """weight(w) (v_w - mean) of some words, (k, d)."""
        table = np.empty((rows.size, self.vectors.dim), np.float32)
        for low, portion in self._portions(rows, _ROWS):
            portion_weights = weights[rows[low : low + len(portion)], None]
            portion -= mean
            portion *= portion_weights
            table[low : low + len(portion)] = portion
        return table

    def _components(
        self,
        tokens: Mapping[str, Tokens],
        rows_of: Mapping[str, NDArray[np.int64]],
        weights: NDArray[np.float64],
        mean: NDArray[np.float64],
        workers: Workers,
    ) -> dict[str, Components]:
        """The components of each side; the same object if both sides have the same."""
        k, weighted = self.settings["components"], self.settings["removal"] == "weighted"
        of_side: dict[str, Moments] = {}
        for side in SIDES if k else ():
            rows = rows_of[side]
            table = self._table(rows[rows >= 0], weights, mean)
            of_side[side] = moments(table, only_known(tokens[side], rows >= 0), workers)
        if not k or self.settings["sides"] == "one":
            d = self.vectors.dim
            none = Moments(np.zeros((d, d)), np.zeros(d), 0)
            shared = common_components(sum(of_side.values(), none), k, weighted)
            return dict.fromkeys(SIDES, shared)
        return {
            side: common_components(side_moments, k, weighted)
            for side, side_moments in of_side.items()
        }

    def _rows(self, of_texts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """The rows of the words that the model keeps, ascending.

        ``of_texts`` are those of the words of texts, -1 for a word without a vector.
        """
        vectors = self.vectors
        if self.settings["keep"] == "texts":
            rows = np.unique(np.concatenate(of_texts))
            rows = rows[rows >= 0]
        else:
            # Where plain_words(word) is [word]. "_" is a letter there.
            reachable = (
                word == word.lower() and word.replace("_", "a").isalnum() for word in vectors.words
            )
            rows = np.flatnonzero(np.fromiter(reachable, bool, len(vectors)))
        if not rows.size:
            raise SentembError(
                f"{vectors.name}: no word of it can occur in a text, because texts are split into "
                "lower-case runs of letters and digits; give other vectors"
            )
        return rows

    def _record(self, texts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """A record of how the model was made, for its folder."""
        vectors = self.vectors
        origin = {
            "name": vectors.name,
            "sha256": vectors.sha256,
            "words": len(vectors),
            "dim": vectors.dim,
            "source": vectors.source,
            "licence": vectors.licence,
        }
        return {
            "method": "sif",
            **self.settings,
            "p": self._p_name,
            "queries": len(texts["query"]),
            "titles": len(texts["document"]),
            "vectors": {name: value for name, value in origin.items() if value},
        }


def _read(vectors: WordVectors | AnyPath) -> WordVectors:
    if not isinstance(vectors, WordVectors):
        vectors = read_word_vectors(vectors)
    return vectors.with_small_letters()


def _joined(tokens: Mapping[str, Tokens]) -> Tokens:
    """The texts of both sides as one list."""
    query, document = (tokens[side] for side in SIDES)
    index_of = {word: number for number, word in enumerate(query.words)}
    renumbered = [index_of.setdefault(word, len(index_of)) for word in document.words]
    index = np.array(renumbered, np.int32)[document.word_index]
    return Tokens(
        word_index=np.concatenate([query.word_index, index]),
        offsets=np.concatenate([query.offsets, document.offsets[1:] + query.offsets[-1]]),
        words=list(index_of),
    )


def named_counts(
    p: str | Mapping[str, int] | AnyPath, vectors: WordVectors
) -> tuple[str, Mapping[str, int] | None]:
    """A name for the source of p, and its counts; None for those that come from elsewhere."""
    if isinstance(p, Mapping):
        return "counts", checked_counts(p)
    if isinstance(p, str) and p == "vectors":
        if vectors.counts is None:
            raise SentembError(
                f"{vectors.name}: no counts are stored with the vectors; choose another p, such as "
                "rank"
            )
        return "vectors", dict(zip(vectors.words, vectors.counts.tolist(), strict=True))
    if isinstance(p, str) and p in P_SOURCES:
        return p, None
    if isinstance(p, str | os.PathLike):
        return os.path.basename(os.fspath(p)), read_counts(p)
    raise SentembError(
        f"p is {brief(p)}; give one of {', '.join(P_SOURCES)}, a mapping of counts or a file"
    )
