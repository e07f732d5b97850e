"""Which protection covers an image: the first that does, as a word. The agent looks again when it removes one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from monitor.cleanup.plan.references import References, name_forms
from monitor.cleanup.plan.select import Protection
from monitor.cleanup.policy import ImagePolicy
from monitor.facts.storage import ImageFact
from monitor.facts.workload import ContainerFact

PROTECTIONS = ("pinned", "in-use", "needed", "local-only", "too-young", "unknown", "refused-lately")
STOPPED = "exited"  # one that is created may run in a moment
_SANDBOX_IMAGES = ("pause", "pause-*")


@dataclass(frozen=True)
class ImageContext:
    """What an image is judged by: the policy, who needs what, and the containers of its runtime, by id and by name."""

    policy: ImagePolicy
    needs: References
    by_id: Mapping[str, ContainerFact]
    by_image: Mapping[str, tuple[ContainerFact, ...]]
    now: float


def image_context(
    policy: ImagePolicy, needs: References, containers: Iterable[ContainerFact], runtime: str, now: float
) -> ImageContext:
    """Given the containers of a node, return what the images of one runtime are judged by."""
    own = [each for each in containers if each.runtime == runtime]
    by_image: dict[str, list[ContainerFact]] = {}
    for container in own:
        for named in (container.image, container.image_id):
            for form in name_forms(named or ""):
                by_image.setdefault(form, []).append(container)
    return ImageContext(
        policy, needs, {each.id: each for each in own}, {form: tuple(found) for form, found in by_image.items()}, now
    )


def image_protection(image: ImageFact, around: ImageContext) -> Protection | None:
    """Given an image, return what protects it; None if nothing does."""
    known = names_of(image)
    return (
        _pinned(image, known, around.policy)
        or _in_use(image, known, around)
        or _needed(known, around.needs)
        or _local_only(image, around.policy)
        or _too_young(image, around)
    )


def names_of(image: ImageFact) -> frozenset[str]:
    """Given an image, return every form of every name that it has."""
    return frozenset().union(*(name_forms(name) for name in (image.id, *image.names, *image.digests)))


def _pinned(image: ImageFact, known: frozenset[str], policy: ImagePolicy) -> Protection | None:
    if image.pinned:
        return Protection("pinned", "runtime")
    for name in known:
        repository = name.partition("@")[0].rpartition("/")[2].partition(":")[0]
        if "/" in name and any(fnmatchcase(repository, pattern) for pattern in _SANDBOX_IMAGES):
            return Protection("pinned", "pause")
    every = (*image.names, *image.digests, image.id, *known)
    return next(
        (Protection("pinned", pin) for pin in policy.pins if any(fnmatchcase(name, pin) for name in every)), None
    )


def _in_use(image: ImageFact, known: frozenset[str], around: ImageContext) -> Protection | None:
    """Return who uses it. A container of which nothing else is known counts: it may be the newest."""
    strangers = [one for one in image.containers if one not in around.by_id]
    users = [around.by_id[one] for one in image.containers if one in around.by_id]
    users += [user for form in known for user in around.by_image.get(form, ())]
    counting = [user for user in users if user.state != STOPPED or around.policy.protect_stopped]
    if not counting and not strangers:
        return None
    names = sorted({_container_name(user) for user in counting}) or sorted(one[:12] for one in strangers)
    return Protection("in-use", names[0])


def _container_name(container: ContainerFact) -> str:
    if container.pod_name:
        return f"{container.namespace}/{container.pod_name}"
    return container.name or container.id[:12]


def _needed(known: frozenset[str], needs: References) -> Protection | None:
    who = needs.needed_by(sorted(known))
    return Protection("needed", who) if who is not None else None


def _local_only(image: ImageFact, policy: ImagePolicy) -> Protection | None:
    return Protection("local-only") if policy.protect_local and image.local else None


def _too_young(image: ImageFact, around: ImageContext) -> Protection | None:
    """Return that it is not known for long enough, or was used lately. One that nobody has dated is not touched."""
    if image.first_seen_at is None:
        return Protection("unknown")
    return Protection("too-young") if around.now - last_use(image) < around.policy.min_age else None


def last_use(image: ImageFact) -> float:
    """Return when it was last needed, as far as is known: one that was never used is as old as its arrival."""
    return max(image.first_seen_at or 0.0, image.last_used_at or 0.0)
