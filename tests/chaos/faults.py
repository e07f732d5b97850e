"""Faults as context managers; each records in the ledger which alerts it may cause."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from monitor.base.sqlite import ask_file
from tests.chaos.lies import empty, garbage, lies, other_name, truncated
from tests.chaos.scene import CABLED, DOWN_AFTER, FORGED, NODES, SILENT_AFTER, Scene
from tests.lab.layout import NODE
from tests.support import wait_until
from tests.support.filesystems import fill
from tests.support.receivers.http_server import Behaviour, is_silent, resets, says

MARGIN = 8.0  # seconds beyond its limit that a condition must last to be reported with certainty
BLIND_AFTER = 60.0  # seconds after start before self-monitoring reports
IN_MEMORY, BACK = "continuing in memory", "is writable again; nothing was lost"
JUMP = 600
BY_THE_CLOCK = ("ActionsRefused", "ImagePullSlow", "PodPending", "PodStuckCreating")


@dataclass(frozen=True)
class Chance:
    """Duration and random generator of a fault."""

    length: float
    dice: random.Random


Fault = Callable[[Scene, Chance], AbstractContextManager[None]]


@contextmanager
def agent_killed(scene: Scene, chance: Chance) -> Iterator[None]:
    agent = scene.agents[_least_silent(scene, chance)]
    with _silent(scene, "agent killed", agent.name, chance):
        agent.kill()
        yield
        agent.start()


@contextmanager
def agent_paused(scene: Scene, chance: Chance) -> Iterator[None]:
    agent = scene.agents[_least_silent(scene, chance)]
    with _silent(scene, "agent paused", agent.name, chance):
        agent.send(signal.SIGSTOP)
        try:
            yield
        finally:
            agent.send(signal.SIGCONT)


@contextmanager
def network_cut(scene: Scene, chance: Chance) -> Iterator[None]:
    with _silent(scene, "network cut", CABLED, chance):
        chance.dice.choice((scene.cable.unplug, scene.cable.drop))()
        try:
            yield
        finally:
            scene.cable.plug()


@contextmanager
def bodies_corrupted(scene: Scene, chance: Chance) -> Iterator[None]:
    with _silent(scene, "bodies corrupted", FORGED, chance):
        scene.forger.forge = chance.dice.choice((truncated, garbage, empty, other_name(NODE), other_name(CABLED)))
        try:
            yield
        finally:
            scene.forger.forge = None


@contextmanager
def agent_lies(scene: Scene, chance: Chance) -> Iterator[None]:
    """The agent's claims affect its own node only; they must not cause alerts about other nodes."""
    pods = [pod.metadata.uid for pod in scene.lab.cluster.core.list_pod_for_all_namespaces(_request_timeout=60).items]
    with scene.explained("agent lies", None, node=FORGED):
        scene.forger.forge = lies(scene.lab.gpu_ids, pods)
        try:
            yield
        finally:
            scene.forger.forge = None


@contextmanager
def api_restarted(scene: Scene, chance: Chance) -> Iterator[None]:
    what = "API server down"
    with ExitStack() as stack:
        must = chance.length > DOWN_AFTER + MARGIN
        stack.enter_context(scene.explained(what, "ServiceDown", must, service="kubernetes"))
        stack.enter_context(scene.explained(what, "MonitorBlind"))
        for node in (CABLED, FORGED):  # heartbeats of nodes without a kubelet are not received
            stack.enter_context(scene.explained(what, "NodeDown", node=node))
        if chance.dice.random() < 0.5:
            scene.lab.kill_apiserver()
        else:
            scene.lab.stop_component("apiserver")
        try:
            yield
        finally:
            scene.lab.start_component("apiserver")


def receivers(hook: Behaviour | None, group: Behaviour | int) -> Fault:
    """The fault in which webhook and bot respond like this; None drops the response.

    A number is an error code of the bot, which it sends with status 200.
    """

    @contextmanager
    def fail(scene: Scene, chance: Chance) -> Iterator[None]:
        with scene.explained("receivers fail", "ReceiverFailing"):
            scene.hook.behave = hook or scene.hook.take_and_reset
            if isinstance(group, int):
                scene.group.force = group
            else:
                scene.group.behave = group
            try:
                yield
            finally:
                scene.hook.behave = scene.group.behave = scene.group.force = None

    return fail


