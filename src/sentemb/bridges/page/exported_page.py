"""``--to page``: one HTML file that searches without a server, in the browser that opens it."""

from __future__ import annotations

import base64
import gzip
import string
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sentemb.bridges.export.destination import new_file
from sentemb.bridges.export.targets import Exported
from sentemb.bridges.page.arrays import Arrays, add_index
from sentemb.bridges.page.public_words import MIN_QUERIES, PublicWords
from sentemb.bridges.page.search_page import IMAGE, facts_of, search_page
from sentemb.errors import SentembError
from sentemb.search.product_fields import MOST_VALUES
from sentemb.search.ranking.recipe import CLICKS, EMBEDDING
from sentemb.search.ranking.shortlist import LEAST_SHARE
from sentemb.search.searcher import MOST_MATCHES, MOST_SUGGESTIONS
from sentemb.system.html_pages import in_scope, json_data, resource

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.system.paths import AnyPath

# A page reads all its titles into memory, and a browser loads it as a whole.
MAX_TITLES = 50_000
# Base 85 takes 6 % less than base 64. These are the characters of `base64.b85encode`, with a comma
# for the one that would end an element of HTML.
_ALPHABET = (
    string.digits + string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"
).replace("<", ",")
# In the order in which they refer to each other.
_PARTS = ("texts", "queries", "towers", "parts", "facets", "engine")


def write(
    source: Index,
    out: AnyPath,
    *,
    dtype: str = "int8",
    heading: str | None = None,
    min_queries: int = MIN_QUERIES,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write a search page with the model, the titles and the ranking inside.

    It opens from a disk or from any web server, loads nothing else but pictures of products, and
    sends nothing. The same index gives the same bytes.

    ``out`` is an HTML file, or - for standard output; ``force`` replaces a file. The page is called
    ``heading``, by default as the file without its ending.

    ``dtype`` "int8" or "float32" says how input weights and vectors are stored. int8 takes a
    quarter; cosines are rounded then, by 0.02 at most in benchmarks/page_speed.py. The memory of
    the log is int8 in any case.

    The page holds no word that fewer than ``min_queries`` different clicked queries of the index
    have, unless a title has it: it may be a name that one person typed. It suggests no query with
    fewer clicks, or with a word that it does not hold.

    ``on_progress`` is called once, at the end, with the number of titles twice. Raises
    `SentembError` for more than 50,000 titles, or a file that is there or cannot be written.
    """
    if len(source) > MAX_TITLES:
        raise SentembError(
            f"a page holds at most {MAX_TITLES:,} titles, and the index has {len(source):,}; "
            "use `sentemb serve`"
        )
    notes = []
    if source.recipe.weight(EMBEDDING):
        source = _without_embedding(source)
        notes.append(
            "the embedding is left out, because a browser cannot run it: the page ranks by the "
            "other parts, whose weights were fitted together with it, and shows no confidence"
        )
    name = heading or (Path(out).stem if str(out) != "-" else "Search")
    arrays = Arrays()
    public = PublicWords(source, min_queries)
    header, of_index = add_index(arrays, source, dtype, public)
    notes += of_index
    queries = public.queries(source.frequent_queries(min_queries))
    arrays.add_texts("queries", queries)
    content = arrays.content()
    packed = gzip.compress(content, 9, mtime=0)
    header |= {
        "suggestions": MOST_SUGGESTIONS,
        "facts": facts_of(source, name),
        "matches": {
            "most": MOST_MATCHES,
            "least_share": LEAST_SHARE,
            "values": MOST_VALUES,
        },
        "arrays": arrays.entries,
        "bytes": len(content),
        "packed": len(packed),
        "alphabet": _ALPHABET,
    }
    data = {"header": json_data(header), "packed": _as_text(packed)}
    note = f"{public.note().capitalize()}."
    has_images = IMAGE in source.fields.types
    page = search_page(name, _engine(), data, note=note, has_images=has_images).encode()
    with new_file(out, force) as file:
        file.write(page)
    if on_progress is not None:
        on_progress(len(source), len(source))
    if source.recipe.weight(CLICKS):
        notes.append(
            "the page has a hash of every clicked query: a reader who guesses a query can tell "
            "whether it is one of them"
        )
    notes.append(
        f"the page has {len(page) / 1e6:.1f} MB; its readers can see all titles, the letter "
        "trigrams that the model knows from its click log, and these words:"
    )
    notes.append(f"{public.note()} (--min-queries)")
    notes.append(
        f"it suggests the {len(queries):,} queries of its words that have at least {min_queries:,} "
        "clicks; a name or a number that one person typed again and again may be among them"
    )
    return Exported([Path(out)], len(source), without_vector=source.n_empty, notes=notes)


def _without_embedding(index: Index) -> Index:
    """The index, ranked by its other parts."""
    weights = {**index.recipe.weights, EMBEDDING: 0.0}
    ranker = index.ranker.weighted(weights)
    ranker.floor = index.ranker.floor  # it does not read the sum
    return type(index)(index.snapshot.changed(ranker=ranker))


def _engine() -> str:
    """The script that answers, in a scope of its own."""
    return in_scope(resource("sentemb.bridges.page", f"engine/{part}.js") for part in _PARTS)


def _as_text(packed: bytes) -> str:
    return base64.b85encode(packed, pad=True).replace(b"<", b",").decode()
