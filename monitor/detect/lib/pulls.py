"""Image pulls that fail now, with their causes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from monitor.detect.lib.pods import is_live
from monitor.explain.error_chain.causes import PullFailureCause
from monitor.explain.error_chain.hosts import registry_of
from monitor.explain.image_pull import PULL_REASONS, PullFailure, classify
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import ContainerStatusFact, EventFact, PodFact

_CAUSE_PHRASES = (
    "failed to pull image",
    "failed to inspect image",
    "failed to apply default image tag",
    "is not present",
)
# Causes other than the registry and the connection to it.
NON_REGISTRY_CAUSES = frozenset(
    {
        PullFailureCause.DISK_FULL,
        PullFailureCause.WRONG_ARCHITECTURE,
        PullFailureCause.UNAUTHORIZED,
        PullFailureCause.TOKEN_EXPIRED,
        PullFailureCause.CREDENTIAL_HELPER,
        PullFailureCause.POLICY,
        PullFailureCause.KUBELET_LIMIT,
        PullFailureCause.PROXY,
        PullFailureCause.MIRROR,
        PullFailureCause.NOT_FOUND,
        PullFailureCause.BAD_IMAGE,
        PullFailureCause.OLD_FORMAT,
        PullFailureCause.DAMAGED_LAYER,
        PullFailureCause.CORRUPT_LAYER,
        PullFailureCause.NODE_STORE,
        PullFailureCause.NODE_DISK,
        PullFailureCause.RUNTIME_DOWN,
        PullFailureCause.SNAPSHOTTER,
        PullFailureCause.BAD_NAME,
        PullFailureCause.NEVER_PULL,
    }
)


REGISTRY_CAUSES = tuple(cause.value for cause in PullFailureCause if cause not in NON_REGISTRY_CAUSES)
STARTING_REASONS = (None, "ContainerCreating", "PodInitializing")
PROGRESS_REASONS = ("Pulled", "Created", "Started", "Pulling")

# A failing pull has the same message in every evaluation and rule.
classified = lru_cache(maxsize=8192)(classify)
_DOCKER_HUB = ("registry-1.docker.io", "index.docker.io", "registry.hub.docker.com")


@dataclass(frozen=True, slots=True)
class FailedPull:
    """A container waiting for an image that failed to pull. `event` is the newest one that states the cause."""

    pod: PodFact
    container: str
    image: str
    reason: str
    diagnosis: PullFailure
    event: EventFact | None

    @property
    def has_cause(self) -> bool:
        """Whether the cause is known."""
        return self.diagnosis.cause not in (PullFailureCause.UNKNOWN, PullFailureCause.RUNTIME_DOWN)

    @property
    def registry(self) -> str:
        return canonical_registry(registry_of(self.image))


def canonical_registry(host: str) -> str:
    """One name per registry, whether a pull or a probe names it."""
    host = host.lower().removesuffix(":443")
    return "docker.io" if host in _DOCKER_HUB else host


def failed_pulls(pod: PodFact, facts: ClusterFacts) -> list[FailedPull]:
    """Failing pulls of a pod, one per image."""
    pulls: dict[str, FailedPull] = {}
    for status in pod.statuses if is_live(pod) else ():
        if status.state == "waiting" and (status.reason in PULL_REASONS or _just_failed(pod, status, facts)):
            pull = _failed_pull(pod, status, facts)
            pulls.setdefault(pull.image, pull)
    return list(pulls.values())


def with_known_cause(pull: FailedPull, message: object) -> FailedPull:
    """`pull`, with the cause of an earlier message if the current one states none."""
    if pull.diagnosis.cause is not PullFailureCause.UNKNOWN or not isinstance(message, str):
        return pull
    return replace(pull, diagnosis=classified(pull.reason, message, pull.image))


def _just_failed(pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts) -> bool:
    """Whether an event reports a failure that the pod does not show yet.

    The event arrives at once, the pod's state up to a second later. A later successful pull overrides it.
    """
    if status.reason not in STARTING_REASONS:
        return False
    for event in reversed(facts.events_of(pod)):
        if event.container in (None, status.name) and event.reason in PROGRESS_REASONS:
            return False
        # The event "Error: ErrImagePull" follows it.
        if event.container == status.name and "failed to pull image" in (event.message or "").lower():
            return True
    return False


def _failed_pull(pod: PodFact, status: ContainerStatusFact, facts: ClusterFacts) -> FailedPull:
    """The failed pull, with the cause from the container's message or else from the newest event stating one."""
    image = next((container.image for container in pod.containers if container.name == status.name), None)
    diagnosis = classified(status.reason, status.message, image)
    event = next(_events_with_cause(facts.events_of(pod), status.name, image), None)
    if diagnosis.cause is PullFailureCause.UNKNOWN and event is not None:
        diagnosis = classified(status.reason, event.message, image)
    return FailedPull(pod, status.name, image or diagnosis.image or "?", status.reason or "?", diagnosis, event)


def _events_with_cause(events: tuple[EventFact, ...], container: str, image: str | None) -> Iterator[EventFact]:
    """Events that state why this image was not pulled, newest first. Not every event names its container."""
    for event in reversed(events):
        message = (event.message or "").lower()
        about = event.container == container or (event.container is None and (image or "").lower() in message)
        if about and any(word in message for word in _CAUSE_PHRASES):
            yield event
