# ruff: noqa: E501  # a case is a row of a table
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from monitor.detect.base import Limits, Override
from monitor.detect.engine import Engine, detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules.service_down import CAUSES, RULE
from monitor.detect.rules.service_down import Limits as ServiceLimits
from monitor.facts.findings import Severity
from monitor.facts.services import ServiceFact
from tests.detect.builders_nodes import STANDALONE, names, only, rule_context, service, text, unseen
from tests.detect.running import evaluate
from tests.explain.builders import NOW

CASES: list[tuple[str, ServiceFact, str | None, tuple[str, ...]]] = [
    ("well", service(ok=True, failing_since=None), None, ()),
    ("failing for less than the limit", service(cause="refused", failing_since=NOW - 29), None, ()),
    ("a bad status", service(cause="status", status=502), "status", ("portal has responded with status 502 for 10 min", "https://portal.lab")),
    ("refused", service(cause="refused", detail="Connection refused"), "refused", ("refused connections",)),
    ("too slow", service(cause="timeout"), "timeout", ("not responded in time",)),
    ("no such name", service(cause="dns"), "dns", ("has not resolved",)),
    ("a bad certificate", service(cause="tls", detail="certificate has expired"), "tls", ("certificate has expired", "ca_file")),
    ("a database that takes no writes", service("pg", kind="postgresql", cause="read-only"), "read-only", ("read-only", "pg_is_in_recovery")),
    ("a part of it", service("harbor", cause="component", component="database"), "component", ("has been unhealthy for 10 min",)),
    ("something else", service(cause="error", detail="password authentication failed"), "unknown", ("password authentication failed",)),
    ("it does not say since when", service(cause="refused", failing_since=None, at=NOW - 40), "refused", ("40 s",)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "cause", "says"), CASES, ids=names(CASES))
def test_a_service(name: str, given: ServiceFact, cause: str | None, says: tuple[str, ...]) -> None:
    detected = evaluate(RULE, rule_context(RULE, services=[given]), None)
    if cause is None:
        assert detected.findings == ()
        return
    finding = only(detected)
    assert (finding.cause, finding.labels) == (cause, {"service": given.name})
    assert [part for part in says if part not in text(finding)] == []
    assert given.name in text(finding, "zh")


def test_every_cause_has_a_case() -> None:
    assert {case[2] for case in CASES} - {None, "unknown"} == set(CAUSES)


@pytest.mark.parametrize(
    ("component", "severity"),
    [
        ("database", Severity.CRITICAL),
        ("portal, trivy", Severity.WARNING),
        ("portal, registry", Severity.CRITICAL),
        (None, Severity.CRITICAL),
    ],
)
def test_parts_that_pulling_needs_are_critical(component: str | None, severity: Severity) -> None:
    given = service("harbor", cause="component", component=component)
    assert only(evaluate(RULE, rule_context(RULE, services=[given]), None)).severity is severity


def test_the_limit_is_that_of_the_service() -> None:
    limits = Limits(ServiceLimits(), overrides=(Override({"service": "batch-*"}, ServiceLimits(after=601)),))
    given = [service("batch-db", cause="refused"), service("db", cause="refused")]
    assert only(evaluate(RULE, rule_context(RULE, services=given, limits=limits), None)).labels == {"service": "db"}


def test_a_restart_of_ours_does_not_make_it_well_for_a_while() -> None:
    memory = evaluate(RULE, rule_context(RULE, services=[service(cause="refused")]), None).memory
    fresh = service(cause="refused", failing_since=NOW + 60, at=NOW + 60)
    finding = only(evaluate(RULE, rule_context(RULE, services=[fresh], now=NOW + 60), memory))
    assert finding.since == NOW - 600
    well = evaluate(RULE, rule_context(RULE, services=[service(ok=True, failing_since=None)]), memory)
    assert (well.findings, well.memory) == ((), {})


