"""Platform services as the daemon's probes see them."""

from __future__ import annotations

from monitor.facts.base import Fact


class ServiceFact(Fact, frozen=True, kw_only=True):
    """One probe of one service. `cause` is status, refused, timeout, dns, tls, read-only, component or error."""

    name: str
    kind: str  # http, tcp, postgresql, harbor, registry
    target: str
    ok: bool
    at: float
    cause: str | None = None
    detail: str | None = None
    component: str | None = None
    status: int | None = None
    latency_seconds: float | None = None
    failing_since: float | None = None
