#!/bin/sh
# Hypothesis 6.170.15, Python 3.11
#
# st.text() also draws the string constants of local modules that are imported, whole. So what a
# strategy without arguments yields depends on which modules the process has loaded: a test that
# never drew "<NONE>" on its own draws it once another test has imported the module that holds this
# constant, with the same seed and without the example database. One would expect the values of a
# strategy, under derandomize=True, to depend on the test alone.
#
# Seen:
#     without the import: drawn 0 times of 3000
#     with the import: drawn more than 0 times
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hypothesis==6.170.15
mkdir "$folder/work"
cd "$folder/work"
echo 'WORDS = {"<NONE>"}' > missing.py
cat > draw.py <<'PYTHON'
import importlib
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if sys.argv[1] == "with":
    importlib.import_module("missing")
drawn = []


@settings(max_examples=3000, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
@given(st.text())
def collect(text):
    drawn.append(text)


collect()
print(drawn.count("<" + "NONE" + ">"))
PYTHON
without=$("$folder/venv/bin/python" draw.py without)
with=$("$folder/venv/bin/python" draw.py with)
echo "without the import: drawn $without times of 3000"
if [ "$with" -gt 0 ]; then echo "with the import: drawn more than 0 times"; fi
[ "$without" -eq 0 ] && [ "$with" -gt 0 ]
