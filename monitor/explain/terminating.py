"""A pod that is being deleted and does not go: finalizers, a dead kubelet, a process that cannot be killed, volumes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from monitor.explain.fit import gpu_resource, requested_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus
from monitor.explain.quote import quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import EventFact, PodFact
from monitor.facts.text import Evidence, Text, Value

STUCK_PROCESS_SECONDS = 30.0  # a process may be in D for a moment
TEARDOWN_SECONDS = 30.0  # after the grace time the kubelet still has to tear down volumes and network
_VOLUME_WORDS = (
    "volumes have not been cleaned up",
    "not yet unmounted",
    "unmountvolume",
    "device is busy",
    "target is busy",
    "failedunmount",
    "cleaning up volume",
    "device or resource busy",
)


def terminating(pod: PodFact, facts: ClusterFacts, now: float) -> PodDiagnosis:
    """Given a pod that is being deleted, return what it waits for. `deletion_at` is when its grace time is over."""
    overdue = now - (pod.deletion_at or now)
    if overdue < 0:
        return _with_gpus(_in_grace(pod, -overdue), pod, facts)
    answer = (
        _node_gone(pod, facts)
        or _finalizer(pod)
        or _stuck_process(pod, facts, now)
        or _volumes(pod, facts)
        or _hung_mount(pod, facts, now)
        or _killing(pod, facts)
    )
    if answer is None:
        answer = _answer("just-ending", Key.TERM_ENDING, {}) if overdue < TEARDOWN_SECONDS else _unknown(pod, overdue)
    return _with_gpus(answer, pod, facts)


def _answer(cause: str, headline: Key, values: dict[str, Value], advice: Key | None = None) -> PodDiagnosis:
    steps = (Text(advice, values),) if advice is not None else ()
    return PodDiagnosis(PodStatus.TERMINATING, cause, Text(headline, values), advice=steps)


def _where(pod: PodFact) -> dict[str, Value]:
    return {"pod": pod.name, "namespace": pod.namespace, "node": pod.node or "?"}


def _with_gpus(answer: PodDiagnosis, pod: PodFact, facts: ClusterFacts) -> PodDiagnosis:
    """Add what makes it urgent: a pod that does not go keeps its GPUs, unless it has already ended."""
    count = requested_gpus(pod, facts)
    if not count or pod.node is None or pod.finished:
        return answer
    values: dict[str, Value] = {"gpus": count, "node": pod.node, "resource": gpu_resource(pod, facts)}
    return replace(answer, evidence=(*answer.evidence, Text(Key.TERM_HOLDS_GPUS, values)))


def _in_grace(pod: PodFact, seconds: float) -> PodDiagnosis:
    values = _where(pod) | {"seconds": seconds, "grace": pod.deletion_grace_seconds or 0.0}
    return _answer("grace", Key.TERM_GRACE, values)


def _node_gone(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Return that nobody is there to end the pod: its node is gone, or the node's kubelet is silent."""
    if pod.node is None or not facts.nodes:
        return None
    node = facts.node_by_name.get(pod.node)
    if node is None:
        return _answer("node-gone", Key.TERM_NODE_GONE, _where(pod), Key.TERM_FORCE_ADVICE)
    if node.ready is True:
        return None
    return _answer("node-not-ready", Key.TERM_NODE_NOT_READY, _where(pod), Key.TERM_NODE_NOT_READY_ADVICE)


def _finalizer(pod: PodFact) -> PodDiagnosis | None:
    """Return that only finalizers keep the object. While a container runs, they are not yet what it waits for."""
    running = any(status.state == "running" for status in pod.statuses)
    if not pod.finalizers or (running and pod.deletion_grace_seconds != 0):
        return None
    values = _where(pod) | {"finalizers": ", ".join(pod.finalizers), "owner": _domain(pod.finalizers[0])}
    return _answer("finalizer", Key.TERM_FINALIZER, values, Key.TERM_FINALIZER_ADVICE)


def _domain(finalizer: str) -> str:
    """Given `batch.kubernetes.io/job-tracking`, return whose it is."""
    return finalizer.partition("/")[0]


