"""What can be done about an alert, who may do it, and what a silence can cover."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.access.principal import AuthMethod, Principal, Role
from monitor.alert.matchers import matchers_of, matches
from monitor.alert.model import Phase, alertname
from monitor.detect.meta import META_RULES
from monitor.detect.rules import RULES
from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder, Identity, NodeView, PodView
from monitor.facts.findings import Severity
from monitor.present.alert_actions import CLEANUP_RULES, CORDON_RULES, alert_actions, silence_scopes
from monitor.present.alerts import LocalizedAlert
from monitor.present.rows import ClusterIndex

ADMIN = Principal("root", Role.ADMIN, method=AuthMethod.SESSION)
ZHANG = Principal("zhang", Role.USER, "zhang", method=AuthMethod.SESSION)
LI = Principal("li", Role.USER, "li", method=AuthMethod.SESSION)
VIEWER = Principal("v", Role.VIEWER, method=AuthMethod.SESSION)
HOLDER = Holder(pod="bert-0", namespace="nlp", user="zhang", live=False)
JOB = Identity(user="zhang", job="llama")
VIEW = ClusterView(
    at=1.0,
    nodes=(NodeView(name="gpu01", in_kubernetes=True), NodeView(name="gpu02", in_kubernetes=True, schedulable=False)),
    gpus=(
        GpuView(node="gpu01", state=GpuState.ZOMBIE, index=0, holders=(HOLDER,)),
        GpuView(node="gpu01", state=GpuState.BUSY, index=1, holders=(HOLDER,)),
    ),
    pods=(
        PodView(uid="1", name="llama-0", namespace="nlp", phase="Pending", identity=JOB),
        PodView(uid="2", name="llama-1", namespace="nlp", phase="Pending", identity=JOB),
        PodView(uid="3", name="llama-1", namespace="cv", phase="Pending", identity=Identity(user="li", job="llama")),
    ),
)


def alert(rule: str, phase: Phase = Phase.FIRING, **labels: str) -> LocalizedAlert:
    return LocalizedAlert(
        fingerprint="f", rule=rule, severity=Severity.WARNING, cause="x", phase=phase, labels=labels, headline="h",
        since=1.0,
    )  # fmt: skip


OFFERED: list[tuple[LocalizedAlert, list[tuple[str, tuple[str, ...]]]]] = [
    (alert("gpu-zombie", node="gpu01", gpu="0"), [("release-gpu", ("gpu01/0",))]),
    (alert("gpu-zombie", node="gpu01", gpu="1"), []),
    (alert("gpu-zombie", Phase.RESOLVED, node="gpu01", gpu="0"), []),
    (alert("pod-pending", namespace="nlp", job="llama"), [("delete-pods", ("nlp/llama-0", "nlp/llama-1"))]),
    (alert("shm-pressure", namespace="nlp", pod="llama-1", job="llama"), [("delete-pods", ("nlp/llama-1",))]),
    (alert("shm-pressure", namespace="nlp", pod="gone"), []),
    (alert("node-condition", node="gpu01"), [("cordon", ("gpu01",))]),
    (alert("node-condition", node="gpu02"), []),
    (alert("node-condition", node="elsewhere"), []),
    (alert("gpu-idle", node="gpu01"), []),
    (alert("disk-filling", node="gpu01", mount="/var"), [("cleanup-run", ("node-images",))]),
    (alert("quota-exhausted", queue="vc"), []),
]


@pytest.mark.parametrize(("given", "expect"), OFFERED, ids=[f"{row[0].rule} {row[0].labels}" for row in OFFERED])
def test_the_actions_that_an_alert_allows(given: LocalizedAlert, expect: list[tuple[str, tuple[str, ...]]]) -> None:
    actions = alert_actions(given, ClusterIndex(VIEW), ("node-images",))
    assert [(action.kind, action.targets) for action in actions] == expect


ALLOWED: list[tuple[LocalizedAlert, Principal, bool]] = [
    (alert("gpu-zombie", node="gpu01", gpu="0"), ADMIN, True),
    (alert("gpu-zombie", node="gpu01", gpu="0"), ZHANG, True),
    (alert("gpu-zombie", node="gpu01", gpu="0"), LI, False),
    (alert("gpu-zombie", node="gpu01", gpu="0"), VIEWER, False),
    (alert("pod-pending", namespace="nlp", job="llama"), ZHANG, True),
    (alert("pod-pending", namespace="nlp", job="llama"), LI, False),
    (alert("node-condition", node="gpu01"), ZHANG, False),
    (alert("node-condition", node="gpu01"), ADMIN, True),
    (alert("disk-filling", node="gpu01"), ZHANG, False),
]


@pytest.mark.parametrize(("given", "principal", "expect"), ALLOWED)
def test_who_may_do_it(given: LocalizedAlert, principal: Principal, expect: bool) -> None:
    (action,) = alert_actions(given, ClusterIndex(VIEW), ("node-images",))
    assert action.allowed_to(principal) is expect


def test_the_rules_with_actions_exist() -> None:
    names = {rule.rule for rule in (*RULES, *META_RULES)}
    assert names >= CORDON_RULES | CLEANUP_RULES


MUTED: list[tuple[dict[str, Any], dict[str, bool]]] = [
    ({}, {"alert": True, "rule-on-node": True, "rule": True}),
    ({"queue": "other"}, {"alert": True, "rule-on-node": True, "rule": True}),
    ({"gpu": "1"}, {"alert": False, "rule-on-node": True, "rule": True}),
    ({"node": "gpu02"}, {"alert": False, "rule-on-node": False, "rule": True}),
    ({"alertname": "GpuHot"}, {"alert": False, "rule-on-node": False, "rule": False}),
]


@pytest.mark.parametrize(("change", "expect"), MUTED)
def test_what_a_silence_mutes(change: dict[str, str], expect: dict[str, bool]) -> None:
    labels = {"node": "gpu01", "gpu": "0", "user": "zhang", "job": "a job", "queue": '"vc"'}
    scopes = silence_scopes(replace(alert("gpu-zombie"), labels=labels))
    seen = labels | {"alertname": alertname("gpu-zombie")} | change
    assert {scope.name: matches(matchers_of(scope.matchers), seen) for scope in scopes} == expect


ODD = [" leading", "~tilde", "=equal", '"quoted"', "'", 'back\\slash"', '"\\', "with space"]


@pytest.mark.parametrize("value", ODD)
def test_a_silence_of_an_odd_name_mutes_exactly_that_name(value: str) -> None:
    (scope, *_) = silence_scopes(alert("service-down", service=value))
    name = {"alertname": "ServiceDown"}
    assert matches(matchers_of(scope.matchers), name | {"service": value})
    assert not matches(matchers_of(scope.matchers), name | {"service": f"{value}x"})


def test_a_node_of_its_own_needs_no_scope_of_its_own() -> None:
    assert [scope.name for scope in silence_scopes(alert("node-down", node="gpu01"))] == ["alert", "rule"]
