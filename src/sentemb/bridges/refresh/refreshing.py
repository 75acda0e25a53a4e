"""The next index of a shop: from its records and its catalogue to an index that is searched.

What takes long is kept in the work folder of the shop until the new index is in place. So a refresh
that was stopped is continued by the next one. The index is replaced in one step; until then nothing
that is searched has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from sentemb.analysis.insights import SearchedQuery, insights, table_of_lost
from sentemb.bridges.refresh.clicks_of_shop import ShopClicks
from sentemb.bridges.refresh.comparing import FEWEST, ClicksCompared, compare
from sentemb.bridges.refresh.pins import Pins
from sentemb.bridges.refresh.products_today import read_products
from sentemb.data.click_log import ClickLog, read_click_log, write_click_log
from sentemb.data.examinations import Examinations, read_examinations
from sentemb.data.record_file import is_record, reading_record
from sentemb.data.record_merge import Merged, merge_records
from sentemb.data.seen_queries import never_typed_and_typed
from sentemb.data.split_description import DEV
from sentemb.data.splitting import split_file, suited_split
from sentemb.errors import SentembError
from sentemb.models.files.model_files import fingerprint
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.believed_clicks import BelievedClicks
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index import Index
from sentemb.search.index_description import read_description
from sentemb.search.index_files import listed_files
from sentemb.search.index_tuning import calibrate, serve_clicks
from sentemb.search.ranking.fitting import fit_weights_of
from sentemb.search.shop_folder import Shop
from sentemb.search.syncing import Changes
from sentemb.system.bounds import plain
from sentemb.system.descriptions import parse_json
from sentemb.system.files import is_file, make_folder, names_in, place_name, reading, write_text
from sentemb.system.locks import locked
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import replacing_folder
from sentemb.training.progress import Progress
from sentemb.training.trainer import train

# With fewer queries nothing is learned.
FEWEST_QUERIES = 50
# Queries that lose most, in the report.
_LOST = 10
_INPUTS, _RESULT, _LOG, _MODEL, _INDEX = "inputs.json", "result.json", "log", "model", "index"


@dataclass(frozen=True)
class Refreshed:
    """A refresh of a shop.

    searches, clicks : those that were new in the records
    added, changed, removed : titles of the catalogue
    queries, pairs : of all clicks that the index now has
    gone : clicks on products that are not sold any more
    compared : the index before and the new one on searches that neither has learned from; None if
        no model was trained
    has_new_model : whether the new one is searched now
    why : the reason for that
    lost : the queries that lose most searches since the last refresh; see `insights`
    is_dry : whether nothing that is searched was changed
    """

    searches: int
    clicks: int
    added: int
    changed: int
    removed: int
    queries: int
    pairs: int
    gone: int
    compared: ClicksCompared | None
    has_new_model: bool
    why: str
    lost: list[SearchedQuery]
    is_dry: bool

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        return asdict(self)

    @classmethod
    def of_dict(cls, values: dict[str, Any]) -> Refreshed:
        """The object that `as_dict` was asked of."""
        compared = values["compared"]
        values = {**values, "lost": [SearchedQuery(**query) for query in values["lost"]]}
        return cls(**{**values, "compared": compared and ClicksCompared(**compared)})

    def __str__(self) -> str:
        of_gone = f"; left out {self.gone:,} on products that are gone" if self.gone else ""
        lines = [
            f"records: {self.searches:,} new searches, {self.clicks:,} new clicks",
            f"titles: {self.added:,} added, {self.changed:,} changed, {self.removed:,} removed",
            f"clicks: {self.pairs:,} pairs of {self.queries:,} queries{of_gone}",
        ]
        if self.compared is not None:
            lines.append(str(self.compared))
        lines.append(f"model: {'new' if self.has_new_model else 'as before'}; {self.why}")
        if self.is_dry:
            lines.append("nothing that is searched was changed")
        if self.lost:
            lines += ["", "Searches without a click:", *table_of_lost(self.lost)]
        return "\n".join(lines)


def refresh(
    shop: AnyPath,
    records: Sequence[AnyPath] = (),
    catalogue: AnyPath | None = None,
    *,
    dry_run: bool = False,
    threads: int | None = None,
    on_step: Callable[[str], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> Refreshed:
    """Make the next index of a shop, and let it be searched if it is better.

    The index gets today's titles, and all clicks of the records that the shop was ever refreshed
    with. A new model is trained on them and compared with the one before, on one in five of the
    searches since that was trained, of which the new one learns nothing. If there are too few of
    these, or the new one is behind by more than the standard error, the model and the weights stay
    as they were.

    The index is replaced in one step, and the one before is kept next to it. A refresh that was
    stopped has changed nothing that is searched, or everything; the next one continues it.

    Parameters
    ----------
    shop : path
        A folder of `sentemb start`.
    records : sequence of paths
        Records of `sentemb serve`; a search that is in several, or was there before, counts once.
        By default ``searches.sqlite`` in the folder, if it is there.
    catalogue : path, optional
        The products of today: a table like the one the shop was made from, or lines
        ``id<TAB>title`` below a line with these names. By default the titles that the index has.
    dry_run : bool
        Do everything but replace the index.
    threads : int, optional
        By default all processors.
    on_step : function of a str, optional
        Called with the name of each step as it begins.
    on_progress : function of a `Progress`, optional
        Called while the model is trained.
    on_note : function of a str, optional
        Called with each message.

    Returns
    -------
    Refreshed

    Raises
    ------
    SentembError
        If the folder is of another kind, a record or the catalogue cannot be read, the catalogue
        lacks most products of the index, another process is refreshing the shop, or the disk is
        full.
    """
    opened = Shop.open(shop)
    usual = opened.path / "searches.sqlite"
    given = list(records) or ([usual] if is_record(usual) else [])
    with locked(make_folder(opened.work)):
        job = _Refreshing(
            opened, threads, on_step or _ignore, on_progress or _ignore, on_note or _ignore
        )
        job.finish_earlier()
        result = job.result(given, catalogue)
        if dry_run:
            return replace(result, is_dry=True)
        job.put_in_place(result)
        job.remove_work()
    return result


class _Refreshing:
    """One refresh of a shop."""

    def __init__(
        self,
        shop: Shop,
        threads: int | None,
        step: Callable[[str], None],
        progress: Callable[[Progress], None],
        note: Callable[[str], None],
    ) -> None:
        self._shop, self._threads = shop, threads
        self._step, self._progress, self._note = step, progress, note
        self._work = shop.work

    # -- making -------------------------------------------------------------------------------

    def result(self, records: Sequence[AnyPath], catalogue: AnyPath | None) -> Refreshed:
        """Make the next index in the work folder, or take it from there."""
        shop = self._shop
        self._step("reading the records")
        merged = merge_records(records, shop.searches) if records else Merged(0, 0)
        current, changes = Index.open(shop.index, self._threads), Changes(0, 0, 0)
        inputs = self._inputs(current, catalogue, merged)
        if is_file(self._work / _RESULT):
            return self._stored()
        trained, until = shop.trained.get(inputs["model"], 0.0), inputs["until"]
        if catalogue is not None:
            self._step("reading the catalogue")
            today = read_products(shop, catalogue, self._work / "titles.tsv", self._note)
            _check_most_are_there(current, today.ids, catalogue)
            changes = current.sync(today.titles, today.ids, fields=today.fields)
        names = dict(zip(current.ids, current.titles, strict=True))
        clicks = ShopClicks.of(shop, names, trained, until)
        learned = clicks.learned.build() if len(clicks.learned) else None
        why = _why_not(learned, clicks)
        compared = None
        index = current
        if learned is not None and not why:
            # What judges has been seen by neither: no click of it counts, and no look.
            looks = self._examinations.without_searches(clicks.judged)
            new = self._trained(learned, current, looks)
            serve_clicks(current, _looked_at(learned, looks))
            self._step("comparing with the index before")
            compared = compare(current, new, clicks.judged)
            index, why = (new if compared.is_new_taken else current), compared.verdict
            try:
                calibrate(index, clicks.judged, self._note)
            except SentembError as error:  # it works without a confidence
                self._note(f"no new confidence: {error}")
        self._step("writing the index")
        everything = clicks.everything.build() if len(clicks.everything) else None
        pins = Pins.read(shop)
        served = index.ranker.clicks
        if everything is not None:
            served = _looked_at(everything, self._examinations)
        served = served.with_ids(index.titles, index.ids)
        serve_clicks(index, pins.in_place(served, names))
        index.save(self._work / _INDEX, force=True)
        result = Refreshed(
            *(inputs["searches"], inputs["clicks"]),
            *changes,
            0 if everything is None else len(everything.queries),
            0 if everything is None else len(everything.clicks),
            clicks.gone,
            compared,
            index is not current,
            why,
            self._lost(),
            False,
        )
        self._store(result, pins)
        return result

    def _inputs(self, before: Index, catalogue: AnyPath | None, merged: Merged) -> dict[str, Any]:
        """The inputs of this refresh: those of one that was stopped, if they were the same."""
        inputs = {
            "model": fingerprint(before.model.saved()),
            "catalogue": None if catalogue is None else _sha256(catalogue),
            "until": _last_time(self._shop),
            "searches": merged.searches,
            "clicks": merged.clicks,
        }
        path = self._work / _INPUTS
        if is_file(path):
            stored = _read_json(path)
            if all(stored.get(name) == inputs[name] for name in ("model", "catalogue")):
                day = f"{datetime.fromtimestamp(stored['until'], UTC):%Y-%m-%d %H:%M}"
                self._note(f"continues the refresh that was stopped, with searches until {day} UTC")
                return stored
        self._clear()
        write_text(path, json.dumps(inputs))
        return inputs

    def _trained(self, learned: ClickLog, current: Index, looks: Examinations) -> Index:
        """A new model, with its ranker, over the titles of the index before."""
        log, model = self._work / _LOG, self._work / _MODEL
        if not is_file(log / DEV):
            self._step("splitting the clicks")
            pairs = self._work / "pairs.tsv"
            write_click_log(learned, pairs)
            by, share = suited_split(learned)
            split_file(pairs, log, share, 0, by, force=True)
        self._step("training")
        train_log, dev = read_click_log(log / "pairs.tsv"), read_click_log(log / DEV)
        titles = dict(zip(current.ids, current.titles, strict=True))
        served = _looked_at(learned, looks)
        believed = BelievedClicks.of(served.with_ids(current.titles, current.ids))
        dev = believed.judging(dev)
        trained = train(
            believed.part(train_log),
            dev=dev,
            catalogue=titles,
            output=model,
            resume=bool(names_in(model)),
            threads=self._threads,
            on_progress=self._progress,
            on_note=self._note,
        )
        assert isinstance(trained, SentenceEncoder)
        self._step("fitting the ranker")
        new = Index.build(
            trained,
            current.titles,
            current.ids,
            current.fields.as_one(),
            dtype=current.dtype,
            threads=self._threads,
        )
        # The model alone would refuse these; the ranker that follows reads their words.
        searched = new.snapshot.changed(search_fields=current.search_fields)
        new.adopt(searched, new.snapshot)
        known = _looked_at(train_log, looks)
        right, typed = never_typed_and_typed(dev, known.queries)
        snapshot = new.snapshot
        ranker = fit_weights_of(
            trained,
            right,
            snapshot.titles,
            snapshot.ids,
            known,
            served,
            typed,
            embedding=current.ranker.embedding,
            threads=self._threads,
            on_note=self._note,
        )
        new.adopt(new.ranked_by(ranker), snapshot)
        return new

    @cached_property
    def _examinations(self) -> Examinations:
        """How often titles were looked at in all records of the shop."""
        return read_examinations([*filter(is_file, (self._shop.shown, self._shop.searches))])

    def _lost(self) -> list[SearchedQuery]:
        """The queries that lost most since the last refresh."""
        if not is_file(self._shop.searches):
            return []
        since = datetime.fromtimestamp(self._shop.refreshed, UTC)
        return insights(self._shop.searches, _LOST, since).lost

    # -- putting in place ---------------------------------------------------------------------

    def put_in_place(self, result: Refreshed) -> None:
        """Let the index of the work folder be searched, and keep the one before."""
        shop, new = self._shop, self._work / _INDEX
        with locked(shop.path):
            pins, stored = Pins.read(shop), _read_json(self._work / _RESULT)
            if stored["pins"] != list(map(list, pins.lines)):  # pinned meanwhile
                index = Index.open(new)
                names = dict(zip(index.ids, index.titles, strict=True))
                serve_clicks(index, pins.in_place(index.ranker.clicks, names))
                index.save(new, force=True)
                self._store(result, pins)
            until = stored["until"]
            if result.has_new_model:
                model = read_description(new).model_sha256
                known_models = {read_description(shop.index).model_sha256, model}
                known = {**shop.trained, model: until}
                times = {name: time for name, time in known.items() if name in known_models}
                self._shop = shop = replace(shop, trained=times)
                shop.save()
            if read_description(new).identity != read_description(shop.index).identity:
                _replace(shop.before, shop.index)
                _replace(shop.index, new)
        self._end(until)

    def finish_earlier(self) -> None:
        """Finish a refresh that was stopped when its index was in place already."""
        if not is_file(self._work / _RESULT):
            return
        stored = _read_json(self._work / _RESULT)
        if read_description(self._shop.index).identity == stored["identity"]:
            self._note("finishes the refresh that was stopped; its index was in place")
            self._end(stored["until"])
            self._clear()

    def _end(self, until: float) -> None:
        """Write what is made from the index, once it is in place."""
        shop = self._shop
        if is_file(shop.page):
            self._step("writing the page")
            from sentemb.bridges.export.targets import export

            heading = shop.path.resolve().name
            export(str(shop.index), str(shop.page), "page", heading=heading, force=True)
        self._shop = replace(shop, refreshed=until)
        self._shop.save()

    def _store(self, result: Refreshed, pins: Pins) -> None:
        """Write down that the work is done."""
        identity = read_description(self._work / _INDEX).identity
        stored = {"identity": identity, "pins": pins.lines, "result": result.as_dict()}
        until = _read_json(self._work / _INPUTS)["until"]
        write_text(self._work / _RESULT, json.dumps({**stored, "until": until}))

    def _stored(self) -> Refreshed:
        return Refreshed.of_dict(_read_json(self._work / _RESULT)["result"])

    def remove_work(self) -> None:
        """Remove the work folder, whose parts are of use to nobody."""
        with contextlib.suppress(OSError):
            self._clear()
            self._work.rmdir()

    def _clear(self) -> None:
        """Empty the work folder; without its inputs nothing in it is used again."""
        (self._work / _INPUTS).unlink(missing_ok=True)
        for path in self._work.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _looked_at(log: ClickLog, looks: Examinations) -> ClickedQueries:
    """The clicks of a log, with how often titles were looked at."""
    return replace(ClickedQueries.of(log), examinations=looks)


def _check_most_are_there(index: Index, ids: Sequence[str], catalogue: AnyPath) -> None:
    """Refuse a catalogue that lacks most products of an index: it is part of one, or another."""
    gone = set(index.ids).difference(ids)
    if 2 * len(gone) > len(index):
        raise SentembError(
            f"{place_name(catalogue)}: lacks {len(gone):,} of the {len(index):,} products of the "
            f"index, such as {plain(min(gone))}; give the whole catalogue of this shop, or remove "
            "them first with `sentemb index INDEX --sync`"
        )


def _why_not(learned: ClickLog | None, clicks: ShopClicks) -> str:
    """The reason why no model is trained; empty if one is."""
    if learned is None or len(learned.queries) < FEWEST_QUERIES:
        n_queries = 0 if learned is None else len(learned.queries)
        return f"{n_queries:,} queries have clicks, and fewer than {FEWEST_QUERIES} teach nothing"
    if len(clicks.judged) < FEWEST:
        return (
            f"{len(clicks.judged):,} searches are there to compare a new one with it, and fewer "
            f"than {FEWEST} would not tell which is better"
        )
    return ""


def _last_time(shop: Shop) -> float:
    """The time of the last search of all records."""
    if not is_file(shop.searches):
        return 0.0
    with reading_record(shop.searches) as record:
        (last,) = record.execute("SELECT max(time) FROM searches").fetchone()
    return float(last or 0)


def _replace(folder: AnyPath, by: AnyPath) -> None:
    """Replace an index by a copy of another, in one step."""
    with replacing_folder(folder, listed_files(folder)) as new:
        shutil.copytree(by, new, dirs_exist_ok=True)


def _sha256(path: AnyPath) -> str:
    with reading(path) as file:
        return hashlib.sha256(file.read()).hexdigest()


def _read_json(path: AnyPath) -> dict[str, Any]:
    with reading(path) as file:
        values: dict[str, Any] = parse_json(file.read())
    return values


def _ignore(report: object) -> None:
    pass
