"""What is asked about a job that does not exist yet, and what is answered."""

from __future__ import annotations

from enum import StrEnum

from monitor.facts.base import Fact
from monitor.facts.text import Text


class FitsVerdict(StrEnum):
    """The answer in one word."""

    NOW = "now"
    SPLIT = "split"
    AFTER = "after"
    NEVER = "never"
    UNKNOWN = "unknown"
    UNSEEN = "unseen"  # the cluster cannot be read


class FitsRequest(Fact, frozen=True, kw_only=True):
    """A job: `gpus` in total, as pods with `per_node` each (None: one pod with all of them).

    `resource` None is the cluster's GPU resource. CPU and memory are of one pod. `tolerations` are in kubectl's syntax
    of taints.
    """

    gpus: int
    per_node: int | None = None
    resource: str | None = None
    model: str | None = None
    queue: str | None = None
    namespace: str | None = None
    cpu_millicores: int | None = None
    memory_bytes: int | None = None
    tolerations: tuple[str, ...] = ()

    @property
    def gpus_per_pod(self) -> int:
        return self.per_node or self.gpus

    @property
    def pods(self) -> int:
        return self.gpus // self.gpus_per_pod


class Workers(Fact, frozen=True, kw_only=True):
    """Equal pods, and what each of them requests."""

    pods: int
    gpus: int
    cpu_millicores: int | None = None
    memory_bytes: int | None = None


class NodePlacement(Fact, frozen=True, kw_only=True):
    """What a node would take of the job."""

    node: str
    pods: int
    gpus: int


class Layout(Fact, frozen=True, kw_only=True):
    """A way to run the job: its pods, the largest first, and nodes that have room for them."""

    workers: tuple[Workers, ...]
    nodes: tuple[NodePlacement, ...] = ()


class Estimate(Fact, frozen=True, kw_only=True):
    """In how many seconds a job ends, with the range, by `runs` earlier runs that took longer than this one so far."""

    seconds: float
    earliest: float
    latest: float
    runs: int


class HeldBy(Fact, frozen=True, kw_only=True):
    """A job that has to finish first. `gpus` is the amount of the requested resource that it holds on all nodes.

    `lasting`: it does not finish by itself, like an inference service. `since` is when its first pod started.
    """

    job: str
    namespace: str
    user: str
    gpus: float
    nodes: tuple[str, ...]
    pods: int
    since: float | None = None
    terminating: bool = False
    lasting: bool = False
    estimate: Estimate | None = None


class FitsResult(Fact, frozen=True, kw_only=True):
    """The answer.

    `layout` is how the job would run: as requested, or for `after`, the closest layout that will fit. `splits` are
    other ways that fit now. `waits_for` are the jobs after which it fits, `estimate` when that is.
    """

    verdict: FitsVerdict
    headline: Text
    evidence: tuple[Text, ...] = ()
    advice: tuple[Text, ...] = ()
    layout: Layout | None = None
    splits: tuple[Layout, ...] = ()
    waits_for: tuple[HeldBy, ...] = ()
    estimate: Estimate | None = None