@contextmanager
def state_full(scene: Scene, chance: Chance) -> Iterator[None]:
    """Fill the disk of the daemon's state; it keeps unwritten data in memory and reports that."""
    place, tells = scene.daemon.place(), time.monotonic() - scene.daemon.began > BLIND_AFTER
    with (
        scene.explained("state full", None, node=NODE, mount=str(scene.state)),
        scene.explained("state full", "MonitorBlind", service="monitor/state") as blind,
    ):
        # A grown write-ahead log has free space and would not need the disk.
        ask_file(str(scene.state / "alerts.db"), "rw", "PRAGMA wal_checkpoint(TRUNCATE)")
        fill(scene.state)
        try:
            yield
            said = scene.daemon.said(place)
            assert IN_MEMORY in said, "it does not say that it goes on in memory"
            blind.must = tells and chance.length > MARGIN
        finally:
            (scene.state / "full").unlink()
    moved = said.count(IN_MEMORY)
    wait_until(lambda: scene.daemon.said(place).count(BACK) >= moved, 20, "all is in its files again")


def clock_jumps(seconds: int) -> Fault:
    """The fault in which the daemon's clock jumps and returns.

    Meanwhile, ages computed from Kubernetes timestamps are wrong: a new pod may seem old. Agents reject the daemon's
    actions as too old or from the future.
    """

    @contextmanager
    def jump(scene: Scene, chance: Chance) -> Iterator[None]:
        with ExitStack() as stack:
            for alert in BY_THE_CLOCK:
                stack.enter_context(scene.explained("clock wrong", alert))
            scene.clock.set(seconds)
            stack.callback(scene.clock.set, 0)
            yield

    return jump


@contextmanager
def daemon_killed(scene: Scene, chance: Chance) -> Iterator[None]:
    scene.daemon.kill()
    yield
    scene.daemon.start()


@contextmanager
def daemon_paused(scene: Scene, chance: Chance) -> Iterator[None]:
    """Suspend the daemon like a debugger, a frozen container or a sleeping machine; it catches up afterwards."""
    scene.daemon.send(signal.SIGSTOP)
    try:
        yield
    finally:
        scene.daemon.send(signal.SIGCONT)


@contextmanager
def mount_hung(scene: Scene, chance: Chance) -> Iterator[None]:
    where = {"node": NODE, "mount": str(scene.nas.point)}
    with scene.explained("mount hung", "MountLost", chance.length > 2 * MARGIN, **where):
        scene.nas.hang()
        try:
            yield
        finally:
            scene.nas.release()


@contextmanager
def driver_hung(scene: Scene, chance: Chance) -> Iterator[None]:
    scene.nvml.hang()
    try:
        yield
    finally:
        scene.nvml.release()


def _least_silent(scene: Scene, chance: Chance) -> str:
    """The node that was silent least often: a fourth recurrence counts as flapping and resolves later."""
    often = Counter(each.labels["node"] for each in scene.ledger.troubles if each.alert == "AgentSilent" and each.must)
    often.update((CABLED, FORGED))  # these have faults of their own
    return min(chance.dice.sample(NODES, len(NODES)), key=lambda node: often[node])


@contextmanager
def _silent(scene: Scene, what: str, node: str, chance: Chance) -> Iterator[None]:
    """Make a node's agent unreachable; if that lasts long enough it must be reported."""
    with scene.explained(what, "AgentSilent", chance.length > SILENT_AFTER + MARGIN, node=node):
        yield


FAULTS: dict[str, Fault] = {
    "agent killed": agent_killed,
    "agent paused": agent_paused,
    "API server restarted": api_restarted,
    "network cut": network_cut,
    "receivers answer 500": receivers(says(500), says(500)),
    "receivers hang": receivers(is_silent, is_silent),
    "receivers reset": receivers(resets, resets),
    "receivers answer 200 with an error, or get lost": receivers(None, 45009),
    "state full": state_full,
    "clock forward": clock_jumps(JUMP),
    "clock back": clock_jumps(-JUMP),
    "daemon killed": daemon_killed,
    "daemon paused": daemon_paused,
    "mount hung": mount_hung,
    "driver hung": driver_hung,
    "bodies corrupted": bodies_corrupted,
    "agent lies": agent_lies,
}
WITHOUT_API = frozenset({"API server restarted"})
