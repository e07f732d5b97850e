"""`gpuwarden fits` against a real scheduler where GPUs are available only through ResourceClaims."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from monitor.explain.fits.model import FitsRequest
from tests.e2e.fits_clusters import RandomNode, pod_manifest
from tests.e2e.fits_world import CLAIMS, LIMIT_SECONDS, MERGE, PODS, World, decided, fits_world
from tests.lab.modern.claims import API, claiming, device_class, resource_claim, resource_slice
from tests.support import wait_until

pytestmark = pytest.mark.lab("1.35")
SIZES = (8, 4, 4, 2)  # GPUs of each node
HELD = (3, 2, 1)  # GPUs of each claim that is there already
REQUESTS = 20


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with fits_world(tmp_path_factory.mktemp("claims")) as world:
        world.call("POST", f"/apis/{API}/deviceclasses", device_class())
        for index, gpus in enumerate(SIZES):
            name, amounts = f"dra-{index}", {"cpu": 32000, "memory": 65536, "pods": 50}
            world.add_node(RandomNode(name, amounts, {}, [], cordoned=False, ready=True))
            uuids = [f"GPU-{index}-{card}" for card in range(gpus)]
            world.call("POST", f"/apis/{API}/resourceslices", resource_slice(name, uuids))
        yield world


def claim(world: World, name: str, gpus: int) -> None:
    """Create a claim and a pod that uses it."""
    world.call("POST", CLAIMS, resource_claim(name, gpus))
    manifest, fields = pod_manifest(name, {"cpu": "1"}), claiming(name)
    manifest["spec"] |= fields["spec"]
    manifest["spec"]["containers"][0]["resources"] |= fields["container"]["resources"]
    world.call("POST", PODS, manifest)


def drop(world: World, names: list[str]) -> None:
    """Delete pods and their claims, which no controller releases."""
    world.delete(names)
    for name in names:
        world.call("PATCH", f"{CLAIMS}/{name}", {"metadata": {"finalizers": None}}, MERGE)
        world.api.request("DELETE", f"{CLAIMS}/{name}")


def claims_seen(world: World) -> bool:
    world.live.refresh()
    seen = {each.name: each.resource_version for each in world.live.devices.claims}
    return seen == world.versions(CLAIMS) and len(world.live.devices.slices) == len(SIZES)


def test_claims_agree_with_the_scheduler(world: World) -> None:
    chance = random.Random(7)
    held = [f"held-{number}" for number in range(len(HELD))]
    for name, gpus in zip(held, HELD, strict=True):
        claim(world, name, gpus)
        wait_until(partial(_is_bound, world, name), LIMIT_SECONDS, f"{name} is bound")
    verdicts = []
    for number in range(REQUESTS):
        per_node, pods = chance.randint(1, 8), chance.randint(1, 4)
        request = FitsRequest(gpus=per_node * pods, per_node=per_node, cpu_millicores=1000)
        wait_until(lambda: claims_seen(world), LIMIT_SECONDS, "the watch has seen all claims")
        answer = world.ask(request)
        verdicts.append(answer.verdict)
        names = [f"asked-{number}-{each}" for each in range(pods)]
        for name in names:
            claim(world, name, per_node)
        _agrees(world, names, fits=answer.fits, told=(request, answer.lines))
        drop(world, names)
    assert {"now", "never"} <= set(verdicts)
    assert any("DeviceClass gpu.nvidia.com" in line for line in world.ask(FitsRequest(gpus=1)).lines)


def _agrees(world: World, names: list[str], *, fits: bool, told: Any) -> None:
    """All pods are bound, or at least one is refused. The scheduler may learn late that earlier claims are gone."""
    if fits:
        wait_until(lambda: all(_is_bound(world, name) for name in names), LIMIT_SECONDS, f"all are bound: {told}")
        return
    wait_until(lambda: all(decided(world.pods()[name]) for name in names), LIMIT_SECONDS, f"all are decided: {told}")
    assert not all(_is_bound(world, name) for name in names), told


def _is_bound(world: World, name: str) -> bool:
    return "nodeName" in world.pods()[name]["spec"]
