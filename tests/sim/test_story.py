"""The simulated cluster: protocols, start and end of each outage, and the demo's settings."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from monitor.config.root import Config
from monitor.config.types import Listen
from monitor.facts.node import NodeSnapshot
from monitor.sim.cluster import SimCluster
from monitor.sim.demo import run_demo, settings
from monitor.sim.everyday import fill_cluster
from monitor.sim.manifests import Workload
from monitor.sim.objects import SimObjects
from monitor.sim.outages import OUTAGES, Outage, OutageContext, image
from monitor.sim.simulation import Simulation
from monitor.web.context import PageExtras
from tests.support import wait_until

READ = 5.0


@pytest.fixture
def story() -> Iterator[Simulation]:
    made = Simulation(outages=())
    made.start()
    yield made
    made.stop()


def get(port: int, path: str, host: str = "127.0.0.1") -> bytes:
    with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=READ) as answer:
        return bytes(answer.read())


def test_lists_are_those_of_an_api_server(story: Simulation) -> None:
    nodes = json.loads(get(story.api_port, "/api/v1/nodes"))
    assert [node["metadata"]["name"] for node in nodes["items"]] == [f"gpu{number:02d}" for number in range(1, 7)]
    assert nodes["items"][0]["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    pods = json.loads(get(story.api_port, "/api/v1/pods"))
    assert int(pods["metadata"]["resourceVersion"]) > 0
    assert {pod["metadata"]["name"] for pod in pods["items"]} >= {f"gpuwarden-agent-gpu{n:02d}" for n in range(1, 7)}


def test_a_watch_tells_what_comes_and_goes(story: Simulation) -> None:
    version = json.loads(get(story.api_port, "/api/v1/pods"))["metadata"]["resourceVersion"]
    work = Workload("watched", "nlp", "zhang", "vc-nlp", 0, image("nlp", "bert:3"))
    url = f"http://127.0.0.1:{story.api_port}/api/v1/pods?watch=true&resourceVersion={version}&timeoutSeconds=20"
    with urllib.request.urlopen(url, timeout=READ) as watch:
        story.call(lambda stage: stage.submit("test", work, "gpu01"))
        story.call(lambda stage: stage.withdraw("test"))
        told: list[str] = []
        while not told or told[-1] != "DELETED":
            event = json.loads(watch.readline())
            if event["object"]["metadata"]["name"] == "watched":
                told.append(event["type"])
    assert told[0] == "ADDED"
    assert "MODIFIED" in told


def test_agents_answer_with_the_wire_format(story: Simulation) -> None:
    address = story.call(lambda stage: stage.cluster.nodes["gpu03"].address)
    told = msgspec.json.decode(get(story.agents_port, "/v1/snapshot", address), type=NodeSnapshot)
    assert (told.node, len(told.gpu.gpus) if told.gpu else 0) == ("gpu03", 8)
    assert told.pod_devices


@pytest.fixture
def stage() -> OutageContext:
    cluster = SimCluster(SimObjects(), time.time)
    for number in range(1, 7):
        cluster.add_node(f"gpu{number:02d}", 8)
    fill_cluster(cluster)
    return OutageContext(cluster)


def looks(stage: OutageContext) -> dict[str, object]:
    """State that outages change, without what changes on its own."""
    nodes = stage.cluster.nodes.values()
    return {
        "pods": len(stage.cluster.pods),
        "lost": [node.name for node in nodes if not node.answering],
        "registry": [node.name for node in nodes if node.probe_failure],
        "images": sum(len(node.images) for node in nodes),
        "shares": round(sum(disk.used for node in nodes for disk in node.disks if "nas" in disk.roles) / 2**40),
        "growth": [node.name for node in nodes for disk in node.disks if disk.growth],
        "portal": stage.portal_status,
        "processes": sum(len(node.processes) for node in nodes),
    }


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda outage: outage.name)
def test_each_outage_begins_and_ends(stage: OutageContext, outage: Outage) -> None:
    before = looks(stage)
    outage.begin(stage)
    during = looks(stage)
    assert during != before
    outage.end(stage)
    stage.cluster.clock = lambda: time.time() + 60  # once deletions have taken effect
    stage.cluster.step(0.5)
    after = looks(stage)
    after["images"] = before["images"]  # pulled images stay
    assert after == before


def test_outages_happen_once_the_story_is_played() -> None:
    begun: list[str] = []
    quick = Outage("quick", 0, 1.0, lambda _: begun.append("begun"), lambda _: begun.append("over"))
    story = Simulation(nodes=2, outages=(quick,))
    story.start()
    assert begun == []
    story.play()
    try:
        wait_until(lambda: begun == ["begun", "over"], 10, "the outage has begun and ended")
    finally:
        story.stop()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_settings_of_the_demo_are_good(story: Simulation, tmp_path: Path, lang: str) -> None:
    config = Config.model_validate(settings(story, tmp_path, Listen(host="127.0.0.1", port=1), lang))
    (images, _) = config.daemon.cleanup.settings()
    assert (images.kind, images.mode, images.announce) == ("images", "enforce", 0.0)
    assert config.daemon.alerts.language == lang
    assert config.daemon.rules.limits()


def test_the_demo_says_where_to_look_and_cleans_up_after_itself() -> None:
    said: list[str] = []
    states: list[Path] = []

    def run(config: Config, extras: PageExtras, ready: Callable[[], None]) -> int:
        states.append(Path(config.daemon.state).parent)
        assert states[0].is_dir()
        assert b"WeCom" in get(int(extras.links[0].url.rpartition(":")[2].strip("/")), "/")
        assert extras.guide is not None
        assert extras.guide().scene == "calm"
        assert "An ordinary day" not in "\n".join(said)
        ready()
        wait_until(lambda: "An ordinary day" in "\n".join(said), 10, "the first scene is told")
        return 3

    assert run_demo(run, 2, Listen(host="127.0.0.1", port=9836), "en", said.append) == 3
    assert "http://127.0.0.1:9836/" in "\n".join(said)
    assert not states[0].exists()
