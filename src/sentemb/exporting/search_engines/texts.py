"""The files of an export to a search engine that people read and run."""

from textwrap import fill

from sentemb.exporting.search_engines.requests import (
    CLICKED,
    QUERY_TEXT,
    QUERY_VECTOR,
    TITLE,
    VECTOR,
    Engine,
)

README, SCRIPT = "README.md", "send.sh"


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
    *,
    titles: int,
    without_vector: int,
    with_clicks: bool,
    boost: str,
    two_fields: bool = False,
) -> str:
    """What the files are and how to use them.

    ``boost`` says where the boost of words is from, ``two_fields`` whether words are looked up in
    titles and in clicked queries.
    """
    filling = _FILL[engine.title] % _MATCHES[engine.title][two_fields]
    clicked = f"`{CLICKED}` holds the queries that it was clicked for. " if with_clicks else ""
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
    searching = (
        f"`query.json` is a search with {QUERY_TEXT} and {QUERY_VECTOR} in the places of a query. "
        f"{boost} This fills it in:"
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

```python
import json
from pathlib import Path

from sentemb import SentenceEncoder

model = SentenceEncoder.from_pretrained("MODEL")
template = Path("query.json").read_text(encoding="utf-8")


def request(text: str) -> dict:
    body = json.loads(template)
    vector = model.encode_query(text, normalize_embeddings=True)
{filling}
    return body
```
"""


def _filled(text: str) -> str:
    """A paragraph in lines of moderate length."""
    return fill(text, 100, break_long_words=False, break_on_hyphens=False)


# How the two places of a query are filled in.
_FILL = {
    "Elasticsearch": """\
%s
    if vector.any():
        body["knn"]["query_vector"] = vector.tolist()
    else:  # the model knows no word of the text
        del body["knn"]
        body.setdefault("query", {"match_none": {}})""",
    "OpenSearch": """\
    should = body["query"]["bool"]["should"]
%s
    if vector.any():
        should[0]["knn"]["vector"]["vector"] = vector.tolist()
    else:  # the model knows no word of the text
        should[0] = {"match_none": {}}""",
}

# The same of the words, without and with two fields.
_MATCHES = {
    "Elasticsearch": (
        """\
    for field in body.get("query", {}).get("match", {}).values():
        field["query"] = text""",
        """\
    body["query"]["multi_match"]["query"] = text""",
    ),
    "OpenSearch": (
        """\
    for part in should[1:]:
        for field in part["match"].values():
            field["query"] = text""",
        """\
    should[1]["multi_match"]["query"] = text""",
    ),
}
