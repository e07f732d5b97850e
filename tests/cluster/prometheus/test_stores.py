"""Real metrics stores scrape simulated agents: findings equal those of polling the agents directly."""

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
from monitor.queries.cluster import cluster_facts_of
from monitor.sim.demo import settings
from monitor.sim.outages import OUTAGES, OutageContext
from monitor.sim.simulation import Simulation
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
# With discovery of pods, targets have labels that series of agents have too.
LIKE_A_POD = {"namespace": "ops", "pod": "gpuwarden-agent-x", "container": "agent", "node": "as-kubernetes-says"}
EXPECTED = {
    "agent-silent", "disk-full", "gpu-fault", "gpu-idle", "gpu-zombie", "image-oversize", "image-pull", "node-down",
    "pod-pending", "registry-unreachable", "shm-pressure",
}  # fmt: skip


def _go_wrong(stage: OutageContext) -> None:
    for outage in OUTAGES:
        if outage.name in BEGUN:
            outage.begin(stage)
    stage.cluster.nodes["gpu01"].gpus[0].lost = True
    disk = stage.cluster.nodes["gpu04"].runtime_disk
    disk.used, disk.growth = 0.92 * disk.size, 0.0  # a moving value would differ between the sources


@pytest.fixture(scope="module")
def story() -> Iterator[Simulation]:
    made = Simulation(nodes=NODES, outages=())
    made.start()
    made.call(_go_wrong)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def stores(story: Simulation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Store]]:
    targets = story.call(lambda stage: [f"{node.address}:{story.agents_port}" for node in stage.cluster.nodes.values()])
    with contextlib.ExitStack() as stack:
        yield {
            kind: stack.enter_context(metric_store(kind, tmp_path_factory.mktemp(kind), targets, **LIKE_A_POD))
            for kind in KINDS
        }


class View:
    """One configuration of the cluster view, and the findings on it."""

    def __init__(self, story: Simulation, folder: Path, **daemon: Any) -> None:
        written = settings(story, folder, Listen(host="127.0.0.1", port=0), "en")
        known = {"idle_after": "1s", "settle": "1s", "stale_after": "4s"}
        written["daemon"] |= {"rules": SOON, "gpu": known, "cycle": "1s", **daemon}
        written["daemon"]["agents"]["interval"] = "500ms"
        self.config = Config.model_validate(written)
        self.cluster: LiveCluster = make_cluster(self.config)
        self._limits = self.config.daemon.rules.limits()
        self._history = DetectionHistory()

    def __enter__(self) -> View:
        self.cluster.start()
        self.cluster.wait_settled(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.stop()

    def find(self) -> tuple[Finding, ...]:
        world = cluster_facts_of(self.cluster, self.config.daemon.gpu_resource)
        found = detect(RULES, self._limits, RuleContext(world, time.time()), self._history)
        self._history = found.history
        return found.findings

    def found(self) -> set[tuple[str, str, str, frozenset[tuple[str, str]]]]:
        return {(each.rule, each.cause, each.severity, frozenset(each.labels.items())) for each in self.find()}

    def cards(self) -> list[tuple[str, int, str]]:
        return [(gpu.node, gpu.index, gpu.state) for gpu in self.cluster.view.gpus]


def through(store: Store) -> dict[str, Any]:
    return {"prometheus": {"url": store.url, "interval": "500ms", "selector": 'job="gpuwarden-agent"'}}


def test_the_findings_are_the_same_through_each_store(
    story: Simulation, stores: dict[str, Store], tmp_path: Path
) -> None:
    with contextlib.ExitStack() as stack:
        direct = stack.enter_context(View(story, tmp_path))
        others = {kind: stack.enter_context(View(story, tmp_path, **through(stores[kind]))) for kind in KINDS}
        differ: dict[str, Any] = {}

        def same() -> bool:
            differ.clear()
            wanted, cards = direct.found(), direct.cards()
            for kind, view in others.items():
                if found := view.found() ^ wanted:
                    differ[kind] = found
                elif view.cards() != cards:
                    differ[kind] = set(view.cards()) ^ set(cards)
            differ["missing"] = EXPECTED - {rule for rule, *_ in wanted}
            return not any(differ.values())

        try:
            wait_until(same, 60, "the same findings")
        finally:
            print(differ)


def test_a_store_that_is_gone_is_one_trouble(story: Simulation, stores: dict[str, Store], tmp_path: Path) -> None:
    """The GPUs become unknown, as with silent agents, but no finding says that every agent is silent."""
    with View(story, tmp_path, **through(stores["prometheus"])) as view:
        wait_until(lambda: _silent(view) == {"gpu06"}, 60, "the one agent that is silent is found")
        assert {source.name for source in view.cluster.view.sources} >= {"prometheus", "agents"}
        stores["prometheus"].kill()
        wait_until(lambda: {state for *_, state in view.cards()} == {GpuState.UNKNOWN}, 60, "no GPU is known")
        assert _silent(view) == {"gpu06"}
        sources = {source.name: source for source in view.cluster.view.sources}
        assert "agents" not in sources
        assert "cannot be reached: Connection refused" in (sources["prometheus"].why or "")
        since = sources["prometheus"].since
        assert since is not None
        now = since + max(BLIND_AFTER_SECONDS, STARTUP_GRACE_SECONDS) + 1
        sight = MonitorState(since - STARTUP_GRACE_SECONDS, now, view.cluster.view.sources, view.cluster.poller.facts())
        (own,) = with_monitor_findings((), sight, now)
        assert (own.rule, own.cause) == ("monitor-blind", "prometheus")


def _silent(view: View) -> set[str]:
    return {finding.labels["node"] for finding in view.find() if finding.rule == "agent-silent"}


def test_a_plan_is_made_from_what_the_agent_says_itself(
    story: Simulation, stores: dict[str, Store], tmp_path: Path
) -> None:
    """A store may be minutes behind, so deletions are planned from the agent itself."""
    with View(story, tmp_path, **through(stores["victoria-metrics"])) as view:
        wait_until(lambda: len(view.cluster.poller.facts()) == NODES, 60, "all agents are known")
        known = next(fact for fact in view.cluster.poller.facts() if fact.node == "gpu01")
        told = view.cluster.fetch_agent("gpu01")
        assert told is not None
        assert told.target == known.target
        assert told.snapshot is not None
        assert told.snapshot.at > (known.received_at or 0.0) - 1
        silent = view.cluster.fetch_agent("gpu06")
        assert silent is not None
        assert silent.snapshot is None
        assert silent.error
        assert view.cluster.fetch_agent("gpu99") is None
