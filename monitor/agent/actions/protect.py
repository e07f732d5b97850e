"""What protects an image from being removed, as the node sees it at that moment. Pure.

Whatever cannot be known protects too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from monitor.agent.actions.names import LABEL, all_keys, is_sandbox, keys, labelled, pinned_by
from monitor.agent.actions.outcome import Refusal
from monitor.facts import ContainerFact, ImageFact
from monitor.facts.actions import RemoveImage

# A pod that has its sandbox and no container yet is about to name an image, and nobody here knows which.
STARTING = 60.0
_STOPPED = frozenset({"exited"})


def refusal(
    action: RemoveImage,
    image: ImageFact | None,
    seen: ImageFact | None,
    containers: Sequence[ContainerFact],
    now: float,
) -> Refusal | None:
    """Given an image and all containers as they are now, return what protects the image, or None.

    `seen` is the same image as the agent remembers it: since when it is here, when it was last used.
    """
    if image is None:
        return Refusal("gone", f"{action.runtime} has no image {action.image_id}")
    return (
        _changed(action, image)
        or _used(action, image, containers)
        or _needed(action, image)
        or _pinned(action, image)
        or _local_only(action, image)
        or _young(action, image, seen, containers, now)
        or _may_be_named(containers, now)  # the last, because it passes: whoever asked will ask again
    )


def in_use(action: RemoveImage, image: ImageFact, containers: Sequence[ContainerFact], now: float) -> Refusal | None:
    """Return which container uses the image, or which pod may be about to, or None."""
    return _used(action, image, containers) or _may_be_named(containers, now)


def users(image: ImageFact, containers: Iterable[ContainerFact]) -> list[ContainerFact]:
    """Given an image, return the containers that use it: by its id, or by any name that it has or had until now."""
    known = all_keys((image.id, *image.names, *image.digests))
    return [
        container
        for container in containers
        if container.id in image.containers
        or any(known & keys(name) for name in (container.image_id, container.image) if name)
    ]


def labels_protect(labels: dict[str, str], action: RemoveImage) -> Refusal | None:
    """Given the labels of an image, return the pin among them, or None."""
    pin = labelled(labels, action.pins)
    return Refusal("pinned", f"pinned by {pin}") if pin else None


def asks_for_labels(action: RemoveImage) -> bool:
    """Return whether a pin is by label: only then the labels have to be asked for."""
    return any(pin.startswith(LABEL) for pin in action.pins)


def _changed(action: RemoveImage, image: ImageFact) -> Refusal | None:
    new = all_keys(image.names) - all_keys(action.names)
    return Refusal("changed", f"it has got the name {min(new)} since the plan was made") if new else None


def _needed(action: RemoveImage, image: ImageFact) -> Refusal | None:
    needed = all_keys((image.id, *image.names, *image.digests)) & all_keys(action.keep_names)
    return Refusal("needed", f"the cluster names {min(needed)}") if needed else None


def _pinned(action: RemoveImage, image: ImageFact) -> Refusal | None:
    if image.pinned or any(is_sandbox(name) for name in (*image.names, *image.digests)):
        return Refusal("pinned", "pods do not start without it, or the runtime says so")
    pin = pinned_by((image.id, *image.names, *image.digests), action.pins)
    return Refusal("pinned", f"pinned by {pin}") if pin else None


def _local_only(action: RemoveImage, image: ImageFact) -> Refusal | None:
    if action.protect_local and image.local:
        return Refusal("local-only", "no registry is known to have it: it could not be pulled again")
    return None


def _young(
    action: RemoveImage, image: ImageFact, seen: ImageFact | None, containers: Iterable[ContainerFact], now: float
) -> Refusal | None:
    if seen is None or seen.first_seen_at is None:
        return Refusal("unknown", "it is not known yet since when the image is here")
    times = [seen.first_seen_at, seen.last_used_at]
    times += [at for one in users(image, containers) for at in (one.finished_at, one.started_at, one.created_at)]
    age = now - max(at for at in times if at is not None)
    if age < action.min_age_seconds:
        return Refusal("too-young", f"it came or was used {age:.0f} s ago")
    return None


def _used(action: RemoveImage, image: ImageFact, containers: Sequence[ContainerFact]) -> Refusal | None:
    for container in users(image, containers):
        if action.protect_stopped or container.state not in _STOPPED:
            return Refusal("in-use", f"container {container.name or container.id} ({container.state}) uses it")
    return None


def _may_be_named(containers: Sequence[ContainerFact], now: float) -> Refusal | None:
    pod = next(_starting(containers, now), None)
    return Refusal("starting", f"pod {pod.namespace}/{pod.pod_name} is starting and may name it") if pod else None


def _starting(containers: Sequence[ContainerFact], now: float) -> Iterator[ContainerFact]:
    begun = {one.pod_uid for one in containers if not one.sandbox}
    return (
        one
        for one in containers
        if one.sandbox
        and one.state == "running"
        and one.pod_uid not in begun
        and (one.created_at is None or now - one.created_at < STARTING)
    )
