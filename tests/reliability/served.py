"""``sentemb serve`` under requests, slow clients, syncs and kills; clusters of two versions."""

import contextlib
import csv
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

from reliability.count import Count
from reliability.faces import MOST_MORE_MEGABYTES, PACKAGE, TEXTS, model_of, size_of
from sentemb import Index, SentembError, __version__
from sentemb.analysis.insights import insights
from sentemb.bridges.server.answers import Answers
from sentemb.data.search_record import record_rows
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe
from sentemb.system.cluster import opened

TITLES, QUERIES = TEXTS[:200], TEXTS[200:]
_K = 5
# Clients that ask honestly, each on one connection.
_CLIENTS = 8


def _built(titles, ids=None):
    ranker = HybridRanker(model_of(), Recipe({"cosine": 1.0, "bm25": 0.5}))
    return Index.build(ranker, titles, ids)


def _right(*indexes):
    """The possible hits of each query: those that each of some indexes finds."""
    found = [Answers(index).search(QUERIES, _K) for index in indexes]
    return {
        query: [one["hits"] for one in results]
        for query, *results in zip(QUERIES, *found, strict=True)
    }


def _sentemb(*arguments, **settings):
    command = [sys.executable, "-m", "sentemb", *map(str, arguments)]
    return subprocess.Popen(command, text=True, stderr=subprocess.PIPE, **settings)


@contextlib.contextmanager
def _serving(index, *options):
    """A process of ``sentemb serve`` and its port."""
    process = _sentemb("serve", index, "--port", 0, *options, stdout=subprocess.PIPE)
    said = []
    reading = threading.Thread(target=lambda: said.extend(process.stderr))
    reading.start()
    try:
        address = process.stdout.readline()
        if not address:
            reading.join()
            raise RuntimeError(f"the server does not start: {''.join(said)}")
        yield process, int(address.rsplit(":", 1)[1]), said
    finally:
        process.terminate()
        process.wait()
        reading.join()
        process.stdout.close()
        process.stderr.close()


@contextlib.contextmanager
def served():
    """A process of ``sentemb serve``, its port, and the possible hits of each query."""
    with tempfile.TemporaryDirectory() as folder:
        index = _built(TITLES)
        index.save(Path(folder) / "index")
        with _serving(Path(folder) / "index") as (process, port, _):
            yield process.pid, port, _right(index)


def _ask(client, query):
    client.request("GET", f"/search?q={quote(query)}&k={_K}")
    answer = client.getresponse()
    return answer.status, answer.read()


def _asked(port, right, numbers, answers):
    """Ask for some queries on one connection; what was wrong, and the longest wait."""
    wrong, longest = [], 0.0
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    for number in numbers:
        query, began = QUERIES[number % len(QUERIES)], time.monotonic()
        status, body = _ask(client, query)
        longest = max(longest, time.monotonic() - began)
        if status != 200 or json.loads(body)["hits"] not in right[query]:
            wrong.append(f"request {number} ({query!r}): {status}, {body[:80]!r}")
        if answers is not None and answers.setdefault(query, body) != body:
            wrong.append(f"request {number} ({query!r}): other bytes than before")
    client.close()
    return wrong, longest


def _honest(port, right, count, answers=None):
    with ThreadPoolExecutor(_CLIENTS) as pool:
        jobs = [
            pool.submit(_asked, port, right, range(first, count, _CLIENTS), answers)
            for first in range(_CLIENTS)
        ]
        found = [job.result() for job in jobs]
    return [line for wrong, _ in found for line in wrong], max(longest for _, longest in found)


def requests(total: int) -> Count:
    """Many requests to one server: the same bits each time, and neither memory nor files grow."""
    count = Count("requests", tried=total)
    with served() as (process, port, right):
        answers: dict[str, bytes] = {}
        warm = total // 5
        count.failures += _honest(port, right, warm, answers)[0]
        time.sleep(1)
        before = size_of(process)
        wrong, longest = _honest(port, right, total - warm, answers)
        count.failures += wrong
        time.sleep(1)
        after = size_of(process)
        count.notes += [
            f"after {warm:,} and {total:,} requests: {before[0]:.1f} and {after[0]:.1f} MB, "
            f"{before[1]} and {after[1]} open files; longest wait {longest:.2f} s"
        ]
        if after[0] - before[0] > MOST_MORE_MEGABYTES or after[1] > before[1]:
            count.failures.append(count.notes[-1])
    return count


