"""What the chain of a failed pull says on the way to its end: requests, addresses, statuses, and the node's store."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from monitor.explain.error_chain.hosts import Request, find_request
from monitor.explain.error_chain.parse import Chain, Clause

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


@dataclass(slots=True)
class Trail:
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
    words: str = ""  # the wording of `said`

    def begin(self, request: Request, *, is_token: bool, asked: bool) -> None:
        """A new request; `asked` if the chain does not state its answer in the same clause."""
        self.request, self.is_token, self.asked = request, is_token, asked
        self.looked_up = self.dialed = self.status = None
        self.store = False
        self.said = []

    @property
    def host(self) -> str | None:
        if self.request is not None:
            return self.request.host
        return self.looked_up or self.dialed


def follow(chain: Chain, image: str | None) -> Trail:
    """Read the chain from the outermost to the innermost clause."""
    trail, is_token = Trail(), False
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
    trail.words = ": ".join([clause.words for clause in trail.said])
    return trail


def _note_proxy(trail: Trail, clause: Clause) -> None:
    if ("prox" in clause.low or "socks" in clause.low) and (match := _PROXY.match(clause.low)):
        trail.proxy = match["proxy"] or ""
    elif trail.proxy == "" and (match := _LOOKUP.search(clause.low) or _DIALED.match(clause.low)):
        trail.proxy = match[1]
    elif trail.asked and _CONNECT_ANSWER.fullmatch(clause.text):
        trail.proxy = ""


def _note_status(trail: Trail, low: str) -> None:
    """The status of the registry's answer, as a clause of its own or within a sentence."""
    if low[:1] in ("4", "5") and (match := _PLAIN_STATUS.match(low)):
        trail.status = int(match[0])
    elif ("status" in low or "http" in low or "code" in low) and (match := _STATUS.search(low)):
        trail.status = int(match["named"])


def _note_connection(trail: Trail, low: str) -> None:
    """Addresses of the connection: the name looked up, the address dialed, a socket of the node."""
    if low.startswith(("dial unix", "error while dialing dial unix")) and (match := _UNIX.search(low)):
        trail.socket = match[1]
    elif low.startswith(("lookup ", "dial tcp lookup")) and (match := _LOOKUP.search(low)):
        trail.looked_up = match[1]
    elif low.startswith(("dial ", "read tcp", "read udp", "write tcp", "happened during read")):
        trail.store = False  # CRI-O stores a layer while it reads it
        if trail.looked_up is None and (match := _DIALED.match(low)):
            trail.dialed = match[1]
