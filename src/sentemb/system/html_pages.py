"""Self-contained HTML pages: a template, filled so that nothing becomes markup or loads."""

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Mapping
from importlib.resources import files

from sentemb.system.bounds import valid_unicode


class Page(str):
    """The HTML of a page; a notebook shows it in a frame of its own."""

    def _repr_html_(self) -> str:
        framed = html.escape(self, quote=True)
        return f'<iframe srcdoc="{framed}" width="100%" height="700"></iframe>'


def resource(package: str, name: str) -> str:
    """The text of a file that is installed with a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def style(package: str, *names: str) -> str:
    """Style sheets of a package, after the rules that all pages have."""
    return resource("sentemb.system", "base.css") + "".join(
        resource(package, name) for name in names
    )


def script(package: str, *names: str) -> str:
    """JavaScript files of a package, after those functions that all pages have."""
    return resource("sentemb.system", "elements.js") + "\n".join(
        resource(package, name) for name in names
    )


def in_scope(parts: Iterable[str]) -> str:
    """Parts of a script, in a scope of their own."""
    return '(() => {\n"use strict";\n' + "".join(parts) + "})();\n"


def json_data(value: object) -> str:
    """``value`` as JSON for an element of a page: no text in it can end the element.

    ``<``, ``>`` and ``&`` are escaped.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def filled(template: str, values: Mapping[str, str]) -> Page:
    """``template`` with each ``{{name}}`` replaced by its value, as it is.

    The value of ``{{name_hash}}`` is the name of the value ``name`` in a content security policy,
    with which a page allows one inline style sheet or script and no other. What is not valid
    Unicode is replaced, so that the page can be written as UTF-8.
    """
    values = {name: valid_unicode(value) for name, value in values.items()}
    # Cut the template before filling it: what is filled in may contain braces.
    pieces = template.replace("}}", "{{").split("{{")
    return Page(
        "".join(_value(piece, values) if k % 2 else piece for k, piece in enumerate(pieces))
    )


def _value(name: str, values: Mapping[str, str]) -> str:
    if name in values:
        return values[name]
    digest = hashlib.sha256(values[name.removesuffix("_hash")].encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
