"""What a model is measured on: a judged set in a folder, or held-out clicks in a file."""

from pathlib import Path

from sentemb.data.click_log import PREPARED, ClickLog, read_click_log
from sentemb.data.judged_set import FILES, JudgedSet, read_judged_set
from sentemb.errors import SentembError
from sentemb.system.files import is_file, is_folder, path_of, status
from sentemb.system.paths import AnyPath


def read_held_out(path: AnyPath) -> JudgedSet | ClickLog:
    """Read a judged set if ``path`` is a folder, or held-out clicks if it is a file.

    Raises
    ------
    SentembError
        As `read_judged_set` and `read_click_log`. Also, with the path that was probably meant, for
        the folder of a whole data set, and for one of the files of a judged set.
    """
    place = path_of(path)
    if str(place) != "-" and status(place) is None:
        raise SentembError(
            f"{place}: no such file or folder; a folder is a judged set with {', '.join(FILES)}, "
            "a file is held-out clicks"
        )
    if not is_folder(place):
        if place.name in FILES and _is_judged_set(place.parent):
            raise SentembError(
                f"{place}: is one of the files of a judged set; did you mean {place.parent}?"
            )
        return read_click_log(place)
    if not _is_judged_set(place):
        if is_file(place / PREPARED):
            raise SentembError(
                f"{place}: is a folder of `sentemb prepare`, not a judged set; give held-out "
                "clicks as a file"
            )
        inside = [place / name for name in ("dev", "test") if _is_judged_set(place / name)]
        inside += [place / name for name in ("dev.tsv", "test.tsv") if is_file(place / name)]
        if inside:
            meant = " or ".join(map(str, inside))
            raise SentembError(f"{place}: is not a judged set; did you mean {meant}?")
    return read_judged_set(place)


def _is_judged_set(folder: Path) -> bool:
    return all(is_file(folder / name) for name in FILES)
