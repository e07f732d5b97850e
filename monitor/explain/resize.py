"""A resize of a running pod that the kubelet has not applied, by the pod's conditions."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.explain.keys import Key
from monitor.explain.model import pod_values
from monitor.explain.quote import quote
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

_KEYS = {
    ("PodResizePending", "Infeasible"): Key.RESIZE_INFEASIBLE,
    ("PodResizePending", "Deferred"): Key.RESIZE_DEFERRED,
    ("PodResizeInProgress", "Error"): Key.RESIZE_FAILED,
}


def pending_resize(pod: PodFact) -> Iterable[Text]:
    """Evidence that a resize waits or fails, and why."""
    for condition in pod.conditions:
        key = _KEYS.get((condition.type, condition.reason or ""))
        if key is not None and condition.status and not pod.finished:
            yield Text(key, pod_values(pod) | {"message": quote(condition.message) or "?"})