def slow_clients(slow: int, asked: int, seconds: float = 20.0) -> Count:
    """Clients that send a byte per second, and others whose answers must be right meanwhile."""
    count = Count("slow clients", tried=asked)
    with served() as (process, port, right):
        with _dripping(port, slow) as lost:
            time.sleep(1)
            began = time.monotonic()
            wrong, longest = _honest(port, right, asked, {})
            took = time.monotonic() - began
            count.failures += wrong
            time.sleep(max(0.0, seconds - took))
            _, files = size_of(process)
        count.notes.append(
            f"{slow} slow clients: {asked:,} requests of others in {took:.1f} s, longest wait "
            f"{longest:.2f} s; {files} open files, {lost[0]} sends to closed connections"
        )
    return count


@contextlib.contextmanager
def _dripping(port, slow):
    """Clients that send a byte per second; how many were cut off, and came again."""
    ends, lost = threading.Event(), [0]

    def connected():
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(b"GET /search?q=")
        return client

    def drip():
        while not ends.wait(1):
            for number, client in enumerate(clients):
                try:
                    client.sendall(b"a")
                except OSError:
                    lost[0] += 1
                    client.close()
                    clients[number] = connected()

    clients = [connected() for _ in range(slow)]
    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        yield lost
    finally:
        ends.set()
        dripping.join()
        for client in clients:
            client.close()


# -- changes meanwhile -----------------------------------------------------------------------------


def changed_meanwhile(total: int, slow: int) -> Count:
    """Many requests to one server while its index is synced and read again, beside slow clients.

    Each answer is one of the old or the new titles, each search is in the record, and neither
    memory nor files grow.
    """
    count = Count("requests during syncs, reloads and slow clients", tried=total)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        states = _states(folder)
        record = folder / "searches.sqlite"
        serving = _serving(folder / "index", "--record", record)
        with serving as (process, port, said):
            warm = total // 5
            with _changing(folder, process, count):
                count.failures += _honest(port, states, warm)[0]
            before = _settled(process, port, states)
            with _dripping(port, slow) as lost, _changing(folder, process, count) as changes:
                wrong, longest = _honest(port, states, total - warm)
                count.failures += wrong
            after = _settled(process, port, states)
        count.notes += [
            f"after {warm:,} and {total:,} requests: {before[0]:.1f} and {after[0]:.1f} MB, "
            f"{before[1]} and {after[1]} open files; longest wait {longest:.2f} s",
            f"{changes['syncs']} syncs, {changes['reloads']} signals to read again, {slow} slow "
            f"clients, {lost[0]} cut off",
        ]
        if after[0] - before[0] > MOST_MORE_MEGABYTES or after[1] > before[1]:
            count.failures.append(count.notes[0])
        count.failures += [line for line in said if not line.endswith(_SAID)]
        n_recorded = insights(record).searches
        if n_recorded != total + 2 * _CLIENTS:
            count.failures.append(f"{n_recorded:,} searches are recorded, not {total:,}")
    return count


# What a server says on standard error while all is well.
_SAID = ("no addresses and no cookies\n", "Ctrl-C ends the server\n", ": read again\n")


def _states(folder):
    """Write an index, and files with its titles and with others; the possible hits."""
    # Each once: a sync moves rows, and titles of equal scores are in the order of their rows.
    old = {str(number): title for number, title in enumerate(dict.fromkeys(TITLES))}
    changed = {id: f"{title} {TITLES[0]}" for id, title in old.items() if id.endswith("1")}
    new = {**dict(list(old.items())[50:]), **changed, "new": f"{TITLES[3]} {TITLES[0]}"}
    indexes = []
    for number, titles in enumerate((old, new)):
        lines = (f"{id}\t{title}\n" for id, title in titles.items())
        (folder / f"{number}.tsv").write_text("".join(lines), "utf-8")
        indexes.append(_built([*titles.values()], [*titles]))
    indexes[0].save(folder / "index")
    return _right(*indexes)


