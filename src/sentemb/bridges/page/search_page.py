"""The search page: a box, ranked titles, and why each of them was found.

One page for a server and for a file that searches by itself. `search_page` puts it together with a
script, its *engine*, which answers. The engine sets ``globalThis.engine`` to an object with

- ``facts``: ``{name, titles, model, parts: [{part, name, weight}], fields: {name: type}, facets:
  [name], calibrated, evidence, gates}``: how many titles there are, a line about the model, the
  parts of a score, the fields of titles and those to filter by, and what the engine can show
  (bool);
- ``search(query, k, signal, {filters: {name: value}, sort, offset})``: ``{query, unknown: [word],
  hits: [{id, title, marks, score, parts: {part: {value, added}}, confidence, by_id, fields}],
  facets: {name: [[value, count]]}}``, the most frequent value first, among the titles whose fields
  have the values of ``filters``, and where the names are ``>=price`` and ``<=price`` are within
  these numbers: what each part scores, and what that times its weight adds to the score; the
  confidence is null unless it is known; the hits behind the first ``offset``; with
  ``did_you_mean``, if there is a query that may have been meant;
- ``explain(query, id, signal)``: what `Explanation.as_dict` returns, with the shares of the parts;
  the text of a nearest query is null where the engine has none; ``effects_of`` says what the
  effects of words are of if it is not the score;
- ``gates(query, id, signal)``: ``{query: {words, gates: {name: [[number]]}}, title: ...}``, one row
  of numbers per word, with the names ``input``, ``forget``, ``output``, ``candidate``, ``cell`` and
  ``y``; null if the model is not recurrent;
- ``suggest(query, signal)``, optional: queries that begin with a text;
- ``record(query, k, {filters, sort, offset})``, optional: a promise of an answer as that of
  ``search`` with a name in ``search``, under which it is recorded; ``click(search, id)`` then
  records a click;
- ``ready``, optional: a promise; until it is kept the page says that it is loading.

All of them may return promises. An error that they throw is shown with its message; the page calls
``abort`` on the controller of ``signal``, an AbortSignal, once it has no use for the answer.
"""

import html
from collections.abc import Mapping
from typing import Any

from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.search.index import Index
from sentemb.search.ranking.recipe import PARTS
from sentemb.system.html_pages import Page, filled, resource, script, style
from sentemb.version import __version__

# The field with the address of a picture; see products.js.
IMAGE = "image"
_HERE = "sentemb.bridges.page"
# The last one starts the page.
_SCRIPTS = ("explanation.js", "products.js", "suggestions.js", "page.js")


def facts_of(index: Index, name: str, evidence: bool = False) -> dict[str, Any]:
    """The ``facts`` of an engine that searches ``index``, which the page calls ``name``.

    ``evidence`` says whether explanations have queries of a click log.
    """
    encoder = index.model.encoder
    return {
        "name": name,
        "titles": len(index),
        "model": f"{encoder.name}, vectors of {index.model.dim:,} numbers",
        "parts": [
            {"part": part, "name": PARTS[part], "weight": index.recipe.weight(part)}
            for part in index.recipe.parts
        ],
        "fields": index.fields.types,
        "facets": index.fields.facets,
        "calibrated": index.confidence is not None,
        "evidence": evidence,
        "gates": isinstance(encoder, RecurrentEncoder),
    }


def search_page(
    title: str,
    engine: str,
    data: Mapping[str, str] | None = None,
    connects: bool = False,
    note: str = "",
    has_images: bool = False,
) -> Page:
    """The page as HTML.

    A content security policy allows its style sheet and its two scripts and no other. Without
    ``has_images``, which allows pictures of products from other sites, it loads nothing; without
    ``connects``, which lets the engine ask the server that the page came from, it cannot send
    anything either.

    ``engine`` is JavaScript that sets ``globalThis.engine``; see above. ``data`` has texts for the
    engine by the id of the element that holds them. They must not have the character ``<``;
    `sentemb.system.html_pages.json_data` makes such texts. ``note`` is a sentence on the contents
    for the foot of the page.
    """
    blocks = (
        f'<script type="text/plain" id="{html.escape(name)}">{text}</script>\n'
        for name, text in (data or {}).items()
    )
    values = {
        "title": html.escape(title),
        "style": style(_HERE, "page.css"),
        "images": " https: http:" if has_images else "",
        "connect": "'self'" if connects else "'none'",
        "made": html.escape(f"Made by sentemb {__version__}. {note}".strip()),
        "data": "".join(blocks),
        "engine": engine,
        # In a scope of its own: the engine may use any name.
        "script": f"(() => {{\n{script(_HERE, *_SCRIPTS)}}})();\n",
    }
    return filled(resource(_HERE, "page.html"), values)
