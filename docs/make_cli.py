"""Write docs/cli.md from the commands' own --help. tests/test_docs.py fails when it is stale."""

from pathlib import Path

import click

from sentemb.cli import main

HEAD = """# The command line

Made by `make docs` from `--help`. Results go to standard output, progress and notes to standard
error. A mistake in the input is one line that begins with `Error:` and exit code 1; wrong usage is
exit code 2. Ctrl-C ends a command with exit code 130, SIGTERM with 143.

For completion of commands and options in bash, put this line in `~/.bashrc` (zsh: `zsh_source`):

```sh
eval "$(_SENTEMB_COMPLETE=bash_source sentemb)"
```
"""


def reference():
    """The whole page."""
    sections = [
        f"## `{context.command_path}`\n\n```\n{context.get_help()}\n```\n"
        for context in contexts(main, "sentemb", None)
    ]
    return "\n".join([HEAD, *sections])


def contexts(command, name, parent):
    settings = {"max_content_width": 96, **command.context_settings}
    context = click.Context(command, parent, name, **settings)
    yield context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            yield from contexts(command.get_command(context, child), child, context)


if __name__ == "__main__":
    Path(__file__).with_name("cli.md").write_text(reference(), encoding="utf-8")
