"""Outages of nodes, agents and platform services."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from monitor.facts import CollectorFact
from monitor.sim import manifests
from monitor.sim.cluster import SimPod
from tests.scorecard.model import EVERYWHERE, Act, Happening, May, Shape, Tell
from tests.scorecard.scene import disk

Wait = Iterator[float | None]
MINUTE = 60.0
CREDIT = 5 * MINUTE
NODE = {"node": "{node}"}


def _down(*, agent_too: bool = True, deleting: bool = False) -> Act:
    """A node's kubelet is silent, usually with the whole node; a user may try to delete one of its pods."""

    def act(it: Happening) -> Wait:
        it.scene.keep_work(it.end, it.node.name)
        doomed: SimPod | None = it.job(1) if deleting else None
        it.scene.renew_node(it.node.name, down_since=it.now)
        it.node.answering = not agent_too
        yield 20.0
        if doomed is not None:
            doomed.stuck = True
            it.scene.cluster.delete_pod(doomed.work.namespace, doomed.work.name, None)
        yield None
        it.node.answering = True
        it.scene.renew_node(it.node.name, ready_since=it.now)

    return act


def _not_ready(message: str) -> Act:
    def act(it: Happening) -> Wait:
        it.scene.renew_node(it.node.name, ready_since=it.now, ready_message=message)
        yield None
        it.scene.renew_node(it.node.name, ready_since=it.now)

    return act


def _flapping(it: Happening) -> Wait:
    """A node goes down and returns twice, then stays."""
    it.scene.keep_work(it.end, it.node.name)
    for _ in range(2):
        it.scene.renew_node(it.node.name, down_since=it.now)
        yield 2 * MINUTE
        it.scene.renew_node(it.node.name, ready_since=it.now)
        yield 3 * MINUTE
    yield None


def _condition(kind: str, reason: str) -> Act:
    def act(it: Happening) -> Wait:
        condition = {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": manifests.rfc3339(it.now)}
        it.scene.renew_node(it.node.name, conditions=(condition,))
        yield None
        it.scene.renew_node(it.node.name)

    return act


def _pressed(it: Happening) -> Wait:
    """The system disk is full, and the kubelet reports it too."""
    one = disk(it.node, "/")
    used, one.used = one.used, one.size * 0.96
    yield 20.0
    yield from _condition("DiskPressure", "KubeletHasDiskPressure")(it)
    one.used = used


def _silent(it: Happening) -> Wait:
    it.node.answering = False
    yield None
    it.node.answering = True


def _all_silent(it: Happening) -> Wait:
    """No agent is reachable: a network partition, or a wrong token."""
    for node in it.scene.nodes:
        node.answering = False
    yield None
    for node in it.scene.nodes:
        node.answering = True


def _collector(name: str, *, hung: bool) -> Act:
    def act(it: Happening) -> Wait:
        fact = CollectorFact(
            name=name, outcome="ok" if hung else "failed", interval_seconds=60.0, succeeded_at=it.now,
            hung_since=it.now if hung else None, message=None if hung else "no answer from the runtime",
        )  # fmt: skip
        it.node.collectors = [fact]
        yield None
        it.node.collectors = []

    return act


def _refused(reason: str) -> Act:
    """An unauthorised client requests an action from an agent."""

    def act(it: Happening) -> Wait:
        for _ in range(3):
            it.node.refused[reason] = it.node.refused.get(reason, 0) + 1
            yield 20.0
        yield None

    return act


def _service(name: str, **failure: Any) -> Act:
    def act(it: Happening) -> Wait:
        it.scene.services[name].failure = failure
        yield None
        it.scene.services[name].failure = None

    return act


def _api_down(it: Happening) -> Wait:
    it.scene.api_up = False
    yield None
    it.scene.api_up = True


def _down_shape(name: str, act: Act, may: tuple[May, ...] = ()) -> Shape:
    return Shape(name, ("N1",), 2 * CREDIT, act, (Tell("node-down", "kubelet-silent", NODE),), may)


def _failing(name: str, service: str, cause: str, **failure: Any) -> Shape:
    return Shape(
        name, ("N2",), CREDIT, _service(service, cause=cause, **failure),
        (Tell("service-down", cause, {"service": service}),), (), ("services",), False,
    )  # fmt: skip


SHAPES = (
    _down_shape("node down", _down(), (May("agent-silent", NODE),)),
    _down_shape("kubelet down, agent answers", _down(agent_too=False)),
    _down_shape(
        "node down with a pod being deleted", _down(deleting=True),
        (May("agent-silent", NODE), May("pod-stuck-terminating", NODE)),
    ),
    Shape("node flapping", ("N1",), 14 * MINUTE, _flapping, (
        Tell("node-down", "flapping", NODE, begins=5 * MINUTE),
    ), (May("node-down", NODE),)),
    Shape("no network on a node", ("N1",), 2 * CREDIT,
          _not_ready("container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"),
          (Tell("node-down", "network", NODE),)),
    Shape("memory pressure", ("N1",), 2 * CREDIT, _condition("MemoryPressure", "KubeletHasInsufficientMemory"),
          (Tell("node-down", "memory-pressure", NODE),)),
    Shape("disk pressure", ("N1",), 2 * CREDIT, _condition("DiskPressure", "KubeletHasDiskPressure"),
          (Tell("node-down", "disk-pressure", NODE),)),
    Shape("disk pressure of a full system disk", ("D1", "N1"), 2 * CREDIT, _pressed,
          (Tell("disk-full", "other", {"node": "{node}", "mount": "/"}),), (May("node-down", NODE),)),
    Shape("agent silent", ("N1",), 2 * CREDIT, _silent, (Tell("agent-silent", "agent-down", NODE),)),
    Shape("all agents silent", ("N1",), 2 * CREDIT, _all_silent,
          (Tell("monitor-blind", "agents", {"service": "monitor/agents"}),), (May("agent-silent"),), (EVERYWHERE,)),
    Shape("collector hangs", ("N1",), 2 * CREDIT, _collector("mounts", hung=True),
          (Tell("agent-silent", "collector-hung", {"node": "{node}", "service": "mounts"}),)),
    Shape("collector fails", ("N1",), 2 * CREDIT, _collector("images", hung=False),
          (Tell("agent-silent", "collector-failing", {"node": "{node}", "service": "images"}),)),
    *(
        Shape(f"action refused: {reason}", (), CREDIT, _refused(reason), (Tell("actions-refused", reason, NODE),))
        for reason in ("signature", "token", "node", "replayed", "expired", "too-many")
    ),
    _failing("portal answers 502", "portal", "status", status=502, detail="502 Bad Gateway"),
    _failing("portal does not answer", "portal", "timeout", detail="timed out"),
    _failing("portal's certificate", "portal", "tls", detail="certificate has expired"),
    _failing("portal's name", "portal", "dns", detail="Name or service not known"),
    _failing("PostgreSQL down", "postgres", "refused", detail="connection refused"),
    _failing("PostgreSQL cannot write", "postgres", "read-only", detail="read-only transaction"),
    _failing("Harbor's database", "harbor", "component", component="database", detail="unhealthy"),
    _failing("license server down", "license", "refused", detail="connection refused"),
    Shape(
        "API server down", ("N2",), CREDIT, _api_down, (Tell("service-down", "refused", {"service": "kubernetes"}),),
        (May("monitor-blind", {"service": "monitor/api-server"}),), (EVERYWHERE,),
    ),
)  # fmt: skip
