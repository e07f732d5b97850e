"""image-pull-slow: an image pull takes long because of its size, the registry, or the disk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, Bytes, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_values
from monitor.detect.lib.pods import REFRESH_SECONDS, combined, is_live, pod_values
from monitor.detect.lib.pull_times import PullTime, pull_times
from monitor.detect.lib.pulls import canonical_registry
from monitor.explain.error_chain.hosts import registry_of
from monitor.explain.keys import Key
from monitor.explain.pulling import image_size
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

CAUSES = ("large-image", "slow-registry", "slow-disk")
DISK_BUSY_RATIO = 0.9


@dataclass(frozen=True)
class Limits:
    """Duration of a pull; minimum rate of images of at least `large`; how long a finished pull is reported."""

    pulling: Seconds = 300.0
    rate: Bytes = 10_000_000
    large: Bytes = 1_000_000_000
    spoken_of: Seconds = 3600.0


def evaluate(pod: PodFact, context: RuleContext, _memory: Any, now: float) -> RuleResult:
    """Slow pulls of a pod, in progress or finished. Pods that wait for the same pull have the same finding."""
    if not is_live(pod) or not context.facts.events_of(pod):
        return NOTHING
    return combined(_judge(pod, pull, context, now) for pull in pull_times(pod, context.facts, now))


def _judge(pod: PodFact, pull: PullTime, context: RuleContext, now: float) -> RuleResult:
    """What is known about one pull. Its size is looked up only if the pull may be slow."""
    limits: Limits = context.limits.of({"node": pod.node or "?", "image": pull.image})
    if pull.ended_at is None:
        if pull.seconds < limits.pulling:
            return RuleResult(next_at=pull.began_at + limits.pulling)
        size = image_size(pull.image, pod.node, context.facts)
        return RuleResult((_finding(pod, pull, size, limits, context.facts),), next_at=now + REFRESH_SECONDS)
    least = limits.rate * pull.seconds  # bytes that should have been pulled in this time
    if now - pull.ended_at >= limits.spoken_of or least <= limits.large:
        return NOTHING
    size = pull.size_bytes or image_size(pull.image, pod.node, context.facts)
    if size is None or not limits.large < size < least:
        return NOTHING if size is not None else RuleResult(next_at=now + REFRESH_SECONDS)
    return RuleResult((_finding(pod, pull, size, limits, context.facts),), next_at=pull.ended_at + limits.spoken_of)


def _finding(pod: PodFact, pull: PullTime, size: int | None, limits: Limits, facts: ClusterFacts) -> Finding:
    registry, cause = canonical_registry(registry_of(pull.image)), _cause(pod, pull, size, limits, facts)
    values = pod_values(pod, facts, image=pull.image, registry=registry, took=pull.seconds)
    labels = label_values({"node": pod.node, "image": pull.image, "service": registry})
    evidence = _evidence(pull, size, limits)
    return make_finding("image-pull-slow", cause, labels, values, evidence=evidence, since=pull.began_at)


def _cause(pod: PodFact, pull: PullTime, size: int | None, limits: Limits, facts: ClusterFacts) -> str:
    """Why it is slow. An image that would take as long at the minimum rate is just large."""
    if pull.ended_at is None and size is not None and limits.rate * pull.seconds <= size:
        return "large-image"
    return "slow-disk" if _disk_is_busy(pod.node or "", facts) else "slow-registry"


def _disk_is_busy(node: str, facts: ClusterFacts) -> bool:
    """Whether the disk with the runtime's images is saturated."""
    snapshot = facts.snapshots.get(node)
    if snapshot is None:
        return False
    mounts = {disk.mount for disk in snapshot.disk or () if "runtime" in disk.roles}
    return any((io.busy_ratio or 0.0) >= DISK_BUSY_RATIO and mounts & {*io.mounts} for io in snapshot.disk_io or ())


def _evidence(pull: PullTime, size: int | None, limits: Limits) -> Iterable[Text]:
    if size is not None:
        yield Text(Key.IMAGE_SIZE.value, {"image": pull.image, "size": size})
    if pull.ended_at is None:
        return
    yield Text("image-pull-slow.done")
    if size is not None:
        yield Text("image-pull-slow.rate", {"rate": round(size / pull.seconds), "limit": limits.rate})


RULE = Rule(
    "image-pull-slow", Limits, CAUSES, evaluate, SubjectKind.POD,
    uses=("agent", "images"), refines=("disk", "disk_io"), kube=("pods", "events"),
    suppressed_by=("registry-unreachable", "node-down"), latency=Latency("pulling"),
)  # fmt: skip
