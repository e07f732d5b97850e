"""Kubernetes API client: credentials, requests, raw response bytes.

The `kubernetes` library provides credentials, TLS and proxies, and refreshes them. Its typed models and its watch are
not used: they take seconds for 10,000 pods, and one malformed pod fails a whole list.
"""

from __future__ import annotations

import http.client
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from monitor.base.threads import Cancellation, with_deadline
from monitor.kube.decode.stream import decode_status

CONNECT_TIMEOUT_SECONDS = 5.0
ERROR_SECONDS = 30.0  # for the body of an error
MIN_RELOAD_SECONDS = 5.0  # between reloads of rejected credentials
CHUNK_BYTES = 1 << 16
PIECE_BYTES = 1 << 20  # of a body that is read as a whole
MAX_BODY_BYTES = 64 << 20  # of one page of a list: 500 ordinary pods take 8 MiB
MAX_LIST_BYTES = 512 << 20  # of a list in one page
_JSON = "application/json"
# Detects a vanished peer after 30 seconds, also between two lines of a watch.
KEEPALIVE_OPTIONS = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)


class KubeCredentialsError(Exception):
    """There are no cluster credentials, or they cannot be read."""


class ApiConnectionError(Exception):
    """The API server is unreachable, or the connection broke."""


class ApiError(Exception):
    """The API server answered with an error status."""

    def __init__(self, status: int, reason: str | None, message: str | None, retry_after: float | None = None) -> None:
        super().__init__(f"HTTP {status} {reason or ''}: {message or 'no message'}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class ApiBodyTooLargeError(ApiConnectionError):
    """The body of a response exceeds its limit; a list may fit in smaller pages."""


class ResponseStream:
    """A response read by one thread that another thread may abort."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._late = False

    def header(self, name: str) -> str | None:
        value = self._response.headers.get(name)
        return None if value is None else str(value)

    def read(self, seconds: float, max_bytes: int = MAX_BODY_BYTES) -> bytes:
        """The whole body. Raise ApiConnectionError if the connection breaks or the body is not complete in time.

        Raise ApiBodyTooLargeError if it is longer.
        """
        body = bytearray()
        with self._within(seconds):
            while piece := self._response.read(PIECE_BYTES):
                body += piece
                if len(body) > max_bytes:
                    raise ApiBodyTooLargeError(f"response of more than {max_bytes >> 20} MiB")
        return bytes(body)

    def read_beginning(self, seconds: float) -> bytes:
        """The first part of the body. Raise ApiConnectionError if it does not arrive in time."""
        with self._within(seconds):
            return bytes(self._response.read(CHUNK_BYTES))

    @contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        """Abort reading after a time: the timeout of a connection limits only the silence between two bytes."""
        connection = self._response.connection
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            with _connection_errors():
                yield
        finally:
            timer.cancel()
            if self._late and connection is not None:
                connection.close()  # it may have returned to the pool
        if self._late:  # the connection was cut off, which may look like the end of the body
            raise ApiConnectionError(f"the response is not complete after {seconds:g} s")

    def _expire(self) -> None:
        self._late = True
        self.abort()

    def chunks(self) -> Iterator[bytes]:
        """Yield bytes as they arrive, until the end. Raise ApiConnectionError if the connection breaks."""
        while True:
            with _connection_errors():
                chunk = self._response.read1(CHUNK_BYTES)
            if not chunk:
                return
            yield chunk

    def abort(self) -> None:
        """Unblock the reading thread. Called from other threads."""
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError):  # already ended
            return

    def close(self) -> None:
        """Close the connection, unless the body was read completely and it went back to the pool."""
        self._response.close()


class KubeApi:
    """Client of one API server. `load` returns a library client with freshly read credentials."""

    def __init__(self, load: Callable[[], Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()
        self._client = load()
        self._loaded_at = clock()

    @property
    def host(self) -> str:
        return str(self._client.configuration.host)

    def open(self, path: str, query: Mapping[str, str], accept: str, read_seconds: float) -> ResponseStream:
        """GET `path`. Raise ApiError or ApiConnectionError.

        `read_seconds` limits the time until the response begins, and then the time between two pieces of it.
        """
        client, response = self._request("GET", path, query, accept, read_seconds)
        if response.status == 200:
            return ResponseStream(response)
        raise self._api_error(response, client)

    def send(self, method: str, path: str, body: bytes, seconds: float, content_type: str = _JSON) -> bytes:
        """Send `body`, JSON of media type `content_type`, and return the response, which must begin and end in time.

        The request is sent once. After ApiConnectionError its outcome is unknown. Raise ApiError or ApiConnectionError.
        """
        client, response = self._request(method, path, {}, _JSON, seconds, body, content_type)
        if not 200 <= response.status < 300:
            raise self._api_error(response, client)
        with closing(ResponseStream(response)) as stream:
            return stream.read(seconds)

    def get(
        self,
        path: str,
        query: Mapping[str, str],
        accept: str,
        seconds: float,
        max_bytes: int = MAX_BODY_BYTES,
    ) -> bytes:
        """The whole response of GET `path`, which must begin and end in time.

        Raise ApiError, ApiConnectionError or ApiBodyTooLargeError.
        """
        with closing(self.open(path, query, accept, seconds)) as stream:
            return stream.read(seconds, max_bytes)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        accept: str,
        read_seconds: float,
        body: bytes | None = None,
        content_type: str = _JSON,
    ) -> tuple[Any, Any]:
        """Send a request; return the client used and the unread response."""
        client = self._client
        url = client.configuration.host.rstrip("/") + path
        headers = self._headers(client, accept)
        content: dict[str, Any] = {"fields": dict(query)}
        if body is not None:
            headers["Content-Type"] = content_type
            content = {"body": body}
        with _connection_errors():
            pools = client.rest_client.pool_manager
            return client, _begin(pools, method, url, read_seconds, headers=headers, **content)

    def _headers(self, client: Any, accept: str) -> dict[str, str]:
        headers = {**client.default_headers, "User-Agent": "gpuwarden", "Accept": accept}
        with self._lock:  # reading may refresh credentials, which is not thread-safe in the library
            auth = client.configuration.auth_settings()
        for setting in auth.values():
            if setting["in"] == "header" and setting["value"]:
                headers[setting["key"]] = setting["value"].strip()  # a token file may end in a newline
        return headers

    def _api_error(self, response: Any, client: Any) -> ApiError:
        with closing(ResponseStream(response)) as stream:
            body = stream.read_beginning(ERROR_SECONDS)
        if response.status == 401:
            self._reload(client)
        status = decode_status(body)
        return ApiError(
            response.status,
            status.reason or response.reason,
            status.message,
            _seconds(response.headers.get("Retry-After")),
        )

    def _reload(self, rejected: Any) -> None:
        """Reload the credentials: the usual cause of a 401 is a rotated token file or certificate."""
        with self._lock:
            if self._client is rejected and self._clock() - self._loaded_at >= MIN_RELOAD_SECONDS:
                self._loaded_at = self._clock()
                try:
                    self._client = self._load()
                except KubeCredentialsError:  # partially written file: the next 401 retries
                    return


def connect(kubeconfig: str | None = None, context: str | None = None) -> KubeApi:
    """Client for a kubeconfig; without one, for the pod's service account or the user's default.

    Raise KubeCredentialsError that names the location.
    """
    return KubeApi(lambda: load_client(kubeconfig, context))


def load_client(kubeconfig: str | None, context: str | None) -> Any:
    """Library client with the credentials. Raise KubeCredentialsError."""
    from kubernetes import client, config  # 0.4 s and 20 MiB: imported only when needed

    from monitor.base.cancellable import POOL_CLASSES

    loader: Any = config  # the library is only partially typed
    settings = client.Configuration()
    settings.connection_pool_maxsize = 32  # one watch per resource, plus lists
    settings.socket_options = list(KEEPALIVE_OPTIONS)
    in_cluster = _in_cluster(kubeconfig, context)
    try:
        if in_cluster:
            loader.load_incluster_config(client_configuration=settings)
        else:
            loader.load_kube_config(
                config_file=kubeconfig, context=context, client_configuration=settings, persist_config=False
            )
        loaded = client.ApiClient(settings)
        loaded.rest_client.pool_manager.pool_classes_by_scheme = POOL_CLASSES
        return loaded
    except Exception as error:  # parser, file system and plugin errors of any type
        where = "the pod's service account" if in_cluster else kubeconfig or "$KUBECONFIG or ~/.kube/config"
        raise KubeCredentialsError(f"no credentials for a cluster in {where}: {error}") from error


def context_name(kubeconfig: str | None, context: str | None) -> str | None:
    """Name of the kubeconfig context; None for the pod's service account. Raise KubeCredentialsError."""
    from kubernetes import config  # see load_client

    loader: Any = config
    if _in_cluster(kubeconfig, context):
        return None
    try:
        return context or str(loader.list_kube_config_contexts(kubeconfig)[1]["name"])
    except Exception as error:  # see load_client
        raise KubeCredentialsError(f"no context in {kubeconfig or '$KUBECONFIG or ~/.kube/config'}: {error}") from error


def _in_cluster(kubeconfig: str | None, context: str | None) -> bool:
    return kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ


def _seconds(retry_after: str | None) -> float | None:
    return float(retry_after) if retry_after and retry_after.isdecimal() else None


def _begin(pools: Any, method: str, url: str, read_seconds: float, **content: Any) -> Any:
    """Unread response of a request, which must begin in time, however slowly its headers arrive."""
    import urllib3  # expensive, like the kubernetes library that depends on it

    from monitor.base.cancellable import cancelled_by

    def request(cancellation: Cancellation) -> Any:
        timeout = urllib3.Timeout(connect=CONNECT_TIMEOUT_SECONDS, read=read_seconds)
        with cancelled_by(cancellation):
            response = pools.request(method, url, timeout=timeout, retries=False, preload_content=False, **content)
        if cancellation.cancelled:  # too late: the caller has given up
            response.close()
            raise ConnectionAbortedError("cancelled")
        return response

    return with_deadline(CONNECT_TIMEOUT_SECONDS + read_seconds, request)


@contextmanager
def _connection_errors() -> Iterator[None]:
    """Convert all connection failures to ApiConnectionError."""
    import urllib3  # expensive, like the kubernetes library that depends on it

    try:
        yield
    except (urllib3.exceptions.HTTPError, OSError, http.client.HTTPException) as error:
        raise ApiConnectionError(f"{type(error).__name__}: {error}") from error
