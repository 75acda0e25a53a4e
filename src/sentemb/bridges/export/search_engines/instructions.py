"""The files of an export to a search engine that people read and run."""

import json
from collections.abc import Collection, Sequence
from textwrap import fill

from sentemb.bridges.export.search_engines.requests import (
    QUERY_NAME,
    QUERY_TEXT,
    QUERY_VECTOR,
    Engine,
)
from sentemb.bridges.export.search_engines.scoring import (
    CLICKED,
    COUNTS,
    FIELDS,
    NEAREST,
    TITLE,
    VECTOR,
    WORDS,
    EngineScoring,
)
from sentemb.search.ranking.direct_parts import KAPPA

README, SCRIPT, REQUEST = "README.md", "send.sh", "request.py"


def script(engine: Engine, name: str) -> str:
    """The shell script that creates the engine's index and sends all titles."""
    return f"""\
#!/bin/sh
# Creates the index {name} in {engine.title} and sends all titles. Arguments go to curl:
#
#   URL=https://localhost:9200 sh send.sh --user NAME:PASSWORD --cacert http_ca.crt
#
# Needs curl 7.76 or newer.
set -eu
folder=$(dirname "$0")
address=${{URL:-http://localhost:9200}}/{name}

curl "$@" --globoff --silent --show-error --fail-with-body --request PUT "$address" \\
    --header "Content-Type: application/json" --data-binary "@$folder/mapping.json"
echo
for part in "$folder"/bulk-*.ndjson.gz; do
    answer=$(curl "$@" --globoff --silent --show-error --fail-with-body \\
        --request POST "$address/_bulk?filter_path=errors,items.*.error" \\
        --header "Content-Type: application/x-ndjson" --header "Content-Encoding: gzip" \\
        --data-binary "@$part") || {{ echo "$part: $answer" >&2; exit 1; }}
    case $answer in
        *'"errors":false'*) echo "$part: sent" ;;
        *) echo "$part: $answer" | cut -c 1-2000 >&2; exit 1 ;;
    esac
done
curl "$@" --globoff --silent --show-error --fail-with-body --request POST "$address/_refresh"
echo
"""


def readme(
    engine: Engine,
    name: str,
    scoring: EngineScoring,
    differences: Sequence[str],
    titles: int,
    without_vector: int,
    fields: Collection[str],
) -> str:
    """Describe the files and how to use them.

    ``name`` is the engine's name for its index, ``scoring`` the sum in query.json, and
    ``differences`` say how this ranks otherwise than the index. ``titles`` and ``without_vector``
    are counts, ``fields`` the names of the fields of products.
    """
    clicked = f"`{CLICKED}` holds the queries that it was clicked for, and `{WORDS}` the words of "
    clicked = f"{clicked}both. " if scoring.has_clicks else ""
    if scoring.clicks:
        clicked += f"`{COUNTS}` holds its clicks by a hash of the query, divided by {KAPPA:g}. "
    sending = (
        f"creates the index `{name}` from `mapping.json` and sends the bulk files one by one. It "
        "stops at the first file with a title that is refused. Arguments go to curl, such as "
        "`--user` and `--cacert`."
    )
    documents = (
        f"A title is a document with its id as `_id`. `{TITLE}` is its text. {clicked}`{VECTOR}` "
        f"is its vector, of unit length. {without_vector:,} titles have none, because the model "
        "knows none of their words; only words find them."
    )
    names = [f"{FIELDS}.{name}" for name in fields]
    if names:
        documents += f" Its fields are {', '.join(f'`{name}`' for name in names)}."
    searching = (
        f"`query.json` is a search with {QUERY_TEXT}, {QUERY_VECTOR} and {QUERY_NAME} in the "
        "places of a query. "
        f"The score is {scoring}. The index ranks by {scoring.recipe}; the order is the same "
        "whatever all weights are multiplied by. The rankings differ:"
    )
    condition = json.dumps({"exists": {"field": [*names, TITLE][0]}})
    filling = (
        f"`{REQUEST}` fills in a query. Call its function `request` from a program, or run it as "
        "below. To leave titles out, give a condition after the query: a query of the engine, such "
        f"as `{condition}`."
    )
    listed = "\n".join(
        _filled(f"- {text}", "  ")
        for text in [
            *differences,
            "the engine splits texts into words by its own rules, and counts them in its titles",
            f"a title that is not among the {NEAREST} nearest has no `{VECTOR}` in its score",
        ]
    )
    return f"""\
# {titles:,} titles for {engine.title}

Written by `sentemb export`. Needs {engine.title} {engine.since} or newer.

```sh
URL=http://localhost:9200 sh {SCRIPT}
```

{_filled(sending)}

{_filled(documents)}

{_filled(searching)}

{listed}

{_filled(filling)}

```sh
python {REQUEST} MODEL "a query" > search.json
```
"""


def request(engine: Engine) -> str:
    """The Python program that fills in a query."""
    return f'''\
"""Fill in query.json: python {REQUEST} MODEL "a query" [CONDITION] > search.json"""

import json
import sys
from pathlib import Path

from sentemb import SentenceEncoder
from sentemb.bridges.export.search_engines.scoring import count_name

TEMPLATE = Path(__file__).with_name("query.json").read_text(encoding="utf-8")


def request(model, text, condition=None):
    """The body of a search for ``text``; titles must meet ``condition``, a query of the engine."""
    vector = model.encode_query(text, normalize_embeddings=True)
    body = TEMPLATE.replace("{QUERY_NAME}", count_name(text))
    body = body.replace('"{QUERY_VECTOR}"', json.dumps(vector.tolist()))
    body = json.loads(body.replace('"{QUERY_TEXT}"', json.dumps(text)))
    if not vector.any():  # the text has no word that the model knows
{_WITHOUT_VECTOR[engine.title]}
    if condition is not None:
{_WITH_CONDITION[engine.title]}
    return body


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    folder, text, *conditions = sys.argv[1:]
    condition = json.loads(conditions[0]) if conditions else None
    print(json.dumps(request(SentenceEncoder.from_pretrained(folder), text, condition)))
'''


def _filled(text: str, indent: str = "") -> str:
    """A paragraph in lines of moderate length."""
    return fill(text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


# How the search by vectors is taken out of a request.
_WITHOUT_VECTOR = {
    "Elasticsearch": """\
        body.pop("knn", None)
        body.setdefault("query", {"match_none": {}})""",
    "OpenSearch": """\
        parts = body["query"]["bool"]
        words = [part for part in parts["should"] if "knn" not in part]
        parts["should"] = words or [{"match_none": {}}]""",
}
# How titles are left out, before the nearest are counted. With a filter, the other clauses of
# ``bool`` would no longer be needed to find a title.
_WITH_CONDITION = {
    "Elasticsearch": """\
        if "knn" in body:
            body["knn"]["filter"] = condition
        if "bool" in body.get("query", {}):
            body["query"]["bool"] |= {"filter": condition, "minimum_should_match": 1}""",
    "OpenSearch": """\
        parts = body["query"]["bool"]
        for part in parts["should"]:
            if "knn" in part:
                part["knn"]["vector"]["filter"] = condition
        parts |= {"filter": condition, "minimum_should_match": 1}""",
}
