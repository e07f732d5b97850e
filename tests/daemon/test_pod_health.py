"""Pod health follows changes: similar pods share an explanation, and explanations have a CPU budget."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from monitor.daemon import pod_health
from monitor.daemon.metrics.pods import families
from monitor.daemon.pod_health import REPEAT_SECONDS, UNREAD_SECONDS, PodHealth, PodHealthTracker
from monitor.detect.lib.pending_answers import PendingAnswer, shape_id
from monitor.explain.model import PodStatus
from monitor.explain.pod import pod_status
from monitor.facts.changes import Changes
from monitor.facts.cluster import ClusterView, GpuState, Identity, SourceView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import PodFact
from tests.daemon.metrics.support import lines
from tests.explain.builders import NOW, gpu_view, holding, looping, node, pod, running_container, unschedulable, view

BUSY = unschedulable("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
WELL = holding("well", "n1", 0, statuses=(running_container(),))
CRASHING = holding("crash", "n1", 0, statuses=(looping(1),))
FULL = holding("full", "n1", 8, statuses=(running_container(),))


def waiting(number: int) -> PodFact:
    return pod(f"wait-{number}", gpus=8, conditions=BUSY)


def world(*pods: PodFact, **more: Identity) -> ClusterFacts:
    return make_cluster_facts(
        pods=pods, nodes=[node("n1")], identities={f"uid-{name}": who for name, who in more.items()}
    )


def words(found: PodHealth) -> list[tuple[str, str, str]]:
    return [(each.pod.name, each.status, each.cause) for each in found.pods]


class Clock:
    """CPU clock that stands still until this many explanations were made after an evaluation."""

    def __init__(self, fit: int) -> None:
        self.fit = fit
        self._asked = 0

    def __call__(self) -> float:
        self._asked += 1
        over = self._asked > 1 + self.fit
        self._asked = 0 if over else self._asked
        return float(over)


def tracker(**more: Any) -> PodHealthTracker:
    tracked = PodHealthTracker(**more)
    assert tracked.health() is None  # a reader keeps explanations up to date
    return tracked


def followed(tracked: PodHealthTracker, facts: ClusterFacts, now: float = NOW, *changed: str) -> PodHealth:
    """Health after an evaluation; the first one is of everything."""
    tracked.follow(facts, Changes(pods=frozenset(f"uid-{name}" for name in changed)), now)
    found = tracked.health()
    assert found is not None
    return found


def test_the_worst_come_first_and_who_is_well_is_not_named() -> None:
    found = followed(tracker(), world(WELL, FULL, waiting(0), CRASHING, crash=Identity(user="li", job="j")))
    assert words(found) == [("crash", "crashing", "crash-error"), ("wait-0", "pending", "not-enough-gpus")]
    assert found.omitted == 0
    assert lines(families(found)) == [
        (
            'gpuwarden_pod_explained{cause="crash-error",namespace="team-a",pod="crash",status="crashing",user="li",'
            'workload="j"} 1.0'
        ),
        'gpuwarden_pod_explained{cause="not-enough-gpus",namespace="team-a",pod="wait-0",status="pending"} 1.0',
        'gpuwarden_pods_explained{cause="crash-error",status="crashing"} 1.0',
        'gpuwarden_pods_explained{cause="not-enough-gpus",status="pending"} 1.0',
        "gpuwarden_pods_not_explained 0.0",
    ]


def test_nothing_is_said_while_nobody_knows() -> None:
    assert lines(families(None)) == []


def test_those_beyond_the_bound_are_counted() -> None:
    found = followed(tracker(max_named=3), world(FULL, *(waiting(number) for number in range(10))))
    assert len(found.pods) == 3
    assert found.counts == {("pending", "not-enough-gpus"): 10}
    assert found.omitted == 7


def test_explanations_end_when_their_time_is_over_and_go_on_after_the_next_evaluation() -> None:
    tracked = tracker(budget=1.0, spent=Clock(fit=1))
    seen = world(WELL, CRASHING, waiting(0), waiting(1), FULL)
    found = [followed(tracked, seen, NOW + number) for number in range(5)]
    assert [each.omitted for each in found] == [4, 3, 2, 1, 0]
    assert [len(each.pods) for each in found] == [1, 2, 3, 3, 3]  # those that do not run come first


def test_a_pod_that_has_changed_is_explained_anew_and_one_that_is_gone_forgotten() -> None:
    tracked = tracker()
    assert len(followed(tracked, world(CRASHING)).pods) == 1
    assert followed(tracked, world(replace(CRASHING, statuses=(running_container(),))), NOW + 1, "crash").pods == ()
    assert followed(tracked, world(), NOW + 2, "crash") == PodHealth((), {}, 0)


def test_what_was_explained_a_while_ago_is_explained_again() -> None:
    """Two busy pods become idle; the pods themselves do not change."""
    pods = [holding(name, "n1", 1, statuses=(running_container(),)) for name in ("a", "b")]

    def seen(state: GpuState, **more: float) -> ClusterFacts:
        cards = [gpu_view("n1", number, state, each, **more) for number, each in enumerate(pods)]
        return make_cluster_facts(pods=pods, nodes=[node("n1")], view=view(cards=cards))

    tracked = tracker()
    busy, idle = seen(GpuState.BUSY, utilization_ratio=0.9), seen(GpuState.IDLE_HELD, idle_since=NOW - 3600)
    at = ((0.0, busy), (1.0, idle), (REPEAT_SECONDS, idle))
    assert [len(followed(tracked, facts, NOW + seconds).pods) for seconds, facts in at] == [0, 0, 2]


def test_a_healthy_pod_without_gpus_is_not_explained_again(monkeypatch: pytest.MonkeyPatch) -> None:
    explained = []

    def noted(each: PodFact, *args: Any) -> tuple[PodStatus, str]:
        explained.append(each.name)
        return pod_status(each, *args)

    monkeypatch.setattr(pod_health, "pod_status", noted)
    tracked = tracker()
    for number in range(3):
        followed(tracked, world(WELL, CRASHING), NOW + number * REPEAT_SECONDS)
    assert sorted(explained) == ["crash", "crash", "crash", "well"]
    followed(tracked, world(WELL, CRASHING), NOW + 2 * REPEAT_SECONDS, "well")
    assert explained[-1] == "well"


def test_what_the_rule_about_pending_pods_has_explained_is_not_explained_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*_args: Any) -> PendingAnswer:
        raise AssertionError("explained again")

    facts = world(FULL, waiting(0), waiting(1))
    answers = {shape_id(waiting(0), facts): msgspec.to_builtins(PendingAnswer(at=NOW, cause="quota", evidence=()))}
    monkeypatch.setattr(pod_health, "explain_pending", unexpected)
    tracked = tracker()
    tracked.follow(facts, Changes(complete=True), NOW + 1, answers)
    found = tracked.health()
    assert found is not None
    assert words(found) == [("wait-0", "pending", "quota"), ("wait-1", "pending", "quota")]


def test_pods_that_nobody_asks_about_are_not_explained() -> None:
    now = [0.0]
    tracked = PodHealthTracker(monotonic=lambda: now[0])
    tracked.follow(world(CRASHING), Changes(), NOW)
    assert tracked.health() is None
    assert len(followed(tracked, world(CRASHING)).pods) == 1
    now[0] += UNREAD_SECONDS + 1
    tracked.follow(world(CRASHING), Changes(), NOW)
    assert tracked.health() is None


def test_without_kubernetes_nothing_is_known_of_pods() -> None:
    tracked = tracker()
    standalone = ClusterView(at=NOW, sources=(SourceView(name="kubernetes", ok=False),))
    tracked.follow(make_cluster_facts(view=standalone), Changes(complete=True), NOW)
    assert tracked.health() is None


def test_a_pod_that_cannot_be_explained_hides_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def odd(each: PodFact, *args: Any) -> tuple[PodStatus, str]:
        if each.name == "full":
            raise RuntimeError("odd")
        return pod_status(each, *args)

    monkeypatch.setattr(pod_health, "pod_status", odd)
    found = followed(tracker(), world(FULL, CRASHING))
    assert ([each.pod.name for each in found.pods], found.omitted) == (["crash"], 1)
    assert "cannot explain pod team-a/full" in caplog.text
