"""Outages of disks, images and mounts."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.sim.cluster import TIB
from monitor.sim.node import GIB
from monitor.sim.outages import image
from tests.scorecard.model import Act, Happening, May, Shape, Tell
from tests.scorecard.scene import SHARE, disk, set_mount

Wait = Iterator[float | None]
MINUTE, HOUR = 60.0, 3600.0
NAS = {"mount": SHARE, "service": "nas:/share"}
CREDIT = 5 * MINUTE  # an outage lasts longer than its expected delay by this


def _full(mount: str, share: float) -> Act:
    """A disk fills to this ratio at once."""

    def act(it: Happening) -> Wait:
        one = disk(it.node, mount)
        used, one.used = one.used, one.size * share
        yield None
        it.clean_up(mount, one.used - used)
        one.used = used

    return act


def _full_of_images(it: Happening) -> Wait:
    """Unused images fill the cache directory: two saved images of 28 GB a day, for weeks."""
    cache, size, names = it.node.runtime_disk, 28 * GIB, list[str]()

    def add_until(share: float, last_used: float) -> None:
        while cache.used + size < share * cache.size:
            names.append(image("old", f"{it.id}:{len(names)}"))
            it.node.add_image(names[-1], size, it.now, last_used, shared=0.1)

    add_until(0.77, it.now - 9 * 24 * HOUR)
    yield 2 * MINUTE  # images are listed every minute: those of the last minute are not known by name
    add_until(0.89, it.now)
    yield None
    for name in names:
        it.node.remove_image(it.node.images[name].id)


def _inodes(mount: str) -> Act:
    def act(it: Happening) -> Wait:
        one = disk(it.node, mount)
        used, one.inodes_used = one.inodes_used, 0.93e8
        yield None
        one.inodes_used = used

    return act


def _read_only(it: Happening) -> Wait:
    """The kernel remounts the disk read-only after an error."""
    disk(it.node, "/data").read_only = True
    yield None
    disk(it.node, "/data").read_only = False


def _filling(mount: str, hours: float) -> Act:
    """A disk that would be full after this many hours; the data is removed at the end."""

    def act(it: Happening) -> Wait:
        every = it.scene.nodes if mount == SHARE else [it.node]
        before = {node.name: disk(node, mount).used for node in every}
        for node in every:
            one = disk(node, mount)
            one.growth = (one.size - one.used) / (hours * HOUR)
        yield None
        it.clean_up(mount, disk(it.node, mount).used - before[it.node.name])
        for node in every:
            disk(node, mount).growth, disk(node, mount).used = 0.0, before[node.name]

    return act


def _committing(it: Happening) -> Wait:
    """A user saves one image after another."""
    names = []
    for number in range(18):
        names.append(image("saved", f"{it.id}:{number}"))
        it.node.add_image(names[-1], 22 * GIB, it.now, it.now, shared=0.1)
        yield 265.0
    yield None
    for name in names:
        it.node.remove_image(it.node.images[name].id)


def _cache_large(it: Happening) -> Wait:
    """The cache takes more than half of its disk, which is not full yet."""
    names = [image("old", f"{it.id}:{number}") for number in range(24)]
    for name in names:
        it.node.add_image(name, 28 * GIB, it.now, it.now - 9 * 24 * HOUR, shared=0.1)
    yield None
    for name in names:
        it.node.remove_image(it.node.images[name].id)


def _build_cache(it: Happening) -> Wait:
    it.node.build_cache_bytes = 600 * GIB
    it.node.runtime_disk.used += 600 * GIB
    yield None
    it.node.build_cache_bytes = 0
    it.node.runtime_disk.used -= 600 * GIB


def _oversize(it: Happening) -> Wait:
    """A user saves an environment of 59 GB; a job runs from it."""
    name = image("zhao", f"{it.id}:latest")
    it.node.add_image(name, 59 * GIB, it.now, it.now)
    pod = it.job(image=name)
    yield None
    it.scene.withdraw(pod)
    it.node.remove_image(it.node.images[name].id)


def _saturated(mount: str) -> Act:
    def act(it: Happening) -> Wait:
        one = disk(it.node, mount)
        one.busy, one.queue = 0.98, 24.0
        yield None
        one.busy, one.queue = 0.2, 0.5

    return act


def _deleted(it: Happening) -> Wait:
    """More than half of a node's data is gone at once; it is restored from a copy."""
    one = disk(it.node, "/data")
    gone = one.used * 0.6
    one.used -= gone
    yield None
    one.used += gone


def _deleted_bit_by_bit(it: Happening) -> Wait:
    """A user deletes for several minutes: after four, a fifth is gone."""
    one = disk(it.node, "/data")
    used, one.growth = one.used, -one.used * 0.05 / MINUTE
    yield 8 * MINUTE
    one.growth = 0.0
    yield None
    one.used = used


def _share_deleted(it: Happening) -> Wait:
    for node in it.scene.nodes:
        disk(node, SHARE).used -= 60 * TIB
    yield None
    for node in it.scene.nodes:
        disk(node, SHARE).used += 60 * TIB


