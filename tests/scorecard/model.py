"""The scorecard's model: outage shapes, their occurrences, expected alerts, and actual alerts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from monitor.detect.base import CleanupDeletion
from monitor.sim.cluster import SimPod
from monitor.sim.manifests import Workload
from monitor.sim.node import SimNode
from monitor.sim.outages import image
from tests.scorecard.scene import Scene

EVERYWHERE = "everywhere"  # lock for shapes that need the whole cluster


@dataclass(frozen=True)
class Tell:
    """An expected alert. Labels may contain {node} and {id}.

    `begins` is the offset in the outage at which the rule's timer starts.
    """

    rule: str
    cause: str
    labels: Mapping[str, str] = field(default_factory=lambda: {"node": "{node}"})
    begins: float = 0.0


@dataclass(frozen=True)
class May:
    """An alert that may accompany an outage as a documented symptom."""

    rule: str
    labels: Mapping[str, str] = field(default_factory=dict)


Act = Callable[["Happening"], Iterator[float | None]]


@dataclass(frozen=True)
class Shape:
    """One form of an outage. `ids` are rows of the requirements.

    `act` causes it, yields how long to wait (None: until the outage ends), and then restores the state. `locks` name
    what no other outage may use at the same time; its own node is always included.
    """

    name: str
    ids: tuple[str, ...]
    lasts: float
    act: Act
    tells: tuple[Tell, ...] = ()
    may: tuple[May, ...] = ()
    locks: tuple[str, ...] = ()
    on_node: bool = True


@dataclass(frozen=True)
class Occurrence:
    """A shape at a time on a node."""

    shape: Shape
    id: str
    node: str
    begin: float

    @property
    def end(self) -> float:
        return self.begin + self.shape.lasts

    @property
    def urgent(self) -> bool:
        """Whether it is expected quickly: anything slower is detected over hours."""
        return self.shape.lasts < 2 * 3600.0

    @cached_property
    def locks(self) -> frozenset[str]:
        return frozenset((*self.shape.locks, *((self.node,) if self.shape.on_node else ())))

    def labels(self, of: Tell | May) -> dict[str, str]:
        """Labels with placeholders filled in."""
        return {name: value.format(node=self.node, id=self.id) for name, value in of.labels.items()}


class Happening:
    """An active occurrence: what its shape may use. Its pods are deleted when it ends."""

    def __init__(self, scene: Scene, occurrence: Occurrence) -> None:
        self.scene = scene
        self.id = occurrence.id
        self.end = occurrence.end
        self.node: SimNode = scene.cluster.nodes[occurrence.node]
        self._pods: list[SimPod] = []
        self._objects: list[tuple[str, str]] = []

    @property
    def now(self) -> float:
        return self.scene.clock.now

    @property
    def card(self) -> int:
        """The node's last GPU: everyday work starts with the first."""
        return self.node.free_gpu_indexes()[-1]

    def job(
        self, gpus: int = 0, *, more: str = "", node: str | None = None, held: bool = False, **given: object
    ) -> SimPod:
        """Submit a job of the outage on its node."""
        work = self.work(gpus, more, **given)
        pod = self.scene.submit(work, node or self.node.name, held=held)
        self._pods.append(pod)
        return pod

    def work(self, gpus: int = 0, more: str = "", **given: object) -> Workload:
        """Work named after the outage."""
        fields: dict[str, Any] = {"image": image("nlp", f"{self.id}{more}:1")} | given
        return Workload(f"{self.id}{more}", "nlp", "zhang", "vc-nlp", gpus, **fields)

    def waits(self, gpus: int, message: str, *, more: str = "", **spec: object) -> None:
        """Create an unschedulable pod."""
        self._objects.append(("pods", self.scene.waiting_pod(self.work(gpus, more), message, **spec)))

    def put(self, plural: str, item: dict[str, object], uid: str) -> None:
        """Create an object that is deleted when the outage ends."""
        self.scene.objects.put(plural, item)
        self._objects.append((plural, uid))

    def clean_up(self, mount: str, size: float) -> None:
        """Remove this many bytes from a disk through the product's own cleanup."""
        own = CleanupDeletion(self.node.name, mount, int(size), self.now - 60.0, self.now)
        self.scene.own_deletions = [*self.scene.own_deletions[-5:], own]

    def clear(self) -> None:
        """Remove the effects of the outage."""
        for pod in self._pods:
            self.scene.withdraw(pod)
        for plural, uid in self._objects:
            self.scene.objects.remove(plural, uid)


@dataclass
class Episode:
    """An alert from firing to resolution: its causes in order, and the alerts that explained it."""

    fingerprint: str
    rule: str
    labels: dict[str, str]
    fired_at: float
    causes: list[str]
    told_at: float | None = None
    resolved_at: float | None = None
    explained_by: str | None = None

    @property
    def key(self) -> str:
        """Key of its finding."""
        return self.rule + "".join(f"|{name}={self.labels[name]}" for name in sorted(self.labels))
