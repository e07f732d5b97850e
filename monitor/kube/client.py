"""The way to the API server: credentials, requests, raw bytes back. The only importer of `kubernetes` and `urllib3`.

The client library gives credentials, TLS, proxies and their refresh. Its typed models and its watch are not used: they
cost seconds for 10,000 pods, and one odd pod fails a whole list.
"""

from __future__ import annotations

import http.client
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from monitor.kube.decode.stream import decode_status

CONNECT_TIMEOUT_SECONDS = 5.0
MIN_RELOAD_SECONDS = 5.0  # credentials that are refused are read again, but not more often than this
CHUNK_BYTES = 1 << 16
_JSON = "application/json"
# A peer that vanished without a word is noticed after half a minute, also between two lines of a watch.
KEEPALIVE_OPTIONS = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)


class KubeCredentialsError(Exception):
    """There are no credentials for any cluster, or they cannot be read."""


class ApiConnectionError(Exception):
    """The API server cannot be reached, or went away in the middle."""


class ApiError(Exception):
    """The API server answered, and refused."""

    def __init__(self, status: int, reason: str | None, message: str | None, retry_after: float | None = None) -> None:
        super().__init__(f"HTTP {status} {reason or ''}: {message or 'no message'}")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class ResponseStream:
    """An answer that is being read by one thread, and may be cut off by another."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def header(self, name: str) -> str | None:
        """Return a header of the answer."""
        value = self._response.headers.get(name)
        return None if value is None else str(value)

    def read(self) -> bytes:
        """Return the whole body. Raise LostError if it breaks off."""
        with _losses():
            return bytes(self._response.read())

    def chunks(self) -> Iterator[bytes]:
        """Yield bytes as they arrive, until the server ends the answer. Raise LostError if it breaks off."""
        while True:
            with _losses():
                chunk = self._response.read1(CHUNK_BYTES)
            if not chunk:
                return
            yield chunk

    def abort(self) -> None:
        """Make the reading thread's call return. For use from other threads."""
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError):  # it has ended already
            return

    def close(self) -> None:
        """Close the connection, unless the body was read to its end: then it has gone back to the pool."""
        self._response.close()


class KubeApi:
    """Requests to one API server. `load` returns a client of the library with credentials read anew."""

    def __init__(self, load: Callable[[], Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._load = load
        self._clock = clock
        self._lock = threading.Lock()
        self._client = load()
        self._loaded_at = clock()

    @property
    def host(self) -> str:
        """The address of the API server."""
        return str(self._client.configuration.host)

    def open(self, path: str, query: Mapping[str, str], accept: str, read_seconds: float) -> ResponseStream:
        """Given a path, return the answer. Raise ApiError if refused, LostError if there is none.

        `read_seconds` is how long the server may be silent: the limit between two pieces, not of the whole.
        """
        client, response = self._request("GET", path, query, accept, read_seconds)
        if response.status == 200:
            return ResponseStream(response)
        raise self._refusal(response, client)

    def send(self, method: str, path: str, body: bytes, read_seconds: float, kind: str = _JSON) -> bytes:
        """Given something to change, as JSON of this kind, have it changed and return the answer.

        Raise ApiError or LostError.

        It is sent once. After LostError nobody knows whether it arrived.
        """
        client, response = self._request(method, path, {}, _JSON, read_seconds, body, kind)
        if not 200 <= response.status < 300:
            raise self._refusal(response, client)
        stream = ResponseStream(response)
        try:
            return stream.read()
        finally:
            stream.close()

    def get(self, path: str, query: Mapping[str, str], accept: str, read_seconds: float) -> bytes:
        """Given a path, return the whole answer. Raise ApiError or LostError."""
        stream = self.open(path, query, accept, read_seconds)
        try:
            return stream.read()
        finally:
            stream.close()

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        accept: str,
        read_seconds: float,
        body: bytes | None = None,
        kind: str = _JSON,
    ) -> tuple[Any, Any]:
        """Make a request, and return the client that made it and the answer, of which nothing is read yet."""
        import urllib3  # comes with the client library, and is as dear to import

        client = self._client
        url = client.configuration.host.rstrip("/") + path
        headers = self._headers(client, accept)
        content: dict[str, Any] = {"fields": dict(query)}
        if body is not None:
            headers["Content-Type"] = kind
            content = {"body": body}
        with _losses():
            response = client.rest_client.pool_manager.request(
                method,
                url,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_TIMEOUT_SECONDS, read=read_seconds),
                retries=False,
                preload_content=False,
                **content,
            )
        return client, response

    def _headers(self, client: Any, accept: str) -> dict[str, str]:
        headers = {**client.default_headers, "User-Agent": "gpuwarden", "Accept": accept}
        with self._lock:  # reading it may refresh it, and the library does not expect two at once
            auth = client.configuration.auth_settings()
        for setting in auth.values():
            if setting["in"] == "header" and setting["value"]:
                headers[setting["key"]] = setting["value"].strip()  # a token file may end in a newline
        return headers

    def _refusal(self, response: Any, client: Any) -> ApiError:
        with _losses():
            body = response.read(CHUNK_BYTES)
        response.close()
        if response.status == 401:
            self._reload(client)
        status = decode_status(body)
        return ApiError(
            response.status,
            status.reason or response.reason,
            status.message,
            _seconds(response.headers.get("Retry-After")),
        )

    def _reload(self, refused: Any) -> None:
        """Read the credentials again: a rotated token file or certificate is the usual cause of a 401."""
        with self._lock:
            if self._client is refused and self._clock() - self._loaded_at >= MIN_RELOAD_SECONDS:
                self._loaded_at = self._clock()
                try:
                    self._client = self._load()
                except KubeCredentialsError:  # half-written: the next 401 tries again
                    return


