"""The protection of an image: the first that applies. The agent checks again before it removes an image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from monitor.base.text import shortened_prefix
from monitor.cleanup.plan.references import References
from monitor.cleanup.plan.select import Protection
from monitor.cleanup.policy import ImagePolicy
from monitor.facts.image_names import is_sandbox_image, matching_pin, reference_keys
from monitor.facts.storage import ImageFact
from monitor.facts.workload import ContainerFact

PROTECTIONS = ("pinned", "in-use", "needed", "local-only", "too-young", "unknown", "refused-lately")
MAX_NAMES_CHARS = 1 << 16  # of all names of an image
STOPPED = "exited"  # a container in state `created` may be about to start


@dataclass(frozen=True)
class ImageContext:
    """Policy, references, and the containers of one runtime by id and by image name."""

    policy: ImagePolicy
    references: References
    by_id: Mapping[str, ContainerFact]
    by_image: Mapping[str, tuple[ContainerFact, ...]]
    now: float


def image_context(
    policy: ImagePolicy, references: References, containers: Iterable[ContainerFact], runtime: str, now: float
) -> ImageContext:
    """Context for the images of one runtime of a node."""
    by_id = {container.id: container for container in containers if container.runtime == runtime}
    by_image: dict[str, list[ContainerFact]] = {}
    for container in by_id.values():
        for name in (container.image, container.image_id):
            for form in reference_keys(name or ""):
                by_image.setdefault(form, []).append(container)
    return ImageContext(policy, references, by_id, {form: tuple(users) for form, users in by_image.items()}, now)


def image_protection(image: ImageFact, context: ImageContext) -> Protection | None:
    """The protection of an image; None if it is unprotected."""
    forms = names_of(image)
    return (
        _cut_name(image)
        or _pinned(image, context.policy)
        or _in_use(image, forms, context)
        or _needed(forms, context.references)
        or _local_only(image, context.policy)
        or _too_young(image, context)
    )


def _cut_name(image: ImageFact) -> Protection | None:
    """An image with a name that was too long, or with absurdly many: whether anything refers to it is unknown."""
    names = (*image.names, *image.digests)
    absurd = sum(map(len, names)) > MAX_NAMES_CHARS or any(shortened_prefix(name) is not None for name in names)
    return Protection("unknown") if absurd else None


def names_of(image: ImageFact) -> frozenset[str]:
    """All forms of all names of an image."""
    return reference_keys(image.id, *image.names, *image.digests)


def _pinned(image: ImageFact, policy: ImagePolicy) -> Protection | None:
    if image.pinned:
        return Protection("pinned", "runtime")
    if any(is_sandbox_image(name) for name in (*image.names, *image.digests)):
        return Protection("pinned", "pause")
    pin = matching_pin((*image.names, *image.digests, image.id), policy.pins)
    return Protection("pinned", pin) if pin is not None else None


def _in_use(image: ImageFact, forms: frozenset[str], context: ImageContext) -> Protection | None:
    """In use by a container. A container that is not in the snapshot counts: it may have just started."""
    unlisted = [container for container in image.containers if container not in context.by_id]
    users = [context.by_id[container] for container in image.containers if container in context.by_id]
    users += [user for form in forms for user in context.by_image.get(form, ())]
    protecting = [user for user in users if user.state != STOPPED or context.policy.protect_stopped]
    if not protecting and not unlisted:
        return None
    names = sorted({_container_name(user) for user in protecting}) or sorted(container[:12] for container in unlisted)
    return Protection("in-use", names[0])


def _container_name(container: ContainerFact) -> str:
    if container.pod_name:
        return f"{container.namespace}/{container.pod_name}"
    return container.name or container.id[:12]


def _needed(forms: frozenset[str], references: References) -> Protection | None:
    referrer = references.referrer(sorted(forms))
    return Protection("needed", referrer) if referrer is not None else None


def _local_only(image: ImageFact, policy: ImagePolicy) -> Protection | None:
    return Protection("local-only") if policy.protect_local and image.local else None


def _too_young(image: ImageFact, context: ImageContext) -> Protection | None:
    """First seen or used too recently; an image of unknown age is kept."""
    if image.first_seen_at is None:
        return Protection("unknown")
    return Protection("too-young") if context.now - last_use(image) < context.policy.min_age else None


def last_use(image: ImageFact) -> float:
    """When an image was last used, or first seen if it never was."""
    return max(image.first_seen_at or 0.0, image.last_used_at or 0.0)
