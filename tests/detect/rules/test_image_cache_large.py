from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.detect.rules.image_cache_large import RULE
from monitor.facts.agents import AgentFact
from tests.detect.builders_storage import (
    GIB,
    Watch,
    absent,
    agent,
    brief,
    cache,
    container,
    disk,
    image,
    once,
    silent,
    text,
    usage,
)

DOCKER = disk("/var/lib/docker", 80, 100, roles=("runtime",))
USED, UNUSED = image("used:1", 30, "train"), image("unused:1", 30)


def node(*images: Any, total: float, **more: Any) -> AgentFact:
    return agent("n1", disk(), DOCKER, images=(cache(*images, total=total),), containers=(container(),), **more)


@pytest.mark.parametrize(
    ("name", "given", "cause"),
    [
        ("half of the disk is still fine", node(USED, total=50), None),
        ("a little more is not", node(USED, total=50.1), "growth"),
        ("in use", node(USED, image("b:1", 20, "train"), total=55), "growth"),
        ("a third is not used", node(USED, UNUSED, total=60), "unused-images"),
        ("build cache", node(USED, total=30, runtime_usage=(usage(build_cache_bytes=30 * GIB),)), "build-cache"),
        ("little build cache", node(USED, total=55, runtime_usage=(usage(build_cache_bytes=GIB),)), "growth"),
        ("pinned images are kept on purpose", node(image("p:1", 60, pinned=True), total=60), "growth"),
        # Two tags of one large image: each is 50 GiB, but removing one frees next to nothing.
        (
            "what unused images share with used ones is not freed",
            node(image("a:1", 50, "train"), image("a:2", 50, unique_bytes=GIB), total=51),
            "growth",
        ),
    ],
)
def test_causes(name: str, given: AgentFact, cause: str | None) -> None:
    found = once(RULE, given)
    assert [(f.severity.value, f.cause) for f in found] == ([("warning", cause)] if cause else [])
    assert [f.labels for f in found] == [{"node": "n1", "mount": "/var/lib/docker"}] * len(found)


def test_it_says_how_much_and_which_in_both_languages() -> None:
    found = once(RULE, node(USED, UNUSED, total=60))[0]
    assert "Images use 60 GiB on /var/lib/docker of n1, 60% of the disk; 30 GiB are unused." in text(found)
    assert "Image unused:1: 30 GiB, unused." in text(found)
    assert "Image used:1" not in text(found)
    assert "其中 30 GiB 未使用" in text(found, "zh")


def test_it_warns_of_an_image_that_may_be_the_only_copy() -> None:
    found = once(RULE, node(USED, image("mine:1", 30, local=True), total=60))[0]
    said = "Image mine:1: 30 GiB, unused and in no known registry: push or save it before removing it."
    assert said in text(found)
    assert "镜像 mine:1：30 GiB，没有容器使用；已知的镜像仓库里都没有，删除前先 push 或 save。" in text(found, "zh")


def test_a_cache_whose_size_is_not_known_for_a_moment_is_as_large_as_it_was() -> None:
    watch = Watch(RULE)
    watch.see(node(USED, UNUSED, total=60))
    unknown = msgspec.structs.replace(cache(USED, UNUSED), total_bytes=None)
    assert brief(watch.see(agent("n1", disk(), DOCKER, images=(unknown,)))) == [("warning", "unused-images", True)]


def test_a_size_can_be_set() -> None:
    assert brief(Watch(RULE, size=20 * GIB).see(node(USED, total=21))) == [("warning", "growth", False)]
    assert Watch(RULE, size=20 * GIB).see(node(USED, total=20)) == []


def test_two_runtimes_on_two_disks_are_judged_apart() -> None:
    disks = (DOCKER, disk("/var/lib/containerd", 80, 1000, roles=("runtime",)))
    caches = (cache(USED, total=60), cache(UNUSED, total=60, root="/var/lib/containerd", runtime="containerd"))
    found = once(RULE, agent("n1", *disks, images=caches))
    assert [finding.labels["mount"] for finding in found] == ["/var/lib/docker"]


def test_held_while_it_cannot_be_known() -> None:
    watch = Watch(RULE)
    watch.see(node(USED, total=60))
    for unknown in (silent(), agent("n1", DOCKER), agent("n1", images=(cache(USED, total=60),))):
        assert brief(watch.see(unknown)) == [("warning", "growth", True)]
    assert watch.see(agent("n1", DOCKER, collectors=(absent("images"),))) == []
