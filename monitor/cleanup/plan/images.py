"""Plan for the images of a node: build cache, then untagged images, then the least recently used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from monitor.cleanup.model import CleanupPlan, Item, KeptItem, Risk
from monitor.cleanup.plan.image_protection import ImageContext, image_context, image_protection, last_use, names_of
from monitor.cleanup.plan.references import References
from monitor.cleanup.plan.select import Candidate, PlanSubject, Selection, make_plan, refuse, skip_refused
from monitor.cleanup.plan.watermarks import below_kubelet, effective_marks, is_stale, kubelet_high_ratio, needed_bytes
from monitor.cleanup.policy import KUBELET_HIGH_RATIO, ImagePolicy
from monitor.detect.lib.storage import disk_containing, used_ratio
from monitor.facts.actions import PruneBuildCache, RemoveImage
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact, ImageCacheFact, ImageFact, RuntimeUsageFact
from monitor.facts.text import Text, Value
from monitor.facts.workload import ContainerFact


@dataclass(frozen=True)
class _RuntimePlanning:
    """Inputs for the images of one runtime."""

    subject: PlanSubject
    policy: ImagePolicy
    cache: ImageCacheFact
    context: ImageContext


def plan_images(
    policy: ImagePolicy,
    snapshot: NodeSnapshot,
    references: References,
    now: float,
    refused: frozenset[str] = frozenset(),
) -> CleanupPlan:
    """Plan for the images of a node. `refused` are the ids of items that its agent refused lately."""
    warnings = image_warnings(policy, kubelet_high_ratio(snapshot, runtime_disk(snapshot)))
    return msgspec.structs.replace(_plan(policy, snapshot, references, now, refused), warnings=warnings)


def _plan(
    policy: ImagePolicy, snapshot: NodeSnapshot, references: References, now: float, refused: frozenset[str]
) -> CleanupPlan:
    subject = PlanSubject(policy, now, snapshot.node)
    if references.unknown:
        return refuse(subject, "needs-unknown", kinds=", ".join(references.unknown))
    if is_stale(snapshot, now):
        return refuse(subject, "stale", node=snapshot.node, seconds=abs(now - snapshot.at))
    images, containers = snapshot.images, snapshot.containers
    if images is None or containers is None:
        return refuse(subject, "images-unknown", node=snapshot.node)
    disk = runtime_disk(snapshot)
    low = effective_marks(policy.when, snapshot, disk).low
    needed = needed_bytes(disk, low)
    if low is not None and needed is None:
        return refuse(subject, "disk-unknown", node=snapshot.node)
    subject = PlanSubject(policy, now, snapshot.node, needed)
    kept: list[KeptItem] = []
    caches = [cache for cache in images if needed is None or _is_on(cache, disk, snapshot)]
    candidates = list(_candidates(subject, policy, snapshot, (caches, containers, references), kept))
    selection = Selection(policy.caps)
    selection.add(skip_refused(candidates, refused, kept), needed)
    return make_plan(subject, selection, kept)


def image_warnings(policy: ImagePolicy, kubelet: float = KUBELET_HIGH_RATIO) -> tuple[Text, ...]:
    """Warning if the kubelet removes images before the policy's high-water mark is reached."""
    high = below_kubelet(policy.when, kubelet).high
    if high is None or high < kubelet:
        return ()
    return (Text(key="cleanup.kubelet-first", values={"high": high, "kubelet": kubelet}),)


def runtime_disk(snapshot: NodeSnapshot) -> DiskFact | None:
    """Disk that holds the images: the fullest, if several runtimes use several disks."""
    disks = [disk for cache in snapshot.images or () if (disk := _cache_disk(cache, snapshot)) is not None]
    return max(disks, key=lambda disk: used_ratio(disk) or 0.0, default=None)


def _cache_disk(cache: ImageCacheFact, snapshot: NodeSnapshot) -> DiskFact | None:
    """Disk of a runtime's root. If only one disk serves runtimes it is that one, whatever links the root has."""
    runtime_disks = [disk for disk in snapshot.disk or () if "runtime" in disk.roles]
    if len(runtime_disks) == 1 or cache.root is None:
        return runtime_disks[0] if len(runtime_disks) == 1 else None
    return disk_containing(cache.root, snapshot.disk or ())


def _is_on(cache: ImageCacheFact, disk: DiskFact | None, snapshot: NodeSnapshot) -> bool:
    cache_disk = _cache_disk(cache, snapshot)
    return cache_disk is not None and disk is not None and cache_disk.mount == disk.mount


