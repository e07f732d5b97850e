"""The pods of a cluster with their owners and what they use: changed one at a time, read as a whole. Pure.

Everything that is summed over pods is kept by user and by queue, so that a change costs as much as it changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from monitor.cluster.holders import MIRROR_HASH
from monitor.cluster.usage import total_usage
from monitor.facts.cluster import Identity, PodView, UsageView
from monitor.facts.kube import PodFact

Identify = Callable[[PodFact], Identity]
FINISHED = ("Succeeded", "Failed")
NO_USE = UsageView()

_Key = tuple[str, str, str]


class PodBook:
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
        self._views: dict[str, PodView] = {}
        self._ordered: list[tuple[_Key, PodView]] | None = None
        self._by_user: defaultdict[str, dict[str, PodView]] = defaultdict(dict)
        self._by_queue: defaultdict[tuple[str, str], dict[str, PodView]] = defaultdict(dict)
        self._user_totals: dict[str, UsageView] = {}

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
        touched = self.drop(pod.uid) if pod.uid in self._pods else set()
        self._pods[pod.uid] = self.by_uid[pod.uid] = pod
        self.by_name[pod.namespace, pod.name] = pod
        if mirror := pod.annotations.get(MIRROR_HASH):
            self.by_uid[mirror] = pod
        self.identities[pod.uid] = self._identify(pod)
        if pod.phase not in FINISHED:
            if pod.node is not None:
                self.bound[pod.node][pod.uid] = pod
            self._show(pod)
        return touched | ({pod.node} if pod.node else set())

    def drop(self, uid: str) -> set[str]:
        """Forget a pod. Return the nodes to which that makes a difference."""
        pod = self._pods.pop(uid)
        self.by_uid.pop(uid, None)
        self.by_uid.pop(pod.annotations.get(MIRROR_HASH, ""), None)
        if self.by_name.get((pod.namespace, pod.name)) is pod:
            del self.by_name[pod.namespace, pod.name]
        del self.identities[uid]
        self._hide(uid)
        if pod.node is not None:
            self.bound[pod.node].pop(uid, None)
        return {pod.node} if pod.node else set()

    def use(self, node: str, usage: Mapping[str, UsageView | None]) -> None:
        """Take what a node says its pods use, by uid; None where it is not known any more."""
        for uid, value in usage.items():
            if value is None:
                self._usage.pop((node, uid), None)
            else:
                self._usage[node, uid] = value
            if uid in self._views:
                self._show(self._pods[uid])

    def identify_again(self) -> None:
        """What pods are identified by has changed: their owners, or the owners of namespaces."""
        for uid, pod in self._pods.items():
            self.identities[uid] = self._identify(pod)
            if uid in self._views:
                self._show(pod)

    def views(self) -> tuple[PodView, ...]:
        """Return the unfinished pods, in the order of their names."""
        if self._ordered is None:
            self._ordered = sorted(((v.namespace, v.name, v.uid), v) for v in self._views.values())
        return tuple(view for _, view in self._ordered)

    def users(self) -> dict[str, UsageView]:
        """Return what the pods of each user that are on a node use together."""
        for user in self._by_user.keys() - self._user_totals.keys():
            self._user_totals[user] = total_usage(pod for pod in self._by_user[user].values() if pod.node is not None)
        return {user: self._user_totals[user] for user in sorted(self._by_user) if self._by_user[user]}

    def queues(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Return the cards that the pods of each namespace and queue have, and wait for."""
        totals = {}
        for queue, pods in self._by_queue.items():
            have = sum(pod.requested_gpus for pod in pods.values() if pod.node is not None)
            want = sum(pod.requested_gpus for pod in pods.values() if pod.node is None)
            if have or want:
                totals[queue] = (have, want)
        return totals

    def _show(self, pod: PodFact) -> None:
        self._hide(pod.uid)
        identity, requested = self.identities[pod.uid], pod.requests.get(self._resource, 0.0)
        view = PodView(
            uid=pod.uid,
            name=pod.name,
            namespace=pod.namespace,
            phase=pod.phase,
            identity=identity,
            node=pod.node,
            created_at=pod.created_at,
            requested_gpus=requested,
            usage=msgspec.structs.replace(self._usage.get((pod.node, pod.uid), NO_USE), gpus=requested),
        )
        self._views[pod.uid] = view
        if identity.user is not None:
            self._by_user[identity.user][pod.uid] = view
            self._user_totals.pop(identity.user, None)
        if identity.queue is not None:
            self._by_queue[pod.namespace, identity.queue][pod.uid] = view

    def _hide(self, uid: str) -> None:
        view = self._views.pop(uid, None)
        self._ordered = None
        if view is None:
            return
        if view.identity.user is not None:
            self._by_user[view.identity.user].pop(uid, None)
            self._user_totals.pop(view.identity.user, None)
        if view.identity.queue is not None:
            self._by_queue[view.namespace, view.identity.queue].pop(uid, None)
