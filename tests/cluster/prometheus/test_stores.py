"""Real stores scrape simulated agents in trouble: what is found through them is what is found by asking the agents."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.cluster.live import LiveCluster
from monitor.config.root import Config
from monitor.config.types import Listen
from monitor.daemon.build import make_cluster
from monitor.detect.base import RuleContext
from monitor.detect.engine import DetectionHistory, detect
from monitor.detect.meta.monitor import BLIND_AFTER_SECONDS, STARTUP_GRACE_SECONDS, MonitorState, with_monitor_findings
from monitor.detect.rules import RULES
from monitor.facts.cluster import GpuState
from monitor.facts.findings import Finding
from monitor.queries.cluster import world_of
from monitor.sim.demo import settings
from monitor.sim.outages import OUTAGES, Stage
from monitor.sim.story import Story
from tests.support import wait_until
from tests.support.metric_stores import KINDS, Store, metric_store

NODES = 6
BEGUN = ("registry lost on two nodes", "zombie job", "idle notebook", "8-GPU job that fits no node", "disk filling",
         "59 GB image", "shm overflow", "node down")  # fmt: skip
SOON = {
    "gpu_idle": {"warm_up": "0s", "warning_after": "2s", "notebook_warning_after": "2s"},
    "gpu_zombie": {"finished_after": "1s"},
    "gpu_orphan": {"after": "1s"},
    "agent_silent": {"silent_after": "4s"},
    "pod_pending": {"waiting": "1s"},
}
# Where agents are found by their pods, targets have labels that series of agents have too.
LIKE_A_POD = {"namespace": "ops", "pod": "gpuwarden-agent-x", "container": "agent", "node": "as-kubernetes-says"}
EXPECTED = {
    "agent-silent", "disk-full", "gpu-fault", "gpu-idle", "gpu-zombie", "image-oversize", "image-pull", "node-down",
    "pod-pending", "registry-unreachable", "shm-pressure",
}  # fmt: skip


def _go_wrong(stage: Stage) -> None:
    for outage in OUTAGES:
        if outage.name in BEGUN:
            outage.begin(stage)
    stage.cluster.nodes["gpu01"].cards[0].lost = True
    disk = stage.cluster.nodes["gpu04"].runtime_disk
    disk.used, disk.growth = 0.92 * disk.size, 0.0  # what moves is not the same at the same moment


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    made = Story(nodes=NODES, outages=())
    made.start()
    made.call(_go_wrong)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def stores(story: Story, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Store]]:
    targets = story.call(lambda stage: [f"{node.address}:{story.agents_port}" for node in stage.cluster.nodes.values()])
    with contextlib.ExitStack() as stack:
        yield {
            kind: stack.enter_context(metric_store(kind, tmp_path_factory.mktemp(kind), targets, **LIKE_A_POD))
            for kind in KINDS
        }


class Way:
    """One way to see the cluster, and what the rules find on it."""

    def __init__(self, story: Story, folder: Path, **daemon: Any) -> None:
        written = settings(story, folder, Listen(host="127.0.0.1", port=0), "en")
        known = {"idle_after": "1s", "settle": "1s", "stale_after": "4s"}
        written["daemon"] |= {"rules": SOON, "gpu": known, "cycle": "1s", **daemon}
        written["daemon"]["agents"]["interval"] = "500ms"
        self.config = Config.model_validate(written)
        self.cluster: LiveCluster = make_cluster(self.config)
        self._limits = self.config.daemon.rules.limits()
        self._history = DetectionHistory()

    def __enter__(self) -> Way:
        self.cluster.start()
        self.cluster.wait_settled(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.stop()

    def find(self) -> tuple[Finding, ...]:
        world = world_of(self.cluster, self.config.daemon.gpu_resource)
        found = detect(RULES, self._limits, RuleContext(world, time.time()), self._history)
        self._history = found.history
        return found.findings

    def found(self) -> set[tuple[str, str, str, frozenset[tuple[str, str]]]]:
        return {(each.rule, each.cause, each.severity, frozenset(each.labels.items())) for each in self.find()}

    def cards(self) -> list[tuple[str, int, str]]:
        return [(gpu.node, gpu.index, gpu.state) for gpu in self.cluster.view.gpus]


def through(store: Store) -> dict[str, Any]:
    return {"prometheus": {"url": store.url, "interval": "500ms", "selector": 'job="gpuwarden-agent"'}}


def test_the_findings_are_the_same_through_each_store(story: Story, stores: dict[str, Store], tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        direct = stack.enter_context(Way(story, tmp_path))
        others = {kind: stack.enter_context(Way(story, tmp_path, **through(stores[kind]))) for kind in KINDS}
        differ: dict[str, Any] = {}

        def same() -> bool:
            differ.clear()
            wanted, cards = direct.found(), direct.cards()
            for kind, way in others.items():
                if found := way.found() ^ wanted:
                    differ[kind] = found
                elif way.cards() != cards:
                    differ[kind] = set(way.cards()) ^ set(cards)
            differ["missing"] = EXPECTED - {rule for rule, *_ in wanted}
            return not any(differ.values())

        try:
            wait_until(same, 60, "the same findings")
        finally:
            print(differ)


def test_a_store_that_is_gone_is_one_trouble(story: Story, stores: dict[str, Store], tmp_path: Path) -> None:
    """The cards become unknown, as those of silent agents do; nobody says that every agent is silent."""
    with Way(story, tmp_path, **through(stores["prometheus"])) as way:
        wait_until(lambda: _silent(way) == {"gpu06"}, 30, "the one agent that is silent is found")
        assert {source.name for source in way.cluster.view.sources} >= {"prometheus", "agents"}
        stores["prometheus"].kill()
        wait_until(lambda: {state for *_, state in way.cards()} == {GpuState.UNKNOWN}, 40, "no card is known")
        assert _silent(way) == {"gpu06"}
        sources = {source.name: source for source in way.cluster.view.sources}
        assert "agents" not in sources
        assert "cannot be reached: Connection refused" in (sources["prometheus"].why or "")
        since = sources["prometheus"].since
        assert since is not None
        now = since + max(BLIND_AFTER_SECONDS, STARTUP_GRACE_SECONDS) + 1
        sight = MonitorState(since - STARTUP_GRACE_SECONDS, now, way.cluster.view.sources, way.cluster.poller.facts())
        (own,) = with_monitor_findings((), sight, now)
        assert (own.rule, own.cause) == ("monitor-blind", "prometheus")


def _silent(way: Way) -> set[str]:
    return {finding.labels["node"] for finding in way.find() if finding.rule == "agent-silent"}


def test_a_plan_is_made_from_what_the_agent_says_itself(story: Story, stores: dict[str, Store], tmp_path: Path) -> None:
    """A store may be minutes behind: whatever is to be deleted is asked for where it is."""
    with Way(story, tmp_path, **through(stores["victoria-metrics"])) as way:
        wait_until(lambda: len(way.cluster.poller.facts()) == NODES, 30, "all agents are known")
        known = next(fact for fact in way.cluster.poller.facts() if fact.node == "gpu01")
        told = way.cluster.first_hand("gpu01")
        assert told is not None
        assert told.target == known.target
        assert told.snapshot is not None
        assert told.snapshot.at > (known.received_at or 0.0) - 1
        silent = way.cluster.first_hand("gpu06")
        assert silent is not None
        assert silent.snapshot is None
        assert silent.error
        assert way.cluster.first_hand("gpu99") is None
