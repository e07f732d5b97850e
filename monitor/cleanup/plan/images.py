"""Which images of a node go: what builds left behind, what has no name, then what was used longest ago. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from monitor.cleanup.model import Item, Kept, Plan, Risk
from monitor.cleanup.plan.image_protection import Surroundings, cover, last_use, names_of, surroundings
from monitor.cleanup.plan.references import Needs
from monitor.cleanup.plan.select import Candidate, Selection, Subject, make_plan, passed_over, refuse
from monitor.cleanup.plan.watermarks import kubelet_high, marks_on, needed_bytes, out_of_step, yielded
from monitor.cleanup.policy import KUBELET_HIGH, ImagePolicy
from monitor.detect.lib.storage import disk_containing, used_ratio
from monitor.facts.actions import PruneBuildCache, RemoveImage
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact, ImageCacheFact, ImageFact, RuntimeUsageFact
from monitor.facts.text import Text, Value
from monitor.facts.workload import ContainerFact


@dataclass(frozen=True)
class _Here:
    """One runtime of the node that is planned for."""

    subject: Subject
    policy: ImagePolicy
    cache: ImageCacheFact
    around: Surroundings


def plan_images(
    policy: ImagePolicy,
    snapshot: NodeSnapshot,
    needs: Needs,
    now: float,
    refused: frozenset[str] = frozenset(),
) -> Plan:
    """Given a policy, what a node's agent says, and what the cluster needs there, return what would be removed.

    `refused` are the ids of items that the agent refused lately.
    """
    warnings = image_warnings(policy, kubelet_high(snapshot, runtime_disk(snapshot)))
    return msgspec.structs.replace(_plan(policy, snapshot, needs, now, refused), warnings=warnings)


def _plan(policy: ImagePolicy, snapshot: NodeSnapshot, needs: Needs, now: float, refused: frozenset[str]) -> Plan:
    subject = Subject(policy, now, snapshot.node)
    if needs.unknown:
        return refuse(subject, "needs-unknown", kinds=", ".join(needs.unknown))
    if out_of_step(snapshot, now):
        return refuse(subject, "stale", node=snapshot.node, seconds=abs(now - snapshot.at))
    images, containers = snapshot.images, snapshot.containers
    if images is None or containers is None:
        return refuse(subject, "images-unknown", node=snapshot.node)
    disk = runtime_disk(snapshot)
    low = marks_on(policy.when, snapshot, disk).low
    needed = needed_bytes(disk, low)
    if low is not None and needed is None:
        return refuse(subject, "disk-unknown", node=snapshot.node)
    subject = Subject(policy, now, snapshot.node, needed)
    kept: list[Kept] = []
    here = [cache for cache in images if needed is None or _is_on(cache, disk, snapshot)]
    candidates = list(_candidates(subject, policy, snapshot, (here, containers, needs), kept))
    selection = Selection(policy.caps)
    selection.add(passed_over(candidates, refused, kept), needed)
    return make_plan(subject, selection, kept)


def image_warnings(policy: ImagePolicy, kubelet: float = KUBELET_HIGH) -> tuple[Text, ...]:
    """Given where a kubelet begins to remove images itself, return what is wrong with the policy's own mark."""
    high = yielded(policy.when, kubelet).high
    if high is None or high < kubelet:
        return ()
    return (Text(key="cleanup.kubelet-first", values={"high": high, "kubelet": kubelet}),)


def runtime_disk(snapshot: NodeSnapshot) -> DiskFact | None:
    """Return the disk that images are on: of several runtimes on several disks, the fullest."""
    disks = [disk for cache in snapshot.images or () if (disk := _disk(cache, snapshot)) is not None]
    return max(disks, key=lambda disk: used_ratio(disk) or 0.0, default=None)


def _disk(cache: ImageCacheFact, snapshot: NodeSnapshot) -> DiskFact | None:
    """Return the disk of a runtime's root. Where only one disk serves runtimes, links do not matter."""
    serving = [disk for disk in snapshot.disk or () if "runtime" in disk.roles]
    if len(serving) == 1 or cache.root is None:
        return serving[0] if len(serving) == 1 else None
    return disk_containing(cache.root, snapshot.disk or ())


