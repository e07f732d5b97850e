"""Exact limits of image plans, the disk of their marks, and their texts for each image."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.base.text import shorten_name
from monitor.cleanup.model import KeptItem
from monitor.cleanup.plan.image_protection import MAX_NAMES_CHARS
from monitor.cleanup.plan.images import runtime_disk
from monitor.cleanup.plan.references import References, Template, image_references
from monitor.cleanup.policy import Caps, ImagePolicy, When
from monitor.facts.actions import RemoveImage
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact, EvictionFact, ImageCacheFact, KubeletFact, RuntimeUsageFact
from tests.cleanup.builders import DAY, GIB, NO_REFERENCES, NOW, container, disk, image, kept, names, refused, snapshot
from tests.cleanup.plan.test_images import plan

LONG = "0123456789abcdef"


@pytest.mark.parametrize(("age", "goes"), [(DAY - 1, False), (DAY, True)])
def test_an_image_is_old_enough_to_the_second(age: float, goes: bool) -> None:
    assert bool(names(plan(snapshot(image(last_used_at=NOW - age)), min_age=DAY))) is goes


@pytest.mark.parametrize(("age", "why"), [(600, None), (601, "stale"), (-600, None), (-601, "stale")])
def test_a_snapshot_is_too_old_to_the_second(age: float, why: str | None) -> None:
    found = plan(msgspec.structs.replace(snapshot(image()), at=NOW - age))
    assert refused(found) == why
    if found.refused is not None:
        assert found.refused.values == {"node": "n1", "seconds": abs(age)}


def test_a_refusal_says_of_whom_when_and_why() -> None:
    found = plan(snapshot(image()), References({}, ("jobs.batch", "pods")))
    assert found.refused is not None
    assert (found.node, found.at, found.refused.values) == ("n1", NOW, {"kinds": "jobs.batch, pods"})


@pytest.mark.parametrize("field", ["names", "digests"])
@pytest.mark.parametrize(("chars", "why"), [(MAX_NAMES_CHARS, []), (MAX_NAMES_CHARS + 1, ["unknown"])])
def test_an_image_with_absurdly_long_names_is_kept(field: str, chars: int, why: list[str]) -> None:
    fields: dict[str, Any] = {"names": (), field: ("n" * chars,)}
    assert list(kept(plan(snapshot(image(**fields)))).values()) == why


def test_an_image_whose_name_was_cut_is_kept() -> None:
    cut = shorten_name("lab/" + "n" * 1000, 200)
    assert list(kept(plan(snapshot(image("lab/a:1", names=("lab/a:1", cut))))).values()) == ["unknown"]


def cache(runtime: str = "docker", root: str | None = "/var/lib/docker") -> ImageCacheFact:
    return ImageCacheFact(runtime=runtime, root=root, images=(image(runtime),))


SYSTEM = disk(used=10, roles=("system",))
DATA = disk(used=90, mount="/data", roles=("runtime",))
MORE = disk(used=95, mount="/more", roles=("runtime",))
BLANK = disk(mount="/blank", roles=("runtime",), used_bytes=None)
DISKS: list[tuple[str, tuple[DiskFact, ...], tuple[ImageCacheFact, ...], DiskFact | None]] = [
    ("by a link on the only one that serves", (SYSTEM, DATA), (cache(),), DATA),
    ("by its root where several serve", (SYSTEM, DATA, MORE), (cache(root="/more/docker"),), MORE),
    ("unknown root", (SYSTEM, DATA, MORE), (cache(root=None),), None),
    ("the fullest, first", (MORE, DATA), (cache(root="/more"), cache("containerd", "/data")), MORE),
    ("the fullest, last", (MORE, DATA), (cache(root="/data"), cache("containerd", "/more")), MORE),
    ("one of unknown size", (BLANK, DATA), (cache(root="/blank"), cache("containerd", "/data")), DATA),
]


@pytest.mark.parametrize(("disks", "caches", "expect"), [row[1:] for row in DISKS], ids=[row[0] for row in DISKS])
def test_which_disk_a_mark_is_about(
    disks: tuple[DiskFact, ...], caches: tuple[ImageCacheFact, ...], expect: DiskFact | None
) -> None:
    given = snapshot(disk=disks, images=caches)
    assert runtime_disk(given) == expect
    assert refused(plan(given, when=When(low=0.5))) == (None if expect else "disk-unknown")


def test_what_the_kubelet_does_on_that_disk_moves_the_mark() -> None:
    evicts = KubeletFact(eviction_hard=(EvictionFact(signal="nodefs.available", available_ratio=0.4),))
    given = snapshot(image(), disk=(disk(used=80, roles=("runtime", "kubelet")),), kubelet=evicts)
    assert plan(given, when=ImagePolicy.when).needed_bytes == pytest.approx(35 * GIB, abs=1)  # from 80 % to 45 %
    (warning,) = plan(given, when=When(high=0.7, low=0.6)).warnings
    assert warning.values == {"high": 0.7, "kubelet": 0.6}


def usage(runtime: str, gib: float) -> RuntimeUsageFact:
    return RuntimeUsageFact(runtime=runtime, build_cache_reclaimable_bytes=round(gib * GIB))


@pytest.mark.parametrize(
    ("cap", "expect"), [(5, ["containerd build cache"]), (4, []), (14, ["containerd build cache"])]
)
def test_what_builds_left_counts_towards_the_cap(cap: int, expect: list[str]) -> None:
    caches = (ImageCacheFact(runtime="docker"), ImageCacheFact(runtime="containerd", images=(image("a"),)))
    given = snapshot(images=caches, runtime_usage=(usage("docker", 0), usage("containerd", 5)))
    found = plan(given, caps=Caps(bytes=cap * GIB))
    assert names(found) == expect
    assert [(item.id, item.node) for item in found.items] == [("build-cache/n1/containerd", "n1")] * len(expect)
    assert names(plan(given, caps=Caps(bytes=15 * GIB))) == ["containerd build cache", "a"]


@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("local", [True, False])
def test_the_action_says_whether_stopped_containers_and_local_images_count(stopped: bool, local: bool) -> None:
    act = plan(snapshot(image()), protect_stopped=stopped, protect_local=local).items[0].act
    assert isinstance(act, RemoveImage)
    assert (act.protect_stopped, act.protect_local) == (stopped, local)


WHY: list[tuple[dict[str, Any], str, dict[str, float]]] = [
    ({"days": 30}, "unused", {"bytes": 10 * GIB, "seconds": 30 * DAY}),
    ({"days": None, "first_seen_at": NOW - 9 * DAY}, "never-used", {"bytes": 10 * GIB, "seconds": 9 * DAY}),
    ({"name": None, "size_bytes": None}, "dangling", {"bytes": 0, "seconds": 30 * DAY}),
    ({"days": 0}, "unused", {"bytes": 10 * GIB, "seconds": 0.0}),
]


@pytest.mark.parametrize(("facts", "why", "values"), WHY)
def test_why_an_image_goes(facts: dict[str, Any], why: str, values: dict[str, float]) -> None:
    (item,) = plan(snapshot(image(**facts)), min_age=0.0).items
    assert (item.why.key, item.why.values, item.node) == (f"cleanup.why.{why}", values, "n1")


def test_an_image_without_a_name_is_called_by_the_beginning_of_its_id() -> None:
    assert names(plan(snapshot(image(None, id=f"sha256:{LONG}")))) == [LONG[:12]]


NAMED = image_references("n1", (), [Template("Job", "team", "j", ("lab/a:1",))])
EVIDENCE: list[tuple[str, dict[str, Any], NodeSnapshot | None, References, str | None]] = [
    ("pinned", {"pinned": True}, None, NO_REFERENCES, "runtime"),
    ("pinned", {"names": ("registry.k8s.io/pause:3.9",)}, None, NO_REFERENCES, "pause"),
    ("pinned", {"names": ("lab/pin:1",)}, None, NO_REFERENCES, "lab/pin:*"),
    ("in-use", {"containers": (LONG,)}, None, NO_REFERENCES, LONG[:12]),
    ("in-use", {"containers": ("id-c",)}, snapshot(containers=(container("c"),)), NO_REFERENCES, "c"),
    ("in-use", {"containers": (LONG,)}, snapshot(containers=(container("", id=LONG),)), NO_REFERENCES, LONG[:12]),
    (
        "in-use", {"containers": ("id-c",)},
        snapshot(containers=(container("c", pod_name="p", namespace="team"),)), NO_REFERENCES, "team/p",
    ),
    ("needed", {}, None, NAMED, "Job team/j"),
    ("too-young", {"days": 0}, None, NO_REFERENCES, None),
]  # fmt: skip


@pytest.mark.parametrize(("protection", "facts", "node", "references", "detail"), EVIDENCE)
def test_by_what_a_protection_is_known(
    protection: str, facts: dict[str, Any], node: NodeSnapshot | None, references: References, detail: str | None
) -> None:
    given = snapshot(image(**facts), containers=node.containers if node is not None else ())
    (found,) = plan(given, references, pins=("lab/pin:*",)).kept
    name = facts.get("names", ("lab/a:1",))[0]
    assert found == KeptItem(name=name, protection=protection, node="n1", bytes=10 * GIB, detail=detail)


def test_nothing_is_kept_for_a_container_without_an_image() -> None:
    given = snapshot(image(), containers=(container("c"),))
    assert (names(plan(given)), kept(plan(given))) == (["lab/a:1"], {})
