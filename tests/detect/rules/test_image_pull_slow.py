# ruff: noqa: E501  # tables: one row is one line
from __future__ import annotations

from typing import Any

import msgspec
import pytest

from monitor.detect.lib.pull_times import duration_of, size_of
from monitor.detect.rules.image_pull_slow import CAUSES, RULE, Limits
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView, SourceView
from monitor.facts.kube import EventFact, PodFact
from monitor.facts.storage import DiskFact, DiskIoFact, ImageCacheFact, ImageFact
from tests.detect.builders_pods import PODS_UNSEEN, after_change, due, held, none, one, run, text
from tests.explain.builders import IMAGE, NOW, agent, event, owned, pod, running_container, waiting

GB = 10**9
CREATING = pod(node="n1", statuses=(waiting("ContainerCreating"),))
RUNNING = pod(node="n1", phase="Running", statuses=(running_container(),))
ROOT = DiskFact(mount="/", device="sda", fstype="ext4", roles=("system", "runtime"))


def pulling(ago: float) -> EventFact:
    return event("Pulling", f'Pulling image "{IMAGE}"', ago=ago, type="Normal")


def pulled(rest: str, ago: float = 60) -> EventFact:
    return event("Pulled", f'Successfully pulled image "{IMAGE}"{rest}', ago=ago, type="Normal")


def has(size: int, node: str = "n1", **parts: Any) -> AgentFact:
    image = ImageFact(id="i", names=(IMAGE,), size_bytes=size)
    return agent(node, images=(ImageCacheFact(runtime="docker", images=(image,)),), **parts)


def disk(busy: float, mount: str = "/") -> dict[str, Any]:
    totals = dict.fromkeys(
        (
            "read_bytes_total",
            "written_bytes_total",
            "reads_total",
            "writes_total",
            "busy_seconds_total",
            "queue_seconds_total",
        ),
        0,
    )
    return {"disk": (ROOT,), "disk_io": (DiskIoFact(device="sda", busy_ratio=busy, mounts=(mount,), **totals),)}


