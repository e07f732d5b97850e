"""The pulls that fail right now, each with its cause: what the rules on images and on registries start from. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from monitor.detect.lib.pods import live_pods
from monitor.explain.image_pull import REASONS, Pull, PullCause, classify, registry_of
from monitor.facts.cluster_facts import World
from monitor.facts.kube import ContainerStatusFact, EventFact, PodFact

_CAUSE_PHRASES = (
    "failed to pull image",
    "failed to inspect image",
    "failed to apply default image tag",
    "is not present",
)
# What the registry and the way to it have no part in.
NON_REGISTRY_CAUSES = frozenset(
    {
        Pull.DISK_FULL,
        Pull.WRONG_ARCHITECTURE,
        Pull.UNAUTHORIZED,
        Pull.NOT_FOUND,
        Pull.DAMAGED_LAYER,
        Pull.BAD_NAME,
        Pull.NEVER_PULL,
    }
)


REGISTRY_CAUSES = tuple(cause.value for cause in Pull if cause not in NON_REGISTRY_CAUSES)
STARTING_REASONS = (None, "ContainerCreating", "PodInitializing")
PROGRESS_REASONS = ("Pulled", "Created", "Started", "Pulling")

# A pull that fails says the same at every look, to every rule.
_classified = lru_cache(maxsize=8192)(classify)
_DOCKER_HUB = ("registry-1.docker.io", "index.docker.io", "registry.hub.docker.com")


@dataclass(frozen=True, slots=True)
class FailedPull:
    """A container that waits for an image which could not be pulled. `event` is the newest that tells about it."""

    pod: PodFact
    container: str
    image: str
    reason: str
    diagnosis: PullCause
    event: EventFact | None

    @property
    def key(self) -> str:
        """What tells it from other pulls."""
        return f"{self.pod.uid}|{self.image}"

    @property
    def has_cause(self) -> bool:
        """Whether the cause was said, and not only that there is one."""
        return self.diagnosis.cause is not Pull.UNKNOWN and not self.diagnosis.runtime_down

    @property
    def registry(self) -> str:
        return canonical_registry(registry_of(self.image))


def canonical_registry(host: str) -> str:
    """Given a registry's host, return the one name by which it is known, whether a pull or a probe names it."""
    host = host.lower().removesuffix(":443")
    return "docker.io" if host in _DOCKER_HUB else host


def failed_pulls(facts: World) -> list[FailedPull]:
    """Return the pulls that fail, once for each pod and image."""
    found: dict[tuple[str, str], FailedPull] = {}
    for pod in live_pods(facts.pods):
        for status in pod.statuses:
            if status.state == "waiting" and (status.reason in REASONS or _just_failed(pod, status, facts)):
                pull = _failed_pull(pod, status, facts)
                found.setdefault((pod.uid, pull.image), pull)
    return list(found.values())


def with_known_cause(pull: FailedPull, said: object) -> FailedPull:
    """Given a pull and what was said of it before, return it with that cause where it has none now."""
    if pull.has_cause or pull.diagnosis.runtime_down or not isinstance(said, str):
        return pull
    return replace(pull, diagnosis=_classified(pull.reason, said, pull.image))


def _just_failed(pod: PodFact, status: ContainerStatusFact, facts: World) -> bool:
    """Return whether the kubelet has told of a failure that the pod does not show yet.

    The event comes at once, the pod's state up to a second later. A pull that worked since then ends it.
    """
    if status.reason not in STARTING_REASONS:
        return False
    for event in reversed(facts.events_of(pod)):
        if event.container in (None, status.name) and event.reason in PROGRESS_REASONS:
            return False
        # It says "Error: ErrImagePull" right after.
        if event.container == status.name and "failed to pull image" in (event.message or "").lower():
            return True
    return False


def _failed_pull(pod: PodFact, status: ContainerStatusFact, facts: World) -> FailedPull:
    """Return why it fails: the container's own message, if that tells, else the newest event that does."""
    image = next((each.image for each in pod.containers if each.name == status.name), None)
    found = _classified(status.reason, status.message, image)
    event = next(_events_with_cause(facts.events_of(pod), status.name, image), None)
    if found.cause is Pull.UNKNOWN and not found.runtime_down and event is not None:
        found = _classified(status.reason, event.message, image)
    return FailedPull(pod, status.name, image or found.image or "?", status.reason or "?", found, event)


def _events_with_cause(events: tuple[EventFact, ...], container: str, image: str | None) -> Iterator[EventFact]:
    """Yield the events that say why this image was not pulled, newest first. Not every one names its container."""
    for event in reversed(events):
        message = (event.message or "").lower()
        about = event.container == container or (event.container is None and (image or "").lower() in message)
        if about and any(word in message for word in _CAUSE_PHRASES):
            yield event
