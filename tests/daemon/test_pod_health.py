"""Pod health: similar pods share an explanation, and each round has a CPU budget."""

from __future__ import annotations

from msgspec.structs import replace

from monitor.daemon.metrics.pods import families
from monitor.daemon.pod_health import PodHealth, PodHealthChecker
from monitor.facts.cluster import GpuState, Identity
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
    """CPU clock that stands still until this many explanations were made in a round of one second."""

    def __init__(self, fit: int) -> None:
        self.fit = fit
        self._asked = 0

    def __call__(self) -> float:
        self._asked += 1
        over = self._asked > 1 + self.fit
        self._asked = 0 if over else self._asked
        return float(over)


def test_the_worst_come_first_and_who_is_well_is_not_named() -> None:
    found = PodHealthChecker().round(world(WELL, FULL, waiting(0), CRASHING, crash=Identity(user="li", job="j")), NOW)
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
    found = PodHealthChecker(max_named=3).round(world(FULL, *(waiting(number) for number in range(10))), NOW)
    assert len(found.pods) == 3
    assert found.counts == {("pending", "not-enough-gpus"): 10}
    assert found.omitted == 7


def test_a_round_ends_when_its_time_is_over_and_the_next_goes_on() -> None:
    explainer = PodHealthChecker(budget=1.0, spent=Clock(fit=1))
    seen = world(WELL, CRASHING, waiting(0), waiting(1), FULL)
    rounds = [explainer.round(seen, NOW + number) for number in range(3)]
    assert [each.omitted for each in rounds] == [3, 2, 1]  # the two similar pending pods share an explanation
    assert words(rounds[0]) == [("wait-0", "pending", "not-enough-gpus"), ("wait-1", "pending", "not-enough-gpus")]


def test_a_pod_that_has_changed_is_explained_anew_and_one_that_is_gone_forgotten() -> None:
    explainer = PodHealthChecker()
    assert len(explainer.round(world(CRASHING), NOW).pods) == 1
    assert explainer.round(world(replace(CRASHING, statuses=(running_container(),))), NOW).pods == ()
    assert explainer.round(world(), NOW) == PodHealth((), {}, 0)


def test_what_was_explained_longest_ago_is_looked_at_again_first() -> None:
    """Two busy pods become idle: with one explanation per round, they are found one after the other."""
    pods = [holding(name, "n1", 1, statuses=(running_container(),)) for name in ("a", "b")]

    def seen(state: GpuState, **more: float) -> ClusterFacts:
        cards = [gpu_view("n1", number, state, each, **more) for number, each in enumerate(pods)]
        return make_cluster_facts(pods=pods, nodes=[node("n1")], view=view(cards=cards))

    explainer = PodHealthChecker(budget=1.0, spent=Clock(fit=1))
    busy, idle = seen(GpuState.BUSY, utilization_ratio=0.9), seen(GpuState.IDLE_HELD, idle_since=NOW - 3600)
    found = [len(explainer.round(each, NOW + at).pods) for at, each in enumerate((busy, busy, idle, idle))]
    assert found == [0, 0, 1, 2]
