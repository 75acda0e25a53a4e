"""The texts that SIF's components come from: files of lines, judged sets, a click log."""

from collections.abc import Callable, Sequence

from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.data.lines import clean_lines
from sentemb.errors import SentembError
from sentemb.system.files import is_folder, place_name
from sentemb.system.paths import AnyPath


def read_fit_texts(
    paths: Sequence[AnyPath],
    log: AnyPath | None = None,
    note: Callable[[str], None] = lambda message: None,
) -> tuple[list[str], list[str]]:
    """Queries and titles from several places.

    ``paths`` are files with one title per line (empty lines are left out), or folders with a judged
    set. Each distinct query and title of the click log ``log`` counts once. ``note`` is called if a
    file of titles has tabs, as a click log has.

    Raises `SentembError` for a file without texts; also the errors of `read_click_log` and
    `read_judged_set`.
    """
    queries: list[str] = []
    titles: list[str] = []
    for path in paths:
        if is_folder(path):
            judged = read_judged_set(path)
            queries += judged.queries
            titles += judged.titles
        else:
            texts = [text for _, text in clean_lines(path) if text.strip()]
            if not texts:
                raise SentembError(f"{place_name(path)}: there are no texts; write one per line")
            if any("\t" in text for text in texts):
                note(
                    f"{place_name(path)}: there are tabs, but each line is read as one text; is it "
                    "a click log for --log?"
                )
            titles += texts
    if log is not None:
        clicks = read_click_log(log)
        queries += clicks.queries
        titles += clicks.titles
    return queries, titles
