#!/bin/sh
# rapidfuzz 3.14.6, Python 3.11
#
# default_process replaces what is neither letter nor digit by a space, and the vowel signs of
# Hindi, Thai and other scripts are neither: Unicode has them as marks. So two Hindi words that
# differ in their vowel become the same two loose consonants and are alike by 100, and a catalogue
# in Hindi is searched without its vowels. The documentation says that characters which are not
# alphanumeric are removed; a reader does not count a vowel among them.
#
# Seen:
#     as they are: 67
#     with default_process: 100
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet rapidfuzz==3.14.6
"$folder/venv/bin/python" - <<'PYTHON'
from rapidfuzz import fuzz, utils

day, gift = "दिन", "दान"
plain, processed = fuzz.ratio(day, gift), fuzz.ratio(day, gift, processor=utils.default_process)
print(f"as they are: {plain:.0f}\nwith default_process: {processed:.0f}")
raise SystemExit(plain > 90 or processed != 100)
PYTHON
