"""The server on real sockets: crowds, slow and malformed clients, signals, a gentle end."""

import asyncio
import contextlib
import errno
import http.client
import json
import logging
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import quote

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import forked, made_up_texts, with_slow_function
from waitress.channel import HTTPChannel

from sentemb import Index, SentembError
from sentemb.bridges.server.answers import Answers
from sentemb.bridges.server.app import create_app
from sentemb.bridges.server.request_limits import Limits
from sentemb.bridges.server.server import Server, _in_one_line, _signals
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.search.product_fields import ProductFields

TITLES = made_up_texts(np.random.default_rng(1), [3] * 50)
GET = b"GET /search?q=a HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture(scope="module")
def index(model):
    return Index.build(model, TITLES)


@contextlib.contextmanager
def running(app, port=0, **settings):
    """The port of a server that runs in a thread."""
    server = Server(app, port=port, **settings)
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


def hits_of(index, query, k):
    """What the server answers without a network."""
    return Answers(index).search([query], k)[0]["hits"]


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


def beginning_on(client):
    """The first 12 bytes of the answer, or none if the server closed the connection."""
    try:
        return client.recv(12)
    except ConnectionResetError:  # it closed before it had read the request
        return b""


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
    """Each is answered rightly."""
    for number, (status, body) in enumerate(found):
        query = f"{number} a"
        hits = hits_of(index, query, 3)
        assert status == 200
        assert json.loads(body)["query"] == query and json.loads(body)["hits"] == hits


def test_a_crowd_is_answered_and_none_is_lost(index):
    with running(create_app(index), connection_limit=100) as port:
        found = asyncio.run(crowd(port, 300, get_closing))
        assert len(found) == 300
        check_crowd(found, index)


@pytest.mark.slow
def test_crowds_of_a_thousand_do_not_let_the_memory_grow(folder):
    index = Index.open(folder / "index")
    with command(folder / "index", "--port", 0) as (process, address):
        port = int(address.rsplit(":", 1)[1])
        sizes = []
        for _ in range(8):
            found = asyncio.run(crowd(port, 1000, get_closing))
            assert len(found) == 1000
            check_crowd(found, index)
            sizes.append(memory_of(process.pid))
        assert sizes[-1] - sizes[1] < 10, sizes
        assert answer_to(port, GET)[0] == 200


def test_who_has_left_is_skipped(index, monkeypatch):
    go, begun, queries = threading.Event(), threading.Semaphore(0), []

    def slow(self, texts, *arguments, **more):
        queries.extend(texts)
        begun.release()
        go.wait(20)
        return [[]]

    monkeypatch.setattr(Index, "search", slow)
    with running(create_app(index), threads=2) as port, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(port)) for _ in range(2)]
        for client in clients:
            client.sendall(GET)
            assert begun.acquire(timeout=20)
        with connected(port) as leaves:
            leaves.sendall(GET.replace(b"q=a", b"q=leaves"))
            time.sleep(0.1)
        time.sleep(0.1)
        go.set()
        assert [answer_on(client)[0] for client in clients] == [200] * 2
        assert answer_to(port, GET)[0] == 200
    assert queries == ["a"] * 3


