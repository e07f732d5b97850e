"""`gpuwarden fits` against a real API server and scheduler: 200 random requests on random clusters.

The nodes have no kubelet. Each request is asked first, then its pods are created, and what the scheduler binds decides.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from monitor.explain.fits.model import FitsRequest, Layout, Workers
from monitor.queries.fits import FitsAnswer
from tests.e2e.fits_clusters import random_holders, random_nodes, random_request
from tests.e2e.fits_world import World, fits_world

CLUSTERS = 8
REQUESTS = 25  # of each cluster


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with fits_world(tmp_path_factory.mktemp("fits")) as world:
        yield world


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_answers_agree_with_the_scheduler(world: World, seed: int) -> None:
    chance = random.Random(seed)
    for node in random_nodes(chance, f"n{seed}"):
        world.add_node(node)
    for manifest in random_holders(chance, world.nodes, f"p{seed}"):
        world.add_holder(manifest)
    try:
        requests = [random_request(chance) for _ in range(REQUESTS)]
        answers = [_checked(world, request, f"r{seed}-{number}") for number, request in enumerate(requests)]
        _check_later(world, list(zip(requests, answers, strict=True)))
    finally:
        world.clear()
    print(seed, Counter(answer.verdict for answer in answers))


def _checked(world: World, request: FitsRequest, name: str) -> FitsAnswer:
    answer = world.ask(request)
    asked = _as_asked(request)
    bound = world.schedule(request, (asked,), name)
    assert answer.fits == (bound[""] == 0), (request, answer.lines, bound)
    assert answer.verdict in ("now", "split", "after", "never"), (request, answer.lines)
    assert (answer.verdict == "split") == bool(answer.splits)
    for number, split in enumerate(answer.splits):
        assert sum(each.pods * each.gpus for each in split.workers) == request.gpus
        bound = world.schedule(request, split.workers, f"{name}-split-{number}")
        assert bound[""] == 0, (request, answer.lines, bound)
    for layout in (*answer.splits, *([answer.layout] if answer.fits and answer.layout else ())):
        assert sum(each.gpus for each in layout.nodes) == request.gpus, (request, layout)
    return answer


def _as_asked(request: FitsRequest) -> Workers:
    return Workers(
        pods=request.pods,
        gpus=request.gpus_per_pod,
        cpu_millicores=request.cpu_millicores,
        memory_bytes=request.memory_bytes,
    )


def _check_later(world: World, asked: list[tuple[FitsRequest, FitsAnswer]]) -> None:
    """After the jobs that one answer names, its job fits; what never fits does not even when all jobs have ended."""
    waiting = [(request, answer) for request, answer in asked if answer.verdict == "after"]
    if waiting:
        request, answer = max(waiting, key=lambda each: len(each[1].waits_for))
        layout: Layout | None = answer.layout
        assert layout is not None
        assert answer.waits_for, answer.lines
        world.delete([job.job for job in answer.waits_for])
        bound = world.schedule(request, layout.workers, "later")
        assert bound[""] == 0, (request, answer.lines, bound)
    world.delete(list(world.pods()))
    for number, (request, answer) in enumerate(asked):
        if answer.verdict == "never":
            bound = world.schedule(request, (_as_asked(request),), f"never-{number}")
            assert bound[""], (request, answer.lines)
