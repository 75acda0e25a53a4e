"""The server as a WSGI application: addresses, checks of requests, errors as JSON."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sentemb.bridges.page.search_page import IMAGE, search_page
from sentemb.bridges.server import asked
from sentemb.bridges.server.answers import Answers
from sentemb.bridges.server.asked import Refusal
from sentemb.bridges.server.hosts import checked_hosts, checked_origins, host_name
from sentemb.bridges.server.request_limits import ARRIVED, Limits, Rates
from sentemb.data.click_log import ClickLog
from sentemb.data.search_record import Searched, SearchRecord
from sentemb.errors import SentembError
from sentemb.search.index import Index
from sentemb.system.bounds import plain
from sentemb.system.extras import package
from sentemb.system.html_pages import in_scope, json_data, resource
from sentemb.system.terminal import note
from sentemb.system.time_limits import time_limit

if TYPE_CHECKING:
    from flask import Flask, Response

# The keys of the answers and of the record in ``app.extensions``.
_ANSWERS, _RECORD = "sentemb", "sentemb record"
_DEFAULT_K = 10
_JSON = "application/json"
# How a request chooses, orders and counts by the fields of products.
_FIELDS = ("where", "sort", "facets")
_REMEDIES = {
    404: "there is nothing at this address; the API is /search, /suggest, /click, /explain, "
    "/gates, /encode, /health",
    405: "this address does not take the method {method}; use {allowed}",
}
# The page brings a policy of its own, which allows its script and nothing else.
_POLICY = "default-src 'none'; frame-ancestors 'none'"
_PAGE_POLICY = "frame-ancestors 'none'"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Content-Type",
    "Access-Control-Max-Age": "600",
}


def create_app(
    index: Index,
    log: ClickLog | None = None,
    limits: Limits | None = None,
    *,
    name: str = "index",
    allowed_hosts: Iterable[str] | None = None,
    allowed_origins: Iterable[str] = (),
    record: SearchRecord | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Flask:
    """The search page and the JSON API of an index, for any WSGI server.

    It needs the package Flask (the extra ``serve``). docs/serve.md describes the API.

    Parameters
    ----------
    index : Index
        It must not change while it is served.
    log : ClickLog, optional
        Evidence for explanations. Its queries are embedded here, once.
    limits : Limits, optional
        The most that one request may ask for.
    name : str
        The name of the index on the page.
    allowed_hosts : iterable of str, optional
        Names that requests may be addressed to; by default any. A server for this machine alone
        needs ``{"localhost", "127.0.0.1", "::1"}``: otherwise a web site that gives its own name
        the address 127.0.0.1 can read what the server answers to the browser.
    allowed_origins : iterable of str
        Origins of other sites whose pages may call the API, such as ``"https://shop.example.org"``.
    record : SearchRecord, optional
        Where searches and clicks are recorded.
    on_progress : function, optional
        Called with the numbers of queries of the log that are embedded and of all.

    Returns
    -------
    flask.Flask

    Raises
    ------
    SentembError
        If Flask is not installed, or a host or an origin is malformed.

    Examples
    --------
    >>> from sentemb import Index
    >>> app = create_app(Index.open("index"))  # doctest: +SKIP
    """
    flask = package("flask", "serve", "the server")
    hosts = None if allowed_hosts is None else checked_hosts(allowed_hosts)
    origins = checked_origins(allowed_origins)
    answers = Answers(index, log, name, on_progress)
    app = _App(flask, limits or Limits(), hosts, origins).made(answers)
    record_searches(app, record)
    return app


def replace_index(
    app: Flask,
    index: Index,
    log: ClickLog | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Let a running application from `create_app` answer from another index.

    The arguments are those of `create_app`. Requests that have begun end with the old index.
    """
    name = app.extensions[_ANSWERS].name
    app.extensions[_ANSWERS] = Answers(index, log, name, on_progress)


def record_searches(app: Flask, record: SearchRecord | None) -> None:
    """Let an application from `create_app` record searches and clicks from now on, or none."""
    app.extensions[_RECORD] = record


