from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.cluster.live import LiveCluster
from monitor.daemon import evaluator
from monitor.daemon.evaluator import Evaluator, EvaluatorSettings
from monitor.daemon.history_files import FINDINGS_FILE, SavedFindings
from monitor.detect.base import Limits, Rule, RuleContext, RuleResult, SubjectKind
from monitor.detect.rules import service_down
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from monitor.kube.client import KubeApi, connect
from monitor.probes.runner import ServiceProbes, ServiceTarget
from tests.cluster.living import living, settings
from tests.support import wait_until
from tests.support.fake_agents import FakeAgent, reports, says_nothing
from tests.support.living_api import LivingApi, kube_pod

NEVER_SECONDS = 3600.0  # an interval that no test waits for


class NoLimits:
    """Limits of a rule without settings."""


def finding(node: str = "n1", rule: str = "a") -> Finding:
    return Finding(rule=rule, severity=Severity.WARNING, cause="x", labels={"node": node}, headline=Text(key="x"))


class Noting:
    """A rule with scripted findings that records its evaluations."""

    def __init__(self, *nodes: str, always: bool = True) -> None:
        self.nodes = nodes
        self.always = always  # evaluated although nothing has changed
        self.seen: list[RuleContext] = []
        self.times: list[float] = []
        self.memories: list[Any] = []
        self.rule = Rule("a", NoLimits, ("x",), self._evaluate, SubjectKind.CLUSTER)

    def _evaluate(self, _: ClusterFacts, situation: RuleContext, memory: Any, now: float) -> RuleResult:
        self.seen.append(situation)
        self.times.append(time.monotonic())
        self.memories.append(memory)
        return RuleResult(
            tuple(finding(node) for node in self.nodes), (memory or 0) + 1, next_at=now if self.always else None
        )


@contextlib.contextmanager
def watching(
    state: Path,
    *rules: Rule,
    agents: tuple[FakeAgent, ...] = (),
    probes: ServiceProbes | None = None,
    api: KubeApi | None = None,
    **more: Any,
) -> Iterator[Evaluator]:
    given: dict[str, Any] = {"interval": 0.2, "startup_timeout": 60.0}
    with living(LiveCluster(settings(*agents), api)) as cluster:
        watch = Evaluator(
            EvaluatorSettings(state=str(state), rules=rules, **(given | more)), cluster, probes or ServiceProbes(())
        )
        watch.start()
        try:
            yield watch
        finally:
            watch.stop()
            wait_until(lambda: not [t for t in threading.enumerate() if t.name == "findings"], 3, "it has ended")


def saved(state: Path) -> SavedFindings:
    return msgspec.json.decode((state / FINDINGS_FILE).read_bytes(), type=SavedFindings)


def test_it_looks_again_and_again_and_each_look_remembers_the_one_before(tmp_path: Path) -> None:
    noting = Noting("n1")
    with watching(tmp_path, noting.rule) as watch:
        wait_until(lambda: len(noting.seen) >= 3, 10, "it has looked three times")
        assert [each.labels for each in watch.findings or ()] == [{"node": "n1"}]
    assert noting.memories[:3] == [None, 1, 2]


def test_it_is_not_known_what_is_wrong_before_the_first_look(tmp_path: Path) -> None:
    with FakeAgent(says_nothing) as agent, watching(tmp_path, Noting().rule, agents=(agent,)) as watch:
        assert watch.findings is None
        wait_until(lambda: watch.findings is not None, 10, "the agent's time is over")


def test_the_first_look_waits_until_every_agent_was_asked(tmp_path: Path) -> None:
    noting = Noting()
    with FakeAgent(reports("n1", after=0.5)) as agent, watching(tmp_path, noting.rule, agents=(agent,)):
        wait_until(lambda: bool(noting.seen), 10, "it has looked")
    assert [each.node for each in noting.seen[0].facts.agents] == ["n1"]
    assert list(noting.seen[0].facts.view_of_node) == ["n1"]


def test_the_first_look_does_not_wait_for_ever(tmp_path: Path) -> None:
    with (
        FakeAgent(says_nothing) as agent,
        watching(tmp_path, Noting().rule, agents=(agent,), startup_timeout=0.2) as watch,
    ):
        wait_until(lambda: watch.findings is not None, 5, "it has looked")


def test_a_pod_or_a_node_that_changes_is_looked_at_soon(tmp_path: Path) -> None:
    noting, api = Noting(always=False), LivingApi()
    with api.served():
        way = connect(api.kubeconfig(tmp_path))
        with watching(tmp_path, noting.rule, api=way, interval=NEVER_SECONDS):
            for number, item in enumerate(
                (kube_pod("train", "n1", 2), kube_pod("train", "n1", 3), kube_pod("b", "n1")), 1
            ):
                wait_until(lambda: len(noting.seen) >= number, 10, "it has looked")  # noqa: B023  # used at once
                time.sleep(1.2)  # settled: only the change triggers an evaluation
                looks = len(noting.seen)
                api.put("pods", item)
                wait_until(lambda: len(noting.seen) > looks, 3, "it looks again")  # noqa: B023  # used at once
            assert [pod.name for pod in noting.seen[-1].facts.pods] == ["train", "b"]


