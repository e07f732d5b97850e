"""From a failure of a real component, and from the exit of a program, to the alert that names the cause.

In the lab's cluster the benchmark makes pods fail one after another: pulls through a proxy and a mirror that do not
exist, with a revoked credential, of a corrupt layer and of a malformed archive; an emptyDir above its limit; seccomp
and AppArmor profiles that the node cannot apply; and Python programs that end with an error which only their log
explains. A program with an exception of its own is not among them: its first exit does not cause an alert.

Agent and daemon have their default settings, intervals included, except that each pod is a group of its own. A local
server receives the messages. The first one with the right cause counts, for programs with the line of the log.

A failure starts with the second in the kubelet's event (a pull or container failed, a pod was refused or evicted), that
of a program with the second of its exit. Both are rounded down, so the figures are up to one second too long.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bench.alert import CONFIG, wait_until
from bench.alert_hook import serve
from bench.alert_pods import some_lab
from bench.process import running
from bench.report import Goal, Report
from tests.e2e.real_failures import EVERYWHERE, MODERN, RealFailure
from tests.lab.lab import Lab
from tests.lab.layout import NODE
from tests.nvml import FakeNvml
from tests.support import free_port
from tests.support.failing_programs import PROGRAMS, FailingProgram, program_pod

MAX_ALERT_SECONDS = 10.0
PROGRAM_SECONDS = 120.0  # until a program has run, failed and been reported
REPORT_SECONDS = 60.0  # from a failure to its message, before the benchmark gives up
KUBELET_REASONS = ("Failed", "Evicted", "AppArmor")
ORDINARY = "crash-python-exception"
LOG_SAYS = "Its log says: "
COLUMNS = ("failure", "seconds")
AGENTS = """\
  agents: {{static: ["{agent}"]}}
"""
Alert = dict[str, Any]


class Inbox:
    """Messages about pods, each alert with its wall-clock time of arrival."""

    def __init__(self) -> None:
        self._alerts: list[tuple[float, Alert]] = []

    def note(self, _path: str, alert: Alert) -> None:
        self._alerts.append((time.time(), alert))

    def arrived(self, pod: str, is_right: Callable[[Alert], bool]) -> float | None:
        """Arrival of the first right alert about a pod."""
        for at, alert in self._alerts:
            if alert["status"] == "firing" and alert["labels"].get("pod") == pod and is_right(alert):
                return at
        return None

    def wait(self, pod: str, is_right: Callable[[Alert], bool], limit: float) -> float:
        """The same, awaited; RuntimeError if there is none in time."""
        wait_until(lambda: self.arrived(pod, is_right) is not None, limit, f"the message about {pod}")
        return self.arrived(pod, is_right) or 0.0


def run() -> Report:
    """Let all fail and report the latency of each alert."""
    before = os.getloadavg()[0]
    with TemporaryDirectory() as name, some_lab() as lab, watched(lab, Path(name)) as inbox:
        _warm_up(lab, inbox)
        failures = {failure.name: fail(lab, inbox, failure, Path(name)) for failure in (*EVERYWHERE, *MODERN)}
        programs = {program.name: exit_with(lab, inbox, program) for program in reported_programs()}
    load = f"Load average: {before:.1f} before, {os.getloadavg()[0]:.1f} after."
    how = f"{(__doc__ or '').partition(chr(10) * 2)[2]}\n{load}"
    goals = (
        Goal("failure_alert_p50_s", median(failures.values()), None, "from a failure to the alert, median"),
        Goal("failure_alert_max_s", max(failures.values()), MAX_ALERT_SECONDS, "the same, longest"),
        Goal("log_tail_alert_p50_s", median(programs.values()), None, "from an exit to the alert with the log, median"),
        Goal("log_tail_alert_max_s", max(programs.values()), MAX_ALERT_SECONDS, "the same, longest"),
    )
    tables = (("Failures of components", COLUMNS, rows(failures)), ("Failures of programs", COLUMNS, rows(programs)))
    return Report("failures", "From a failure to its explanation", how, goals, tables)


def rows(seconds: dict[str, float]) -> list[Sequence[str]]:
    """Table rows of latencies, shortest first."""
    return [(name, f"{each:.1f}") for name, each in sorted(seconds.items(), key=lambda item: item[1])]


def reported_programs() -> list[FailingProgram]:
    """Programs whose first exit is an alert."""
    return [program for program in PROGRAMS if program.explained != ORDINARY]


@contextmanager
def watched(lab: Lab, folder: Path) -> Iterator[Inbox]:
    """Run an agent on the lab's node and a daemon; yields what the daemon sends."""
    inbox, program = Inbox(), str(Path(sys.executable).with_name("gpuwarden"))
    agent, config = f"127.0.0.1:{free_port()}", folder / "gpuwarden.yml"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
    settings = {
        "AGENT__LISTEN": agent, "AGENT__NODE_NAME": NODE, "AGENT__PATHS__STATE": str(folder / "agent"),
        **lab.agent_settings(),
    }  # fmt: skip
    given = {f"GPUWARDEN_{name}": value for name, value in settings.items()}
    driver = FakeNvml(folder / "nvml", gpus=len(lab.gpu_ids)).environment()
    with ExitStack() as stack:
        url = stack.enter_context(serve(inbox.note))
        text = CONFIG.format(port=free_port(), state=folder / "state", kubeconfig=lab.kubeconfig, url=url)
        config.write_text(text + AGENTS.format(agent=agent))
        stack.enter_context(running([program, "agent"], {**kept, **given, **driver}, folder / "agent.log"))
        stack.enter_context(running([program, "daemon", "--config", str(config)], kept, folder / "daemon.log"))
        yield inbox


def _warm_up(lab: Lab, inbox: Inbox) -> None:
    """Prove that agent, daemon and server are connected: the log of a first program arrives."""
    exit_with(lab, inbox, PROGRAMS[0])


def fail(lab: Lab, inbox: Inbox, failure: RealFailure, folder: Path) -> float:
    """Make a pod fail; seconds from the kubelet's event to the alert."""
    directory = folder / failure.name
    directory.mkdir()
    with ExitStack() as undo:
        name = f"bench-{failure.name}-{secrets.token_hex(2)}"
        pod = lab.run_pod(name, phase=None, **failure.prepare(lab, undo, directory))
        undo.callback(lab.delete_pods, pod)
        limit = failure.within_seconds + REPORT_SECONDS
        arrived = inbox.wait(name, lambda alert: alert["labels"].get("cause") == failure.cause, limit)
        return arrived - _failed_at(lab, name)


def _failed_at(lab: Lab, pod: str) -> float:
    """Time of the kubelet's first event that reports the failure."""
    events = lab.cluster.core.list_namespaced_event("default", field_selector=f"involvedObject.name={pod}").items
    times = [event.first_timestamp or event.event_time for event in events if event.reason in KUBELET_REASONS]
    return float(min(times).timestamp())


def exit_with(lab: Lab, inbox: Inbox, program: FailingProgram) -> float:
    """Let a program fail; seconds from its exit to the alert with the line of its log."""
    name = f"bench-{program.name}-{secrets.token_hex(2)}"
    pod = lab.run_pod(name, phase=None, **program_pod(program))
    try:
        arrived = inbox.wait(name, lambda alert: LOG_SAYS in alert["annotations"]["description"], PROGRAM_SECONDS)
        ended = lab.cluster.read_pod(pod).status.container_statuses[0].state.terminated
        return arrived - float(ended.finished_at.timestamp())
    finally:
        lab.delete_pods(pod)
