"""The running agent: collectors, HTTP server, and clean shutdown."""

from __future__ import annotations

import logging
import time
from collections import Counter

import msgspec

import monitor
from monitor.agent.build import build_runner
from monitor.agent.procfs import read_boot_id
from monitor.agent.routes import ActionEndpoint, ActionsDisabled
from monitor.agent.server import AgentServer
from monitor.agent.settings import AgentSettings
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.base.signals import StopSignal
from monitor.facts import ImageCacheFact, NodeSnapshot

log = logging.getLogger(__name__)
STATUS_INTERVAL_SECONDS = 60.0


class NodeReader:
    """The collectors of a node and their results."""

    def __init__(self, settings: AgentSettings) -> None:
        self._node = settings.node_name
        self._boot_id = read_boot_id(settings.paths.proc)
        self._runner = build_runner(settings)

    def start(self) -> None:
        warm_up_msgspec()  # before any collector thread decodes
        self._runner.start()

    def stop(self) -> None:
        """Stop the collectors. One that hangs is abandoned and ends with the process."""
        self._runner.stop()

    def images(self) -> tuple[ImageCacheFact, ...] | None:
        """Image caches with the times at which each image was first seen and last used, or None if not current."""
        caches: tuple[ImageCacheFact, ...] | None = self._runner.fresh("images")
        return caches

    def snapshot(self) -> NodeSnapshot:
        """Current snapshot of the node. Never blocks: collectors run on their own threads."""
        return NodeSnapshot(
            node=self._node,
            at=time.time(),
            agent_version=monitor.__version__,
            boot_id=self._boot_id,
            collectors=self._runner.facts(),
            **self._runner.parts(),
        )


class RunningAgent:
    """A started agent: it collects and serves until `stop`."""

    def __init__(self, settings: AgentSettings) -> None:
        """Raise OSError if the address cannot be bound or the files that actions need cannot be used."""
        self._reader = NodeReader(settings)
        self._actions = _build_actions(settings, self._reader)
        host, port, tls = settings.listen_host, settings.listen_port, settings.actions.tls
        self._server = AgentServer(host, port, settings.token, self.snapshot, self._actions, tls)
        self._reader.start()
        self._server.start()

    def snapshot(self) -> NodeSnapshot:
        """Current snapshot of the node, including the counters of actions."""
        return msgspec.structs.replace(self._reader.snapshot(), actions=self._actions.fact())

    @property
    def address(self) -> tuple[str, int]:
        return self._server.address

    def stop(self) -> None:
        self._server.stop()
        self._actions.stop()
        self._reader.stop()


def _build_actions(settings: AgentSettings, reader: NodeReader) -> ActionEndpoint:
    """Endpoint for actions. Raise OSError if its state cannot be stored."""
    if not settings.actions.enabled:
        return ActionsDisabled()
    from monitor.agent.actions.build import build_actions  # a read-only agent does not load it

    return build_actions(settings, reader.images)


def start(settings: AgentSettings) -> RunningAgent:
    """Start an agent. Raise OSError if its address cannot be bound."""
    return RunningAgent(settings)


def main(settings: AgentSettings) -> int:
    """Run an agent until SIGTERM or SIGINT, and return the exit code. SIGHUP is only logged."""
    stop = StopSignal()
    try:
        agent = start(settings)
    except OSError as error:
        log.error("cannot start on %s:%s: %s; see agent.listen", settings.listen_host, settings.listen_port, error)
        return 1
    log.info("agent of node %s listening on %s:%d", settings.node_name, *agent.address)
    while not stop.wait(STATUS_INTERVAL_SECONDS):
        if stop.take_reload():
            log.warning("an agent does not reload its configuration; restart it to apply changes")
        log.info("%s", status_line(agent.snapshot()))
    agent.stop()
    log.info("stopped")
    return 0


def status_line(snapshot: NodeSnapshot) -> str:
    """Number of collectors by outcome, and the names of those that failed or hang."""
    outcomes = Counter("hung" if fact.hung_since else fact.outcome for fact in snapshot.collectors)
    trouble = [fact.name for fact in snapshot.collectors if fact.hung_since or fact.outcome == "failed"]
    counts = " ".join(f"{name}={count}" for name, count in sorted(outcomes.items()))
    return f"collectors {counts}" + (f" trouble={','.join(trouble)}" if trouble else "")
