from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from monitor.detect.rules.disk_full import RULE
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding, Severity
from monitor.facts.kube import ConditionFact
from monitor.facts.storage import DiskFact, VolumeFact
from monitor.facts.text import Text
from tests.detect.builders_storage import (
    GIB,
    NOW,
    Watch,
    agent,
    brief,
    cache,
    container,
    disk,
    hung,
    hung_nas,
    image,
    log,
    nas,
    once,
    silent,
    text,
    usage,
)
from tests.explain.builders import event, node, pod, waiting

RUNTIME: dict[str, Any] = {"roles": ("system", "runtime")}


@dataclass(frozen=True)
class Case:
    name: str
    disk: DiskFact
    expect: tuple[str, str] | None
    says: tuple[str, ...] = ()
    chinese: tuple[str, ...] = ()
    parts: dict[str, Any] | None = None


CASES = (
    Case("just below", disk(used=79.9), None),
    Case("80 % is a warning", disk(used=80), ("warning", "other"), ("80% full, 20 GiB left",), ("已用 80%",)),
    Case("90 % is critical", disk(used=90), ("critical", "other")),
    Case(
        # Blocks reserved for root are neither used nor available: df shows 90 %, used/size is only 86 %.
        "as df says it",
        disk(used=86, available_bytes=9 * GIB),
        ("critical", "other"),
        ("91% full, 9 GiB left",),
    ),
    Case("inodes just below", disk(inodes=100, inodes_used=79), None),
    Case(
        "inodes",
        disk(inodes=1000, inodes_used=930),
        ("critical", "other"),
        ("93% of its inodes", "50 GiB are left", "930 of 1000 inodes"),
        ("inode 已用 93%",),
    ),
    Case("inodes that are not counted", disk(inodes=None), None),
    Case("figures that nobody knows", disk(used=99, available_bytes=None), None),
    Case("boot is always nearly full", disk("/boot", used=95), None),
    Case("data", disk("/data", used=85), ("warning", "datasets"), ("mostly data (85 GiB)",), ("主要是数据",)),
    Case(
        "images, with who uses them",
        disk(used=85, **RUNTIME),
        ("warning", "images"),
        (
            "mostly container images (60 GiB)",
            "Image a:1: 40 GiB, used by team/bert-0 (alice)",
            "b:1: 20 GiB, unused",
        ),
        ("主要是容器镜像", "使用者：team/bert-0 (alice)", "没有容器使用"),
        {"images": (cache(image("a:1", 40, "train"), image("b:1", 20), total=60),), "containers": (container(),)},
    ),
    Case(
        "layers, with who wrote them",
        disk(used=85, **RUNTIME),
        ("warning", "container-layers"),
        ("layers (50 GiB)", "team/bert-0 of alice: 45 GiB in the container layer, 0 B of logs"),
        ("team/bert-0（用户 alice）：写在容器里 45 GiB",),
        {
            "images": (cache(total=5),),
            "runtime_usage": (usage({"train": 45, "web": 5}),),
            "containers": (container(), container("web", pod="web-0", user=None)),
        },
    ),
    Case(
        "logs",
        disk(used=85, **RUNTIME),
        ("warning", "logs"),
        ("mostly container logs (40 GiB)", "team/bert-0 of alice: 0 B in the container layer, 40 GiB of logs"),
        ("主要是容器日志",),
        {"images": (cache(total=5),), "logs": (log("train", 40),), "containers": (container(),)},
    ),
    Case(
        "volumes",
        disk(used=85, **RUNTIME),
        ("warning", "volumes"),
        ("container runtime volumes (30 GiB)",),
        ("数据卷",),
        {
            "images": (cache(total=5),),
            "runtime_usage": (usage(volumes=(VolumeFact(name="v", size_bytes=30 * GIB, references=0),)),),
        },
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_disk(case: Case) -> None:
    found = once(RULE, agent("n1", case.disk, **(case.parts or {})))
    assert [(f.severity.value, f.cause) for f in found] == ([case.expect] if case.expect else [])
    for finding in found:
        assert finding.labels == {"node": "n1", "mount": case.disk.mount}
        assert [part for part in case.says if part not in text(finding)] == [], text(finding)
        assert [part for part in case.chinese if part not in text(finding, "zh")] == [], text(finding, "zh")


def test_images_on_another_disk_do_not_fill_this_one() -> None:
    both = (disk(used=85), disk("/var/lib/docker", used=70, device="/dev/sdb1", roles=("runtime",)))
    found = once(RULE, agent("n1", *both, images=(cache(image(), total=60),)))
    assert [(f.labels["mount"], f.cause) for f in found] == [("/", "other")]


def test_a_log_on_the_system_disk_counts_there() -> None:
    both = (disk(used=85), disk("/data", used=20, device="/dev/sdb1", roles=("runtime",)))
    logs = container(log_path="/var/log/pods/team_bert-0/train/0.log")
    found = once(
        RULE, agent("n1", *both, images=(cache(root="/data/docker"),), containers=(logs,), logs=(log("train", 50),))
    )
    assert brief(found) == [("warning", "logs", False)]


def test_a_nas_is_one_disk_for_all_nodes() -> None:
    found = once(RULE, *(agent(f"n{i}", nas(95), disk(used=10)) for i in range(5)))
    assert [(f.labels, f.cause) for f in found] == [({"mount": "/nas", "service": "nas:/export"}, "datasets")]
    assert "5 nodes have it mounted" in text(found[0])
    assert "5 个节点" in text(found[0], "zh")


@pytest.mark.parametrize("device", ["s3fs", "127.0.0.1:/"])
def test_a_source_that_names_no_server_is_no_identity(device: str) -> None:
    agents = (agent("n1", nas(95, device=device)), agent("n2", nas(950, 1000, device=device, mount="/other")))
    assert len(once(RULE, *agents)) == 2


def test_read_only_is_said_of_what_was_writable() -> None:
    watch, read_only = Watch(RULE), disk("/data", used=10, read_only=True)
    assert watch.see(agent("n1", read_only)) == []  # mounted read-only on purpose
    assert watch.see(agent("n1", disk("/data", used=10))) == []
    found = watch.see(agent("n1", read_only))
    assert brief(found) == [("critical", "datasets", False)]
    assert "is read-only" in text(found[0])
    assert "只读" in text(found[0], "zh")
    assert brief(watch.see(agent("n1", read_only))) == [("critical", "datasets", False)]


def test_a_runtime_cannot_do_with_a_read_only_disk() -> None:
    assert brief(once(RULE, agent("n1", disk(used=10, read_only=True, **RUNTIME)))) == [("critical", "other", False)]


def test_one_file_more_or_less_is_no_news() -> None:
    watch = Watch(RULE)
    seen = [len(watch.see(agent("n1", disk(used=used)))) for used in (79.5, 80, 79.5, 80, 78.5, 79.5)]
    assert seen == [0, 1, 1, 1, 0, 0]


def test_since_is_when_it_began() -> None:
    watch = Watch(RULE)
    watch.see(agent("n1", disk(used=85), at=NOW), now=NOW)
    assert watch.see(agent("n1", disk(used=95), at=NOW + 60), now=NOW + 60)[0].since == NOW


@pytest.mark.parametrize(
    ("name", "full", "then", "held"),
    [
        ("the agent is silent", agent("n1", disk(used=85)), (silent(),), True),
        ("the agent's word is old", agent("n1", disk(used=85)), (agent("n1", disk(used=10), at=NOW - 200),), True),
        ("the collector does not tell", agent("n1", disk(used=85)), (agent("n1"),), True),
        (
            "the disk hangs",
            agent("n1", disk("/data", used=85)),
            (agent("n1", hung("/data", device="/dev/sda1")),),
            True,
        ),
        ("all who have the NAS are silent", agent("n1", nas(85)), (silent(), agent("n2", disk())), True),
        ("the NAS hangs", agent("n1", nas(85)), (agent("n1", hung_nas()),), True),
        ("another node knows the NAS", agent("n1", nas(85)), (silent(), agent("n2", nas(50))), None),
        ("it was emptied", agent("n1", disk(used=85)), (agent("n1", disk(used=20)),), None),
        ("no agents at all", agent("n1", disk(used=85)), (), True),
    ],
)
def test_nothing_resolves_on_missing_data(
    name: str, full: AgentFact, then: tuple[AgentFact, ...], held: bool | None
) -> None:
    watch = Watch(RULE)
    assert len(watch.see(full)) == 1
    assert [finding.held for finding in watch.see(*then)] == ([held] if held is not None else [])


def test_a_node_without_its_agent_is_not_well() -> None:
    watch = Watch(RULE)
    watch.see(agent("n1", disk(used=85)), agent("n2", disk()), nodes=[node("n1")])
    assert [f.held for f in watch.see(agent("n2", disk()), nodes=[node("n1")])] == [True]
    assert watch.see(agent("n2", disk())) == []  # the node is gone


def test_it_explains_what_says_so_itself() -> None:
    full = pod("bert-0", node="n1", statuses=(waiting("ErrImagePull"),))
    other = pod("other-0", node="n1", statuses=(waiting("ErrImagePull"),))
    found = once(
        RULE,
        agent("n1", disk(used=95, **RUNTIME)),
        pods=[full, other],
        nodes=[node("n1", conditions=(ConditionFact(type="DiskPressure", status=True),))],
        events=[
            event("Failed", "Failed to pull: write /x: no space left on device", about=full),
            event("Failed", "manifest unknown", about=other),
        ],
    )[0]
    symptoms = [
        _symptom("image-pull", namespace="team-a", pod="bert-0"),
        _symptom("image-pull", namespace="team-a", pod="other-0"),
        _symptom("node-down", node="n1"),
        _symptom("node-down", node="n2"),
        _symptom("disk-filling", node="n1", mount="/"),
    ]
    assert [any(scope.covers(each) for scope in found.explains) for each in symptoms] == [
        True,
        False,
        True,
        False,
        True,
    ]


def test_a_warning_does_not_hide_that_it_will_be_full_soon() -> None:
    found = once(RULE, agent("n1", disk(used=85)))[0]
    assert not any(scope.covers(_symptom("disk-filling", node="n1", mount="/")) for scope in found.explains)


def _symptom(rule: str, **labels: str) -> Finding:
    return Finding(rule=rule, severity=Severity.WARNING, cause="x", labels=labels, headline=Text(key="x"))
