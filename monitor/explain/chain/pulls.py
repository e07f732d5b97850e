"""Cause of a failed image pull and the host that failed: registry, token server, mirror or proxy."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from monitor.explain.chain import pull_phrases as phrases
from monitor.explain.chain.causes import PullFailureCause as P
from monitor.explain.chain.hosts import Request, find_request
from monitor.explain.chain.parse import Chain, Clause, parse, parse_list
from monitor.explain.chain.stores import of_store
from monitor.explain.chain.wording import find, says

_PROXY = re.compile(
    r"proxyconnect|socks connect|invalid proxy|proxy\b|(?:http: )?error connecting to proxy (?:https?://)?(?P<proxy>[^\s:/]+:\d+)"
)
# The answer of a proxy to CONNECT: Go prints its reason phrase alone, that of a registry with its number.
_CONNECT_ANSWER = re.compile(
    r"(?:Forbidden|Service Unavailable|Bad Gateway|Gateway Time-?[Oo]ut|Proxy Authentication Required|Bad Request|"
    r"Internal Server Error|Unauthorized|Not Found|Method Not Allowed|Network Error|Access Denied|Blocked)"
)
_LOOKUP = re.compile(r"lookup ([\w.-]+)")
_DIALED = re.compile(r"(?:dial|read|write) (?:tcp|udp)\d? (?:\S+->)?(\[[0-9a-f:.%]+\]:\d+|[\w.-]+:\d+)")
_STATUS = re.compile(r"(?:status(?: code)?(?: from registry)?|code|http(?:/[\d.]+)?) (?P<named>[45]\d\d)\b")
_PLAIN_STATUS = re.compile(r"(?!443)[45]\d\d\b")
_UNIX = re.compile(r"dial unix:? ?(?:/+)?(\S+)")
_SNAPSHOTTER = re.compile(r"nydus|stargz|soci-|overlaybd|snapshotter|accelerated-container")
_REMOTE_SNAPSHOTTERS = ("nydus", "stargz", "soci-", "overlaybd", "fuse-overlayfs")
_NO_SNAPSHOTTER = re.compile(
    r"snapshotter \S* ?(?:was )?not (?:found|loaded)|snapshotter not loaded|unknown snapshotter"
)
# How clauses begin that speak of the node's store: layers, snapshots, and system calls on files.
_STORE = re.compile(
    r"failed to (?:extract layer|register layer|unpack|prepare (?:extraction )?snapshot|create (?:prepare )?snapshot|"
    r"commit snapshot|create content writer|open writer|send write|get reader from content store|mount|write|stat|"
    r"apply|rename|handle|ingest|create temp dir|lease content|initialize|load image|convert whiteout)|"
    r"failed commit on ref|apply layer error|mount callback failed|error (?:processing|creating|committing|unpacking)|"
    r"unable to (?:unpack|prepare|create)|"
    r"(?:adding|committing|applying) (?:layer|blob|the finished)|"  # not storing a blob: that is the download
    r"untar|unpigz|archive/tar|gzip|filesystem layer|layer verification|content digest|blob \S+ expected|"
    r"parent snapshot|snapshot \S+|"
    r"(?:write|mkdir|open|rename|l?chown|chmod|symlink|link|unlinkat|remove|l?stat|mknod|truncate|f?sync|readdirent) /"
    r"(?!etc/)|"  # the runtime's own configuration
    r"lsetxattr|wrong diff id|unexpected commit|store"
)
_MIRRORS_FAILED, _END_OF_MIRRORS = "(Mirrors also failed: [", "]): "
# Certificates that the runtime reads before it asks the registry.
_CERTIFICATE_FILE = re.compile(r"(?:open|read|stat) /\S+\.(?:crt|cert|key|pem): ")
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


@dataclass(slots=True)
class _Trail:
    """What the chain has said so far; a new request starts anew."""

    request: Request | None = None
    is_token: bool = False
    asked: bool = False
    proxy: str | None = None
    looked_up: str | None = None
    dialed: str | None = None
    status: int | None = None
    socket: str | None = None
    store: bool = False
    said: list[Clause] = field(default_factory=list)

    def begin(self, request: Request, *, is_token: bool, asked: bool) -> None:
        """A new request; `asked` if the chain does not state its answer in the same clause."""
        self.request, self.is_token, self.asked = request, is_token, asked
        self.looked_up = self.dialed = self.status = None
        self.store = False
        self.said = []

    @property
    def words(self) -> str:
        return ": ".join(clause.words for clause in self.said)

    @property
    def host(self) -> str | None:
        if self.request is not None:
            return self.request.host
        return self.looked_up or self.dialed


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
    trail, words = _follow(chain, image), chain.words
    if trail.proxy is not None:
        return PullAnswer(P.PROXY, trail.proxy or None, chain.last)
    cause = find(words, phrases.UNMISTAKABLE)
    if cause is not None and not _is_overruled(trail, cause):
        return PullAnswer(cause, trail.host, chain.last)
    if cause := _of_node(trail, chain, image):
        return PullAnswer(cause, None, chain.last)
    cause = _of_registry(trail, words) or _of_connection(trail, chain) or P.UNKNOWN
    if trail.request is not None and trail.request.mirror and cause not in _NOT_OF_MIRROR:
        cause = P.MIRROR
    return PullAnswer(cause, trail.host, chain.last)


_OF_SECRETS = (P.NOT_FOUND, P.UNAUTHORIZED, P.TOKEN_EXPIRED)
_FOR_MIRRORS = (P.RATE_LIMITED, P.DNS, P.CONNECTION_REFUSED, P.TIMEOUT, P.TOO_SLOW)
_FAILED_MIRROR = (P.MIRROR, P.DNS, P.CONNECTION_REFUSED, P.TIMEOUT, P.TLS, P.PLAIN_HTTP, P.REGISTRY_ERROR)
_NOT_OF_MIRROR = (P.UNKNOWN, P.RATE_LIMITED, P.TOKEN_EXPIRED)


_DOCUMENTS = (P.BAD_IMAGE, P.REGISTRY_ERROR, P.OLD_FORMAT)
_DISCONNECTED = (P.DNS, P.CONNECTION_REFUSED, P.TIMEOUT, P.CONNECTION_BROKEN)


def _is_overruled(trail: _Trail, cause: P) -> bool:
    """Whether something else decides: the status of the registry's answer, or that no signature could be fetched."""
    if cause is P.POLICY:
        return _transport(trail) in _DISCONNECTED
    status = trail.status or 0
    return cause in _DOCUMENTS and (status in (401, 403, 404, 415, 429) or status >= 500)


