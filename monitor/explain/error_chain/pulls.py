"""Cause of a failed image pull and the host that failed: registry, token server, mirror or proxy."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monitor.explain.error_chain import pull_phrases as phrases
from monitor.explain.error_chain.causes import PullFailureCause as P
from monitor.explain.error_chain.parse import Chain, Clause, parse, parse_list
from monitor.explain.error_chain.stores import of_store
from monitor.explain.error_chain.trail import Trail, follow
from monitor.explain.error_chain.wording import find, says

_SNAPSHOTTER = re.compile(r"nydus|stargz|soci-|overlaybd|snapshotter|accelerated-container")
_REMOTE_SNAPSHOTTERS = ("nydus", "stargz", "soci-", "overlaybd", "fuse-overlayfs")
_NO_SNAPSHOTTER = re.compile(
    r"snapshotter \S* ?(?:was )?not (?:found|loaded)|snapshotter not loaded|unknown snapshotter"
)
_MIRRORS_FAILED, _END_OF_MIRRORS = "(Mirrors also failed: [", "]): "
# Certificates that the runtime reads before it asks the registry.
_CERTIFICATE_FILE = re.compile(
    r"(?:open|read|stat) /(?:etc|root|home)/\S+\.(?:crt|cert|key|pem): (?:no such file|permission denied)"
)
_CERTIFICATE_NAMES = (".crt: ", ".cert: ", ".key: ", ".pem: ")
_PING_PATHS = ("/v2", "/v2/")
# Links between layers; other paths may belong to the image.
_LAYER_LINKS = ("readlink /var/lib/docker/overlay", "readlink /var/lib/containers/storage/overlay")
_NODE_SOCKET_LOST = (
    "error reading from server", "transport is closing", "cannot connect to the docker daemon",
    "client connection is closing", "is the docker daemon running",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PullAnswer:
    """Cause, the host that failed if it is not the image's registry, and the clause that decides."""

    cause: P
    host: str | None = None
    clause: Clause | None = None


def classify_pull(message: str | None, image: str | None = None) -> PullAnswer:
    """Cause of a failed pull; of several attempts, the last one whose cause is known."""
    if message is not None and _MIRRORS_FAILED in message:
        return _after_mirrors(message, image)
    chains = parse_list(message, image)
    if len(chains) == 1:
        return _decide(chains[0], image)
    answers = [_decide(chain, image) for chain in reversed(chains)]
    known = [answer for answer in answers if answer.cause is not P.UNKNOWN] or answers
    # The kubelet tries each pull secret: where one of them is let in, its answer counts.
    admitted = [answer for answer in known if answer.cause is P.NOT_FOUND]
    return admitted[0] if admitted and all(answer.cause in _OF_SECRETS for answer in known) else known[0]


def _after_mirrors(message: str, image: str | None) -> PullAnswer:
    """CRI-O lists the failures of the mirrors before that of the registry.

    What the registry says of the image counts; a registry that is out of reach or limits pulls is what a mirror is for.
    """
    mirrors, end, rest = message.partition(_MIRRORS_FAILED)[2].partition(_END_OF_MIRRORS)
    own = _decide(parse(rest if end else "", image), image)
    if own.cause not in _FOR_MIRRORS:
        return own
    failed = _decide(parse(mirrors, image), image)
    return PullAnswer(P.MIRROR, failed.host, own.clause) if failed.cause in _FAILED_MIRROR else own


def _decide(chain: Chain, image: str | None) -> PullAnswer:
    trail, words = follow(chain, image), chain.words
    if trail.proxy is not None:
        return PullAnswer(P.PROXY, trail.proxy or None, chain.last)
    cause = find(words, phrases.UNMISTAKABLE)
    if cause is not None and not _is_overruled(trail, cause):
        return PullAnswer(cause, trail.host, chain.last)
    if cause := _of_node(trail, chain, image):
        return PullAnswer(cause, None, chain.last)
    transport = _transport(trail)
    cause = _of_registry(trail, words, transport) or _of_connection(trail, chain, transport) or P.UNKNOWN
    if trail.request is not None and trail.request.mirror and cause not in _NOT_OF_MIRROR:
        cause = P.MIRROR
    return PullAnswer(cause, trail.host, chain.last)


_OF_SECRETS = (P.NOT_FOUND, P.UNAUTHORIZED, P.TOKEN_EXPIRED)
_FOR_MIRRORS = (P.RATE_LIMITED, P.DNS, P.CONNECTION_REFUSED, P.TIMEOUT, P.TOO_SLOW)
_FAILED_MIRROR = (P.MIRROR, P.DNS, P.CONNECTION_REFUSED, P.TIMEOUT, P.TLS, P.PLAIN_HTTP, P.REGISTRY_ERROR)
_NOT_OF_MIRROR = (P.UNKNOWN, P.RATE_LIMITED, P.TOKEN_EXPIRED)


_DOCUMENTS = (P.BAD_IMAGE, P.REGISTRY_ERROR, P.OLD_FORMAT)
_DISCONNECTED = (P.DNS, P.CONNECTION_REFUSED, P.TIMEOUT, P.CONNECTION_BROKEN)


