"""The server on real sockets: crowds, slow and malformed clients, signals, a gentle end."""

import asyncio
import contextlib
import errno
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_texts

from sentemb import Index, SentembError
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.serving.app import create_app
from sentemb.serving.limits import Limits
from sentemb.serving.runner import Server

TITLES = made_up_texts(np.random.default_rng(1), [3] * 50)
GET = b"GET /search?q=a HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def index(model):
    return Index.build(model, TITLES)


@contextlib.contextmanager
def running(app, limits=None, port=0):
    """The port of a server that runs in a thread."""
    server = Server(app, port=port, limits=limits)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server.port
    finally:
        server.stop()
        thread.join(20)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def port(index):
    with running(create_app(index)) as port:
        yield port


def connected(port):
    found = socket.create_connection(("127.0.0.1", port), timeout=20)
    found.settimeout(20)
    return found


def answer_to(port, sent, then_close=False):
    """Status, headers and body of the answer to some bytes."""
    with connected(port) as client:
        client.sendall(sent)
        if then_close:
            client.shutdown(socket.SHUT_WR)
        return answer_on(client)


def answer_on(client):
    found = http.client.HTTPResponse(client)
    found.begin()
    return found.status, dict(found.headers), found.read()


def all_from(client):
    """Everything until the server closes the connection."""
    parts = []
    while part := client.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def error_of(body):
    found = json.loads(body)
    assert set(found) == {"error"}
    return found["error"]


def memory_of(process):
    """Resident megabytes."""
    with open(f"/proc/{process}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


# -- crowds ------------------------------------------------------------------------------------


async def crowd(port, count, request):
    """The answers to ``count`` requests that are sent at once; (0, b"") for one that is lost."""
    gate = asyncio.Event()

    async def one(number):
        await gate.wait()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request(number))
            found = await asyncio.wait_for(reader.read(), 60)
            writer.close()
        except (OSError, TimeoutError):
            return 0, b""
        head, _, body = found.partition(b"\r\n\r\n")
        return int(head.split()[1]) if head else 0, body

    tasks = [asyncio.create_task(one(number)) for number in range(count)]
    await asyncio.sleep(0)
    gate.set()
    return await asyncio.gather(*tasks)


def get_closing(number):
    address = f"/search?q={number}+a&k=3"
    return f"GET {address} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


def check_crowd(found, index):
    """Each is answered rightly or refused; how many were answered."""
    for number, (status, body) in enumerate(found):
        if status == 200:
            query = f"{number} a"
            hits = [hit.as_dict() for hit in index.search(query, 3)]
            assert json.loads(body)["query"] == query and json.loads(body)["hits"] == hits
        else:
            assert status == 503
            assert "requests are waiting already; try again later" in error_of(body)
    return Counter(status for status, _ in found)[200]


def test_a_crowd_is_answered_or_refused_and_none_is_lost(index):
    with running(create_app(index), Limits(queue=20, connections=100)) as port:
        found = asyncio.run(crowd(port, 300, get_closing))
        # Afterwards there is room again.
        assert answer_to(port, GET)[0] == 200
    assert len(found) == 300 and check_crowd(found, index) >= 20


@pytest.mark.slow
def test_crowds_of_a_thousand_do_not_let_the_memory_grow(folder):
    index = Index.open(folder / "index")
    with command(folder / "index", "--port", 0) as (process, address):
        port = int(address.rsplit(":", 1)[1])
        sizes = []
        for _ in range(8):
            found = asyncio.run(crowd(port, 1000, get_closing))
            assert len(found) == 1000 and check_crowd(found, index) >= 100
            sizes.append(memory_of(process.pid))
        assert sizes[-1] - sizes[1] < 10, sizes
        assert answer_to(port, GET)[0] == 200


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back(index, monkeypatch):
    go, begun = threading.Event(), threading.Semaphore(0)

    def slow(*arguments, **more):
        begun.release()
        go.wait(20)
        return [[]]

    monkeypatch.setattr(Index, "search", slow)
    with running(create_app(index), Limits(queue=2)) as port, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(port)) for _ in range(6)]
        for number, client in enumerate(clients):
            client.sendall(GET)
            if number < 4:
                assert begun.acquire(timeout=20)
            else:
                time.sleep(0.05)
        status, headers, body = answer_to(port, GET)
        assert status == 503 and headers["Retry-After"] == "1"
        assert error_of(body) == "2 requests are waiting already; try again later"
        assert headers["Content-Type"] == "application/json"
        go.set()
        assert [answer_on(client)[0] for client in clients] == [200] * 6


