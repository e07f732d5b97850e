# ruff: noqa: E501  # tables: one row is one line
from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from monitor.detect import image_registries
from monitor.detect.engine import Engine, detect
from monitor.detect.history import DetectionHistory
from monitor.detect.lib.pulls import failed_pulls
from monitor.detect.rules import image_pull
from monitor.detect.rules.registry_unreachable import RULE
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, SourceView
from monitor.facts.findings import Finding
from monitor.facts.kube import EventFact, PodContainerFact, PodFact
from monitor.facts.services import ServiceFact
from monitor.facts.storage import ProbeFact
from tests.detect.builders_pods import PODS_UNSEEN, held, none, one, rule_context, run, text
from tests.detect.running import evaluate
from tests.explain.builders import NOW, agent, event, pod, waiting

DNS = "dial tcp: lookup harbor.lab on 10.0.0.2:53: no such host"
REFUSED = 'Get "https://harbor.lab/v2/": dial tcp 10.0.0.5:443: connect: connection refused'
TLS = 'Get "https://harbor.lab/v2/": x509: certificate signed by unknown authority'
BROKEN = "unexpected status code [manifests 1]: 502 Bad Gateway"
MISSING = "manifest unknown"


def pull(name: str, node: str, message: str, image: str | None = None) -> PodFact:
    containers = (PodContainerFact(name="main", image=image or f"harbor.lab/x/{name}:1"),)
    return pod(name, node=node, statuses=(waiting("ErrImagePull", message),), containers=containers)


def probe(
    node: str, stage: str | None = None, cause: str | None = None, target: str = "https://harbor.lab"
) -> AgentFact:
    fact = ProbeFact(target=target, ok=stage is None, at=NOW, stage=stage, cause=cause, error=cause)
    return agent(node, probes=(fact,))


def service(ok: bool) -> ServiceFact:
    return ServiceFact(name="harbor", kind="harbor", target="https://harbor.lab/api/v2.0/health", ok=ok, at=NOW)


ONE_NODE = {"node": "n1"}
REGISTRY = {"service": "harbor.lab"}
CASES: list[tuple[str, dict[str, Any], str, dict[str, str]]] = [
    ("its probe finds no address", {"agents": [probe("n1", "dns", "dns"), probe("n2")]}, "node-cannot-resolve", ONE_NODE),
    ("its probe is refused", {"agents": [probe("n1", "tcp", "refused"), probe("n2")]}, "node-cannot-connect", ONE_NODE),
    ("its probe times out in TLS", {"agents": [probe("n1", "tls", "timeout")]}, "node-cannot-connect", ONE_NODE),
    ("its probe does not trust", {"agents": [probe("n1", "tls", "tls-untrusted"), probe("n2")]}, "node-does-not-trust", ONE_NODE),
    ("plain HTTP", {"agents": [probe("n1", "tls", "plain-http"), probe("n2")]}, "node-does-not-trust", ONE_NODE),
    ("it answers with an error", {"agents": [probe("n1", "http", "http-status")]}, "registry-down", REGISTRY),
    ("a wrong answer on one node only", {"agents": [probe("n1", "http", "http-status"), probe("n2")]}, "node-cannot-connect", ONE_NODE),
    ("refused everywhere", {"agents": [probe("n1", "tcp", "refused"), probe("n2", "tcp", "refused")]}, "registry-down", REGISTRY),
    ("refused on some", {"agents": [probe("n1", "tcp", "refused"), probe("n2", "tcp", "refused"), probe("n3")]}, "node-cannot-connect", REGISTRY),
    ("its certificate is bad for all", {"agents": [probe("n1", "tls", "tls-expired"), probe("n2", "tls", "tls-expired")]}, "node-does-not-trust", REGISTRY),
    ("the daemon cannot either", {"agents": [probe("n1", "tcp", "refused")], "services": (service(False),)}, "registry-down", REGISTRY),
    ("the daemon can", {"agents": [probe("n1", "tcp", "refused")], "services": (service(True),)}, "node-cannot-connect", ONE_NODE),
    ("two images on one node", {"pods": [pull("a", "n1", DNS), pull("b", "n1", DNS)]}, "node-cannot-resolve", ONE_NODE),
    ("images of two registries on one node", {"pods": [pull("a", "n1", DNS), pull("b", "n1", DNS, "quay.io/b")]}, "node-cannot-resolve", ONE_NODE),
    ("two images, two nodes", {"pods": [pull("a", "n1", REFUSED), pull("b", "n2", REFUSED)]}, "registry-down", REGISTRY),
    ("one image, two nodes, refused", {"pods": [pull("a", "n1", REFUSED, "harbor.lab/a"), pull("b", "n2", REFUSED, "harbor.lab/a")]}, "registry-down", REGISTRY),
    ("two images, an error each", {"pods": [pull("a", "n1", BROKEN), pull("b", "n1", BROKEN)]}, "registry-down", REGISTRY),
    ("untrusted by the runtime, not by the probe", {"pods": [pull("a", "n1", TLS), pull("b", "n1", TLS)], "agents": [probe("n1")]}, "node-does-not-trust", ONE_NODE),
    ("Docker Hub by its other name", {"agents": [probe("n1", "dns", "dns", "https://registry-1.docker.io")], "pods": [pull("a", "n1", DNS, "busybox")]}, "node-cannot-resolve", ONE_NODE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "facts", "cause", "labels"), CASES, ids=[case[0] for case in CASES])