def _follow(chain: Chain, image: str | None) -> _Trail:
    """Read the chain from the outermost to the innermost clause."""
    trail, is_token = _Trail(), False
    for clause in chain.clauses:
        low = clause.low
        is_token = is_token or "token" in clause.words or "failed to authorize" in low
        _note_proxy(trail, clause)
        trail.asked = False
        if trail.request is None:
            trail.is_token = is_token
        names_host = "://" in low or "registry " in low or "from host" in low
        if names_host and (request := find_request(clause.text, image)) is not None:
            trail.begin(request, is_token=is_token, asked="status" not in low)
        _note_connection(trail, low)
        _note_status(trail, low)
        if _STORE.match(low):
            trail.store = True
        trail.said.append(clause)
    return trail


def _note_proxy(trail: _Trail, clause: Clause) -> None:
    if match := _PROXY.match(clause.low):
        trail.proxy = match["proxy"] or ""
    elif trail.proxy == "" and (match := _LOOKUP.search(clause.low) or _DIALED.match(clause.low)):
        trail.proxy = match[1]
    elif trail.asked and _CONNECT_ANSWER.fullmatch(clause.text):
        trail.proxy = ""


def _note_status(trail: _Trail, low: str) -> None:
    """The status of the registry's answer, as a clause of its own or within a sentence."""
    if match := _PLAIN_STATUS.match(low):
        trail.status = int(match[0])
    elif ("status" in low or "http" in low or "code" in low) and (match := _STATUS.search(low)):
        trail.status = int(match["named"])


def _note_connection(trail: _Trail, low: str) -> None:
    """Addresses of the connection: the name looked up, the address dialed, a socket of the node."""
    if low.startswith(("dial unix", "error while dialing dial unix")) and (match := _UNIX.search(low)):
        trail.socket = match[1]
    elif low.startswith(("lookup ", "dial tcp lookup")) and (match := _LOOKUP.search(low)):
        trail.looked_up = match[1]
    elif low.startswith(("dial ", "read tcp", "read udp", "write tcp", "happened during read")):
        trail.store = False  # CRI-O stores a layer while it reads it
        if trail.looked_up is None and (match := _DIALED.match(low)):
            trail.dialed = match[1]


def _of_node(trail: _Trail, chain: Chain, image: str | None) -> P | None:
    """What fails on the node: the runtime, the snapshotter that it calls, or the store of images."""
    words = chain.words
    if _NO_SNAPSHOTTER.search(words):
        return P.SNAPSHOTTER
    if trail.socket is not None:
        return P.SNAPSHOTTER if _SNAPSHOTTER.search(trail.socket) else P.RUNTIME_DOWN
    if trail.request is None and (says(words, _NODE_SOCKET_LOST) or "unknown service runtime" in words):
        return P.RUNTIME_DOWN
    if _CERTIFICATE_FILE.search(chain.low):
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


def _of_registry(trail: _Trail, words: str) -> P | None:
    """What the registry or its token server answered: by status, then by the words of its error."""
    said = trail.words
    if trail.status == 429 or says(said, phrases.ACCOUNT_LIMIT):
        return P.RATE_LIMITED
    if says(said, phrases.EXPIRED) and "certificate" not in said and "x509" not in said:
        return P.TOKEN_EXPIRED
    if trail.status is not None:
        return _of_status(trail, said)
    if _transport(trail) is not None:
        return None
    return find(said, phrases.REGISTRY) or find(words, phrases.RATE_LIMIT)


def _of_status(trail: _Trail, said: str) -> P | None:
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


def _pings(trail: _Trail, said: str) -> bool:
    """Whether the request asked for the API itself, not for an image."""
    return "pinging" in said or (trail.request is not None and trail.request.path in _PING_PATHS)


def _transport(trail: _Trail) -> P | None:
    """How the connection failed. "EOF" is a statement of its own: the letters also occur in names."""
    ended = any(clause.words == "eof" for clause in trail.said)
    return find(trail.words, phrases.TRANSPORT) or (P.CONNECTION_BROKEN if ended else None)


def _of_connection(trail: _Trail, chain: Chain) -> P | None:
    """How the connection failed, else what the resolver says in its last clause."""
    said = trail.words
    if trail.looked_up is not None:
        return P.DNS
    cause = _transport(trail)
    cancelled = says(said, phrases.CANCELLED)
    if cause is not None and not (cancelled and cause is P.CONNECTION_BROKEN):
        return cause
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
