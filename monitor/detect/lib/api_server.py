"""The Kubernetes API server as a service: it is down if the daemon's watches fail."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.base.text import shorten
from monitor.detect.base import MAX_RAW_CHARS
from monitor.facts.cluster import SourceView
from monitor.facts.services import ServiceFact

KUBERNETES = "kubernetes"
_WATCHED = ("pods", "nodes")
# Cause -> phrases in the error of the Kubernetes client; the first match counts.
_ERROR_PHRASES = (
    ("refused", ("connection refused",)),
    ("dns", ("name or service not known", "name resolution", "nameresolution")),
    ("tls", ("sslerror", "certificate")),
    ("timeout", ("timed out", "timeout", "no route to host", "unreachable")),
    ("status", ("forbidden", "http ", "unauthorized")),
)


def api_server(sources: Iterable[SourceView], now: float) -> ServiceFact | None:
    """The API server while its watches fail; None while they work or start."""
    lost = [source for source in sources if source.name in _WATCHED and not source.ok]
    if all((source.why or "").startswith("starting") for source in lost):
        return None
    why = shorten("; ".join(dict.fromkeys(source.why or "" for source in lost)), MAX_RAW_CHARS)
    text = why.lower()
    return ServiceFact(
        name=KUBERNETES,
        kind=KUBERNETES,
        target="the API server",
        ok=False,
        at=now,
        cause=next((cause for cause, phrases in _ERROR_PHRASES if any(p in text for p in phrases)), "error"),
        detail=why,
        failing_since=min((source.since for source in lost if source.since is not None), default=None),
    )
