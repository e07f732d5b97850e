"""SIGHUP and `gpuwarden reload`: a new configuration is used, an invalid one is rejected, and nothing is lost."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import signal
import socket
import stat
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from monitor.config.file import load
from monitor.daemon.state_lock import StateLock
from monitor.daemon.supervisor import DaemonSupervisor, SupervisorDeps
from tests.security.hook import Hook
from tests.security.state_daemon import RunningDaemon, daemon
from tests.support import wait_until
from tests.support.command import STOP_LIMIT, command, get, quiet_environment, run, running

RELOADS_WITH_NEWS, RELOADS_WITHOUT = 10, 10
SLOW_SECONDS = 4.0  # longer than a stop of the process waits for a delivery


def write_config(path: Path, services: list[str], **more: Any) -> None:
    """A configuration with services that refuse connections."""
    content = {
        "services": [{"name": name, "url": "tcp://127.0.0.1:9", "interval": "1s"} for name in services],
        "rules": {"service_down": {"after": "0s"}},
    }
    path.write_text(json.dumps({"daemon": content | more}), encoding="utf-8")


def services_of(running: RunningDaemon) -> set[str]:
    """Services that the daemon probes."""
    names: set[str] = set()

    def known() -> bool:
        lines = get(f"{running.page}/metrics")[2].splitlines()
        names.update(line.split('"')[1] for line in lines if line.startswith("gpuwarden_service_up{"))
        return bool(names)

    wait_until(known, 30, "the services are probed")
    return names


@contextlib.contextmanager
def reading(running: RunningDaemon) -> Iterator[list[int]]:
    """Read the view again and again; yields the statuses, 0 for a connection that failed."""
    statuses: list[int] = []
    ending = threading.Event()

    def read() -> None:
        while not ending.wait(0.05):
            try:
                statuses.append(get(f"{running.page}/v1/view")[0])
            except (OSError, http.client.HTTPException):
                statuses.append(0)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield statuses
    finally:
        ending.set()
        reader.join()


def reload_by_command(state: Path, config: Path) -> subprocess.CompletedProcess[str]:
    return run("reload", "--config", str(config), environ=quiet_environment(state))


def test_sighup_and_the_command_reload_and_an_invalid_file_is_rejected(tmp_path: Path) -> None:
    state, config, sound = tmp_path / "state", tmp_path / "gpuwarden.yml", tmp_path / "sound.yml"
    write_config(config, ["a"])
    write_config(sound, [])
    with daemon(state, config) as running:
        assert services_of(running) == {"a"}
        first = running.metric("gpuwarden_config_last_reload_success_timestamp_seconds")

        write_config(config, ["b"])
        with reading(running) as statuses:
            result = reload_by_command(state, config)
        assert (result.returncode, result.stdout) == (0, "reloaded\n")
        assert set(statuses) == {200}  # clients notice nothing
        assert services_of(running) == {"b"}
        loaded_at = running.metric("gpuwarden_config_last_reload_success_timestamp_seconds")
        assert loaded_at is not None
        assert first is not None
        assert loaded_at > first

        config.write_text("daemon: {cycle: yesterday, listn: 1}\n", encoding="utf-8")
        result = reload_by_command(state, sound)  # the daemon reads its own file
        assert result.returncode == 2
        for word in ("daemon.cycle", "daemon.listn", "the running configuration stays in use"):
            assert word in result.stderr
        assert running.metric("gpuwarden_config_last_reload_successful") == 0.0

        policy = {"kind": "images", "name": "p", "receivers": ["ghost"]}
        write_config(config, ["c"], cleanup={"policies": [policy]})
        running.process.send_signal(signal.SIGHUP)  # it names an unknown receiver
        wait_until(lambda: running.log.count("configuration rejected") == 2, 30, "it is rejected")
        assert "p: 'ghost': daemon.alerts has no receivers" in running.log
        assert services_of(running) == {"b"}
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()}
        assert set(modes.values()) == {0o600}, modes
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(STOP_LIMIT) == 0


def test_an_agent_survives_sighup(tmp_path: Path) -> None:
    environ = quiet_environment(tmp_path)
    with running(command("agent"), environ, stdout=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert any("listening on" in line for line in lines)
        process.send_signal(signal.SIGHUP)
        assert any("does not reload its configuration" in line for line in lines)
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT) == 0


def test_without_a_daemon_the_command_says_so(tmp_path: Path) -> None:
    namespace = os.readlink("/proc/self/ns/pid")
    with running(["sleep", "600"], quiet_environment(tmp_path)) as stranger:
        # A lock file that a killed daemon left behind; another process has its pid now.
        (tmp_path / "daemon.lock").write_text(f"{stranger.pid} {socket.gethostname()} {namespace}\n")
        result = run("reload", environ=quiet_environment(tmp_path))
        assert stranger.poll() is None
    assert result.returncode == 3
    assert f"no daemon runs with the state directory {tmp_path}" in result.stderr


@contextlib.contextmanager
def supervised(state: Path, config: Path) -> Iterator[Callable[[], None]]:
    """A daemon in this process, so that its threads and descriptors can be counted; yields what reloads it."""
    environ = {name: value for name, value in quiet_environment(state).items() if name.startswith("GPUWARDEN_")}

    def load_again() -> Any:
        return load(str(config), environ)

    level = logging.getLogger().level  # a reload sets it
    listening = socket.create_server(("127.0.0.1", 0))
    supervisor = DaemonSupervisor(load_again(), SupervisorDeps(listening, StateLock(str(state))))
    try:
        yield lambda: supervisor.reload(load_again)
    finally:
        supervisor.stop()
        logging.getLogger().setLevel(level)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_reloads_under_load_lose_and_repeat_no_notification_and_leak_nothing(tmp_path: Path) -> None:
    config = tmp_path / "gpuwarden.yml"
    with Hook(delay=0.2, first_delay=SLOW_SECONDS) as hook:
        receivers = [{"name": "hook", "kind": "webhook", "url": hook.url}]
        alerts = {
            "receivers": receivers,
            "group_by": ["service"],
            "routes": [{"receivers": ["hook"], "group_wait": "0s"}],
        }
        names = ["s0"]
        write_config(config, names, alerts=alerts)
        with supervised(tmp_path / "state", config) as reload:
            wait_until(lambda: hook.begun, 30, "a message is being sent, slowly, when the first reload begins")
            for number in range(1, RELOADS_WITH_NEWS + 1):
                names.append(f"s{number}")
                write_config(config, names, alerts=alerts)
                reload()
            wait_until(lambda: len(sent(hook)) == len(names), 60, "every alert is sent")
            threads, files = threading.active_count(), descriptors()
            for _ in range(RELOADS_WITHOUT):
                reload()
            wait_until(lambda: threading.active_count() <= threads + 5, 60, f"as few threads as {threads}")
            wait_until(lambda: descriptors() <= files + 5, 60, f"as few descriptors as {files}")
        assert sent(hook) == Counter(dict.fromkeys(names, 1))


def sent(hook: Hook) -> Counter[str]:
    return Counter(labels["service"] for labels in hook.groups("firing"))
