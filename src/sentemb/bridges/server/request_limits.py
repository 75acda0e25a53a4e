"""How much a client of the server may ask for."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from sentemb.system.bounds import positive, whole

# Where the server puts the time of the first byte of a request, in seconds of `time.monotonic`.
ARRIVED = "sentemb.arrived"
# Addresses whose rate is remembered. Beyond that the one that was silent longest is forgotten.
_ADDRESSES = 10_000
# An address may spend this many seconds' worth of its rate at once.
_BURST_SECONDS = 10.0
# Bits of an IPv6 address that a provider gives to one customer.
_CUSTOMER_BITS = 64


@dataclass(frozen=True)
class Limits:
    """Limits of one request.

    Attributes
    ----------
    texts : int
        Queries or texts per request.
    characters : int
        Characters per text.
    k : int
        Titles per query.
    offset : int
        The best titles of a query that are left out.
    words : int
        Words of a query or a title that ``/explain`` and ``/gates`` read; their time grows with
        the square.
    body : int
        Bytes of a request's body. The ids of ``only`` are part of it.
    seconds : float
        From the first byte of a request to its answer: time to send it, to wait and to compute.
    rate : float or None
        Texts per second from one address, over 10 seconds; None for no limit.

    Raises
    ------
    SentembError
        For a number out of range.
    """

    texts: int = 100
    characters: int = 2000
    k: int = 1000
    offset: int = 10_000
    words: int = 200
    body: int = 1 << 20
    seconds: float = 10.0
    rate: float | None = None

    def __post_init__(self) -> None:
        for name in ("texts", "characters", "k", "offset", "words", "body"):
            whole(name, getattr(self, name), 1, 2**31 - 1)
        positive("seconds", self.seconds, 86_400)
        if self.rate is not None:
            positive("rate", self.rate, 1e9)


class Rates:
    """The rate of work of each address: a bucket that fills and may be overdrawn by one request.

    ``rate`` is in units per second.
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._most = rate, max(1.0, rate * _BURST_SECONDS)
        self._lock = threading.Lock()
        # Address -> what is left in its bucket, and when that was; the one seen last comes last.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str, units: int) -> float:
        """Take ``units`` from the bucket of ``address``, or say how long it has to wait.

        The result is the number of seconds after which the next request is welcome; 0 if this one
        is.
        """
        key, now = _customer(address), time.monotonic()
        with self._lock:
            left, seen = self._left.pop(key, (self._most, now))
            left = min(self._most, left + (now - seen) * self._rate)
            waits = max(0.0, (1 - left) / self._rate)
            self._left[key] = (left if waits else left - units, now)
            if len(self._left) > _ADDRESSES:
                self._left.popitem(last=False)
        return waits


def _customer(address: str) -> str:
    """The address, or the part of it that is the same for all addresses of one customer."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(int(parsed) >> (128 - _CUSTOMER_BITS))
    return str(parsed)
