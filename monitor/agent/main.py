"""The agent as a running thing: collectors, server, and a clean end."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections import Counter

import monitor
from monitor.agent.assemble import build_runner
from monitor.agent.runner import Runner
from monitor.agent.server import AgentServer
from monitor.agent.settings import AgentSettings
from monitor.facts import NodeSnapshot

log = logging.getLogger(__name__)
STATUS_EVERY = 60.0


class RunningAgent:
    """An agent that was started. Its server answers until `stop`."""

    def __init__(self, settings: AgentSettings, runner: Runner) -> None:
        self._settings = settings
        self._runner = runner
        self._boot_id = read_boot_id(settings.paths.proc)
        self._server = AgentServer(settings.listen_host, settings.listen_port, settings.token, self.snapshot)

    @property
    def address(self) -> tuple[str, int]:
        """Return the host and port that it really listens on."""
        return self._server.address

    def snapshot(self) -> NodeSnapshot:
        """Return what is known of the node right now. Never blocks: collectors run elsewhere."""
        return NodeSnapshot(
            node=self._settings.node_name,
            at=time.time(),
            agent_version=monitor.__version__,
            boot_id=self._boot_id,
            collectors=self._runner.facts(),
            **self._runner.parts(),
        )

    def serve(self) -> None:
        """Start the collectors and the server, and return."""
        self._runner.start()
        self._server.start()

    def stop(self) -> None:
        """Stop serving and let the collectors end. One that hangs is left to end with the process."""
        self._server.stop()
        self._runner.stop()


def start(settings: AgentSettings) -> RunningAgent:
    """Given settings, return a running agent. Raise OSError if its address cannot be listened on."""
    agent = RunningAgent(settings, build_runner(settings))
    agent.serve()
    return agent


def main(settings: AgentSettings) -> int:
    """Run an agent until SIGTERM or SIGINT, and return the exit code."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    try:
        agent = start(settings)
    except OSError as error:
        log.error("cannot listen on %s:%s: %s; set agent.listen", settings.listen_host, settings.listen_port, error)
        return 1
    log.info("agent of node %s on %s:%d", settings.node_name, *agent.address)
    while not stopping.wait(STATUS_EVERY):
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
