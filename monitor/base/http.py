"""HTTP requests to outside services: receivers, Alertmanager, Harbor, probed services.

A request has one deadline for everything, follows no redirect, verifies TLS, and ends in a Reply or in a RequestError
that says whether a retry makes sense. Addresses of receivers are secrets: errors and logs name only the host.
"""

from __future__ import annotations

import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter

from monitor import __version__
from monitor.base.cancellable import POOL_CLASSES, cancelled_by
from monitor.base.endpoint import Endpoint
from monitor.base.threads import Cancellation, with_deadline

MAX_BODY_BYTES = 64 * 1024
PIECE_BYTES = 16 * 1024
MAX_RETRY_AFTER_SECONDS = 3600.0  # longer delays asked for by a server are shortened
RETRYABLE_STATUSES = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


class RequestError(Exception):
    """A request failed. The message is for a person and holds no secret: no address, no key, no token.

    `retryable` says whether the same request may succeed later; `after` is the delay in seconds that the other side
    asked for, if any.
    """

    def __init__(self, message: str, *, retryable: bool, after: float | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.after = after


@dataclass(frozen=True)
class Reply:
    """A reply. The body may be cut off."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    reason: str = field(default="", repr=False)

    def header(self, name: str) -> str | None:
        """Value of a header, whatever the case of its name."""
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), None)


def post_json(way: Endpoint, payload: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """POST a value as JSON. Raise RequestError."""
    return post(way, as_json(payload), headers)


def post(way: Endpoint, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
    """POST a JSON body. Raise RequestError."""
    return _ask("POST", way, body, {"Content-Type": "application/json; charset=utf-8", **(headers or {})})


def get(way: Endpoint, headers: Mapping[str, str] | None = None, max_bytes: int = MAX_BODY_BYTES) -> Reply:
    """GET; of the body, at most the first `max_bytes`. Raise RequestError."""
    return _ask("GET", way, None, headers or {}, max_bytes)


def as_json(payload: Any) -> bytes:
    """JSON without escaped characters, which WeCom rejects."""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@contextmanager
def no_requests_logged() -> Iterator[None]:
    """Keep urllib3 from logging addresses while a request is in progress on any thread."""
    with _lock:
        _in_progress.append(True)
    try:
        yield
    finally:
        with _lock:
            _in_progress.pop()


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds of a Retry-After header, given in seconds or as a date; None if it has none."""
    if not value:
        return None
    try:
        seconds = float(value) if value.strip().isdigit() else parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)


def exchange(
    method: str,
    endpoint: Endpoint,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    max_bytes: int = MAX_BODY_BYTES,
    direct: bool = False,
) -> Reply:
    """One request and its reply, whatever its status; of the body, at most the first `max_bytes`.

    Raise what `requests` and `urllib3` raise (an OSError), or TimeoutError if the reply is not complete in time: the
    timeout limits the whole exchange. `direct` ignores proxies and other settings of the environment. No redirect is
    followed.
    """
    return with_deadline(
        endpoint.timeout,
        lambda cancellation: _exchange(method, endpoint, body, headers or {}, max_bytes, direct, cancellation),
    )


def _exchange(
    method: str,
    endpoint: Endpoint,
    body: bytes | None,
    headers: Mapping[str, str],
    max_bytes: int,
    direct: bool,
    cancellation: Cancellation,
) -> Reply:
    if not endpoint.verify_tls:  # chosen in the configuration: a warning per request adds nothing
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    with cancelled_by(cancellation), no_requests_logged(), requests.Session() as session:
        session.trust_env = not direct
        session.mount("http://", _Adapter())
        session.mount("https://", _Adapter())
        with session.request(
            method,
            endpoint.url,
            data=body,
            headers={"User-Agent": f"gpuwarden/{__version__}", "Connection": "close", **headers},
            auth=_login_of(endpoint.url),
            timeout=endpoint.timeout,
            allow_redirects=False,
            stream=True,
            verify=endpoint.ca_file or True if endpoint.verify_tls else False,
            proxies={"http": endpoint.proxy, "https": endpoint.proxy} if endpoint.proxy else None,
        ) as response:
            content = _read_body(response, max_bytes)
            return Reply(response.status_code, dict(response.headers), content, response.reason or "")


def _read_body(response: requests.Response, max_bytes: int) -> bytes:
    content = bytearray()
    for piece in response.iter_content(PIECE_BYTES):
        content += piece
        if len(content) >= max_bytes:
            break
    return bytes(content[:max_bytes])