def _is_on(cache: ImageCacheFact, disk: DiskFact | None, snapshot: NodeSnapshot) -> bool:
    own = _disk(cache, snapshot)
    return own is not None and disk is not None and own.mount == disk.mount


def _candidates(
    subject: Subject,
    policy: ImagePolicy,
    snapshot: NodeSnapshot,
    known: tuple[Sequence[ImageCacheFact], Sequence[ContainerFact], Needs],
    kept: list[Kept],
) -> Iterator[Candidate]:
    """Yield what may go, in the order in which it would. What is protected is added to `kept`."""
    caches, containers, needs = known
    runtimes = {cache.runtime for cache in caches}
    usages = [usage for usage in snapshot.runtime_usage or () if usage.runtime in runtimes]
    yield from _build_caches(subject, policy, usages)
    chosen: list[tuple[_Here, ImageFact]] = []
    for cache in caches:
        here = _Here(subject, policy, cache, surroundings(policy, needs, containers, cache.runtime, subject.now))
        chosen += [(here, image) for image in _unprotected(here, kept)]
    chosen.sort(key=lambda each: (bool(each[1].names), last_use(each[1]), each[1].id))
    freed = {cache.runtime: Freed(cache) for cache in caches}
    for here, image in chosen:
        yield Candidate(_item(here, image), image.size_bytes, partial(freed[here.cache.runtime].remove, image))


def _build_caches(subject: Subject, policy: ImagePolicy, usages: Iterable[RuntimeUsageFact]) -> Iterator[Candidate]:
    """Yield what builds left behind. How much of it is old enough only the engine knows."""
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


def _unprotected(here: _Here, kept: list[Kept]) -> Iterator[ImageFact]:
    for image in here.cache.images:
        covered = cover(image, here.around)
        if covered is None:
            yield image
            continue
        kept.append(covered.kept(name_of(image), here.subject.node, image.size_bytes))


def name_of(image: ImageFact) -> str:
    """Return what people call an image."""
    return min(image.names, default=image.id.removeprefix("sha256:")[:12])


def _item(here: _Here, image: ImageFact) -> Item:
    policy, subject = here.policy, here.subject
    used = image.last_used_at
    values: dict[str, Value] = {"bytes": image.size_bytes or 0, "seconds": max(0.0, subject.now - last_use(image))}
    why = "dangling" if not image.names else "unused" if used is not None else "never-used"
    return Item(
        id=f"image/{subject.node}/{here.cache.runtime}/{image.id}",
        name=name_of(image),
        why=Text(key=f"cleanup.why.{why}", values=values),
        risk=Risk.LOW,
        node=subject.node,
        last_used_at=used,
        not_before=subject.now,
        act=RemoveImage(
            runtime=here.cache.runtime,
            image_id=image.id,
            names=image.names,
            keep_names=here.around.needs.akin(names_of(image)),
            pins=policy.pins,
            min_age_seconds=policy.min_age,
            protect_stopped=policy.protect_stopped,
            protect_local=policy.protect_local,
        ),
    )


class Freed:
    """What is sure to be free after some images are gone, layers that they share counted once.

    A layer goes with the last image that has it. So at least this much is free: what only the removed ones had, each
    for itself; and all that there is, less what the remaining ones could have at most. Runtimes that do not tell what
    images share (CRI: sizes are those of the packed layers) leave it unknown.
    """

    def __init__(self, cache: ImageCacheFact) -> None:
        self._total = cache.total_bytes
        sizes = [image.size_bytes for image in cache.images]
        told = all(image.unique_bytes is not None for image in cache.images)
        known = told and self._total is not None and all(size is not None for size in sizes)
        self._left = sum(size or 0 for size in sizes) if known else None
        self._unique = 0
        self._sure = 0

    def remove(self, image: ImageFact) -> int | None:
        """Remove an image; return by how much that is sure to be more; None if its own part is not known."""
        self._unique += image.unique_bytes or 0
        sure = self._unique
        if self._left is not None:
            self._left -= image.size_bytes or 0
            sure = max(sure, (self._total or 0) - self._left)
        if self._total is not None:
            sure = min(sure, self._total)
        more, self._sure = max(0, sure - self._sure), max(sure, self._sure)
        return more if image.unique_bytes is not None else None
