"""How many requests per second `sentemb serve` answers, and how long a client waits.

The server is a process of its own; clients are connections of this process, each of which sends its
next request when the last is answered. So both share the processors. Writes
docs/results/search-speed.md.

    python benchmarks/serve_speed.py [--made FOLDER] [--quick]

With --made, FOLDER/NAME/index and FOLDER/NAME/pairs.tsv are used for each data set; otherwise a
model is trained on each log with the defaults, and the index has all parts of the ranking.
"""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from pages import DATA, machine, write_tables
from rounds import note

from sentemb import Index, fit_ranker, train
from sentemb.data.click_log import read_click_log
from sentemb.system.tables import markdown_table

SETS = ("occupations", "tldr")
CLIENTS = (1, 10, 100)
BATCH = 100
DEV = 0.1
QUERIES = 2000
TURNS = 5  # of the server and of `Index.search`
SERVER = [
    "log", "titles", "queries of the log", "ready after", "memory before", "memory after",
    "CPU of an answer, 8 clients", "CPU of `Index.search`", "ratio",
]  # fmt: skip


@dataclass
class Measured:
    """What clients saw."""

    seconds: float = 0.0
    waits: list = field(default_factory=list)
    refused: int = 0

    @property
    def per_second(self):
        return len(self.waits) / self.seconds

    def wait(self, share):
        """The wait that ``share`` of the requests do not exceed, in milliseconds."""
        return 1e3 * float(np.quantile(self.waits, share))


class Client:
    """One connection that stays open."""

    def __init__(self, port):
        self.port, self.reader, self.writer = port, None, None

    async def ask(self, request):
        """Status and body of the answer to a request."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.startswith("content-le"))
        body = await self.reader.readexactly(length)
        if "connection: close" in lines:
            self.close()
        return int(head.split()[1]), body

    def close(self):
        if self.writer is not None:
            self.writer.close()
            self.writer = None


def get(path, **parameters):
    return f"GET {path}?{urlencode(parameters)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(path, value):
    body = json.dumps(value).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def measured(port, clients, requests, seconds):
    """Let ``clients`` connections send ``requests``, over and over, for some seconds."""
    found, end = Measured(), time.monotonic() + seconds

    async def run(first):
        client, number = Client(port), first
        while time.monotonic() < end:
            began = time.perf_counter()
            status, _ = await client.ask(requests[number % len(requests)])
            if status == 200:
                found.waits.append(time.perf_counter() - began)
            elif status == 503:
                found.refused += 1
            else:
                raise SystemExit(f"the server answered with status {status}")
            number += clients
        client.close()

    began = time.monotonic()
    await asyncio.gather(*map(run, range(clients)))
    found.seconds = time.monotonic() - began
    return found


@contextlib.contextmanager
def served(index, log):
    """The port and the process of a server, and the seconds until it was ready."""
    began = time.monotonic()
    command = [sys.executable, "-m", "sentemb", "serve", index, "--log", log, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline()
        yield int(address.rsplit(":", 1)[1]), process.pid, time.monotonic() - began
    finally:
        process.terminate()
        process.wait()


def processor_seconds(process):
    """Seconds of all its threads so far, from the fields utime and stime."""
    times = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def processor_times(port, process, searches, index, queries, seconds):
    """Processor seconds of an answer to 8 clients and of `Index.search`, and their ratio."""
    served, alone = [], []
    for _ in range(TURNS):
        before = processor_seconds(process)
        found = asyncio.run(measured(port, 8, searches, seconds / TURNS))
        served.append((processor_seconds(process) - before) / len(found.waits))
        began = time.process_time()
        for query in queries[:500]:
            index.search(query)
        alone.append((time.process_time() - began) / len(queries[:500]))
    return np.median([served, alone, np.array(served) / np.array(alone)], axis=1).tolist()


def memory_of(process):
    """Resident megabytes."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise SystemExit("no VmRSS")


def made(name, folder):
    """Make the index of a data set in ``folder``."""
    log = read_click_log(DATA / name / "pairs.tsv")
    note(f"{name}: training")
    ranker = fit_ranker(train(log, dev=DEV, epochs=2), log, DEV)
    Index.build(ranker, log.titles).save(folder / "index")
    (folder / "pairs.tsv").symlink_to(DATA / name / "pairs.tsv")
    return folder


def row(what, clients, found, per_request=1):
    return [
        what,
        str(clients),
        f"{found.per_second * per_request:,.0f}",
        f"{found.wait(0.5):,.1f} ms",
        f"{found.wait(0.99):,.1f} ms",
        f"{found.refused:,}",
    ]


def tables_of(name, folder, seconds):
    """The table of the requests of a data set, and the row of its server."""
    log, index = read_click_log(folder / "pairs.tsv"), Index.open(folder / "index")
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(log.queries), min(QUERIES, len(log.queries)), replace=False)
    queries = [log.queries[place] for place in chosen.tolist()]
    best = index.search(queries, 1)
    pairs = [(query, hits[0].id) for query, hits in zip(queries, best, strict=True) if hits]
    searches = [get("/search", q=query) for query in queries]
    explained = [get("/explain", q=query, id=id) for query, id in pairs]
    batches = [
        post("/search", {"queries": queries[first : first + BATCH]})
        for first in range(0, len(queries) - BATCH + 1, BATCH)
    ]
    rows = [["request", "clients", "per second", "median wait", "99 % wait at most", "refused"]]
    with served(folder / "index", folder / "pairs.tsv") as (port, process, ready):
        asyncio.run(measured(port, 4, searches[:200] + explained[:50], seconds / 2))
        before = memory_of(process)
        for clients in CLIENTS:
            note(f"{name}: {clients} clients")
            found = asyncio.run(measured(port, clients, searches, seconds))
            rows.append(row("`GET /search`, one query", clients, found))
        found = asyncio.run(measured(port, 4, batches, seconds))
        rows.append(row(f"`POST /search`, {BATCH} queries: queries", 4, found, BATCH))
        found = asyncio.run(measured(port, 1, explained, seconds))
        rows.append(row("`GET /explain`", 1, found))
        after = memory_of(process)
        answer, search, ratio = processor_times(port, process, searches, index, queries, seconds)
    server = [
        name,
        f"{len(index):,}",
        f"{len(log.queries):,}",
        f"{ready:.1f} s",
        f"{before:,.0f} MB",
        f"{after:,.0f} MB",
        f"{1e3 * answer:.2f} ms",
        f"{1e3 * search:.2f} ms",
        f"{ratio:.2f} ×",
    ]
    return markdown_table(rows), server


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--made", type=Path, help="folder with NAME/index and NAME/pairs.tsv")
    parser.add_argument("--quick", action="store_true", help="short, results not written")
    options = parser.parse_args()
    seconds = 1 if options.quick else 3
    tables, servers = {}, [SERVER]
    with tempfile.TemporaryDirectory() as temporary:
        for name in SETS:
            folder = Path(temporary) / name
            if options.made is not None:
                folder = options.made / name
            else:
                folder.mkdir()
                made(name, folder)
            tables[name], server = tables_of(name, folder, seconds)
            servers.append(server)
    write_tables(
        "serve-speed", tables | {"Server": markdown_table(servers)}, machine(), options.quick
    )


if __name__ == "__main__":
    main()