NEW = " in 3m20s (5m0s including waiting). Image size: 1900000000 bytes."
CASES: list[tuple[str, PodFact, dict[str, Any], str, str]] = [
    ("for long, size unknown", CREATING, {"events": [pulling(301)]}, "slow-registry", "5 min 1 s"),
    ("for long, and it is large", CREATING, {"events": [pulling(301)], "agents": [has(50 * GB, "n2")]}, "large-image", "46.6 GiB"),
    ("for longer than its size allows", CREATING, {"events": [pulling(301)], "agents": [has(3 * GB, "n2")]}, "slow-registry", "2.8 GiB"),
    ("its disk is busy", CREATING, {"events": [pulling(301)], "agents": [agent("n1", **disk(0.95))]}, "slow-disk", "5 min 1 s"),
    ("another disk is busy", CREATING, {"events": [pulling(301)], "agents": [agent("n1", **disk(0.95, "/data"))]}, "slow-registry", "5 min 1 s"),
    ("done, as 1.29 says it", RUNNING, {"events": [pulling(400), pulled(NEW)]}, "slow-registry", "9.1 MiB per second"),
    ("done, as 1.20 says it", RUNNING, {"events": [pulling(400), pulled(" in 3m20.5s")], "agents": [has(19 * GB // 10)]}, "slow-registry", "9 MiB per second"),
    ("done, as 1.18 says it", RUNNING, {"events": [pulling(260), pulled("")], "agents": [has(19 * GB // 10)]}, "slow-registry", "3 min 20 s"),
    ("done, on a busy disk", RUNNING, {"events": [pulled(NEW)], "agents": [agent("n1", **disk(0.95))]}, "slow-disk", "The pull has completed"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "facts", "cause", "says"), CASES, ids=[case[0] for case in CASES])
def test_each_cause(name: str, given: PodFact, facts: dict[str, Any], cause: str, says: str) -> None:
    finding = one(RULE, pods=[given], identities=owned(bert_0="li"), **facts)
    assert finding.cause == cause, text(finding)
    assert says in text(finding)
    assert finding.labels == {"node": "n1", "image": IMAGE, "service": "harbor.lab"}
    assert "分钟" in text(finding, "zh")


def test_every_cause_has_a_case() -> None:
    assert {case[3] for case in CASES} == set(CAUSES)


QUIET: list[tuple[str, PodFact, dict[str, Any]]] = [
    ("not yet", CREATING, {"events": [pulling(299)]}),
    ("it runs: the event of the end was lost", RUNNING, {"events": [pulling(9000)]}),
    ("the pull failed", CREATING, {"events": [pulling(900), event("Failed", f'Failed to pull image "{IMAGE}": EOF')]}),
    ("fast enough", RUNNING, {"events": [pulled(" in 3m20s (5m0s including waiting). Image size: 2000000000 bytes.")]}),
    ("waiting for others is not its own time", RUNNING, {"events": [pulled(" in 20s (9m0s including waiting). Image size: 1900000000 bytes.")]}),
    ("slow, and small", RUNNING, {"events": [pulled(" in 9m0s (9m0s including waiting). Image size: 1000000000 bytes.")]}),
    ("slow, and its size unknown", RUNNING, {"events": [pulled(" in 9m0s")]}),
    ("slow, and long ago", RUNNING, {"events": [pulled(NEW, ago=3601)]}),
    ("it was there already", RUNNING, {"events": [pulling(4000), event("Pulled", f'Container image "{IMAGE}" already present on machine')], "agents": [has(19 * GB)]}),
    ("its pod is being deleted", msgspec.structs.replace(CREATING, deletion_at=NOW), {"events": [pulling(900)]}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "facts"), QUIET, ids=[case[0] for case in QUIET])
def test_not_slow(name: str, given: PodFact, facts: dict[str, Any]) -> None:
    assert none(RULE, pods=[given], **facts)


def test_pods_that_wait_for_the_same_pull_are_one_finding() -> None:
    other = msgspec.structs.replace(CREATING, uid="uid-x", name="x")
    events = [pulling(400), msgspec.structs.replace(pulling(350), uid="e2", name="x", involved_uid="uid-x")]
    assert "6 min 40 s" in text(one(RULE, pods=[CREATING, other], events=events))


def test_the_node_s_clock_is_not_ours() -> None:
    """It is 1,000 s behind: what it says began 20 minutes ago began just now."""
    behind = msgspec.structs.replace(agent("n1"), received_at=NOW + 1000)
    assert none(RULE, pods=[CREATING], events=[pulling(1200)], agents=[behind])


def test_a_limit_of_its_own() -> None:
    assert none(RULE, limits=Limits(pulling=900), pods=[CREATING], events=[pulling(301)])


@pytest.mark.parametrize("view", [PODS_UNSEEN, ClusterView(at=NOW, sources=(SourceView(name="events", ok=False),))])
def test_held_while_it_cannot_be_known(view: ClusterView) -> None:
    before = {"pods": [CREATING], "events": [pulling(400)]}
    assert [left.held for left in held(RULE, before, {"view": view})] == [True]
    assert held(RULE, before, {"pods": [RUNNING]}) == ()


MESSAGES = [
    ('Successfully pulled image "a" in 1.5s', 1.5, None),
    ('Successfully pulled image "a" in 850ms (851ms including waiting)', 0.85, None),
    ('Successfully pulled image "a" in 49.184s(72.87s including waiting)', 49.184, None),
    ('Successfully pulled image "a" in 1h2m3s (2h0m0s including waiting). Image size: 77 bytes.', 3723.0, 77),
    ('Successfully pulled image "a"', None, None),
    ("in the beginning", None, None),
]


@pytest.mark.parametrize(("message", "seconds", "size"), MESSAGES)
def test_messages_of_all_versions(message: str, seconds: float | None, size: int | None) -> None:
    assert (duration_of(message), size_of(message)) == (seconds, size)


def test_nothing_is_remembered() -> None:
    assert run(RULE, pods=[CREATING], events=[pulling(400)]).memory == {}


DUE: list[tuple[str, PodFact, dict[str, Any], float | None]] = [
    ("the limit of a pull in progress", CREATING, {"events": [pulling(100)]}, 200),
    ("a slow pull: its figures", CREATING, {"events": [pulling(301)]}, 30),
    ("a completed one is no longer reported", RUNNING, {"events": [pulled(NEW)]}, 3540),
    ("its size may become known", RUNNING, {"events": [pulled(" in 9m0s")]}, 30),
    ("fast enough", RUNNING, {"events": [pulled(" in 20s. Image size: 1900000000 bytes.")]}, None),
    ("no pull", RUNNING, {}, None),
]


@pytest.mark.parametrize(("name", "given", "facts", "seconds"), DUE, ids=[case[0] for case in DUE])
def test_when_time_alone_changes_it(name: str, given: PodFact, facts: dict[str, Any], seconds: float | None) -> None:
    assert due(RULE, pods=[given], **facts) == seconds


@pytest.mark.parametrize(("busy", "cause"), [(0.95, "slow-disk"), (0.1, "slow-registry")])
def test_a_change_on_its_node_changes_the_cause(busy: float, cause: str) -> None:
    given = {"pods": [CREATING], "events": [pulling(301)]}
    before, after = (given | {"agents": [agent("n1", **disk(share))]} for share in (1.05 - busy, busy))
    assert [finding.cause for finding in after_change(RULE, before, after)] == [cause]


def test_the_size_on_its_own_node_counts_first() -> None:
    agents = [has(50 * GB, "n0"), has(3 * GB), has(50 * GB, "n2")]
    assert "2.8 GiB" in text(one(RULE, pods=[CREATING], events=[pulling(301)], agents=agents))
