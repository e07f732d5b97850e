from __future__ import annotations

import pytest

from monitor.detect.rules.mount_lost import RULE
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding, Severity
from monitor.facts.kube import PodVolumeFact
from monitor.facts.storage import MountFact
from monitor.facts.text import Text
from tests.detect.builders_storage import (
    NOW,
    Continuous,
    Watch,
    absent,
    agent,
    brief,
    once,
    repeated,
    silent,
    spoken,
    text,
)
from tests.explain.builders import holding, pod


def mounted(node: str, state: str, ago: float = 600, path: str = "/nas", error: str | None = None) -> AgentFact:
    return agent(node, mounts=(MountFact(path=path, state=state, since=NOW - ago, error=error),))


@pytest.mark.parametrize(
    ("state", "ago", "cause", "english", "chinese"),
    [
        ("ok", 600, None, "", ""),
        ("missing", 600, "missing", "/nas is not mounted on n1", "n1 上没有挂载 /nas"),
        ("hung", 600, "hung", "has not responded for 10 min", "已 10 分钟没有响应"),
        ("read-only", 600, "read-only", "is read-only", "不能写入"),
        ("stale", 600, "stale", "no longer works: I/O", "已失效：I/O"),
        ("failing", 600, "stale", "no longer works: I/O", "已失效：I/O"),
        ("missing", 29, None, "", ""),
        ("missing", 30, "missing", "", ""),
        ("something new", 600, None, "", ""),
    ],
)
def test_states(state: str, ago: float, cause: str | None, english: str, chinese: str) -> None:
    found = once(RULE, mounted("n1", state, ago, error="I/O"))
    assert [(f.severity.value, f.cause) for f in found] == ([("critical", cause)] if cause else [])
    for finding in found:
        assert finding.labels == {"node": "n1", "mount": "/nas"}
        assert english in spoken(finding.headline)
        assert chinese in spoken(finding.headline, "zh")


def test_the_nodes_clock_is_not_ours() -> None:
    """A node whose clock is an hour behind lost its mount ten seconds ago, not an hour ago."""
    mount = MountFact(path="/nas", state="hung", since=NOW - 3610)
    assert once(RULE, agent("n1", mounts=(mount,), skew=3600)) == []
    assert [f.since for f in once(RULE, agent("n1", mounts=(mount,)))] == [NOW - 3610]


def test_a_server_that_is_down_is_one_finding() -> None:
    found = once(RULE, *(mounted(f"n{i}", "hung") for i in range(5)), mounted("n9", "ok"))
    shown = [finding for finding in found if finding.explained_by is None]
    assert [finding.labels for finding in shown] == [{"mount": "/nas"}]
    assert len(found) == 6
    assert "lost on 5 of 6 nodes" in text(shown[0])
    assert "6 个节点中有 5 个" in text(shown[0], "zh")


def test_two_of_many_nodes_are_their_own_fault() -> None:
    found = once(RULE, *(mounted(f"n{i}", "hung" if i < 4 else "ok") for i in range(9)))
    assert [sorted(finding.labels) for finding in found] == [["mount", "node"]] * 4


def test_it_explains_the_pods_that_are_stuck_on_it() -> None:
    path = (PodVolumeFact(name="data", kind="hostPath", path="/nas/imagenet"),)
    elsewhere = (PodVolumeFact(name="data", kind="hostPath", path="/nas2"),)
    pods = [
        pod("stuck-0", node="n1", volumes=path),
        pod("claim-0", node="n1", volumes=(PodVolumeFact(name="data", kind="persistentVolumeClaim", claim="c"),)),
        pod("other-0", node="n1", volumes=elsewhere),
        pod("none-0", node="n1"),
        holding("runs-0", "n1", 1, volumes=path),
    ]
    found = once(RULE, mounted("n1", "hung"), pods=pods)[0]
    assert [any(scope.covers(_stuck(each.name)) for scope in found.explains) for each in pods] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert "3 pods on n1 may use it" in text(found)


def test_held_while_it_cannot_be_known() -> None:
    watch = Watch(RULE)
    assert brief(watch.see(mounted("n1", "hung"))) == [("critical", "hung", False)]
    assert brief(watch.see(silent())) == [("critical", "hung", True)]
    assert brief(watch.see(agent("n1"))) == [("critical", "hung", True)]  # the collector itself hangs
    assert watch.see(agent("n1", collectors=(absent("mounts"),))) == []  # no longer expected
    watch.see(mounted("n1", "hung"))
    assert watch.see(mounted("n1", "ok")) == []


def test_a_lost_server_is_held_too() -> None:
    watch = Watch(RULE)
    watch.see(*(mounted(f"n{i}", "hung") for i in range(3)))
    assert [finding.held for finding in watch.see(*(silent(f"n{i}") for i in range(3)))] == [True] * 4
    assert watch.see(*(mounted(f"n{i}", "ok") for i in range(3))) == []


def test_it_lasts_without_a_change() -> None:
    watch, hung = Continuous(RULE), mounted("n1", "hung", ago=10)
    assert watch.see(hung) == []
    assert watch.next_at == NOW + 20
    found = watch.see(repeated(hung, NOW + 20), now=NOW + 20)
    assert "has not responded for 30 s" in text(found[0])
    assert watch.next_at is None
    later = watch.see(repeated(hung, NOW + 590), now=NOW + 590)
    assert "has not responded for 10 min" in text(later[0])
    assert "This has been the case for 10 min." in text(later[0])


def test_a_pod_may_get_stuck_later() -> None:
    watch, hung = Continuous(RULE), mounted("n1", "hung")
    path = (PodVolumeFact(name="data", kind="hostPath", path="/nas"),)
    stuck = pod("stuck-0", node="n1", volumes=path)
    assert "may use it" not in text(watch.see(hung)[0])
    found = watch.see(hung, pods=[stuck])[0]
    assert "1 pod on n1 may use it" in text(found)
    assert any(scope.covers(_stuck("stuck-0")) for scope in found.explains)
    assert "may use it" not in text(watch.see(hung)[0])


def test_nodes_that_no_longer_report_count_as_before() -> None:
    watch, well = Continuous(RULE), [mounted(f"n{i}", "ok") for i in range(3, 5)]
    hung = [mounted(f"n{i}", "hung") for i in range(3)]
    assert len(watch.see(*hung, *well)) == 4
    found = watch.see(hung[0], silent("n1"), silent("n2"), *well)
    assert [(sorted(f.labels), f.held) for f in found] == [
        (["mount"], True), (["mount", "node"], False), (["mount", "node"], True), (["mount", "node"], True),
    ]  # fmt: skip
    assert "lost on 3 of 5 nodes" in text(found[0])
    assert len(watch.see(mounted("n0", "ok"), silent("n1"), silent("n2"), *well)) == 2


def _stuck(name: str) -> Finding:
    labels = {"namespace": "team-a", "pod": name, "node": "n1"}
    return Finding(
        rule="pod-stuck-creating", severity=Severity.WARNING, cause="x", labels=labels, headline=Text(key="x")
    )
