"""pod-stuck-creating: a pod is scheduled but its containers are not created, for reasons other than its image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.lib.pods import REFRESH_SECONDS, advice_keys, is_live, pod_labels, pod_values, raw_text
from monitor.detect.lib.shared_causes import explain_by_server
from monitor.detect.lib.storage import is_within
from monitor.explain import starting
from monitor.explain.fit import gpu_resource, requested_gpus
from monitor.explain.model import PodDiagnosis
from monitor.explain.starting import DRA_REASON
from monitor.explain.volumes import MOUNT_EVENT_REASONS as VOLUME_REASONS
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.gpu_resources import resource_kind
from monitor.facts.kube import EventFact, PodFact
from monitor.facts.text import Text

CAUSES = ("mount-failed", "mount-hung", "sandbox", "config-missing", "device-missing")
WAITING_REASONS = (None, "ContainerCreating", "PodInitializing")
_STEP_REASONS = ("Pulling", "Pulled", "Created", "Started", "FailedCreatePodSandBox", DRA_REASON, *VOLUME_REASONS)
_CONFIG_CAUSES = ("mount-secret-missing", "mount-config-missing", "mount-key-missing", "mount-claim-missing")
_UNSPECIFIC_CAUSES = (
    "mount-timed-out",
    "mount-unknown",
    "mount-stale",
    "mount-unreachable",
    "mount-nfs-unreachable",
    "mount-nfs-refused",
)


@dataclass(frozen=True)
class Limits:
    """Seconds from one startup step to the next."""

    creating: Seconds = 300.0


def evaluate(pod: PodFact, context: RuleContext, _memory: Any, now: float) -> RuleResult:
    """A pod whose containers are not created."""
    if pod.phase != "Pending" or not is_live(pod) or not _is_being_created(pod):
        return NOTHING
    events = reversed(context.facts.events_of(pod))
    step = next((event for event in events if event.reason in _STEP_REASONS), None)
    since = _since(pod, step)
    if since is None or (step is not None and step.reason == "Pulling"):
        return NOTHING
    limits: Limits = context.limits.of({"node": pod.node or "", "namespace": pod.namespace})
    if now - since < limits.creating:
        return RuleResult(next_at=since + limits.creating)
    answer = starting.starting(pod, context.facts, now)
    return RuleResult((_finding(pod, answer, context.facts, since),), next_at=now + REFRESH_SECONDS)


def _is_being_created(pod: PodFact) -> bool:
    """Whether no container runs or fails. A completed init container and a started sidecar are progress."""
    for status in pod.statuses:
        done = status.init and status.state == "terminated" and status.exit_code == 0
        done = done or (status.sidecar and status.started)
        if not done and (status.state not in (None, "waiting") or status.reason not in WAITING_REASONS):
            return False
    return True


def _since(pod: PodFact, step: EventFact | None) -> float | None:
    """Time of the last progress: a pod that has just pulled its image is not stuck."""
    times = [status.finished_at for status in pod.statuses if status.init] + [pod.started_at or pod.created_at]
    times += [status.started_at for status in pod.statuses if status.sidecar]
    if step is not None and step.reason in ("Pulled", "Created", "Started"):
        times.append(step.last_at)
    return max((time for time in times if time is not None), default=None)


def _finding(pod: PodFact, answer: PodDiagnosis, facts: ClusterFacts, since: float) -> Finding:
    hung = next(iter(sorted(_hung_mounts(pod, answer, facts))), None)
    cause = "mount-hung" if hung else _cause(pod, answer, facts)
    values = pod_values(pod, facts)
    evidence = (answer.headline, *answer.evidence)
    if hung:
        evidence = (Text("pod-stuck-creating.hung-path", {"path": hung, "node": pod.node or "?"}), *evidence)
    message = next((str(note.values["message"]) for note in evidence if "message" in note.values), None)
    return make_finding(
        "pod-stuck-creating", cause, pod_labels(pod, facts, mount=hung), values, evidence=evidence,
        advice=(*answer.advice, Text("pod-stuck-creating.advice", values)), since=since, raw=raw_text(message),
    )  # fmt: skip


def _cause(pod: PodFact, answer: PodDiagnosis, facts: ClusterFacts) -> str:
    if answer.cause in _CONFIG_CAUSES:
        return "config-missing"
    if answer.cause == "mount-host-path" and "/dev/" in str([reason.values for reason in answer.evidence]):
        return "device-missing"
    if answer.cause in ("start-cdi", "start-device-missing", "start-dra-prepare", "start-gpu-lost"):
        return "device-missing"
    if answer.cause in ("mount-timed-out", "mount-stale"):
        return "mount-hung"
    if answer.cause.startswith("mount-"):
        return "mount-failed"
    return "device-missing" if _gpus_not_allocatable(pod, answer, facts) else "sandbox"


def _gpus_not_allocatable(pod: PodFact, answer: PodDiagnosis, facts: ClusterFacts) -> bool:
    """Whether no cause is reported and the node offers too few GPUs."""
    node = facts.node_by_name.get(pod.node or "")
    reported = answer.cause.startswith(("sandbox-", "start-"))
    if reported or node is None or node.ready is not True or not requested_gpus(pod, facts):
        return False
    resource = gpu_resource(pod, facts)
    kind = resource_kind(resource)
    if kind is not None and kind.per_card and resource not in node.allocatable:
        return False  # HAMi does not list the memory that it shares
    return node.allocatable.get(resource, 0.0) < requested_gpus(pod, facts)


def _hung_mounts(pod: PodFact, answer: PodDiagnosis, facts: ClusterFacts) -> Iterable[str]:
    """Hung mounts of the node, if the pod waits for a volume that may be on them."""
    snapshot = facts.snapshots.get(pod.node or "")
    if snapshot is None:
        return
    hung = {mount.path for mount in snapshot.mounts or () if mount.state == "hung"}
    hung |= {disk.mount for disk in snapshot.disk or () if disk.hung_since is not None}
    paths = [volume.path for volume in pod.volumes if volume.kind == "hostPath" and volume.path]
    for path in hung:
        if any(is_within(used, path) for used in paths) or answer.cause in _UNSPECIFIC_CAUSES:
            yield path


def correlate(findings: Sequence[Finding], _context: RuleContext) -> Sequence[Finding]:
    """The findings about pods; those that cannot mount from one server are explained by one about the server."""
    return explain_by_server(findings)


_STORAGE = (
    "access-denied", "storage-denied", "no-such-export", "volume-missing", "helper-missing", "unreachable",
    "nfs-unreachable", "nfs-refused", "attach-limit", "attach-failed", "subpath", "bad-filesystem",
)  # fmt: skip
_SANDBOX = (
    "disk-full", "no-address", "runtime-class", "pause-image", "network", "cni-auth", "cni-missing", "runtime-slow",
)  # fmt: skip
ADVICE = {
    "mount-failed": advice_keys(*_STORAGE, "multi-attach", "driver-missing", "permission", family="mount-"),
    "mount-hung": advice_keys("mount-hung", "mount-timed-out", "mount-stale"),
    "sandbox": advice_keys(*_SANDBOX, family="sandbox-"),
    "config-missing": advice_keys(*_CONFIG_CAUSES),
    "device-missing": advice_keys("mount-host-path", "start-cdi", "start-dra-prepare", "start-long"),
}
RULE = Rule(
    "pod-stuck-creating", Limits, CAUSES, evaluate, SubjectKind.POD,
    refines=("agent", "node", "mounts", "disk"), kube=("pods",),
    suppressed_by=("disk-full", "mount-lost", "node-down"), advice=ADVICE, latency=Latency("creating"),
    correlate=correlate,
)  # fmt: skip