@contextlib.contextmanager
def _changing(folder, process, count):
    """Sync the index to the other titles and back, and let the server read it at any time."""
    ends, done = threading.Event(), {"syncs": 0, "reloads": 0}
    rng = random.Random(0)

    def change():
        while not ends.is_set():
            titles = folder / f"{(done['syncs'] + 1) % 2}.tsv"
            syncing = _sentemb(
                "index", folder / "index", "--sync", titles, stdout=subprocess.DEVNULL
            )
            while syncing.poll() is None:
                process.send_signal(signal.SIGHUP)
                done["reloads"] += 1
                time.sleep(rng.uniform(0.05, 0.5))
            said = syncing.communicate()[1]
            if syncing.returncode:
                count.failures.append(f"a sync: {said}")
            done["syncs"] += 1
            process.send_signal(signal.SIGHUP)

    changing = threading.Thread(target=change)
    changing.start()
    try:
        yield done
    finally:
        ends.set()
        changing.join()


def _settled(process, port, right):
    """The size of a server once it has read its index for the last time and answers nobody."""
    time.sleep(1.5)
    _honest(port, right, _CLIENTS)
    time.sleep(0.5)
    return size_of(process.pid)


def started_during_syncs(rounds: int) -> Count:
    """Servers that start while their index is synced: each answers from the old or the new one."""
    count = Count("servers that start during a sync", tried=rounds)
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        right = _states(folder)
        for number in range(rounds):
            titles = folder / f"{1 - number % 2}.tsv"
            syncing = _sentemb(
                "index", folder / "index", "--sync", titles, stdout=subprocess.DEVNULL
            )
            time.sleep(rng.uniform(0, 1))
            try:
                with _serving(folder / "index") as (_, port, _):
                    count.failures += _honest(port, right, _CLIENTS)[0]
            except RuntimeError as error:
                count.failures.append(str(error))
            said = syncing.communicate()[1]
            if syncing.returncode:
                count.failures.append(f"a sync: {said}")
    return count


def killed_recording(rounds: int) -> Count:
    """SIGKILL of a server that records: what it has answered is in the record, clicks too."""
    count = Count("killed servers that record")
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as place:
        index, record = Path(place) / "index", Path(place) / "searches.sqlite"
        _built(TITLES).save(index)
        answered: list[tuple[str, str]] = []
        for number in range(rounds):
            with _serving(index, "--record", record) as (process, port, _):
                clients = [
                    threading.Thread(target=_search_and_click, args=(port, first, answered))
                    for first in range(4)
                ]
                for client in clients:
                    client.start()
                time.sleep(rng.uniform(0, 1))
                process.kill()
                for client in clients:
                    client.join()
            clicked = {(row[4], row[2]) for row in record_rows(record, all_shown=False)}
            shown = {row[4] for row in record_rows(record, all_shown=True)}
            lost = [
                one for one in answered if one[0] not in shown or (one[1] and one not in clicked)
            ]
            count.failures += [f"round {number}: {one} is lost" for one in lost]
        count.tried = len(answered)
        count.notes.append(f"{rounds} servers killed")
    return count


