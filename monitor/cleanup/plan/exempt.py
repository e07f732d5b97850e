"""Pods that a policy never touches."""

from __future__ import annotations

from collections.abc import Container

from monitor.base.globs import matches_any_glob, matches_glob
from monitor.cleanup.plan.select import Protection
from monitor.cleanup.policy import Exempt
from monitor.facts.kube import PodFact

SYSTEM_NAMESPACE = "kube-system"
NODE_OWNER_KINDS = ("DaemonSet", "Node")  # of platform pods: one on each node, and static pods
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


def exemption(
    pod: PodFact, user: str | None, exempt: Exempt, tenant_namespaces: Container[str] = ()
) -> Protection | None:
    """Why a pod of this user is exempt; None if it is not. `tenant_namespaces` are those with an owner.

    A tenant can create a DaemonSet, and write owner references and annotations, so they count for the platform only.
    """
    if pod.namespace == SYSTEM_NAMESPACE:
        return Protection("exempt", SYSTEM_NAMESPACE)
    if _of_the_platform(pod, exempt, tenant_namespaces):
        return Protection("exempt", pod.owner.kind if pod.owner is not None else "Node")
    if matches_any_glob(pod.namespace, exempt.namespaces):
        return Protection("exempt", pod.namespace)
    if user is not None and matches_any_glob(user, exempt.users):
        return Protection("exempt", user)
    label = next((label for label in exempt.labels if _has_label(pod, label)), None)
    return Protection("exempt", label) if label is not None else None


def _of_the_platform(pod: PodFact, exempt: Exempt, tenant_namespaces: Container[str]) -> bool:
    """Whether a pod belongs to its node and to no tenant."""
    of_node = MIRROR_ANNOTATION in pod.annotations or (pod.owner is not None and pod.owner.kind in NODE_OWNER_KINDS)
    if not of_node or pod.namespace in tenant_namespaces:
        return False
    return matches_any_glob(pod.namespace, exempt.system_namespaces)


def _has_label(pod: PodFact, label: str) -> bool:
    key, equals, value = label.partition("=")
    return key in pod.labels and (not equals or matches_glob(pod.labels[key], value))
