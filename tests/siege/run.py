"""Runs the siege: starts the hostile cluster, agent, daemon and attackers, observes, and stops everything."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.chaos.programs import Program
from tests.security.flood import Address
from tests.siege.canaries import CanaryAlert, CanaryHook, CanaryKeeper, Services
from tests.siege.health import OWN_ADDRESS, SHARED_ADDRESS, HealthCheck, keep_checking
from tests.siege.limits import MIB, MemoryLimit, memory_bytes, memory_limit
from tests.siege.silences import post_silences
from tests.soak.samples import sample
from tests.soak.verdict import crowding
from tests.support import free_port
from tests.support.action_keys import write_keys
from tests.support.command import command, get, quiet_environment

AGENT_BYTES, DAEMON_BYTES = 256 * MIB, 1024 * MIB
SAMPLE_SECONDS = 0.5
SAY_SECONDS = 30.0
READY_SECONDS = 90.0
STOP_SECONDS = 30.0
RAISED = -10
DESCRIPTORS = 8192  # of this process and the attackers


@dataclass
class SiegeCourse:
    """Observations of a run."""

    minutes: float
    limit_kind: str = ""
    canaries: list[CanaryAlert] = field(default_factory=list)
    checks: dict[str, list[HealthCheck]] = field(default_factory=dict)
    shared_checks: dict[str, list[HealthCheck]] = field(default_factory=dict)  # from the address of attackers
    peaks: dict[str, int] = field(default_factory=dict)  # bytes of memory
    descriptors: dict[str, int] = field(default_factory=dict)
    log_bytes: dict[str, int] = field(default_factory=dict)
    exit_codes: dict[str, int | None] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)  # processes that ended or were killed early
    attacks: dict[str, int] = field(default_factory=dict)
    silences: int = 0
    unexpected: list[str] = field(default_factory=list)
    messages: int = 0
    largest_message_bytes: int = 0
    state_bytes: int = 0
    crowding: float = 1.0


@dataclass(frozen=True)
class Besieged:
    """A process of the product under its limit."""

    program: Program
    limit: MemoryLimit
    address: Address


class Helper:
    """A hostile process that reports on its output, and ends at the end of its input."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def finish(self) -> dict[str, int]:
        """End the input, and return the counts that the process prints last."""
        output, _ = self._process.communicate(timeout=60)
        counts: dict[str, int] = json.loads(output.splitlines()[-1])
        return counts

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def run(minutes: float, folder: Path, say: Callable[[str], None] = lambda _: None) -> SiegeCourse:
    """Besiege the product for this long and return the observations."""
    _raise_descriptors()
    course = SiegeCourse(minutes)
    seconds = minutes * 60
    with ExitStack() as stack:
        services, hook = Services(seconds), stack.enter_context(CanaryHook())
        stack.enter_context(services.served())
        cluster = _helper(stack, "tests.siege.cluster")
        ports = json.loads(cluster.read())
        _raise(cluster.pid)
        agent = stack.enter_context(_agent(folder))
        daemon = stack.enter_context(_daemon(folder, agent.address, ports, services, f"{hook.base}/"))
        targets = {"agent": agent, "daemon": daemon}
        course.limit_kind = daemon.limit.kind
        say(f"memory limits: {course.limit_kind}")
        _wait_ready(targets)
        for target in targets.values():  # by now each has its own session
            _raise(target.program.pid)
        course.silences, course.unexpected = _silence(daemon, folder)
        attackers = _helper(stack, "tests.siege.attackers", _text(agent.address), _text(daemon.address))
        attackers.read()  # all idle connections were opened
        say("under attack")
        stopping = threading.Event()
        stack.callback(stopping.set)
        began = time.monotonic()
        before = sample(daemon.program.pid, folder / "daemon", began)
        keeper = CanaryKeeper(services, hook, lambda pod: cluster.send(f"fail {pod}"),
                              lambda pod: cluster.send(f"remove {pod}"))  # fmt: skip
        threads = [threading.Thread(target=keeper.keep, args=(began, seconds, stopping))]
        for name, target in targets.items():
            for source, kept in ((OWN_ADDRESS, course.checks), (SHARED_ADDRESS, course.shared_checks)):
                checks = kept.setdefault(name, [])
                arguments = (target.address, source, checks, stopping)
                threads.append(threading.Thread(target=keep_checking, args=arguments))
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
        stack.callback(stopping.set)
        _watch(course, targets, keeper, began + seconds, say)
        threads[0].join(30)
        stopping.set()
        course.canaries = keeper.canaries
        course.crowding = crowding([before, sample(daemon.program.pid, folder / "daemon", began)])
        course.messages, course.largest_message_bytes = hook.messages, hook.largest_bytes
        _end(course, targets)
        course.attacks = attackers.finish() | cluster.finish()
    course.state_bytes = sum(path.stat().st_size for path in (folder / "daemon").rglob("*") if path.is_file())
    return course


def _raise_descriptors() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, DESCRIPTORS), hard))


def _helper(stack: ExitStack, module: str, *arguments: str) -> Helper:
    helper = Helper(module, *arguments)
    stack.callback(helper.kill)
    return helper


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


