# ruff: noqa: E501  # a case is a row of a table
"""What protects an image, one reason a row."""

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


def seen(**more: Any) -> ImageFact:
    return image(**({"first_seen_at": NOW - 30 * DAY, "last_used_at": NOW - 20 * DAY} | more))


def asked(**more: Any) -> RemoveImage:
    given: dict[str, Any] = {"runtime": "docker", "image_id": ID, "names": (NAME,), "min_age_seconds": 7 * DAY}
    return RemoveImage(**(given | more))


def container(state: str = "running", **more: Any) -> ContainerFact:
    return ContainerFact(id="c1", runtime="docker", state=state, created_at=NOW - 20 * DAY, **more)


def sandbox(ago: float, **more: Any) -> ContainerFact:
    given: dict[str, Any] = {"id": "s1", "runtime": "docker", "state": "running", "sandbox": True, "pod_uid": "u1"}
    return ContainerFact(**(given | {"created_at": NOW - ago} | more))


CASES: list[tuple[str, RemoveImage, ImageFact | None, ImageFact | None, tuple[ContainerFact, ...], str | None]] = [
    ("nothing speaks against it", asked(), image(), seen(), (), None),
    ("gone", asked(), None, None, (), "gone"),
    ("another name since", asked(), image(names=(NAME, "a/b:2")), seen(), (), "changed"),
    ("a name less", asked(names=(NAME, "a/b:2")), image(), seen(), (), None),
    ("the same name, written otherwise", asked(names=("docker.io/a:1",)), image(names=("a:1",)), seen(), (), None),
    ("a running container, by id", asked(), image(), seen(), (container(image_id=ID),), "in-use"),
    ("a running container, by name", asked(), image(), seen(), (container(image=NAME),), "in-use"),
    ("a running container, by digest", asked(), image(), seen(), (container(image=DIGEST),), "in-use"),
    ("as the runtime says", asked(), image(containers=("c1",)), seen(), (container(),), "in-use"),
    ("a stopped container", asked(), image(), seen(), (container("exited", image_id=ID),), "in-use"),
    ("one that may go", asked(protect_stopped=False), image(), seen(), (container("exited", image_id=ID),), None),
    ("a created one", asked(protect_stopped=False), image(), seen(), (container("created", image_id=ID),), "in-use"),
    ("a paused one", asked(protect_stopped=False), image(), seen(), (container("paused", image_id=ID),), "in-use"),
    ("an odd one", asked(protect_stopped=False), image(), seen(), (container("unknown", image_id=ID),), "in-use"),
    ("a container of another image", asked(), image(), seen(), (container(image="a/b:1", image_id="sha256:0"),), None),
    ("a pod that is starting", asked(), image(), seen(), (sandbox(10),), "starting"),
    ("pinned, and a pod that is starting", asked(pins=("harbor.lab/nlp/*",)), image(), seen(), (sandbox(10),), "pinned"),
    ("a pod without containers for long", asked(), image(), seen(), (sandbox(100),), None),
    ("a pod that has begun", asked(), image(), seen(), (sandbox(10), container(image="x", pod_uid="u1")), None),
    ("a pod that has ended", asked(), image(), seen(), (sandbox(10, state="exited"),), None),
    ("the cluster names it", asked(keep_names=(NAME,)), image(), seen(), (), "needed"),
    ("the cluster names its digest", asked(keep_names=(f"x/y@{DIGEST.partition('@')[2]}",)), image(), seen(), (), "needed"),
    ("the cluster names its id", asked(keep_names=(ID[7:],)), image(), seen(), (), "needed"),
    ("the cluster names others", asked(keep_names=("harbor.lab/nlp/bert:2", "bert")), image(), seen(), (), None),
    ("pinned", asked(pins=("harbor.lab/nlp/*",)), image(), seen(), (), "pinned"),
    ("pinned by the runtime", asked(), image(pinned=True), seen(), (), "pinned"),
    ("the image of sandboxes", asked(names=("k8s.io/pause:3",)), image(names=("k8s.io/pause:3",)), seen(), (), "pinned"),
    ("in no known registry", asked(), image(digests=(), local=True), seen(), (), "local-only"),
    ("in no known registry, and young", asked(), image(local=True), seen(first_seen_at=NOW - DAY), (), "local-only"),
    ("in no known registry, and may go", asked(protect_local=False), image(local=True), seen(), (), None),
    ("dangling", asked(names=()), image(names=(), digests=()), seen(), (), None),
    ("came lately", asked(), image(), seen(first_seen_at=NOW - DAY), (), "too-young"),
    ("used lately", asked(), image(), seen(last_used_at=NOW - DAY), (), "too-young"),
    ("never used, here for long", asked(), image(), seen(last_used_at=None), (), None),
    ("used lately by one that has ended", asked(protect_stopped=False), image(), seen(), (container("exited", image_id=ID, finished_at=NOW - 60),), "too-young"),
    ("not known since when", asked(), image(), seen(first_seen_at=None), (), "unknown"),
    ("not known at all", asked(min_age_seconds=0.0), image(), None, (), "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "action", "found", "known", "containers", "word"), CASES, ids=[case[0] for case in CASES]
)
def test_what_protects(
    name: str,
    action: RemoveImage,
    found: ImageFact | None,
    known: ImageFact | None,
    containers: tuple[ContainerFact, ...],
    word: str | None,
) -> None:
    against = removal_refusal(action, found, known, containers, NOW)
    assert (against.word if against else None) == word
