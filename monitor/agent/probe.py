"""One look at one registry, in the stages in which a pull would fail: name, connection, TLS, `GET /v2/`.

No proxy, no credentials, no redirect followed: what is asked is whether this node reaches this registry.
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
_HEAD_SIZE = 64 * 1024
# A registry that wants a login is a registry that answers.
_ANSWERS = (200, 401)
_UNREACHABLE = frozenset(
    (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL, errno.EPERM)
)
# X509_V_ERR_* of OpenSSL. Not valid yet is the same trouble as expired: the dates, or this node's clock.
_VERIFY_CAUSES = {9: "tls-expired", 10: "tls-expired", 62: "tls-hostname", 64: "tls-hostname"} | dict.fromkeys(
    (2, 18, 19, 20, 21), "tls-untrusted"
)


class _ProbeError(Exception):
    """The stage under way failed, for this cause."""

    def __init__(self, cause: str, error: str, status: int | None = None) -> None:
        super().__init__(error)
        self.cause = cause
        self.status = status


class TlsContext:
    """What a registry's certificate is checked against; loaded again when the files on disk have changed."""

    def __init__(self, target: RegistryTarget) -> None:
        self._target = target
        self._loaded: tuple[object, ssl.SSLContext] | None = None

    def get(self) -> ssl.SSLContext:
        """Return the context. Raise _ProbeError when the configured CA file cannot be used."""
        import ssl  # 4 MiB that a node without such registries need not spend

        places = ssl.get_default_verify_paths()
        version = [_version(path) for path in (self._target.ca_file, places.cafile, places.capath)]
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
    """Trust `ca_file` beside the system's authorities, as container runtimes do. Raise _ProbeError."""
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:  # ssl.SSLError is one too
        raise _ProbeError("tls-other", f"{ca_file}: {error.strerror or error}") from error


def _version(path: str | None) -> object:
    try:
        stat = os.stat(path) if path else None
    except OSError:
        return None
    return stat and (stat.st_ino, stat.st_mtime_ns, stat.st_size)


class Probe:
    """One attempt. `stage` says at any time how far it has come, also to those who have given up on it."""

    def __init__(self, target: RegistryTarget, timeout: float, tls: TlsContext, clock: Clock = time) -> None:
        self.target = without_credentials(target.url)
        self.stage = "dns"
        self.address: str | None = None
        self._tls = tls
        self._clock = clock
        self._began = clock.monotonic()
        self._deadline = self._began + timeout

    def run(self) -> ProbeFact:
        """Return how far it came. Name look-ups know no time limit: only the rest ends within the timeout."""
        try:
            status = self._try()
        except _ProbeError as failure:
            return self.failed(failure.cause, str(failure), failure.status)
        return ProbeFact(
            target=self.target,
            ok=True,
            at=self._clock.time(),
            status=status,
            address=self.address,
            duration_seconds=self._clock.monotonic() - self._began,
        )

    def failed(self, cause: str, error: str, status: int | None = None) -> ProbeFact:
        """Return the fact that the stage under way failed for this cause."""
        return ProbeFact(
            target=self.target,
            ok=False,
            at=self._clock.time(),
            stage=self.stage,
            cause=cause,
            status=status,
            error=error,
            address=self.address,
            duration_seconds=self._clock.monotonic() - self._began,
        )

    def _try(self) -> int:
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
        """Given addresses, return a connection to the first that accepts one. Raise the last one's failure."""
        failure = _ProbeError("dns", "the name has no address")
        for tried, address in enumerate(addresses):
            self.address = address[-1][0]
            try:
                # One that swallows packets must leave time for those that follow.
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
        """Tell whether the server that does not understand TLS understands HTTP. OpenSSL's words for it vary."""
        try:
            with _dial(address, self._remaining()) as connection:
                return self._ask(connection, url).startswith(b"HTTP/")
        except (OSError, _ProbeError):
            return False

    def _get(self, connection: socket.socket, url: SplitResult) -> int:
        """Return the status of `GET /v2/`. Raise _ProbeError unless it is one of a registry that answers."""
        try:
            line = self._ask(connection, url)
        except OSError as error:
            raise _network_failure(error) from error
        version, _, rest = line.decode("latin-1").partition(" ")
        code = rest[:3]
        if not version.startswith("HTTP/") or not (code.isascii() and code.isdecimal()):
            raise _ProbeError("http-other" if line else "reset", f"not an HTTP answer: {line[:80]!r}")
        if int(code) not in _ANSWERS:
            raise _ProbeError("http-status", rest.strip(), int(code))
        return int(code)

    def _ask(self, connection: socket.socket, url: SplitResult) -> bytes:
        """Send the request and return the first line of the answer, or what came of it before the other side closed."""
        host = url.netloc.encode("idna").decode("ascii")
        request = f"GET /v2/ HTTP/1.1\r\nHost: {host}\r\nUser-Agent: gpuwarden\r\nConnection: close\r\n\r\n"
        connection.settimeout(self._remaining())
        connection.sendall(request.encode("ascii"))
        answer = b""
        while b"\n" not in answer and len(answer) < _HEAD_SIZE:
            connection.settimeout(self._remaining())
            received = connection.recv(4096)
            if not received:
                break
            answer += received
        return answer.partition(b"\n")[0]

    def _remaining(self) -> float:
        """Return the seconds left. Raise _ProbeError when there are none."""
        remaining = self._deadline - self._clock.monotonic()
        if remaining <= 0:
            raise _ProbeError("timeout", "no answer in time")
        return remaining


def without_credentials(url: str) -> str:
    """Given a URL, return it without a user and password, which are neither sent nor shown."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return scheme + separator + authority.rpartition("@")[2] + slash + path


def _dial(address: _Address, timeout: float) -> socket.socket:
    """Given an address, return a connection to it. Raise OSError."""
    family, kind, protocol, _, place = address
    connection = socket.socket(family, kind, protocol)
    try:
        connection.settimeout(timeout)
        connection.connect(place)
    except OSError:
        connection.close()
        raise
    return connection


def _resolve(url: SplitResult) -> list[_Address]:
    """Given a URL, return the addresses of its host. Raise _ProbeError when there are none."""
    try:
        port = url.port or (443 if url.scheme == "https" else 80)
        return socket.getaddrinfo(url.hostname, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise _ProbeError("dns", f"{url.hostname}: {error.strerror}") from error
    except ValueError as error:  # a name that no DNS could hold, a port that is none
        raise _ProbeError("dns", f"{url.netloc}: {error}") from error


def _network_failure(error: OSError) -> _ProbeError:
    """Given what the network or TLS said, return the failure that it means."""
    text = error.strerror or str(error)
    if isinstance(error, TimeoutError):
        return _ProbeError("timeout", "no answer in time")
    if isinstance(error, ConnectionRefusedError):
        return _ProbeError("refused", text)
    if isinstance(error, ConnectionError):
        return _ProbeError("reset", text)
    if hasattr(error, "library"):  # an ssl.SSLError: its errno is not one of the system's
        return _ProbeError("reset" if "EOF" in text else "tls-other", text)
    return _ProbeError("unreachable" if error.errno in _UNREACHABLE else "other", text)
