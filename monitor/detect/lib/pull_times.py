"""Duration of image pulls in progress and done, from the kubelet's events."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

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

    image: str
    began_at: float
    seconds: float
    ended_at: float | None = None
    size_bytes: int | None = None


def pull_times(pod: PodFact, facts: ClusterFacts, now: float) -> Iterable[PullTime]:
    """Pulls of a pod, in progress or finished. Events carry the clock of its node, which may be behind ours."""
    newest: dict[str, EventFact] = {}
    began: dict[str, float] = {}
    for event in facts.events_of(pod):
        image = image_of(event.message) if event.reason in _PULL_REASONS else None
        if image and event.last_at is not None:
            newest[image] = event
            if event.reason == "Pulling":
                began[image] = event.last_at
    behind = clock_skew(facts.agent_of_node.get(pod.node or "")) if newest else 0.0
    for image, event in newest.items():
        said_at, message = event.last_at or 0.0, event.message or ""
        at = said_at + behind
        if event.reason == "Pulling" and _waits_for(pod, image):
            yield PullTime(image, at, max(0.0, now - at))
        elif event.reason == "Pulled" and message.startswith("Successfully pulled"):
            measured = duration_of(message)
            seconds = measured if measured is not None else said_at - began.get(image, said_at)
            if seconds > 0:
                yield PullTime(image, at - seconds, seconds, at, size_of(message))


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
