"""Pods that a policy never touches."""

from __future__ import annotations

from monitor.base.globs import matches_any_glob, matches_glob
from monitor.cleanup.plan.select import Protection
from monitor.cleanup.policy import Exempt
from monitor.facts.kube import PodFact

SYSTEM_NAMESPACE = "kube-system"
NODE_OWNER_KINDS = ("DaemonSet", "Node")  # DaemonSet pods are replaced at once; static pods belong to the node
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


def exemption(pod: PodFact, user: str | None, exempt: Exempt) -> Protection | None:
    """Why a pod of this user is exempt; None if it is not."""
    if pod.namespace == SYSTEM_NAMESPACE:
        return Protection("exempt", SYSTEM_NAMESPACE)
    if MIRROR_ANNOTATION in pod.annotations or (pod.owner is not None and pod.owner.kind in NODE_OWNER_KINDS):
        return Protection("exempt", pod.owner.kind if pod.owner is not None else "Node")
    if matches_any_glob(pod.namespace, exempt.namespaces):
        return Protection("exempt", pod.namespace)
    if user is not None and matches_any_glob(user, exempt.users):
        return Protection("exempt", user)
    label = next((label for label in exempt.labels if _has_label(pod, label)), None)
    return Protection("exempt", label) if label is not None else None


def _has_label(pod: PodFact, label: str) -> bool:
    key, equals, value = label.partition("=")
    return key in pod.labels and (not equals or matches_glob(pod.labels[key], value))
