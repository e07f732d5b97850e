"""Duration of image pulls in progress and done, from the kubelet's events."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from monitor.detect.lib.pods import live_pods
from monitor.detect.visibility import clock_skew
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import EventFact, PodFact

_PULL_REASONS = ("Pulling", "Pulled", "Failed", "BackOff")
_WAITING_REASONS = (None, "ContainerCreating", "PodInitializing")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|h|m|s)")
_MAX_DURATION_CHARS = 32  # of the longest in Go, 24
_SIZE = re.compile(r"Image size: (\d+) bytes")


@dataclass(frozen=True, slots=True)
class PullTime:
    """One pull, in the daemon's clock. `ended_at` and `size_bytes` are None while it is in progress."""

    pod: PodFact
    image: str
    began_at: float
    seconds: float
    ended_at: float | None = None
    size_bytes: int | None = None


def pull_times(facts: ClusterFacts, now: float, since: float) -> Iterable[PullTime]:
    """Pulls in progress, and those that ended after `since`."""
    agents = facts.agent_of_node
    for pod in live_pods(facts.pods):
        newest: dict[str, EventFact] = {}
        began: dict[str, float] = {}
        for event in facts.events_of(pod):
            image = image_of(event.message) if event.reason in _PULL_REASONS else None
            if image and event.last_at is not None:
                newest[image] = event
                if event.reason == "Pulling":
                    began[image] = event.last_at
        if newest:
            agent = agents.get(pod.node or "")
            yield from _pod_pulls(pod, newest, began, clock_skew(agent) if agent else 0.0, now, since)


def _pod_pulls(
    pod: PodFact, newest: dict[str, EventFact], began: dict[str, float], behind: float, now: float, since: float
) -> Iterable[PullTime]:
    """Pulls of one pod. Events carry the node's clock, which is `behind` ours."""
    for image, event in newest.items():
        at = (event.last_at or 0.0) + behind
        if event.reason == "Pulling" and _waits_for(pod, image):
            yield PullTime(pod, image, at, max(0.0, now - at))
        elif event.reason == "Pulled" and at >= since:
            seconds = duration_of(event.message or "")
            if seconds is None and image in began:
                seconds = at - behind - began[image]
            if seconds and (event.message or "").startswith("Successfully pulled"):
                yield PullTime(pod, image, at - seconds, seconds, at, size_of(event.message or ""))


def _waits_for(pod: PodFact, image: str) -> bool:
    """Whether a container still waits for an image; the event about its end may be lost."""
    names = {container.name for container in pod.containers if container.image == image}
    statuses = [status for status in pod.statuses if status.name in names]
    return not statuses or any(s.state in (None, "waiting") and s.reason in _WAITING_REASONS for s in statuses)


def image_of(message: str | None) -> str | None:
    """`x` from `Pulling image "x"`."""
    return (message or "").partition('image "')[2].partition('"')[0] or None


def duration_of(message: str) -> float | None:
    """Seconds of the pull alone, from `... in 1m2.5s (3m1s including waiting). ...`."""
    text = message.partition('" in ')[2].partition("(")[0].partition(" ")[0].rstrip(".")
    parts = _PART.findall(text) if len(text) <= _MAX_DURATION_CHARS else []
    return sum(float(amount) * _UNITS[unit] for amount, unit in parts) if parts else None


def size_of(message: str) -> int | None:
    """Image size from an event message (Kubernetes 1.29 and later)."""
    match = _SIZE.search(message)
    return int(match[1]) if match else None
