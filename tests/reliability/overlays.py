"""The outputs of all commands laid over what they read and over what is not theirs.

Afterwards every byte that the command did not write is still there: files of an earlier result of
the same format may be replaced, nothing else.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from reliability import battery_cases, battery_shop
from reliability.count import Count
from reliability.samples import write_samples
from sentemb.cli import main
from sentemb.errors import SentembError
from sentemb.models.files.model_folder import FILES
from sentemb.search.index_files import listed_files

FILES_OUT = {**battery_cases.OUTPUT_FILES, **battery_shop.OUTPUT_FILES}
FOLDERS_OUT = {**battery_cases.OUTPUT_FOLDERS, **battery_shop.OUTPUT_FOLDERS}
FILES_OUT |= {
    "encode --ids": (".npy", ("encode", "lstm", "docs.tsv", "--ids", "-o", "X")),
}
# Commands that change an index where it is.
IN_PLACE = {
    "index --add": ("index", "sums", "--add", "more.tsv"),
    "index --sync": ("index", "sums", "--sync", "more.tsv"),
    "index --remove": ("index", "sums", "--remove", "ids.txt"),
    "tune": ("tune", "sums", "held.tsv"),
    "calibrate": ("calibrate", "sums", "held.tsv"),
}
NOTE = "what a user wrote"
# What lies in the way: a folder and what it has.
FOREIGN = ("foreign", "index", "lstm", "data", "judged", "compared")
NAMES = ("titles.tsv", "index.json", "prepared.json", "files.json", "README.md", "config.json")


@dataclass(frozen=True)
class Overlay:
    """One command and where its output is laid.

    Attributes
    ----------
    name : str
    argv : tuple of str
    replaces : str
        A folder whose files the command may replace as far as its format lists them; "" for none.
    """

    name: str
    argv: tuple[str, ...]
    replaces: str = ""


def overlays() -> Iterator[Overlay]:
    """All of them."""
    for label, (ending, argv) in FILES_OUT.items():
        plain = tuple(word for word in argv if word != "--force")
        yield Overlay(f"{label}, a file, no force", _with(plain, f"mine{ending}"))
        for place, forced in _inputs(plain):
            yield Overlay(f"{label}, over {place}", _with(forced, place))
            yield Overlay(f"{label}, a link to {place}", _with(forced, f"link-{place}{ending}"))
            yield Overlay(f"{label}, inside {place}", _with(forced, f"{place}/new{ending}"))
        for folder in FOREIGN:
            yield Overlay(f"{label}, over the folder {folder}", _with((*plain, "--force"), folder))
    for label, argv in FOLDERS_OUT.items():
        plain = tuple(word for word in argv if word != "--force")
        yield Overlay(f"{label}, a file", _with((*plain, "--force"), "mine.html"))
        yield Overlay(f"{label}, here", _with((*plain, "--force"), "."))
        for place, forced in _inputs(plain):
            yield Overlay(f"{label}, over {place}", _with(forced, place))
            yield Overlay(f"{label}, inside {place}", _with(forced, f"{place}/new"))
        for folder in FOREIGN:
            forced = _with((*plain, "--force"), folder)
            yield Overlay(f"{label}, over the folder {folder}", forced, folder)
            yield Overlay(f"{label}, over {folder}, no force", _with(plain, folder))
        for name in NAMES:
            forced = _with((*plain, "--force"), f"only-{name}")
            yield Overlay(f"{label}, over a folder with {name}", forced)
        yield Overlay(f"{label}, the model of an index", _with((*plain, "--force"), "index/model"))
    for label, argv in IN_PLACE.items():
        yield Overlay(label, argv, argv[1])
    for place in (*_SAMPLES, *FOREIGN, "mine.html", "link-log.tsv.html"):
        # No machine has this address, so that a server ends once it has opened its record.
        serve = ("serve", "sums", "--host", "203.0.113.1", "--record", place)
        yield Overlay(f"serve --record over {place}", serve)
    for place in (*FOREIGN, "."):
        yield Overlay(f"start, over {place}", ("start", "clicks.csv", "-o", place))
    yield Overlay("start --example, over clicks.csv", ("start", "--example", "--force", "-o", "."))


def _with(argv: tuple[str, ...], place: str) -> tuple[str, ...]:
    return tuple(place if word == "X" else word for word in argv)


def _inputs(argv: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The files and folders that a command names, which all are in `ROOT`."""
    for word in argv[1:]:
        if word in _SAMPLES and word != "X":
            yield word, (*argv, "--force")


_SAMPLES = {
    *("lstm", "bag", "index", "index8", "sums", "vectors", "glove.txt", "log.tsv", "docs.tsv"),
    *("queries.tsv", "texts.txt", "clicks.csv", "more.tsv", "truth.jsonl", "onet", "data", "beir"),
    *("labelled.tsv", "prose.txt", "judged"),
}


def prepare(folder: Path) -> None:
    """What the commands read, with notes of a user everywhere."""
    write_samples(folder)
    battery_shop.prepare(folder)
    for name in FOREIGN:
        place = folder / name
        (place / "deep").mkdir(parents=True, exist_ok=True)
        (place / "notes.txt").write_text(NOTE)
        (place / "deep" / "titles.tsv").write_text(NOTE)
    for name in NAMES:
        (folder / f"only-{name}").mkdir()
        (folder / f"only-{name}" / name).write_text(NOTE)
    (folder / "sums/notes.txt").write_text(NOTE)
    shutil.copytree(folder / "index8", folder / "sums/inside")
    for ending in ("npy", "npz", "txt", "svg", "html", "tsv", "parquet"):
        (folder / f"mine.{ending}").write_text(NOTE)
        for name in _SAMPLES:
            if (folder / name).is_file():
                (folder / f"link-{name}.{ending}").symlink_to(name)


def laid_over(every: int = 1) -> Count:
    """Every one of `overlays`, or one of ``every``."""
    count = Count("outputs over inputs and files of others")
    refused = 0
    with tempfile.TemporaryDirectory() as home:
        template, box, before_here = Path(home, "template"), Path(home, "box"), Path.cwd()
        template.mkdir()
        prepare(template)
        for overlay in list(overlays())[::every]:
            shutil.copytree(template, box, symlinks=True)
            os.chdir(box)
            try:
                may_change = _listed(overlay.replaces)
                before = _contents(box)
                done = CliRunner().invoke(main, list(overlay.argv))
                refused += done.exit_code != 0
                after = _contents(box)
            finally:
                os.chdir(before_here)
            count.tried += 1
            lost = [
                name
                for name, raw in before.items()
                if after.get(name) != raw and name not in may_change
            ]
            if lost:
                count.failures.append(f"{overlay.name}: lost {', '.join(lost[:3])}")
            elif not isinstance(done.exception, SentembError | SystemExit | None):
                count.failures.append(f"{overlay.name}: {done.exception!r}")
            shutil.rmtree(box)
    count.notes.append(f"{refused:,} commands refused; the others kept what is not theirs")
    return count


def _contents(folder: Path) -> dict[str, bytes | str]:
    """The bytes of all files and the targets of all links."""
    return {
        path.relative_to(folder).as_posix(): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def _listed(folder: str) -> set[str]:
    """The files of an index or of a model in ``folder``, by its format."""
    if not folder:
        return set()
    names = {*listed_files(folder), *(FILES if (Path(folder) / FILES[0]).exists() else ())}
    return {f"{folder}/{name}" for name in names}
