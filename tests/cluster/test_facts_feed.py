"""Facts that follow changes equal those built from everything there is; changes name what rules have to look at."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from monitor.cluster.facts_feed import FactsFeed, FactsUpdate
from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ClusterContext, ViewChanges, ViewInputs
from monitor.facts.changes import AGENT, ALL_PARTS, GPU_STATES, GPUS, KINDS, KUBERNETES_NODE, PODS, Changes
from monitor.facts.cluster import Identity
from monitor.facts.facts_index import SmallFacts, make_cluster_facts
from monitor.facts.kube import EventFact, PodFact
from monitor.facts.queues import QuotaFact
from tests.cluster.builders import GPU, NOW, agent, card, device, node, pod
from tests.explain.builders import event

RUNNING, WAITING = pod("running"), pod("waiting", node=None)
INPUTS = ViewInputs(
    agents=(agent(card(), devices=(device(RUNNING),)),),
    pods=(RUNNING, WAITING),
    nodes=(node("n1", 1), node("n2", 0)),
    around=ClusterContext(pods_known=True),
)
QUOTA = QuotaFact(uid="q", namespace="team", name="q", hard={GPU: 8.0}, used={})


def owner(item: PodFact) -> Identity:
    return Identity(user=f"{item.name}'s")


@dataclass
class Source:
    """A cluster whose changes are taken as the daemon takes them."""

    inputs: ViewInputs = INPUTS
    events: dict[str, EventFact] = field(default_factory=dict)
    small: SmallFacts = field(default_factory=SmallFacts)

    def __post_init__(self) -> None:
        self.builder = ViewBuilder(owner).build(self.inputs, NOW)
        self.changed_events: dict[str, EventFact | None] = {}
        self.feed = FactsFeed(self._take, GPU)
        self.first = self.feed.update()

    def _take(self) -> FactsUpdate:
        changed, self.changed_events = self.changed_events, {}
        return FactsUpdate(*self.builder.take_changes(), changed, self.small)

    def put_pod(self, item: PodFact | None, uid: str) -> None:
        self.builder.update(ViewChanges(pods={uid: item}), NOW)
        others = tuple(other for other in self.inputs.pods if other.uid != uid)
        self.inputs = replace(self.inputs, pods=others if item is None else (*others, item))

    def put_event(self, item: EventFact) -> None:
        self.events[item.uid] = self.changed_events[item.uid] = item

    def update(self) -> Changes:
        """Update the facts, and compare them with those of the whole cluster."""
        changes = self.feed.update()
        facts = make_cluster_facts(
            pods=self.inputs.pods,
            nodes=self.inputs.nodes,
            agents=self.inputs.agents,
            events=self.events.values(),
            quotas=self.small.quotas,
            identities={item.uid: owner(item) for item in self.inputs.pods},
            view=self.builder.view(),
        )
        assert self.feed.facts == facts
        return changes


def test_the_first_update_is_complete() -> None:
    source = Source()
    assert source.first.complete
    assert source.first.nodes == {"n1": ALL_PARTS, "n2": ALL_PARTS}
    assert source.first.pods == {"uid-running", "uid-waiting"}
    assert source.first.kinds == set(KINDS)
    assert source.update() == Changes(), "and without a change there is none"


def test_a_pod_that_is_scheduled_changes_its_node() -> None:
    source = Source()
    source.put_pod(pod("waiting", node="n2"), "uid-waiting")
    changes = source.update()
    assert changes.nodes == {"n2": {PODS, AGENT}}, "also its view, which counts requested GPUs"
    assert changes.pods == {"uid-waiting"}
    assert changes.kinds == {"pods", "pending_pods"}


def test_a_pod_that_is_gone_changes_the_node_that_it_was_on() -> None:
    source = Source()
    source.put_pod(None, "uid-running")
    changes = source.update()
    assert changes.nodes == {"n1": {PODS, GPUS, GPU_STATES, AGENT}}, "its GPU is held by a pod that is gone"
    assert changes.pods == {"uid-running"}
    assert changes.kinds == {"pods"}


def test_an_event_changes_its_pod_and_the_node_of_the_pod() -> None:
    source = Source()
    source.put_event(event("BackOff", "m", about=RUNNING))
    expect = Changes({"n1": frozenset({PODS})}, frozenset({"uid-running"}), frozenset({"events"}))
    assert source.update() == expect


def test_an_event_of_no_pod_is_a_change_of_events_only() -> None:
    source = Source()
    source.put_event(EventFact(uid="e", kind="Node", namespace=None, name="n1", reason="R", message="m"))
    assert source.update() == Changes(kinds=frozenset({"events"}))


def test_a_node_that_changes() -> None:
    source = Source()
    source.builder.update(ViewChanges(nodes={"n2": (cordoned := node("n2", 0, unschedulable=True))}), NOW)
    source.inputs = replace(source.inputs, nodes=(source.inputs.nodes[0], cordoned))
    changes = source.update()
    assert changes.nodes.keys() == {"n2"}
    assert changes.nodes["n2"] >= {KUBERNETES_NODE}
    assert not changes.pods
    assert changes.kinds == {"nodes"}


def test_a_node_that_is_gone_from_kubernetes_stays_as_long_as_its_agent() -> None:
    source = Source()
    source.builder.update(ViewChanges(nodes={"n1": None, "n2": None}), NOW)
    source.inputs = replace(source.inputs, nodes=())
    changes = source.update()
    assert changes.nodes == {"n1": {KUBERNETES_NODE, AGENT}, "n2": ALL_PARTS}
    assert list(source.feed.facts.view_of_node) == ["n1"]


def test_kinds_with_few_objects_are_compared_as_a_whole() -> None:
    source = Source()
    source.small = SmallFacts(quotas=(QUOTA,))
    assert source.update() == Changes(kinds=frozenset({"quotas"}))
    assert source.update() == Changes()


def test_after_a_complete_update_nothing_older_is_left() -> None:
    source = Source()
    source.put_event(event("BackOff", "m", about=RUNNING))
    source.update()
    source.inputs, source.events = replace(INPUTS, pods=(WAITING,)), {}
    source.builder.build(source.inputs, NOW)
    changes = source.update()
    assert changes.complete
    assert changes.pods == {"uid-waiting"}
