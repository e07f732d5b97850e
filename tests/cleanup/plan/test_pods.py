"""Pod plans: pods that are deleted or force-deleted, and protections."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.cleanup.model import CleanupPlan, KeptItem, PodWrite
from monitor.cleanup.plan.pods import PodContext, plan_pods
from monitor.cleanup.policy import Caps, Exempt, PodPolicy
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import Identity
from monitor.facts.gpu import GpuProcessFact
from monitor.facts.kube import ConditionFact, ContainerStatusFact, OwnerRef, PodFact
from monitor.facts.node import CollectorFact, NodeSnapshot
from tests.cleanup.builders import DAY, NOW, container, kept, names

JOB = OwnerRef(kind="Job", name="train")
BROKEN = CollectorFact(name="gpu_processes", outcome="failed", interval_seconds=10)
NO_DISK = CollectorFact(name="disk", outcome="absent", interval_seconds=10)
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
    snapshot = NodeSnapshot(node="n1", agent_version="0", **(fields | parts))
    return AgentFact(
        target="n1", node="n1", snapshot=snapshot, received_at=received_at, silent_since=NOW if silent else None
    )


def plan(
    *pods: PodFact, agents: AgentFact | None = None, confirmed: tuple[str, ...] = (), **settings: Any
) -> CleanupPlan:
    fields: dict[str, Any] = {"name": "p", "keep_newest": 0}
    policy = PodPolicy(**(fields | settings))
    identities = {pod.uid: Identity(user="zhang") for pod in pods}
    return plan_pods(pods, PodContext(policy, NOW, {"n1": agents} if agents else {}, identities, frozenset(confirmed)))


def test_a_pod_that_ended_long_ago() -> None:
    found = plan(finished("b", 30), finished("a", 40), finished("c", 1))
    assert (names(found), kept(found)) == (["team/a", "team/b"], {"team/c": "too-young"})
    item = found.items[0]
    assert item.act == PodWrite(namespace="team", name="a", uid="uid-a", how="delete")
    assert (item.owner, item.not_before) == ("zhang", NOW)


SPARED: list[tuple[str, PodFact, dict[str, Any], str]] = [
    ("the system's", finished(namespace="kube-system"), {}, "exempt"),
    ("a DaemonSet's", finished(namespace="monitoring", owner=OwnerRef(kind="DaemonSet", name="d")), {}, "exempt"),
    ("a static pod", finished(namespace="monitoring", annotations={"kubernetes.io/config.mirror": "x"}), {}, "exempt"),
    ("a namespace", finished(), {"exempt": Exempt(namespaces=("te*",))}, "exempt"),
    ("a user", finished(), {"exempt": Exempt(users=("zhang",))}, "exempt"),
    ("a label", finished(labels={"keep": ""}), {"exempt": Exempt(labels=("keep",))}, "exempt"),
    ("a label's value", finished(labels={"tier": "gold"}), {"exempt": Exempt(labels=("tier=g*",))}, "exempt"),
    ("a finalizer", finished(finalizers=("batch.kubernetes.io/job-tracking",)), {}, "finalizer"),
    ("unknown end", finished(statuses=()), {}, "unknown"),
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


def test_an_active_job_keeps_its_finished_pods_a_deployment_does_not() -> None:
    running = PodFact(uid="r", name="r", namespace="team", phase="Running", owner=JOB)
    assert kept(plan(finished(owner=JOB), running)) == {"team/p": "job-active"}
    replicas = OwnerRef(kind="ReplicaSet", name="web-5f")
    replaced = PodFact(uid="r", name="r", namespace="team", phase="Running", owner=replicas)
    assert names(plan(finished(owner=replicas, phase="Failed"), replaced)) == ["team/p"]


def test_a_stuck_pod_without_processes_is_forced() -> None:
    old = container("c", pod_uid="uid-p", state="exited")
    for witness in (agent(), agent(containers=(old,)), agent(gpu_processes=None, collectors=NO_DRIVER)):
        found = plan(stuck(), agents=witness)
        assert [item.act for item in found.items] == [PodWrite(namespace="team", name="p", uid="uid-p", how="force")]
    assert names(plan(stuck(minutes=5), agents=agent())) == []
    assert names(plan(stuck(), agents=agent(), stuck_after=None)) == []


PROOFS: list[tuple[str, AgentFact | None, str]] = [
    ("no agent", None, "agent-silent"),
    ("a silent agent", agent(silent=True), "agent-silent"),
    ("an agent without a snapshot", AgentFact(target="n1", node="n1", received_at=NOW), "agent-silent"),
    ("an old answer", agent(received_at=NOW - 61), "agent-silent"),
    ("an old snapshot", agent(at=NOW - 500), "agent-silent"),
    ("containers not known", agent(containers=None), "unknown"),
    ("processes not known", agent(gpu_processes=None), "unknown"),
    ("processes could not be read", agent(gpu_processes=None, collectors=(BROKEN,)), "unknown"),
    ("something else is absent", agent(gpu_processes=None, collectors=(NO_DISK,)), "unknown"),
    ("a container runs", agent(containers=(container("c", pod_uid="uid-p"),)), "process-left"),
    ("a sandbox", agent(containers=(container("c", pod_uid="uid-p", sandbox=True),)), "process-left"),
    ("a container that hangs", agent(containers=(container("c", pod_uid="uid-p", state="unknown"),)), "process-left"),
    (
        "a process on a GPU",
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


@pytest.mark.parametrize(("age", "goes"), [(DAY - 1, False), (DAY, True)])
def test_a_pod_is_old_enough_to_the_second(age: float, goes: bool) -> None:
    assert bool(names(plan(finished(days=age / DAY), finished_after=DAY))) is goes
    assert bool(names(plan(stuck(minutes=age / 60), agents=agent(), stuck_after=DAY))) is goes


@pytest.mark.parametrize(("age", "goes"), [(60, True), (61, False)])
def test_an_answer_is_fresh_to_the_second(age: float, goes: bool) -> None:
    assert bool(names(plan(stuck(), agents=agent(received_at=NOW - age)))) is goes
    assert bool(names(plan(stuck(), agents=agent(at=NOW - 5 - age)))) is goes


def test_the_newest_are_those_that_ended_last_whatever_they_are_called() -> None:
    runs = [finished(name, days, owner=JOB) for name, days in (("a", 40), ("b", 20), ("c", 30))]
    assert kept(plan(*runs, keep_newest=1)) == {"team/b": "newest"}
    undated = finished("0", owner=JOB, statuses=())
    assert kept(plan(*runs, undated, keep_newest=1)) == {"team/0": "unknown", "team/b": "newest"}


def test_jobs_are_told_apart_also_where_their_owners_have_uids() -> None:
    one, two = (OwnerRef(kind="Job", name=name, uid=f"uid-{name}") for name in ("one", "two"))
    running = PodFact(uid="r", name="r", namespace="team", phase="Running", owner=one)
    found = plan(finished("a", owner=one), finished("b", owner=two), running)
    assert (names(found), kept(found)) == (["team/b"], {"team/a": "job-active"})


def test_stuck_pods_the_oldest_first_and_one_that_is_kept_does_not_stop_the_others() -> None:
    held = stuck("h", 300, finalizers=("lab.io/wait",))
    assert names(plan(stuck("a", 60), stuck("b", 200), held, agents=agent())) == ["team/b", "team/a"]


@pytest.mark.parametrize("confirmed", [(), ("uid-p",)])
def test_who_is_exempt_is_never_forced(confirmed: tuple[str, ...]) -> None:
    found = plan(stuck(), agents=agent(), confirmed=confirmed, exempt=Exempt(users=("zhang",)))
    assert (names(found), kept(found)) == ([], {"team/p": "exempt"})


def test_why_a_pod_goes() -> None:
    (done,) = plan(finished(days=30)).items
    assert (done.why.key, done.why.values) == ("cleanup.why.pod-finished", {"phase": "Succeeded", "seconds": 30 * DAY})
    found = plan(stuck(minutes=60), agents=agent())
    assert found.at == NOW
    (force,) = found.items
    assert (force.why.key, force.why.values) == ("cleanup.why.pod-stuck", {"seconds": 3600.0, "node": "n1"})
    assert [(item.id, item.node) for item in (done, force)] == [("pod/uid-p", "n1")] * 2
    (nowhere,) = plan(stuck(node=None), confirmed=("uid-p",)).items
    assert (nowhere.why.values["node"], nowhere.node) == ("?", None)


def test_a_pod_of_unknown_owner() -> None:
    (item,) = plan_pods((finished(),), PodContext(PodPolicy(name="p", exempt=Exempt(users=("li",))), NOW)).items
    assert item.owner is None


LONG = "0123456789abcdef"
NAMELESS = container("", id=LONG, pod_uid="uid-p")
ON_GPU = GpuProcessFact(gpu_uuid="g", pid=7, kind="compute", pod_uid="uid-p")
RUNNING = PodFact(uid="r", name="r", namespace="team", phase="Running", owner=JOB)
EVIDENCE: list[tuple[PodFact, AgentFact | None, dict[str, Any], str, str | None]] = [
    (finished(namespace="kube-system"), None, {}, "exempt", "kube-system"),
    (finished(namespace="monitoring", owner=OwnerRef(kind="DaemonSet", name="d")), None, {}, "exempt", "DaemonSet"),
    (finished(namespace="monitoring", annotations={"kubernetes.io/config.mirror": "x"}), None, {}, "exempt", "Node"),
    (finished(), None, {"exempt": Exempt(namespaces=("te*",))}, "exempt", "team"),
    (finished(), None, {"exempt": Exempt(users=("zh*",))}, "exempt", "zhang"),
    (finished(labels={"tier": "gold"}), None, {"exempt": Exempt(labels=("tier=g*",))}, "exempt", "tier=g*"),
    (finished(finalizers=("lab.io/wait",)), None, {}, "finalizer", "lab.io/wait"),
    (finished(owner=JOB), None, {}, "job-active", "train"),
    (stuck(), None, {}, "agent-silent", "n1"),
    (stuck(), agent(containers=None), {}, "unknown", "n1"),
    (stuck(), agent(containers=(container("c", pod_uid="uid-p"),)), {}, "process-left", "c"),
    (stuck(), agent(containers=(NAMELESS,)), {}, "process-left", LONG[:12]),
    (stuck(), agent(gpu_processes=(ON_GPU,)), {}, "process-left", "pid 7"),
]


@pytest.mark.parametrize(("pod", "witness", "settings", "protection", "detail"), EVIDENCE)
def test_by_what_a_protection_is_known(
    pod: PodFact, witness: AgentFact | None, settings: dict[str, Any], protection: str, detail: str | None
) -> None:
    (found,) = plan(pod, RUNNING, agents=witness, **settings).kept
    assert found == KeptItem(name=f"{pod.namespace}/p", protection=protection, node="n1", detail=detail)


def test_finished_pods_stay_unless_the_policy_names_their_age() -> None:
    old = finished(days=1000)
    assert names(plan(old, finished_after=DAY)) == ["team/p"]
    unnamed = plan(old, finished_after=None)
    assert (names(unnamed), unnamed.kept) == ([], ())