def _share_full(it: Happening) -> Wait:
    used = disk(it.node, SHARE).used
    for node in it.scene.nodes:
        disk(node, SHARE).used = disk(node, SHARE).size * 0.86
    yield None
    it.clean_up(SHARE, disk(it.node, SHARE).used - used)
    for node in it.scene.nodes:
        disk(node, SHARE).used = used


def _mount(state: str, error: str | None = None) -> Act:
    def act(it: Happening) -> Wait:
        set_mount(it.node, state, it.now, error)
        yield None
        set_mount(it.node, "ok", it.now)

    return act


def _mount_everywhere(it: Happening) -> Wait:
    """The NAS does not respond to any node."""
    for node in it.scene.nodes:
        set_mount(node, "hung", it.now, "no answer within 5 s")
    yield None
    for node in it.scene.nodes:
        set_mount(node, "ok", it.now)


def _at(mount: str) -> dict[str, str]:
    return {"node": "{node}", "mount": mount}


def _disk(name: str, mount: str, act: Act, cause: str, *, may: tuple[May, ...] = ()) -> Shape:
    return Shape(name, ("D1",), 2 * CREDIT, act, (Tell("disk-full", cause, _at(mount)),), may)


DOCKER = "/var/lib/docker"
SHAPES = (
    _disk("system disk full", "/", _full("/", 0.83), "other"),
    _disk("system disk full to the brim", "/", _full("/", 0.97), "other"),
    Shape(
        "docker root full of images", ("D1", "D3"), 2 * CREDIT, _full_of_images,
        (Tell("disk-full", "images", _at(DOCKER), begins=2 * MINUTE),), (May("image-cache-large", _at(DOCKER)),),
    ),
    _disk("docker root full", DOCKER, _full(DOCKER, 0.91), "other"),
    _disk("data disk full", "/data", _full("/data", 0.92), "datasets"),
    _disk("inodes of the data disk", "/data", _inodes("/data"), "datasets"),
    _disk("inodes of the system disk", "/", _inodes("/"), "other"),
    _disk("data disk read-only", "/data", _read_only, "datasets"),
    Shape(
        "share full", ("D1",), 2 * CREDIT, _share_full, (Tell("disk-full", "datasets", NAS),), (), ("share",), False,
    ),
    Shape(
        "data disk fills within hours", ("D1",), 75 * MINUTE, _filling("/data", 2.5),
        (Tell("disk-filling", "datasets", _at("/data")),),
    ),
    Shape(
        "images fill the docker root", ("D1", "D3"), 80 * MINUTE, _committing,
        (Tell("disk-filling", "images", _at(DOCKER)),),
    ),
    Shape(
        "share fills within a day", ("D1",), 7.5 * HOUR, _filling(SHARE, 20.0),
        (Tell("disk-filling", "datasets", NAS),), (), ("share",), False,
    ),
    Shape(
        "system disk fills within a day", ("D1",), 7.5 * HOUR, _filling("/", 18.0),
        (Tell("disk-filling", "other", _at("/")),),
    ),
    Shape(
        "data disk saturated", ("D2",), 10 * MINUTE + CREDIT, _saturated("/data"),
        (Tell("disk-io-saturated", "disk-io-saturated", _at("/data")),),
    ),
    Shape(
        "system disk saturated", ("D2",), 10 * MINUTE + CREDIT, _saturated("/"),
        (Tell("disk-io-saturated", "disk-io-saturated", _at("/")),),
    ),
    Shape(
        "image cache of unused images", ("D3",), 2 * CREDIT, _cache_large,
        (Tell("image-cache-large", "unused-images", _at(DOCKER)),),
    ),
    Shape(
        "build cache", ("D3",), 2 * CREDIT, _build_cache, (Tell("image-cache-large", "build-cache", _at(DOCKER)),),
    ),
    Shape(
        "image of 59 GB", ("D3",), 2 * CREDIT, _oversize,
        (Tell("image-oversize", "image-oversize", {"image": "harbor.lab/zhao/{id}:latest"}),),
    ),
    Shape(
        "data of a node deleted", ("N3",), 2 * CREDIT, _deleted,
        (Tell("mass-deletion", "mass-deletion", _at("/data")),),
    ),
    Shape(
        "data deleted bit by bit", ("N3",), 12 * MINUTE, _deleted_bit_by_bit,
        (Tell("mass-deletion", "mass-deletion", _at("/data"), begins=4 * MINUTE),),
    ),
    Shape(
        "data of the share deleted", ("N3",), 2 * CREDIT, _share_deleted,
        (Tell("mass-deletion", "mass-deletion", NAS),), (), ("share",), False,
    ),
    *(
        Shape(f"mount {state}", ("N4",), CREDIT, _mount(state, error), (Tell("mount-lost", cause, _at(SHARE)),),
              (), ("share",))
        for state, cause, error in (
            ("missing", "missing", None), ("hung", "hung", "no answer within 5 s"), ("read-only", "read-only", None),
            ("stale", "stale", "Stale file handle"), ("failing", "stale", "Transport endpoint is not connected"),
        )
    ),
    Shape(
        "NAS hangs everywhere", ("N4",), CREDIT, _mount_everywhere, (Tell("mount-lost", "hung", {"mount": SHARE}),),
        (May("mount-lost", {"mount": SHARE}),), ("share",), False,
    ),
)  # fmt: skip
