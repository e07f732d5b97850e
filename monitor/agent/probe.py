"""One attempt to reach a registry, in the stages in which a pull would fail: DNS, TCP, TLS, `GET /v2/`.

No proxy, credentials or redirects: the question is whether this node reaches this registry.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from monitor.agent.settings import RegistryTarget
from monitor.base.clock import Clock
from monitor.facts import ProbeFact

if TYPE_CHECKING:
    import ssl

_Address = tuple[Any, Any, int, str, Any]  # as getaddrinfo returns them
_MAX_HEAD_BYTES = 64 * 1024
_RECEIVE_BYTES = 4096
_OK_STATUSES = (200, 401)  # a registry that wants a login is reachable
_UNREACHABLE = frozenset(
    (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL, errno.EPERM)
)
# X509_V_ERR_* of OpenSSL. "Not yet valid" has the same causes as expired: the dates, or this node's clock.
_VERIFY_CAUSES = {9: "tls-expired", 10: "tls-expired", 62: "tls-hostname", 64: "tls-hostname"} | dict.fromkeys(
    (2, 18, 19, 20, 21), "tls-untrusted"
)


class _ProbeError(Exception):
    """The current stage failed."""

    def __init__(self, cause: str, error: str, status: int | None = None) -> None:
        super().__init__(error)
        self.cause = cause
        self.status = status


class TlsContext:
    """Trusted authorities for a registry, reloaded when the files on disk change."""

    def __init__(self, target: RegistryTarget) -> None:
        self._target = target
        self._loaded: tuple[object, ssl.SSLContext] | None = None

    def get(self) -> ssl.SSLContext:
        """SSL context. Raise _ProbeError if the configured CA file cannot be used."""
        import ssl  # 4 MiB that a node without HTTPS registries saves

        defaults = ssl.get_default_verify_paths()
        version = [_version(path) for path in (self._target.ca_file, defaults.cafile, defaults.capath)]
        if self._loaded is None or self._loaded[0] != version:
            context = ssl.create_default_context()
            if self._target.ca_file is not None:
                _trust(context, self._target.ca_file)
            if not self._target.verify_tls:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            self._loaded = (version, context)
        return self._loaded[1]


def _trust(context: ssl.SSLContext, ca_file: str) -> None:
    """Trust `ca_file` in addition to the system's authorities, as container runtimes do. Raise _ProbeError."""
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:  # includes ssl.SSLError
        raise _ProbeError("tls-other", f"{ca_file}: {error.strerror or error}") from error


def _version(path: str | None) -> object:
    try:
        stat = os.stat(path) if path else None
    except OSError:
        return None
    return stat and (stat.st_ino, stat.st_mtime_ns, stat.st_size)


