"""Outages of GPUs: held by finished pods, by unknown processes or by idle jobs; faulty, hot, miscounted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from monitor.facts import CollectorFact, XidEvent
from monitor.sim.cluster import SimPod
from monitor.sim.node import GIB, SimProcess
from tests.scorecard.model import Act, Happening, May, Shape, Tell
from tests.scorecard.scene import change_processes

Wait = Iterator[float | None]
MINUTE = 60.0
CREDIT = 5 * MINUTE
POD = {"node": "{node}", "pod": "{id}"}
HALF_HOUR = 30 * MINUTE


def _finished(it: Happening) -> Wait:
    """A job has finished and its process stays on the GPU."""
    it.scene.cluster.finish(it.job(1), keep_processes=True)
    yield None


def _deleted(it: Happening) -> Wait:
    """A pod was force-deleted and its process stays on the GPU."""
    pod = it.job(1)
    yield 2 * MINUTE
    it.node.end(pod.uid, keep_processes=True)
    it.scene.objects.remove("pods", pod.uid)
    yield None


def _terminating(it: Happening) -> Wait:
    pod = it.job(2)
    yield 2 * MINUTE
    pod.stuck = True
    it.scene.cluster.delete_pod(pod.work.namespace, pod.work.name, None)
    yield None


def _idle(kind: str = "train", gpus: int = 1) -> Act:
    def act(it: Happening) -> Wait:
        it.job(gpus, kind=kind, busy=0.0)
        yield None

    return act


def _stops(it: Happening) -> Wait:
    """A notebook is used for a while and then left idle."""
    pod = it.job(1, kind="notebook", busy=0.7)
    yield 20 * MINUTE
    it.scene.container(pod).busy = 0.0
    yield None


def _hung(it: Happening) -> Wait:
    pod = it.job(2, busy=0.8)
    yield 10 * MINUTE
    container = it.scene.container(pod)
    container.busy, container.quiet_since = 0.0, it.now
    yield None


def _waits_for_data(it: Happening) -> Wait:
    it.node.waiting_cores = 6.0
    it.job(1, busy=0.0)
    yield None
    it.node.waiting_cores = 0.0


def _partly(it: Happening) -> Wait:
    """One of two workers of a job is idle."""
    for more, busy in (("-a", 0.8), ("-b", 0.0)):
        pod = it.job(2, more=more, busy=busy)
        labels = it.scene.cluster.pod_object(pod)["metadata"]["labels"]
        it.scene.change_pod(pod, {"metadata": {"labels": labels | {"FC_FRAMEWORK_NAME": it.id}}})
    yield None


def _stranger(container_id: str | None = None, name: str | None = "xmrig", uid: int | None = 0) -> Act:
    """A process outside all pods on a GPU."""

    def act(it: Happening) -> Wait:
        process = SimProcess(31_000 + it.card, it.card, container_id, None, it.now, 4 * GIB, name=name, uid=uid)
        it.node.processes.append(process)
        yield None
        it.node.kill(process.pid)

    return act


def _leak(it: Happening) -> Wait:
    card = it.node.gpus[it.card]
    card.stray_bytes = 20 * GIB
    yield None
    card.stray_bytes = 0


def _latched(it: Happening) -> Wait:
    card = it.node.gpus[it.card]
    card.latched = 1.0
    yield None
    card.latched = 0.0


def _wedged(state: str) -> Act:
    def act(it: Happening) -> Wait:
        pod = it.job(1)
        yield 5 * MINUTE
        change_processes(it.node, pod, state=state, state_since=it.now)
        yield None

    return act


def _keep_books(it: Happening, pod: SimPod) -> None:
    """The kubelet never releases a pod's GPU."""
    it.node.booked.append(it.scene.container(pod))


def _stale_allocation(it: Happening) -> Wait:
    pod = it.job(1)
    yield MINUTE
    _keep_books(it, pod)
    it.scene.withdraw(pod)
    yield None
    it.node.booked.clear()


def _terminal(it: Happening) -> Wait:
    """A finished pod's GPU is not released, and the next pod is rejected."""
    pod = it.job(1)
    _keep_books(it, pod)
    it.scene.cluster.finish(pod)
    next_one = it.job(1, more="-next", held=True)
    refused = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "Allocate failed: no devices"}
    it.scene.change_pod(next_one, {"status": refused})
    yield None
    it.node.booked.clear()


