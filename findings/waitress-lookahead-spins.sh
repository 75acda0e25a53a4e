#!/bin/sh
# waitress 3.0.2, Python 3.11
#
# With channel_request_lookahead=1, which lets an application see that its client has left, the loop
# of waitress turns a thousand times a request instead of twice. While a thread sends its answer, the
# loop finds bytes to send and a socket that takes them, cannot have the lock that the thread holds,
# and asks again at once. Each turn takes Python's interpreter lock, which the thread waits for. One
# would expect the loop to sleep until the thread has done: the processor time of a short answer
# doubles.
#
# Seen:
#     lookahead 0: 2 turns of the loop a request
#     lookahead 1: 1,134 turns of the loop a request
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet waitress==3.0.2
"$folder/venv/bin/python" - <<'PYTHON'
import subprocess
import sys
import threading
import time

import waitress
from waitress import wasyncore

REQUESTS = 200
CLIENT = f"""
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
for _ in range({REQUESTS}):
    connection.request("GET", "/")
    connection.getresponse().read()
"""
turns, poll = [], wasyncore.poll


def counted(*arguments):
    turns.append(1)
    return poll(*arguments)


def application(environ, start_response):
    end = time.perf_counter() + 0.003
    while time.perf_counter() < end:
        pass
    start_response("200 OK", [("Content-Length", "5000")])
    return [b"x" * 5000]


wasyncore.poll = counted
per_request = []
for lookahead in (0, 1):
    server = waitress.create_server(
        application, host="127.0.0.1", port=0, channel_request_lookahead=lookahead
    )
    threading.Thread(target=server.run, daemon=True).start()
    del turns[:]
    subprocess.run([sys.executable, "-c", CLIENT, str(server.effective_port)], check=True)
    per_request.append(len(turns) / REQUESTS)
    print(f"lookahead {lookahead}: {per_request[-1]:,.0f} turns of the loop a request")
raise SystemExit(per_request[1] < 10 * per_request[0])
PYTHON