def test_one_finding(name: str, facts: dict[str, Any], cause: str, labels: dict[str, str]) -> None:
    finding = one(RULE, **facts)
    assert (finding.cause, finding.labels) == (cause, labels)
    assert "n1" in text(finding)
    assert "n1" in text(finding, "zh")


QUIET: list[tuple[str, dict[str, Any]]] = [
    ("all reach it", {"agents": [probe("n1"), probe("n2")]}),
    ("one image", {"pods": [pull("a", "n1", REFUSED)]}),
    ("one image that two pods want", {"pods": [pull("a", "n1", REFUSED, "harbor.lab/a"), pull("b", "n1", REFUSED, "harbor.lab/a")]}),
    ("one misspelt image everywhere", {"pods": [pull("a", "n1", DNS, "habor.lab/a"), pull("b", "n2", DNS, "habor.lab/a")]}),
    ("images that are not there", {"pods": [pull("a", "n1", MISSING), pull("b", "n1", MISSING)]}),
    ("no probes", {"agents": [agent("n1")]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "facts"), QUIET, ids=[case[0] for case in QUIET])
def test_not_the_registry(name: str, facts: dict[str, Any]) -> None:
    assert none(RULE, **facts)


def failed(about: PodFact, ago: float) -> EventFact:
    return event("Failed", f"Failed to pull image: {REFUSED}", about=about, container="main", ago=ago)


def test_back_off_after_the_registry_is_back_is_no_outage() -> None:
    """A container in back-off shows for minutes what is long over: the probe since then knows better."""
    pods = [pull("a", "n1", REFUSED), pull("b", "n1", REFUSED)]
    back = probe("n1")
    assert none(RULE, pods=pods, agents=[back], events=[failed(each, ago=120) for each in pods])
    assert one(RULE, pods=pods, agents=[back], events=[failed(each, ago=-5) for each in pods])


def test_the_node_s_clock_is_not_ours() -> None:
    pods = [pull("a", "n1", REFUSED), pull("b", "n1", REFUSED)]
    ahead = ProbeFact(target="https://harbor.lab", ok=True, at=NOW + 900)  # made 100 s ago, by a clock 1,000 s ahead
    node = agent("n1", probes=(ahead,))
    skewed = AgentFact(target="n1:9835", node="n1", snapshot=node.snapshot, received_at=NOW - 1000)
    assert one(RULE, pods=pods, agents=[skewed], events=[failed(each, ago=60) for each in pods])


def both(**facts: Any) -> dict[str, Finding]:
    found = detect((image_pull.RULE, RULE), {}, rule_context(**facts), DetectionHistory()).findings
    return {finding.labels.get("pod", finding.rule): finding for finding in found}


def test_five_pods_and_one_cause() -> None:
    found = both(pods=[pull(f"p{index}", "n1", REFUSED) for index in range(5)])
    cause = found.pop("registry-unreachable")
    assert [finding.explained_by for finding in found.values()] == [cause.key] * 5
    assert "5 pods are waiting for 5 images" in text(cause)


def test_an_image_that_is_missing_is_not_the_outage_s_fault() -> None:
    found = both(pods=[pull("a", "n1", REFUSED), pull("b", "n1", REFUSED), pull("c", "n1", MISSING)])
    assert found["c"].explained_by is None


def test_another_node_s_trouble_is_not_explained_by_this_one() -> None:
    down = [probe("n1", "tcp", "refused"), probe("n2")]
    found = both(agents=down, pods=[pull("a", "n1", REFUSED), pull("b", "n2", TLS)])
    assert (found["a"].explained_by, found["b"].explained_by) == (found["registry-unreachable"].key, None)


def test_a_node_that_falls_silent_does_not_bring_the_registry_back() -> None:
    before = [probe("n1", "tcp", "refused"), probe("n2", "tcp", "refused")]
    silent = [
        AgentFact(target=each.target, node=each.node, snapshot=each.snapshot, silent_since=NOW) for each in before
    ]
    (left,) = held(RULE, {"agents": before}, {"agents": silent})
    assert (left.labels, left.held) == (REGISTRY, True)
    (left,) = held(RULE, {"agents": before[:1]}, {"agents": silent[:1]})
    assert (left.labels, left.held) == (ONE_NODE, True)
    assert held(RULE, {"agents": before}, {"agents": [probe("n1"), probe("n2")]}) == ()


def test_held_while_pods_cannot_be_seen() -> None:
    pods = [pull("a", "n1", DNS), pull("b", "n1", DNS)]
    assert [left.held for left in held(RULE, {"pods": pods}, {"view": PODS_UNSEEN})] == [True]
    assert held(RULE, {"pods": pods}, {}) == ()


def test_since_when_is_remembered() -> None:
    agents = [probe("n1", "tcp", "refused")]
    first = run(RULE, agents=agents)
    later = evaluate(RULE, rule_context(now=NOW + 60, agents=agents, limits=RULE.limits()), first.memory)
    assert [finding.since for finding in later.findings] == [NOW]


def test_the_last_node_to_recover_is_no_new_trouble() -> None:
    broken = [probe("n1", "dns", "dns"), probe("n2", "dns", "dns"), probe("n3")]
    (left,) = held(RULE, {"agents": broken}, {"agents": [probe("n1"), probe("n2", "dns", "dns"), probe("n3")]})
    assert (left.labels, left.held) == (REGISTRY, False)
    (other,) = held(RULE, {"agents": broken}, {"agents": [probe("n1"), probe("n2"), probe("n3", "dns", "dns")]})
    assert other.labels == {"node": "n3"}


def asked(node: str, at: float, ok: bool = True) -> AgentFact:
    stage, cause = (None, None) if ok else ("tcp", "refused")
    fact = ProbeFact(target="https://harbor.lab", ok=ok, at=at, stage=stage, cause=cause)
    return agent(node, probes=(fact,))


def evaluated(
    *rounds: tuple[float, list[AgentFact]], **facts: Any
) -> list[tuple[float, str, dict[str, str], float | None]]:
    """Findings and their start for each round: a time, and the agents' reports."""
    memory: Any = None
    found = []
    for after, agents in rounds:
        detected = evaluate(RULE, rule_context(now=NOW + after, agents=agents, limits=RULE.limits(), **facts), memory)
        memory = detected.memory
        found += [(after, each.cause, dict(each.labels), each.since) for each in detected.findings]
    return found


def test_the_first_node_to_notice_that_the_registry_is_down_is_not_blamed() -> None:
    """Nodes ask every 30 s, each at its own moment: the others' last word is from before it went down."""
    first = [asked("n1", NOW, ok=False), asked("n2", NOW - 20), asked("n3", NOW - 10)]
    second = [first[0], asked("n2", NOW + 10, ok=False), first[2]]
    third = [*second[:2], asked("n3", NOW + 20, ok=False)]
    assert evaluated((0, first), (10, second), (20, third)) == [(20, "registry-down", REGISTRY, NOW)]


def test_a_node_is_blamed_once_another_has_reached_the_registry_since() -> None:
    first = [asked("n1", NOW, ok=False), asked("n2", NOW - 20)]
    since = [first[0], asked("n2", NOW + 10)]
    assert evaluated((0, first), (10, since), (15, since)) == [
        (10, "node-cannot-connect", ONE_NODE, NOW),
        (15, "node-cannot-connect", ONE_NODE, NOW),
    ]


def test_some_nodes_are_blamed_once_another_has_reached_the_registry_since() -> None:
    first = [asked("n1", NOW, ok=False), asked("n2", NOW, ok=False), asked("n3", NOW - 20)]
    since = [*first[:2], asked("n3", NOW + 10)]
    assert evaluated((0, first), (10, since)) == [(10, "node-cannot-connect", REGISTRY, NOW)]


def test_nodes_that_do_not_reach_what_the_daemon_reaches() -> None:
    finding = one(RULE, agents=[asked("n1", NOW, ok=False), asked("n2", NOW, ok=False)], services=(service(True),))
    assert (finding.cause, finding.labels) == ("node-cannot-connect", REGISTRY)


def test_a_registry_that_comes_back_was_down_until_the_last_node_has_noticed() -> None:
    down = [asked("n1", NOW, ok=False), asked("n2", NOW, ok=False)]
    half = [asked("n1", NOW + 20), down[1]]
    other = [asked("n1", NOW + 20), asked("n2", NOW + 24), asked("n3", NOW + 25, ok=False)]
    assert evaluated((0, down), (20, half)) == [
        (0, "registry-down", REGISTRY, NOW),
        (20, "registry-down", REGISTRY, NOW),
    ]
    assert evaluated((0, down), (20, half), (25, other))[2:] == []
    assert evaluated((0, down), (20, half), (25, other), (60, other))[2:] == [
        (60, "node-cannot-connect", {"node": "n3"}, NOW + 25)
    ]


def test_doubt_is_not_for_ever() -> None:
    agents = [asked("n1", NOW, ok=False), asked("n2", NOW - 20)]
    assert [at for at, *_ in evaluated((0, agents), (30, agents), (35, agents), (40, agents))] == [35, 40]


def test_pods_that_wait_do_not_wait_for_certainty() -> None:
    agents = [asked("n1", NOW, ok=False), asked("n2", NOW - 20)]
    assert [at for at, *_ in evaluated((0, agents), pods=[pull("a", "n1", REFUSED)])] == [0]
    assert [at for at, *_ in evaluated((0, agents), services=(service(False),))] == [0]


def test_what_was_in_doubt_and_is_well_again_was_nothing() -> None:
    first = [asked("n1", NOW, ok=False), asked("n2", NOW - 20)]
    assert evaluated((0, first), (30, [asked("n1", NOW + 30), asked("n2", NOW + 10)])) == []


STANDALONE = ClusterView(at=NOW, sources=(SourceView(name="kubernetes", ok=False, why="switched off"),))


def test_without_kubernetes_a_registry_that_is_back_is_well() -> None:
    down = [probe("n1", "tcp", "refused")]
    assert held(RULE, {"agents": down, "view": STANDALONE}, {"agents": [probe("n1")], "view": STANDALONE}) == ()


def test_an_outage_is_noticed_while_pods_cannot_be_seen() -> None:
    assert one(RULE, agents=[probe("n1", "tcp", "refused")], view=PODS_UNSEEN).labels == ONE_NODE


def test_another_failure_of_one_node_is_its_own_however_often_it_is_evaluated() -> None:
    agents = [probe("n1", "tcp", "refused"), probe("n2", "tcp", "refused"), probe("n3", "tls", "tls-untrusted")]
    first, again = run(RULE, agents=agents), run(RULE, agents=agents)
    assert [each.labels for each in first.findings] == [{"node": "n3"}, REGISTRY]
    assert run(RULE, first.memory, agents=agents).findings == again.findings


def test_a_node_that_was_silent_continues_its_outage() -> None:
    engine = Engine((RULE,), {})
    down = probe("n1", "tcp", "refused")
    silent = AgentFact(target=down.target, node="n1", snapshot=down.snapshot, silent_since=NOW + 10)
    for now, heard in ((NOW, down), (NOW + 10, silent), (NOW + 20, down)):
        found = engine.evaluate(rule_context(now=now, agents=[heard]))
    assert [(each.labels, each.since, each.held) for each in found] == [(ONE_NODE, NOW, False)]


def test_doubt_ends_without_another_probe() -> None:
    engine, agents = Engine((RULE,), {}), [asked("n1", NOW, ok=False), asked("n2", NOW - 20)]
    assert (engine.evaluate(rule_context(agents=agents)), engine.next_at) == ((), NOW + 35)
    found = engine.evaluate(rule_context(agents=agents, now=NOW + 35))
    assert ([each.labels for each in found], engine.next_at) == ([ONE_NODE], None)


def test_only_what_has_changed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pulls, urls = Mock(side_effect=failed_pulls), Mock(return_value="harbor.lab")
    monkeypatch.setattr(image_registries, "failed_pulls", pulls)
    monkeypatch.setattr(image_registries, "registry_of_url", urls)
    engine, agents = Engine((RULE,), {}), [probe("n1"), probe("n2")]
    pods = [pull("a", "n1", TLS), pull("b", "n1", TLS)]
    steps: list[tuple[list[AgentFact], list[PodFact]]] = [
        (agents, pods),
        (agents, [*pods, pull("c", "n1", TLS)]),
        ([agents[0], probe("n2", "tcp", "refused")], [*pods, pull("c", "n1", TLS)]),
    ]
    read = []
    for heard, waiting_pods in steps:
        assert engine.evaluate(rule_context(agents=heard, pods=waiting_pods))
        read.append((pulls.call_count, urls.call_count))
    assert read == [(2, 2), (3, 2), (3, 3)]


@pytest.mark.parametrize("memory", [1, {"n1": 1}, {"n1": {"nodes": 3}}, {"n1": {"nodes": [], "since": "x"}}])
def test_a_memory_of_another_version_is_as_none(memory: Any) -> None:
    assert one(RULE, {"": memory}, agents=[probe("n1", "tcp", "refused")]).since == NOW
