"""The rows of the table: what is compared, and what is tried on dev for each."""

from dataclasses import dataclass, field

from sentemb.errors import SentembError

# Learning rates that are tried for every encoder.
_RATES = ({"learning_rate": 0.0025}, {"learning_rate": 0.005})


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    name : str
    kind : {"baseline", "encoder"}
    settings : dict
        Of `make_baseline`, with ``name`` among them, or of `sentemb.train`.
    grid : tuple of dict
        Settings to choose from on dev, beside those.
    needs_log : bool
        Whether it learns from a click log.
    """

    name: str
    kind: str
    settings: dict = field(default_factory=dict)
    grid: tuple = ({},)
    needs_log: bool = True


def _baseline(name, needs_log=False, baseline=None, **settings):
    return Row(name, "baseline", {"name": baseline or name, **settings}, (), needs_log)


def _encoder(name, grid=_RATES, **settings):
    return Row(name, "encoder", settings, grid)


ROWS = {
    row.name: row
    for row in (
        _baseline("random"),
        _baseline("unigram"),
        _baseline("bm25"),
        _baseline("bm25-stem", baseline="bm25", stem=True),
        _baseline("plsa", needs_log=True),
        _baseline("doc2vec", needs_log=True),
        _baseline("skip-thought"),
        _encoder("bag", model="bag"),
        _encoder("dssm", model="dssm"),
        *(_encoder(f"clsm-{window}", model="clsm", window=window) for window in (1, 3, 5)),
        _encoder("rnn-288", model="rnn", cells=288),
        *(_encoder(f"lstm-{cells}", cells=cells) for cells in (32, 64, 96)),
        *(_encoder(f"lstm-96-n{n}", n_negatives=n) for n in (2, 4, 6, 8)),
        _encoder("lstm-96-paper", grid=({},), preset="paper"),
        *(_encoder(f"bilstm-{cells}", model="bilstm", cells=cells) for cells in (96, 192)),
    )
}


def rows_of(names):
    """The rows called ``names`` (list of str), in the table's order; all if None."""
    if names is None:
        return list(ROWS.values())
    for name in names:
        if name not in ROWS:
            raise SentembError(f"there is no row {name!r}; choose from {', '.join(ROWS)}")
    return [row for row in ROWS.values() if row.name in names]
