"""Decides whether an image is protected from removal, from the node's current state.

Missing information protects the image as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from monitor.agent.actions.outcome import ActionRefusal
from monitor.facts import ContainerFact, ImageFact
from monitor.facts.actions import RemoveImage
from monitor.facts.image_names import LABEL_PREFIX, is_sandbox_image, matching_label_pin, matching_pin, reference_keys

# A pod that has a sandbox but no container yet is about to use an image, and which one is unknown here.
POD_START_SECONDS = 60.0
_STOPPED = frozenset({"exited"})


def removal_refusal(
    action: RemoveImage,
    image: ImageFact | None,
    history: ImageFact | None,
    containers: Sequence[ContainerFact],
    now: float,
) -> ActionRefusal | None:
    """What protects an image, or None.

    `image` and `containers` are current; `history` is the same image as collected: first seen and last used at.
    """
    if image is None:
        return ActionRefusal("gone", f"{action.runtime} has no image {action.image_id}")
    return (
        _changed(action, image)
        or _used(action, image, containers)
        or _needed(action, image)
        or _pinned(action, image)
        or _local_only(action, image)
        or _too_young(action, image, history, containers, now)
        or _pod_starting(containers, now)  # last, because it is temporary: the daemon retries
    )


def in_use_refusal(
    action: RemoveImage, image: ImageFact, containers: Sequence[ContainerFact], now: float
) -> ActionRefusal | None:
    """The container that uses the image, the starting pod that may use it, or None."""
    return _used(action, image, containers) or _pod_starting(containers, now)


def users(image: ImageFact, containers: Iterable[ContainerFact]) -> list[ContainerFact]:
    """Containers that use an image by its id or by any of its names or digests."""
    image_keys = reference_keys(image.id, *image.names, *image.digests)
    return [
        container
        for container in containers
        if container.id in image.containers
        or any(image_keys & reference_keys(name) for name in (container.image_id, container.image) if name)
    ]


def label_pin_refusal(labels: dict[str, str], action: RemoveImage) -> ActionRefusal | None:
    """The pin by label that protects an image with these labels, or None."""
    pin = matching_label_pin(labels, action.pins)
    return ActionRefusal("pinned", f"pinned by {pin}") if pin else None


def has_label_pins(action: RemoveImage) -> bool:
    """Whether any pin is by label: only then the labels have to be read."""
    return any(pin.startswith(LABEL_PREFIX) for pin in action.pins)


def _changed(action: RemoveImage, image: ImageFact) -> ActionRefusal | None:
    new = reference_keys(*image.names) - reference_keys(*action.names)
    return ActionRefusal("changed", f"tagged as {min(new)} after the plan was made") if new else None


def _needed(action: RemoveImage, image: ImageFact) -> ActionRefusal | None:
    needed = reference_keys(image.id, *image.names, *image.digests) & reference_keys(*action.keep_names)
    return ActionRefusal("needed", f"the cluster references {min(needed)}") if needed else None


def _pinned(action: RemoveImage, image: ImageFact) -> ActionRefusal | None:
    if image.pinned or any(is_sandbox_image(name) for name in (*image.names, *image.digests)):
        return ActionRefusal("pinned", "pinned by the runtime, or the pause image of pods")
    pin = matching_pin((image.id, *image.names, *image.digests), action.pins)
    return ActionRefusal("pinned", f"pinned by {pin}") if pin else None


def _local_only(action: RemoveImage, image: ImageFact) -> ActionRefusal | None:
    if action.protect_local and image.local:
        return ActionRefusal("local-only", "not known to be in any registry: it could not be pulled again")
    return None


def _too_young(
    action: RemoveImage, image: ImageFact, history: ImageFact | None, containers: Iterable[ContainerFact], now: float
) -> ActionRefusal | None:
    if history is None or history.first_seen_at is None:
        return ActionRefusal("unknown", "the age of the image is not known yet")
    times = [history.first_seen_at, history.last_used_at]
    for container in users(image, containers):
        times += [container.finished_at, container.started_at, container.created_at]
    age = now - max(at for at in times if at is not None)
    if age < action.min_age_seconds:
        return ActionRefusal("too-young", f"pulled or last used {age:.0f} s ago")
    return None


def _used(action: RemoveImage, image: ImageFact, containers: Sequence[ContainerFact]) -> ActionRefusal | None:
    for container in users(image, containers):
        if action.protect_stopped or container.state not in _STOPPED:
            return ActionRefusal("in-use", f"used by container {container.name or container.id} ({container.state})")
    return None


def _pod_starting(containers: Sequence[ContainerFact], now: float) -> ActionRefusal | None:
    pod = next(_starting_sandboxes(containers, now), None)
    return ActionRefusal("starting", f"pod {pod.namespace}/{pod.pod_name} is starting and may use it") if pod else None


def _starting_sandboxes(containers: Sequence[ContainerFact], now: float) -> Iterator[ContainerFact]:
    with_containers = {container.pod_uid for container in containers if not container.sandbox}
    return (
        container
        for container in containers
        if container.sandbox
        and container.state == "running"
        and container.pod_uid not in with_containers
        and (container.created_at is None or now - container.created_at < POD_START_SECONDS)
    )
