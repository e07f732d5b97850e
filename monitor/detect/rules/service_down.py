"""service-down: a service that the platform needs does not respond or responds wrongly; also the Kubernetes API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from monitor.base.text import shorten
from monitor.detect.base import (
    ANY_CAUSE,
    MAX_RAW_CHARS,
    Delay,
    Latency,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    whole_cluster,
)
from monitor.detect.labels import label_value
from monitor.facts.cluster import SourceView
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.services import ServiceFact
from monitor.facts.text import Text, Value

CAUSES = ("status", "refused", "timeout", "dns", "tls", "read-only", "component")
KUBERNETES = "kubernetes"
# Cause -> phrases in the error of the Kubernetes client; the first match counts.
API_ERROR_PHRASES = (
    ("refused", ("connection refused",)),
    ("dns", ("name or service not known", "name resolution", "nameresolution")),
    ("tls", ("sslerror", "certificate")),
    ("timeout", ("timed out", "timeout", "no route to host", "unreachable")),
    ("status", ("forbidden", "http ", "unauthorized")),
)
# Harbor components that pulling and pushing do not need.
MINOR_COMPONENTS = frozenset({"portal", "jobservice", "trivy", "notary", "chartmuseum", "clair"})


@dataclass(frozen=True)
class Limits:
    """How long a service may fail, and the age at which a probe is stale."""

    after: Seconds = 30.0
    stale_after: Seconds = 300.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Failing services. Their start is remembered across restarts."""
    before: dict[str, float] = memory if isinstance(memory, dict) else {}
    failing: dict[str, float] = {}
    findings, blind = [], []
    for fact in (*context.services, *_kubernetes(context)):
        labels = {"service": label_value(fact.name)}
        limits: Limits = context.limits.of(labels)
        if context.now - fact.at > limits.stale_after:
            blind.append(Scope(labels=labels))
            failing |= {fact.name: before[fact.name]} if fact.name in before else {}
        elif not fact.ok:
            began = fact.failing_since if fact.failing_since is not None else fact.at
            # The clock may have been set back.
            since = failing[fact.name] = min(began, before.get(fact.name, began), context.now)
            if context.now - since >= limits.after:
                findings.append(_finding(fact, labels, since, context.now))
    return RuleResult(findings=tuple(findings), memory=failing, blind=tuple(blind))


def _kubernetes(context: RuleContext) -> Iterator[ServiceFact]:
    """The API server as a service, if its watches fail."""
    view = context.facts.view
    sources: Iterable[SourceView] = view.sources if view else ()
    lost = [source for source in sources if source.name in ("pods", "nodes") and not source.ok]
    if not lost or all((source.why or "").startswith("starting") for source in lost):
        return
    why = shorten("; ".join(dict.fromkeys(source.why or "" for source in lost)), MAX_RAW_CHARS)
    text = why.lower()
    cause = next((cause for cause, phrases in API_ERROR_PHRASES if any(phrase in text for phrase in phrases)), "error")
    since = [source.since for source in lost if source.since is not None]
    yield ServiceFact(
        name=KUBERNETES,
        kind=KUBERNETES,
        target="the API server",
        ok=False,
        at=context.now,
        cause=cause,
        detail=why,
        failing_since=min(since) if since else None,
    )


def _finding(fact: ServiceFact, labels: dict[str, str], since: float, now: float) -> Finding:
    cause = fact.cause if fact.cause in CAUSES else "unknown"
    message = shorten(fact.detail or "", MAX_RAW_CHARS) or ("no message" if cause == "unknown" else "")
    values: dict[str, Value] = {
        "service": fact.name,
        "target": fact.target,
        "seconds": max(0.0, now - since),
        "status": fact.status if fact.status is not None else "?",
        "component": fact.component or "?",
        "message": message or "?",
    }
    minor = cause == "component" and fact.component is not None and set(fact.component.split(", ")) <= MINOR_COMPONENTS
    return Finding(
        rule="service-down",
        severity=Severity.WARNING if minor else Severity.CRITICAL,
        cause=cause,
        labels=labels,
        headline=Text(key=f"service-down.{cause}", values=values),
        evidence=(Text(key="service-down.says", values={"message": message}),)
        if message and cause != "unknown"
        else (),
        advice=(Text(key=_advice(fact, cause), values=values),),
        since=since,
        raw=message or None,
    )


def _advice(fact: ServiceFact, cause: str) -> str:
    return "service-down.kubernetes.advice" if fact.kind == KUBERNETES else f"service-down.{cause}.advice"


RULE = Rule(
    "service-down",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    latency={ANY_CAUSE: Latency("after", Delay.SERVICE_PROBE, resolve_delay=Delay.SERVICE_PROBE)},
)
