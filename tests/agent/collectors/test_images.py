"""Image caches and image uses: over time, across restarts, and with a damaged state file."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.agent.collectors import AbsentError
from monitor.agent.collectors.containers import ContainersCollector
from monitor.agent.collectors.images import ImagesCollector, ImageUse, ImageUseFile, updated_uses
from monitor.agent.runtime import Runtimes
from monitor.facts import ContainerFact, ImageCacheFact, ImageFact
from tests.support import HANG_LIMIT_SECONDS
from tests.support.clock import FakeClock
from tests.support.engines import BASE, ONE, PAUSE, TWO, ContainerdEngine, DockerEngine, frozen

NOW = 10_000.0


def container(state: str, **times: float) -> ContainerFact:
    return ContainerFact(id="c1", runtime="docker", state=state, **times)  # type: ignore[arg-type]  # times only


@pytest.mark.parametrize(
    ("name", "before", "users", "expect"),
    [
        ("new and unused", None, {}, ImageUse(NOW, None)),
        ("new and running", None, {"c1": container("running", started_at=5.0)}, ImageUse(NOW, NOW)),
        ("paused", None, {"c1": container("paused")}, ImageUse(NOW, NOW)),
        ("ended", None, {"c1": container("exited", started_at=5.0, finished_at=9.0)}, ImageUse(NOW, 9.0)),
        ("never started", None, {"c1": container("created", created_at=4.0)}, ImageUse(NOW, 4.0)),
        ("unknown when", None, {"c1": container("unknown")}, ImageUse(NOW, None)),
        ("known and unused now", ImageUse(1.0, 50.0), {}, ImageUse(1.0, 50.0)),
        ("used again", ImageUse(1.0, 50.0), {"c1": container("running")}, ImageUse(1.0, NOW)),
        (
            "used longer ago than known",
            ImageUse(1.0, 50.0),
            {"c1": container("exited", finished_at=9.0)},
            ImageUse(1.0, 50.0),
        ),
        ("a container of another image", ImageUse(1.0), {"c2": container("running")}, ImageUse(1.0)),
    ],
)
def test_what_is_remembered(
    name: str, before: ImageUse | None, users: dict[str, ContainerFact], expect: ImageUse
) -> None:
    image = ImageFact(id="i1", containers=("c1",))
    assert updated_uses({"i1": before} if before else {}, [image], users, NOW) == {"i1": expect}


def test_an_image_that_is_gone_is_forgotten() -> None:
    assert updated_uses({"i1": ImageUse(1.0)}, [], {}, NOW) == {}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "images.json"


@pytest.mark.parametrize(
    ("name", "saved", "then", "written"),
    [
        ("nothing changed", ImageUse(1.0, 1000.0), {"i1": ImageUse(1.0, 1000.0)}, False),
        ("used a minute later", ImageUse(1.0, 1000.0), {"i1": ImageUse(1.0, 1060.0)}, False),
        ("used ten minutes later", ImageUse(1.0, 1000.0), {"i1": ImageUse(1.0, 1600.0)}, True),
        ("used for the first time", ImageUse(1.0), {"i1": ImageUse(1.0, 1000.0)}, True),
        ("another image", ImageUse(1.0), {"i1": ImageUse(1.0), "i2": ImageUse(2.0)}, True),
        ("no image", ImageUse(1.0), {}, True),
    ],
)
def test_when_the_file_is_written(
    name: str, saved: ImageUse, then: dict[str, ImageUse], written: bool, path: Path
) -> None:
    file = ImageUseFile(str(path))
    file.save({"docker": {"i1": saved}})
    before = path.stat().st_ino
    file.save({"docker": then})
    assert (path.stat().st_ino != before) is written
    assert os.listdir(path.parent) == ["images.json"]
    again = ImageUseFile(str(path))
    assert again.load() == {"docker": then if written else {"i1": saved}}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"docker":{"i1":{"first_seen_at":"x"}}}', b"\xff\xfe"])
def test_a_damaged_file_costs_a_warning(content: bytes, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    file = ImageUseFile(str(path))
    with caplog.at_level(logging.WARNING):
        assert file.load() == {}
    assert [record.message.partition(":")[0] for record in caplog.records] == [str(path)]
    file.save({"docker": {"i1": ImageUse(1.0)}})
    assert ImageUseFile(str(path)).load() == {"docker": {"i1": ImageUse(1.0)}}


def test_a_place_that_cannot_be_written_costs_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").write_text("a file where the directory should be")
    file = ImageUseFile(str(tmp_path / "state" / "images.json"))
    with caplog.at_level(logging.WARNING):
        file.save({"docker": {"i1": ImageUse(1.0)}})
        file.save({"docker": {"i2": ImageUse(1.0)}})
    assert len(caplog.records) == 1
    (tmp_path / "state").unlink()
    file.save({"docker": {"i2": ImageUse(1.0)}})
    assert json.loads((tmp_path / "state" / "images.json").read_text())["uses"].keys() == {"docker"}


def test_a_node_without_a_runtime(tmp_path: Path) -> None:
    with pytest.raises(AbsentError):
        ImagesCollector(Runtimes("/nonexistent/engine.sock", ()), lambda: (), str(tmp_path)).collect()


class Node:
    """A node with real engines, and the collectors of one agent, which can be restarted."""

    def __init__(self, sockets: tuple[str, tuple[str, ...]], state: Path) -> None:
        self.clock = FakeClock()
        self._sockets = sockets
        self._state = str(state)
        self.restart()

    def restart(self) -> None:
        runtimes = Runtimes(*self._sockets)
        containers = ContainersCollector(runtimes, timeout=HANG_LIMIT_SECONDS)
        self.collector = ImagesCollector(
            runtimes, containers.collect, self._state, self.clock, timeout=HANG_LIMIT_SECONDS
        )

    def caches(self) -> dict[str, ImageCacheFact]:
        return {cache.runtime: cache for cache in self.collector.collect()}

    def image(self, runtime: str, name: str) -> ImageFact:
        return next(image for image in self.caches()[runtime].images if name in image.names)


@pytest.fixture
def docker(docker_engine: DockerEngine) -> Iterator[DockerEngine]:
    yield docker_engine
    docker_engine.remove_containers()


@pytest.fixture
def node(docker: DockerEngine, containerd_engine: ContainerdEngine, tmp_path: Path) -> Node:
    return Node((docker.socket, (containerd_engine.socket,)), tmp_path / "state")


def test_both_caches(node: Node) -> None:
    caches = node.caches()
    assert {name for image in caches["docker"].images for name in image.names} >= {BASE, ONE, TWO, PAUSE}
    assert {name for image in caches["containerd"].images for name in image.names} >= {
        f"docker.io/{name}" for name in (BASE, ONE, TWO, PAUSE)
    }
    assert node.collector.warning is None


def test_times_over_a_restart(node: Node, docker: DockerEngine) -> None:
    start = node.clock.time()
    job = docker.run(ONE)
    one = node.image("docker", ONE)
    assert (one.first_seen_at, one.last_used_at, one.containers) == (start, start, (job.id,))
    assert node.image("docker", TWO).last_used_at is None
    node.clock.advance(3600)
    assert node.image("docker", ONE).last_used_at == start + 3600
    docker.remove_containers()
    node.clock.advance(3600)
    node.restart()
    one = node.image("docker", ONE)
    assert (one.first_seen_at, one.last_used_at, one.containers) == (start, start + 3600, ())


def test_a_runtime_that_is_wedged_keeps_its_memory(node: Node, docker: DockerEngine) -> None:
    start = node.clock.time()
    node.caches()
    with frozen(docker.pid):
        assert node.caches().keys() == {"containerd"}
        assert "no answer since" in (node.collector.warning or "")
    node.clock.advance(60)
    node.restart()
    assert node.image("docker", ONE).first_seen_at == start


def test_without_containers_an_image_keeps_its_times(docker: DockerEngine, tmp_path: Path) -> None:
    """The runtime still names the containers that use an image."""
    job = docker.run(ONE)
    collector = ImagesCollector(Runtimes(docker.socket, ()), lambda: None, str(tmp_path))
    (cache,) = collector.collect()
    one = next(image for image in cache.images if ONE in image.names)
    assert (one.containers, one.last_used_at) == ((job.id,), None)


def test_the_file_is_small_and_readable(node: Node, tmp_path: Path) -> None:
    node.caches()
    saved: dict[str, Any] = json.loads((tmp_path / "state" / "images.json").read_text())
    assert saved.keys() == {"version", "uses"}
    content = saved["uses"]
    assert content.keys() == {"docker", "containerd"}
    assert all(times.keys() <= {"first_seen_at", "last_used_at"} for times in content["docker"].values())
