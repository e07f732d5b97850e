"""service-down: a service that the platform needs does not respond or responds wrongly; also the Kubernetes API."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from monitor.detect.base import (
    NOTHING,
    UNKNOWN,
    Delay,
    Latency,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    lasting,
)
from monitor.detect.findings import make_finding, shorten_raw
from monitor.detect.labels import label_value
from monitor.detect.lib.api_server import KUBERNETES
from monitor.facts.findings import Finding, Severity
from monitor.facts.services import ServiceFact
from monitor.facts.text import Text, Value

CAUSES = ("status", "refused", "timeout", "dns", "tls", "read-only", "component")
# Harbor components that pulling and pushing do not need.
MINOR_COMPONENTS = frozenset({"portal", "jobservice", "trivy", "notary", "chartmuseum", "clair"})


@dataclass(frozen=True)
class Limits:
    """How long a service may fail, and the age at which a probe is stale."""

    after: Seconds = 30.0
    stale_after: Seconds = 300.0


def evaluate(fact: ServiceFact, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """A failing service. Its start is remembered across restarts."""
    limits: Limits = context.limits.of({"service": label_value(fact.name)})
    stale_at = fact.at + limits.stale_after
    if now >= stale_at:
        return UNKNOWN
    if fact.ok:
        return NOTHING
    began = fact.failing_since if fact.failing_since is not None else fact.at
    result = lasting("failing", limits.after, memory, now, lambda since: _finding(fact, since), known=began)
    return replace(result, next_at=min(result.next_at or stale_at, stale_at))


def _finding(fact: ServiceFact, since: float) -> Finding:
    cause = fact.cause if fact.cause in CAUSES else "unknown"
    message = shorten_raw(fact.detail) or ("no message" if cause == "unknown" else "")
    status: Value = fact.status if fact.status is not None else "?"
    values: dict[str, Value] = {"service": fact.name, "target": fact.target, "status": status}
    values |= {"component": fact.component or "?", "message": message or "?"}
    says = (Text("service-down.says", {"message": message}),) if message and cause != "unknown" else ()
    advice = KUBERNETES if fact.kind == KUBERNETES else cause
    minor = cause == "component" and fact.component is not None and set(fact.component.split(", ")) <= MINOR_COMPONENTS
    return make_finding(
        "service-down", cause, {"service": label_value(fact.name)}, values,
        severity=Severity.WARNING if minor else Severity.CRITICAL, evidence=says,
        advice_key=f"service-down.{advice}.advice", since=since, raw=message or None,
    )  # fmt: skip


RULE = Rule(
    "service-down", Limits, CAUSES, evaluate, SubjectKind.SERVICE,
    latency=Latency("after", Delay.SERVICE_PROBE, resolve_delay=Delay.SERVICE_PROBE),
)  # fmt: skip
