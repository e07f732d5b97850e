"""Requests to receivers of alerts; the only importer of `requests`.

A request has one time limit for everything, follows no redirect, verifies TLS, and ends in a Reply or in a
RequestError that says whether trying again makes sense. Addresses of receivers are secrets: what is raised or logged
names the host and nothing else of them.
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
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from monitor import __version__
from monitor.base.endpoint import Endpoint
from monitor.base.threads import Cancellation, with_deadline

MAX_BODY = 64 * 1024
MAX_AFTER = 3600.0  # nobody is left alone for longer, whatever they ask for
LATER = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})


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
    """An answer with a status of 200 to 299. The body is cut off after 64 KiB."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


def post_json(way: Endpoint, payload: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """Send this as JSON, and return the answer. Raise RequestError."""
    return post(way, as_json(payload), headers)


def post(way: Endpoint, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
    """Send this, which is JSON, and return the answer. Raise RequestError."""
    return _ask("POST", way, body, {"Content-Type": "application/json; charset=utf-8", **(headers or {})})


def get(way: Endpoint, headers: Mapping[str, str] | None = None) -> Reply:
    """Ask, and return the answer. Raise RequestError."""
    return _ask("GET", way, None, headers or {})


def as_json(payload: Any) -> bytes:
    """Given JSON's own types, return them as bytes. Characters are not escaped: WeCom refuses those that are."""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@contextmanager
def no_requests_logged() -> Iterator[None]:
    """Keep urllib3 from logging addresses while something is sent, by whichever thread."""
    with _lock:
        _under_way.append(True)
    try:
        yield
    finally:
        with _lock:
            _under_way.pop()


def retry_after(value: str | None, now: float) -> float | None:
    """Given a Retry-After header, in seconds or as a date, return how many seconds that is. None: it says nothing."""
    if not value:
        return None
    try:
        seconds = float(value) if value.strip().isdigit() else parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_AFTER)


def _ask(method: str, way: Endpoint, body: bytes | None, headers: Mapping[str, str]) -> Reply:
    try:
        result = with_deadline(way.timeout, lambda line: _send(method, way, body, headers, line))
    except TimeoutError:
        result = _too_slow(way)
    # Raised here and not where it came to light: what urllib3 raised there names the whole address.
    if isinstance(result, RequestError):
        raise result
    return result


def _send(
    method: str, way: Endpoint, body: bytes | None, headers: Mapping[str, str], line: Cancellation
) -> Reply | RequestError:
    _this_thread.line = line
    if not way.verify_tls:  # somebody asked for it: once in the configuration is enough
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    try:
        with no_requests_logged(), requests.Session() as session:
            session.mount("http://", _Adapter())
            session.mount("https://", _Adapter())
            with session.request(
                method,
                way.url,
                data=body,
                headers={**headers, "User-Agent": f"gpuwarden/{__version__}", "Connection": "close"},
                auth=_login_of(way.url),
                timeout=way.timeout,
                allow_redirects=False,
                stream=True,
                verify=way.ca_file or True if way.verify_tls else False,
                proxies={"http": way.proxy, "https": way.proxy} if way.proxy else None,
            ) as response:
                answer = response.raw.read(MAX_BODY, decode_content=True)
                return _judge(way, Reply(response.status_code, dict(response.headers), answer))
    except Exception as error:  # requests lets through what urllib3, ssl and idna raise: each is a failed request
        return _failure(way, error)


def _judge(way: Endpoint, reply: Reply) -> Reply | RequestError:
    """Given an answer, return it if its status is one of success, and else what is wrong."""
    if reply.status < HTTPStatus.MULTIPLE_CHOICES:
        return reply
    headers = {name.lower(): value for name, value in reply.headers.items()}
    if reply.status < HTTPStatus.BAD_REQUEST:
        target = way.redact(Endpoint(headers.get("location", "")).host)
        return RequestError(
            f"{way.host} sends us elsewhere ({reply.status}, to {target}); the address itself must be right",
            retryable=False,
        )
    later = reply.status in LATER or reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    after = retry_after(headers.get("retry-after"), time.time()) if later else None
    return RequestError(f"{way.host} answered {_status(reply.status)}{_said(way, reply)}", retryable=later, after=after)


def _status(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)


def _said(way: Endpoint, reply: Reply) -> str:
    """Return what a refusal says for itself, if it is a few words and no page."""
    text = reply.body.decode("utf-8", "replace").strip()
    return f": {way.redact(text)}" if text and not text.startswith("<") else ""


def _failure(way: Endpoint, error: BaseException) -> RequestError:
    """Given what was raised, return it in our words: those of the libraries repeat the address."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = way.redact(cause.verify_message)
            return RequestError(f"{way.host}: the certificate is not trusted ({why})", retryable=False)
    if any("Tunnel connection failed: 407" in str(cause) for cause in causes):
        return RequestError(f"{way.host}: the proxy wants another login", retryable=False)
    if isinstance(error, (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, ValueError)):
        return RequestError("the address of the receiver is not one that can be used", retryable=False)
    if any(isinstance(cause, (TimeoutError, requests.Timeout)) for cause in causes):
        return _too_slow(way)
    where = "the proxy" if isinstance(error, requests.exceptions.ProxyError) else way.host
    return RequestError(f"{where}: {_in_words(causes)}", retryable=True)


def _in_words(causes: list[BaseException]) -> str:
    words: tuple[tuple[type[BaseException], str], ...] = (
        (socket.gaierror, "the name cannot be resolved"),
        (ConnectionRefusedError, "connection refused"),
        (ssl.SSLError, "TLS failed"),
        (ConnectionError, "the connection was broken off"),
        (urllib3.exceptions.ProtocolError, "the connection was broken off"),
        (FileNotFoundError, "a file it needs is not there"),
    )
    for kind, said in words:
        if any(isinstance(cause, kind) for cause in causes):
            return said
    return next((c.strerror for c in causes if isinstance(c, OSError) and c.strerror), type(causes[0]).__name__)


def _too_slow(way: Endpoint) -> RequestError:
    return RequestError(f"{way.host}: no whole answer within {way.timeout:g} s", retryable=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an exception and all that led to it, wherever the libraries have put that."""
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
    """Return the login that an address names; otherwise none, also where a .netrc has one for that host."""
    parts = urlsplit(url)
    if parts.username is None:
        return lambda request: request
    return (unquote(parts.username), unquote(parts.password or ""))


class _HeldHttp(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return _held(super()._new_conn())


class _HeldHttps(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return _held(super()._new_conn())


def _held(sock: socket.socket) -> socket.socket:
    try:
        _this_thread.line.hold(sock)
    except BaseException:
        sock.close()
        raise
    return sock


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _HeldHttp


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _HeldHttps


_POOLS = {"http": _HttpPool, "https": _HttpsPool}


class _Adapter(HTTPAdapter):
    """Makes connections that can be broken off."""

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        super().init_poolmanager(*args, **more)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **more)
        if not proxy.lower().startswith("socks"):
            manager.pool_classes_by_scheme = _POOLS
        return manager


class _Discretion(logging.Filter):
    """Keeps addresses out of the logs while receivers are asked. What others ask meanwhile goes unlogged, too."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002  # which one it is does not matter
        return not _under_way


_this_thread = threading.local()
_under_way: list[bool] = []  # one for each sending
_lock = threading.Lock()
for _name in ("connection", "connectionpool", "poolmanager", "response", "util.retry"):
    logging.getLogger(f"urllib3.{_name}").addFilter(_Discretion())
