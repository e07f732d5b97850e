"""Containers of a node with real engines: both, one, none, and a wedged one."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.containers import ContainersCollector
from monitor.agent.collectors.images import ImagesCollector
from monitor.agent.collectors.runtime_usage import RuntimeUsageCollector
from monitor.agent.runner import CollectorWorker
from monitor.agent.runtime import EngineError, Runtimes
from monitor.agent.settings import CollectorSchedule
from tests.support import HANG_LIMIT_SECONDS, wait_until
from tests.support.engines import BASE, ContainerdEngine, DockerEngine, frozen, make_containerd

NONE = "/nonexistent/engine.sock"


@pytest.fixture
def docker(docker_engine: DockerEngine) -> Iterator[DockerEngine]:
    """Docker with one container."""
    docker_engine.run(BASE, name="job")
    yield docker_engine
    docker_engine.remove_containers()


@pytest.fixture
def containerd(containerd_engine: ContainerdEngine) -> Iterator[ContainerdEngine]:
    """containerd with one pod."""
    containerd_engine.run_pod("train-0", BASE, "/bin/sleep", "100000")
    yield containerd_engine
    containerd_engine.remove_pods()


def names(collector: ContainersCollector) -> set[str | None]:
    return {fact.name for fact in collector.collect()}


def test_a_node_without_a_runtime() -> None:
    with pytest.raises(AbsentError):
        ContainersCollector(Runtimes(NONE, (NONE,))).collect()


def test_a_node_with_two_runtimes(docker: DockerEngine, containerd: ContainerdEngine) -> None:
    collector = ContainersCollector(Runtimes(docker.socket, (containerd.socket, NONE)))
    assert names(collector) == {"job", "train-0", "main"}
    assert collector.warning is None


def test_collectors_on_several_threads_share_the_runtimes(
    docker: DockerEngine, containerd: ContainerdEngine, tmp_path: Path
) -> None:
    runtimes = Runtimes(docker.socket, (containerd.socket,))
    collectors: list[ContainersCollector | ImagesCollector | RuntimeUsageCollector] = [
        ContainersCollector(runtimes),
        ContainersCollector(runtimes),
        ImagesCollector(runtimes, lambda: (), str(tmp_path)),
        RuntimeUsageCollector(runtimes),
    ]
    with ThreadPoolExecutor(len(collectors)) as threads:
        results = list(threads.map(lambda one: [one.collect() for _ in range(5)], collectors))
    assert {len(result) for result in results[0] + results[1]} == {3}
    assert {len(result) for result in results[2] + results[3]} == {2}
    assert [collector.warning for collector in collectors] == [None] * 4
    assert runtimes.roots() == tuple(sorted((docker.root, containerd.root)))


def test_a_runtime_that_comes_later(docker: DockerEngine, tmp_path: Path) -> None:
    later = tmp_path / "docker.sock"
    collector = ContainersCollector(Runtimes(str(later), ()))
    with pytest.raises(AbsentError):
        collector.collect()
    later.symlink_to(docker.socket)
    assert names(collector) == {"job"}


@pytest.mark.parametrize("wedged", ["docker", "containerd"])
def test_a_wedged_runtime_costs_the_other_nothing(
    wedged: str, docker: DockerEngine, containerd: ContainerdEngine
) -> None:
    engine, others = {"docker": (docker, {"train-0", "main"}), "containerd": (containerd, {"job"})}[wedged]
    collector = ContainersCollector(Runtimes(docker.socket, (containerd.socket,)), timeout=HANG_LIMIT_SECONDS)
    everything = names(collector)
    began = time.time()
    with frozen(engine.pid):
        assert names(collector) == others
        trouble = collector.warning or ""
        assert trouble.startswith(f"{engine.socket}: no answer since ")
        since = datetime.fromisoformat(trouble.rpartition(" ")[2]).timestamp()
        assert began - 1 <= since <= time.time()
        assert names(collector) == others
        assert collector.warning == trouble
    wait_until(lambda: names(collector) == everything, 30, "the runtime is read again")
    assert collector.warning is None


def test_two_wedged_runtimes_are_a_failure_that_says_since_when(
    docker: DockerEngine, containerd: ContainerdEngine
) -> None:
    collector = ContainersCollector(Runtimes(docker.socket, (containerd.socket,)), timeout=HANG_LIMIT_SECONDS)
    names(collector)
    with frozen(docker.pid), frozen(containerd.pid), pytest.raises(EngineError) as caught:
        collector.collect()
    assert str(caught.value).count("no answer since") == 2


def test_the_only_runtime_wedged_is_reported_as_hung_and_recovers(docker: DockerEngine) -> None:
    collector = ContainersCollector(Runtimes(docker.socket, ()))
    worker = CollectorWorker(collector, CollectorSchedule(enabled=True, interval=0.1, limit=0.3))
    worker.run_once()
    assert worker.fact().outcome == "ok"
    with frozen(docker.pid):
        began = time.time()
        run = threading.Thread(target=worker.run_once)
        run.start()
        wait_until(lambda: worker.fact().hung_since, 30, "the run counts as hung")
        fact = worker.fact()
        assert began - 0.5 <= (fact.hung_since or 0) <= time.time()
        assert fact.runs == 1
    run.join(60)
    fact = worker.fact()
    assert (fact.outcome, fact.hung_since, fact.runs) == ("ok", None, 2)


def test_the_containerd_that_docker_uses_is_no_runtime_of_its_own(
    docker: DockerEngine, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It is queried once and then dismissed, so that Docker is the only runtime, and reported as hung when it is."""
    engine = make_containerd(tmp_path_factory.mktemp("nocri"), cri=False)
    try:
        engine.start(wait=False)
        wait_until(engine.accepts, 30, "the engine listens")
        runtimes = Runtimes(docker.socket, (engine.socket,))
        collector = ContainersCollector(runtimes)
        assert names(collector) == {"job"}
        assert collector.warning is None
        assert [runtime.socket for runtime in runtimes.present()] == [docker.socket]
    finally:
        engine.stop()
        engine.clean_up()


def test_a_runtime_that_is_down_is_named(docker: DockerEngine, tmp_path: Path) -> None:
    left = str(tmp_path / "left.sock")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(left)
    collector = ContainersCollector(Runtimes(docker.socket, (left,)))
    assert names(collector) == {"job"}
    assert (collector.warning or "").startswith(f"{left}: connection refused")
