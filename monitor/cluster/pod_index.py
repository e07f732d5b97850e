"""The pods of a cluster with their owners and what they use: changed one at a time, read as a whole. Pure.

Everything that is summed over pods is kept as a sum, so that a change costs as much as it changes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Set

import msgspec

from monitor.cluster.holders import MIRROR_HASH
from monitor.cluster.usage import MICRO_FACTOR, UsageTotals
from monitor.facts.cluster import Identity, PodView, UsageView
from monitor.facts.kube import PodFact

Identify = Callable[[PodFact], Identity]
FINISHED = ("Succeeded", "Failed")
NO_USAGE = UsageView()

_Key = tuple[str, str, str]


class PodIndex:
    """All pods. `by_uid` knows static pods by their hash too; `bound` has the unfinished ones of each node."""

    def __init__(self, identify: Identify, resource: str) -> None:
        self._identify = identify
        self._resource = resource
        self.by_uid: dict[str, PodFact] = {}
        self.by_name: dict[tuple[str, str], PodFact] = {}
        self.bound: defaultdict[str, dict[str, PodFact]] = defaultdict(dict)
        self.identities: dict[str, Identity] = {}
        self._pods: dict[str, PodFact] = {}
        self._usage: dict[tuple[str | None, str], UsageView] = {}  # by node and pod
        self._keys: list[_Key] = []  # of the unfinished pods, in order
        self._views: list[PodView] = []  # in the same order
        self._users: defaultdict[str, UsageTotals] = defaultdict(UsageTotals)
        self._user_views: dict[str, UsageView] = {}
        self._queues: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])  # millionths of cards

    def replace(self, pods: Iterable[PodFact]) -> set[str]:
        """Take these pods in place of all others. Return the nodes to which that makes a difference."""
        wanted = {pod.uid: pod for pod in pods}
        touched: set[str] = set()
        for uid in self._pods.keys() - wanted.keys():
            touched |= self.drop(uid)
        for uid, pod in wanted.items():
            if self._pods.get(uid) is not pod:
                touched |= self.put(pod)
        return touched

    def put(self, pod: PodFact) -> set[str]:
        """Take a new or changed pod. Return the nodes to which that makes a difference."""
        touched = self._unlink(pod.uid) if pod.uid in self._pods else set()
        self._pods[pod.uid] = self.by_uid[pod.uid] = pod
        self.by_name[pod.namespace, pod.name] = pod
        if mirror := pod.annotations.get(MIRROR_HASH):
            self.by_uid[mirror] = pod
        self.identities[pod.uid] = self._identify(pod)
        if _unfinished(pod):
            if pod.node is not None:
                self.bound[pod.node][pod.uid] = pod
            self._show(pod)
        else:
            self._hide(pod)
        return touched | ({pod.node} if pod.node else set())

    def drop(self, uid: str) -> set[str]:
        """Forget a pod. Return the nodes to which that makes a difference."""
        self._hide(self._pods[uid])
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
        """Take what a node says its pods use, by uid; None where it is not known any more."""
        for uid, value in usage.items():
            if self._usage.get((node, uid)) == value:
                continue
            if value is None:
                self._usage.pop((node, uid), None)
            else:
                self._usage[node, uid] = value
            pod = self._pods.get(uid)
            if pod is not None and _unfinished(pod):
                self._show(pod)

    def identify_again(self, owners: Set[str]) -> None:
        """Find out again whose the pods of these are: ReplicaSets and Jobs by uid, namespaces by name."""
        for uid, pod in self._pods.items():
            if pod.namespace in owners or (pod.owner is not None and pod.owner.uid in owners):
                self.identities[uid] = self._identify(pod)
                if _unfinished(pod):
                    self._show(pod)

    def views(self) -> tuple[PodView, ...]:
        """Return the unfinished pods, in the order of their names."""
        return tuple(self._views)

    def users(self) -> dict[str, UsageView]:
        """Return what the pods of each user that are on a node use together."""
        for user in self._users.keys() - self._user_views.keys():
            self._user_views[user] = self._users[user].view()
        return {user: self._user_views[user] for user in sorted(self._users)}

    def queues(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Return the cards that the pods of each namespace and queue have, and wait for."""
        return {
            queue: (have / MICRO_FACTOR, waiting / MICRO_FACTOR)
            for queue, (have, waiting) in self._queues.items()
            if have or waiting
        }

    def _show(self, pod: PodFact) -> None:
        identity, requested = self.identities[pod.uid], pod.requests.get(self._resource, 0.0)
        usage = self._usage.get((pod.node, pod.uid), NO_USAGE)
        view = PodView(
            uid=pod.uid,
            name=pod.name,
            namespace=pod.namespace,
            phase=pod.phase,
            identity=identity,
            node=pod.node,
            created_at=pod.created_at,
            requested_gpus=requested,
            usage=msgspec.structs.replace(usage, gpus=requested) if requested else usage,
        )
        key = _key(pod)
        at, known = self._find(key)
        if known:
            self._count(self._views[at], -1)
            self._views[at] = view
        else:
            self._keys.insert(at, key)
            self._views.insert(at, view)
        self._count(view)

    def _hide(self, pod: PodFact) -> None:
        at, known = self._find(_key(pod))
        if known:
            self._count(self._views.pop(at), -1)
            del self._keys[at]

    def _find(self, key: _Key) -> tuple[int, bool]:
        """Return where a pod's view is or belongs, and whether it is there."""
        if not self._keys or key > self._keys[-1]:  # lists of the API server are in this order
            return len(self._keys), False
        at = bisect_left(self._keys, key)
        return at, at < len(self._keys) and self._keys[at] == key

    def _count(self, view: PodView, times: int = 1) -> None:
        """Count a pod for its user and its queue, or count it no more (-1)."""
        user, queue = view.identity.user, view.identity.queue
        if user is not None:
            self._user_views.pop(user, None)
            self._users[user].add(view, times)
            if not self._users[user].pods:
                del self._users[user]
        if queue is not None and view.requested_gpus:
            waiting = view.node is None
            self._queues[view.namespace, queue][waiting] += times * round(view.requested_gpus * MICRO_FACTOR)


def _unfinished(pod: PodFact) -> bool:
    return pod.phase not in FINISHED


def _key(pod: PodFact) -> _Key:
    """Return what pods are ordered by."""
    return pod.namespace, pod.name, pod.uid
