"""Cause of a failed image pull, classified from messages of Docker, containerd, CRI-O and the kubelet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from monitor.explain.quote import Fragments, redact

PULL_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ImageInspectError",
        "ErrImageNeverPull",
        "InvalidImageName",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
DEFAULT_REGISTRY = "docker.io"


class PullFailureCause(StrEnum):
    """Cause of a failed pull."""

    DISK_FULL = "disk-full"
    WRONG_ARCHITECTURE = "wrong-architecture"
    RATE_LIMITED = "rate-limited"
    TLS = "tls"
    PLAIN_HTTP = "plain-http"
    DNS = "dns"
    CONNECTION_REFUSED = "connection-refused"
    TIMEOUT = "timeout"
    CONNECTION_BROKEN = "connection-broken"
    TOO_SLOW = "too-slow"
    REGISTRY_ERROR = "registry-error"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not-found"
    DAMAGED_LAYER = "damaged-layer"
    BAD_NAME = "bad-name"
    NEVER_PULL = "never-pull"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PullFailure:
    """A classified message. `host` is the host that failed: not always the registry (a proxy, a mirror).

    `runtime_down`: the container runtime on the node did not answer, rather than the registry.
    """

    cause: PullFailureCause
    message: str
    image: str | None = None
    registry: str | None = None
    host: str | None = None
    runtime_down: bool = False


# The first match in the lower-cased message, without names and addresses, wins. A cause may appear more than once:
# a TLS handshake timeout is unrelated to certificates, and a digest that "is not found" means a damaged store.
_FRAGMENTS: Fragments[PullFailureCause] = (
    (PullFailureCause.DISK_FULL, ("no space left on device", "disk quota exceeded")),
    (
        PullFailureCause.WRONG_ARCHITECTURE,
        (
            "no match for platform",
            "no matching manifest for",
            "no image found in manifest list for architecture",
            "no image found in image index for architecture",
            "cannot be used on this platform",
            "does not match the specified platform",
        ),
    ),
    (PullFailureCause.RATE_LIMITED, ("too many requests", "toomanyrequests", "rate limit", "pull qps exceeded")),
    (
        PullFailureCause.PLAIN_HTTP,
        ("server gave http response to https client", "first record does not look like a tls handshake"),
    ),
    (PullFailureCause.TIMEOUT, ("tls handshake timeout",)),
    (
        PullFailureCause.TLS,
        ("x509:", "certificate signed by", "certificate has expired", "certificate is not", "tls: ", "ssl error"),
    ),
    (
        PullFailureCause.DNS,
        (
            "no such host",
            "dial tcp: lookup ",
            "name resolution",
            "name or service not known",
            "server misbehaving",
            "no address associated with hostname",
        ),
    ),
    (PullFailureCause.CONNECTION_REFUSED, ("connection refused",)),
    (
        PullFailureCause.TIMEOUT,
        (
            "i/o timeout",
            "client.timeout exceeded",
            "timeout awaiting response headers",
            "request canceled while waiting for connection",
            "connection timed out",
            "operation timed out",
            "no route to host",
            "network is unreachable",
            "host is down",
        ),
    ),
    (
        PullFailureCause.CONNECTION_BROKEN,
        (
            "connection reset by peer",
            "unexpected eof",
            ": eof",
            "broken pipe",
            "stream error",
            "server sent goaway",
            "use of closed network connection",
            "server closed idle connection",
            "http: server closed",
        ),
    ),
    (
        PullFailureCause.TOO_SLOW,
        ("context deadline exceeded", "deadlineexceeded", "context canceled", "no progress in", "operation timeout"),
    ),
    (
        PullFailureCause.REGISTRY_ERROR,
        ("internal server error", "bad gateway", "service unavailable", "gateway time", "400 bad request"),
    ),
    (
        PullFailureCause.UNAUTHORIZED,
        (
            "pull access denied",
            "insufficient_scope",
            "insufficient scope",
            "unauthorized",
            "forbidden",
            "no basic auth credentials",
            "authentication required",
            "access to the resource is denied",
            "authorization failed",
            "error getting credentials",
            "denied:",
            "access denied",
        ),
    ),
    (
        PullFailureCause.DAMAGED_LAYER,
        (
            "failed to register layer",
            "failed to extract layer",
            "content digest",
            "unexpected commit digest",
            "layer verification failed",
            "verification failed for digest",
            "don't match image configuration",
            "archive/tar:",
        ),
    ),
    (
        PullFailureCause.BAD_NAME,
        ("couldn't parse image", "invalid reference format", "invalid image name", "must be lowercase"),
    ),
    (
        PullFailureCause.BAD_NAME,
        ("did not resolve to an alias", "no registries configured", "unqualified-search registries"),
    ),
    (PullFailureCause.NEVER_PULL, ("pull policy of never",)),
    (
        PullFailureCause.NOT_FOUND,
        ("manifest unknown", "name unknown", "not found", "manifest_unknown", "does not exist"),
    ),
)
_BY_REASON = {"InvalidImageName": PullFailureCause.BAD_NAME, "ErrImageNeverPull": PullFailureCause.NEVER_PULL}

_URL_HOST = re.compile(r"https?://(?:[^\s/@\"]*@)?([^\s/\"?]+)")
_LOOKUP = re.compile(r"\blookup ([\w.-]+)")
_DIALED = re.compile(r"\bdial (?:tcp|udp) (\[[0-9a-fA-F:.%]+\]:\d+|[\w.-]+:\d+)")
_IMAGE = re.compile(r"(?:image|reference|manifest for|repository) \\?\"([^\"\\\s]+)\\?\"")
_SERVER_ERROR = re.compile(r"\b(?:status|code|http|returned|response)\b[^.;]{0,20}\b5\d\d\b")
_NAMES = re.compile(r"\"[^\"\s]*[/:.][^\"\s]*\"|https?://[^\s\"]+")


def classify(reason: str | None, message: str | None, image: str | None = None) -> PullFailure:
    """Cause of a failed pull from a waiting reason or an event message; unknown messages yield UNKNOWN."""
    text = message or ""
    match = _IMAGE.search(text)
    name = image or (match.group(1) if match else None)
    runtime_down = "dial unix" in text or "error reading from server: EOF" in text
    names = {candidate for candidate in (image, match.group(1) if match else None) if candidate}
    cause = PullFailureCause.UNKNOWN if runtime_down else _BY_REASON.get(reason or "") or _cause(text, names)
    if cause is PullFailureCause.UNKNOWN and reason == "RegistryUnavailable":
        cause = PullFailureCause.REGISTRY_ERROR
    registry = registry_of(name) if name else None
    return PullFailure(cause, redact(message), name, registry, _host(text) or registry, runtime_down)


def registry_of(image: str) -> str:
    """Registry host of an image name."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else DEFAULT_REGISTRY


def _cause(text: str, names: set[str]) -> PullFailureCause:
    """Match with names removed: an image may be called `timeout`, and a path may contain `503`."""
    bare = _NAMES.sub("", text)
    for name in names:
        bare = bare.replace(name, "")
    bare = bare.lower()
    for cause, fragments in _FRAGMENTS:
        if any(fragment in bare for fragment in fragments):
            return cause
        if cause is PullFailureCause.REGISTRY_ERROR and _SERVER_ERROR.search(bare):
            return cause
    return PullFailureCause.UNKNOWN


def _host(text: str) -> str | None:
    """Host that the message is about: the one looked up, requested or dialed."""
    if "proxyconnect" in text:
        match = _LOOKUP.search(text) or _DIALED.search(text)
    else:
        match = _URL_HOST.search(text) or _LOOKUP.search(text) or _DIALED.search(text)
    return match.group(1) if match else None
