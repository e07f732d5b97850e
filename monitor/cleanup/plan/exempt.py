"""Which pods a policy never touches, whatever else it says. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase

from monitor.cleanup.plan.select import Cover
from monitor.cleanup.policy import Exempt
from monitor.facts.kube import PodFact

SYSTEM = "kube-system"
OF_NODES = ("DaemonSet", "Node")  # each node has one, and gets the next at once; a static pod is the node's own
MIRROR = "kubernetes.io/config.mirror"


def exempted(pod: PodFact, user: str | None, exempt: Exempt) -> Cover | None:
    """Given a pod and its user, return why it is exempt; None if it is not."""
    if pod.namespace == SYSTEM:
        return Cover("exempt", SYSTEM)
    if MIRROR in pod.annotations or (pod.owner is not None and pod.owner.kind in OF_NODES):
        return Cover("exempt", pod.owner.kind if pod.owner is not None else "Node")
    if _matches(pod.namespace, exempt.namespaces):
        return Cover("exempt", pod.namespace)
    if user is not None and _matches(user, exempt.users):
        return Cover("exempt", user)
    label = next((label for label in exempt.labels if _has(pod, label)), None)
    return Cover("exempt", label) if label is not None else None


def _matches(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def _has(pod: PodFact, label: str) -> bool:
    key, equals, value = label.partition("=")
    return key in pod.labels and (not equals or fnmatchcase(pod.labels[key], value))
