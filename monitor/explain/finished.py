"""Finished pods: succeeded, rejected by the node, evicted, or failed."""

from __future__ import annotations

import re
from dataclasses import replace

from monitor.explain import crash
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus
from monitor.explain.quote import quote
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value

_DEVICES = re.compile(r"Requested: ?(\d+), Available: ?(\d+)")
_SHUTDOWN = ("Shutdown", "Terminated", "NodeShutdown")


def finished(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis:
    """Diagnosis of a finished pod."""
    if pod.phase == "Succeeded":
        return PodDiagnosis(PodStatus.FINISHED, "done", Text(Key.DONE, {"pod": pod.name}))
    if diagnosis := _by_reason(pod):
        return diagnosis
    failed = [status for status in pod.statuses if crash.last_termination(status).exit_code]
    if failed:
        first = min(failed, key=lambda status: crash.last_termination(status).finished_at or 0.0)
        not_started = crash.last_termination(first).reason in crash.START_FAILED_REASONS
        diagnose = crash.cannot_start if not_started else crash.crashed
        return replace(diagnose(pod, first, facts), status=PodStatus.FINISHED)
    values: dict[str, Value] = {"pod": pod.name, "message": quote(pod.message or pod.reason) or "?"}
    return PodDiagnosis(PodStatus.FINISHED, "failed", Text(Key.FAILED, values))


def _by_reason(pod: PodFact) -> PodDiagnosis | None:
    """Diagnosis from the pod's own reason, set when Kubernetes ended the pod rather than its program."""
    reason, message = pod.reason or "", pod.message or ""
    values: dict[str, Value] = {"pod": pod.name, "node": pod.node or "?", "message": quote(message), "reason": reason}
    if reason == "UnexpectedAdmissionError":
        return _admission(message, values)
    if reason.startswith("OutOf") or reason in ("NodeAffinity", "NodeSelectorMismatching"):
        return _diagnosis("node-refused", Key.NODE_REFUSED, Key.NODE_REFUSED_ADVICE, values)
    if reason == "Evicted":
        disk = "ephemeral" in message.lower() or "disk" in message.lower() or "inodes" in message.lower()
        keys = (Key.EVICTED_DISK, Key.EVICTED_DISK_ADVICE) if disk else (Key.EVICTED, Key.EVICTED_ADVICE)
        return _diagnosis("evicted", *keys, values)
    if reason in ("Preempted", "Preempting", "PreemptionByScheduler"):
        return _diagnosis("preempted", Key.PREEMPTED, Key.PRIORITY_ADVICE, values)
    if reason == "DeadlineExceeded":
        return _diagnosis("deadline", Key.DEADLINE, Key.DEADLINE_ADVICE, values)
    if reason in _SHUTDOWN or reason == "NodeLost":
        return _diagnosis("node-lost", Key.NODE_WENT_DOWN, Key.SUBMIT_AGAIN_ADVICE, values)
    return None


def _admission(message: str, values: dict[str, Value]) -> PodDiagnosis:
    """The kubelet could not allocate devices that the scheduler counted on: GPU lost, or device plugin restarted."""
    if match := _DEVICES.search(message):
        values = values | {"needs": int(match[1]), "available": int(match[2])}
        return _diagnosis("device-plugin", Key.DEVICES_UNAVAILABLE, Key.DEVICES_ADVICE, values)
    if "unhealthy" in message or "healthy devices" in message or "GPU is lost" in message:
        return _diagnosis("device-plugin", Key.DEVICES_ILL, Key.DEVICES_ILL_ADVICE, values)
    return _diagnosis("device-plugin", Key.DEVICES_FAILED, Key.DEVICES_ADVICE, values)


def _diagnosis(cause: str, headline: Key, advice: Key, values: dict[str, Value]) -> PodDiagnosis:
    evidence = (Text(Key.RUNTIME_SAYS, {"message": values["message"]}),) if values["message"] else ()
    return PodDiagnosis(PodStatus.FINISHED, cause, Text(headline, values), evidence, (Text(advice, values),))
