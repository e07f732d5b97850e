"""Pods that the kubelet refused on arrival or evicted, by its reason and message."""

from __future__ import annotations

import re

from monitor.explain.error_chain.causes import SchedulingCause
from monitor.explain.error_chain.scheduling import main_reason, parse_scheduling
from monitor.explain.error_chain.wording import Wording, find, wording
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus
from monitor.explain.quote import quote
from monitor.facts.gpu_requests import amount_value
from monitor.facts.gpu_resources import GPU_RESOURCE
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

REFUSED_CAUSES = (
    "device-plugin",
    "node-refused",
    "admission-topology",
    "admission-affinity",
    "admission-other",
)
EVICTED_CAUSES = ("evicted", "evicted-own-limit", "evicted-emptydir", "evicted-pids", "evicted-other")
_SHUTDOWN = ("Shutdown", "Terminated", "NodeShutdown", "NodeLost")
# Other reasons of the kubelet's admission handlers.
_OTHER_REFUSALS = (
    "SysctlForbidden", "PodOSNotSupported", "NodePorts", "InvalidNodeInfo", "PodFeatureUnsupported",
    "UnexpectedPredicateFailureType", "SupplementalGroupsPolicyNotSupported", "PodOSSelectorNodeLabelDoesNotMatch",
)  # fmt: skip
_PREDICATE = re.compile(r"(?:Pod )?Predicate \w+ failed")
_DEVICES = re.compile(r"(?:unavailable for ([\w./-]{1,253}?)\.? )?Requested: ?(\d{1,9}), Available: ?(\d{1,9})")
# The eviction manager's sentences: the pod's own limits first, then what the node ran out of.
_EVICTIONS: Wording[tuple[str, Key, Key]] = wording(
    (("evicted-emptydir", Key.EVICTED_EMPTYDIR, Key.EVICTED_EMPTYDIR_ADVICE), ("emptydir volume",)),
    (
        ("evicted-own-limit", Key.EVICTED_OWN_LIMIT, Key.EVICTED_OWN_LIMIT_ADVICE),
        ("exceeds the total limit of containers", "local ephemeral storage limit", "local storage usage exceeds"),
    ),
    (("preempted", Key.PREEMPTED_CRITICAL, Key.PREEMPTED_CRITICAL_ADVICE), ("admit critical pod", "preempted")),
    (("node-lost", Key.NODE_WENT_DOWN, Key.SUBMIT_AGAIN_ADVICE), ("node shutdown", "shutting down")),
    (("evicted-pids", Key.EVICTED_PIDS, Key.EVICTED_PIDS_ADVICE), ("resource: pids", "pidpressure")),
    (("evicted", Key.EVICTED, Key.EVICTED_ADVICE), ("resource: memory", "memorypressure", "memory.available")),
    (
        ("evicted", Key.EVICTED_DISK, Key.EVICTED_DISK_ADVICE),
        ("ephemeral-storage", "inodes", "nodefs", "imagefs", "containerfs", "diskpressure", "disk"),
    ),
)  # fmt: skip
_EVICTED_OTHER = "evicted-other", Key.EVICTED_OTHER, Key.EVICTED_OTHER_ADVICE
# Reasons of the condition DisruptionTarget, except that of the kubelet, whose message says more.
_DISRUPTIONS = {
    "PreemptionByScheduler": ("preempted", Key.PREEMPTED, Key.PRIORITY_ADVICE),
    "EvictionByEvictionAPI": ("evicted-by-api", Key.DISRUPTED_EVICTION, Key.DISRUPTED_EVICTION_ADVICE),
    "DeletionByTaintManager": ("evicted-by-taint", Key.DISRUPTED_TAINT, Key.DISRUPTED_TAINT_ADVICE),
    "DeletionByPodGC": ("node-lost", Key.NODE_WENT_DOWN, Key.SUBMIT_AGAIN_ADVICE),
}
_QUEUE_REASONS = (
    SchedulingCause.QUEUE_MISSING,
    SchedulingCause.QUEUE_CLOSED,
    SchedulingCause.QUEUE_FULL,
    SchedulingCause.QUEUE_TOO_SMALL,
)


def refused(pod: PodFact) -> PodDiagnosis | None:
    """Diagnosis from the pod's own reason, set when Kubernetes ended the pod rather than its program, or None."""
    reason, message = pod.reason or "", pod.message or ""
    values: dict[str, Value] = {
        "pod": pod.name,
        "namespace": pod.namespace,
        "node": pod.node or "?",
        "message": quote(message),
        "reason": reason,
        "container": pod.name,
    }
    if reason == "Evicted":
        found = find(message.lower(), _EVICTIONS)
        return _diagnosis(*(found or _EVICTED_OTHER), values)
    if reason in ("Preempted", "Preempting", "PreemptionByScheduler"):
        return _diagnosis("preempted", Key.PREEMPTED, Key.PRIORITY_ADVICE, values)
    if reason == "DeadlineExceeded":
        return _diagnosis("deadline", Key.DEADLINE, Key.DEADLINE_ADVICE, values)
    if reason in _SHUTDOWN:
        return _diagnosis("node-lost", Key.NODE_WENT_DOWN, Key.SUBMIT_AGAIN_ADVICE, values)
    return _not_admitted(reason, message, values) or _rejected_by_queue(message, values) or disrupted(pod)