class _App:
    """Handlers of the addresses."""

    def __init__(
        self,
        flask: Any,
        limits: Limits,
        hosts: frozenset[str] | None,
        origins: frozenset[str],
    ) -> None:
        self._flask, self._limits = flask, limits
        self._hosts, self._origins = hosts, origins
        self._rates = None if limits.rate is None else Rates(limits.rate)
        order = resource("sentemb.bridges.page", "engine/facets.js")
        self._engine = in_scope([order, resource("sentemb.bridges.server", "engine.js")])

    def made(self, answers: Answers) -> Flask:
        """The application that answers with ``answers``."""
        # Without a folder of static files no request can name a file.
        app: Flask = self._flask.Flask(
            "sentemb.bridges.server", static_folder=None, template_folder=None
        )
        app.config["MAX_CONTENT_LENGTH"] = self._limits.body
        app.url_map.merge_slashes = False  # no address is another one with more slashes
        app.extensions[_ANSWERS] = answers
        for address, answer, *methods in (
            ("/", self._page, "GET"),
            ("/search", self._search, "GET", "POST"),
            ("/suggest", self._suggest, "GET"),
            ("/click", self._click, "POST"),
            ("/explain", self._explain, "GET"),
            ("/gates", self._gates, "GET"),
            ("/encode", self._encode, "POST"),
            ("/health", self._health, "GET"),
        ):
            app.add_url_rule(address, view_func=self._in_time(answer), methods=methods)
        app.before_request(self._check_request)
        app.after_request(self._finished)
        app.register_error_handler(Refusal, self._refused)
        app.register_error_handler(
            package("werkzeug.exceptions", "serve").HTTPException, self._failed
        )
        return app

    @property
    def _answers(self) -> Answers:
        answers: Answers = self._flask.current_app.extensions[_ANSWERS]
        return answers

    @property
    def _record(self) -> SearchRecord | None:
        record: SearchRecord | None = self._flask.current_app.extensions[_RECORD]
        return record

    # -- addresses ----------------------------------------------------------------------------

    def _page(self) -> Response:
        self._parameters()
        answers = self._answers
        data = {"facts": json_data({**answers.facts(), "records": self._record is not None})}
        has_images = IMAGE in answers.index.fields.types
        page = search_page(answers.name, self._engine, data, connects=True, has_images=has_images)
        response = self._respond(page.encode("utf-8"), mimetype="text/html")
        response.headers["Content-Security-Policy"] = _PAGE_POLICY
        return response

    def _health(self) -> Response:
        self._parameters()
        return self._json(self._answers.health())

    def _search(self) -> Response:
        if self._flask.request.method == "POST":
            return self._search_many()
        given = self._parameters("q", "k", "offset", "cosine", "all", "like", "draft", *_FIELDS)
        answers, similar = self._answers, "like" in given
        refused = next((name for name in ("q", "all") if similar and name in given), None)
        if refused is not None:
            raise Refusal(400, f"{refused} does not go with like; leave one of them out")
        text = asked.needed(given, "like" if similar else "q")
        query = asked.text("q", text, self._limits.characters)
        k = asked.count_in_address("k", given.get("k", str(_DEFAULT_K)), self._limits.k)
        offset = asked.count_in_address(
            "offset", given.get("offset", "0"), self._limits.offset, least=0
        )
        cosine = asked.flag_in_address("cosine", given.get("cosine", "false"))
        everything = asked.flag_in_address("all", given.get("all", "false"))
        is_draft = asked.flag_in_address("draft", given.get("draft", "false"))
        self._charge(1)
        how = {"offset": offset, "cosine": cosine, **self._fields_of(given, answers)}
        if similar:
            if answers.title_of(query) is None:
                raise Refusal(404, f"the id {plain(query)} is not in the index; give another")
            return self._json(answers.similar(query, k, **how))
        with self._recording(answers, is_draft, offset) as results:
            results += answers.search([query], k, everything=everything, **how)
        return self._json(results[0])

    def _search_many(self) -> Response:
        given = self._object(
            "queries", "k", "offset", "min_score", "only", "cosine", "all", "draft", *_FIELDS
        )
        limits = self._limits
        queries = asked.texts(
            "queries", asked.needed(given, "queries"), limits.texts, limits.characters
        )
        k = asked.count("k", given.get("k", _DEFAULT_K), limits.k)
        offset = asked.count("offset", given.get("offset", 0), limits.offset, least=0)
        min_score = asked.number("min_score", given.get("min_score"))
        only = asked.ids("only", given.get("only"))
        cosine = asked.flag("cosine", given.get("cosine", False))
        everything = asked.flag("all", given.get("all", False))
        is_draft = asked.flag("draft", given.get("draft", False))
        self._charge(len(queries))
        answers = self._answers
        how = {"cosine": cosine, "everything": everything, **self._fields_of(given, answers)}
        how |= {"offset": offset, "min_score": min_score, "only": only}
        with self._recording(answers, is_draft, offset) as results:
            results += answers.search(queries, k, **how)
        answer: dict[str, Any] = {"results": results}
        if only is not None:
            answer["unknown_ids"] = answers.n_unknown(only)
        return self._json(answer)

    def _fields_of(self, given: dict[str, Any], answers: Answers) -> dict[str, Any]:
        """The condition, the order and the facets that a request asks for, checked."""
        fields: dict[str, Any] = {
            name: asked.text(name, given[name], self._limits.characters)
            for name in _FIELDS
            if name in given
        }
        if "facets" in fields:
            fields["facets"] = fields["facets"].split(",")
        try:
            answers.check_fields(fields)
        except SentembError as error:
            raise Refusal(400, str(error)) from None
        return fields

    @contextlib.contextmanager
    def _recording(
        self, answers: Answers, is_draft: bool, offset: int
    ) -> Iterator[list[dict[str, Any]]]:
        """Record the results of ``answers`` that are put into the list; name them for `_click`.

        A search is answered even where it cannot be recorded; it has no name then.
        """
        results: list[dict[str, Any]] = []
        began = time.perf_counter()
        yield results
        if self._record is None or is_draft or not self._is_asked_here():
            return
        milliseconds = 1000 * (time.perf_counter() - began) / len(results)
        searches = [
            Searched(
                result["query"],
                [(hit["id"], hit["title"]) for hit in shown],
                None if offset else result.get("no_match"),
                milliseconds,
                offset + 1,
                [hit["score"] for hit in shown],
                answers.identity,
            )
            for result in results
            # What is nearest is shown too, so that a query that is refused can get its click.
            for shown in [result["hits"] or result.get("nearest", [])]
        ]
        try:
            names = self._record.add_searches(searches)
        except SentembError as error:
            note(f"not recorded: {error}")
            return
        for result, name in zip(results, names, strict=True):
            result["search"] = name

    def _is_asked_here(self) -> bool:
        """Whether a search was not asked by the page of a site that may not call the API.

        Any page can let a browser ask for an address, as that of a picture. It cannot read the
        answer, and it must not fill the record.
        """
        request = self._flask.request
        if request.method != "GET":  # JSON, which such a page cannot send
            return True
        origin = request.headers.get("Origin")
        site = request.headers.get("Sec-Fetch-Site", "none" if origin is None else "cross-site")
        return site in ("none", "same-origin") or origin in self._origins

    def _suggest(self) -> Response:
        given = self._parameters("q")
        query = asked.text("q", asked.needed(given, "q"), self._limits.characters)
        self._charge(1)
        return self._json(self._answers.suggest(query))

    def _click(self) -> Response:
        given = self._object("search", "id")
        search = asked.text("search", asked.needed(given, "search"), self._limits.characters)
        id = asked.text("id", asked.needed(given, "id"), self._limits.characters)
        if self._record is None:
            raise Refusal(404, "this server records nothing; start it with --record FILE")
        self._charge(1)
        try:
            is_known = self._record.add_click(search, id)
        except SentembError as error:
            note(f"not recorded: {error}")
            raise Refusal(503, "the click cannot be recorded now; send it again later") from None
        if not is_known:
            raise Refusal(
                404, "no search of this name has shown this id; send both as /search gave them"
            )
        return self._json({"search": search, "id": id})

    def _explain(self) -> Response:
        given = self._parameters("q", "id", "cosine")
        cosine = asked.flag_in_address("cosine", given.get("cosine", "false"))
        answers, query, id, _ = self._pair(given)
        return self._json(answers.explain(query, id, cosine))

    def _gates(self) -> Response:
        answers, query, _, title = self._pair(self._parameters("q", "id"))
        return self._json(answers.gates(query, title))

    def _encode(self) -> Response:
        given = self._object("texts", "side", "normalize_embeddings")
        limits = self._limits
        texts = asked.texts("texts", asked.needed(given, "texts"), limits.texts, limits.characters)
        side = asked.side(given.get("side", "query"))
        normalise = asked.flag("normalize_embeddings", given.get("normalize_embeddings", False))
        self._charge(len(texts))
        return self._json(self._answers.encode(texts, side, normalise))

    # -- what is asked ------------------------------------------------------------------------

    def _parameters(self, *names: str) -> dict[str, str]:
        """The parameters of the address, of which there are only ``names``."""
        return asked.parameters(self._flask.request.query_string, names)

    def _object(self, *names: str) -> dict[str, Any]:
        """The JSON object of the body, which has only ``names``."""
        self._parameters()
        request = self._flask.request
        charset = request.mimetype_params.get("charset", "utf-8").lower()
        # A page of another site cannot send this type without asking first.
        if request.mimetype != _JSON or charset != "utf-8" or request.content_encoding:
            raise Refusal(
                415, "the body must be JSON in UTF-8; send it with Content-Type: application/json"
            )
        return asked.json_object(request.get_data(cache=False), names)

    def _pair(self, given: dict[str, str]) -> tuple[Answers, str, str, str]:
        """The answers, and the query, the id and the title of a request about both."""
        answers = self._answers
        query = asked.text("q", asked.needed(given, "q"), self._limits.characters)
        id = asked.needed(given, "id")
        title = answers.title_of(id)
        if title is None:
            raise Refusal(
                404, f"the id {plain(id)} is not in the index; take one that /search has found"
            )
        for what, text in (("query", query), ("title", title)):
            words = answers.n_words(text)
            if not 1 <= words <= self._limits.words:
                raise Refusal(
                    400,
                    f"the {what} has {words:,} words; only texts of 1 to {self._limits.words} "
                    "words can be explained",
                )
        self._charge(1)
        return answers, query, id, title

    # -- limits -------------------------------------------------------------------------------

    def _check_request(self) -> Response | None:
        """Refuse requests for another host; answer what browsers ask before they call."""
        request = self._flask.request
        if self._hosts is not None:
            name = host_name(request.environ.get("HTTP_HOST", ""))
            if name not in self._hosts:
                shown = "without a valid name" if name is None else plain(name)
                raise Refusal(
                    403,
                    f"the server does not answer to the host {shown}; start it with "
                    "--allow-host NAME",
                )
        if request.method == "OPTIONS" and request.routing_exception is None:
            return self._options()
        return None

    def _charge(self, units: int) -> None:
        """Refuse a request of an address that has asked for too much lately."""
        address = self._flask.request.remote_addr or ""
        waits = 0.0 if self._rates is None else self._rates.wait(address, units)
        if waits:
            seconds = math.ceil(waits)
            raise Refusal(
                429,
                f"this address asks for more than {self._limits.rate:g} texts per second; wait "
                f"{seconds} s",
                {"Retry-After": str(seconds)},
            )

    def _in_time(self, answer: Callable[[], Response]) -> Callable[[], Response]:
        """A handler that is stopped when its time is up or its client has left.

        The time counts from the first byte of the request, if the server says when that came.
        """

        @functools.wraps(answer)
        def limited() -> Response:
            environ = self._flask.request.environ
            end = environ.get(ARRIVED, time.monotonic()) + self._limits.seconds
            has_left = environ.get("waitress.client_disconnected", bool)

            def check() -> None:
                if time.monotonic() > end or has_left():
                    raise Refusal(
                        503,
                        f"the request takes longer than {self._limits.seconds:g} s; send fewer "
                        "queries, or try again later",
                        {"Retry-After": "1"},
                    )

            check()
            with time_limit(check):
                return answer()

        return limited

    # -- answers ------------------------------------------------------------------------------

    def _respond(self, body: bytes, status: int = 200, mimetype: str = _JSON) -> Response:
        response: Response = self._flask.Response(body, status, mimetype=mimetype)
        return response

    def _json(self, value: object, status: int = 200) -> Response:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return self._respond(text.encode("utf-8"), status)

    def _options(self) -> Response:
        """Answer a CORS preflight."""
        response = self._respond(b"", 204)
        request = self._flask.request
        response.headers["Allow"] = ", ".join(sorted(request.url_rule.methods))
        if request.headers.get("Origin") in self._origins:
            response.headers.update(_PREFLIGHT)
        return response

    def _refused(self, refusal: Refusal) -> Response:
        response = self._json({"error": str(refusal)}, refusal.status)
        response.headers.update(refusal.headers)
        return response

    def _failed(self, error: Any) -> Response:
        """The answer to an error that Flask or a handler has raised."""
        status = error.code
        headers = {}
        if status == 405:
            headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
        remedies = {
            **_REMEDIES,
            413: f"the body has more than {self._limits.body:,} bytes; send fewer texts at a time",
            500: "the server failed; its standard error says why",
        }
        text = remedies.get(status, f"{error.name}; correct the request")
        method = self._flask.request.method
        text = text.replace("{method}", plain(method)).replace(
            "{allowed}", headers.get("Allow", "")
        )
        return self._refused(Refusal(status, text, headers))

    def _finished(self, response: Response) -> Response:
        """Add the headers of every answer."""
        headers = response.headers
        headers.setdefault("Content-Security-Policy", _POLICY)
        headers.extend(_HEADERS)  # nothing else sets them
        if self._origins:
            headers["Vary"] = "Origin"
            origin = self._flask.request.headers.get("Origin")
            if origin in self._origins:
                headers["Access-Control-Allow-Origin"] = origin
        return response
