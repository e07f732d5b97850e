"""gpu-orphan: processes on GPUs that belong to no pod."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.rules.gpu_orphan import RULE, Limits
from monitor.facts import ContainerFact
from tests.cluster.builders import GIB, NOW, agent, card, pod, process
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, rule_context, run, said
from tests.detect.running import lasting_since

LIVE = pod("live")
MINER = process(name="xmrig", uid=1001)
SINCE = {"n1 0": lasting_since("orphan", NOW - 60)}

CASES: tuple[tuple[str, tuple[Any, ...], Any, list[str]], ...] = (
    ("a process of the host", (MINER,), SINCE, ["host-process"]),
    ("just below", (MINER,), {"n1 0": lasting_since("orphan", NOW - 59)}, []),
    ("a container past Kubernetes", (process(name="python", container_id="d" * 64),), SINCE, ["other-container"]),
    ("nothing is known of it", (process(name=None),), SINCE, ["unknown-owner"]),
    ("only its user is known", (process(name=None, uid=0),), SINCE, ["host-process"]),
    ("two on one card are one finding", (MINER, process(pid=101, name="sh")), SINCE, ["host-process"]),
    ("a pod's process", (process(pod_uid=LIVE.uid, container_id="c" * 64),), SINCE, []),
    ("the MPS server belongs there", (process(name="nvidia-cuda-mps", kind="mps"),), SINCE, []),
    ("a stranger beside the MPS server", (process(name="nvidia-cuda-mps"), process(pid=7, name="x")), SINCE,
     ["host-process"]),
    ("a display", (process(name="Xorg", kind="graphics"),), SINCE, []),
    ("it has just ended", (process(name="x", state="gone", state_since=NOW),), SINCE, []),
)  # fmt: skip


@pytest.mark.parametrize(("name", "processes", "memory", "expect"), CASES, ids=[case[0] for case in CASES])
def test_orphan(name: str, processes: tuple[Any, ...], memory: Any, expect: list[str]) -> None:
    found = run(RULE, rule_context(agent(card(), processes=processes), pods=(LIVE,)), memory)
    assert [cause for _, cause in causes(found)] == expect


def test_a_machine_without_kubernetes_has_no_orphans() -> None:
    assert causes(run(RULE, rule_context(agent(card(), processes=(MINER,)), nodes=()), SINCE)) == []


def test_limits_of_one_node() -> None:
    given = rule_context(agent(card(), processes=(MINER,)))
    assert causes(run(RULE, given, SINCE, None, n1=Limits(allowed=("xm*",)))) == []


def test_what_it_says() -> None:
    docker = ContainerFact(id="d" * 64, runtime="docker", state="running", name="jupyter-eve")
    strangers = (process(name="python", container_id="d" * 64, uid=0), process(pid=101, name="sh"))
    busy = agent(card(memory_used_bytes=3 * GIB), processes=strangers, containers=(docker,))
    (finding,) = run(RULE, rule_context(busy), SINCE).findings
    assert finding.labels == {"node": "n1", "gpu": "0"}
    for part in ("Container jupyter-eve has been using GPU 0 on n1", "user id 0", "1 other process", "101", "3 GiB"):
        assert part in said(finding)
    assert "绕过 Kubernetes" in said(finding, "zh")


@pytest.mark.parametrize("fields", [{"received_at": NOW - 90}, {}])
def test_held_while_nothing_is_known(fields: Any) -> None:
    before = rule_context(agent(card(), processes=(MINER,)))
    blind = rule_context(agent(card(), processes=(MINER,), **fields), pods_known=bool(fields))
    (finding,) = after_silence(RULE, before, blind, SINCE)
    assert finding.held


def test_words() -> None:
    assert catalog_problems(RULE) == []
