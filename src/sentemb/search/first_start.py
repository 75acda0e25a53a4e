"""A search without its embedding, to compile the kernels that rank.

Another process compiles those that embed meanwhile; see `sentemb.kernels.compiling.ahead`.
"""

from collections.abc import Sequence

import numpy as np

from sentemb.search.ranking import engine
from sentemb.search.ranking.part import Asked
from sentemb.search.searcher import Searcher
from sentemb.system.parallel import Workers


def rank_a_title(searcher: Searcher, *, cosine: bool) -> None:
    """Rank the titles for the words of the first one and for a vector that no text has."""
    snapshot, model = searcher.snapshot, searcher.model
    if not len(snapshot):
        return

    def embed(texts: Sequence[str]) -> np.ndarray:
        return np.full((len(texts), model.dim), model.dim**-0.5, model.dtype)

    recipe, catalogue = snapshot.recipe(cosine), snapshot.segments[0].catalogue
    asked = Asked([snapshot.title(0)], embed, snapshot.ranker.recipe)
    # A second thread could not compile: this one may be compiling.
    titles = catalogue.is_empty, Workers(1), None, catalogue.shortlist
    engine.best(catalogue.parts, recipe, asked, 1, *titles)
