"""Index of all pods with their identities and usage: updated one pod at a time, read as a whole.

Totals over pods are maintained incrementally, so that the cost of a change does not depend on the number of pods.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Set

import msgspec

from monitor.cluster.capacity import QueueTotals, queue_views
from monitor.cluster.holders import MIRROR_HASH
from monitor.cluster.usage import MICRO_FACTOR, UsageTotals
from monitor.facts.cluster import Identity, PodView, QueueView, UsageView
from monitor.facts.facts_index import KnownPod
from monitor.facts.gpu_nodes import GpuNodes
from monitor.facts.gpu_requests import gpu_amounts, share_amounts, whole_gpus
from monitor.facts.kube import Amounts, PodFact
from monitor.facts.queues import QueueFact

Identify = Callable[[PodFact], Identity]
NO_USAGE = UsageView()
MAX_AMOUNTS = 4096

_Key = tuple[str, str, str]


class PodIndex:
    """All pods. `by_uid` also contains static pods by their hash; `bound` has the unfinished pods of each node."""

    def __init__(self, identify: Identify, resource: str) -> None:
        self._identify = identify
        self._resource = resource
        self.gpu_nodes = GpuNodes(resource)
        self.by_uid: dict[str, PodFact] = {}
        self.by_name: dict[tuple[str, str], PodFact] = {}
        self.bound: defaultdict[str, dict[str, PodFact]] = defaultdict(dict)
        self.identities: dict[str, Identity] = {}
        self._pods: dict[str, PodFact] = {}
        self._usage: dict[tuple[str | None, str], UsageView] = {}  # by node and pod
        self._amounts: dict[tuple[int, str], tuple[Amounts, tuple[float, Amounts]]] = {}  # see _gpus_of
        self._keys: list[_Key] = []  # of the unfinished pods, sorted
        self._views: dict[str, PodView] = {}  # of the same pods, by uid
        self._waiting: dict[str, PodView] = {}  # of those that are not scheduled yet
        self._users: defaultdict[str, UsageTotals] = defaultdict(UsageTotals)
        self._user_views: dict[str, UsageView] = {}
        # Millionths by resource: allocated, waiting.
        self._queues: defaultdict[tuple[str, str], tuple[Counter[str], Counter[str]]] = defaultdict(
            lambda: (Counter(), Counter())
        )

    def replace(self, pods: Iterable[PodFact]) -> set[str]:
        """Replace all pods, and return the affected nodes."""
        new = {pod.uid: pod for pod in pods}
        affected: set[str] = set()
        for uid in self._pods.keys() - new.keys():
            affected |= self.drop(uid)
        for uid, pod in new.items():
            if self._pods.get(uid) is not pod:
                affected |= self.put(pod)
        return affected

    def put(self, pod: PodFact) -> set[str]:
        """Add or update a pod, and return the affected nodes."""
        affected = self._unlink(pod.uid) if pod.uid in self._pods else set()
        self._pods[pod.uid] = self.by_uid[pod.uid] = pod
        self.by_name[pod.namespace, pod.name] = pod
        if mirror := pod.annotations.get(MIRROR_HASH):
            self.by_uid[mirror] = pod
        self.identities[pod.uid] = self._identify(pod)
        if _unfinished(pod):
            if pod.node is not None:
                self.bound[pod.node][pod.uid] = pod
            self._put_view(pod)
        else:
            self._drop_view(pod)
        if pod.node:
            affected.add(pod.node)
        return affected

    def drop(self, uid: str) -> set[str]:
        """Remove a pod, and return the affected nodes."""
        self._drop_view(self._pods[uid])
        return self._unlink(uid)

    def _unlink(self, uid: str) -> set[str]:
        pod = self._pods.pop(uid)
        self.by_uid.pop(uid, None)
        self.by_uid.pop(pod.annotations.get(MIRROR_HASH, ""), None)
        if self.by_name.get((pod.namespace, pod.name)) is pod:
            del self.by_name[pod.namespace, pod.name]
        del self.identities[uid]
        if pod.node is not None:
            self.bound[pod.node].pop(uid, None)
        return {pod.node} if pod.node else set()

    def use(self, node: str, usage: Mapping[str, UsageView | None]) -> None:
        """Update the usage of pods as reported by a node, by uid; None where it is no longer known."""
        for uid, value in usage.items():
            known = self._usage.get((node, uid))
            if known is value or known == value:
                continue
            if value is None:
                self._usage.pop((node, uid), None)
            else:
                self._usage[node, uid] = value
            pod = self._pods.get(uid)
            if pod is not None and _unfinished(pod):
                self._put_view(pod)

    def count_again(self) -> set[str]:
        """Count requests again after a change of `gpu_nodes`, and return the affected pods."""
        changed, pending = self.gpu_nodes.take_changes()
        affected = {uid for node in changed for uid in self.bound.get(node, ())}
        if pending:
            affected |= {uid for uid, pod in self._pods.items() if pod.node is None}
        affected = {uid for uid in affected if _unfinished(self._pods[uid])}
        for uid in affected:
            self._put_view(self._pods[uid])
        return affected

    def identify_again(self, owners: Set[str]) -> set[str]:
        """Identify pods again after a change of their owners, and return those pods.

        Owners are ReplicaSets and Jobs by uid, and namespaces by name.
        """
        changed = set()
        for uid, pod in self._pods.items():
            if pod.namespace in owners or (pod.owner is not None and pod.owner.uid in owners):
                self.identities[uid] = self._identify(pod)
                changed.add(uid)
                if _unfinished(pod):
                    self._put_view(pod)
        return changed

    def facts(self) -> tuple[PodFact, ...]:
        """All pods."""
        return tuple(self._pods.values())

    def state(self, uid: str) -> KnownPod | None:
        """A pod with its identity; None if it is gone."""
        pod = self._pods.get(uid)
        return KnownPod(pod, self.identities[uid]) if pod is not None else None

    def views(self) -> tuple[PodView, ...]:
        """Unfinished pods, sorted by namespace and name."""
        return tuple([self._views[uid] for _, _, uid in self._keys])

    def waiting_views(self) -> tuple[PodView, ...]:
        """Pods that are not scheduled yet, in the same order."""
        return tuple(sorted(self._waiting.values(), key=_key))

    def users(self) -> dict[str, UsageView]:
        """Total usage of each user's scheduled pods."""
        for user in self._users.keys() - self._user_views.keys():
            self._user_views[user] = self._users[user].view()
        return {user: self._user_views[user] for user in sorted(self._users)}

    def queues(self) -> dict[tuple[str, str], QueueTotals]:
        """GPUs and shares allocated to, and waited for by, the pods of each namespace and queue."""
        sums = ((queue, _amounts(allocated), _amounts(waiting)) for queue, (allocated, waiting) in self._queues.items())
        return {queue: (allocated, waiting) for queue, allocated, waiting in sums if allocated or waiting}

    def queue_views(self, queues: Iterable[QueueFact]) -> tuple[QueueView, ...]:
        """Queues that Kubernetes knows or that pods name."""
        return queue_views(self.queues(), queues, self._resource, self.gpu_nodes.unit)

    def _put_view(self, pod: PodFact) -> None:
        requested, shares = self._gpus_of(pod)
        usage = self._usage.get((pod.node, pod.uid), NO_USAGE)
        view = PodView(
            uid=pod.uid,
            name=pod.name,
            namespace=pod.namespace,
            phase=pod.phase,
            identity=self.identities[pod.uid],
            node=pod.node,
            created_at=pod.created_at,
            requested_gpus=requested,
            gpu_shares=shares,
            usage=msgspec.structs.replace(usage, gpus=requested, gpu_shares=shares) if requested or shares else usage,
        )
        before = self._views.get(pod.uid)
        self._views[pod.uid] = view
        if view.waiting:
            self._waiting[pod.uid] = view
        else:
            self._waiting.pop(pod.uid, None)
        if before is None:
            self._add_key(_key(pod))
            self._count(view)
        elif not self._count_usage(before, view):
            self._count(before, -1)
            self._count(view)

    def _gpus_of(self, pod: PodFact) -> tuple[float, Amounts]:
        """Whole GPUs that a pod requests, and shares. Pods with equal requests have the same ones, mostly."""
        counted_as = self.gpu_nodes.counted_as(pod)
        key = id(pod.requests), counted_as
        known = self._amounts.get(key)
        if known is None or known[0] is not pod.requests:  # another object may have the id of one that is gone
            if len(self._amounts) >= MAX_AMOUNTS:
                self._amounts.clear()
            amounts = gpu_amounts(pod.requests, self._resource, counted_as)
            gpus = whole_gpus(amounts, self._resource), share_amounts(amounts, self._resource)
            known = self._amounts[key] = pod.requests, gpus
        return known[1]

    def _drop_view(self, pod: PodFact) -> None:
        view = self._views.pop(pod.uid, None)
        self._waiting.pop(pod.uid, None)
        if view is not None:
            self._count(view, -1)
            del self._keys[bisect_left(self._keys, _key(view))]

    def _add_key(self, key: _Key) -> None:
        if not self._keys or key > self._keys[-1]:  # the API server lists pods in this order
            self._keys.append(key)
        else:
            insort(self._keys, key)

    def _count_usage(self, before: PodView, view: PodView) -> bool:
        """Count a pod if only its usage differs, and return whether it does."""
        same = before.identity == view.identity and before.node == view.node and view.node is not None
        if not same or (before.requested_gpus, before.gpu_shares) != (view.requested_gpus, view.gpu_shares):
            return False
        if (user := view.identity.user) is not None:
            self._user_views.pop(user, None)
            self._users[user].replace(before.usage, view.usage)
        return True

    def _count(self, view: PodView, times: int = 1) -> None:
        """Add a pod to the totals of its user and queue, or remove it (-1)."""
        user, queue = view.identity.user, view.identity.queue
        if user is not None:
            self._user_views.pop(user, None)
            self._users[user].add(view, times)
            if not self._users[user].pods:
                del self._users[user]
        if queue is not None and (view.requested_gpus or view.gpu_shares):
            totals = self._queues[view.namespace, queue][view.node is None]
            for name, amount in ({self._resource: view.requested_gpus} | view.gpu_shares).items():
                totals[name] += times * round(amount * MICRO_FACTOR)


def _amounts(millionths: Counter[str]) -> Amounts:
    return {name: amount / MICRO_FACTOR for name, amount in millionths.items() if amount}


def _unfinished(pod: PodFact) -> bool:
    return not pod.finished


def _key(pod: PodFact | PodView) -> _Key:
    """Sort key of a pod."""
    return pod.namespace, pod.name, pod.uid
