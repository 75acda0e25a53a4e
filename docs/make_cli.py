"""Write docs/cli.md from the commands' own --help. tests/test_docs.py fails when it is stale."""

from pathlib import Path

import click

from sentemb.cli import main

HEAD = """# The command line

Made by `make docs` from `--help`. Results go to standard output, progress and notes to standard
error. A mistake in the input is one line that begins with `Error:` and exit code 1; wrong usage is
exit code 2.
"""


def reference():
    """The whole page."""
    parts = [HEAD]
    for name, command in _commands(main, "sentemb"):
        context = click.Context(command, info_name=name, max_content_width=96)
        parts.append(f"## `{name}`\n\n```\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def _commands(command, name):
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            yield from _commands(command.get_command(context, child), f"{name} {child}")


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(reference(), encoding="utf-8")