class RegistryProbe:
    """One attempt. `stage` is its progress, which stays readable if the attempt hangs."""

    def __init__(self, target: RegistryTarget, timeout: float, tls: TlsContext, clock: Clock = time) -> None:
        self.target = without_credentials(target.url)
        self.stage = "dns"
        self.address: str | None = None
        self._tls = tls
        self._clock = clock
        self._started = clock.monotonic()
        self._deadline = self._started + timeout

    def run(self) -> ProbeFact:
        """Outcome of the attempt. Everything but the name lookup ends within the timeout."""
        try:
            status = self._attempt()
        except _ProbeError as failure:
            return self.failed(failure.cause, str(failure), failure.status)
        return ProbeFact(
            target=self.target,
            ok=True,
            at=self._clock.time(),
            status=status,
            address=self.address,
            duration_seconds=self._clock.monotonic() - self._started,
        )

    def failed(self, cause: str, error: str, status: int | None = None) -> ProbeFact:
        """Failure of the current stage."""
        return ProbeFact(
            target=self.target,
            ok=False,
            at=self._clock.time(),
            stage=self.stage,
            cause=cause,
            status=status,
            error=error,
            address=self.address,
            duration_seconds=self._clock.monotonic() - self._started,
        )

    def _attempt(self) -> int:
        url = urlsplit(self.target)
        addresses = _resolve(url)
        self.stage = "tcp"
        connection, address = self._connect(addresses)
        try:
            if url.scheme == "https":
                self.stage = "tls"
                connection = self._encrypt(connection, address, url)
            self.stage = "http"
            return self._get(connection, url)
        finally:
            connection.close()

    def _connect(self, addresses: list[_Address]) -> tuple[socket.socket, _Address]:
        """Connection to the first address that accepts one. Raise the failure of the last."""
        failure = _ProbeError("dns", "the name has no address")
        for tried, address in enumerate(addresses):
            self.address = address[-1][0]
            try:
                # An address that drops packets must leave time for the following ones.
                return _dial(address, self._remaining() / (len(addresses) - tried)), address
            except OSError as error:
                failure = _network_failure(error)
        raise failure

    def _encrypt(self, connection: socket.socket, address: _Address, url: SplitResult) -> socket.socket:
        import ssl

        context = self._tls.get()
        try:
            connection.settimeout(self._remaining())
            return context.wrap_socket(connection, server_hostname=url.hostname)
        except ssl.SSLCertVerificationError as error:
            cause = _VERIFY_CAUSES.get(error.verify_code, "tls-other")
            raise _ProbeError(cause, error.verify_message) from error
        except OSError as error:
            if not isinstance(error, TimeoutError) and self._speaks_plain_http(address, url):
                raise _ProbeError("plain-http", "the server speaks plain HTTP on an https:// address") from error
            raise _network_failure(error) from error

    def _speaks_plain_http(self, address: _Address, url: SplitResult) -> bool:
        """Whether a server that does not speak TLS speaks HTTP. OpenSSL's message for that varies."""
        try:
            with _dial(address, self._remaining()) as connection:
                return self._request(connection, url).startswith(b"HTTP/")
        except (OSError, _ProbeError):
            return False

    def _get(self, connection: socket.socket, url: SplitResult) -> int:
        """Status of `GET /v2/`. Raise _ProbeError unless it is that of a working registry."""
        try:
            line = self._request(connection, url)
        except OSError as error:
            raise _network_failure(error) from error
        version, _, rest = line.decode("latin-1").partition(" ")
        code = rest[:3]
        if not version.startswith("HTTP/") or not (code.isascii() and code.isdecimal()):
            raise _ProbeError("http-other" if line else "reset", f"not an HTTP response: {line[:80]!r}")
        if int(code) not in _OK_STATUSES:
            raise _ProbeError("http-status", rest.strip(), int(code))
        return int(code)

    def _request(self, connection: socket.socket, url: SplitResult) -> bytes:
        """First line of the response, or what arrived of it before the server closed the connection."""
        host = url.netloc.encode("idna").decode("ascii")
        request = f"GET /v2/ HTTP/1.1\r\nHost: {host}\r\nUser-Agent: gpuwarden\r\nConnection: close\r\n\r\n"
        connection.settimeout(self._remaining())
        connection.sendall(request.encode("ascii"))
        response = b""
        while b"\n" not in response and len(response) < _MAX_HEAD_BYTES:
            connection.settimeout(self._remaining())
            received = connection.recv(_RECEIVE_BYTES)
            if not received:
                break
            response += received
        return response.partition(b"\n")[0]

    def _remaining(self) -> float:
        """Seconds left. Raise _ProbeError if there are none."""
        remaining = self._deadline - self._clock.monotonic()
        if remaining <= 0:
            raise _ProbeError("timeout", "no answer in time")
        return remaining


def without_credentials(url: str) -> str:
    """URL without user and password, which are neither sent nor shown."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return scheme + separator + authority.rpartition("@")[2] + slash + path


def _dial(address: _Address, timeout: float) -> socket.socket:
    family, kind, protocol, _, target = address
    connection = socket.socket(family, kind, protocol)
    try:
        connection.settimeout(timeout)
        connection.connect(target)
    except OSError:
        connection.close()
        raise
    return connection


def _resolve(url: SplitResult) -> list[_Address]:
    """Addresses of the URL's host. Raise _ProbeError if there are none."""
    try:
        port = url.port or (443 if url.scheme == "https" else 80)
        return socket.getaddrinfo(url.hostname, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise _ProbeError("dns", f"{url.hostname}: {error.strerror}") from error
    except ValueError as error:  # an impossible name or port
        raise _ProbeError("dns", f"{url.netloc}: {error}") from error


def _network_failure(error: OSError) -> _ProbeError:
    """Failure for an error of the network or of TLS."""
    text = error.strerror or str(error)
    if isinstance(error, TimeoutError):
        return _ProbeError("timeout", "no answer in time")
    if isinstance(error, ConnectionRefusedError):
        return _ProbeError("refused", text)
    if isinstance(error, ConnectionError):
        return _ProbeError("reset", text)
    if hasattr(error, "library"):  # an ssl.SSLError: its errno is not the system's
        return _ProbeError("reset" if "EOF" in text else "tls-other", text)
    return _ProbeError("unreachable" if error.errno in _UNREACHABLE else "other", text)
