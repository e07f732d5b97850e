"""A service that has to take connections, and what the network says when one does not."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

from monitor.probes.runner import ProbeError, ServiceTarget

MAX_DEPTH = 10  # of errors within errors


def probe(target: ServiceTarget) -> None:
    """Given a service, return if it takes a connection. Raise ProbeError."""
    url = urlsplit(target.url)
    try:
        socket.create_connection((url.hostname or "", url.port or 0), timeout=target.limit).close()
    except OSError as error:
        raise network_error(error) from error


def network_error(error: BaseException) -> ProbeError:
    """Given what a library raised, return what it means: the cause may be wrapped several times."""
    chain = list(_within(error))
    for cause, kinds in _KINDS:
        found = next((each for each in chain if isinstance(each, kinds)), None)
        if found is not None:
            return ProbeError(cause, _words(found))
    names = "".join(type(each).__name__ for each in chain)
    innermost = _words(chain[-1])
    if "NameResolution" in names:
        return ProbeError("dns", innermost)
    return ProbeError("timeout" if "Timeout" in names else "error", innermost)


_KINDS: tuple[tuple[str, type[BaseException]], ...] = (
    ("dns", socket.gaierror),
    ("tls", ssl.SSLError),
    ("refused", ConnectionRefusedError),
    ("timeout", TimeoutError),
)


def _within(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, the one that it wraps, and so on. Client libraries keep it in `reason` or as an argument."""
    current: BaseException | None = error
    for _ in range(MAX_DEPTH):
        if current is None:
            return
        yield current
        kept = (getattr(current, "reason", None), *current.args, current.__cause__, current.__context__)
        current = next((each for each in kept if isinstance(each, BaseException) and each is not current), None)


def _words(error: BaseException) -> str:
    return getattr(error, "verify_message", None) or getattr(error, "strerror", None) or str(error)