def _is_overruled(trail: Trail, cause: P) -> bool:
    """Whether something else decides: the status of the registry's answer, or that no signature could be fetched."""
    if cause is P.POLICY:
        return _transport(trail) in _DISCONNECTED
    status = trail.status or 0
    return cause in _DOCUMENTS and (status in (401, 403, 404, 415, 429) or status >= 500)


def _of_node(trail: Trail, chain: Chain, image: str | None) -> P | None:
    """What fails on the node: the runtime, the snapshotter that it calls, or the store of images."""
    words = chain.words
    if "snapshotter" in words and _NO_SNAPSHOTTER.search(words):
        return P.SNAPSHOTTER
    if trail.socket is not None:
        return P.SNAPSHOTTER if _SNAPSHOTTER.search(trail.socket) else P.RUNTIME_DOWN
    if trail.request is None and (says(words, _NODE_SOCKET_LOST) or "unknown service runtime" in words):
        return P.RUNTIME_DOWN
    if not trail.store and says(chain.low, _CERTIFICATE_NAMES) and _CERTIFICATE_FILE.search(chain.low):
        return P.TLS
    if says(chain.low, _LAYER_LINKS):
        return P.NODE_STORE
    if trail.store:
        cause = of_store(trail.said)
        if cause is P.CONNECTION_BROKEN:
            return None
        if cause is P.UNKNOWN and chain.last.words == "unavailable" and "snapshot" in words:
            return P.SNAPSHOTTER  # a service of its own: the snapshotters of containerd are always available
        low = chain.low.replace(image, "") if image else chain.low
        return P.SNAPSHOTTER if cause in _OF_SNAPSHOTTER and says(low, _REMOTE_SNAPSHOTTERS) else cause
    return P.DISK_FULL if trail.status is None and "no space left on device" in words else None


# A remote snapshotter reads layers over the network: its I/O errors are not those of a disk.
_OF_SNAPSHOTTER = (P.UNKNOWN, P.NODE_DISK)


def _of_registry(trail: Trail, words: str, transport: P | None) -> P | None:
    """What the registry or its token server answered: by status, then by the words of its error."""
    said = trail.words
    if trail.status == 429 or says(said, phrases.ACCOUNT_LIMIT):
        return P.RATE_LIMITED
    if says(said, phrases.EXPIRED) and "certificate" not in said and "x509" not in said:
        return P.TOKEN_EXPIRED
    if trail.status is not None:
        return _of_status(trail, said)
    if transport is not None:
        return None
    return find(said, phrases.REGISTRY) or (P.RATE_LIMITED if says(words, phrases.RATE_LIMIT) else None)


def _of_status(trail: Trail, said: str) -> P | None:
    status = trail.status or 0
    if status == 404 and _pings(trail, said):
        return P.REGISTRY_ERROR
    if status == 407:
        return P.PROXY
    if status == 412:
        return P.POLICY
    if "error parsing http" in said and status not in (401, 429):
        return P.REGISTRY_ERROR  # a web page: this is not the registry's API
    if status in (401, 402, 403):
        return P.UNAUTHORIZED
    if status == 404:
        return P.REGISTRY_ERROR if trail.is_token else P.NOT_FOUND
    if status >= 500 or (status >= 400 and not trail.is_token):
        return P.REGISTRY_ERROR
    return None


def _pings(trail: Trail, said: str) -> bool:
    """Whether the request asked for the API itself, not for an image."""
    return "pinging" in said or (trail.request is not None and trail.request.path in _PING_PATHS)


def _transport(trail: Trail) -> P | None:
    """How the connection failed. "EOF" is a statement of its own: the letters also occur in names."""
    ended = any(clause.words == "eof" for clause in trail.said)
    return find(trail.words, phrases.TRANSPORT) or (P.CONNECTION_BROKEN if ended else None)


def _of_connection(trail: Trail, chain: Chain, transport: P | None) -> P | None:
    """How the connection failed, else what the resolver says in its last clause."""
    said = trail.words
    if trail.looked_up is not None:
        return P.DNS
    cancelled = says(said, phrases.CANCELLED)
    if transport is not None and not (cancelled and transport is P.CONNECTION_BROKEN):
        return transport
    if cancelled:
        waits = trail.request is not None and not trail.request.is_content and "deadline" in said
        return P.TIMEOUT if waits else P.TOO_SLOW
    if chain.last.words.endswith(("not found", "does not exist")) and _is_about_image(chain):
        return P.NOT_FOUND
    # The authorizer of containerd failed before it asked for a token: the credentials are unusable.
    return P.UNAUTHORIZED if "failed to authorize" in chain.words and "failed to fetch" not in chain.words else None


_ABOUT_IMAGE = (
    "resolve reference", "manifest", "repository", "tag ", "content at", "artifact", "no such image", "from remote",
    "project ",
)  # fmt: skip


_IMAGE_NOT_FOUND = re.compile(r"image \S{1,300} not found$")  # Docker before 2017


def _is_about_image(chain: Chain) -> bool:
    """Whether "not found" is the answer to a request for the image, rather than for something on the node."""
    named = len(chain.clauses) > 1 and chain.clauses[-2].words == "_" and "sha256:" not in chain.clauses[-2].low[:7]
    return named or says(chain.words, _ABOUT_IMAGE) or _IMAGE_NOT_FOUND.match(chain.last.low) is not None
