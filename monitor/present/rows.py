"""Rows of the pages: GPUs, pods, users, queues and nodes, and an index of the cluster view."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from monitor.facts.cluster import ClusterView, GpuState, GpuView, NodeView, PodView, QueueView, UsageView
from monitor.facts.kube import Amounts
from monitor.facts.text import Evidence
from monitor.i18n import CATALOGS, Value, say
from monitor.present.shares import requested

MAX_ROWS = 200
RELEASABLE_STATES = frozenset({GpuState.ZOMBIE, GpuState.ORPHAN, GpuState.WEDGED, GpuState.PHANTOM, GpuState.GHOST})


class ClusterIndex:
    """The cluster view with lookups by node and by pod."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view

    @cached_property
    def nodes(self) -> dict[str, NodeView]:
        return {node.name: node for node in self.view.nodes}

    @property
    def gpus_by_node(self) -> Mapping[str, tuple[GpuView, ...]]:
        return self.view.gpus_by_node

    @cached_property
    def gpus_by_pod(self) -> dict[tuple[str | None, str | None], list[GpuView]]:
        """GPUs by namespace and name of the pods that hold them."""
        gpus = defaultdict(list)
        for gpu in self.view.gpus:
            for holder in gpu.holders:
                gpus[holder.namespace, holder.pod].append(gpu)
        return gpus

    @cached_property
    def pods_by_namespace(self) -> dict[str, list[PodView]]:
        pods = defaultdict(list)
        for pod in self.view.pods:
            pods[pod.namespace].append(pod)
        return pods

    def pod(self, namespace: str, name: str) -> PodView | None:
        return next((pod for pod in self.view.pods if pod.name == name and pod.namespace == namespace), None)


@dataclass(frozen=True)
class GpuRow:
    """A GPU, and the evidence for its state."""

    gpu: GpuView
    evidence: tuple[str, ...]

    @property
    def releasable(self) -> bool:
        return self.gpu.state in RELEASABLE_STATES

    @property
    def owner(self) -> str | None:
        return next((holder.user for holder in self.gpu.holders), None)


@dataclass(frozen=True)
class PodRow:
    """A pod, and the GPUs that it holds."""

    pod: PodView
    gpus: Sequence[GpuView] = ()

    @property
    def waiting(self) -> bool:
        return self.pod.waiting


@dataclass(frozen=True)
class UserRow:
    """A user: usage, pods, GPUs they wait for, GPUs they hold without using them, and those of ended pods.

    `waiting` are whole GPUs, and shares by resource.
    `utilization_ratio` is the mean of the GPUs that live pods hold.
    """

    name: str
    usage: UsageView
    pods: int
    waiting: tuple[float, Amounts]
    idle_gpus: int
    leftover_gpus: int
    utilization_ratio: float | None = None


def page_text(lang: str, key: str, **values: Value) -> str:
    """A text of the pages. Without values it is not formatted: a page may hold thousands of them."""
    key = f"page.{key}"
    return say(lang, key, values) if values else CATALOGS[lang][key]


def waiting_pods(view: ClusterView) -> list[PodView]:
    """Pods that are not scheduled yet."""
    return [pod for pod in view.pods if pod.node is None and pod.waiting]


def gpu_rows(gpus: Iterable[GpuView], lang: str) -> list[GpuRow]:
    """GPUs with their evidence in one language."""
    return [GpuRow(gpu, evidence_texts(gpu, lang)) for gpu in gpus]


def evidence_texts(gpu: GpuView, lang: str) -> tuple[str, ...]:
    """The evidence for the state of a GPU in one language; two sources may give the same."""
    return tuple(dict.fromkeys(_evidence_text(evidence, lang) for evidence in gpu.evidence))


def _evidence_text(evidence: Evidence, lang: str) -> str:
    """A sentence; key and values if the catalog has none."""
    values = {name: value for name, value in evidence.values.items() if name not in ("since", "at")}
    try:
        return page_text(lang, f"evidence.{evidence.key}", **values)
    except KeyError:
        return " ".join((evidence.key, *(f"{name}={value}" for name, value in values.items())))


def pod_rows(index: ClusterIndex, pods: Iterable[PodView]) -> list[PodRow]:
    """Pods as rows, in order."""
    gpus = index.gpus_by_pod
    return [PodRow(pod, gpus.get((pod.namespace, pod.name), ())) for pod in pods_in_order(pods)]


