"""What the scorecard is about: outages in their shapes, when they happen, what has to be told, and what was told."""

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

EVERYWHERE = "everywhere"  # the lock of what needs the whole cluster for itself


@dataclass(frozen=True)
class Tell:
    """An alert that has to come. Labels may name {node} and {id}.

    `begins` is when in the outage the rule's own time begins to count.
    """

    rule: str
    cause: str
    labels: Mapping[str, str] = field(default_factory=lambda: {"node": "{node}"})
    begins: float = 0.0


@dataclass(frozen=True)
class May:
    """An alert that may come with an outage, as its documented symptom."""

    rule: str
    labels: Mapping[str, str] = field(default_factory=dict)


Act = Callable[["Happening"], Iterator[float | None]]


@dataclass(frozen=True)
class Shape:
    """One way in which an outage happens. `ids` are the rows of the requirements.

    `act` brings it about, yields how long it waits (None: until the outage ends), and then puts all in order. `locks`
    are what no other outage may touch at the same time; its own node is always one of them.
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
    """A shape at a moment, on a node."""

    shape: Shape
    id: str
    node: str
    begin: float

    @property
    def end(self) -> float:
        return self.begin + self.shape.lasts

    @property
    def urgent(self) -> bool:
        """Return whether it goes quickly: what lasts longer had to be noticed over hours."""
        return self.shape.lasts < 2 * 3600.0

    @cached_property
    def locks(self) -> frozenset[str]:
        return frozenset((*self.shape.locks, *((self.node,) if self.shape.on_node else ())))

    def labels(self, of: Tell | May) -> dict[str, str]:
        """Return the labels that are meant."""
        return {name: value.format(node=self.node, id=self.id) for name, value in of.labels.items()}


class Happening:
    """An occurrence under way: what its shape may reach for. Pods that it submits go when it ends."""

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
        """Return the node's last card: everyday work begins with the first."""
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
        """Return work that is named after the outage."""
        fields: dict[str, Any] = {"image": image("nlp", f"{self.id}{more}:1")} | given
        return Workload(f"{self.id}{more}", "nlp", "zhang", "vc-nlp", gpus, **fields)

    def waits(self, gpus: int, message: str, *, more: str = "", **spec: object) -> None:
        """Have a pod that no node takes."""
        self._objects.append(("pods", self.scene.waiting_pod(self.work(gpus, more), message, **spec)))

    def put(self, plural: str, item: dict[str, object], uid: str) -> None:
        """Put an object that goes when the outage ends."""
        self.scene.objects.put(plural, item)
        self._objects.append((plural, uid))

    def clean_up(self, mount: str, size: float) -> None:
        """Remove so many bytes from a disk by the product's own cleanup."""
        own = CleanupDeletion(self.node.name, mount, int(size), self.now - 60.0, self.now)
        self.scene.own_deletions = [*self.scene.own_deletions[-5:], own]

    def clear(self) -> None:
        """Remove what the outage has brought about."""
        for pod in self._pods:
            self.scene.withdraw(pod)
        for plural, uid in self._objects:
            self.scene.objects.remove(plural, uid)


@dataclass
class Episode:
    """An alert from when it fired until it was resolved: its causes in order, and by what it was explained."""

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
        """Return what its finding is known by."""
        return self.rule + "".join(f"|{name}={self.labels[name]}" for name in sorted(self.labels))
