"""Terminating pods that do not go away: finalizers, a dead kubelet, an unkillable process, volumes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from monitor.explain.fit import gpu_resource, gpus_in_words, requested_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus, pod_values
from monitor.explain.quote import quote
from monitor.explain.refused import disrupted
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import EventFact, PodFact
from monitor.facts.text import Evidence, Text, Value

STUCK_PROCESS_SECONDS = 30.0  # processes enter state D briefly
TEARDOWN_SECONDS = 30.0  # the kubelet removes volumes and network after the grace period
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
    """What a terminating pod waits for. `deletion_at` is the end of its grace period."""
    overdue = now - (pod.deletion_at or now)
    if overdue < 0:
        return _with_gpus(_with_disruption(_in_grace(pod, -overdue), pod), pod, facts)
    diagnosis = (
        _node_gone(pod, facts)
        or _finalizer(pod)
        or _stuck_process(pod, facts, now)
        or _volumes(pod, facts)
        or _hung_mount(pod, facts, now)
        or _killing(pod, facts)
    )
    if diagnosis is None:
        diagnosis = (
            _diagnosis("just-ending", Key.TERM_ENDING, {}) if overdue < TEARDOWN_SECONDS else _unknown(pod, overdue)
        )
    return _with_gpus(_with_disruption(diagnosis, pod), pod, facts)


def _with_disruption(diagnosis: PodDiagnosis, pod: PodFact) -> PodDiagnosis:
    """Add why Kubernetes deleted the pod, if it recorded that."""
    disruption = disrupted(pod)
    return replace(diagnosis, evidence=(*diagnosis.evidence, disruption.headline)) if disruption else diagnosis


def _diagnosis(cause: str, headline: Key, values: dict[str, Value], advice: Key | None = None) -> PodDiagnosis:
    steps = (Text(advice, values),) if advice is not None else ()
    return PodDiagnosis(PodStatus.TERMINATING, cause, Text(headline, values), advice=steps)


def _with_gpus(diagnosis: PodDiagnosis, pod: PodFact, facts: ClusterFacts) -> PodDiagnosis:
    """Add the GPUs that the pod still holds, which makes it urgent; a finished pod holds none."""
    if not requested_gpus(pod, facts) or pod.node is None or pod.finished:
        return diagnosis
    values: dict[str, Value] = {"gpus": gpus_in_words(pod, facts), "node": pod.node}
    values["resource"] = gpu_resource(pod, facts)
    return replace(diagnosis, evidence=(*diagnosis.evidence, Text(Key.TERM_HOLDS_GPUS, values)))


def _in_grace(pod: PodFact, seconds: float) -> PodDiagnosis:
    values = pod_values(pod) | {"seconds": seconds, "grace": pod.deletion_grace_seconds or 0.0}
    return _diagnosis("grace", Key.TERM_GRACE, values)


def _node_gone(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Diagnosis if the pod's node is gone or its kubelet is silent, so the deletion cannot complete."""
    if pod.node is None or not facts.nodes:
        return None
    node = facts.node_by_name.get(pod.node)
    if node is None:
        return _diagnosis("node-gone", Key.TERM_NODE_GONE, pod_values(pod), Key.TERM_FORCE_ADVICE)
    if node.ready is True:
        return None
    return _diagnosis("node-not-ready", Key.TERM_NODE_NOT_READY, pod_values(pod), Key.TERM_NODE_NOT_READY_ADVICE)


def _finalizer(pod: PodFact) -> PodDiagnosis | None:
    """Diagnosis if only finalizers keep the object. While a container runs, they are not yet the cause."""
    running = any(status.state == "running" for status in pod.statuses)
    if not pod.finalizers or (running and pod.deletion_grace_seconds != 0):
        return None
    values = pod_values(pod) | {"finalizers": ", ".join(pod.finalizers), "owner": _domain(pod.finalizers[0])}
    return _diagnosis("finalizer", Key.TERM_FINALIZER, values, Key.TERM_FINALIZER_ADVICE)


def _domain(finalizer: str) -> str:
    """Domain of a finalizer: `batch.kubernetes.io` of `batch.kubernetes.io/job-tracking`."""
    return finalizer.partition("/")[0]


def _stuck_process(pod: PodFact, facts: ClusterFacts, now: float) -> PodDiagnosis | None:
    """Diagnosis naming a process of the pod that cannot be killed, from NVML and /proc of its node."""
    evidence = _process_state(pod, facts, now)
    if evidence is None:
        return None
    values = pod_values(pod) | {
        "pid": evidence.values.get("pid", "?"),
        "process": str(evidence.values.get("process") or "?"),
        "state": str(evidence.values.get("state") or "?"),
        "stuck": max(0.0, now - float(evidence.values.get("since", now))),
    }
    key = Key.TERM_PROCESS_D if values["state"] == "D" else Key.TERM_PROCESS
    diagnosis = _diagnosis("stuck-process", key, values, Key.TERM_PROCESS_ADVICE)
    return replace(diagnosis, evidence=tuple(_mounts(pod, facts, now)))


def _process_state(pod: PodFact, facts: ClusterFacts, now: float) -> Evidence | None:
    """Stuck process on the pod's GPUs from the cluster view, else from the node's agent."""
    for gpu in facts.gpus_by_pod.get(pod.uid, ()):
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
    """Hung mounts of the pod's node: processes waiting for them cannot be killed."""
    snapshot = facts.snapshots.get(pod.node or "")
    if snapshot is None:
        return
    hung = {mount.path: mount.since for mount in snapshot.mounts or () if mount.state == "hung"}
    hung |= {disk.mount: disk.hung_since for disk in snapshot.disk or () if disk.hung_since is not None}
    for path, since in sorted(hung.items()):
        yield Text(Key.MOUNT_HUNG, {"path": path, "node": pod.node or "?", "hung": max(0.0, now - since)})


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
    diagnosis = _diagnosis("volume", Key.TERM_VOLUME, pod_values(pod), Key.TERM_VOLUME_ADVICE)
    return replace(diagnosis, evidence=(Text(Key.RUNTIME_SAYS, {"message": quote(event.message)}),))


def _killing(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis | None:
    """Diagnosis if the runtime reports that it cannot stop the containers, or None."""
    event = next(
        (e for e in reversed(facts.events_of(pod)) if e.reason in ("FailedKillPod", "FailedPreStopHook")), None
    )
    if event is None:
        return None
    diagnosis = _diagnosis("kill-failed", Key.TERM_KILL_FAILED, pod_values(pod), Key.TERM_UNKNOWN_ADVICE)
    return replace(diagnosis, evidence=(Text(Key.RUNTIME_SAYS, {"message": quote(event.message)}),))


def _newest(pod: PodFact, facts: ClusterFacts, fragments: tuple[str, ...]) -> EventFact | None:
    for event in reversed(facts.events_of(pod)):
        text = f"{event.reason} {event.message}".lower()
        if event.type != "Normal" and any(fragment in text for fragment in fragments):
            return event
    return None


def _unknown(pod: PodFact, overdue: float) -> PodDiagnosis:
    return _diagnosis("unknown", Key.TERM_UNKNOWN, pod_values(pod) | {"seconds": overdue}, Key.TERM_UNKNOWN_ADVICE)
