"""image-pull-slow: an image pull takes long because of its size, the registry, or the disk."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import (
    ANY_CAUSE,
    Bytes,
    Latency,
    Rule,
    RuleContext,
    RuleResult,
    Seconds,
    SubjectKind,
    whole_cluster,
)
from monitor.detect.lib.pods import EVERYTHING, label_values, pod_values
from monitor.detect.lib.pull_times import PullTime, pull_times
from monitor.detect.lib.pulls import canonical_registry
from monitor.detect.visibility import resources_unavailable
from monitor.explain.image_pull import registry_of
from monitor.explain.keys import Key
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

CAUSES = ("large-image", "slow-registry", "slow-disk")
DISK_BUSY_RATIO = 0.9


@dataclass(frozen=True)
class Limits:
    """Duration of a pull; minimum rate of images of at least `large`; how long a finished pull is reported."""

    pulling: Seconds = 300.0
    rate: Bytes = 10_000_000
    large: Bytes = 1_000_000_000
    spoken_of: Seconds = 3600.0


def detect(context: RuleContext, _memory: Any) -> RuleResult:
    """Slow pulls in progress or finished, one finding per node and image."""
    facts, now = context.facts, context.now
    default: Limits = context.limits.of({})
    pulls = sorted(pull_times(facts, now, now - default.spoken_of), key=lambda pull: pull.began_at)
    sizes = _sizes({pull.image for pull in pulls}, facts) if pulls else {}
    findings: dict[tuple[str, str], Finding] = {}
    for pull in pulls:
        node = pull.pod.node or "?"
        size = pull.size_bytes or sizes.get((node, pull.image)) or sizes.get(("", pull.image))
        limits: Limits = context.limits.of({"node": node, "image": pull.image})
        if _is_slow(pull, size, limits):
            findings.setdefault((node, pull.image), _finding(pull, size, limits, facts))
    blind = (EVERYTHING,) if resources_unavailable(context, "pods", "events") else ()
    return RuleResult(tuple(findings.values()), None, blind)


def _is_slow(pull: PullTime, size: int | None, limits: Limits) -> bool:
    if pull.ended_at is None:
        return pull.seconds > limits.pulling
    return size is not None and size > limits.large and size / pull.seconds < limits.rate


def _sizes(images: set[str], facts: ClusterFacts) -> dict[tuple[str, str], int]:
    """Image sizes by node and name, and under "" for any node."""
    sizes: dict[tuple[str, str], int] = {}
    for node, snapshot in facts.snapshots.items():
        for cache in snapshot.images or ():
            for image in cache.images:
                for name in image.names if image.size_bytes else ():
                    if name in images:
                        sizes[node, name] = sizes["", name] = image.size_bytes or 0
    return sizes


def _finding(pull: PullTime, size: int | None, limits: Limits, facts: ClusterFacts) -> Finding:
    node, registry = pull.pod.node or "?", canonical_registry(registry_of(pull.image))
    cause = _cause(pull, size, limits, facts)
    values = pod_values(pull.pod, facts, image=pull.image, registry=registry, seconds=pull.seconds)
    return Finding(
        rule="image-pull-slow",
        severity=Severity.WARNING,
        cause=cause,
        labels=label_values({"node": node, "image": pull.image, "service": registry}),
        headline=Text(key=f"image-pull-slow.{cause}", values=values),
        evidence=tuple(_evidence(pull, size, limits)),
        advice=(Text(key=f"image-pull-slow.{cause}.advice", values=values),),
        since=pull.began_at,
    )


def _cause(pull: PullTime, size: int | None, limits: Limits, facts: ClusterFacts) -> str:
    """Why it is slow. An image that would take as long at the minimum rate is just large."""
    if pull.ended_at is None and size is not None and pull.seconds <= size / limits.rate:
        return "large-image"
    return "slow-disk" if _disk_is_busy(pull.pod.node or "", facts) else "slow-registry"


def _disk_is_busy(node: str, facts: ClusterFacts) -> bool:
    """Whether the disk with the runtime's images is saturated."""
    snapshot = facts.snapshots.get(node)
    if snapshot is None:
        return False
    mounts = {disk.mount for disk in snapshot.disk or () if "runtime" in disk.roles}
    return any((io.busy_ratio or 0.0) >= DISK_BUSY_RATIO and mounts & {*io.mounts} for io in snapshot.disk_io or ())


def _evidence(pull: PullTime, size: int | None, limits: Limits) -> Iterable[Text]:
    if size is not None:
        yield Text(key=Key.IMAGE_SIZE.value, values={"image": pull.image, "size": size})
    if pull.ended_at is None:
        return
    yield Text(key="image-pull-slow.done")
    if size is not None:
        values: dict[str, Value] = {"rate": round(size / pull.seconds), "limit": limits.rate}
        yield Text(key="image-pull-slow.rate", values=values)


RULE = Rule(
    "image-pull-slow",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    suppressed_by=("registry-unreachable", "node-down"),
    latency={ANY_CAUSE: Latency("pulling")},
)
