"""``split.json``: how a log was split, and the warning where that is not known."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.system.descriptions import read_description
from sentemb.system.files import is_file, status, write_text

SPLIT = "split.json"
DEV, TEST, TITLES = "dev.tsv", "test.tsv", "titles.tsv"
# What is held out. Queries that are held out by click or by time are meant to be in training too.
QUERY, TITLE, CLICK, BOTH, TIME = WAYS = "query", "title", "click", "both", "time"
# Where the same query is in training and held out, with other clicks.
BY_CLICK = (CLICK, BOTH)
_FORMAT = 1
# What decides on the side of a query: `query_key`. Another rule gets another name.
RULE = "distinct words"
# `sentemb data` writes the same files, and this one that says where the published parts are from.
_OF_PUBLISHED = "README.md"


def write_split_description(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write ``split.json`` into ``folder``."""
    description = {"format": _FORMAT, "rule": RULE, **facts}
    write_text(folder / SPLIT, json.dumps(description, indent=1) + "\n")


def split_warning(clicks: Path) -> str | None:
    """Why queries that were to be new may have been in training; None if they were not.

    Nothing is known, and None returned, of files that are not of a split click log. Raises
    `SentembError` if there is a ``split.json`` that cannot be read.
    """
    folder = clicks.parent
    if not _is_held_out(clicks):
        return None
    reason = f"{SPLIT} is missing"
    if status(folder / SPLIT) is not None:
        description = read_description(folder / SPLIT, _FORMAT, _damaged)
        if description.get("rule") == RULE or description.get("by") in (*BY_CLICK, TIME):
            return None
        reason = f"{SPLIT} has another rule"
    elif is_file(folder / _OF_PUBLISHED):
        return None
    return (
        f"{folder}: {reason}, so its queries may have been in training in another spelling; split "
        "the log again, or count them with --log"
    )


def held_out_by(clicks: Path) -> str | None:
    """How the clicks in a file were held out: the ``by`` of `split_log`; None if that is not known.

    Queries that were held out "by click" or "by time" are meant to be in the log too. Raises
    `SentembError` if there is a ``split.json`` that cannot be read.
    """
    description = clicks.parent / SPLIT
    if not _is_held_out(clicks) or status(description) is None:
        return None
    by = read_description(description, _FORMAT, _damaged).get("by")
    return by if isinstance(by, str) else None


def _is_held_out(clicks: Path) -> bool:
    """Whether a file is called as the held-out clicks of a split, and is next to its titles."""
    return clicks.name in (DEV, TEST) and is_file(clicks.parent / TITLES)


def _damaged(path: object, why: str) -> SentembError:
    return SentembError(f"{path}: {why}; split the log again with `sentemb split`")
