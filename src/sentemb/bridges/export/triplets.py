"""``--to triplets``: clicks with hard negatives, as sentence-transformers trains on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sentemb.bridges.export.destination import new_file
from sentemb.bridges.export.json_text import as_json
from sentemb.bridges.export.targets import Exported
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.amounts import amount
from sentemb.system.bounds import whole
from sentemb.system.outputs import Output, check_outputs
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.training.negative_options import HARD_AMONG
from sentemb.training.negatives.hard_negatives import draw
from sentemb.training.negatives.teachers import Teacher

# As many per pair as ranked best on dev when a transformer was fine-tuned.
NEGATIVES = 2
# Pairs between two calls of ``on_progress``.
_PAIRS = 10_000


def write(
    source: SentenceEncoder,
    out: AnyPath,
    *,
    log: AnyPath,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    negatives: int = NEGATIVES,
) -> Exported:
    """Write a line of JSON per pair of the log, with the columns anchor, positive, negative_1, ...

    Hard negatives are drawn from the titles that the model ranks highest for the query, as
    `Teacher.lists` finds them: nobody clicked them for it. A pair whose query has fewer is left
    out, because every line needs every column; a note counts them.

    log : the click log, as for `sentemb.train`
    force : replace the file ``out``
    on_progress : called with how many pairs are done and how many there are
    negatives : per pair, 1 to 30
    """
    whole("negatives", negatives, 1, HARD_AMONG)
    check_outputs([Output(out, can_stream=True)], [log], force)
    read = read_click_log(log)
    with Workers() as workers:
        lists = Teacher.of(source).lists(read, workers, lambda: False, lambda note: None)
    has_enough = np.count_nonzero(lists >= 0, axis=1) >= negatives
    written = np.flatnonzero(has_enough[read.query_index])
    with new_file(out, force) as file:
        for done, line in enumerate(_lines(read, written, lists, negatives), 1):
            file.write(line.encode())
            if on_progress is not None and (done % _PAIRS == 0 or done == written.size):
                on_progress(done, written.size)
    notes = [f"{amount(written.size, 'pair')}, each with {amount(negatives, 'hard negative')}"]
    if left_out := read.query_index.size - written.size:
        notes.append(f"{amount(left_out, 'pair')} left out: the query has fewer hard negatives")
    return Exported([Path(out)], notes=notes)


def _lines(
    log: ClickLog, pairs: NDArray[np.intp], lists: NDArray[np.int32], negatives: int
) -> Iterator[str]:
    """The lines of some pairs; each has a list with enough titles."""
    _, drawn = draw(lists, log.query_index[pairs], negatives, 0, 0, 0)
    names = ["anchor", "positive", *(f"negative_{n}" for n in range(1, negatives + 1))]
    for row, pair in zip(drawn.reshape(-1, negatives), pairs.tolist(), strict=True):
        texts = [log.queries[log.query_index[pair]], log.titles[log.title_index[pair]]]
        texts += [log.titles[title] for title in row]
        yield as_json(dict(zip(names, texts, strict=True))) + "\n"