def _card(**ill: object) -> Act:
    """A problem of a free GPU."""

    def act(it: Happening) -> Wait:
        card = it.node.gpus[it.card]
        before = {name: getattr(card, name) for name in ill}
        for name, value in ill.items():
            setattr(card, name, value)
        yield None
        for name, value in before.items():
            setattr(card, name, value)

    return act


def _xid(code: int) -> Act:
    def act(it: Happening) -> Wait:
        card = it.node.gpus[it.card]
        it.node.xids.append(XidEvent(at=it.now, code=code, source="kernel", gpu_uuid=card.uuid, message="simulated"))
        yield None

    return act


def _driver_hung(it: Happening) -> Wait:
    it.node.collectors = [CollectorFact(name="gpu", outcome="ok", interval_seconds=5.0, hung_since=it.now)]
    yield None
    it.node.collectors = []


def _counted(**given: Any) -> Act:
    def act(it: Happening) -> Wait:
        it.scene.renew_node(it.node.name, **given)
        yield None
        it.scene.renew_node(it.node.name)

    return act


def _low(**given: object) -> Act:
    """A job that uses a tenth of its GPU; `given` describes its container."""

    def act(it: Happening) -> Wait:
        pod = it.job(1, busy=0.1)
        container = it.scene.container(pod)
        for name, value in given.items():
            if name == "memory":
                change_processes(it.node, pod, memory_bytes=value)
            else:
                setattr(container, name, value)
        yield None

    return act


def _low_by_disks(it: Happening) -> Wait:
    it.node.waiting_cores = 6.0
    it.job(1, busy=0.1)
    yield None
    it.node.waiting_cores = 0.0


def _idle_tell(cause: str, begins: float = 0.0, labels: dict[str, str] | None = None) -> Tell:
    return Tell("gpu-idle", cause, labels or POD, begins=begins)


def _ill(name: str, cause: str, act: Act, lasts: float = CREDIT, may: tuple[May, ...] = ()) -> Shape:
    return Shape(name, (), lasts, act, (Tell("gpu-fault", cause),), may)


