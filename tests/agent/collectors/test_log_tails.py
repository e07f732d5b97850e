"""Causes of failed containers from their logs: read once, bounded, without secrets, and never hanging."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.log_tails import (
    MAX_LINE_CHARS,
    MAX_READS_PER_RUN,
    MAX_TAILS,
    SETTLE_SECONDS,
    LogTailsCollector,
)
from monitor.agent.runtime import Runtimes
from monitor.facts import ContainerFact, LogTailFact
from tests.support import HANG_LIMIT_SECONDS, wait_until
from tests.support.engines import BASE, ContainerdEngine, DockerEngine

NOW = 1_763_260_000.0
TOKEN = "hf_PLANTEDplantedPLANTEDplanted0000"
LINE = f"huggingface_hub.errors.GatedRepoError: 401 Client Error for url: https://me:{TOKEN}@hub/x?token={TOKEN}"


class StoppedClock:
    def time(self) -> float:
        return NOW

    def monotonic(self) -> float:
        return 0.0


def container(id_: str = "c1", **fields: Any) -> ContainerFact:
    defaults: dict[str, Any] = {
        "runtime": "docker",
        "state": "exited",
        "exit_code": 1,
        "log_path": "/0.log",
        "finished_at": NOW - 60,
    }
    return ContainerFact(id=id_, **(defaults | fields))


def collector(root: Path | str, *containers: ContainerFact, lines: bool = True, **more: Any) -> LogTailsCollector:
    return LogTailsCollector(lambda: containers, str(root), lines=lines, clock=StoppedClock(), **more)


def test_the_cause_and_one_line(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_text("user data\nKeyError: 'x'\nmore user data\n")
    fact = LogTailFact(
        container_id="c1", cause="python-exception", line="KeyError: 'x'", exception="KeyError", finished_at=NOW - 60
    )
    assert collector(tmp_path, container()).collect() == (fact,)
    assert collector(tmp_path, container(), lines=False).collect() == (msgspec.structs.replace(fact, line=None),)


UNREAD = [
    ("it runs", {"state": "running", "exit_code": None}),
    ("it ended well", {"exit_code": 0}),
    ("its exit code is unknown", {"exit_code": None}),
    ("a sandbox", {"sandbox": True}),
    ("no log", {"log_path": None}),
    ("it has just ended", {"finished_at": NOW - SETTLE_SECONDS / 2}),
]


@pytest.mark.parametrize(("name", "fields"), UNREAD, ids=[case[0] for case in UNREAD])
def test_logs_that_are_not_read(name: str, fields: dict[str, Any]) -> None:
    def read(path: str) -> str:
        pytest.fail(path)

    assert collector("/", container(**fields), read=read).collect() == ()


def test_each_exit_is_read_once() -> None:
    reads: list[str] = []

    def read(path: str) -> str:
        reads.append(path)
        return "KeyError: 'x'"

    containers = [container()]
    tails = LogTailsCollector(lambda: tuple(containers), "/host", lines=True, clock=StoppedClock(), read=read)
    assert len(tails.collect()) == len(tails.collect()) == 1
    assert reads == ["/host/0.log"]
    containers[0] = container(finished_at=NOW - 10)  # Docker restarted it
    assert [fact.finished_at for fact in tails.collect()] == [NOW - 10]
    containers.clear()
    assert tails.collect() == ()


def test_many_failures_are_bounded() -> None:
    containers = [container(f"c{number}", finished_at=NOW - 10 - number) for number in range(MAX_TAILS + 50)]
    tails = collector("/", *containers, read=lambda _: "KeyError: 'x'")
    assert [fact.container_id for fact in tails.collect()] == [f"c{number}" for number in range(MAX_READS_PER_RUN)]
    for _ in range(MAX_TAILS // MAX_READS_PER_RUN):
        found = tails.collect()
    assert len(found) == MAX_TAILS


def test_a_long_line_is_cut() -> None:
    (fact,) = collector("/", container(), read=lambda _: "KeyError: " + "x" * 5000).collect()
    assert fact.line
    assert len(fact.line) == MAX_LINE_CHARS


def test_a_planted_token_leaves_in_no_message_and_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "0.log").write_text(f"export HF_TOKEN={TOKEN}\n{LINE}\n")
    tails = collector(tmp_path, container(), container("c2", log_path=f"/{TOKEN}.log", finished_at=NOW - 90))
    (fact, _) = tails.collect()
    assert (fact.cause, fact.exception) == ("http-denied", "GatedRepoError")
    assert "401 Client Error" in (fact.line or "")
    assert TOKEN not in msgspec.json.encode(fact).decode()
    assert TOKEN not in caplog.text + str(tails.warning)


def test_a_log_that_cannot_be_read_has_no_cause(tmp_path: Path) -> None:
    assert [fact.cause for fact in collector(tmp_path, container()).collect()] == ["unknown"]


def test_a_hung_disk_delays_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.agent.collectors.log_tails.READ_TIMEOUT_SECONDS", HANG_LIMIT_SECONDS)
    answers = threading.Event()

    def read(path: str) -> str:
        if path == "/dead/0.log":
            answers.wait(30)
        return "KeyError: 'x'"

    dead = container("dead", log_path="/dead/0.log", finished_at=NOW - 5)
    tails = collector("/", dead, container("c1", runtime="containerd"), read=read)
    assert [fact.container_id for fact in tails.collect()] == ["c1"]
    assert "/dead/0.log" in str(tails.warning)
    answers.set()
    wait_until(lambda: len(tails.collect()) == 2, 10, "the log of the container is read once the disk answers")
    assert tails.warning is None


def test_absent_without_containers() -> None:
    with pytest.raises(AbsentError):
        LogTailsCollector(lambda: None, "/", lines=True).collect()


def failure_of(runtime: Any) -> LogTailFact:
    tails = LogTailsCollector(runtime.containers, "/", lines=True)
    wait_until(tails.collect, 30, "the log of the failed container is read")
    (fact,) = tails.collect()
    return fact


def test_a_real_docker_container(docker_engine: DockerEngine) -> None:
    try:
        docker_engine.run(BASE, "/bin/sh", "-c", "echo starts; cat /no/such/file").wait()
        fact = failure_of(Runtimes(docker_engine.socket, ()).present()[0])
    finally:
        docker_engine.remove_containers()
    assert (fact.cause, "/no/such/file" in (fact.line or "")) == ("missing-file", True)


def test_a_real_pod(containerd_engine: ContainerdEngine) -> None:
    containerd_engine.run_pod("fails", BASE, "/bin/sh", "-c", "echo starts; cat /no/such/file")
    try:
        fact = failure_of(Runtimes("/nonexistent/engine.sock", (containerd_engine.socket,)).present()[0])
    finally:
        containerd_engine.remove_pods()
    assert (fact.cause, "/no/such/file" in (fact.line or "")) == ("missing-file", True)
