"""capacity-mismatch: GPU counts of driver, device plugin and kubelet."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.rules.capacity_mismatch import RULE
from monitor.facts import MigFact
from monitor.facts.kube import NodeFact
from tests.cluster.builders import GPU, NOW, agent, card, node
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, rule_context, run, said
from tests.detect.running import lasting_since
from tests.support.resource_claims import device_facts, gpu_json, slice_json

PLUGIN, SINCE = ({"n1": lasting_since(cause, NOW - 300)} for cause in RULE.causes)
SHORT = {"n1": lasting_since("unhealthy-device", NOW - 299)}


def counted(capacity: float, allocatable: float, **fields: Any) -> NodeFact:
    return node("n1", capacity=fields.pop("also", {}) | {GPU: capacity}, allocatable={GPU: allocatable}, **fields)


CASES: tuple[tuple[str, NodeFact, Any, list[str]], ...] = (
    ("all agree", counted(4, 4), SINCE, []),
    ("the device plugin has marked one", counted(4, 3), SINCE, ["unhealthy-device"]),
    ("just below", counted(4, 3), SHORT, []),
    ("it was something else before", counted(4, 3), PLUGIN, []),
    ("garbage in the memory", counted(4, 3), {"n1": [1]}, []),
    ("a kubelet that has just started", counted(0, 0), None, []),
    ("no device plugin", counted(0, 0), PLUGIN, ["device-plugin"]),
    ("the device plugin counts too few", counted(3, 3), PLUGIN, ["device-plugin"]),
    ("it still counts a card that is gone", counted(5, 5), SINCE, ["unhealthy-device"]),
    ("each card ten times", counted(40, 40), PLUGIN, []),
    ("each card ten times, and some are marked", counted(40, 30), SINCE, ["unhealthy-device"]),
    ("shared cards under another name", counted(0, 0, also={f"{GPU}.shared": 16.0}), PLUGIN, []),
    ("slices under another name", counted(0, 0, also={"nvidia.com/mig-1g.5gb": 28.0}), PLUGIN, []),
)


@pytest.mark.parametrize(("name", "fact", "memory", "expect"), CASES, ids=[case[0] for case in CASES])
def test_mismatch(name: str, fact: NodeFact, memory: Any, expect: list[str]) -> None:
    given = rule_context(agent(*(card(index) for index in range(4))), nodes=(fact,))
    assert [cause for _, cause in causes(run(RULE, given, memory))] == expect


def test_slices_under_the_same_name() -> None:
    split = card(0, mig_enabled=True, mig=(MigFact(uuid="MIG-1", gpu_instance=1, compute_instance=0),))
    assert causes(run(RULE, rule_context(agent(split), nodes=(counted(7, 7),)), SINCE)) == []


CLAIMED: tuple[tuple[str, NodeFact, int, list[str]], ...] = (
    ("a DRA driver offers all, and there is no device plugin", node("n1", capacity={}, allocatable={}), 4, []),
    ("the device plugin was removed", counted(4, 0), 4, []),
    ("both offer the same", counted(4, 4), 4, []),
    ("each offers half", counted(2, 2), 2, []),
    ("the DRA driver offers too few", node("n1", capacity={}, allocatable={}), 3, ["device-plugin"]),
    ("the DRA driver still offers one that is gone", node("n1", capacity={}, allocatable={}), 5, ["unhealthy-device"]),
)


@pytest.mark.parametrize(("name", "fact", "offered", "expect"), CLAIMED, ids=[case[0] for case in CLAIMED])
def test_gpus_of_a_dra_driver(name: str, fact: NodeFact, offered: int, expect: list[str]) -> None:
    devices = device_facts([], [slice_json(*(gpu_json(index) for index in range(offered)))])
    given = rule_context(agent(*(card(index) for index in range(4))), nodes=(fact,), devices=devices)
    memory = {"n1": lasting_since(expect[0], NOW - 300)} if expect else SINCE
    assert [cause for _, cause in causes(run(RULE, given, memory))] == expect
    if not expect:
        assert causes(run(RULE, given, PLUGIN)) == []


def test_what_it_says() -> None:
    given = rule_context(agent(card(0), card(1)), nodes=(counted(2, 1),))
    (finding,) = run(RULE, given, SINCE).findings
    assert finding.labels == {"node": "n1"}
    assert "For 5 min, only 1 of 2 GPUs of n1 have been allocatable." in said(finding)
    assert "驱动看到 2 张" in said(finding, "zh")


MARKED = rule_context(agent(card(0)), nodes=(counted(1, 0),))


@pytest.mark.parametrize(
    "blind",
    [
        rule_context(agent(card(0), received_at=NOW - 90), nodes=(counted(1, 1),)),
        rule_context(agent(card(0)), nodes=(counted(1, 0),), pods_known=False),
    ],
    ids=["the agent is silent", "Kubernetes cannot be asked"],
)
def test_held_while_nothing_is_known(blind: Any) -> None:
    (finding,) = after_silence(RULE, MARKED, blind, SINCE)
    assert finding.held


def test_words() -> None:
    assert catalog_problems(RULE) == []