def test_services_are_looked_at(tmp_path: Path) -> None:
    def refuse(_: ServiceTarget) -> None:
        raise ConnectionRefusedError("no")

    probes = ServiceProbes([ServiceTarget(name="portal", kind="tcp", url="tcp://x:1")], refuse)
    at_once = {"service-down": Limits(service_down.Limits(after=0))}
    with watching(tmp_path, service_down.RULE, probes=probes, limits=at_once) as watch:
        wait_until(lambda: watch.findings is not None, 10, "it has looked")
        assert [each.labels for each in watch.findings or ()] == [{"service": "portal"}]


def test_a_restart_forgets_nothing(tmp_path: Path) -> None:
    with watching(tmp_path, Noting("n1").rule) as watch:
        wait_until(lambda: watch.findings, 10, "it has looked")
    again = Noting()
    with watching(tmp_path, again.rule):
        wait_until(lambda: bool(again.seen), 10, "it has looked")
    assert again.memories[0] >= 1


def test_what_is_new_is_saved_at_once_because_nobody_says_good_bye_before_a_crash(tmp_path: Path) -> None:
    noting = Noting()
    with watching(tmp_path, noting.rule) as watch:
        wait_until(lambda: (tmp_path / FINDINGS_FILE).exists(), 10, "it is saved")
        noting.nodes = ("n9",)
        wait_until(lambda: watch.findings, 10, "it is found")
        wait_until(lambda: [each.labels for each in saved(tmp_path).findings] == [{"node": "n9"}], 5, "it is saved")


def test_a_service_that_fails_or_recovers_is_looked_at_soon(tmp_path: Path) -> None:
    noting, up = Noting(), threading.Event()

    def probe(_: ServiceTarget) -> None:
        if not up.is_set():
            raise ConnectionRefusedError("no")

    probes = ServiceProbes([ServiceTarget(name="portal", kind="tcp", url="tcp://x:1", interval=0.1)], probe)
    with watching(tmp_path, noting.rule, probes=probes, interval=NEVER_SECONDS):
        wait_until(lambda: noting.seen, 10, "it has looked")
        up.set()
        wait_until(lambda: [each.ok for each in noting.seen[-1].services] == [True], 5, "it has looked again")


def test_a_listener_is_told_each_look_and_not_before_it_is_saved(tmp_path: Path) -> None:
    noting, told = Noting("n1"), list[tuple[set[str], set[str]]]()

    def listen(findings: tuple[Finding, ...]) -> None:
        told.append(({each.key for each in findings}, {each.key for each in saved(tmp_path).findings}))
        raise RuntimeError("whoever listens must not stop us from looking")

    with living(LiveCluster(settings(), None)) as cluster:
        given = EvaluatorSettings(state=str(tmp_path), rules=(noting.rule,), interval=0.2, startup_timeout=1.0)
        watch = Evaluator(given, cluster, ServiceProbes(()), on_evaluated=listen)
        watch.start()
        try:
            wait_until(lambda: told, 10, "it is told")
            noting.nodes = ("n1", "n2")
            wait_until(lambda: len(told[-1][0]) == 2, 10, "more is told")
            noting.nodes = ()
            wait_until(lambda: not told[-1][0], 10, "that it is over is told")
        finally:
            watch.stop()
    assert all(found == kept for found, kept in told)


def test_a_listener_is_told_again_although_there_is_nothing_to_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also reports problems of the daemon itself, which are no findings of rules."""
    monkeypatch.setattr(evaluator, "AGE_REFRESH_SECONDS", 0.05)
    told: list[tuple[Finding, ...]] = []
    with living(LiveCluster(settings(), None)) as cluster:
        chosen = EvaluatorSettings(state=str(tmp_path), rules=(), interval=0.1)
        watch = Evaluator(chosen, cluster, ServiceProbes(()), on_evaluated=told.append)
        watch.start()
        wait_until(lambda: len(told) >= 3, 10, "it has been told three times")
        watch.stop()
    assert set(told) == {()}


def test_it_stops_at_once_also_while_it_waits(tmp_path: Path) -> None:
    with FakeAgent(says_nothing) as agent:
        began = time.monotonic()
        with watching(tmp_path, Noting().rule, agents=(agent,), startup_timeout=NEVER_SECONDS):
            time.sleep(0.2)
        assert time.monotonic() - began < 30


def test_a_result_that_is_due_is_evaluated_although_nothing_changes(tmp_path: Path) -> None:
    times: list[float] = []

    def evaluate(_: ClusterFacts, __: RuleContext, memory: Any, now: float) -> RuleResult:
        times.append(now)
        return RuleResult(memory=memory, next_at=now + 1.0)

    rule = Rule("a", NoLimits, ("x",), evaluate, SubjectKind.CLUSTER, uses=("quotas",))
    with watching(tmp_path, rule, interval=NEVER_SECONDS):
        wait_until(lambda: len(times) >= 3, 15, "it was evaluated three times")
    assert times[1] - times[0] >= 1.0


def test_what_is_new_and_what_is_over_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "monitor.daemon.evaluator")
    noting = Noting("n1")
    with watching(tmp_path, noting.rule):
        wait_until(lambda: len(noting.seen) >= 2, 10, "it has looked twice")
        noting.nodes = ()
        wait_until(lambda: "resolved a|node=n1: x" in caplog.messages, 10, "it is over")
    assert caplog.messages.count("found a|node=n1: x") == 1
