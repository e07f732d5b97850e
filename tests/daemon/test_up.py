"""`gpuwarden up` and `gpuwarden daemon` as real processes."""

from __future__ import annotations

import errno
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec
import pytest

from monitor.config.types import Listen
from monitor.daemon.listen import listen_error, page_url
from monitor.facts import NodeSnapshot
from monitor.facts.cluster import ClusterView, SourceView
from tests.support import wait_until
from tests.support.command import STOP_LIMIT, command, get, quiet_environment, run, running


def addresses(process: subprocess.Popen[str]) -> tuple[str, str, str]:
    """Startup output of `up`, and the addresses of metrics and page."""
    assert process.stdout is not None
    printed = ""
    while not (found := re.search(r"metrics  (http://\S+)\npage     (http://\S+)/\n", printed)):
        line = process.stdout.readline()
        assert line, f"ended early: {printed}"
        printed += line
    return printed, found[1], found[2]


def snapshot_of(page: str) -> NodeSnapshot:
    return msgspec.json.decode(get(f"{page}/v1/snapshot")[2], type=NodeSnapshot)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_up_shows_this_machine_serves_it_and_stops(tmp_path: Path, number: signal.Signals) -> None:
    with running(command("up"), quiet_environment(tmp_path)) as process:
        printed, metrics, page = addresses(process)
        assert printed.startswith("node test-node, ")
        assert "\nDisks\n" in printed
        assert "gpuwarden_collector_up" in get(metrics)[2]
        status, headers, body = get(f"{page}/")
        assert (status, headers["content-security-policy"].partition(";")[0]) == (200, "default-src 'self'")
        assert "gpuwarden" in body
        wait_until(lambda: "test-node" in get(f"{page}/")[2], 5, "the page shows the node")
        assert snapshot_of(page).node == "test-node"
        assert get(f"{page}/healthz")[0] == 200
        process.send_signal(number)
        assert process.wait(STOP_LIMIT) == 0


def test_a_signal_while_it_starts_is_not_lost(tmp_path: Path) -> None:
    environ = quiet_environment(tmp_path, DAEMON__LISTEN="127.0.0.1:0", LOG_LEVEL="debug")
    with running(command("up"), environ) as process:
        blocked = Path(f"/proc/{process.pid}/status")
        wait_until(lambda: _blocks_sigterm(blocked.read_text()), 10, "it has begun to start")
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT) == 0  # the running import is completed first


def _blocks_sigterm(status: str) -> bool:
    mask = next(line for line in status.splitlines() if line.startswith("SigBlk:")).split()[1]
    return bool(int(mask, 16) & (1 << (signal.SIGTERM - 1)))


@pytest.fixture
def silent_engine(tmp_path: Path) -> Iterator[str]:
    """A socket that accepts connections and never responds, like a wedged Docker engine."""
    path = str(tmp_path / "docker.sock")
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(path)
        engine.listen(64)
        yield path


def test_a_hung_collector_does_not_keep_it_from_serving_nor_from_stopping(tmp_path: Path, silent_engine: str) -> None:
    environ = quiet_environment(
        tmp_path, AGENT__PATHS__DOCKER_SOCKET=silent_engine, AGENT__COLLECTORS__CONTAINERS__LIMIT="200ms"
    )
    with running(command("up"), environ) as process:
        _, _, page = addresses(process)

        def hung() -> bool:
            return any(fact.name == "containers" and fact.hung_since for fact in snapshot_of(page).collectors)

        wait_until(hung, 5, "the collector hangs")
        wait_until(lambda: "hangs for" in get(f"{page}/nodes/test-node")[2], 15, "the page says so")
        assert snapshot_of(page).disk is not None
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT) == 0


def test_a_client_that_never_finishes_does_not_keep_it_from_stopping(tmp_path: Path) -> None:
    with running(command("up"), quiet_environment(tmp_path)) as process:
        host, port = addresses(process)[2].removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: ")
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_LIMIT) == 0


@pytest.mark.parametrize(
    ("words", "setting", "variable"),
    [
        ("up", "daemon.listen", "DAEMON__LISTEN"),
        ("up", "agent.listen", "AGENT__LISTEN"),
        ("daemon", "daemon.listen", "DAEMON__LISTEN"),
    ],
)
def test_a_port_in_use_is_one_sentence_and_code_1(tmp_path: Path, words: str, setting: str, variable: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run(words, environ=quiet_environment(tmp_path, **{variable: address}))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"gpuwarden: {address} is already in use; stop the program that uses it, or set {setting} "
        f"(or the variable GPUWARDEN_{variable}) to another host:port\n"
    )