def _stuck_process(pod: PodFact, facts: ClusterFacts, now: float) -> PodDiagnosis | None:
    """Return which of the pod's processes cannot be ended, as the driver and /proc of its node show it."""
    evidence = _process_state(pod, facts, now)
    if evidence is None:
        return None
    values = _where(pod) | {
        "pid": evidence.values.get("pid", "?"),
        "process": str(evidence.values.get("process") or "?"),
        "state": str(evidence.values.get("state") or "?"),
        "seconds": max(0.0, now - float(evidence.values.get("since", now))),
    }
    key = Key.TERM_PROCESS_D if values["state"] == "D" else Key.TERM_PROCESS
    answer = _answer("stuck-process", key, values, Key.TERM_PROCESS_ADVICE)
    return replace(answer, evidence=tuple(_mounts(pod, facts, now)))


def _process_state(pod: PodFact, facts: ClusterFacts, now: float) -> Evidence | None:
    """Return what the view knows of a stuck process on the pod's cards, else what the node's agent says of one."""
    for gpu in facts.cards.get(pod.uid, ()):
        for evidence in gpu.evidence:
            if evidence.key == "process-state":
                return evidence
    snapshot = facts.snapshots.get(pod.node or "")
    for process in (snapshot.gpu_processes or ()) if snapshot else ():
        since = process.state_since
        if process.pod_uid == pod.uid and process.state in ("D", "Z") and since is not None:
            values: dict[str, Value] = {"pid": process.pid, "state": process.state, "since": since}
            if now - since >= STUCK_PROCESS_SECONDS:
                return Evidence(key="process-state", values=values | {"process": process.name or ""})
    return None


def _mounts(pod: PodFact, facts: ClusterFacts, now: float) -> Iterable[Text]:
    """Yield the mounts of the pod's node that do not answer: what waits for them cannot be killed."""
    snapshot = facts.snapshots.get(pod.node or "")
    if snapshot is None:
        return
    hung = {mount.path: mount.since for mount in snapshot.mounts or () if mount.state == "hung"}
    hung |= {disk.mount: disk.hung_since for disk in snapshot.disk or () if disk.hung_since is not None}
    for path, since in sorted(hung.items()):
        yield Text(Key.MOUNT_HUNG, {"path": path, "node": pod.node or "?", "seconds": max(0.0, now - since)})


def _hung_mount(pod: PodFact, facts: ClusterFacts, now: float) -> PodDiagnosis | None:
    hung = tuple(_mounts(pod, facts, now))
    if not hung:
        return None
    return PodDiagnosis(
        PodStatus.TERMINATING, "hung-mount", hung[0], hung[1:], (Text(Key.MOUNT_HUNG_ADVICE, hung[0].values),)
    )


def _volumes(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    event = _newest(pod, facts, _VOLUME_WORDS)
    if event is None:
        return None
    answer = _answer("volume", Key.TERM_VOLUME, _where(pod), Key.TERM_VOLUME_ADVICE)
    return replace(answer, evidence=(Text(Key.RUNTIME_SAYS, {"message": quote(event.message)}),))


def _killing(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Return that the runtime says it cannot stop the containers, or None."""
    event = next(
        (e for e in reversed(facts.events_of(pod)) if e.reason in ("FailedKillPod", "FailedPreStopHook")), None
    )
    if event is None:
        return None
    answer = _answer("kill-failed", Key.TERM_KILL_FAILED, _where(pod), Key.TERM_UNKNOWN_ADVICE)
    return replace(answer, evidence=(Text(Key.RUNTIME_SAYS, {"message": quote(event.message)}),))


def _newest(pod: PodFact, facts: ClusterFacts, fragments: tuple[str, ...]) -> EventFact | None:
    for event in reversed(facts.events_of(pod)):
        text = f"{event.reason} {event.message}".lower()
        if event.type != "Normal" and any(fragment in text for fragment in fragments):
            return event
    return None


def _unknown(pod: PodFact, overdue: float) -> PodDiagnosis:
    return _answer("unknown", Key.TERM_UNKNOWN, _where(pod) | {"seconds": overdue}, Key.TERM_UNKNOWN_ADVICE)
