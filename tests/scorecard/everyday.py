"""Everyday events that are not outages: regular work, and harmless events that temporarily resemble an outage."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from monitor.facts import XidEvent
from monitor.sim.cluster import SimPod
from monitor.sim.everyday import MODELS, USERS
from monitor.sim.manifests import Workload
from monitor.sim.node import GIB, SimNode, SimProcess
from monitor.sim.outages import image
from tests.scorecard.scene import EVERYDAY_CARDS, SHARE, Scene, disk

Wait = Iterator[float]
Harmless = Callable[[Scene, SimNode], Wait]
HOUR = 3600.0
IMAGES = 12
TEAMS = {team for _, team in USERS}


def submit_something(scene: Scene, number: int) -> SimPod | None:
    """Submit a job or a notebook if there is capacity; None otherwise."""
    now, chance = scene.clock.now, scene.chance
    gpus = chance.choice((1, 1, 2, 2, 4))
    room = [node for node in scene.nodes if _has_room(node, gpus)]
    if now < scene.full_until or not room or not scene.api_up:
        return None
    (user, team), model = chance.choice(USERS), chance.choice(MODELS)
    work = Workload(
        f"{model}-{number:04d}", team, user, f"vc-{team}", gpus, image(team, f"{model}:{number % IMAGES}"),
        kind=chance.choice(("train", "train", "train", "notebook")), busy=chance.uniform(0.55, 0.97),
    )  # fmt: skip
    return scene.submit(work, chance.choice(room).name, chance.uniform(0.3, 9.0) * HOUR)


def _has_room(node: SimNode, gpus: int) -> bool:
    held = len(node.gpus) - len(node.free_gpu_indexes())
    return node.answering and not node.cordoned and node.probe_failure is None and held + gpus <= EVERYDAY_CARDS


def tidy(scene: Scene) -> None:
    """Delete finished pods, as users do."""
    for pod in list(scene.cluster.pods.values()):
        everyday = "-" in pod.work.name and pod.work.name.split("-")[0] in MODELS
        if everyday and pod.gone_at is None and scene.cluster.pod_object(pod)["status"]["phase"] == "Succeeded":
            scene.cluster.delete_pod(pod.work.namespace, pod.work.name, 0)


def breathe(scene: Scene) -> None:
    """Small changes of disk usage and images."""
    for node in scene.nodes:
        for mount, most in (("/", 0.02), ("/data", 0.015)):
            one = disk(node, mount)
            if not one.growth:
                one.used += one.size * (scene.chance.uniform(0.3, 0.5) - one.used / one.size) * most
        unused = [each for name, each in node.images.items() if not node.users_of(name)]
        left_over = [each for each in unused if each.names[0].split("/")[1] in TEAMS]
        if len(left_over) > 6:
            node.remove_image(left_over[0].id)


def _agent_restart(scene: Scene, node: SimNode) -> Wait:
    if node.answering:
        node.answering = False
        yield float(scene.chance.randint(3, 20))
        node.answering = True


def _api_restart(scene: Scene, _: SimNode) -> Wait:
    if scene.api_up:
        scene.api_up = False
        yield float(scene.chance.randint(5, 20))
        scene.api_up = True


def _io_burst(scene: Scene, node: SimNode) -> Wait:
    """A checkpoint is written: the disk is busy for a few minutes."""
    one = disk(node, "/data")
    if one.busy < 0.9:
        one.busy, one.queue = 0.99, 30.0
        yield float(scene.chance.randint(60, 420))
        one.busy, one.queue = 0.2, 0.5


def _copy(scene: Scene, node: SimNode) -> Wait:
    """A user copies a data set within half an hour and later removes it gradually."""
    one = disk(node, "/data")
    if not one.growth:
        one.growth = one.size * 0.06 / 1800
        yield 1800.0
        one.growth = 0.0
        yield 2 * HOUR
        one.growth = -one.size * 0.06 / 1800
        yield 1800.0
        one.growth = 0.0


def _drain(scene: Scene, node: SimNode) -> Wait:
    """A planned drain: the node is cordoned, its pods move, and it returns."""
    scene.renew_node(node.name, cordoned=True)
    yield 30.0
    for pod in [each for each in scene.cluster.pods.values() if each.node == node.name and each.ends_at is not None]:
        scene.cluster.delete_pod(pod.work.namespace, pod.work.name, None)
    yield HOUR
    scene.renew_node(node.name)


def _pause(scene: Scene, node: SimNode) -> Wait:
    """A job evaluates or its user pauses for less than half an hour."""
    busy = {each.id: each.busy for each in node.containers.values() if each.busy > 0.5}
    if busy:
        chosen = node.containers[min(busy)]
        chosen.busy = 0.0
        yield float(scene.chance.randint(300, 1500))
        chosen.busy = busy[chosen.id]


def _hot_minutes(scene: Scene, node: SimNode) -> Wait:
    card = node.gpus[scene.chance.randrange(EVERYDAY_CARDS)]
    card.throttled = ("sw_thermal_slowdown", "sw_power_cap")
    yield float(scene.chance.randint(60, 400))
    card.throttled = ("sw_power_cap",)


def _blocked_for_a_moment(scene: Scene, node: SimNode) -> Wait:
    """A process is briefly blocked in disk I/O."""
    if not node.processes:
        return
    first = node.processes[0]
    node.processes[0] = replace(first, state="D", state_since=scene.clock.now)
    yield float(scene.chance.randint(5, 200))
    node.processes = [replace(each, state="R") if each.pid == first.pid else each for each in node.processes]


def _nvidia_smi(scene: Scene, node: SimNode) -> Wait:
    """An administrator uses a GPU for half a minute."""
    free = node.free_gpu_indexes()
    if free:
        tools = [SimProcess(41_000, free[0], None, None, scene.clock.now, 0, name="nvidia-smi", uid=0)]
        tools.append(SimProcess(41_001, free[0], None, None, scene.clock.now, GIB, name="bandwidthTest", uid=0))
        node.processes += tools
        yield 30.0
        node.kill(41_001)
        yield 600.0
        node.kill(41_000)


def _slow_end(scene: Scene, node: SimNode) -> Wait:
    """A job has finished and its process takes a moment to leave the GPU."""
    if len(node.free_gpu_indexes()) > 1 and node.answering and node.probe_failure is None:
        work = Workload(f"slow-{int(scene.clock.now)}", "rl", "liu", "vc-rl", 1, image("base", "pytorch:2.3"))
        pod = scene.submit(work, node.name)
        yield 300.0
        scene.cluster.finish(pod, keep_processes=True)
        yield 25.0
        node.end(pod.uid)
        yield 300.0
        scene.withdraw(pod)


def _pull(scene: Scene, node: SimNode) -> Wait:
    """An image of several gigabytes is pulled within minutes; its container fails once, then runs."""
    if not node.answering or node.probe_failure is not None:
        return
    work = Workload(
        f"pulled-{int(scene.clock.now)}", "rl", "liu", "vc-rl", 0, image("rl", f"fresh-{int(scene.clock.now)}")
    )
    pod = scene.submit(work, node.name, held=True)
    scene.pull(pod)
    yield 200.0
    scene.pull(pod, 200, 6 * GIB)
    yield 5.0
    pod.held = False
    yield 900.0
    scene.withdraw(pod)


def _short_wait(scene: Scene, _: SimNode) -> Wait:
    """A job is pending for a few minutes."""
    work = Workload(f"patient-{int(scene.clock.now)}", "rl", "liu", "vc-rl", 8, image("rl", "ppo:1"))
    uid = scene.waiting_pod(work, "0/8 nodes are available: 8 Insufficient nvidia.com/gpu.")
    yield 400.0
    scene.objects.remove("pods", uid)


def _blip(scene: Scene, _: SimNode) -> Wait:
    """A service fails a single probe."""
    service = scene.services["portal"]
    if service.failure is None:
        service.failure = {"cause": "timeout", "detail": "timed out"}
        yield 12.0
        service.failure = None


def _harmless_xid(scene: Scene, node: SimNode) -> Wait:
    now = scene.clock.now
    node.xids.append(XidEvent(at=now, code=92, source="kernel", gpu_uuid=node.gpus[0].uuid, message="simulated"))
    yield 10.0


def _shm_in_use(scene: Scene, node: SimNode) -> Wait:
    for container in list(node.containers.values())[:1]:
        used, container.shm_used = container.shm_used, int(container.shm_size * 0.8)
        yield 1200.0
        container.shm_used = used


def _cleanup(scene: Scene, _: SimNode) -> Wait:
    """The share's owners delete a tenth within an hour, and it grows back."""
    for sign in (-1, 1):
        for node in scene.nodes:
            disk(node, SHARE).used += sign * disk(node, SHARE).size * 0.05
        yield 5 * HOUR


# With occurrences per week.
HARMLESS: tuple[tuple[Harmless, int], ...] = (
    (_agent_restart, 12), (_api_restart, 4), (_io_burst, 10), (_copy, 4), (_drain, 2), (_pause, 12), (_hot_minutes, 6),
    (_blocked_for_a_moment, 6), (_nvidia_smi, 4), (_slow_end, 4), (_pull, 6), (_short_wait, 4), (_blip, 4),
    (_harmless_xid, 2), (_shm_in_use, 4), (_cleanup, 1),
)  # fmt: skip


def arrivals(chance: random.Random, length: float) -> Iterator[float]:
    """Submission times of users: more by day than by night."""
    moment = 60.0
    while moment < length:
        yield moment
        by_day = 9 <= moment % 86400 / HOUR < 21
        moment += chance.expovariate(1 / (900.0 if by_day else 2700.0))
