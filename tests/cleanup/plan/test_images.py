"""Image plans: images that go, their order, and protections."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.cleanup.model import CleanupPlan, Mode
from monitor.cleanup.plan.images import image_warnings, plan_images
from monitor.cleanup.plan.references import References, Template, image_references
from monitor.cleanup.policy import Caps, ImagePolicy, When
from monitor.facts.actions import PruneBuildCache, RemoveImage
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import ImageCacheFact, KubeletFact, RuntimeUsageFact
from monitor.i18n import say
from tests.cleanup.builders import DAY, GIB, NO_REFERENCES, NOW, container, disk, image, kept, names, refused, snapshot

ALL = When()  # no marks: every unprotected image


def plan(given: NodeSnapshot, references: References = NO_REFERENCES, now: float = NOW, **settings: Any) -> CleanupPlan:
    policy = ImagePolicy(name="p", **({"when": ALL} | settings))
    return plan_images(policy, given, references, now)


A = "a" * 64
KEPT: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("a container runs it, by id", {"containers": ("id-c",)}, {"containers": (container("c"),)}, "in-use"),
    ("stopped", {"containers": ("id-c",)}, {"containers": (container("c", state="exited"),)}, "in-use"),
    ("a container that is not known yet", {"containers": ("id-x",)}, {}, "in-use"),
    ("by short name", {"names": ("docker.io/library/a:latest",)}, {"containers": (container("c", "a"),)}, "in-use"),
    ("by digest", {"digests": (f"lab/a@sha256:{A}",)}, {"containers": (container("c", f"x@sha256:{A}"),)}, "in-use"),
    ("by image id", {"id": f"sha256:{A}"}, {"containers": (container("c", image_id=A),)}, "in-use"),
    ("the runtime pins it", {"pinned": True}, {}, "pinned"),
    ("the pause image", {"names": ("registry.k8s.io/pause:3.9",)}, {}, "pinned"),
    ("an old pause image", {"names": ("gcr.io/google_containers/pause-amd64:3.1",)}, {}, "pinned"),
    ("a pause image without a name", {"names": (), "digests": (f"registry.k8s.io/pause@sha256:{A}",)}, {}, "pinned"),
    ("a name is pinned", {"names": ("lab/base:1", "lab/a:1")}, {"pins": ("lab/base:*",)}, "pinned"),
    ("a full name is pinned", {"names": ("nginx:1",)}, {"pins": ("docker.io/library/nginx:*",)}, "pinned"),
    ("a short name is pinned", {"names": ("docker.io/local/bb:1",)}, {"pins": ("local/*",)}, "pinned"),
    ("an official image is pinned", {"names": ("docker.io/library/bb:1",)}, {"pins": ("bb",)}, "pinned"),
    ("a mirror of the pause image", {"names": ("docker.io/rancher/mirrored-pause:3.6",)}, {}, "pinned"),
    ("a digest is pinned", {"digests": (f"lab/a@sha256:{A}",)}, {"pins": (f"sha256:{A}",)}, "pinned"),
    ("in no known registry", {"local": True}, {}, "local-only"),
    ("in no known registry, and young", {"local": True, "last_used_at": NOW - 100}, {}, "local-only"),
    ("in no known registry, of unknown age", {"local": True, "first_seen_at": None}, {}, "local-only"),
    ("used lately", {"last_used_at": NOW - 100}, {}, "too-young"),
    ("came lately", {"first_seen_at": NOW - 100, "last_used_at": None}, {}, "too-young"),
    ("came lately, used before", {"first_seen_at": NOW - 100, "last_used_at": NOW - 9 * DAY}, {}, "too-young"),
    ("a clock ahead", {"last_used_at": NOW + 9 * DAY}, {}, "too-young"),
    ("of unknown age", {"first_seen_at": None}, {}, "unknown"),
    ("a template names it", {"names": ("bert:2",)}, {"referenced": "docker.io/library/bert:2"}, "needed"),
    ("a template names its digest", {"digests": (f"lab/a@sha256:{A}",)}, {"referenced": f"other@sha256:{A}"}, "needed"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "context", "protection"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT])
def test_what_keeps_an_image(facts: dict[str, Any], context: dict[str, Any], protection: str) -> None:
    referenced = context.pop("referenced", None) if (context := dict(context)) else None
    references = image_references("n1", (), [Template("Job", "t", "j", (referenced,))]) if referenced else NO_REFERENCES
    users = context.pop("containers", ())
    found = plan(snapshot(image(**facts), image("lab/goes:1"), containers=users), references, **context)
    assert names(found) == ["lab/goes:1"]
    assert list(kept(found).values()) == [protection]
    assert found.kept_counts == {protection: 1}


def test_a_stopped_container_only_if_configured() -> None:
    given = image("a", containers=("id-c",))
    for state, goes in (("exited", True), ("created", False), ("paused", False), ("unknown", False)):
        users = (container("c", state=state),)
        assert bool(names(plan(snapshot(given, containers=users), protect_stopped=False))) is goes, state


def test_a_local_image_only_if_configured() -> None:
    given = snapshot(image("a", local=True), image("b"))
    assert names(plan(given)) == ["b"]
    assert sorted(names(plan(given, protect_local=False))) == ["a", "b"]


def test_the_same_image_in_another_runtime_is_not_in_use() -> None:
    users = (container("c", "lab/a:1", runtime="containerd"),)
    assert names(plan(snapshot(image("lab/a:1"), containers=users))) == ["lab/a:1"]


def test_build_cache_then_what_has_no_name_then_the_longest_unused() -> None:
    usage = RuntimeUsageFact(runtime="docker", build_cache_bytes=9, build_cache_reclaimable_bytes=5 * GIB)
    given = snapshot(
        image("new", days=3),
        image("never", days=None, first_seen_at=NOW - 20 * DAY),
        image("old", days=40),
        image(None, days=2, id="sha256:ff"),
        runtime_usage=(usage,),
    )
    found = plan(given, build_cache_unused=3600.0)
    assert names(found) == ["docker build cache", "ff", "old", "never", "new"]
    assert found.items[0].act == PruneBuildCache(runtime="docker", unused_seconds=3600.0)
    assert (found.items[0].frees_bytes, found.items[1].frees_bytes) == (None, 10 * GIB)
    assert [item.not_before for item in found.items] == [NOW] * 5


def test_the_action_of_an_item() -> None:
    given = image("lab.io/a:1", names=("lab.io/a:1", "lab.io/a:x"))
    references = image_references("n1", (), [Template("Job", "t", "j", ("lab.io/a:2", "lab.io/b:1"))])
    item = plan(snapshot(given), references, pins=("x*",), min_age=7 * DAY, mode=Mode.ENFORCE).items[0]
    assert item.act == RemoveImage(
        runtime="docker", image_id=given.id, names=("lab.io/a:1", "lab.io/a:x"), keep_names=("lab.io/a:2",),
        pins=("x*",), min_age_seconds=7 * DAY, protect_stopped=True, protect_local=True,
    )  # fmt: skip
    assert item.id == f"image/n1/docker/{given.id}"
    assert item.last_used_at == NOW - 30 * DAY


def test_it_stops_at_the_low_water_mark() -> None:
    many = [image(f"i{n}", size=4, days=100 - n) for n in range(10)]
    found = plan(snapshot(*many), when=When(high=0.85, low=0.80))
    assert found.needed_bytes == 10 * GIB
    assert names(found) == ["i0", "i1", "i2"]
    assert found.frees_bytes == 12 * GIB
    assert found.capped_by is None
    below = snapshot(*many, disk=(disk(used=70),))
    assert names(plan(below, when=When(high=0.85, low=0.80))) == []


def test_what_is_kept_for_root_counts_as_full() -> None:
    tight = disk(used=70, available_bytes=10 * GIB)
    assert plan(snapshot(image(), disk=(tight,)), when=When(low=0.75)).needed_bytes == 10 * GIB


@pytest.mark.parametrize(
    ("caps", "expect", "capped"),
    [
        (Caps(items=2), ["i0", "i1"], "items"),
        (Caps(bytes=25 * GIB), ["i0", "i1"], "bytes"),
        (Caps(bytes=9 * GIB), ["small"], "bytes"),
        (Caps(), ["i0", "i1", "i2", "small"], None),
    ],
)
def test_caps(caps: Caps, expect: list[str], capped: str | None) -> None:
    many = [*(image(f"i{n}", days=100 - n) for n in range(3)), image("small", size=8, days=2)]
    found = plan(snapshot(*many), caps=caps)
    assert (names(found), found.capped_by) == (expect, capped)


def test_an_image_of_unknown_size_is_over_every_cap_of_bytes() -> None:
    found = plan(snapshot(image("a", size_bytes=None, unique_bytes=None)), caps=Caps(bytes=99 * GIB))
    assert (names(found), found.capped_by) == ([], "bytes")


def test_shared_layers_are_freed_with_the_last_image_and_never_counted_twice() -> None:
    """Three images of 10 GiB on a common base of 8 GiB: 14 GiB in total."""
    three = [image(f"i{n}", days=50 - n, unique_bytes=2 * GIB) for n in range(3)]
    cache = ImageCacheFact(runtime="docker", images=tuple(three), root="/var/lib/docker", total_bytes=14 * GIB)
    found = plan(snapshot(images=(cache,)))
    assert [item.frees_bytes for item in found.items] == [2 * GIB, 2 * GIB, 10 * GIB]
    assert found.frees_bytes == cache.total_bytes
    kept_one = msgspec.structs.replace(cache, images=(*three[:2], msgspec.structs.replace(three[2], pinned=True)))
    assert plan(snapshot(images=(kept_one,))).frees_bytes == 4 * GIB


def test_an_image_that_a_cap_leaves_out_keeps_the_layers_that_it_shares() -> None:
    base = image("base", size=8, days=50, unique_bytes=0)
    child = image("child", size=10, days=40, unique_bytes=2 * GIB)
    cache = ImageCacheFact(runtime="docker", images=(base, child), root="/var/lib/docker", total_bytes=10 * GIB)
    huge = msgspec.structs.replace(cache, images=(msgspec.structs.replace(base, size_bytes=11 * GIB), child))
    both, one = plan(snapshot(images=(cache,))), plan(snapshot(images=(huge,)), caps=Caps(bytes=10 * GIB))
    assert [(item.name, item.frees_bytes) for item in both.items] == [("base", 0), ("child", 10 * GIB)]
    assert [(item.name, item.frees_bytes) for item in one.items] == [("child", 2 * GIB)]


def test_a_runtime_that_does_not_tell_what_is_shared_promises_nothing() -> None:
    many = [image(f"i{n}", size=4, days=100 - n, unique_bytes=None) for n in range(5)]
    found = plan(snapshot(*many), when=When(low=0.80))
    assert [item.frees_bytes for item in found.items] == [None] * 5  # the executor stops by readings of the disk
    assert "4 GiB" in say("en", found.items[0].why.key, found.items[0].why.values)


def test_what_was_refused_lately_does_not_stop_the_others() -> None:
    given = snapshot(image("first", days=90), image("second", days=80))
    policy = ImagePolicy(name="p", when=When(low=0.80))
    first = plan_images(policy, given, NO_REFERENCES, NOW)
    assert names(first) == ["first"]
    again = plan_images(policy, given, NO_REFERENCES, NOW, refused=frozenset({first.items[0].id}))
    assert (names(again), kept(again)) == (["second"], {"first": "refused-lately"})


def test_only_images_on_the_disk_that_is_full() -> None:
    disks = (disk(used=95, mount="/docker", roles=("runtime",)), disk(used=10, mount="/containerd", roles=("runtime",)))
    caches = (
        ImageCacheFact(runtime="docker", images=(image("full"),), root="/docker/data"),
        ImageCacheFact(runtime="containerd", images=(image("other"),), root="/containerd"),
    )
    given = snapshot(disk=disks, images=caches)
    assert names(plan(given, when=When(low=0.5))) == ["full"]
    assert sorted(names(plan(given))) == ["full", "other"]


@pytest.mark.parametrize(
    ("given", "references", "expect"),
    [
        (snapshot(image()), References({}, ("jobs.batch",)), "needs-unknown"),
        (snapshot(image(), containers=None), NO_REFERENCES, "images-unknown"),
        (snapshot(images=None), NO_REFERENCES, "images-unknown"),
        (snapshot(image(), disk=None), NO_REFERENCES, "disk-unknown"),
        (snapshot(image(), disk=(disk(used_bytes=None),)), NO_REFERENCES, "disk-unknown"),
        (msgspec.structs.replace(snapshot(image()), at=NOW - 700), NO_REFERENCES, "stale"),
        (msgspec.structs.replace(snapshot(image()), at=NOW + 700), NO_REFERENCES, "stale"),
    ],
)
def test_what_is_not_known_is_no_permission(given: NodeSnapshot, references: References, expect: str) -> None:
    assert refused(plan(given, references, when=When(low=0.5))) == expect


def test_the_kubelet_must_not_be_first() -> None:
    assert image_warnings(ImagePolicy(name="p")) == ()
    late = ImagePolicy(name="p", when=When(high=0.9, low=0.8))
    (warning,) = image_warnings(late)
    assert say("en", warning.key, warning.values).startswith("The policy acts above 90%")
    assert "90%" in say("zh", warning.key, warning.values)
    assert image_warnings(late, 0.95) == ()


LATE, EARLY = When(high=0.9, low=0.8), When(high=0.6, low=0.5)


@pytest.mark.parametrize(
    ("name", "when", "kubelet", "expect"),
    [
        ("early enough", EARLY, None, None),
        ("later than usual", LATE, None, (0.9, 0.85)),
        ("later than the configured kubelet", EARLY, 0.55, (0.6, 0.55)),
        ("at the same mark", EARLY, 0.6, (0.6, 0.6)),
        ("the kubelet is configured to be later", LATE, 0.95, (0.9, 0.85)),  # because of evictions
        ("no mark", ALL, 0.1, None),
        ("a mark that yields", ImagePolicy.when, 0.55, None),
    ],
)
def test_a_plan_warns_of_the_kubelet_of_its_node(
    name: str, when: When, kubelet: float | None, expect: tuple[float, float] | None
) -> None:
    kubelet_fact = KubeletFact(image_gc_high_ratio=kubelet)
    for given in (
        snapshot(image(), kubelet=kubelet_fact),
        snapshot(images=None, kubelet=kubelet_fact),
    ):  # also without a plan
        found = [(warning.values["high"], warning.values["kubelet"]) for warning in plan(given, when=when).warnings]
        assert found == ([expect] if expect else []), name


def test_a_default_mark_is_ahead_of_the_kubelet() -> None:
    given = snapshot(image(), kubelet=KubeletFact(image_gc_high_ratio=0.7))
    assert plan(given, when=ImagePolicy.when).needed_bytes == pytest.approx(35 * GIB, abs=1)
    assert plan(snapshot(image()), when=ImagePolicy.when).needed_bytes == 20 * GIB
    assert plan(given, when=When(high=0.8, low=0.7)).needed_bytes == 20 * GIB


def test_a_plan_survives_the_journal() -> None:
    found = plan(snapshot(image("a"), image("b", pinned=True)), when=LATE)
    assert msgspec.json.decode(msgspec.json.encode(found), type=CleanupPlan) == found
    assert found.warnings
    found = plan(snapshot(image("a"), image("b", pinned=True)))
    assert msgspec.json.decode(msgspec.json.encode(found), type=CleanupPlan) == found
    assert found.mode is Mode.DRY_RUN
    assert found.id == plan(snapshot(image("a"), image("b", pinned=True))).id
