"""Top-level owner of a pod: ReplicaSet to Deployment, Job to CronJob, and so on.

Where an owner cannot be looked up (missing permission, or already deleted), it is guessed from the name: Kubernetes
derives the names of ReplicaSets and of the Jobs of CronJobs by a fixed rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from monitor.facts.cluster_facts import KUEUE_OWNERS
from monitor.facts.kube import OwnerFact, OwnerRef, PodFact

# By uid, and what Kueue queues also by `namespace/kind/name`.
OwnerLookup = Callable[[str], OwnerFact | None]
_KUEUE_LABELS = frozenset(label for label, _ in KUEUE_OWNERS)
MAX_STEPS = 8  # nothing prevents a cycle of owner references
_TEMPLATE_HASH = "pod-template-hash"
_SCHEDULE_DIGITS = (8, 10)  # minutes since the epoch; seconds, until Kubernetes 1.21
_VOLCANO_JOBS = "batch.volcano.sh/"
_RAY_ORIGIN, _RAY_ORIGIN_KIND = "ray.io/originated-from-cr-name", "ray.io/originated-from-crd"
_RAY_GENERATED = re.compile(r"(.+)-raycluster-[bcdfghjklmnpqrstvwxz2456789]{5}")


def no_owners(_uid: str) -> OwnerFact | None:
    """OwnerLookup for when no owners can be read."""
    return None


def workload_of(pod: PodFact, lookup: OwnerLookup) -> OwnerRef:
    """Top-level owner of a pod: the pod itself, if it has none."""
    reference = pod.owner
    if reference is None:
        return OwnerRef(kind="Pod", name=pod.name, uid=pod.uid)
    for _ in range(MAX_STEPS):
        owner = lookup(reference.uid) if reference.uid else None
        if owner is None:
            return _by_name(pod, reference)
        if owner.owner is None:
            return reference
        reference = owner.owner
    return reference


def kueue_queue_of(pod: PodFact, lookup: OwnerLookup) -> str | None:
    """Queue of Kueue that the nearest owner with such a label names, or that of the owner that labels of the pod name.

    None if no owner is in a queue.
    """
    reference = pod.owner
    for _ in range(MAX_STEPS):
        owner = lookup(reference.uid) if reference is not None and reference.uid else None
        if owner is None:
            break
        if owner.queue is not None:
            return owner.queue
        reference = owner.owner
    if _KUEUE_LABELS.isdisjoint(pod.labels):
        return None
    names = (f"{pod.namespace}/{kind}/{pod.labels[label]}" for label, kind in KUEUE_OWNERS if label in pod.labels)
    return next((owner.queue for name in names if (owner := lookup(name)) is not None), None)


def _by_name(pod: PodFact, reference: OwnerRef) -> OwnerRef:
    guess = _GUESSES.get(reference.kind)
    return (guess(pod, reference) if guess else None) or reference


def _deployment(pod: PodFact, reference: OwnerRef) -> OwnerRef | None:
    suffix = f"-{pod.labels.get(_TEMPLATE_HASH)}"
    if not reference.name.endswith(suffix):
        return None
    return OwnerRef(kind="Deployment", name=reference.name.removesuffix(suffix))


def _cron_job(_pod: PodFact, reference: OwnerRef) -> OwnerRef | None:
    if (reference.api_version or "").startswith(_VOLCANO_JOBS):
        return OwnerRef(kind="VolcanoJob", name=reference.name, uid=reference.uid)
    name, _, digits = reference.name.rpartition("-")
    if not name or not digits.isdecimal() or len(digits) not in _SCHEDULE_DIGITS:
        return None
    return OwnerRef(kind="CronJob", name=name)


def _framework(pod: PodFact, reference: OwnerRef) -> OwnerRef | None:
    """Pods of FrameworkController belong to a ConfigMap that represents one attempt of the framework."""
    name = pod.labels.get("FC_FRAMEWORK_NAME") or pod.annotations.get("FC_FRAMEWORK_NAME")
    return OwnerRef(kind="Framework", name=name) if name and reference.name.startswith(name) else None


def _ray(pod: PodFact, reference: OwnerRef) -> OwnerRef | None:
    """RayJobs and RayServices create RayClusters with generated names."""
    if name := pod.labels.get(_RAY_ORIGIN):
        return OwnerRef(kind=pod.labels.get(_RAY_ORIGIN_KIND) or reference.kind, name=name)
    match = _RAY_GENERATED.fullmatch(reference.name)
    return OwnerRef(kind=reference.kind, name=match[1], uid=reference.uid) if match is not None else None


def _static_pod(pod: PodFact, reference: OwnerRef) -> OwnerRef | None:
    return OwnerRef(kind="StaticPod", name=pod.name.removesuffix(f"-{reference.name}"), uid=pod.uid)


_GUESSES: dict[str, Callable[[PodFact, OwnerRef], OwnerRef | None]] = {
    "ReplicaSet": _deployment,
    "Job": _cron_job,
    "ConfigMap": _framework,
    "Node": _static_pod,
    "RayCluster": _ray,
}
