"""Properties of image plans in random worlds: no plan contains a protected image, and none goes too far.

The protections are implemented a second time, from the requirements: a reference to an image is modelled by its meaning
and rendered in one of its spellings, and layers are real sets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from monitor.cleanup.model import CleanupPlan
from monitor.cleanup.plan.images import plan_images
from monitor.cleanup.plan.references import Template, image_references
from monitor.cleanup.policy import Caps, ImagePolicy, When
from monitor.facts.actions import PruneBuildCache, RemoveImage
from monitor.facts.kube import ContainerStatusFact, PodContainerFact, PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact, ImageCacheFact, ImageFact, RuntimeUsageFact
from monitor.facts.workload import ContainerFact

NOW = 1_763_260_000.0
SPELLINGS = {
    "docker.io/library/nginx": ("nginx", "docker.io/nginx", "library/nginx", "index.docker.io/library/nginx"),
    "docker.io/pytorch/pytorch": ("pytorch/pytorch", "docker.io/pytorch/pytorch"),
    "harbor.lab:5000/nlp/bert": ("harbor.lab:5000/nlp/bert",),
    "registry.k8s.io/pause": ("registry.k8s.io/pause",),
}
TAGS = ("latest", "1", "2")
LISTED = ("both", "containers", "images")
NAMES = [(repository, tag) for repository in SPELLINGS for tag in TAGS]


def digest(number: int) -> str:
    return f"sha256:{number:064x}"


@dataclass(frozen=True)
class Ref:
    """A reference to an image: by repository and tag, or by the digest or id of the image with this number."""

    kind: str
    repository: str = ""
    tag: str = ""
    number: int = 0
    spelling: int = 0

    @property
    def text(self) -> str:
        if self.kind == "id":
            return digest(1000 + self.number)
        if self.kind == "digest":
            return f"{self._repository}@{digest(self.number)}"
        return self._repository if self.tag == "latest" and self.spelling % 2 else f"{self._repository}:{self.tag}"

    @property
    def _repository(self) -> str:
        spellings = SPELLINGS[self.repository]
        return spellings[self.spelling % len(spellings)]


@dataclass(frozen=True)
class Image:
    """A model of an image. Layers are numbers; the size of a layer is its number plus one."""

    number: int
    tags: frozenset[tuple[str, str]]
    layers: frozenset[int]
    pinned: bool
    local: bool
    first_seen: float | None  # seconds ago
    last_used: float | None
    shares_known: bool

    def is_meant_by(self, ref: Ref) -> bool:
        if ref.kind == "tag":
            return (ref.repository, ref.tag) in self.tags
        return ref.number == self.number

    @property
    def size(self) -> int:
        return size_of(self.layers)


def size_of(layers: frozenset[int]) -> int:
    return sum(layer + 1 for layer in layers)


@dataclass(frozen=True)
class World:
    images: tuple[Image, ...]
    users: tuple[tuple[Ref, str, str], ...]  # image and state of a container, and the lists that contain it
    bound: tuple[tuple[Ref, str | None, str], ...]  # image, node and phase of a pod
    templates: tuple[Ref, ...]
    pins: tuple[str, ...]
    min_age: float
    protect_stopped: bool
    protect_local: bool
    low: float | None
    used: int
    caps: Caps


AGES = (9000.0, 5000.0, 3000.0, 7000.0, 4000.0, 1000.0, 101.0, 100.0, 99.0, 0.0, -50.0)
STATES = ("exited", "exited", "running", "created", "paused", "unknown")


def rarely(rng: Random) -> bool:
    """Protections are rare, so that most worlds have something to remove."""
    return rng.random() < 0.12


def make_ref(rng: Random) -> Ref:
    kind = rng.choice(("tag", "tag", "tag", "digest", "id"))
    return Ref(kind, rng.choice(list(SPELLINGS)), rng.choice(TAGS), rng.randrange(8), rng.randrange(8))


def make_world(rng: Random) -> World:
    known, images = rng.random() < 0.7, []
    # Each name belongs to at most one image.
    owners = [rng.randrange(10) for _ in NAMES]
    for number in range(rng.randrange(9)):
        tags = frozenset(name for name, owner in zip(NAMES, owners, strict=True) if owner == number)
        layers = frozenset(rng.sample(range(10), rng.randint(1, 5)))
        seen, used = (None if rarely(rng) else rng.choice(AGES) for _ in range(2))
        images.append(Image(number, tags, layers, rarely(rng), rarely(rng), seen, used, known))
    users = [(make_ref(rng), rng.choice(STATES), rng.choice((*LISTED, LISTED[0]))) for _ in range(rng.randrange(3))]
    bound = [
        (make_ref(rng), rng.choice((None, "n1", "n2")), rng.choice(("Running", "Pending", "Failed")))
        for _ in range(rng.randrange(3))
    ]
    pins = ("*:2", "nginx*", digest(1), digest(1002), "harbor*")
    return World(
        tuple(images),
        tuple(users),
        tuple(bound),
        (make_ref(rng),) if rarely(rng) else (),
        (rng.choice(pins),) if rarely(rng) else (),
        rng.choice((100.0, 100.0, 0.0, 1000.0)),
        rng.random() < 0.5,
        rng.random() < 0.5,
        None if rarely(rng) else rng.random(),
        rng.randint(0, 1000),
        Caps(items=rng.randint(1, 9), bytes=rng.randint(5, 200) if rarely(rng) else None),
    )


# One seed per world: cheap to draw, and often with something to remove.
worlds = st.integers(0, 2**64).map(lambda seed: make_world(Random(seed)))


def facts(world: World) -> NodeSnapshot:
    all_layers = frozenset[int]().union(*(image.layers for image in world.images))
    found = []
    for image in world.images:
        others = frozenset[int]().union(*(other.layers for other in world.images if other is not image))
        listed = [
            n for n, (ref, _, where) in enumerate(world.users) if where != "containers" and image.is_meant_by(ref)
        ]
        found.append(
            ImageFact(
                id=digest(1000 + image.number),
                names=tuple(f"{repository}:{tag}" for repository, tag in sorted(image.tags)),
                digests=(f"harbor.lab:5000/nlp/bert@{digest(image.number)}",),
                size_bytes=image.size,
                unique_bytes=size_of(image.layers - others) if image.shares_known else None,
                first_seen_at=None if image.first_seen is None else NOW - image.first_seen,
                last_used_at=None if image.last_used is None else NOW - image.last_used,
                containers=tuple(f"c{n}" for n in listed),
                pinned=image.pinned,
                local=image.local,
            )
        )
    cache = ImageCacheFact(
        runtime="docker", images=tuple(found), root="/var/lib/docker", total_bytes=size_of(all_layers)
    )
    containers = tuple(
        ContainerFact(id=f"c{n}", runtime="docker", state=state, image=ref.text)
        for n, (ref, state, where) in enumerate(world.users)
        if where != "images"
    )
    disk = DiskFact(
        mount="/",
        device="d",
        fstype="ext4",
        roles=("runtime",),
        used_bytes=world.used,
        available_bytes=1000 - world.used,
    )
    usage = RuntimeUsageFact(runtime="docker", build_cache_reclaimable_bytes=world.used % 3)
    return NodeSnapshot(
        node="n1",
        at=NOW,
        agent_version="0",
        images=(cache,),
        containers=containers,
        disk=(disk,),
        runtime_usage=(usage,),
    )


def made(world: World) -> CleanupPlan:
    pods = [
        PodFact(
            uid=str(n), name=str(n), namespace="t", node=node, phase=phase,
            containers=(PodContainerFact(name="c", image=ref.text),) if n % 2 else (),
            statuses=() if n % 2 else (ContainerStatusFact(name="c", image_id=f"docker-pullable://{ref.text}"),),
        )
        for n, (ref, node, phase) in enumerate(world.bound)
    ]  # fmt: skip
    templates = [Template("Job", "t", str(n), (ref.text,)) for n, ref in enumerate(world.templates)]
    policy = ImagePolicy(
        name="p", min_age=world.min_age, protect_stopped=world.protect_stopped, protect_local=world.protect_local,
        pins=world.pins, caps=world.caps, when=When(low=world.low),
    )  # fmt: skip
    return plan_images(policy, facts(world), image_references("n1", pods, templates), NOW)


def is_protected(image: Image, world: World) -> bool:
    """The required protections of an image."""
    for ref, state, where in world.users:
        # The state of a container that only the image lists is unknown.
        if image.is_meant_by(ref) and (state != "exited" or world.protect_stopped or where == "images"):
            return True
    for ref, node, phase in world.bound:
        if image.is_meant_by(ref) and phase != "Failed" and node != "n2":
            return True
    if any(image.is_meant_by(ref) for ref in world.templates):
        return True
    if image.pinned or any(repository.endswith("/pause") for repository, _ in image.tags):
        return True
    names = [
        f"{repository.removeprefix(prefix)}{suffix}"
        for repository, tag in image.tags
        for prefix in ("", "docker.io/", "docker.io/library/")
        for suffix in ("", f":{tag}")
    ]
    names += [digest(1000 + image.number), digest(image.number), f"harbor.lab:5000/nlp/bert@{digest(image.number)}"]
    if any(fnmatchcase(name, pin) for name in names for pin in world.pins):
        return True
    if image.local and world.protect_local:
        return True
    if image.first_seen is None or image.first_seen < world.min_age:
        return True
    return image.last_used is not None and image.last_used < world.min_age


def removed(plan: CleanupPlan, world: World) -> list[Image]:
    by_id = {digest(1000 + image.number): image for image in world.images}
    return [by_id[item.act.image_id] for item in plan.items if isinstance(item.act, RemoveImage)]


@settings(max_examples=3000, deadline=None)
@given(worlds)
def test_no_plan_has_an_image_that_a_protection_covers_or_goes_too_far(world: World) -> None:
    plan = made(world)
    gone = removed(plan, world)
    event(f"{len(gone)} images go")
    assert [image for image in gone if is_protected(image, world)] == []
    assert len(set(gone)) == len(gone)
    promises_hold(plan, gone, world)
    caps_hold(plan, gone, world)
    if plan.needed_bytes is not None:
        assert plan.needed_bytes == max(0, -int(1000 * (world.low or 0) - world.used))
        stops_at_the_mark(plan, gone, world)


def promises_hold(plan: CleanupPlan, gone: list[Image], world: World) -> None:
    """Each prefix of the plan frees at least what it promises, and the plan at most the total."""
    total = left_after(world, [])
    promised = [item.frees_bytes or 0 for item in plan.items if isinstance(item.act, RemoveImage)]
    for count in range(len(gone) + 1):
        assert sum(promised[:count]) <= total - left_after(world, gone[:count])
    assert plan.frees_bytes <= total


def caps_hold(plan: CleanupPlan, gone: list[Image], world: World) -> None:
    assert len(plan.items) <= world.caps.items
    if world.caps.bytes is not None:
        sizes = sum(image.size for image in gone)
        sizes += sum(world.used % 3 for item in plan.items if isinstance(item.act, PruneBuildCache))
        assert sizes <= world.caps.bytes


def stops_at_the_mark(plan: CleanupPlan, gone: list[Image], world: World) -> None:
    """By the promised sizes, and by readings of the disk before each item."""
    needed, total = plan.needed_bytes or 0, left_after(world, [])
    promised = [item.frees_bytes or 0 for item in plan.items]
    assert not plan.items or sum(promised[:-1]) < needed
    done: list[Image] = []
    for image in gone:
        if total - left_after(world, done) >= needed:
            break
        done.append(image)
    assert not done or total - left_after(world, done[:-1]) < needed


def left_after(world: World, gone: list[Image]) -> int:
    """Size of the remaining images."""
    return size_of(frozenset[int]().union(*(image.layers for image in world.images if image not in gone)))


@settings(max_examples=1000, deadline=None)
@given(worlds)
def test_every_image_that_nothing_covers_goes_where_nothing_stops_it(world: World) -> None:
    free = replace(world, low=None, caps=Caps(items=99))
    gone = removed(made(free), free)
    assert set(gone) == {image for image in free.images if not is_protected(image, free)}
    order = [(bool(image.tags), -unused(image)) for image in gone]
    assert order == sorted(order)


def unused(image: Image) -> float:
    """Seconds since the last use."""
    since = image.first_seen or 0.0
    return since if image.last_used is None else min(since, image.last_used)
