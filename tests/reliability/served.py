"""``sentemb serve`` under many requests and slow clients, and a cluster with another version."""

import contextlib
import http.client
import json
import os
import shutil
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
from reliability.faces import PACKAGE, TEXTS, model_of
from sentemb import Index, SentembError, __version__
from sentemb.bridges.server.answers import Answers
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe
from sentemb.system.cluster import opened

TITLES, QUERIES = TEXTS[:200], TEXTS[200:]
_K = 5
# Clients that ask honestly, each on one connection.
_CLIENTS = 8
_MOST_MORE_MEGABYTES = 20


@contextlib.contextmanager
def served():
    """A process of ``sentemb serve``, its port, and the body of the answer to each query."""
    with tempfile.TemporaryDirectory() as folder:
        ranker = HybridRanker(model_of(), Recipe({"cosine": 1.0, "bm25": 0.5}))
        index = Index.build(ranker, TITLES)
        index.save(Path(folder) / "index")
        command = [sys.executable, "-m", "sentemb", "serve", f"{folder}/index", "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            found = Answers(index).search(QUERIES, _K)
            right = dict(zip(QUERIES, (one["hits"] for one in found), strict=True))
            yield process.pid, port, right
        finally:
            process.terminate()
            process.communicate()


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
        if status != 200 or json.loads(body)["hits"] != right[query]:
            wrong.append(f"request {number} ({query!r}): {status}, {body[:80]!r}")
        if answers.setdefault(query, body) != body:
            wrong.append(f"request {number} ({query!r}): other bytes than before")
    client.close()
    return wrong, longest


def _honest(port, right, count, answers):
    with ThreadPoolExecutor(_CLIENTS) as pool:
        jobs = [
            pool.submit(_asked, port, right, range(first, count, _CLIENTS), answers)
            for first in range(_CLIENTS)
        ]
        found = [job.result() for job in jobs]
    return [line for wrong, _ in found for line in wrong], max(longest for _, longest in found)


def _size(process):
    """Resident megabytes and open files."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024, len(os.listdir(f"/proc/{process}/fd"))


def requests(total: int) -> Count:
    """Many requests to one server: the same bits each time, and neither memory nor files grow."""
    count = Count("requests", tried=total)
    with served() as (process, port, right):
        answers: dict[str, bytes] = {}
        warm = total // 5
        count.failures += _honest(port, right, warm, answers)[0]
        time.sleep(1)
        before = _size(process)
        wrong, longest = _honest(port, right, total - warm, answers)
        count.failures += wrong
        time.sleep(1)
        after = _size(process)
        count.notes += [
            f"after {warm:,} and {total:,} requests: {before[0]:.1f} and {after[0]:.1f} MB, "
            f"{before[1]} and {after[1]} open files; longest wait {longest:.2f} s"
        ]
        if after[0] - before[0] > _MOST_MORE_MEGABYTES or after[1] > before[1]:
            count.failures.append(count.notes[-1])
    return count


def slow_clients(slow: int, asked: int, seconds: float = 20.0) -> Count:
    """Clients that send a byte per second, and others whose answers must be right meanwhile."""
    count = Count("slow clients", tried=asked)
    with served() as (process, port, right), contextlib.ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(slow)
        ]
        ends, lost = threading.Event(), [0]

        def drip():
            for client in clients:
                client.sendall(b"GET /search?q=")
            while not ends.wait(1):
                for client in clients:
                    try:
                        client.sendall(b"a")
                    except OSError:
                        lost[0] += 1

        dripping = threading.Thread(target=drip)
        dripping.start()
        time.sleep(1)
        began, answers = time.monotonic(), {}
        wrong, longest = _honest(port, right, asked, answers)
        took = time.monotonic() - began
        count.failures += wrong
        ends.wait(max(0.0, seconds - took))
        ends.set()
        dripping.join()
        _, files = _size(process)
        count.notes.append(
            f"{slow} slow clients: {asked:,} requests of others in {took:.1f} s, longest wait "
            f"{longest:.2f} s; {files} open files, {lost[0]} sends to closed connections"
        )
    return count


def versions() -> Count:
    """A worker of a cluster that has another version: the message names both."""
    count = Count("versions", tried=1)
    from distributed import LocalCluster

    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "sentemb"
        shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
        version = (copied / "version.py").read_text(encoding="utf-8")
        (copied / "version.py").write_text(version.replace(__version__, "0.0.7"), encoding="utf-8")
        with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as cluster:
            address = cluster.scheduler_address
            worker = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_worker", address,
                 "--nthreads", "1", "--no-nanny", "--no-dashboard"],
                env={**os.environ, "PYTHONPATH": folder}, cwd=folder,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            try:
                with opened(address):
                    count.failures.append("a worker of another version is accepted")
            except SentembError as error:
                count.notes.append(str(error).replace(address, "ADDRESS"))
                if f"has sentemb 0.0.7, this process {__version__}" not in str(error):
                    count.failures.append(str(error))
            finally:
                worker.terminate()
                worker.wait()
    return count