def _candidates(
    subject: PlanSubject,
    policy: ImagePolicy,
    snapshot: NodeSnapshot,
    facts: tuple[Sequence[ImageCacheFact], Sequence[ContainerFact], References],
    kept: list[KeptItem],
) -> Iterator[Candidate]:
    """Candidates in order of removal. Protected images are added to `kept`."""
    caches, containers, references = facts
    runtimes = {cache.runtime for cache in caches}
    usages = [usage for usage in snapshot.runtime_usage or () if usage.runtime in runtimes]
    yield from _build_caches(subject, policy, usages)
    unprotected: list[tuple[_RuntimePlanning, ImageFact]] = []
    for cache in caches:
        context = image_context(policy, references, containers, cache.runtime, subject.now)
        planning = _RuntimePlanning(subject, policy, cache, context)
        unprotected += [(planning, image) for image in _unprotected(planning, kept)]
    unprotected.sort(key=lambda pair: (bool(pair[1].names), last_use(pair[1]), pair[1].id))
    freed = {cache.runtime: FreedLayers(cache) for cache in caches}
    for planning, image in unprotected:
        yield Candidate(_item(planning, image), image.size_bytes, partial(freed[planning.cache.runtime].remove, image))


def _build_caches(subject: PlanSubject, policy: ImagePolicy, usages: Iterable[RuntimeUsageFact]) -> Iterator[Candidate]:
    """Build caches. Only the engine knows how much of one is old enough."""
    for usage in usages:
        size = usage.build_cache_reclaimable_bytes
        if not size:
            continue
        item = Item(
            id=f"build-cache/{subject.node}/{usage.runtime}",
            name=f"{usage.runtime} build cache",
            why=Text(key="cleanup.why.build-cache", values={"bytes": size, "seconds": policy.build_cache_unused}),
            risk=Risk.LOW,
            node=subject.node,
            not_before=subject.now,
            act=PruneBuildCache(runtime=usage.runtime, unused_seconds=policy.build_cache_unused),
        )
        yield Candidate(item, size)


def _unprotected(planning: _RuntimePlanning, kept: list[KeptItem]) -> Iterator[ImageFact]:
    for image in planning.cache.images:
        protection = image_protection(image, planning.context)
        if protection is None:
            yield image
            continue
        kept.append(protection.kept_item(display_name(image), planning.subject.node, image.size_bytes))


def display_name(image: ImageFact) -> str:
    """First name of an image, or its short id."""
    return min(image.names, default=image.id.removeprefix("sha256:")[:12])


def _item(planning: _RuntimePlanning, image: ImageFact) -> Item:
    policy, subject, used_at = planning.policy, planning.subject, image.last_used_at
    values: dict[str, Value] = {"bytes": image.size_bytes or 0, "seconds": max(0.0, subject.now - last_use(image))}
    why = "dangling" if not image.names else "unused" if used_at is not None else "never-used"
    return Item(
        id=f"image/{subject.node}/{planning.cache.runtime}/{image.id}",
        name=display_name(image),
        why=Text(key=f"cleanup.why.{why}", values=values),
        risk=Risk.LOW,
        node=subject.node,
        last_used_at=used_at,
        not_before=subject.now,
        act=RemoveImage(
            runtime=planning.cache.runtime,
            image_id=image.id,
            names=image.names,
            keep_names=planning.context.references.same_repository(names_of(image)),
            pins=policy.pins,
            min_age_seconds=policy.min_age,
            protect_stopped=policy.protect_stopped,
            protect_local=policy.protect_local,
        ),
    )


class FreedLayers:
    """Bytes that are guaranteed to be freed by removing images, with shared layers counted once.

    A layer goes with the last image that has it. So the guaranteed size is at least the unique bytes of the removed
    images, and at least the total less the full sizes of the remaining images. It is unknown for runtimes that do not
    report shared sizes (CRI reports the sizes of compressed layers).
    """

    def __init__(self, cache: ImageCacheFact) -> None:
        self._total = cache.total_bytes
        sizes = [image.size_bytes for image in cache.images]
        unique_known = all(image.unique_bytes is not None for image in cache.images)
        known = unique_known and self._total is not None and all(size is not None for size in sizes)
        self._remaining = sum(size or 0 for size in sizes) if known else None
        self._unique = 0
        self._guaranteed = 0

    def remove(self, image: ImageFact) -> int | None:
        """Remove an image; return the increase of the guaranteed bytes, None if its unique size is unknown."""
        self._unique += image.unique_bytes or 0
        guaranteed = self._unique
        if self._remaining is not None:
            self._remaining -= image.size_bytes or 0
            guaranteed = max(guaranteed, (self._total or 0) - self._remaining)
        if self._total is not None:
            guaranteed = min(guaranteed, self._total)
        more, self._guaranteed = max(0, guaranteed - self._guaranteed), max(guaranteed, self._guaranteed)
        return more if image.unique_bytes is not None else None
