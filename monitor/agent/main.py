"""The agent as a running thing: collectors, server, and a clean end."""

from __future__ import annotations

import logging
import time
from collections import Counter

import msgspec

import monitor
from monitor.agent.build import build_runner
from monitor.agent.server import ActionEndpoint, ActionsDisabled, AgentServer
from monitor.agent.settings import AgentSettings
from monitor.base.msgspec_types import know_types
from monitor.base.signals import StopSignal
from monitor.facts import ImageCacheFact, NodeSnapshot

log = logging.getLogger(__name__)
STATUS_INTERVAL_SECONDS = 60.0


class NodeReader:
    """The collectors of a node, and what they have read."""

    def __init__(self, settings: AgentSettings) -> None:
        self._node = settings.node_name
        self._boot_id = read_boot_id(settings.paths.proc)
        self._runner = build_runner(settings)

    def start(self) -> None:
        know_types()  # before any collector's thread decodes something
        self._runner.start()

    def stop(self) -> None:
        """Let the collectors end. One that hangs is left to end with the process."""
        self._runner.stop()

    def images(self) -> tuple[ImageCacheFact, ...] | None:
        """Return the image caches, with when each image came and was last used, as far as that is known right now."""
        caches: tuple[ImageCacheFact, ...] | None = self._runner.fresh("images")
        return caches

    def snapshot(self) -> NodeSnapshot:
        """Return what is known of the node right now. Never blocks: collectors run elsewhere."""
        return NodeSnapshot(
            node=self._node,
            at=time.time(),
            agent_version=monitor.__version__,
            boot_id=self._boot_id,
            collectors=self._runner.facts(),
            **self._runner.parts(),
        )


class RunningAgent:
    """An agent that was started: it reads, and its server answers, until `stop`."""

    def __init__(self, settings: AgentSettings) -> None:
        """Raise OSError if the address cannot be listened on, or what actions need cannot be used."""
        self._reader = NodeReader(settings)
        self._actions = _make_actions(settings, self._reader)
        self._server = AgentServer(
            settings.listen_host,
            settings.listen_port,
            settings.token,
            self.snapshot,
            self._actions,
            settings.actions.tls,
        )
        self._reader.start()
        self._server.start()

    def snapshot(self) -> NodeSnapshot:
        """Return what is known of the node right now, and what the agent was asked to do."""
        return msgspec.structs.replace(self._reader.snapshot(), actions=self._actions.fact())

    @property
    def address(self) -> tuple[str, int]:
        """Return the host and port that it really listens on."""
        return self._server.address

    def stop(self) -> None:
        """Stop serving, acting and reading."""
        self._server.stop()
        self._actions.stop()
        self._reader.stop()


def _make_actions(settings: AgentSettings, reader: NodeReader) -> ActionEndpoint:
    """Return who answers to those who want something done. Raise OSError if what has to be kept cannot be."""
    if not settings.actions.enabled:
        return ActionsDisabled()
    from monitor.agent.actions.build import build_actions  # here: an agent that only reads does not pay for it

    return build_actions(settings, reader.images)


def start(settings: AgentSettings) -> RunningAgent:
    """Given settings, return a running agent. Raise OSError if its address cannot be listened on."""
    return RunningAgent(settings)


def main(settings: AgentSettings) -> int:
    """Run an agent until SIGTERM or SIGINT, and return the exit code."""
    stop = StopSignal()
    try:
        agent = start(settings)
    except OSError as error:
        log.error("cannot start on %s:%s: %s; see agent.listen", settings.listen_host, settings.listen_port, error)
        return 1
    log.info("agent of node %s on %s:%d", settings.node_name, *agent.address)
    while not stop.wait(STATUS_INTERVAL_SECONDS):
        log.info("%s", status_line(agent.snapshot()))
    agent.stop()
    log.info("stopped")
    return 0


def status_line(snapshot: NodeSnapshot) -> str:
    """Given a snapshot, return one line that says how the collectors fare, naming those in trouble."""
    outcomes = Counter("hung" if fact.hung_since else fact.outcome for fact in snapshot.collectors)
    trouble = [fact.name for fact in snapshot.collectors if fact.hung_since or fact.outcome == "failed"]
    counts = " ".join(f"{name}={count}" for name, count in sorted(outcomes.items()))
    return f"collectors {counts}" + (f" trouble={','.join(trouble)}" if trouble else "")


def read_boot_id(proc: str) -> str | None:
    """Return the kernel's id of this boot, or None where it cannot be read."""
    try:
        with open(f"{proc}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None
