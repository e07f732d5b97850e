"""What protects an image from being removed, as the node sees it at that moment. Pure.

Whatever cannot be known protects too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from monitor.agent.actions.names import (
    LABEL_PREFIX,
    all_reference_keys,
    is_sandbox_image,
    matching_label_pin,
    matching_pin,
    reference_keys,
)
from monitor.agent.actions.outcome import ActionRefusal
from monitor.facts import ContainerFact, ImageFact
from monitor.facts.actions import RemoveImage

# A pod that has its sandbox and no container yet is about to name an image, and nobody here knows which.
POD_START_SECONDS = 60.0
_STOPPED = frozenset({"exited"})


def removal_refusal(
    action: RemoveImage,
    image: ImageFact | None,
    seen: ImageFact | None,
    containers: Sequence[ContainerFact],
    now: float,
) -> ActionRefusal | None:
    """Given an image and all containers as they are now, return what protects the image, or None.

    `seen` is the same image as the agent remembers it: since when it is here, when it was last used.
    """
    if image is None:
        return ActionRefusal("gone", f"{action.runtime} has no image {action.image_id}")
    return (
        _changed(action, image)
        or _used(action, image, containers)
        or _needed(action, image)
        or _pinned(action, image)
        or _local_only(action, image)
        or _young(action, image, seen, containers, now)
        or _may_be_named(containers, now)  # the last, because it passes: whoever asked will ask again
    )


def in_use_refusal(
    action: RemoveImage, image: ImageFact, containers: Sequence[ContainerFact], now: float
) -> ActionRefusal | None:
    """Return which container uses the image, or which pod may be about to, or None."""
    return _used(action, image, containers) or _may_be_named(containers, now)


def users(image: ImageFact, containers: Iterable[ContainerFact]) -> list[ContainerFact]:
    """Given an image, return the containers that use it: by its id, or by any name that it has or had until now."""
    known = all_reference_keys((image.id, *image.names, *image.digests))
    return [
        container
        for container in containers
        if container.id in image.containers
        or any(known & reference_keys(name) for name in (container.image_id, container.image) if name)
    ]


def label_pin_refusal(labels: dict[str, str], action: RemoveImage) -> ActionRefusal | None:
    """Given the labels of an image, return the pin among them, or None."""
    pin = matching_label_pin(labels, action.pins)
    return ActionRefusal("pinned", f"pinned by {pin}") if pin else None


def has_label_pins(action: RemoveImage) -> bool:
    """Return whether a pin is by label: only then the labels have to be asked for."""
    return any(pin.startswith(LABEL_PREFIX) for pin in action.pins)


def _changed(action: RemoveImage, image: ImageFact) -> ActionRefusal | None:
    new = all_reference_keys(image.names) - all_reference_keys(action.names)
    return ActionRefusal("changed", f"it has got the name {min(new)} since the plan was made") if new else None


def _needed(action: RemoveImage, image: ImageFact) -> ActionRefusal | None:
    needed = all_reference_keys((image.id, *image.names, *image.digests)) & all_reference_keys(action.keep_names)
    return ActionRefusal("needed", f"the cluster names {min(needed)}") if needed else None


def _pinned(action: RemoveImage, image: ImageFact) -> ActionRefusal | None:
    if image.pinned or any(is_sandbox_image(name) for name in (*image.names, *image.digests)):
        return ActionRefusal("pinned", "pods do not start without it, or the runtime says so")
    pin = matching_pin((image.id, *image.names, *image.digests), action.pins)
    return ActionRefusal("pinned", f"pinned by {pin}") if pin else None


def _local_only(action: RemoveImage, image: ImageFact) -> ActionRefusal | None:
    if action.protect_local and image.local:
        return ActionRefusal("local-only", "no registry is known to have it: it could not be pulled again")
    return None


def _young(
    action: RemoveImage, image: ImageFact, seen: ImageFact | None, containers: Iterable[ContainerFact], now: float
) -> ActionRefusal | None:
    if seen is None or seen.first_seen_at is None:
        return ActionRefusal("unknown", "it is not known yet since when the image is here")
    times = [seen.first_seen_at, seen.last_used_at]
    times += [at for one in users(image, containers) for at in (one.finished_at, one.started_at, one.created_at)]
    age = now - max(at for at in times if at is not None)
    if age < action.min_age_seconds:
        return ActionRefusal("too-young", f"it came or was used {age:.0f} s ago")
    return None


def _used(action: RemoveImage, image: ImageFact, containers: Sequence[ContainerFact]) -> ActionRefusal | None:
    for container in users(image, containers):
        if action.protect_stopped or container.state not in _STOPPED:
            return ActionRefusal("in-use", f"container {container.name or container.id} ({container.state}) uses it")
    return None


def _may_be_named(containers: Sequence[ContainerFact], now: float) -> ActionRefusal | None:
    pod = next(_starting(containers, now), None)
    return ActionRefusal("starting", f"pod {pod.namespace}/{pod.pod_name} is starting and may name it") if pod else None


def _starting(containers: Sequence[ContainerFact], now: float) -> Iterator[ContainerFact]:
    begun = {one.pod_uid for one in containers if not one.sandbox}
    return (
        one
        for one in containers
        if one.sandbox
        and one.state == "running"
        and one.pod_uid not in begun
        and (one.created_at is None or now - one.created_at < POD_START_SECONDS)
    )
