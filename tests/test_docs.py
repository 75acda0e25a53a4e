"""The documents say what the program does."""

import importlib.util
from pathlib import Path

import click
import pytest

from sentemb.cli import COMMANDS, main

DOCS = Path(__file__).parents[1] / "docs"


def _reference():
    spec = importlib.util.spec_from_file_location("make_cli", DOCS / "make_cli.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.reference()


def test_command_reference_is_current():
    written = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert written == _reference(), "docs/cli.md is stale; run `make docs`"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_says_what_the_command_says(name):
    command = main.get_command(click.Context(main), name)
    assert command.help.split("\n")[0].strip() == COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name):
    command = main.get_command(click.Context(main), name)
    children = command.commands.values() if isinstance(command, click.Group) else [command]
    for child in children:
        for parameter in child.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts[0]} has no help"
