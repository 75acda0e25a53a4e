"""docs/serve.md: its commands and programs run, and its limits are those of the code."""

import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import types
from dataclasses import asdict
from pathlib import Path
from urllib.request import urlopen

import click
import numpy as np
import pytest
from helpers import made_up_model
from test_serve_network import running

from sentemb import Index
from sentemb.bridges.server import request_limits
from sentemb.bridges.server.app import create_app
from sentemb.bridges.server.request_limits import Limits
from sentemb.bridges.server.server import _FILES, _LEAST, Server
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder, read_click_log, write_click_log

PAGE = (Path(__file__).parents[1] / "docs/serve.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.M | re.S)
TITLES = ["affordable lodging in paris", "bath tub repair", "cheap hotel deals in paris"]


def blocks(language):
    return [code for found, code in BLOCKS if found == language]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("docs")
    model = made_up_model(("lstm", {}), TITLES, dtype=np.float32)
    Index.build(model, TITLES, ["P00001", "P1", "P2"]).save(path / "index")
    builder = ClickLogBuilder()
    for title in TITLES:
        builder.add(title, title)
    write_click_log(builder.build(), path / "pairs.tsv")
    return path


@pytest.fixture(scope="module")
def port(folder):
    app = create_app(Index.open(folder / "index"), read_click_log(folder / "pairs.tsv"))
    with running(app) as port:
        yield port


def test_the_requests_of_the_page_are_answered(port):
    if shutil.which("curl") is None:
        pytest.skip("no curl on the PATH")
    lines = [line for code in blocks("sh") for line in code.replace("\\\n", " ").splitlines()]
    requests = [line for line in lines if line.startswith("curl ")]
    answers = []
    for line in requests:
        command = [
            "curl",
            "--silent",
            "--fail",
            *shlex.split(line.replace(":8000", f":{port}"))[1:],
        ]
        answers.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    one, many, explained, gates, encoded, health = answers
    (sample,) = map(json.loads, blocks("json"))
    assert one.keys() == sample.keys() and one["query"] == sample["query"]
    assert one["hits"][0].keys() == sample["hits"][0].keys()
    assert [result["query"] for result in many["results"]] == [one["query"], "bath tub repair"]
    assert explained["nearest_queries"] and gates["query"]["words"] == one["query"].split()
    assert len(encoded["vectors"][0]) == health["dim"]


def test_the_programs_of_the_page_run(port, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    client, wsgi = blocks("python")
    exec(compile(client.replace(":8000", f":{port}"), "client", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 and printed[1].startswith("bath tub repair [")
    module = types.ModuleType("wsgi")
    exec(compile(wsgi, "wsgi.py", "exec"), module.__dict__)
    assert module.app.test_client().get("/health", headers={"Host": "127.0.0.1"}).json["evidence"]


def test_the_commands_of_the_page_are_right():
    lines = [line for code in (*blocks("sh"), *blocks("ini")) for line in code.splitlines()]
    commands = [line.split("sentemb ", 1)[1] for line in lines if re.search(r"(^|/)sentemb ", line)]
    commands = [line for line in commands if line.startswith(("serve ", "index "))]
    assert len(commands) == 3
    for line in commands:
        name, *arguments = shlex.split(line)
        command = main.get_command(click.Context(main), name)
        # click keeps the names of the help option that it sees first.
        command.make_context(name, arguments, parent=click.Context(main, **main.context_settings))
    pages_commands = [
        main.get_command(click.Context(main), name) for name in ("serve", "import", "insights")
    ]
    parameters = [parameter for command in pages_commands for parameter in command.params]
    options = {name for one in parameters for name in one.opts if name.startswith("--")}
    named = set(re.findall(r"`(--[a-z-]+)", PAGE))
    assert named <= options | {"--json"}
    assert {"--host", "--port", "--rate", "--allow-host", "--allow-origin"} <= named


def test_the_limits_of_the_page_are_those_of_the_code():
    table = PAGE.split("## Limits")[1].split("\n\n")[1]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]
    ]
    arguments = inspect.signature(Server).parameters
    of_server = ("threads", "connection_limit", "channel_timeout")
    of_code = asdict(Limits()) | {name: arguments[name].default for name in of_server}
    assert arguments["max_request_body_size"].default == Limits().body
    for _, default, name in rows:
        name = name.strip("`").removeprefix("Limits.").removeprefix("--")
        shown = None if default == "no limit" else float(default.replace(",", ""))
        assert of_code.pop(name) == shown, name
    assert of_code == {}
    assert request_limits._BURST_SECONDS == 10 and "ten seconds' worth" in PAGE
    assert f"below {_FILES + _LEAST} files" in PAGE
    connections = arguments["connection_limit"].default
    assert connections * Limits().body / 2**30 == pytest.approx(0.5, abs=0.02)


def test_the_statuses_of_the_page_are_those_of_the_code():
    source = Path(sys.modules["sentemb.bridges.server"].__path__[0])
    code = "".join(path.read_text(encoding="utf-8") for path in source.glob("*.py"))
    raised = set(re.findall(r"Refusal\(\s*(\d{3})", code)) | set(
        re.findall(r"^    (\d{3}):", code, re.M)
    )
    raised |= {"413", "431", "500"}  # of Flask and waitress
    table = PAGE.split("### Errors")[1].split("##")[0]
    assert raised == set(re.findall(r"\b(\d{3})\b", table))


def test_the_unit_of_the_page_can_write_what_it_records():
    (unit,) = blocks("ini")
    (folder,) = re.findall(r"^StateDirectory=(.+)", unit, re.M)
    assert f" --record %S/{folder}/" in unit
    assert "ProtectSystem=strict" in unit  # without StateDirectory nothing could be written


@pytest.mark.slow
def test_systemd_takes_the_unit_of_the_page(tmp_path):
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze on the PATH")
    (block,) = blocks("ini")
    unit = tmp_path / "search.service"
    # Of a program that is not installed it says so, and of a key that it does not know.
    installed = block.replace("/opt/sentemb/bin/sentemb", sys.executable)
    for text, complaint in ((installed, ""), (block + "Wanted=by", "Unknown key")):
        unit.write_text(text)
        checked = subprocess.run(
            [verify, "verify", "--man=no", unit], capture_output=True, text=True
        )
        assert complaint in checked.stderr and bool(complaint) == bool(checked.stderr)
    assert "not executable" in checked.stderr


@pytest.mark.slow
def test_nginx_takes_the_block_of_the_page(tmp_path):
    nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    openssl = shutil.which("openssl")
    if nginx is None or openssl is None:
        pytest.skip("no nginx or openssl on the PATH (on Debian: apt install nginx openssl)")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=a",
         "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    (block,) = blocks("nginx")
    # The page names what is to be filled in.
    block = re.sub(r"(ssl_certificate) .*;", rf"\1 {certificate};", block)
    block = re.sub(r"(ssl_certificate_key) .*;", rf"\1 {key};", block)
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{name}_temp_path {tmp_path}/{name};\n" for name in names)
    config = tmp_path / "nginx.conf"
    config.write_text(
        f"pid {tmp_path}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{paths}{block}}}\n"
    )
    found = subprocess.run([nginx, "-t", "-c", config], capture_output=True, text=True)
    assert found.returncode == 0 and "[warn]" not in found.stderr, found.stderr


def test_the_page_is_served(port):
    with urlopen(f"http://127.0.0.1:{port}/") as answer:
        assert b"globalThis.engine" in answer.read()
