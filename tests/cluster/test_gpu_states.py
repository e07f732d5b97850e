"""Every state of a GPU: inputs that lead to it, and similar inputs that do not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from monitor.cluster.gpu_state import StateLimits
from monitor.cluster.node_join import GpuMemory
from monitor.cluster.view import ViewBuilder, ViewMemory
from monitor.cluster.view_inputs import ClusterContext, ViewInputs
from monitor.facts import CollectorFact, EccFact, MigFact, RowRemapFact, XidEvent, XidFacts
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, GpuView, Identity
from monitor.facts.kube import PodFact
from tests.cluster.builders import GIB, NOW, agent, card, device, node, pod, process, uuid

LIVE = pod("bert")
DONE = pod("done", phase="Succeeded")
LEAVING = pod("leaving", deletion_at=NOW - 600)
LEAVING_NOW = pod("leaving-now", deletion_at=NOW + 20)
GONE = pod("gone")  # in no list of pods
LONG_MISSING = ViewMemory(missing={GONE.uid: NOW - 300, "team/gone": NOW - 300})
IDLE_LONG = ViewMemory(cards={f"n1/{uuid(0)}": GpuMemory(GpuState.BUSY, NOW - 8000, NOW - 4000)})
XID_79 = XidEvent(at=NOW - 60, code=79, source="kernel", gpu_uuid=uuid(0))


@dataclass(frozen=True)
class Case:
    name: str
    expect: str
    agent: AgentFact | None
    pods: tuple[PodFact, ...] = (LIVE, DONE, LEAVING, LEAVING_NOW)
    memory: ViewMemory = field(default_factory=ViewMemory)
    because: str | None = None
    pods_known: bool = True


def of(owner: PodFact, **fields: Any) -> Any:
    """Process of a pod."""
    return process(pod_uid=owner.uid, container_id="c" * 64, **fields)


CASES = (
    Case("not held", "free", agent(card())),
    Case("given to a live pod", "busy", agent(card(), devices=(device(LIVE),)), because="held"),
    Case("a live pod's process, no allocation known", "busy", agent(card(), processes=(of(LIVE),))),
    Case("the agent never answered", "unknown",
         AgentFact(target="n1:9835", node="n1", error="refused"), because="agent-silent"),
    Case("the agent is silent", "unknown", agent(card(), received_at=NOW - 90), because="agent-silent"),
    Case("the agent is late but not silent", "free", agent(card(), received_at=NOW - 50)),
    Case("no agent at all", "unknown", None, because="no-agent"),
    Case("lost", "faulty", agent(card(lost=True, error="GPU is lost")), because="gpu-lost"),
    Case("off the bus a minute ago", "faulty", agent(card(), xid=XidFacts(recent=(XID_79,))), because="xid"),
    Case("an XID of an application is not a fault of the GPU", "free",
         agent(card(), xid=XidFacts(recent=(XidEvent(at=NOW - 60, code=31, source="nvml", gpu_uuid=uuid(0)),)))),
    Case("an XID of another GPU", "free",
         agent(card(), xid=XidFacts(recent=(XidEvent(at=NOW - 60, code=79, source="nvml", gpu_uuid=uuid(1)),)))),
    Case("an XID of yesterday, and the GPU answers", "free",
         agent(card(), xid=XidFacts(recent=(XidEvent(at=NOW - 86400, code=79, source="nvml", gpu_uuid=uuid(0)),)))),
    Case("uncorrected ECC since the driver started", "faulty",
         agent(card(ecc=EccFact(volatile_uncorrected_dram=1))), because="ecc-uncorrected"),
    Case("uncorrected ECC before the driver started", "free", agent(card(ecc=EccFact(aggregate_uncorrected_dram=9)))),
    Case("corrected ECC", "free", agent(card(ecc=EccFact(volatile_corrected_dram=999)))),
    Case("a remap failed", "faulty",
         agent(card(row_remaps=RowRemapFact(corrected=0, uncorrected=1, pending=False, failed=True)))),
    Case("in D for long", "wedged", agent(card(), processes=(of(LIVE, state="D"),)), because="process-state"),
    Case("in D for a moment", "busy", agent(card(), processes=(of(LIVE, state="D", state_since=NOW - 5),))),
    Case("listed by the driver, not in /proc", "wedged", agent(card(), processes=(process(state="gone"),))),
    Case("ended between two readings", "free",
         agent(card(), processes=(process(state="gone", state_since=NOW - 2),))),
    Case("a finished pod's process", "zombie", agent(card(), processes=(of(DONE),)), because="pod-finished"),
    Case("a finished pod that is only allocated", "free", agent(card(), devices=(device(DONE),))),
    Case("a deleted pod's process", "zombie",
         agent(card(), processes=(of(GONE),)), memory=LONG_MISSING, because="pod-deleted"),
    Case("deleted a moment ago: the report may be older", "busy", agent(card(), processes=(of(GONE),))),
    Case("Kubernetes is out of reach: no pod counts as deleted", "busy",
         agent(card(), processes=(of(GONE),)), memory=LONG_MISSING, pods_known=False),
    Case("overdue in terminating", "zombie", agent(card(), processes=(of(LEAVING),)), because="pod-terminating"),
    Case("terminating within its grace period", "busy", agent(card(), processes=(of(LEAVING_NOW),))),
    Case("a host process", "orphan", agent(card(), processes=(process(),)), because="host-process"),
    Case("a container outside Kubernetes", "orphan",
         agent(card(), processes=(process(container_id="d" * 64),)), because="other-container"),
    Case("a host process beside a live pod", "orphan",
         agent(card(), processes=(process(pid=7), of(LIVE)), devices=(device(LIVE),)), because="host-process"),
    Case("a display server", "free", agent(card(), processes=(process(kind="graphics", name="Xorg"),))),
    Case("memory and no process", "ghost", agent(card(memory_used_bytes=20 * GIB)), because="memory-without-process"),
    Case("latched at 100 %", "ghost", agent(card(utilization_ratio=1.0)), because="utilization-without-process"),
    Case("memory reserved by the driver", "free", agent(card(memory_used_bytes=600 * 1024**2))),
    Case("memory, and processes cannot be listed", "free", agent(card(memory_used_bytes=9 * GIB), processes=None)),
    Case("memory, and the processes of one GPU are unknown", "free",
         agent(card(memory_used_bytes=9 * GIB), collectors=(CollectorFact(
             name="gpu_processes", outcome="ok", interval_seconds=5, message="not told by cards 0"),))),
    Case("held and idle for an hour", "idle-held",
         agent(card(), devices=(device(LIVE),)), memory=IDLE_LONG, because="idle"),
    Case("a burst between two readings", "busy",
         agent(card(utilization_peak_ratio=0.4), devices=(device(LIVE),)), memory=IDLE_LONG),
    Case("memory traffic only", "busy",
         agent(card(memory_activity_ratio=0.1), devices=(device(LIVE),)), memory=IDLE_LONG),
    Case("the pod is younger than the idleness", "busy",
         agent(card(), devices=(device(LIVE),)), pods=(pod("bert", started_at=NOW - 60),), memory=IDLE_LONG),
    Case("unknown utilisation is not idle", "busy",
         agent(card(utilization_ratio=None), devices=(device(LIVE),)), memory=IDLE_LONG),
    Case("allocated to a pod that does not exist", "phantom",
         agent(card(), devices=(device(GONE),)), memory=LONG_MISSING, because="stale-allocation"),
    Case("the same, known by name only", "phantom",
         agent(card(), devices=(device(GONE, pod_uid=None),)), memory=LONG_MISSING),
    Case("allocated to a missing and to a live pod (time slicing)", "busy",
         agent(card(), devices=(device(GONE), device(LIVE))), memory=LONG_MISSING),
    Case("a MIG instance of it is allocated", "busy",
         agent(card(mig=(MigFact(uuid="MIG-1", gpu_instance=1, compute_instance=0),)),
               devices=(device(LIVE, gpu_uuid="MIG-1"),))),
    Case("the driver hangs", "unknown",
         agent(gpu=None, collectors=(CollectorFact(name="gpu", outcome="ok", interval_seconds=5, hung_since=NOW - 9),)),
         because="driver-hung"),
    Case("the driver answers with an error", "unknown",
         agent(gpu=None, collectors=(CollectorFact(name="gpu", outcome="failed", interval_seconds=5, message="no"),)),
         because="collector-failed"),
)  # fmt: skip


def view_of(case: Case) -> GpuView:
    builder = ViewBuilder(identify=lambda p: Identity(user=f"user-of-{p.name}"), memory=case.memory)
    inputs = ViewInputs(
        agents=(case.agent,) if case.agent else (),
        pods=case.pods,
        nodes=(node(gpus=1),),
        around=ClusterContext(pods_known=case.pods_known),
    )
    return builder.build(inputs, NOW).view().gpus[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_state(case: Case) -> None:
    view = view_of(case)
    assert view.state.value == case.expect
    assert case.because in (None, *(evidence.key for evidence in view.evidence))


STARTS = [
    ("no pod", None, NOW - 4000),
    ("a pod that started while the GPU was idle", NOW - 2000, NOW - 2000),
    ("a pod that started before", NOW - 5000, NOW - 4000),
]


@pytest.mark.parametrize(("name", "started_at", "expect"), STARTS)
def test_a_gpu_is_not_idle_for_longer_than_its_pod_exists(name: str, started_at: float | None, expect: float) -> None:
    devices = () if started_at is None else (device(LIVE),)
    pods = () if started_at is None else (pod("bert", started_at=started_at),)
    view = view_of(Case(name, "", agent(card(), devices=devices), pods=pods, memory=IDLE_LONG))
    assert view.idle_since == expect
    said = [evidence.values["since"] for evidence in view.evidence if evidence.key == "idle"]
    assert said == ([expect] if view.state is GpuState.IDLE_HELD else [])


def test_every_state_has_a_case() -> None:
    assert {case.expect for case in CASES} == {state.value for state in GpuState}


def test_a_node_whose_clock_is_an_hour_behind_is_not_wedged() -> None:
    report = agent(card(), processes=(of(LIVE, state="D", state_since=NOW - 3605),), at=NOW - 3600)
    assert view_of(Case("", "", report)).state is GpuState.BUSY


def test_the_holder_has_an_owner_and_says_who_speaks_for_it() -> None:
    view = view_of(Case("", "", agent(card(), processes=(of(LIVE),), devices=(device(LIVE),))))
    (holder,) = view.holders
    assert (holder.pod, holder.user, holder.by, holder.live) == (
        "bert",
        "user-of-bert",
        ("pod-resources", "process"),
        True,
    )


@pytest.mark.parametrize(
    ("name", "report", "expect"),
    [
        ("kubelet and driver agree", agent(card(), processes=(of(LIVE),), devices=(device(LIVE),)), ()),
        ("another pod's process", agent(card(), processes=(of(LIVE),), devices=(device(DONE),)),
         ("process-of-another-pod",)),
        ("not allocated", agent(card(), processes=(of(LIVE),)), ("process-without-allocation",)),
    ],
)  # fmt: skip
def test_disagreements_are_kept(name: str, report: AgentFact, expect: tuple[str, ...]) -> None:
    assert view_of(Case(name, "", report)).disagreements == expect


def test_limits_are_settings() -> None:
    builder = ViewBuilder(identify=lambda _: Identity(), limits=StateLimits(stale_after=5))
    view = builder.build(ViewInputs(agents=(agent(card(), received_at=NOW - 6),)), NOW).view()
    assert view.gpus[0].state is GpuState.UNKNOWN
