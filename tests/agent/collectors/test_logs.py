"""Sizes of logs: files as runtimes and rotation leave them, and a real Docker that rotates."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.logs import LogsCollector
from monitor.agent.runtime import Runtimes
from monitor.facts import ContainerFact, LogFact
from tests.support import wait_until
from tests.support.engines import BASE, ContainerdEngine, DockerEngine


def container(log_path: str | None, *, sandbox: bool = False) -> ContainerFact:
    return ContainerFact(id="c1", runtime="docker", state="running", log_path=log_path, sandbox=sandbox)


def collect(rootfs: Path, *containers: ContainerFact) -> tuple[LogFact, ...]:
    return LogsCollector(lambda: containers, str(rootfs)).collect()


@pytest.mark.parametrize(
    ("name", "log", "files", "size", "newest"),
    [
        ("Docker", "c1-json.log", {"c1-json.log": 10}, 10, "c1-json.log"),
        (
            "Docker, rotated",
            "c1-json.log",
            {"c1-json.log": 1, "c1-json.log.1": 10, "c1-json.log.2.gz": 100},
            111,
            "c1-json.log.2.gz",
        ),
        ("what else Docker keeps there", "c1-json.log", {"c1-json.log": 1, "config.v2.json": 50}, 1, "c1-json.log"),
        (
            "CRI, rotated",
            "0.log",
            {"0.log": 1, "0.log.20240501-101500": 10, "0.log.20240430-101500.gz": 100},
            111,
            "0.log.20240430-101500.gz",
        ),
        ("CRI, another run of the container", "1.log", {"0.log": 7, "1.log": 1, "11.log": 5}, 1, "1.log"),
        ("empty", "0.log", {"0.log": 0}, 0, "0.log"),
    ],
)
def test_sizes(name: str, log: str, files: dict[str, int], size: int, newest: str, tmp_path: Path) -> None:
    directory = tmp_path / "var" / "log" / "x"
    directory.mkdir(parents=True)
    for at, (file, length) in enumerate(files.items()):
        (directory / file).write_bytes(bytes(length))
        os.utime(directory / file, (0, 1000 + at))
    fact = LogFact(container_id="c1", size_bytes=size, written_at=(directory / newest).stat().st_mtime)
    assert collect(tmp_path, container(f"/var/log/x/{log}")) == (fact,)


@pytest.mark.parametrize(
    ("name", "path", "error"),
    [
        ("no such directory", "/gone/0.log", "/gone: No such file or directory"),
        ("no such file", "/there/0.log", "/there/0.log: no such file"),
        ("a file in place of the directory", "/there/file/0.log", "/there/file: Not a directory"),
    ],
)
def test_why_a_size_is_unknown(name: str, path: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").touch()
    assert collect(tmp_path, container(path)) == (LogFact(container_id="c1", error=f"{tmp_path}{error}"),)


def test_a_rotated_file_that_is_gone_by_now_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_bytes(b"12345")
    (tmp_path / "0.log.1").symlink_to(tmp_path / "rotated-away")
    assert [fact.size_bytes for fact in collect(tmp_path, container("/0.log"))] == [5]


@pytest.mark.parametrize(
    ("name", "given"),
    [("a sandbox has no log", container("/0.log", sandbox=True)), ("a log that is no file", container(None))],
)
def test_containers_without_a_log(name: str, given: ContainerFact, tmp_path: Path) -> None:
    (tmp_path / "0.log").touch()
    assert collect(tmp_path, given) == ()


def test_nothing_is_known_without_containers() -> None:
    with pytest.raises(AbsentError):
        LogsCollector(lambda: None, "/").collect()


def test_the_rotated_log_of_a_real_docker(docker_engine: DockerEngine) -> None:
    """Lines of 1 KiB in files of 20 KiB; rotation keeps three."""
    line = "x" * 1024
    job = docker_engine.run(
        BASE,
        "/bin/sh",
        "-c",
        f"i=0; while [ $i -lt 100 ]; do echo {line}; i=$((i+1)); done",
        log_config={"Type": "json-file", "Config": {"max-size": "20k", "max-file": "3"}},
    )
    try:
        job.wait()
        containers = Runtimes(docker_engine.socket, ()).present()[0].containers()
        (fact,) = LogsCollector(lambda: containers, "/").collect()
        files = [path for path in Path(containers[0].log_path or "").parent.iterdir() if "-json.log" in path.name]
        assert len(files) == 3
        assert fact.size_bytes == sum(path.stat().st_size for path in files)
        assert (fact.size_bytes or 0) > 40_000
    finally:
        docker_engine.remove_containers()


def test_the_log_of_a_real_pod(containerd_engine: ContainerdEngine) -> None:
    containerd_engine.run_pod("speaks", BASE, "/bin/sh", "-c", "echo hello; exec /bin/sleep 100000")
    try:
        containers = Runtimes("/nonexistent/engine.sock", (containerd_engine.socket,)).present()[0].containers()
        collector = LogsCollector(lambda: containers, "/")
        wait_until(lambda: all(fact.size_bytes for fact in collector.collect()), 30, "the line is in the log")
        (fact,) = collector.collect()
    finally:
        containerd_engine.remove_pods()
    assert fact.error is None
    assert (fact.written_at or 0) >= (containers[-1].started_at or 0) - 1
