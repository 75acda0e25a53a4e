"""Sets that a model is measured on: a judged set in a folder, or held-out clicks in a file."""

from pathlib import Path

from sentemb.data.click_log import PREPARED, ClickLog, read_click_log
from sentemb.data.judged_set import FILES, JudgedSet, read_judged_set
from sentemb.errors import SentembError
from sentemb.system.files import is_file, is_folder, path_of, status
from sentemb.system.paths import AnyPath


def read_held_out(path: AnyPath) -> JudgedSet | ClickLog:
    """Read a judged set if ``path`` is a folder, or held-out clicks if it is a file.

    Raises `SentembError` as `read_judged_set` and `read_click_log`. Also, with the path that was
    probably meant, for the folder of a whole data set, and for one of the files of a judged set.
    """
    source = path_of(path)
    if str(source) != "-" and status(source) is None:
        raise SentembError(
            f"{source}: no such file or folder; a folder is a judged set with {', '.join(FILES)}, "
            "a file is held-out clicks"
        )
    if not is_folder(source):
        if source.name in FILES and _is_judged_set(source.parent):
            raise SentembError(
                f"{source}: is one of the files of a judged set; did you mean {source.parent}?"
            )
        return read_click_log(source)
    if not _is_judged_set(source):
        if is_file(source / PREPARED):
            raise SentembError(
                f"{source}: is a folder of `sentemb prepare`, not a judged set; give held-out "
                "clicks as a file"
            )
        inside = [source / name for name in ("dev", "test") if _is_judged_set(source / name)]
        inside += [source / name for name in ("dev.tsv", "test.tsv") if is_file(source / name)]
        if inside:
            meant = " or ".join(map(str, inside))
            raise SentembError(f"{source}: is not a judged set; did you mean {meant}?")
    return read_judged_set(source)


def _is_judged_set(folder: Path) -> bool:
    return all(is_file(folder / name) for name in FILES)
