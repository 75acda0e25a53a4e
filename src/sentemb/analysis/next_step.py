"""The command that is useful next, as the last line of others says it."""

import shlex
from pathlib import Path

from sentemb.models.files.model_files import stored_pair_model
from sentemb.search.index_files import is_index
from sentemb.system.files import is_file, is_folder

# For each name of held-out clicks or a judged set that of its twin for tests.
_TESTS = {"dev.tsv": "test.tsv", "dev": "test"}


def next_step(folder: str, dev: str | None = None, titles: str | None = None) -> str:
    """The command that is useful next.

    ``folder`` is a model that has just been trained or measured, or an index. ``dev`` is the set
    that a training was measured on; if there is a set for tests next to it, that comes next.
    ``titles`` is the file of titles that was ranked.
    """
    if is_index(Path(folder)):
        return f'sentemb search {shlex.quote(folder)} "a query"'
    if stored_pair_model(folder) is not None:
        return f'sentemb score {shlex.quote(folder)} "a query" "a title"'
    held_out = Path(dev or "")
    if held_out.name in _TESTS:
        test = held_out.with_name(_TESTS[held_out.name])
        if is_file(test) or is_folder(test):
            ranked = ["--catalogue", titles] if titles and is_file(test) else []
            return shlex.join(["sentemb", "evaluate", folder, str(test), *ranked])
    return shlex.join(["sentemb", "index", folder, titles or "TITLES", "-o", "INDEX"])
