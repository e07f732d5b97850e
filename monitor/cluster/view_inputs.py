"""Facts from which the view is joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.devices import NO_DEVICES, DeviceFacts
from monitor.facts.kube import NodeFact, PodFact
from monitor.facts.queues import QueueFact


@dataclass(frozen=True)
class ClusterContext:
    """Facts that belong to no single node. `pods_known` is False while Kubernetes is out of reach."""

    queues: tuple[QueueFact, ...] = ()
    sources: tuple[SourceView, ...] = ()
    pods_known: bool = False
    devices: DeviceFacts = NO_DEVICES


@dataclass(frozen=True)
class ViewInputs:
    """All facts of a view."""

    agents: tuple[AgentFact, ...] = ()
    pods: tuple[PodFact, ...] = ()
    nodes: tuple[NodeFact, ...] = ()
    around: ClusterContext = ClusterContext()


@dataclass(frozen=True)
class ViewChanges:
    """Changes since the last view: pods by uid and nodes by name (None: deleted), agents with a new fact.

    `gone` are targets of agents that no longer exist, `again` nodes to join because time has passed; `around` replaces
    the context, if given.
    """

    pods: Mapping[str, PodFact | None] = field(default_factory=dict)
    nodes: Mapping[str, NodeFact | None] = field(default_factory=dict)
    agents: tuple[AgentFact, ...] = ()
    gone: frozenset[str] = frozenset()
    again: frozenset[str] = frozenset()
    around: ClusterContext | None = None

    def __bool__(self) -> bool:
        return bool(self.pods or self.nodes or self.agents or self.gone or self.again or self.around)