def pods_in_order(pods: Iterable[PodView]) -> list[PodView]:
    """Waiting pods first, then by number of GPUs."""
    return sorted(pods, key=lambda pod: (not pod.waiting, -pod.requested_gpus, pod.namespace, pod.name))


def unseen_gpus(index: ClusterIndex, pods: Iterable[PodView]) -> Counter[str]:
    """Number of GPUs by node that Kubernetes allocated to pods and that no agent reports as held by them."""
    unseen: Counter[str] = Counter()
    for pod in pods:
        if pod.node is not None and pod.requested_gpus:
            seen = {(gpu.node, gpu.index) for gpu in index.gpus_by_pod.get((pod.namespace, pod.name), ())}
            unseen[pod.node] += max(0, round(pod.requested_gpus) - len(seen))
    return +unseen


def user_rows(view: ClusterView) -> list[UserRow]:
    """All users, those with the most GPUs first."""
    pods: Counter[str] = Counter()
    for pod in view.pods:
        if pod.identity.user is not None:
            pods[pod.identity.user] += 1
    waiting = waiting_by_user(view)
    idle = Counter(holder.user for gpu in view.gpus if gpu.state is GpuState.IDLE_HELD for holder in gpu.holders)
    leftover, held = leftover_gpus(view.gpus), _live_gpus_by_user(view.gpus)
    return [
        UserRow(
            user,
            usage,
            pods[user],
            waiting.get(user, (0.0, {})),
            idle[user],
            leftover[user],
            mean_utilization(held.get(user, ())),
        )
        for user, usage in users_by_gpus(view)
    ]


def waiting_by_user(view: ClusterView) -> dict[str, tuple[float, Amounts]]:
    """Whole GPUs, and shares by resource, that users wait for."""
    pods: defaultdict[str, list[PodView]] = defaultdict(list)
    for pod in waiting_pods(view):
        if pod.identity.user is not None:
            pods[pod.identity.user].append(pod)
    return {user: requested(each) for user, each in pods.items()}


def user_utilization(gpus: Iterable[GpuView], user: str) -> float | None:
    """Mean utilization of the GPUs that live pods of a user hold."""
    return mean_utilization(_live_gpus_by_user(gpus).get(user, ()))


def _live_gpus_by_user(gpus: Iterable[GpuView]) -> dict[str, list[GpuView]]:
    held: defaultdict[str, list[GpuView]] = defaultdict(list)
    for gpu in gpus:
        for user in {holder.user for holder in gpu.holders if holder.live and holder.user is not None}:
            held[user].append(gpu)
    return held


def leftover_gpus(gpus: Iterable[GpuView]) -> Counter[str]:
    """Number of GPUs by user that only ended pods of theirs still hold: usage counts those of live pods."""
    leftover: Counter[str] = Counter()
    for gpu in gpus:
        live = {holder.user for holder in gpu.holders if holder.live is not False}
        leftover.update({holder.user for holder in gpu.holders if holder.user is not None} - live)
    return leftover


def users_by_gpus(view: ClusterView) -> list[tuple[str, UsageView]]:
    """Users and their usage, those with the most GPUs first, then those with shares of some."""
    return sorted(view.users.items(), key=lambda entry: (-entry[1].gpus, not entry[1].gpu_shares, entry[0]))


def queues_by_demand(view: ClusterView) -> list[QueueView]:
    """Queues, those with the most waiting GPUs first, then those in which shares are waited for."""
    return sorted(view.queues, key=lambda queue: (-queue.waiting, not queue.waiting_shares, -queue.used, queue.name))


def node_problems(node: NodeView, lang: str) -> list[str]:
    """What is unusual about a node, in one language."""
    problems = []
    if node.in_kubernetes and not node.ready:
        problems.append(page_text(lang, "node.not-ready"))
    elif node.in_kubernetes and not node.schedulable:
        problems.append(page_text(lang, "node.cordoned"))
    if node.silent_since is not None:
        problems.append(page_text(lang, "node.silent"))
    elif not node.has_agent:
        problems.append(page_text(lang, "node.no-agent"))
    return problems


def mean_utilization(gpus: Iterable[GpuView]) -> float | None:
    """Mean utilization of the GPUs where it is known; None if it is known for none."""
    ratios = [gpu.utilization_ratio for gpu in gpus if gpu.utilization_ratio is not None]
    return sum(ratios) / len(ratios) if ratios else None