def test_a_clock_that_was_set_back_makes_nobody_wait_for_its_old_time() -> None:
    ahead = service(cause="refused", failing_since=NOW + 3600, at=NOW + 3600)
    first = evaluate(RULE, rule_context(RULE, services=[ahead]), None)
    later = service(cause="refused", failing_since=NOW + 3600, at=NOW + 30)
    assert only(evaluate(RULE, rule_context(RULE, services=[later], now=NOW + 30), first.memory)).since == NOW


def test_a_probe_that_is_old_says_nothing() -> None:
    history = detect([RULE], {}, rule_context(RULE, services=[service(cause="refused")]), DetectionHistory()).history
    for ok in (True, False):
        old = service(ok=ok, cause=None if ok else "refused", at=NOW)
        found = detect([RULE], {}, rule_context(RULE, services=[old], now=NOW + 301), history).findings
        assert [(each.cause, each.held) for each in found] == [("refused", True)]
    assert detect([RULE], {}, rule_context(RULE, services=[]), history).findings == ()  # no longer configured


API: list[tuple[str, str, str]] = [
    ("refused", "stale; no answer from the API server: NewConnectionError: [Errno 111] Connection refused", "refused"),
    ("timeout", "stale; no answer from the API server: ReadTimeoutError: Read timed out. (read timeout=10)", "timeout"),
    ("dns", "failing; NameResolutionError: Failed to resolve 'api' ([Errno -2] Name or service not known)", "dns"),
    ("tls", "failing; SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "tls"),
    ("status", "stale; list pods: HTTP 503 Service Unavailable: no message", "status"),
    ("forbidden", "forbidden; the role needs the verb list; no pod is seen", "status"),
    ("something else", "failing; the API server sent something odd", "unknown"),
]


@pytest.mark.parametrize(("name", "why", "cause"), API, ids=names(API))
def test_the_kubernetes_api_is_a_service_too(name: str, why: str, cause: str) -> None:
    finding = only(evaluate(RULE, rule_context(RULE, sources=unseen("pods", why)), None))
    assert (finding.cause, finding.labels) == (cause, {"service": "kubernetes"})
    assert "control plane" in text(finding)


@pytest.mark.parametrize(
    "sources",
    [STANDALONE, unseen("pods", "starting", None), unseen("events", "forbidden"), unseen("pods", since=NOW - 29)],
)
def test_kubernetes_is_no_service_that_is_down(sources: Any) -> None:
    assert evaluate(RULE, rule_context(RULE, sources=sources), None).findings == ()


def test_an_api_server_that_was_never_reached_is_noticed_in_time() -> None:
    never = unseen("pods", "failing; Connection refused", None)
    first = evaluate(RULE, rule_context(RULE, sources=never), None)
    assert first.findings == ()
    assert only(evaluate(RULE, rule_context(RULE, sources=never, now=NOW + 30), first.memory)).cause == "refused"


def test_an_api_server_that_answers_again_is_up() -> None:
    engine = Engine([RULE], {})
    down = rule_context(RULE, sources=unseen("pods", "failing; Connection refused"))
    assert [each.labels["service"] for each in engine.evaluate(down)] == ["kubernetes"]
    dns = rule_context(RULE, sources=unseen("pods", "failing; Name or service not known"), now=NOW + 5)
    assert [each.cause for each in engine.evaluate(dns)] == ["dns"]
    assert engine.evaluate(rule_context(RULE, now=NOW + 10)) == ()


def test_limits_that_elapse_count_without_another_probe() -> None:
    engine, given = Engine([RULE], {}), rule_context(RULE, services=[service(cause="dns", failing_since=NOW - 20)])
    assert (engine.evaluate(given), engine.next_at) == ((), NOW + 10)
    assert [each.held for each in engine.evaluate(replace(given, now=NOW + 10))] == [False]
    assert engine.next_at == NOW + 299  # then the probe is stale
    assert [each.held for each in engine.evaluate(replace(given, now=NOW + 299))] == [True]


def test_services_that_are_well_are_not_evaluated_again() -> None:
    engine, well = Engine([RULE], {}), service(ok=True, failing_since=None)
    assert engine.evaluate(rule_context(RULE, services=[well])) == ()
    assert engine.next_at is None