def connect(kubeconfig: str | None = None, context: str | None = None) -> KubeApi:
    """Given a kubeconfig, or none to use the pod's own account or the user's default, return the way to the API server.

    Raise NoClusterError that says what was looked for.
    """
    return KubeApi(lambda: load_client(kubeconfig, context))


def load_client(kubeconfig: str | None, context: str | None) -> Any:
    """Given where credentials are, return a client of the library that has them. Raise NoClusterError."""
    from kubernetes import client, config  # 0.4 s and 20 MiB: only for who asks for a cluster

    loader: Any = config  # the library says that it is typed, and is so in part
    settings = client.Configuration()
    settings.connection_pool_maxsize = 32  # one watch a resource, and a list beside it
    settings.socket_options = list(KEEPALIVE_OPTIONS)
    in_cluster = _in_cluster(kubeconfig, context)
    try:
        if in_cluster:
            loader.load_incluster_config(client_configuration=settings)
        else:
            loader.load_kube_config(
                config_file=kubeconfig, context=context, client_configuration=settings, persist_config=False
            )
        return client.ApiClient(settings)
    except Exception as error:  # the library raises whatever its parser, the file system or a plugin raised
        where = "the pod's service account" if in_cluster else kubeconfig or "$KUBECONFIG or ~/.kube/config"
        raise KubeCredentialsError(f"no credentials for a cluster in {where}: {error}") from error


def context_name(kubeconfig: str | None, context: str | None) -> str | None:
    """Given where credentials are, return the name of the context; None for the pod's own. Raise NoClusterError."""
    from kubernetes import config  # as above

    loader: Any = config
    if _in_cluster(kubeconfig, context):
        return None
    try:
        return context or str(loader.list_kube_config_contexts(kubeconfig)[1]["name"])
    except Exception as error:  # as above
        raise KubeCredentialsError(f"no context in {kubeconfig or '$KUBECONFIG or ~/.kube/config'}: {error}") from error


def _in_cluster(kubeconfig: str | None, context: str | None) -> bool:
    return kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ


def _seconds(retry_after: str | None) -> float | None:
    return float(retry_after) if retry_after and retry_after.isdecimal() else None


@contextmanager
def _losses() -> Iterator[None]:
    """Turn every way in which a connection fails into LostError."""
    import urllib3  # comes with the client library, and is as dear to import

    try:
        yield
    except (urllib3.exceptions.HTTPError, OSError, http.client.HTTPException) as error:
        raise ApiConnectionError(f"{type(error).__name__}: {error}") from error
