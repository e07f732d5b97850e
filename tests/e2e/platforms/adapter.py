"""What the scenario asks of a platform: submit and delete jobs as its users do, and say what is expected."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from monitor.facts.cluster import Identity
from tests.e2e.scenes import Scene
from tests.lab.images import IMAGE
from tests.lab.layout import GPU_RESOURCE
from tests.lab.platforms.platform import Place, Platform

USER = "li.lei"
GPUS = 8
SLEEP = ("sleep", "1000000")
Manifest = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """A job of some equal pods."""

    name: str
    pods: int = 2
    gpus: int = 1
    image: str = IMAGE
    command: Sequence[str] = SLEEP
    user: str = USER

    @property
    def total(self) -> int:
        return self.pods * self.gpus

    def pod(self, restart: str = "Never", labels: Mapping[str, str] | None = None, **container: Any) -> Manifest:
        """Template of its pods, with the user in a label."""
        limits = {GPU_RESOURCE: str(self.gpus)}
        main = {"name": "main", "image": self.image, "command": list(self.command), "resources": {"limits": limits}}
        return {
            "metadata": {"labels": {"userName": self.user, **(labels or {})}},
            "spec": {
                "containers": [{**main, **container}],
                "hostNetwork": True,
                "restartPolicy": restart,
                "terminationGracePeriodSeconds": 1,
            },
        }


@dataclass(frozen=True)
class Waiting:
    """A job that has to wait while the first one runs, and its explanation."""

    job: Job
    cause: str
    en: Sequence[str]
    zh: Sequence[str]


class End(Enum):
    """What becomes of the pods of a job that has finished."""

    KEPT = "they stay until the product removes them"
    REMOVED = "the platform removes them"
    NEVER = "its jobs do not finish: their users delete them"


class Adapter(ABC):
    """A platform in a scene."""

    # What runs, in the order of their start; none if the platform has no public code.
    platforms: Sequence[Platform] = ()
    # What is not run of it, for the table.
    left_out = ""
    # Rules of the configuration that its users need.
    rules: Sequence[Mapping[str, Any]] = ()
    # What becomes of the pods of a job that has finished.
    end = End.KEPT

    def __init__(self, scene: Scene, places: Sequence[Place]) -> None:
        self.scene = scene
        self.places = places

    @property
    def queue(self) -> str:
        """Queue of its pods; the namespace where the platform has none."""
        return self.scene.name

    def prepare(self) -> None:
        """Create the queues that it needs, by default none."""
        return

    @abstractmethod
    def submit(self, job: Job) -> None:
        """Submit a job as users do."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Delete a job if it exists; its pods go with it."""

    def has_finished(self, name: str) -> bool:
        """Whether the platform says that a job has finished, if it removes its pods."""
        raise NotImplementedError(name)

    @abstractmethod
    def owners(self, job: Job) -> list[Identity]:
        """Owner of each of its pods."""

    def waiting(self) -> Waiting:
        """By default one that fits no node, as the scheduler of Kubernetes says."""
        job = Job("large", pods=1, gpus=GPUS, user="han.mei")
        return Waiting(
            job,
            "not-enough-gpus",
            en=(
                f"queue {self.queue}",
                f"it needs {GPUS} GPUs, but only {GPUS - 2} of {GPUS} are free on the 1 node it may use.",
                f"Largest holders there: {USER} (2).",
            ),
            zh=(
                f"队列 {self.queue}",
                f"需要 {GPUS} 张 GPU；它能使用的 1 个节点共 {GPUS}，空闲 {GPUS - 2}。",
                f"{USER} (2)",
            ),
        )

    def identity(self, job: Job, **fields: Any) -> Identity:
        return Identity(user=job.user, job=job.name, queue=self.queue, **fields)


class ObjectAdapter(Adapter):
    """A platform whose jobs are objects that users create with kubectl."""

    # API version, plural and kind of its jobs.
    resource: tuple[str, str, str]

    @abstractmethod
    def spec(self, job: Job) -> Manifest:
        """What a user writes as the specification of a job."""

    def labels(self) -> Mapping[str, str]:
        """Labels of its jobs."""
        return {}

    def manifest(self, job: Job) -> Manifest:
        version, _, kind = self.resource
        metadata = {"name": job.name, "labels": dict(self.labels())}
        return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": self.spec(job)}

    def submit(self, job: Job) -> None:
        version, plural, _ = self.resource
        self.scene.api.create(self.scene.path(version, plural), self.manifest(job))

    def remove(self, name: str) -> None:
        version, plural, _ = self.resource
        self.scene.api.delete(self.scene.path(version, plural, name))