def disrupted(pod: PodFact) -> PodDiagnosis | None:
    """Diagnosis from the condition in which Kubernetes records why it ends a pod, or None."""
    condition = next((part for part in pod.conditions if part.type == "DisruptionTarget" and part.status), None)
    if condition is None:
        return None
    values: dict[str, Value] = {
        "pod": pod.name,
        "namespace": pod.namespace,
        "node": pod.node or "?",
        "message": quote(condition.message),
    }
    if condition.reason == "TerminationByKubelet":
        found = find((condition.message or "").lower(), _EVICTIONS)
        return _diagnosis(*(found or _EVICTED_OTHER), values)
    known = _DISRUPTIONS.get(condition.reason or "")
    return _diagnosis(*known, values) if known is not None else None


def _not_admitted(reason: str, message: str, values: dict[str, Value]) -> PodDiagnosis | None:
    """Refusals of the kubelet, by reason; the message tells devices from CPUs and memory."""
    if reason == "AppArmor":
        return _diagnosis("start-apparmor", Key.START_APPARMOR, Key.START_APPARMOR_ADVICE, values)
    if reason in ("TopologyAffinityError", "SMTAlignmentError"):
        return _diagnosis("admission-topology", Key.ADMISSION_TOPOLOGY, Key.ADMISSION_TOPOLOGY_ADVICE, values)
    if reason in ("NodeAffinity", "NodeSelectorMismatching", "MatchNodeSelector"):
        return _diagnosis("admission-affinity", Key.ADMISSION_AFFINITY, Key.ADMISSION_AFFINITY_ADVICE, values)
    if reason.startswith("OutOf"):
        return _diagnosis("node-refused", Key.NODE_REFUSED, Key.NODE_REFUSED_ADVICE, values)
    if reason == "UnexpectedAdmissionError":
        return _unexpected(message, values)
    if message.startswith("Pod was rejected") or reason in _OTHER_REFUSALS or _PREDICATE.match(message):
        return _diagnosis("admission-other", Key.ADMISSION_OTHER, Key.ADMISSION_OTHER_ADVICE, values)
    return None


def _unexpected(message: str, values: dict[str, Value]) -> PodDiagnosis:
    """The kubelet could not allocate what the scheduler counted on: GPU lost, device plugin restarted, or CPUs."""
    low = message.lower()
    if match := _DEVICES.search(message):
        needs = amount_value({match[1] or GPU_RESOURCE: float(match[2])}, GPU_RESOURCE)
        values = values | {"needs": needs, "available": int(match[3])}
        return _diagnosis("device-plugin", Key.DEVICES_UNAVAILABLE, Key.DEVICES_ADVICE, values)
    if "unhealthy" in low or "healthy devices" in low or "gpu is lost" in low:
        return _diagnosis("device-plugin", Key.DEVICES_ILL, Key.DEVICES_ILL_ADVICE, values)
    if "not enough cpus" in low or "reclaim resources" in low:
        return _diagnosis("node-refused", Key.NODE_REFUSED, Key.NODE_REFUSED_ADVICE, values)
    if "numa" in low or "topology" in low:
        return _diagnosis("admission-topology", Key.ADMISSION_TOPOLOGY, Key.ADMISSION_TOPOLOGY_ADVICE, values)
    if "allocate failed" in low or "device" in low or "plugin" in low:
        return _diagnosis("device-plugin", Key.DEVICES_FAILED, Key.DEVICES_ADVICE, values)
    return _diagnosis("admission-other", Key.ADMISSION_OTHER, Key.ADMISSION_OTHER_ADVICE, values)


def _rejected_by_queue(message: str, values: dict[str, Value]) -> PodDiagnosis | None:
    """YuniKorn fails the pods of an application that it rejects."""
    if values["reason"] == "ResourceReservationTimeout":
        return _diagnosis("gang-waiting", Key.SCHED_GANG_WAITING, Key.SCHED_GANG_WAITING_ADVICE, values | {"name": "?"})
    if "application" not in message or not ("reject" in message or "queue" in message):
        return None
    reason = main_reason(parse_scheduling(message))
    if reason is None or reason.cause not in _QUEUE_REASONS:
        return None
    key = Key[f"SCHED_{reason.cause.name}"]
    return _diagnosis(reason.cause.value, key, Key[f"{key.name}_ADVICE"], values | {"name": "?"})


def _diagnosis(cause: str, headline: Key, advice: Key, values: dict[str, Value]) -> PodDiagnosis:
    evidence = (Text(Key.RUNTIME_SAYS, {"message": values["message"]}),) if values["message"] else ()
    return PodDiagnosis(PodStatus.FINISHED, cause, Text(headline, values), evidence, (Text(advice, values),))
