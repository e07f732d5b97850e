"""Sixty images on a real Docker and a real containerd: protected ones stay, all others are removed, and `df` agrees."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.facts.actions import ActionState, PruneBuildCache, RemoveImage
from tests.agent.actions.rigs import KINDS, DockerRig, Rig, rig
from tests.agent.registries import registry
from tests.support.engines import BASE, PAUSE
from tests.support.image_archive import Image, archive, busybox_layer, layer

MIB = 1 << 20
FAMILIES, MEMBERS = 6, 10  # images of a family share a layer, all share the base


def name(number: int) -> str:
    return f"local/i{number:02}:1"


# Why each image is protected; all others are removed.
RUNNING, STOPPED, CREATED = (3, 13, 23), (4, 14), (5, 15)
PENDING = {6: "docker.io/local/i06:1", 16: "index.docker.io/local/i16:1"}
PINNED, LABELLED, YOUNG, CHANGED = (7, 8), 17, (9,), 19
SECOND_NAMES = (0, 3, 20, 21)
KEPT = {
    **dict.fromkeys((*RUNNING, *STOPPED, *CREATED), "in-use"),
    **dict.fromkeys(PENDING, "needed"),
    **dict.fromkeys((*PINNED, LABELLED), "pinned"),
    **dict.fromkeys(YOUNG, "too-young"),
    CHANGED: "changed",
}
PINS = ("local/i07*", "*/i08", f"label:name={name(LABELLED)}", "quay.lab/*")


def sixty() -> bytes:
    base = busybox_layer()
    shared = [layer({f"family{number}": os.urandom(MIB)}) for number in range(FAMILIES)]
    images = [Image(BASE, (base,)), Image(PAUSE, (base, layer({"p": b"pause"})))]
    for number in range(FAMILIES * MEMBERS):
        unique = layer({f"own{number}": os.urandom(MIB)})
        images.append(Image(name(number), (base, shared[number // MEMBERS], unique)))
    return archive(tuple(images))


def use(engine: Rig) -> None:
    """Create running, stopped and merely created containers."""
    for number in RUNNING:
        engine.start(engine.create(name(number)))
    for number in STOPPED:
        engine.start(container := engine.create(name(number)))
        engine.stop(container)
    for number in CREATED:
        engine.create(name(number))


@pytest.fixture(scope="module", params=KINDS)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    directory: Path = tmp_path_factory.mktemp(request.param)
    with rig(request.param, directory, sixty()) as started:
        for number in SECOND_NAMES:
            started.tag(name(number), f"local/other:{number}")
        use(started)
        yield started


def test_what_is_protected_stays_and_all_else_goes(engine: Rig) -> None:
    planned = engine.facts()
    engine.tag(name(CHANGED), "local/since:1")
    actions = engine.actions(young=frozenset(planned[name(number)].id for number in YOUNG))
    before, outcomes, freed = engine.used_bytes(), {}, 0
    for target in dict.fromkeys((*(name(number) for number in range(60)), BASE, PAUSE)):
        image = planned[target]
        outcome = actions.remove(
            RemoveImage(
                runtime=engine.name, image_id=image.id, names=image.names, keep_names=tuple(PENDING.values()),
                pins=PINS, min_age_seconds=3600.0, protect_local=False,
            )
        )  # fmt: skip
        outcomes[target] = outcome.code
        freed += outcome.freed_bytes or 0
    expected_refusals = {name(number): code for number, code in KEPT.items()}
    expected_refusals |= (
        {PAUSE: "pinned"} if engine.name == "docker" else {PAUSE: "in-use", BASE: "in-use"}
    )  # used by the pod's sandbox
    assert {target: code for target, code in outcomes.items() if code != "removed"} == expected_refusals
    left = {image.removesuffix(":1") for image in engine.facts() if image.startswith("local/i")}
    assert left == {f"local/i{number:02}" for number in KEPT}
    assert {f"local/other:{number}" for number in SECOND_NAMES if number in KEPT} <= engine.facts().keys()
    freed_on_disk = before - engine.used_bytes()
    whole_families = sum(not any(number // MEMBERS == family for number in KEPT) for family in range(FAMILIES))
    expected = (Counter(outcomes.values())["removed"] - (engine.name == "docker") + whole_families) * MIB
    copies = 2 if engine.name == "containerd" else 1  # containerd stores each layer both packed and unpacked
    assert expected * copies * 0.95 < freed_on_disk < expected * copies * 1.15  # plus directories and metadata
    assert freed == pytest.approx(freed_on_disk, rel=0.05)


def test_what_stopped_may_go_if_it_is_told_so_and_the_runtime_agrees(engine: Rig) -> None:
    """Docker refuses without force; containerd removes the image, and the container keeps its layers."""
    image = engine.facts()[name(STOPPED[0])]
    action = RemoveImage(
        runtime=engine.name, image_id=image.id, names=image.names, min_age_seconds=0.0, protect_stopped=False,
        protect_local=False,
    )  # fmt: skip
    outcome = engine.actions().remove(action)
    assert outcome.code == ("in-use" if engine.name == "docker" else "removed")
    assert (name(STOPPED[0]) in engine.facts()) is (engine.name == "docker")
    running = engine.facts()[name(RUNNING[0])]
    action = RemoveImage(
        runtime=engine.name, image_id=running.id, names=running.names, min_age_seconds=0.0, protect_stopped=False
    )
    assert engine.actions().remove(action).code == "in-use"


@pytest.mark.parametrize(("runtime", "state", "code"), [
    ("containerd", ActionState.REFUSED, "unknown"), ("cri-o", ActionState.REFUSED, "unknown"),
])  # fmt: skip
def test_a_runtime_that_is_not_there(engine: Rig, runtime: str, state: ActionState, code: str) -> None:
    if engine.name == runtime:
        runtime = "docker"
    outcome = engine.actions().remove(RemoveImage(runtime=runtime, image_id="sha256:1", min_age_seconds=0.0))
    assert (outcome.state, outcome.code) == (state, code)
    prune = engine.actions().prune_build_cache(PruneBuildCache(runtime=runtime, unused_seconds=0.0))
    assert (prune.state, prune.code) == (state, code)


def test_build_cache_goes_when_nobody_used_it_for_so_long(engine: Rig) -> None:
    if not isinstance(engine, DockerRig):
        outcome = engine.actions().prune_build_cache(PruneBuildCache(runtime=engine.name, unused_seconds=0.0))
        assert (outcome.state, outcome.code) == (ActionState.REFUSED, "unsupported")
        return
    engine.engine.build("FROM scratch\nCOPY blob /blob\n", {"blob": os.urandom(2 * MIB)})
    engine.engine.client.images.remove("local/built:1")
    young, old = (
        engine.actions().prune_build_cache(PruneBuildCache(runtime="docker", unused_seconds=unused))
        for unused in (3600.0, 0.0)
    )
    assert (young.code, young.freed_bytes, old.code) == ("removed", 0, "removed")
    assert (old.freed_bytes or 0) >= 2 * MIB


def test_what_no_registry_is_known_to_have_goes_only_when_one_has_it(engine: Rig, tmp_path: Path) -> None:
    with registry(tmp_path / "registry") as port:
        name_in_registry = f"127.0.0.1:{port}/team/mine:1"
        engine.load(Image(name_in_registry, (busybox_layer(), layer({"mine": os.urandom(1 << 16)}))))
        image = engine.facts()[name_in_registry]
        action = RemoveImage(runtime=engine.name, image_id=image.id, names=image.names, min_age_seconds=0.0)
        assert (image.local, engine.actions().remove(action).code) == (True, "local-only")
        engine.publish(name_in_registry)
        assert not engine.facts()[name_in_registry].local
        assert engine.actions().remove(action).code == "removed"
        assert name_in_registry not in engine.facts()
