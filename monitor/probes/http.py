"""Services that speak HTTP: any page, Harbor with its components, a registry. The only probe that uses `requests`.

No proxy is asked, no credentials are sent, redirects are followed only on the same host, and of a body only the
beginning is read.
"""

from __future__ import annotations

import time
import warnings
from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec
import requests

from monitor.base.msgspec_types import know_types
from monitor.probes.runner import ProbeError, ServiceTarget
from monitor.probes.tcp import network_error

MAX_BODY = 256 * 1024
MAX_REDIRECTS = 5
REGISTRY_ANSWERS = (200, 401)  # one that wants a login is one that answers
FIRST_ERROR_STATUS_CODE = 400
ONE_PAGE: dict[str, Any] = {"allow_redirects": False, "stream": True}


class _Component(msgspec.Struct):
    name: str = "?"
    status: str = "?"
    error: str = ""


class _Health(msgspec.Struct):
    """Harbor's word on itself."""

    status: str = "?"
    components: list[_Component] = msgspec.field(default_factory=list)


def probe(target: ServiceTarget) -> None:
    """Given a service, return if it answers as it should. Raise ProbeError."""
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
        health = msgspec.json.decode(body, type=_Health)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise ProbeError("error", "this is not Harbor's /api/v2.0/health") from None
    ill = [component for component in health.components if component.status != "healthy"]
    if ill:
        said = "; ".join(f"{each.name}: {each.error or each.status}" for each in ill)
        raise ProbeError("component", said, component=", ".join(sorted(each.name for each in ill)))
    if health.status != "healthy":
        raise ProbeError("component", f"status {health.status}")


def _ask(target: ServiceTarget, url: str, wanted: tuple[int, ...]) -> bytes:
    """Return the beginning of the body. Raise ProbeError if there is none, or the status is not a wanted one."""
    try:
        status, reason, body = _follow(target, url, wanted, time.monotonic() + target.limit)
    except OSError as error:  # what requests raises is one, and so is a CA file that is missing
        raise network_error(error) from error
    if not (status in wanted if wanted else status < FIRST_ERROR_STATUS_CODE):
        raise ProbeError("status", f"{status} {reason}: {_first_words(body)}".rstrip(": "), status=status)
    return body


def _follow(target: ServiceTarget, url: str, wanted: tuple[int, ...], deadline: float) -> tuple[int, str, bytes]:
    """Return status, reason and the beginning of the body of a page, or of the one on the same host it points to."""
    for _ in range(MAX_REDIRECTS):
        left = max(0.1, deadline - time.monotonic())
        # A session a request: a connection that is kept may be closed by the other side just when it is used again.
        with _session(target) as session, session.get(url, timeout=left, **ONE_PAGE) as response:
            onward = urljoin(url, response.headers.get("Location", ""))
            onward_here = response.is_redirect and urlsplit(onward).hostname == urlsplit(url).hostname
            if response.status_code in wanted or not onward_here:
                return response.status_code, response.reason or "", _beginning(response, deadline)
        url = onward
    raise ProbeError("error", f"more than {MAX_REDIRECTS} redirects")


def _session(target: ServiceTarget) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.verify = (target.ca_file or True) if target.verify_tls else False
    session.headers.update({"User-Agent": "gpuwarden", "Connection": "close"})
    if not target.verify_tls:  # whoever has switched it off knows that it is off
        warnings.filterwarnings("ignore", message="Unverified HTTPS request")
    return session


def _beginning(response: Any, deadline: float) -> bytes:
    """Return the first part of a body. Raise ProbeError if it does not come in time."""
    body = b""
    for part in response.iter_content(4096):
        body += part
        if len(body) >= MAX_BODY:
            break
        if time.monotonic() > deadline:
            raise ProbeError("timeout", "the page does not come to an end in time")
    return body


def _first_words(body: bytes) -> str:
    """Return what a page of an error begins with, if it is text for people and not HTML."""
    text = " ".join(body[:400].decode("utf-8", "replace").split())
    return "" if text.startswith("<") else text[:200]


know_types(__name__)
