"""Docker: a real engine, and a scripted one for newer versions and failures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitor.agent.runtime.api import EngineError
from monitor.agent.runtime.docker import DockerRuntime, choose_api
from monitor.facts import ContainerFact, ImageFact
from tests.agent.runtime.scripted import Scripted, scripted_engine
from tests.support.clock import FakeClock
from tests.support.engines import BASE, BLOB_ONE, BLOB_TWO, MIB, ONE, TWO, DockerEngine


@pytest.fixture
def engine(docker_engine: DockerEngine) -> Iterator[DockerEngine]:
    yield docker_engine
    docker_engine.remove_containers()


@pytest.fixture
def runtime(engine: DockerEngine) -> DockerRuntime:
    return DockerRuntime(engine.socket)


def by_name(runtime: DockerRuntime) -> dict[str, ContainerFact]:
    return {fact.name or "": fact for fact in runtime.containers()}


def test_containers_of_a_real_engine(engine: DockerEngine, runtime: DockerRuntime) -> None:
    labels = {"io.kubernetes.pod.uid": "u1", "io.kubernetes.pod.name": "train-0", "io.kubernetes.pod.namespace": "lab"}
    running = engine.run(ONE, name="running", labels=labels)
    engine.run(BASE, "/bin/sh", "-c", "exit 3", name="exited").wait()
    engine.run(BASE, name="paused").pause()
    engine.client.containers.create(BASE, name="created")
    facts = by_name(runtime)
    assert {name: fact.state for name, fact in facts.items()} == {
        "running": "running",
        "exited": "exited",
        "paused": "paused",
        "created": "created",
    }
    fact = facts["running"]
    assert fact.pid is not None
    assert os.readlink(f"/proc/{fact.pid}/exe").endswith("busybox")
    assert (fact.id, fact.image, fact.image_id) == (running.id, ONE, engine.client.images.get(ONE).id)
    assert (fact.pod_uid, fact.pod_name, fact.namespace) == ("u1", "train-0", "lab")
    assert fact.log_path == f"{engine.root}/containers/{fact.id}/{fact.id}-json.log"
    assert fact.created_at is not None
    assert fact.started_at is not None
    assert fact.created_at - 1 <= fact.started_at
    assert fact.finished_at is None
    assert facts["exited"].pid is None
    assert (facts["exited"].finished_at or 0) >= fact.started_at
    assert (facts["created"].started_at, facts["created"].pid) == (None, None)


def test_a_restart_is_seen_though_the_state_is_the_same(engine: DockerEngine, runtime: DockerRuntime) -> None:
    container = engine.run(BASE, name="again")
    before = by_name(runtime)["again"]
    container.restart(timeout=0)
    after = by_name(runtime)["again"]
    assert (before.state, after.state) == ("running", "running")
    assert before.pid != after.pid
    assert (after.started_at or 0) > (before.started_at or 0)


def test_images_of_a_real_engine(engine: DockerEngine, runtime: DockerRuntime) -> None:
    user = engine.run(ONE)
    cache = runtime.images()
    assert (cache.runtime, cache.root) == ("docker", engine.root)
    assert cache.version == engine.client.version()["Version"]
    images = {image.names: image for image in cache.images}
    base, one, two = images[(BASE,)], images[(ONE,)], images[(TWO,)]
    assert (one.id, one.containers, two.containers) == (engine.client.images.get(ONE).id, (user.id,), ())
    assert one.size_bytes == (base.size_bytes or 0) + BLOB_ONE
    assert base.created_at == 1714521600.0


def test_shared_layers_are_counted_once(runtime: DockerRuntime) -> None:
    """This engine computes sharing only in the expensive call: its result is used while the images are the same."""
    images = {image.names: image for image in runtime.images().images}
    assert {image.unique_bytes for image in images.values()} == {None}
    base = images[(BASE,)].size_bytes or 0
    usage = runtime.usage()
    cache = runtime.images()
    unique = {image.names: image.unique_bytes for image in cache.images}
    assert (unique[(BASE,)], unique[(ONE,)], unique[(TWO,)]) == (0, BLOB_ONE, BLOB_TWO)
    assert cache.total_bytes == usage.layers_bytes == base + BLOB_ONE + BLOB_TWO


def test_sharing_is_unknown_once_the_images_are_others(engine: DockerEngine, runtime: DockerRuntime) -> None:
    runtime.usage()
    container = engine.run(BASE, "/bin/sh", "-c", "echo x > /x")
    container.wait()
    made = container.commit("local/made", "1")
    try:
        cache = runtime.images()
    finally:
        container.remove()
        engine.client.images.remove(made.id)
    assert {image.unique_bytes for image in cache.images} == {None}
    assert cache.total_bytes is None


def test_usage_of_a_real_engine(engine: DockerEngine, runtime: DockerRuntime) -> None:
    fill = "dd if=/dev/zero of=/x bs=1M count=3; dd if=/dev/zero of=/data/x bs=1M count=2"
    writer = engine.run(BASE, "/bin/sh", "-c", fill, volumes={"data": {"bind": "/data"}})
    writer.wait()
    idle = engine.run(BASE)
    engine.build(f"FROM {BASE}\nCOPY blob /blob\n", {"blob": os.urandom(MIB)})
    try:
        usage = runtime.usage()
    finally:
        engine.client.images.remove("local/built:1")
        engine.client.api.prune_builds()
        engine.remove_containers()
        engine.client.volumes.get("data").remove()
    assert usage.runtime == "docker"
    assert usage.writable == {writer.id: 3 * MIB, idle.id: 0}
    assert usage.writable_bytes == 3 * MIB
    assert [(one.name, one.size_bytes, one.references) for one in usage.volumes] == [("data", 2 * MIB, 1)]
    assert (usage.build_cache_bytes or 0) >= MIB
    assert usage.build_cache_reclaimable_bytes == usage.build_cache_bytes


@pytest.mark.parametrize(
    ("name", "newest", "oldest", "expect"),
    [
        ("Docker 18.09", "1.39", "1.12", (1, 39)),
        ("Docker 20.10", "1.41", "1.12", (1, 41)),
        ("Docker 26.1", "1.45", "1.24", (1, 44)),
        ("Docker 29", "1.52", "1.44", (1, 44)),
        ("one that has forgotten ours", "2.3", "1.60", (1, 60)),
        ("one that does not say", "", "", (1, 44)),
        ("one that says something else", "new", "old", (1, 44)),
    ],
)
def test_the_version_of_the_interface(name: str, newest: str, oldest: str, expect: tuple[int, int]) -> None:
    assert choose_api(newest, oldest) == expect


def version(api: str) -> bytes:
    return json.dumps({"Version": "99.0", "ApiVersion": api, "MinAPIVersion": "1.24"}).encode()


# Recorded from Docker 26.1.5 (Debian 13), shortened: two images on one base, one of them in use.
DOCKER_26: dict[str, bytes | int] = {
    "/version": version("1.45"),
    "/v1.44/info": b'{"DockerRootDir":"/var/lib/docker"}',
    "/v1.44/system/df?type=image": b"""{"LayersSize":4079464,"Images":[
        {"Containers":2,"Created":1794797712,"Id":"sha256:17","Labels":null,"ParentId":"","RepoDigests":null,
         "RepoTags":["local/bb:1"],"SharedSize":1982312,"Size":1982312},
        {"Containers":1,"Created":1794797712,"Id":"sha256:76","Labels":null,"ParentId":"","RepoDigests":null,
         "RepoTags":["local/big:1"],"SharedSize":1982312,"Size":4079464}],
        "Containers":null,"Volumes":null,"BuildCache":null}""",
    "/v1.44/containers/json?all=1": b'[{"Id":"c1","ImageID":"sha256:76","State":"running","Status":"Up 5 minutes"}]',
    "/v1.44/containers/c1/json": b'{"State":{"Status":"running","Pid":7}}',
}


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Scripted]:
    with scripted_engine(tmp_path, dict(DOCKER_26)) as script:
        yield script


def test_a_newer_engine_says_at_once_what_images_share(script: Scripted) -> None:
    cache = DockerRuntime(script.socket).images()
    assert (cache.total_bytes, cache.version, cache.root) == (4079464, "99.0", "/var/lib/docker")
    assert cache.images == (
        ImageFact(
            id="sha256:17",
            names=("local/bb:1",),
            size_bytes=1982312,
            unique_bytes=0,
            created_at=1794797712.0,
            local=True,
        ),
        ImageFact(
            id="sha256:76",
            names=("local/big:1",),
            size_bytes=4079464,
            unique_bytes=2097152,
            created_at=1794797712.0,
            containers=("c1",),
            local=True,
        ),
    )


def test_what_does_not_change_is_not_asked_again(script: Scripted) -> None:
    clock = FakeClock()
    runtime = DockerRuntime(script.socket, clock)
    first = runtime.containers()
    del script.asked[:]
    clock.advance(15)
    assert runtime.containers() == first
    assert script.asked == ["/v1.44/containers/json?all=1"]


@pytest.mark.parametrize(
    ("name", "status", "seconds", "asked"),
    [
        ("up for minutes", "Up 5 minutes", 15, False),
        ("up for a minute", "Up About a minute", 15, False),
        ("up for seconds", "Up 12 seconds", 15, True),
        ("up since just now", "Up Less than a second", 15, True),
        ("healthy", "Up 5 minutes (healthy)", 15, False),
        ("listed too long ago to detect a restart", "Up About a minute", 60, True),
    ],
)
def test_when_a_restart_is_looked_for(name: str, status: str, seconds: float, asked: bool, script: Scripted) -> None:
    clock = FakeClock()
    runtime = DockerRuntime(script.socket, clock)
    runtime.containers()
    del script.asked[:]
    clock.advance(seconds)
    row = {"Id": "c1", "ImageID": "sha256:76", "State": "running", "Status": status}
    script.answers["/v1.44/containers/json?all=1"] = json.dumps([row]).encode()
    runtime.containers()
    assert ("/v1.44/containers/c1/json" in script.asked) is asked


def test_an_engine_that_was_replaced_by_another_version(script: Scripted) -> None:
    runtime = DockerRuntime(script.socket)
    runtime.containers()
    listed = script.answers["/v1.44/containers/json?all=1"]
    script.answers |= {"/version": version("1.41"), "/v1.44/containers/json?all=1": 400}
    script.answers |= {"/v1.41/containers/json?all=1": listed, "/v1.41/containers/c1/json": b"{}"}
    with pytest.raises(EngineError, match="HTTP 400"):
        runtime.containers()
    assert [fact.id for fact in runtime.containers()] == ["c1"]


@pytest.mark.parametrize("info", [500, 404, b"[]", b'{"DockerRootDir":null}'])
def test_an_engine_that_does_not_say_where_its_root_is(info: bytes | int, script: Scripted) -> None:
    script.answers["/v1.44/info"] = info
    runtime = DockerRuntime(script.socket)
    assert [fact.pid for fact in runtime.containers()] == [7]
    assert runtime.root is None


def test_a_container_that_cannot_be_inspected_is_still_listed(script: Scripted) -> None:
    script.answers["/v1.44/containers/c1/json"] = 500
    assert [(fact.id, fact.state, fact.pid) for fact in DockerRuntime(script.socket).containers()] == [
        ("c1", "running", None)
    ]
