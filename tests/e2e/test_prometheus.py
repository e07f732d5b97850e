"""A real Prometheus scrapes a real agent and a real daemon in the lab: every dashboard query and rule returns data.

Queries without data in the lab are proven on the simulated cluster, then on one snapshot with every fact known, all in
the same Prometheus; rules that need hours or rare values by their promtool case. `build/prometheus-expressions.md`
lists the proof of each.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from monitor.sim.simulation import Simulation
from tests.alert_rules.rules import ALERTS, recorded, rules
from tests.docs.pages import ROOT
from tests.e2e.scraping import (
    Prometheus,
    Proofs,
    Targets,
    askers,
    begin_outages,
    full_agent,
    scraping,
    simulated,
)
from tests.e2e.troubled import (
    NODE,
    PAGE_TOKEN,
    READ_TOKEN,
    Node,
    break_agent,
    mend_agent,
    stop_agent,
    trouble,
    watched_node,
)
from tests.lab.lab import Lab
from tests.support import need, wait_until

LAB, SIMULATION, SNAPSHOT, CASE = "the lab", "the simulation", "the full snapshot", "a case for promtool"
# Slightly below the measured numbers, since some depend on timing. Fewer mean that a target is not scraped.
LAB_FLOOR, SIMULATION_FLOOR = 260, 7
# Findings of the daemon in the lab before any incident.
FOUND = {
    "actions-refused", "disk-full", "gpu-fault", "gpu-ghost", "gpu-hot", "gpu-idle", "gpu-orphan", "gpu-wedged",
    "image-pull", "mount-lost", "pod-pending", "registry-unreachable", "service-down", "shm-pressure",
}  # fmt: skip
PATIENCE = 60.0  # seconds on a busy machine; on an idle one each wait takes a few
ALERT_LIMIT = 240.0  # seconds; alerts fire after a minute without a failed scrape
pytestmark = pytest.mark.timeout(300)
NEED_HOURS = ["disk:gpuwarden_disk_time_to_full_seconds:deriv1h", "disk:gpuwarden_disk_time_to_full_seconds:deriv6h"]
TABLE = ROOT / "build" / "prometheus-expressions.md"


@dataclass
class Stage:
    """All components and the proofs so far."""

    node: Node
    story: Simulation
    targets: Targets
    prometheus: Prometheus
    simulated: str
    began: float = field(default_factory=time.time)
    proofs: Proofs = field(init=False)

    def __post_init__(self) -> None:
        self.proofs = Proofs(self.prometheus)

    def scrape_also(self, agents: tuple[str, ...], daemons: tuple[str, ...] = ()) -> float:
        """Add scrape targets and return the start time of the first of each kind."""
        targets = replace(self.targets, agents=self.targets.agents + agents, daemons=self.targets.daemons + daemons)
        self.targets = targets
        self.prometheus.scrape(targets)
        wait_until(lambda: {*agents[:1], *daemons} <= self.prometheus.up(), PATIENCE, "they are scraped")
        return time.time()


@pytest.fixture(scope="module")
def stage(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    need(shutil.which("promtool") is not None and shutil.which("amtool") is not None, "promtool and amtool")
    directory, simulation = tmp_path_factory.mktemp("scraped"), tmp_path_factory.mktemp("simulated")
    tokens = directory / "agents-token", directory / "daemons-token"
    for file, token in zip(tokens, (READ_TOKEN, PAGE_TOKEN), strict=True):
        file.write_text(token)
    story = Simulation(outages=())
    with ExitStack() as stack:
        story.start()
        stack.callback(story.stop)
        node = stack.enter_context(watched_node(lab, directory, story.agents_port))
        targets = Targets((node.agent,), (node.page,), *tokens)
        prometheus = stack.enter_context(scraping(directory / "prometheus", targets))
        stage = Stage(node, story, targets, prometheus, stack.enter_context(simulated(story, simulation)))
        wait_until(lambda: prometheus.up() == {node.agent, node.page}, PATIENCE, "both are scraped")
        stack.enter_context(trouble(node))
        yield stage


def checked(*command: str | Path) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_documented_configurations_are_taken(stage: Stage) -> None:
    checked("promtool", "check", "config", stage.prometheus.config)
    checked("amtool", "check-config", ALERTS / "alertmanager.example.yml", ALERTS / "alertmanager.daemon.example.yml")


def test_the_lab_alone_gives_data_to_most_queries(stage: Stage) -> None:
    proofs, node, prometheus = stage.proofs, stage.node, stage.prometheus
    prometheus.expect("gpuwarden_finding", "rule", FOUND, PATIENCE)
    break_agent(node)
    try:
        prometheus.expect("gpuwarden_collector_hung == 1", "collector", {"gpu"}, PATIENCE)
        prometheus.expect("gpuwarden_collector_up == 0", "collector", {"kubelet"}, PATIENCE)
    finally:
        mend_agent(node)
    begin_outages(stage.story)
    stop_agent(node)
    prometheus.expect('gpuwarden_finding{held="true"}', "node", {NODE}, PATIENCE)
    proven = proofs.gather(LAB, stage.began, PATIENCE, LAB_FLOOR)
    assert proven >= LAB_FLOOR, (proofs.count(), askers(proofs.open()))


def test_the_simulation_gives_data_to_more(stage: Stage) -> None:
    simulated_agents = (f"{node.address}:{stage.story.agents_port}" for node in stage.story.cluster.nodes.values())
    since = stage.scrape_also(tuple(simulated_agents), (stage.simulated,))
    proven = stage.proofs.gather(SIMULATION, since, PATIENCE, SIMULATION_FLOOR)
    assert proven >= SIMULATION_FLOOR, (stage.proofs.count(), askers(stage.proofs.open()))


def test_no_query_is_dead(stage: Stage) -> None:
    proofs = stage.proofs
    with full_agent(stage.story.agents_port) as address:
        since = stage.scrape_also((address,))
        proofs.gather(SNAPSHOT, since, PATIENCE)
    proofs.fall_back_on_cases(CASE)
    proofs.write(TABLE)
    assert askers(proofs.open()) == []


def test_prometheus_evaluates_every_rule_without_an_error(stage: Stage) -> None:
    found = stage.prometheus.rules()
    assert len(found) == len(list(rules()))
    assert {rule["name"]: rule.get("lastError") for rule in found if rule["health"] != "ok"} == {}


def test_what_is_recorded_has_data(stage: Stage) -> None:
    without = [name for name in recorded() if not stage.prometheus.series(name, stage.began)]
    assert without == NEED_HOURS


@pytest.mark.parametrize(
    "alert",
    [
        'alertname="GpuFault", cause="xid-off-bus", rule="", node="gpu-01"',
        'alertname="DiskFull", cause="read-only", rule="", node="gpu-01"',
        'alertname="ServiceDown", rule="service-down", service="portal", cluster="lab"',
    ],
)
def test_an_alert_fires(stage: Stage, alert: str) -> None:
    fires = f'ALERTS{{alertstate="firing", {alert}}}'
    wait_until(lambda: stage.prometheus.series(fires, stage.began), ALERT_LIMIT, fires)
