"""Runtime usage on a node with two real engines."""

from __future__ import annotations

import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.runtime_usage import RuntimeUsageCollector
from monitor.agent.runtime import Runtimes
from tests.support import HANG_LIMIT_SECONDS
from tests.support.engines import BASE, MIB, ContainerdEngine, DockerEngine, frozen


def test_a_node_without_a_runtime() -> None:
    with pytest.raises(AbsentError):
        RuntimeUsageCollector(Runtimes("/nonexistent/engine.sock", ())).collect()


def test_a_node_with_two_runtimes(docker_engine: DockerEngine, containerd_engine: ContainerdEngine) -> None:
    writer = docker_engine.run(BASE, "/bin/sh", "-c", "dd if=/dev/zero of=/x bs=1M count=3")
    writer.wait()
    collector = RuntimeUsageCollector(
        Runtimes(docker_engine.socket, (containerd_engine.socket,)), timeout=HANG_LIMIT_SECONDS
    )
    try:
        usage = {fact.runtime: fact for fact in collector.collect()}
        with frozen(docker_engine.pid):
            without_docker = collector.collect()
            trouble = collector.warning or ""
    finally:
        docker_engine.remove_containers()
    assert usage.keys() == {"docker", "containerd"}
    assert usage["docker"].writable == {writer.id: 3 * MIB}
    assert [fact.runtime for fact in without_docker] == ["containerd"]
    assert trouble.startswith(f"{docker_engine.socket}: no answer since ")
