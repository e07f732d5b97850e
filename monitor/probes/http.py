"""Probes of HTTP services: any page, Harbor with its components, a registry.

Probes use no proxy and send no credentials, follow redirects only on the same host, and read only the beginning of a
body.
"""

from __future__ import annotations

import time
from urllib.parse import urljoin, urlsplit

import msgspec

from monitor.base.bounded_json import decode_bounded
from monitor.base.endpoint import Endpoint
from monitor.base.http import Reply, exchange
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.base.text import shorten
from monitor.facts.base import BoundedText
from monitor.probes.runner import ProbeError, ServiceTarget
from monitor.probes.tcp import network_error

MAX_BODY = 256 * 1024
MAX_REDIRECTS = 5
MAX_FIRST_WORDS_CHARS = 200
REGISTRY_ANSWERS = (200, 401)  # one that wants a login is one that answers
FIRST_ERROR_STATUS_CODE = 400
REDIRECTS = (301, 302, 303, 307, 308)


class _Component(msgspec.Struct):
    name: BoundedText = "?"
    status: BoundedText = "?"
    error: BoundedText = ""


class _Health(msgspec.Struct):
    """Response of Harbor's health endpoint."""

    status: BoundedText = "?"
    components: list[_Component] = msgspec.field(default_factory=list)


_health = msgspec.json.Decoder(_Health)


def probe(target: ServiceTarget) -> None:
    """Probe a service. Raise ProbeError if it does not answer as it should."""
    if target.kind == "registry":
        _ask(target, target.url.rstrip("/") + "/v2/", REGISTRY_ANSWERS)
    elif target.kind == "harbor":
        _read_health(_ask(target, target.url.rstrip("/") + "/api/v2.0/health", target.status))
    else:
        body = _ask(target, target.url, target.status)
        if target.contains is not None and target.contains not in body.decode("utf-8", "replace"):
            raise ProbeError("status", f"the page does not contain {target.contains!r}", status=200)


def _read_health(body: bytes) -> None:
    try:
        health = decode_bounded(_health, body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise ProbeError("error", "this is not Harbor's /api/v2.0/health") from None
    ill = [component for component in health.components if component.status != "healthy"]
    if ill:
        said = "; ".join(f"{each.name}: {each.error or each.status}" for each in ill)
        raise ProbeError("component", said, component=", ".join(sorted(each.name for each in ill)))
    if health.status != "healthy":
        raise ProbeError("component", f"status {health.status}")


def _ask(target: ServiceTarget, url: str, wanted: tuple[int, ...]) -> bytes:
    """Beginning of the body. Raise ProbeError if the service cannot be reached or its status is not a wanted one."""
    try:
        reply = _follow(target, url, wanted, time.monotonic() + target.limit)
    except OSError as error:  # what requests raises is one, and so is a CA file that is missing
        raise network_error(error) from error
    if not (reply.status in wanted if wanted else reply.status < FIRST_ERROR_STATUS_CODE):
        detail = f"{reply.status} {reply.reason}: {_first_words(reply.body)}".rstrip(": ")
        raise ProbeError("status", detail, status=reply.status)
    return reply.body


def _follow(target: ServiceTarget, url: str, wanted: tuple[int, ...], deadline: float) -> Reply:
    """Reply of a page, or of the page on the same host that it redirects to."""
    for _ in range(MAX_REDIRECTS):
        left = max(0.1, deadline - time.monotonic())
        endpoint = Endpoint(url, timeout=left, ca_file=target.ca_file, verify_tls=target.verify_tls)
        reply = exchange("GET", endpoint, max_bytes=MAX_BODY, direct=True)
        location = reply.header("location")
        onward = urljoin(url, location or "")
        redirected = location is not None and reply.status in REDIRECTS
        if reply.status in wanted or not redirected or urlsplit(onward).hostname != urlsplit(url).hostname:
            return reply
        url = onward
    raise ProbeError("error", f"more than {MAX_REDIRECTS} redirects")


def _first_words(body: bytes) -> str:
    """First words of an error page, unless it is HTML."""
    text = " ".join(body[: 2 * MAX_FIRST_WORDS_CHARS].decode("utf-8", "replace").split())
    return "" if text.startswith("<") else shorten(text, MAX_FIRST_WORDS_CHARS)


warm_up_msgspec(__name__)
