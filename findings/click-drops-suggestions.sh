#!/bin/sh
# click 8.5.1, Python 3.11
#
# NoSuchOption(name, possibilities=[...]) shows only those possibilities that difflib finds similar
# to the name. A program that knows the right option, such as -k for --limit, names it in
# `possibilities`, and the message has no word of it. The keyword and its description ("did you
# mean") suggest that the caller decides.
#
# Seen:
#     No such option '--limit'.
#     No such option '--limit'. Did you mean '--limits'?
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet click==8.5.1
"$folder/venv/bin/python" - <<'PYTHON'
import click

dropped = click.NoSuchOption("--limit", possibilities=["-k"]).format_message()
shown = click.NoSuchOption("--limit", possibilities=["--limits"]).format_message()
print(dropped, shown, sep="\n")
raise SystemExit("-k" in dropped or "--limits" not in shown)
PYTHON
