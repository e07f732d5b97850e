"""Probe of a TCP port, and the cause of network errors."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

from monitor.base.threads import with_deadline
from monitor.probes.runner import ProbeError, ServiceTarget

MAX_DEPTH = 10  # of nested exceptions


def probe(target: ServiceTarget) -> None:
    """Connect to a service. Raise ProbeError if it does not accept the connection."""
    url = urlsplit(target.url)
    try:
        with_deadline(target.limit, lambda _: _connect(url.hostname or "", url.port or 0, target.limit))
    except OSError as error:
        raise network_error(error) from error


def _connect(host: str, port: int, timeout: float) -> None:
    """Connect to the first address of a name that accepts. The timeout applies to each of them."""
    socket.create_connection((host, port), timeout=timeout).close()


def network_error(error: BaseException) -> ProbeError:
    """ProbeError for an exception of a client library, which may wrap its cause several times."""
    chain = list(_causes(error))
    for cause, kind in _CAUSE_OF_TYPE:
        match = next((nested for nested in chain if isinstance(nested, kind)), None)
        if match is not None:
            return ProbeError(cause, _text(match))
    names = "".join(type(nested).__name__ for nested in chain)
    innermost = _text(chain[-1])
    if "NameResolution" in names:
        return ProbeError("dns", innermost)
    return ProbeError("timeout" if "Timeout" in names else "error", innermost)


_CAUSE_OF_TYPE: tuple[tuple[str, type[BaseException]], ...] = (
    ("dns", socket.gaierror),
    ("tls", ssl.SSLError),
    ("refused", ConnectionRefusedError),
    ("timeout", TimeoutError),
)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and those that it wraps. Client libraries keep the wrapped one in `reason` or as an argument."""
    current: BaseException | None = error
    for _ in range(MAX_DEPTH):
        if current is None:
            return
        yield current
        wrapped = (getattr(current, "reason", None), *current.args, current.__cause__, current.__context__)
        current = next((each for each in wrapped if isinstance(each, BaseException) and each is not current), None)


def _text(error: BaseException) -> str:
    return getattr(error, "verify_message", None) or getattr(error, "strerror", None) or str(error)