@contextmanager
def _agent(folder: Path) -> Iterator[Besieged]:
    keys = write_keys(folder / "keys")
    settings = {"AGENT__ACTIONS": keys.agent_actions(), "AGENT__NODE_NAME": "honest-node"}
    with _besieged("agent", folder, AGENT_BYTES, settings) as agent:
        yield agent


@contextmanager
def _daemon(
    folder: Path, agent: Address, ports: Mapping[str, int], services: Services, hook: str
) -> Iterator[Besieged]:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, users: [{name: u, user: {}}], current-context: c,"
        f' clusters: [{{name: k, cluster: {{server: "http://127.0.0.1:{ports["api"]}"}}}}],'
        " contexts: [{name: c, context: {cluster: k, user: u}}]}"
    )
    config = folder / "gpuwarden.yml"
    config.write_text(yaml.safe_dump({"daemon": {
        "agents": {"static": [_text(agent), f"127.0.0.1:{ports['agent']}"]},
        "kubernetes": {"enabled": "yes", "kubeconfig": str(kubeconfig)},
        "services": services.config(),
        "rules": {"service_down": {"after": "1s"}},
        "alerts": {
            "receivers": [{"kind": "webhook", "name": "hook", "url": hook}],
            "group_by": ["alertname", "pod"],
            "routes": [
                {"match": {"alertname": "ServiceDown"}, "receivers": ["hook"], "group_interval": "1s"},
                {"receivers": ["hook"]},
            ],
        },
    }}))  # fmt: skip
    settings = {"CONFIG": str(config), "DAEMON__KUBERNETES__ENABLED": "yes"}
    with _besieged("daemon", folder, DAEMON_BYTES, settings) as daemon:
        yield daemon


@contextmanager
def _besieged(name: str, folder: Path, limit_bytes: int, settings: Mapping[str, str]) -> Iterator[Besieged]:
    address = ("127.0.0.1", free_port())
    listen = {f"{name.upper()}__LISTEN": _text(address)}
    environ = quiet_environment(folder / name, **(dict(settings) | listen))
    with memory_limit(name, limit_bytes) as limit:
        program = Program(name, limit.line(command(name)), environ, folder / f"{name}.log")
        program.start()
        try:
            yield Besieged(program, limit, address)
        finally:
            program.kill()


def _raise(pid: int) -> None:
    """Raise a process's priority if permitted: other programs are not part of the siege."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, RAISED)
        Path(f"/proc/{pid}/autogroup").write_text(str(RAISED))  # counts across sessions


def _wait_ready(targets: Mapping[str, Besieged]) -> None:
    """Wait until both answer, and the daemon has seen the cluster."""
    deadline = time.monotonic() + READY_SECONDS
    for target in targets.values():
        while not _answers(target):
            if time.monotonic() > deadline or not target.program.runs:
                raise RuntimeError(f"{target.program.name} does not answer: {target.program.said()[-2000:]}")
            time.sleep(0.2)


def _answers(target: Besieged) -> bool:
    page = f"http://{_text(target.address)}"
    try:
        if target.program.name == "daemon":
            return "gpuwarden_look_duration_seconds " in get(f"{page}/metrics")[2]
        return get(f"{page}/healthz")[0] == 200
    except OSError:
        return False


def _silence(daemon: Besieged, folder: Path) -> tuple[int, list[str]]:
    stored, unexpected = post_silences(daemon.address, folder / "daemon")
    return stored, list(unexpected)


def _watch(
    course: SiegeCourse, targets: Mapping[str, Besieged], keeper: CanaryKeeper, end: float, say: Callable[[str], None]
) -> None:
    """Sample both processes until the end, or until one of them has ended or exceeds its limit."""
    say_at = time.monotonic() + SAY_SECONDS
    while time.monotonic() < end and not course.ended:
        time.sleep(SAMPLE_SECONDS)
        for name, target in targets.items():
            if not target.program.runs or target.limit.exceeded(target.program.pid):
                course.ended.append(name)
                continue
            pid = target.program.pid
            course.peaks[name] = max(course.peaks.get(name, 0), memory_bytes(pid))
            course.descriptors[name] = max(course.descriptors.get(name, 0), len(os.listdir(f"/proc/{pid}/fd")))
        if time.monotonic() >= say_at:
            say_at += SAY_SECONDS
            say(_progress(course, keeper))


def _progress(course: SiegeCourse, keeper: CanaryKeeper) -> str:
    last: list[Any] = [None if each.seconds is None else round(each.seconds, 1) for each in keeper.canaries[-4:]]
    slowest = {
        name: round(max(check.seconds for check in checks), 2) for name, checks in course.checks.items() if checks
    }
    memory = {name: round(peak / MIB) for name, peak in course.peaks.items()}
    return f"peak MiB {memory}, slowest health checks {slowest}, last canaries {last}, load {os.getloadavg()[0]:.1f}"


def _end(course: SiegeCourse, targets: Mapping[str, Besieged]) -> None:
    """Terminate both and record how they ended."""
    for name, target in targets.items():
        course.log_bytes[name] = target.program.place()
        course.exit_codes[name] = target.program.stop(STOP_SECONDS)
