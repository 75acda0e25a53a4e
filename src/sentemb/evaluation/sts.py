"""How well the cosines of a model agree with human similarity scores (the STS tasks)."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sentemb.data.similarity_set import SimilaritySet
from sentemb.errors import SentembError
from sentemb.evaluation.correlation import pearson, spearman
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.vectors.sif import SIF
from sentemb.models.vectors.vector_options import COMPONENTS, FIT_U, REMOVAL, SIDES_OPTION
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.bounds import brief
from sentemb.system.html_tables import html_table
from sentemb.text.words import PLAIN


@dataclass(frozen=True)
class Correlation:
    """Correlation of a model's cosines with the scores of a set, or its mean over several sets.

    Attributes
    ----------
    name : str
        The set, or the folder of the sets.
    pairs : int
        Number of pairs, summed over the sets.
    pearson, spearman : float
        From -1 to 1; NaN where all cosines of a set are equal.
    unknown : int
        Texts without a word that the model knows.
    """

    name: str
    pairs: int
    pearson: float
    spearman: float
    unknown: int

    def _repr_html_(self) -> str:
        return _table([self])


@dataclass(frozen=True)
class Correlations:
    """Correlations of a model on sets of sentence pairs, as `sts` returns them.

    Attributes
    ----------
    sets : list of Correlation
        One for each set, in the order given.
    folders : list of Correlation
        The mean over the sets of each folder, as the paper averages the tasks of a year.
    mean : Correlation
        The mean over the folders.
    """

    sets: list[Correlation]
    folders: list[Correlation]
    mean: Correlation

    def _repr_html_(self) -> str:
        folders = self.folders if len(self.folders) > 1 else []
        return _table([*self.sets, *folders, self.mean])


def _table(rows: Sequence[Correlation]) -> str:
    heads = ["set", "pairs", "Pearson", "Spearman", "texts without a known word"]
    shown = [(row.name, row.pairs, row.pearson, row.spearman, row.unknown) for row in rows]
    return html_table(shown, heads, texts=(0,))


def sts(
    model: SentenceEncoder,
    sets: Sequence[SimilaritySet],
    fit_u: str = FIT_U.default,
    components: int = COMPONENTS.default,
    sides: str = SIDES_OPTION.default,
    removal: str = REMOVAL.default,
) -> Correlations:
    """Correlate the cosines of pairs of texts with human similarity scores.

    The first text of a pair is read by the query tower, the second by the document tower.

    Parameters
    ----------
    model : SentenceEncoder
        Any model that `load` returns.
    sets : list of SimilaritySet
        See `read_similarity_set`.
    fit_u : {"model", "each-file", "all"}
        Texts that the common components come from: those of the model; those of each set, as in
        the paper, where a score then depends on the other pairs of the set; or those of all sets.
        The last two need a SIF model with 0 components.
    components, sides, removal
        As in `SIF`, for components that do not come from the model.

    Returns
    -------
    Correlations

    Raises
    ------
    SentembError
        For a wrong setting, a model whose components cannot be chosen, or texts with fewer
        components than asked for.

    Examples
    --------
    ::

        model = SIF("glove.6B.100d.txt", components=0).fit()
        sts(model, [read_similarity_set("2012/OnWN.tsv")], fit_u="each-file").mean.pearson
    """
    if not isinstance(model, SentenceEncoder):
        raise SentembError(f"the model is {brief(model)}; give one that sentemb.load returns")
    if not sets or not all(isinstance(each, SimilaritySet) for each in sets):
        raise SentembError("there are no similarity sets; give a list of SimilaritySet")
    models = _models(model, sets, fit_u, components, sides, removal)
    correlations = [_correlation(*pair) for pair in zip(models, sets, strict=True)]
    folders = _means_of_folders(sets, correlations)
    return Correlations(correlations, folders, _mean("mean", folders))


def _means_of_folders(
    sets: Sequence[SimilaritySet], correlations: Sequence[Correlation]
) -> list[Correlation]:
    by_folder: dict[str, list[Correlation]] = {}
    for similarity_set, correlation in zip(sets, correlations, strict=True):
        by_folder.setdefault(similarity_set.folder, []).append(correlation)
    return list(itertools.starmap(_mean, by_folder.items()))


def _models(
    model: SentenceEncoder,
    sets: Sequence[SimilaritySet],
    fit_u: str,
    components: int,
    sides: str,
    removal: str,
) -> Iterator[SentenceEncoder]:
    if fit_u == "model":
        yield from itertools.repeat(model, len(sets))
        return
    sif = _with_components(model, fit_u, components, sides, removal)
    if fit_u == "all":
        first = [text for similarity_set in sets for text in similarity_set.first]
        second = [text for similarity_set in sets for text in similarity_set.second]
        yield from itertools.repeat(sif.fit(first, second), len(sets))
        return
    for similarity_set in sets:
        try:
            yield sif.fit(similarity_set.first, similarity_set.second)
        except SentembError as error:
            raise SentembError(f"{similarity_set.name}: {error}") from error


def _with_components(
    model: SentenceEncoder, fit_u: str, components: int, sides: str, removal: str
) -> SIF:
    """SIF on the weighted word vectors of ``model``, for `fit` on some texts."""
    FIT_U.checked(fit_u)
    training, vocabulary = model.training, model.vocabulary
    is_weighted_average = (
        training.get("method") == "sif"
        and training.get("components") == 0
        and model.encoder.name == "bag"
        and not vocabulary.trigrams
        and vocabulary.splitting == PLAIN
    )
    if not is_weighted_average:
        raise SentembError(
            f"fit_u {fit_u} needs a SIF model from which no components were removed; make one with "
            "`sentemb sif --components 0`"
        )
    table = model.weights["query"]["table"]
    # The rows are weighted already. Words outside the texts would only take time.
    return SIF(
        WordVectors(vocabulary.words, table, name="the model"),
        weights="none",
        keep="texts",
        components=components,
        sides=sides,
        removal=removal,
    )


def _correlation(model: SentenceEncoder, similarity_set: SimilaritySet) -> Correlation:
    every = np.arange(len(similarity_set))
    cosines = model.score_pairs(similarity_set.first, similarity_set.second, every, every)
    unknown = sum(
        _without_known_words(model, texts)
        for texts in (similarity_set.first, similarity_set.second)
    )
    return Correlation(
        similarity_set.name,
        len(similarity_set),
        pearson(cosines, similarity_set.scores),
        spearman(cosines, similarity_set.scores),
        unknown,
    )


def _without_known_words(model: SentenceEncoder, texts: Sequence[str]) -> int:
    """Count the texts with no known words."""
    batch = model.vocabulary.batch(texts)
    is_known = np.diff(batch.feature_offsets) > 0
    before = np.concatenate([[0], np.cumsum(is_known[batch.word_index])])
    return int(np.count_nonzero(np.diff(before[batch.offsets]) == 0))


def _mean(name: str, correlations: Sequence[Correlation]) -> Correlation:
    return Correlation(
        name,
        sum(correlation.pairs for correlation in correlations),
        float(np.mean([correlation.pearson for correlation in correlations])),
        float(np.mean([correlation.spearman for correlation in correlations])),
        sum(correlation.unknown for correlation in correlations),
    )
