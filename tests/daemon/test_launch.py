"""`gpuwarden agent` as a real process after it has re-executed itself."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

import monitor
from monitor.agent.__main__ import read_settings, run
from monitor.config.root import Config
from monitor.daemon.launch import agent_environment, settings_descriptor, wait_for_first_round
from monitor.facts import CollectorFact, NodeSnapshot
from tests.support.command import STOP_LIMIT, command, get, quiet_environment, running

SECRET = "s3cret-t0ken"
MALLOC = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
SOURCE = Path(monitor.__file__).parent.parent


def started_address(process: subprocess.Popen[str]) -> str:
    """Listen address from the agent's first log line."""
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"on (127\.0\.0\.1:\d+)", line)
    assert found, line
    return f"http://{found[1]}"


def stop(process: subprocess.Popen[str], number: signal.Signals = signal.SIGTERM) -> int:
    process.send_signal(number)
    return process.wait(STOP_LIMIT)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(command("agent"), id="command"),
        pytest.param([sys.executable, "-m", "monitor.cli", "agent"], id="module in the source tree"),
        pytest.param([sys.executable, "-P", "-m", "monitor.cli", "agent"], id="safe path"),
        pytest.param([sys.executable, "-I", "-m", "monitor.cli", "agent"], id="isolated"),
    ],
)
def test_the_agent_starts_answers_and_stops(tmp_path: Path, line: list[str]) -> None:
    environ = quiet_environment(tmp_path, AGENT__TOKEN=SECRET)
    with running(line, environ, cwd=SOURCE) as process:
        url = started_address(process)
        assert get(f"{url}/v1/snapshot")[0] == 401
        status, _, body = get(f"{url}/v1/snapshot", {"Authorization": f"Bearer {SECRET}"})
        assert (status, msgspec.json.decode(body, type=NodeSnapshot).node) == (200, "test-node")
        assert stop(process) == 0


def test_the_process_is_the_agents_alone(tmp_path: Path) -> None:
    environ = quiet_environment(tmp_path, AGENT__TOKEN=SECRET, LOG_LEVEL="debug")
    with running(command("agent"), environ, cwd=tmp_path) as process:
        started_address(process)
        proc = Path("/proc") / str(process.pid)
        line, inherited, maps = ((proc / name).read_bytes() for name in ("cmdline", "environ", "maps"))
        names = list(_open_files(proc))
        assert b"monitor.agent" in line
        assert b"pydantic" not in maps, "the validation library was loaded"
        assert b"MALLOC_ARENA_MAX=2" in inherited
        assert b"GPUWARDEN_" not in inherited
        assert not any("gpuwarden-settings" in name for name in names), "the settings are still open"
        assert SECRET.encode() not in line + inherited
        assert stop(process, signal.SIGINT) == 0
        assert process.stderr is not None
        assert SECRET not in process.stderr.read()


def _open_files(proc: Path) -> Iterator[str]:
    for entry in (proc / "fd").iterdir():
        with suppress(FileNotFoundError):  # collectors open and close files continuously
            yield os.readlink(entry)


def test_a_package_in_the_current_directory_is_not_run(tmp_path: Path) -> None:
    for name in ("monitor/__init__.py", "monitor/agent/__init__.py", "monitor/agent/__main__.py", "msgspec.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("raise SystemExit('hijacked')")
    with running(command("agent"), quiet_environment(tmp_path / "state"), cwd=tmp_path) as process:
        assert get(f"{started_address(process)}/healthz")[0] == 200
        assert stop(process) == 0


def test_it_starts_in_a_directory_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    line = ["/bin/sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@"', str(gone), *command("agent")]
    with running(line, quiet_environment(tmp_path)) as process:
        assert get(f"{started_address(process)}/healthz")[0] == 200
        assert stop(process) == 0


def test_settings_pass_through_the_descriptor_and_nothing_stays_open() -> None:
    settings = Config.model_validate({"agent": {"token": SECRET, "mounts": ["/mnt/数据"] * 5000}}).agent_settings()
    descriptor = settings_descriptor(settings)
    assert os.get_inheritable(descriptor)
    assert read_settings(descriptor) == settings
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.parametrize("arguments", [[], ["--settings-fd"], ["--settings-fd", "x"], ["--help"]])
def test_the_module_is_not_for_people(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert "gpuwarden agent" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, MALLOC),
        ({"MALLOC_ARENA_MAX": "4", "PATH": "/bin"}, {**MALLOC, "MALLOC_ARENA_MAX": "4", "PATH": "/bin"}),
        ({"GPUWARDEN_AGENT__TOKEN": SECRET}, MALLOC),
    ],
)
def test_the_agents_environment(given: dict[str, str], expected: dict[str, str]) -> None:
    assert agent_environment(given) == expected


def node(*collectors: tuple[str, float | None]) -> NodeSnapshot:
    facts = (CollectorFact(name="x", outcome=o, interval_seconds=1, hung_since=h) for o, h in collectors)
    return NodeSnapshot(node="a", at=0, agent_version="0", collectors=tuple(facts))


@pytest.mark.parametrize(
    ("snapshots", "pauses", "rounds"),
    [
        ([node(("ok", None), ("absent", None), ("failed", None))], [], 0),
        ([node(("starting", None)), node(("ok", None))], [False], 1),
        ([node(("starting", None)), node(("starting", 1.0))], [False], 1),
        ([node(("starting", None))] * 3, [False, False, True], 3),
    ],
)
def test_waiting_for_the_first_round(snapshots: list[NodeSnapshot], pauses: list[bool], rounds: int) -> None:
    taken, answers = iter(snapshots), iter(pauses)
    waited = []

    def pause(seconds: float) -> bool:
        waited.append(seconds)
        return next(answers)

    wait_for_first_round(lambda: next(taken), 5, pause)
    assert len(waited) == rounds


def test_waiting_for_the_first_round_ends() -> None:
    wait_for_first_round(lambda: node(("starting", None)), 0.0, lambda _: False)