def _ask(
    method: str, way: Endpoint, body: bytes | None, headers: Mapping[str, str], max_bytes: int = MAX_BODY_BYTES
) -> Reply:
    result = _send(method, way, body, headers, max_bytes)
    # Raised outside the except block: the exception of urllib3 in its context names the whole address.
    if isinstance(result, RequestError):
        raise result
    return result


def _send(
    method: str, way: Endpoint, body: bytes | None, headers: Mapping[str, str], max_bytes: int
) -> Reply | RequestError:
    try:
        return _judge(way, exchange(method, way, body, headers, max_bytes=max_bytes))
    except Exception as error:  # requests lets through what urllib3, ssl and idna raise: each is a failed request
        return _failure(way, error)


def _judge(way: Endpoint, reply: Reply) -> Reply | RequestError:
    """The reply if its status is a success, otherwise the error."""
    if reply.status < HTTPStatus.MULTIPLE_CHOICES:
        return reply
    if reply.status < HTTPStatus.BAD_REQUEST:
        target = way.redact(Endpoint(reply.header("location") or "").host)
        return RequestError(
            f"{way.host} redirects ({reply.status}, to {target}); configure the final address",
            retryable=False,
        )
    later = reply.status in RETRYABLE_STATUSES or reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    after = retry_after(reply.header("retry-after"), time.time()) if later else None
    return RequestError(f"{way.host} answered {_status(reply.status)}{_said(way, reply)}", retryable=later, after=after)


def _status(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)


def _said(way: Endpoint, reply: Reply) -> str:
    """Explanation in the body of an error reply, unless it is an HTML page."""
    text = reply.body.decode("utf-8", "replace").strip()
    return f": {way.redact(text)}" if text and not text.startswith("<") else ""


def _failure(way: Endpoint, error: BaseException) -> RequestError:
    """RequestError for an exception of the libraries, whose own messages repeat the address."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = way.redact(cause.verify_message)
            return RequestError(f"{way.host}: the certificate is not trusted ({why})", retryable=False)
    if any("Tunnel connection failed: 407" in str(cause) for cause in causes):
        return RequestError(f"{way.host}: the proxy rejects the login", retryable=False)
    if isinstance(error, (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, ValueError)):
        return RequestError("the address of the receiver is not valid", retryable=False)
    if any(isinstance(cause, (TimeoutError, requests.Timeout)) for cause in causes):
        return _too_slow(way)
    where = "the proxy" if isinstance(error, requests.exceptions.ProxyError) else way.host
    return RequestError(f"{where}: {_in_words(causes)}", retryable=True)


def _in_words(causes: list[BaseException]) -> str:
    words: tuple[tuple[type[BaseException], str], ...] = (
        (socket.gaierror, "the name cannot be resolved"),
        (ConnectionRefusedError, "connection refused"),
        (ssl.SSLError, "TLS failed"),
        (ConnectionError, "the connection was closed"),
        (urllib3.exceptions.ProtocolError, "the connection was closed"),
        (FileNotFoundError, "a required file is missing"),
    )
    for kind, said in words:
        if any(isinstance(cause, kind) for cause in causes):
            return said
    return next((c.strerror for c in causes if isinstance(c, OSError) and c.strerror), type(causes[0]).__name__)


def _too_slow(way: Endpoint) -> RequestError:
    return RequestError(f"{way.host}: no complete answer within {way.timeout:g} s", retryable=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and all its causes, wherever the libraries keep them."""
    found, todo = set[int](), [error]
    while todo:
        each = todo.pop(0)
        if id(each) in found:
            continue
        found.add(id(each))
        yield each
        linked = (each.__cause__, each.__context__, getattr(each, "reason", None), *each.args)
        todo += [other for other in linked if isinstance(other, BaseException)]


def _login_of(url: str) -> Any:
    """Login in the address; otherwise none, even if a .netrc has one for the host."""
    parts = urlsplit(url)
    if parts.username is None:
        return lambda request: request
    return (unquote(parts.username), unquote(parts.password or ""))


class _Adapter(HTTPAdapter):
    """Creates connections that a Cancellation can break off."""

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        super().init_poolmanager(*args, **more)
        self.poolmanager.pool_classes_by_scheme = POOL_CLASSES

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **more)
        if not proxy.lower().startswith("socks"):
            manager.pool_classes_by_scheme = POOL_CLASSES
        return manager


class _RedactingFilter(logging.Filter):
    """Keeps addresses out of the logs while requests are in progress, including those of other threads."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002  # independent of the record
        return not _in_progress


_in_progress: list[bool] = []  # one entry per request
_lock = threading.Lock()
for _name in ("connection", "connectionpool", "poolmanager", "response", "util.retry"):
    logging.getLogger(f"urllib3.{_name}").addFilter(_RedactingFilter())
