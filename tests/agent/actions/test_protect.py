# ruff: noqa: E501  # one case per line
"""What protects an image from removal, one reason per row."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.agent.actions.protect import removal_refusal
from monitor.facts import ContainerFact, ImageFact
from monitor.facts.actions import RemoveImage

NOW = 1_700_000_000.0
DAY = 86400.0
ID = f"sha256:{'a' * 64}"
DIGEST = f"harbor.lab/nlp/bert@sha256:{'d' * 64}"
NAME = "harbor.lab/nlp/bert:1"


def image(**more: Any) -> ImageFact:
    return ImageFact(**({"id": ID, "names": (NAME,), "digests": (DIGEST,)} | more))


def history(**more: Any) -> ImageFact:
    return image(**({"first_seen_at": NOW - 30 * DAY, "last_used_at": NOW - 20 * DAY} | more))


def removal(**more: Any) -> RemoveImage:
    fields: dict[str, Any] = {"runtime": "docker", "image_id": ID, "names": (NAME,), "min_age_seconds": 7 * DAY}
    return RemoveImage(**(fields | more))


def container(state: str = "running", **more: Any) -> ContainerFact:
    return ContainerFact(id="c1", runtime="docker", state=state, created_at=NOW - 20 * DAY, **more)


def sandbox(ago: float, **more: Any) -> ContainerFact:
    fields: dict[str, Any] = {"id": "s1", "runtime": "docker", "state": "running", "sandbox": True, "pod_uid": "u1"}
    return ContainerFact(**(fields | {"created_at": NOW - ago} | more))


CASES: list[tuple[str, RemoveImage, ImageFact | None, ImageFact | None, tuple[ContainerFact, ...], str | None]] = [
    ("nothing protects it", removal(), image(), history(), (), None),
    ("gone", removal(), None, None, (), "gone"),
    ("tagged since the plan", removal(), image(names=(NAME, "a/b:2")), history(), (), "changed"),
    ("a name removed since", removal(names=(NAME, "a/b:2")), image(), history(), (), None),
    ("the same name, spelled differently", removal(names=("docker.io/a:1",)), image(names=("a:1",)), history(), (), None),
    ("a running container, by id", removal(), image(), history(), (container(image_id=ID),), "in-use"),
    ("a running container, by name", removal(), image(), history(), (container(image=NAME),), "in-use"),
    ("a running container, by digest", removal(), image(), history(), (container(image=DIGEST),), "in-use"),
    ("according to the runtime", removal(), image(containers=("c1",)), history(), (container(),), "in-use"),
    ("a stopped container", removal(), image(), history(), (container("exited", image_id=ID),), "in-use"),
    ("a stopped container, not protected", removal(protect_stopped=False), image(), history(), (container("exited", image_id=ID),), None),
    ("a created container", removal(protect_stopped=False), image(), history(), (container("created", image_id=ID),), "in-use"),
    ("a paused container", removal(protect_stopped=False), image(), history(), (container("paused", image_id=ID),), "in-use"),
    ("a container in an unknown state", removal(protect_stopped=False), image(), history(), (container("unknown", image_id=ID),), "in-use"),
    ("a container of another image", removal(), image(), history(), (container(image="a/b:1", image_id="sha256:0"),), None),
    ("a starting pod", removal(), image(), history(), (sandbox(10),), "starting"),
    ("pinned, and a starting pod", removal(pins=("harbor.lab/nlp/*",)), image(), history(), (sandbox(10),), "pinned"),
    ("a pod that has been without containers for long", removal(), image(), history(), (sandbox(100),), None),
    ("a pod with a container", removal(), image(), history(), (sandbox(10), container(image="x", pod_uid="u1")), None),
    ("a pod that has ended", removal(), image(), history(), (sandbox(10, state="exited"),), None),
    ("the cluster references it", removal(keep_names=(NAME,)), image(), history(), (), "needed"),
    ("the cluster references its digest", removal(keep_names=(f"x/y@{DIGEST.partition('@')[2]}",)), image(), history(), (), "needed"),
    ("the cluster references its id", removal(keep_names=(ID[7:],)), image(), history(), (), "needed"),
    ("the cluster references others", removal(keep_names=("harbor.lab/nlp/bert:2", "bert")), image(), history(), (), None),
    ("pinned", removal(pins=("harbor.lab/nlp/*",)), image(), history(), (), "pinned"),
    ("pinned by the runtime", removal(), image(pinned=True), history(), (), "pinned"),
    ("the pause image", removal(names=("k8s.io/pause:3",)), image(names=("k8s.io/pause:3",)), history(), (), "pinned"),
    ("in no known registry", removal(), image(digests=(), local=True), history(), (), "local-only"),
    ("in no known registry, and young", removal(), image(local=True), history(first_seen_at=NOW - DAY), (), "local-only"),
    ("in no known registry, not protected", removal(protect_local=False), image(local=True), history(), (), None),
    ("dangling", removal(names=()), image(names=(), digests=()), history(), (), None),
    ("pulled recently", removal(), image(), history(first_seen_at=NOW - DAY), (), "too-young"),
    ("used recently", removal(), image(), history(last_used_at=NOW - DAY), (), "too-young"),
    ("never used, pulled long ago", removal(), image(), history(last_used_at=None), (), None),
    ("used recently by a stopped container", removal(protect_stopped=False), image(), history(), (container("exited", image_id=ID, finished_at=NOW - 60),), "too-young"),
    ("age unknown", removal(), image(), history(first_seen_at=None), (), "unknown"),
    ("unknown to the collector", removal(min_age_seconds=0.0), image(), None, (), "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "action", "image_fact", "history", "containers", "code"), CASES, ids=[case[0] for case in CASES]
)
def test_what_protects(
    name: str,
    action: RemoveImage,
    image_fact: ImageFact | None,
    history: ImageFact | None,
    containers: tuple[ContainerFact, ...],
    code: str | None,
) -> None:
    refusal = removal_refusal(action, image_fact, history, containers, NOW)
    assert (refusal.code if refusal else None) == code