LOW = 7200.0 + 20 * MINUTE
SHAPES = (
    Shape("job finished, process stays", ("G1",), CREDIT, _finished, (Tell("gpu-zombie", "pod-finished", POD),)),
    Shape("pod deleted, process stays", ("G1",), CREDIT + 2 * MINUTE, _deleted,
          (Tell("gpu-zombie", "pod-deleted", begins=2 * MINUTE),)),
    Shape("pod terminating, process stays", ("G1", "P3"), 17 * MINUTE, _terminating, (
        Tell("gpu-zombie", "pod-terminating", POD, begins=2 * MINUTE),
        Tell("pod-stuck-terminating", "runtime-hung", POD, begins=2 * MINUTE),
    )),
    Shape("job hangs", ("G1",), HALF_HOUR + 15 * MINUTE, _hung, (_idle_tell("hung-job", 10 * MINUTE),)),
    Shape("notebook that nobody uses", ("G3",), HALF_HOUR + CREDIT, _idle("notebook"), (_idle_tell("idle-notebook"),)),
    Shape("notebook left alone", ("G3",), HALF_HOUR + 25 * MINUTE, _stops,
          (_idle_tell("idle-notebook", 20 * MINUTE),)),
    Shape("notebook held for hours", ("G3",), 130 * MINUTE, _idle("notebook", 2), (_idle_tell("idle-notebook"),)),
    Shape("job that does nothing", ("G3",), HALF_HOUR + CREDIT, _idle(gpus=2), (_idle_tell("idle-job"),)),
    Shape("job waits for its data", ("D2", "G3"), HALF_HOUR + CREDIT, _waits_for_data,
          (_idle_tell("waiting-for-data"),)),
    Shape("half of a job is idle", ("G3",), HALF_HOUR + CREDIT, _partly,
          (_idle_tell("partially-idle", labels={"job": "{id}"}),)),
    Shape("process of the host", ("G2", "N3"), CREDIT, _stranger(), (Tell("gpu-orphan", "host-process"),)),
    Shape("process of another container", ("G2", "N3"), CREDIT, _stranger("c0ffee" * 10),
          (Tell("gpu-orphan", "other-container"),)),
    Shape("process of nobody", ("G2", "N3"), CREDIT, _stranger(name=None, uid=None),
          (Tell("gpu-orphan", "unknown-owner"),)),
    Shape("memory without a process", ("G2",), 2 * CREDIT, _leak, (Tell("gpu-ghost", "memory-leak"),)),
    Shape("work without a process", ("G2",), 2 * CREDIT, _latched, (Tell("gpu-ghost", "latched-utilisation"),)),
    *(
        Shape(f"process {state}", ("G1", "G2"), 3 * CREDIT, _wedged(state),
              (Tell("gpu-wedged", cause, POD, begins=5 * MINUTE),))
        for state, cause in (("D", "d-state"), ("Z", "zombie-process"), ("gone", "vanished"))
    ),
    Shape("card allocated to a pod that is gone", ("G2", "G4"), 18 * MINUTE, _stale_allocation,
          (Tell("gpu-phantom", "stale-allocation", begins=MINUTE),)),
    Shape("card kept for a finished pod", ("G2", "G4"), 15 * MINUTE, _terminal, (
        Tell("gpu-phantom", "terminal-pod"), Tell("pod-start-failed", "refused", {"pod": "{id}-next"}),
    )),
    Shape("fewer cards allocatable", ("G4",), 2 * CREDIT, _counted(allocatable=7),
          (Tell("capacity-mismatch", "unhealthy-device"),)),
    Shape("device plugin counts too few", ("G4",), 2 * CREDIT, _counted(capacity=7, allocatable=7),
          (Tell("capacity-mismatch", "device-plugin"),)),
    _ill("card fell off the bus", "card-lost", _card(lost=True)),
    _ill("XID 79", "xid-off-bus", _xid(79)),
    _ill("XID 48", "xid-memory", _xid(48)),
    _ill("XID 119", "xid-driver", _xid(119)),
    _ill("XID 74", "xid-nvlink", _xid(74)),
    _ill("XID 94", "xid-memory-contained", _xid(94)),
    _ill("XID 13", "xid-application", _xid(13)),
    _ill("XID 109", "xid-reset", _xid(109)),
    _ill("XID 151", "xid-reboot", _xid(151)),
    _ill("XID 58", "xid-vendor", _xid(58)),
    _ill("XID 78", "xid-software", _xid(78)),
    _ill("XID 54", "xid-power", _xid(54)),
    _ill("XID 999", "xid-unknown", _xid(999)),
    _ill("ECC errors", "ecc-uncorrectable", _card(ecc_errors=3)),
    _ill("rows not remapped", "remap-failed", _card(remap="failed")),
    _ill("rows to be remapped", "remap-pending", _card(remap="pending")),
    _ill("card wants a reset", "recovery-due", _card(recovery="gpu-reset")),
    Shape("driver hangs", (), 2 * CREDIT, _driver_hung, (
        Tell("gpu-fault", "driver-hung"), Tell("agent-silent", "collector-hung", {"node": "{node}", "service": "gpu"}),
    )),
    Shape("card missing", ("G4",), 2 * CREDIT, _card(missing=True), (
        Tell("gpu-fault", "cards-missing"), Tell("capacity-mismatch", "unhealthy-device"),
    )),
    Shape("card too hot", (), 10 * MINUTE + CREDIT, _card(throttled=("sw_thermal_slowdown",)),
          (Tell("gpu-hot", "thermal"),)),
    Shape("power brake", (), 10 * MINUTE + CREDIT, _card(throttled=("hw_power_brake_slowdown",)),
          (Tell("gpu-hot", "power-brake"),)),
    Shape("small batches", (), LOW, _low(memory=5 * GIB), (Tell("gpu-underused", "low-batch", POD),)),
    Shape("too few CPUs", (), LOW, _low(cpu_cores=15.6), (Tell("gpu-underused", "cpu-limit", POD),)),
    Shape("slow data loading", (), LOW, _low(peak=0.95), (Tell("gpu-underused", "data-loading", POD),)),
    Shape("slow disks", ("D2",), LOW, _low_by_disks, (Tell("gpu-underused", "io-wait", POD),)),
)  # fmt: skip