def _search_and_click(port, number, answered):
    """Search and click until the server is gone; list the searches and clicks it has answered."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.suppress(OSError, http.client.HTTPException):
        while True:
            status, body = _ask(client, QUERIES[number % len(QUERIES)])
            assert status == 200, body
            found = json.loads(body)
            answered.append((found["search"], ""))
            if found["hits"]:
                click = {"search": found["search"], "id": found["hits"][0]["id"]}
                kind = {"Content-Type": "application/json"}
                client.request("POST", "/click", json.dumps(click), kind)
                answer = client.getresponse()
                assert answer.status == 200, answer.read()
                answer.read()
                answered.append((click["search"], click["id"]))
            number += 1
    client.close()


# -- refreshes -------------------------------------------------------------------------------------


def killed_refreshing(rounds: int) -> Count:
    """SIGKILL of ``sentemb refresh`` at random moments while its shop is served and searched.

    After each kill the index is whole. Every search meanwhile is answered, by the old titles or the
    new ones. The last refresh ends, and leaves nothing behind.
    """
    count = Count("killed refreshes", tried=rounds)
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        shop, states, seconds = _shop_of_two_months(folder)
        with _serving(shop) as (_, port, said), _searched(port, states, count) as answered:
            for number in range(rounds):
                refreshing = _refreshing(shop, folder / f"{number % 2}.csv")
                time.sleep(rng.uniform(0, seconds))
                refreshing.kill()
                refreshing.communicate()
                try:
                    Index.verify(shop / "index")
                except SentembError as error:
                    count.failures.append(f"round {number}: {error}")
            last = _refreshing(shop, folder / f"{rounds % 2}.csv")
            wrong = last.communicate()[1] if last.wait() else ""
        if wrong or (shop / "refreshing").exists():
            count.failures.append(f"the last refresh: {wrong or 'its work is still there'}")
        count.failures += [line for line in said if not line.endswith(_SAID)]
        count.notes.append(f"{answered[0]:,} searches answered; a refresh takes {seconds:.1f} s")
    return count


def _shop_of_two_months(folder):
    """A shop, the possible hits of its two catalogues, and the seconds of a refresh."""
    old = {
        f"p{number}": title for number, title in enumerate(dict.fromkeys(TITLES)) if title.strip()
    }
    new = {**dict(list(old.items())[50:]), "new": f"{TITLES[3]} {TITLES[0]}"}
    for number, titles in enumerate((old, new)):
        with (folder / f"{number}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("sku", "name"), *titles.items()])
    shop, indexes, seconds = folder / "shop", [], 0.0
    made = _sentemb("start", folder / "0.csv", "-o", shop, stdout=subprocess.DEVNULL)
    assert not made.wait(), made.communicate()[1]
    for number in (1, 0):
        began = time.monotonic()
        refreshing = _refreshing(shop, folder / f"{number}.csv")
        assert not refreshing.wait(), refreshing.communicate()[1]
        seconds = time.monotonic() - began
        indexes.append(Index.open(shutil.copytree(shop / "index", folder / f"index {number}")))
    return shop, _right(*indexes), seconds


def _refreshing(shop, catalogue):
    return _sentemb("refresh", shop, "--catalogue", catalogue, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def _searched(port, right, count):
    """Search all the time; how many searches were answered, and in ``count`` what was wrong."""
    ends, answered = threading.Event(), [0]

    def search():
        while not ends.wait(0.1):
            count.failures += _honest(port, right, len(QUERIES))[0]
            answered[0] += len(QUERIES)

    searching = threading.Thread(target=search)
    searching.start()
    try:
        yield answered
    finally:
        ends.set()
        searching.join()


def versions(with_ours=(False, True)) -> Count:
    """Workers of a cluster that have another version, alone and together with one of this version.

    From Python and from each command with ``--dask`` the message names both versions, and nothing
    is written.
    """
    count = Count("versions")
    from distributed import LocalCluster

    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        folder = Path(place)
        copied = folder / "other" / "sentemb"
        shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
        version = (copied / "version.py").read_text(encoding="utf-8")
        (copied / "version.py").write_text(version.replace(__version__, "0.0.7"), encoding="utf-8")
        model_of().save_pretrained(folder / "model")
        (folder / "titles.tsv").write_text("".join(f"{k}\t{t}\n" for k, t in enumerate(TITLES)))
        (folder / "log.tsv").write_text("".join(f"{title}\t{title}\n" for title in TITLES))
        cluster = stack.enter_context(LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0"))
        address = cluster.scheduler_address
        stack.enter_context(_worker(address, folder / "other"))
        for is_ours_there in with_ours:
            if is_ours_there:
                stack.enter_context(_worker(address, folder))
            cluster.wait_for_workers(1 + is_ours_there)
            for arguments in (
                None,
                ("index", folder / "model", folder / "titles.tsv", "-o", folder / "out"),
                ("train", folder / "log.tsv", "--parts", 2, "-o", folder / "out"),
            ):
                count.tried += 1
                said = _refusal(address, arguments)
                count.notes.append(said.strip())
                if f"has sentemb 0.0.7, this process {__version__}" not in said:
                    count.failures.append(f"{arguments}, ours there {is_ours_there}: {said}")
                if (folder / "out").exists():
                    count.failures.append(f"{arguments}: something was written")
                    shutil.rmtree(folder / "out")
    return count


@contextlib.contextmanager
def _worker(address, path):
    """A process of a worker that finds its packages in ``path`` first."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address,
         "--nthreads", "1", "--no-nanny", "--no-dashboard"],
        env={**os.environ, "PYTHONPATH": str(path)}, cwd=path,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        worker.terminate()
        worker.wait()


def _refusal(address, arguments):
    """What a cluster is refused with, from Python or by a command."""
    if arguments is not None:
        process = _sentemb(*arguments, "--dask", address, stdout=subprocess.DEVNULL)
        said = process.communicate()[1]
        return said if process.returncode == 1 else f"exit code {process.returncode}: {said}"
    try:
        with opened(address):
            return "accepted"
    except SentembError as error:
        return str(error)