def test_an_address_that_is_not_here(tmp_path: Path) -> None:
    result = run("daemon", environ=quiet_environment(tmp_path, DAEMON__LISTEN="192.0.2.1:9836", DAEMON__TOKEN="t0ken"))
    assert result.returncode == 1
    assert result.stderr.startswith("gpuwarden: this machine has no address 192.0.2.1; set daemon.listen (or ")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "this user may not listen on gpu-01:80;"),
        (OSError(socket.EAI_NONAME, "Name or service not known"), "the name gpu-01 has no address;"),
        (OSError(errno.ENOBUFS, "No buffer space available"), "cannot listen on gpu-01:80: No buffer space available;"),
    ],
)
def test_other_reasons_not_to_listen(error: OSError, reason: str) -> None:
    assert listen_error(error, Listen(host="gpu-01", port=80), "agent.listen") == (
        f"{reason} set agent.listen (or the variable GPUWARDEN_AGENT__LISTEN) to another host:port"
    )


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (("127.0.0.1", 1), "http://127.0.0.1:1/"),
        (("0.0.0.0", 1), "http://127.0.0.1:1/"),
        (("::", 1), "http://[::1]:1/"),
        (("::1", 1), "http://[::1]:1/"),
    ],
)
def test_addresses_to_type(address: tuple[str, int], url: str) -> None:
    assert page_url(address) == url


def test_the_daemon_follows_the_agent_of_this_machine_and_says_when_it_is_silent(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        listen = f"127.0.0.1:{probe.getsockname()[1]}"
    environ = quiet_environment(
        tmp_path, AGENT__LISTEN=listen, AGENT__TOKEN="s3cret", DAEMON__AGENTS__INTERVAL="200ms", DAEMON__CYCLE="500ms"
    )
    with running(command("daemon"), environ) as daemon:
        assert daemon.stderr is not None
        page = page_of(daemon.stderr)
        wait_until(lambda: listen in (source(page, "agents").why or ""), 10, "the agent is missed by name")
        with running(command("agent"), environ) as agent:
            wait_until(lambda: [n.name for n in view_of(page).nodes] == ["test-node"], 10, "the agent is heard")
            wait_until(lambda: source(page, "agents").ok, 10, "the agents are seen")
            assert not source(page, "kubernetes").ok
            agent.send_signal(signal.SIGTERM)
            assert agent.wait(STOP_LIMIT) == 0
        wait_until(lambda: not source(page, "agents").ok, 10, "the agent is missed again")
        assert view_of(page).nodes[0].name == "test-node"
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(STOP_LIMIT) == 0


def page_of(log: IO[str]) -> str:
    for line in log:
        if "page on http://" in line:
            return "http://" + line.partition("page on http://")[2].strip(' /"\n')
    raise AssertionError("the daemon did not say where its page is")


def view_of(page: str) -> ClusterView:
    return msgspec.json.decode(get(f"{page}/v1/view")[2], type=ClusterView)


def source(page: str, name: str) -> SourceView:
    return next((s for s in view_of(page).sources if s.name == name), SourceView(name=name, ok=True))


@pytest.mark.parametrize(
    ("locale", "title", "hint"),
    [
        ("C.UTF-8", "No cluster or GPU is connected yet. What to connect:", "install the NVIDIA driver"),
        ("zh_CN.UTF-8", "尚未连接集群或 GPU，可以连接：", "安装 NVIDIA 驱动"),
    ],
)
def test_without_a_cluster_or_gpu_terminal_and_page_say_what_to_connect(
    tmp_path: Path, locale: str, title: str, hint: str
) -> None:
    environ = quiet_environment(tmp_path, AGENT__COLLECTORS__GPU="{enabled: no}")
    lang = "zh" if locale.startswith("zh") else "en"
    with running(command("up"), environ | {"LC_ALL": locale, "PYTHONUTF8": "1"}) as process:
        printed, _, page = addresses(process)
        assert title in printed
        assert hint in printed
        wait_until(lambda: hint in get(f"{page}/?lang={lang}")[2], 30, "the overview says what to connect")
