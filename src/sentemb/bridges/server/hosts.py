"""Which names a server answers to, and which sites may call it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from sentemb.errors import SentembError
from sentemb.system.bounds import brief

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,252}[a-z0-9])?")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^\[\]:/@\s]+)(:(?P<port>\d{1,5}))?")
_ORIGIN = re.compile(r"https?://(?P<host>[^/?#@\s]+)")
_PORTS = range(1, 65536)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``, a name or an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def host_name(header: str) -> str | None:
    """The name in a Host header, in lower case and without port; None if it has none."""
    match = _HOST.fullmatch(header.lower())
    if match is None or (match["port"] is not None and int(match["port"]) not in _PORTS):
        return None
    return match["name"].strip("[]").removesuffix(".")


def checked_hosts(names: Iterable[str]) -> frozenset[str]:
    """Names of hosts as `host_name` gives them; `SentembError` for anything else."""
    return frozenset(map(_checked_host, names))


def _checked_host(given: str) -> str:
    name = given.lower().strip("[]").removesuffix(".")
    try:
        return str(ip_address(name))
    except ValueError:
        if not _NAME.fullmatch(name):
            raise SentembError(
                f"{brief(given)} is not the name of a host; give one such as search.example.org, "
                "without port"
            ) from None
    return name


def checked_origins(origins: Iterable[str]) -> frozenset[str]:
    """Origins as browsers send them: scheme, host, and port unless it is the usual one.

    Raises `SentembError` for anything else, such as ``*``, ``null`` or an address with a path.
    """
    return frozenset(map(_checked_origin, origins))


def _checked_origin(given: str) -> str:
    match = _ORIGIN.fullmatch(given.lower())
    name = None if match is None else host_name(match["host"])
    usual = re.search(r"^http:.*:80$|^https:.*:443$", given.lower())
    if match is None or name is None or usual or not (":" in name or _NAME.fullmatch(name)):
        raise SentembError(
            f"{brief(given)} is not an origin; give scheme, host and an unusual port, such as "
            "https://shop.example.org, without path"
        )
    return given.lower()
