"""Which pods are deleted or forced, and what keeps the others."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.cleanup.model import Plan, PodWrite
from monitor.cleanup.plan_pods import Grounds, plan_pods
from monitor.cleanup.policy import Caps, Exempt, PodPolicy
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Identity
from monitor.facts.gpu import GpuProcessFact
from monitor.facts.kube import ConditionFact, ContainerStatusFact, OwnerRef, PodFact
from monitor.facts.node import CollectorFact, NodeSnapshot
from tests.cleanup.builders import DAY, NOW, container, kept, names

JOB = OwnerRef(kind="Job", name="train")
NO_DRIVER = (CollectorFact(name="gpu_processes", outcome="absent", interval_seconds=10),)


def finished(name: str = "p", days: float = 30, **more: Any) -> PodFact:
    ended = ContainerStatusFact(name="c", state="terminated", finished_at=NOW - days * DAY)
    fields: dict[str, Any] = {"namespace": "team", "node": "n1", "phase": "Succeeded", "statuses": (ended,)}
    return PodFact(uid=f"uid-{name}", name=name, **(fields | more))


def stuck(name: str = "p", minutes: float = 60, **more: Any) -> PodFact:
    fields: dict[str, Any] = {"namespace": "team", "node": "n1", "phase": "Running"}
    return PodFact(uid=f"uid-{name}", name=name, deletion_at=NOW - minutes * 60, **(fields | more))


def agent(received_at: float = NOW - 5, silent: bool = False, **parts: Any) -> AgentFact:
    fields: dict[str, Any] = {"at": received_at, "containers": (), "gpu_processes": ()}
    said = NodeSnapshot(node="n1", agent_version="0", **(fields | parts))
    return AgentFact(
        target="n1", node="n1", snapshot=said, received_at=received_at, silent_since=NOW if silent else None
    )


def plan(*pods: PodFact, agents: AgentFact | None = None, confirmed: tuple[str, ...] = (), **settings: Any) -> Plan:
    fields: dict[str, Any] = {"name": "p", "keep_newest": 0}
    policy = PodPolicy(**(fields | settings))
    who = {pod.uid: Identity(user="zhang") for pod in pods}
    return plan_pods(pods, Grounds(policy, NOW, {"n1": agents} if agents else {}, who, frozenset(confirmed)))


def test_a_pod_that_ended_long_ago() -> None:
    found = plan(finished("b", 30), finished("a", 40), finished("c", 1))
    assert (names(found), kept(found)) == (["team/a", "team/b"], {"team/c": "too-young"})
    item = found.items[0]
    assert item.act == PodWrite(namespace="team", name="a", uid="uid-a", how="delete")
    assert (item.owner, item.not_before) == ("zhang", NOW)


SPARED: list[tuple[str, PodFact, dict[str, Any], str]] = [
    ("the system's", finished(namespace="kube-system"), {}, "exempt"),
    ("a DaemonSet's", finished(owner=OwnerRef(kind="DaemonSet", name="d")), {}, "exempt"),
    ("a static pod", finished(annotations={"kubernetes.io/config.mirror": "x"}), {}, "exempt"),
    ("a namespace", finished(), {"exempt": Exempt(namespaces=("te*",))}, "exempt"),
    ("a user", finished(), {"exempt": Exempt(users=("zhang",))}, "exempt"),
    ("a label", finished(labels={"keep": ""}), {"exempt": Exempt(labels=("keep",))}, "exempt"),
    ("a label's value", finished(labels={"tier": "gold"}), {"exempt": Exempt(labels=("tier=g*",))}, "exempt"),
    ("a finalizer", finished(finalizers=("batch.kubernetes.io/job-tracking",)), {}, "finalizer"),
    ("nobody knows when it ended", finished(statuses=()), {}, "unknown"),
    ("its conditions changed lately", finished(conditions=(ConditionFact(type="Ready", since=NOW),)), {}, "too-young"),
    ("the last of its job", finished(owner=JOB), {"keep_newest": 1}, "newest"),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "settings", "protection"), [row[1:] for row in SPARED], ids=[row[0] for row in SPARED])
def test_what_keeps_a_finished_pod(pod: PodFact, settings: dict[str, Any], protection: str) -> None:
    found = plan(pod, **settings)
    assert (names(found), list(kept(found).values())) == ([], [protection])


def test_another_label_does_not() -> None:
    exempt = Exempt(namespaces=("kube-*",), labels=("tier=g*", "keep"), users=("li",))
    assert names(plan(finished(labels={"tier": "silver"}), exempt=exempt)) == ["team/p"]


def test_the_newest_few_of_each_job_stay() -> None:
    runs = [finished(f"r{n}", 30 + n, owner=OwnerRef(kind="Job", name=f"nightly-2938060{n}")) for n in range(4)]
    alone = finished("alone", 50)
    found = plan(*runs, alone, keep_newest=2)
    assert names(found) == ["team/alone", "team/r3", "team/r2"]  # the runs of one CronJob are one job
    assert kept(found) == {"team/r0": "newest", "team/r1": "newest"}


def test_a_job_that_goes_on_needs_its_books_a_deployment_does_not() -> None:
    running = PodFact(uid="r", name="r", namespace="team", phase="Running", owner=JOB)
    assert kept(plan(finished(owner=JOB), running)) == {"team/p": "job-active"}
    replicas = OwnerRef(kind="ReplicaSet", name="web-5f")
    replaced = PodFact(uid="r", name="r", namespace="team", phase="Running", owner=replicas)
    assert names(plan(finished(owner=replicas, phase="Failed"), replaced)) == ["team/p"]


def test_a_stuck_pod_of_which_nothing_is_left_is_forced() -> None:
    old = container("c", pod_uid="uid-p", state="exited")
    for witness in (agent(), agent(containers=(old,)), agent(gpu_processes=None, collectors=NO_DRIVER)):
        found = plan(stuck(), agents=witness)
        assert [item.act for item in found.items] == [PodWrite(namespace="team", name="p", uid="uid-p", how="force")]
    assert names(plan(stuck(minutes=5), agents=agent())) == []
    assert names(plan(stuck(), agents=agent(), stuck_after=None)) == []


PROOFS: list[tuple[str, AgentFact | None, str]] = [
    ("no agent", None, "agent-silent"),
    ("a silent agent", agent(silent=True), "agent-silent"),
    ("an old word", agent(received_at=NOW - 61), "agent-silent"),
    ("an old snapshot", agent(at=NOW - 500), "agent-silent"),
    ("containers not known", agent(containers=None), "unknown"),
    ("processes not known", agent(gpu_processes=None), "unknown"),
    ("a container runs", agent(containers=(container("c", pod_uid="uid-p"),)), "process-left"),
    ("a sandbox", agent(containers=(container("c", pod_uid="uid-p", sandbox=True),)), "process-left"),
    ("a container that hangs", agent(containers=(container("c", pod_uid="uid-p", state="unknown"),)), "process-left"),
    (
        "a process on a card",
        agent(gpu_processes=(GpuProcessFact(gpu_uuid="g", pid=7, kind="compute", pod_uid="uid-p"),)),
        "process-left",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("witness", "protection"), [row[1:] for row in PROOFS], ids=[row[0] for row in PROOFS])
def test_what_is_not_proven_is_not_forced_unless_an_admin_says_so(witness: AgentFact | None, protection: str) -> None:
    found = plan(stuck(), agents=witness)
    assert (names(found), kept(found)) == ([], {"team/p": protection})
    assert [item.why.key for item in plan(stuck(), agents=witness, confirmed=("uid-p",)).items] == [
        "cleanup.why.pod-confirmed"
    ]


@pytest.mark.parametrize("confirmed", [(), ("uid-p",)])
def test_a_finalizer_is_reported_and_never_forced(confirmed: tuple[str, ...]) -> None:
    found = plan(stuck(finalizers=("lab.io/wait",)), agents=agent(), confirmed=confirmed)
    assert (names(found), found.kept[0].protection, found.kept[0].detail) == ([], "finalizer", "lab.io/wait")


def test_others_of_the_node_prove_nothing_about_it() -> None:
    other = agent(containers=(container("c", pod_uid="uid-q"),))
    assert names(plan(stuck(), agents=other)) == ["team/p"]


def test_the_cap() -> None:
    found = plan(*(finished(f"p{n}", 30 + n) for n in range(5)), caps=Caps(items=2))
    assert (names(found), found.capped_by) == (["team/p4", "team/p3"], "items")