def test_who_has_waited_too_long_is_refused_and_who_has_left_is_skipped(index, monkeypatch):
    go, begun, queries = threading.Event(), threading.Semaphore(0), []

    def slow(self, texts, *arguments, **more):
        queries.extend(texts)
        begun.release()
        go.wait(20)
        return [[]]

    monkeypatch.setattr(Index, "search", slow)
    app = create_app(index)
    with running(app, Limits(seconds=0.3)) as port, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(port)) for _ in range(5)]
        for client in clients[:4]:
            client.sendall(GET)
            assert begun.acquire(timeout=20)
        clients[4].sendall(GET.replace(b"q=a", b"q=waits"))
        with connected(port) as leaves:
            leaves.sendall(GET.replace(b"q=a", b"q=leaves"))
            time.sleep(0.1)
        time.sleep(0.6)
        go.set()
        found = [answer_on(client) for client in clients]
    assert [status for status, *_ in found] == [200] * 4 + [503]
    assert "the request waited" in error_of(found[4][2])
    assert queries == ["a"] * 4


# -- malformed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        (b"\x00\x01\x02\x03\r\n\r\n", 400, "correct the request"),
        (b"GET\r\n\r\n", 400, "correct the request"),
        (b"get /health HTTP/1.1\r\n\r\n", 400, "correct the request"),
        (b"GET /health HTTP/1.1\r\nHost localhost\r\n\r\n", 400, "Invalid header"),
        (b"GET /health HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400, "Bare CR or LF"),
        (b"POST /search HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, "Content-Length"),
        (b"POST /search HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n", 400, "Content-Length"),
        (b"POST /search HTTP/1.1\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n", 413, "too large"),
        (b"POST /search HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "not supported"),
        (b"POST /search HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400, "chunk"),
        (b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n", 431, "headers are too large"),
        (b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 10_000 + b"\r\n", 431, "headers are too large"),
        (b"GET //search?q=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "not valid UTF-8"),
        (b"GET /search?q=\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "Bad URI"),
        (b"GET ../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "begin it with /"),
        (b"GET /..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "nothing at this"),
        (b"GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "nothing at this"),
        (b"GET file:///etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "nothing at this"),
        (b"BREW /search HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "the method BREW"),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400, "Content-Length"),
        (b"GET http://[x HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "the address is invalid"),
        (b"GET ?q=a HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "begin it with /"),
    ],
)  # fmt: skip
def test_malformed_requests_get_json(port, sent, status, message):
    found, headers, body = answer_to(port, sent)
    assert found == status
    assert message in error_of(body)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Type"] == "application/json" and "Server" not in headers
    assert b"waitress" not in body and b"Traceback" not in body


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_request_with_two_lengths_ends_the_connection(port, version):
    """A proxy may read another end of it, and what follows as the request of another client."""
    sent = (
        b"POST /search HTTP/%s\r\nHost: localhost\r\nConnection: keep-alive\r\n"
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % version
    )
    with connected(port) as client:
        client.sendall(sent + GET)
        found = all_from(client)
    assert found.count(b"HTTP/1.") == 1 and b"Transfer-Encoding are both given" in found


def test_a_query_of_the_longest_letters_fits_into_an_address(port):
    query = quote("\U0001f3e8" * Limits().characters)
    assert answer_to(port, GET.replace(b"q=a", b"q=" + query.encode()))[0] == 200


def test_large_answers_stay_in_memory(port, monkeypatch):
    """Queries and titles are not written to a disk, which may be full."""

    opened = []

    def no_disk(*arguments, **settings):
        opened.append(arguments)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", no_disk)
    queries = ["\U0001f3e8" * Limits().characters] * 100
    sent = json.dumps({"queries": queries, "k": 100}, ensure_ascii=False).encode()
    status, _, body = answer_to(port, head_of("/search", len(sent)) + sent)
    assert status == 200 and len(body) > 1 << 20
    assert len(json.loads(body)["results"]) == 100 and not opened


def test_noise_never_stops_the_server(port):
    rng = np.random.default_rng(0)
    for _ in range(60):
        noise = bytes(rng.integers(0, 256, 200).astype(np.uint8))
        with connected(port) as client:
            client.sendall(noise + b"\r\n\r\n" + noise)
    assert answer_to(port, GET)[0] == 200


def head_of(path, length, *more):
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
             f"Content-Length: {length}", *more]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_huge_body_is_refused_and_not_kept(port, is_chunked):
    size, piece = 100_000_000, b" " * 1_000_000
    before = memory_of(os.getpid()) if sys.platform == "linux" else 0
    with connected(port) as client:
        head = head_of("/search", size)
        if is_chunked:
            head = re.sub(rb"Content-Length: \d+", b"Transfer-Encoding: chunked", head)
            piece = b"%x\r\n%s\r\n" % (len(piece), piece)
        client.sendall(head)
        with contextlib.suppress(OSError):
            for _ in range(100):
                client.sendall(piece)
        status, _, body = answer_on(client)
    assert status == 413 and "too large; send fewer texts" in error_of(body)
    if sys.platform == "linux":
        assert memory_of(os.getpid()) - before < 30


def test_a_client_that_asks_first_is_refused_before_it_sends(port):
    large = head_of("/search", 100_000_000, "Expect: 100-continue")
    assert answer_to(port, large)[0] == 413
    body = json.dumps({"queries": ["a"]}).encode()
    with connected(port) as client:
        client.sendall(head_of("/search", len(body), "Expect: 100-continue"))
        assert client.recv(100).startswith(b"HTTP/1.1 100 Continue")
        client.sendall(body)
        assert answer_on(client)[0] == 200


def test_requests_in_a_row_on_one_connection(port):
    queries = [b"%d" % number for number in range(20)]
    sent = [GET.replace(b"q=a", b"q=" + query) for query in queries]
    sent[-1] = sent[-1].replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with connected(port) as client:
        client.sendall(b"".join(sent))
        found = all_from(client)
    assert found.count(b"HTTP/1.1 200 OK") == 20
    assert re.findall(rb'"query":"(\d+)"', found) == queries


# -- slow --------------------------------------------------------------------------------------

SLOW = Limits(sending_seconds=0.3, idle_seconds=0.6)
# What a client sends, what it sends again and again, and which of the two times it is given.
CLIENTS = {
    "headers": (b"GET /search?q=a HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n", 0.3),
    "half a line": (b"GET /sea", b"", 0.3),
    "a body": (head_of("/search", 1000), b" ", 0.3),
    "an asked body": (head_of("/search", 1000, "Expect: 100-continue"), b"", 0.3),
    "nothing": (b"", b"", 0.6),
    "empty lines": (b"", b"\r\n\r\n", 0.6),
    "a request and nothing": (GET, b"", 0.6),
}


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr("sentemb.serving.runner._ROUND", 0.05)


def test_slow_and_silent_clients_are_cut_off(index, often):
    def seconds_until_closed(sent, drip):
        with connected(port) as client:
            client.settimeout(0.05)
            client.sendall(sent)
            began = time.monotonic()
            with contextlib.suppress(ConnectionError):
                while time.monotonic() - began < 10:
                    if drip:
                        client.sendall(drip)
                    with contextlib.suppress(TimeoutError):
                        if client.recv(10_000) == b"":
                            break
            return time.monotonic() - began

    with running(create_app(index), SLOW) as port, ThreadPoolExecutor(len(CLIENTS)) as pool:
        assert answer_to(port, GET)[0] == 200
        jobs = {name: pool.submit(seconds_until_closed, *client[:2])
                for name, client in CLIENTS.items()}  # fmt: skip
        for name, (*_, least) in CLIENTS.items():
            assert least <= jobs[name].result() <= least + 2, name


def test_a_client_that_does_not_read_is_cut_off(often):
    size = 40_000_000

    def large(environ, start_response):
        start_response("200 OK", [("Content-Length", str(size))])
        return [b"a" * size]

    with running(large, SLOW) as port, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.sendall(GET)
        time.sleep(1)
        client.settimeout(5)
        read = 0
        with contextlib.suppress(ConnectionError):
            while data := client.recv(1 << 20):
                read += len(data)
        assert 0 < read < size


def test_slow_clients_do_not_stop_others(index, often):
    limits = Limits(sending_seconds=0.5, connections=60)
    with running(create_app(index), limits) as port, contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connected(port)).sendall(b"GET /search?q=a HTTP/1.1\r\n")
        assert answer_to(port, GET)[0] == 200
        for _ in range(40):  # more than there is room for
            stack.enter_context(connected(port)).sendall(b"GET /search?q=a HTTP/1.1\r\n")
        assert answer_to(port, GET)[0] == 200  # once the slow ones are cut off


# -- beginning and end -------------------------------------------------------------------------


def test_a_port_in_use_is_one_clear_line(index, port, tmp_path):
    app = create_app(index)
    with pytest.raises(SentembError, match=rf"port {port} of 127.0.0.1: .* in use; give another"):
        Server(app, port=port)
    with pytest.raises(SentembError, match=r"the host 'no\.such\.invalid' is not known; give"):
        Server(app, host="no.such.invalid")
    with pytest.raises(SentembError, match="port is 65536"):
        Server(app, port=65536)


def test_an_ipv6_address(index):
    if not socket.has_ipv6:
        pytest.skip("no IPv6")
    try:
        server = Server(create_app(index), host="::1", port=0)
    except SentembError:
        pytest.skip("no IPv6 on the loopback address")
    assert server.address == f"http://[::1]:{server.port}"
    server.stop()
    server.run()


def test_requests_that_have_begun_are_answered_at_the_end(index, monkeypatch):
    begun = threading.Semaphore(0)

    def slow(*arguments, **more):
        begun.release()
        time.sleep(0.3)
        return [[]]

    monkeypatch.setattr(Index, "search", slow)
    server = Server(create_app(index), port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(server.port)) for _ in range(6)]
        idle = stack.enter_context(connected(server.port))
        for client in clients:
            client.sendall(GET)
        for _ in range(4):
            assert begun.acquire(timeout=20)
        time.sleep(0.2)
        server.stop()
        assert [answer_on(client)[0] for client in clients] == [200] * 6
        assert idle.recv(10) == b""
    thread.join(20)
    assert not thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        connected(server.port)


def test_without_the_extra_the_message_names_it(index, monkeypatch):
    for name in ("flask", "waitress.adjustments"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        SentembError, match=r"the server needs flask.*pip install 'sentemb\[serve\]'"
    ):
        create_app(index)
    with pytest.raises(SentembError, match="the server needs waitress"):
        Server(None)


def test_requests_that_have_arrived_are_answered_at_the_end(index):
    """The system has accepted them; the server has not yet seen them."""
    server = Server(create_app(index), port=0)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(server.port)) for _ in range(3)]
        for client in clients:
            client.sendall(GET)
        server.stop()
        server.run()
        assert [answer_on(client)[0] for client in clients] == [200] * 3


def test_only_one_hangup_waits_while_another_is_dealt_with(index):
    """The index that is read last is the one that is served last."""
    server = Server(create_app(index), port=0)
    begun, go, at_once, seen = threading.Semaphore(0), threading.Event(), [], []

    def read_again():
        at_once.append(1)
        seen.append(len(at_once))
        begun.release()
        assert go.wait(20)
        at_once.pop()

    with server._signals(read_again):
        for _ in range(30):
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.001)
        assert begun.acquire(timeout=20)
        go.set()
        assert begun.acquire(timeout=20)
        assert not begun.acquire(timeout=0.2)
        # Later ones are not lost.
        os.kill(os.getpid(), signal.SIGHUP)
        assert begun.acquire(timeout=20)
    assert seen == [1, 1, 1]
    server.stop()
    server.run()


# -- the command -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(index, tmp_path_factory):
    path = tmp_path_factory.mktemp("served")
    index.save(path / "index")
    builder = ClickLogBuilder()
    for place, title in enumerate(TITLES):
        builder.add(f"query {place}", title)
    write_click_log(builder.build(), path / "pairs.tsv")
    return path


@contextlib.contextmanager
def command(*arguments):
    """A process of ``sentemb serve`` and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sentemb.cli", "serve", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def fetched(address, path):
    host, port = address.removeprefix("http://").rsplit(":", 1)
    client = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=20)
    client.request("GET", path)
    found = client.getresponse()
    return found.status, json.loads(found.read())


def test_the_command_serves_reads_again_and_ends(folder, index):
    with command(folder / "index", "--port", 0) as (process, address):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address)
        status, found = fetched(address, "/search?q=hotels+3&k=4")
        assert status == 200
        assert found["hits"] == [hit.as_dict() for hit in index.search("hotels 3", 4)] != []
        # The folder is replaced: the old index answers until the signal.
        smaller = Index.open(folder / "index")
        smaller.remove(["0"])
        smaller.save(folder / "index", force=True)
        assert fetched(address, "/health")[1]["titles"] == len(TITLES)
        process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 20
        while fetched(address, "/health")[1]["titles"] == len(TITLES) and time.monotonic() < end:
            time.sleep(0.05)
        assert fetched(address, "/health")[1]["titles"] == len(TITLES) - 1
        # Said after the index is replaced: a signal before that would end the process first.
        said = [process.stderr.readline(), process.stderr.readline()]
        assert said == ["Ctrl-C ends the server\n", f"{folder / 'index'}: read again\n"]
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
        assert process.returncode == 130 and out == ""


@pytest.mark.slow
def test_the_command_with_a_log_and_other_ends(folder, index):
    everywhere = ("--host", "0.0.0.0", "--log", folder / "pairs.tsv", "--port", 0)
    with command(folder / "index", *everywhere) as (process, address):
        assert fetched(address, "/health")[1]["name"] == "index"
        assert "nearest_queries" in fetched(address, "/explain?q=a&id=3")[1]
        assert (
            answer_to(int(address.rsplit(":", 1)[1]), GET.replace(b"localhost", b"any"))[0] == 200
        )
        (folder / "index").rename(folder / "away")
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert fetched(address, "/health")[0] == 200
        (folder / "away").rename(folder / "index")
        process.terminate()
        _, err = process.communicate(timeout=20)
        assert process.returncode == 143
    first, second, third = err.splitlines()
    assert first.startswith("note: anyone who can reach port") and "Ctrl-C" in second
    assert third.startswith("still serving the old index: ") and "no index here" in third
    with command(folder / "index", "--port", 0, "--allow-host", "a.example") as (process, address):
        port = int(address.rsplit(":", 1)[1])
        for host, status in (("localhost", 200), ("A.example:80", 200), ("b.example", 403)):
            assert answer_to(port, GET.replace(b"localhost", host.encode()))[0] == status


def test_the_command_refuses_in_one_line(folder, port):
    def refused(*arguments):
        done = CliRunner().invoke(main, ["serve", *map(str, arguments)])
        assert done.exit_code == 1 and done.stdout == "" and done.stderr.count("\n") == 1
        return done.stderr

    index = folder / "index"
    assert "in use; give another --port" in refused(index, "--port", port)
    assert "there is no index here" in refused(folder / "nothing")
    assert "is not an origin" in refused(index, "--allow-origin", "*")
    assert "is not the name of a host" in refused(index, "--allow-host", "a:80")
    assert "rate is -1" in refused(index, "--rate", -1)
    assert "no such file" in refused(index, "--log", folder / "none.tsv").lower()