# -- malformed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00\x01\x02\x03\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"get /health HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost localhost\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400),
        (b"POST /search HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /search HTTP/1.1\r\nContent-Length: 1, 2\r\n\r\n", 400),
        (b"POST /search HTTP/1.1\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n", 413),
        (b"POST /search HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST /search HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        (b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X-A: b\r\n" * 10_000 + b"\r\n", 431),
        (b"GET /search?q=\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        # Python refuses thousands of digits and half of a bracket: waitress closes the connection.
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", None),
        (b"GET http://[x HTTP/1.1\r\nHost: localhost\r\n\r\n", None),
    ],
)  # fmt: skip
def test_what_is_not_http_is_refused_by_waitress(port, sent, status):
    with connected(port) as client:
        client.sendall(sent)
        try:
            found = all_from(client)
        except ConnectionResetError:  # instead of the answer, as not all was read
            assert status == 431
            return
    if status is None:
        assert found == b""
    else:
        assert found.startswith(b"HTTP/1.") and int(found.split()[1]) == status
        assert b"Traceback" not in found and b"\r\nServer:" not in found


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        (b"GET //search?q=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "not valid UTF-8"),
        (b"GET ../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "nothing at this"),
        (b"GET /..%2f..%2fetc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "nothing at this"),
        (b"GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "nothing at this"),
        (b"GET file:///etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "nothing at this"),
        (b"BREW /search HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "the method BREW"),
    ],
)  # fmt: skip
def test_odd_addresses_get_json(port, sent, status, message):
    found, headers, body = answer_to(port, sent)
    assert found == status
    assert message in error_of(body)
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Type"] == "application/json" and "Server" not in headers
    assert b"waitress" not in body and b"Traceback" not in body


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


def test_the_loop_sleeps_while_a_thread_sends(port, monkeypatch):
    """A loop that asks again and again takes turns that the thread needs to go on."""
    asked, is_sending = [], threading.Event()
    send, write = HTTPChannel.send, HTTPChannel.handle_write

    def slow_send(self, *arguments, **settings):
        sent = send(self, *arguments, **settings)
        is_sending.set()
        time.sleep(0.2)
        return sent

    monkeypatch.setattr(HTTPChannel, "send", slow_send)
    monkeypatch.setattr(HTTPChannel, "handle_write", lambda self: (asked.append(self), write(self)))
    with connected(port) as client:
        client.sendall(GET)
        assert is_sending.wait(20)
        client.sendall(GET)  # wakes the loop
        assert [answer_on(client)[0] for _ in range(2)] == [200] * 2
    assert len(asked) < 10


def test_what_a_thread_cannot_send_is_sent_by_the_loop_at_once(port, monkeypatch):
    send = HTTPChannel.send

    def send_from_loop(self, *arguments, **settings):
        is_loop = not threading.current_thread().name.startswith("waitress-")
        return send(self, *arguments, **settings) if is_loop else 0

    monkeypatch.setattr(HTTPChannel, "send", send_from_loop)
    began = time.monotonic()
    with connected(port) as client:
        for _ in range(10):
            client.sendall(GET)
            assert answer_on(client)[0] == 200
    assert time.monotonic() - began < 5  # the loop looks by itself once a second


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
        with contextlib.suppress(ConnectionError):  # what has not been read resets the connection
            assert answer_on(client)[0] == 413
    assert answer_to(port, GET)[0] == 200
    if sys.platform == "linux":
        assert memory_of(os.getpid()) - before < 30


def test_a_client_may_ask_before_it_sends(port):
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


def test_a_malformed_request_of_a_client_that_has_left_is_at_most_one_line(port, caplog):
    for _ in range(20):
        client = connected(port)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sendall(b"\x00\x1b[31m\r\n\r\n" * 50)
        client.close()  # with a reset
    assert answer_to(port, GET)[0] == 200
    for record in caplog.records:
        assert record.exc_info is None
        assert "\n" not in record.getMessage() and "\x1b" not in record.getMessage()


def test_an_error_of_waitress_is_one_line():
    try:
        raise AttributeError("no\npath \x1b[31m")
    except AttributeError:
        record = logging.LogRecord(
            "waitress", logging.ERROR, "", 1, "serving %s", ("x",), sys.exc_info()
        )
    assert _in_one_line(record)
    assert logging.Formatter().format(record) == r"serving x: AttributeError: no\npath \x1b[31m"


# -- slow --------------------------------------------------------------------------------------


def test_a_silent_client_is_cut_off(index):
    with running(create_app(index), channel_timeout=1) as port, connected(port) as client:
        began = time.monotonic()
        assert client.recv(1) == b""
        assert 0.5 < time.monotonic() - began < 10


def test_idle_connections_lock_others_out_until_they_time_out(index):
    """docs/serve.md says so: a proxy limits the connections of an address."""
    with (
        running(create_app(index), connection_limit=10, channel_timeout=2) as port,
        contextlib.ExitStack() as stack,
    ):
        for _ in range(15):
            stack.enter_context(connected(port))
        time.sleep(0.5)
        began = time.monotonic()
        assert answer_to(port, GET)[0] == 200
        assert 0.5 < time.monotonic() - began < 15


# -- time --------------------------------------------------------------------------------------


GIVEN_UP = b"HTTP/1.1 503"
SLOW = GET.replace(b"q=a", b"q=a&where=" + b"+and+".join([b"slow(x)%3C99"] * 9))


def test_a_slow_condition_ends_and_others_are_answered(index, monkeypatch):
    """Four of them occupy all threads of the server; nobody waits longer than they may take."""
    fields = ProductFields.given({"x": list(range(len(index)))}, len(index))
    many = Index.build(index.model, list(index.titles), fields=fields)
    with_slow_function(monkeypatch, many.fields, 0.02)
    app = create_app(many, limits=Limits(seconds=0.5))
    with running(app) as port, contextlib.ExitStack() as stack:
        began = time.monotonic()
        slow = [stack.enter_context(connected(port)) for _ in range(4)]
        for client in slow:
            client.sendall(SLOW)
        time.sleep(0.1)
        assert answer_to(port, GET)[0] in (200, 503)
        assert time.monotonic() - began < 0.5 + 1.2
        assert [beginning_on(client) for client in slow] == [GIVEN_UP] * 4
        assert time.monotonic() - began < 0.5 + 1.2
        assert answer_to(port, GET)[0] == 200


def test_the_time_of_a_request_counts_from_its_first_byte(index):
    app = create_app(index, limits=Limits(seconds=1.0))
    with running(app) as port, connected(port) as client:
        client.sendall(GET[:5])
        time.sleep(1.2)
        client.sendall(GET[5:])
        assert answer_on(client)[0] == 503
        client.sendall(GET)  # the next on the same connection has a time of its own
        assert answer_on(client)[0] == 200


def test_a_server_that_computes_ends_within_two_seconds(folder):
    with command(folder / "index", "--port", 0, code=_MAIN) as (process, address):
        port = int(address.rsplit(":", 1)[1])
        bodies = json.dumps({"queries": ["a b c " * 20] * 100, "k": 100, "all": True}).encode()
        head = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        post = head + b"Content-Length: %d\r\n\r\n" % len(bodies) + bodies
        with contextlib.ExitStack() as stack:
            for _ in range(8):
                stack.enter_context(connected(port)).sendall(post)
            time.sleep(0.2)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 128 + signal.SIGTERM
            assert time.monotonic() - began < 3  # two seconds, if other tests leave the processor


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
    begun, go = threading.Semaphore(0), threading.Event()

    def slow(*arguments, **more):
        begun.release()
        assert go.wait(20)
        return [[]]

    monkeypatch.setattr(Index, "search", slow)
    server = Server(create_app(index), port=0)
    thread = threading.Thread(target=server.run)
    thread.start()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(connected(server.port)) for _ in range(6)]
        for client in clients:
            client.sendall(GET)
        for _ in range(4):
            assert begun.acquire(timeout=20)
        server.stop()
        while not server._server.task_dispatcher.stop_count:
            time.sleep(0.01)
        go.set()
        # Those that wait are not, whichever of the clients they are.
        assert sorted(map(beginning_on, clients)) == [b""] * 2 + [b"HTTP/1.1 200"] * 4
    thread.join(20)
    assert not thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        connected(server.port)


def test_without_the_extra_the_message_names_it(index, monkeypatch):
    for name in ("flask", "waitress"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        SentembError, match=r"the server needs flask.*pip install 'sentemb\[serve\]'"
    ):
        create_app(index)
    with pytest.raises(SentembError, match="the server needs waitress"):
        Server(None)


def test_only_one_hangup_waits_while_another_is_dealt_with():
    """The index that is read last is the one that is served last."""
    begun, go, at_once, seen = threading.Semaphore(0), threading.Event(), [], []

    def read_again():
        at_once.append(1)
        seen.append(len(at_once))
        begun.release()
        assert go.wait(20)
        at_once.pop()

    with _signals(read_again):
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
def command(*arguments, start=(sys.executable, "-m", "sentemb"), code=None):
    """A process of ``sentemb serve`` and its address; a fork that runs ``code`` if it is given."""
    arguments = ["serve", *map(str, arguments)]
    if code is None:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([*start, *arguments], text=True, **pipes)
    else:
        process = forked(code, *arguments)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


_MAIN = """
from sentemb.cli import main
main()
"""


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
        assert found["hits"] == hits_of(index, "hotels 3", 4) != []
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


def test_the_command_takes_over_the_index_of_a_shop(index, tmp_path):
    index.save(tmp_path / "index")
    (tmp_path / "titles.tsv").write_text("made by start\n")
    with command(tmp_path, "--port", 0, code=_MAIN) as (process, address):
        smaller = Index.open(tmp_path / "index")
        for left in (1, 2):
            smaller.remove([str(left)])
            smaller.save(tmp_path / "index", force=True)
            end = time.monotonic() + 20
            while fetched(address, "/health")[1]["titles"] != len(TITLES) - left:
                assert fetched(address, "/search?q=hotels+3")[0] == 200  # none is refused
                time.sleep(0.005)
                assert time.monotonic() < end
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
        assert process.returncode == 130 and "read again" in said


def overwritten(folder):
    """Empty the files of an index in place, as ``cp`` does at first."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("r+b") as file:
                file.truncate(0)


_HUNG_UP = """
import os, signal, sys
from sentemb import Index
from sentemb.cli import main

def opened(*arguments, open=Index.open, **more):
    Index.open = open
    index = open(*arguments, **more)
    os.kill(os.getpid(), signal.SIGHUP)
    return index

Index.open = opened
main(sys.argv[1:])
"""


def test_a_hangup_while_the_command_starts_and_files_overwritten_under_it(index, tmp_path):
    """The hangup is dealt with later, and an index in memory answers without its files."""
    path = tmp_path / "index"
    index.save(path)
    with command(path, "--port", 0, "--in-memory", code=_HUNG_UP) as (process, address):
        said = {process.stderr.readline(), process.stderr.readline()}
        assert said == {"Ctrl-C ends the server\n", f"{path}: read again\n"}
        overwritten(path)
        found = fetched(address, "/search?q=hotels+3&k=4")[1]
        assert found["hits"] == hits_of(index, "hotels 3", 4) != []
        # What is there now cannot be opened, and the server says so.
        process.send_signal(signal.SIGHUP)
        assert process.stderr.readline().startswith("still serving the old index: ")
        assert fetched(address, "/health")[0] == 200
        process.terminate()
        assert process.wait(20) == 143


def test_the_command_sets_no_handler_for_good(folder):
    before = signal.getsignal(signal.SIGHUP)
    CliRunner().invoke(main, ["serve", str(folder / "nothing")])
    assert signal.getsignal(signal.SIGHUP) is before


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


# One limit after the other in one process: to start each takes a second.
_FEW_FILES = """
import contextlib, resource, sys
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
for files in (40, 66, 71, 72):
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    from sentemb.cli import main  # also within the first limit
    with contextlib.suppress(SystemExit):
        main(sys.argv[1:])
"""


def test_too_few_open_files_are_refused_before_the_address_is_printed(folder):
    pytest.importorskip("resource")
    start = sys.executable, "-c", _FEW_FILES
    with command(folder / "index", "--port", 0, start=start) as (process, address):
        for files in (40, 66, 71):
            said = process.stderr.readline()
            assert f"may have only {files} open files" in said
            assert "raise the limit with ulimit" in said
        port = int(address.rsplit(":", 1)[1])
        for _ in range(20):
            assert answer_to(port, GET)[0] == 200
        process.kill()
        assert process.stdout.read() == "" and "limit" not in process.stderr.read()


@pytest.mark.skipif(sys.platform != "linux", reason="about mapped files of Linux")
def test_a_server_ends_when_mapped_files_of_its_index_are_overwritten(index, tmp_path):
    """docs/serve.md says so."""
    index.save(tmp_path / "index")
    with command(tmp_path / "index", "--port", 0, code=_MAIN) as (process, address):
        overwritten(tmp_path / "index")
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            fetched(address, "/search?q=hotels+3&k=4")
        assert process.wait(20) == -signal.SIGBUS


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
