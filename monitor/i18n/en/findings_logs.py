"""English: findings about containers whose log says why they fail (pod-start-failed)."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "pod-start-failed.gpu-fault": (
        "Container {container} of pod {pod} ({user}) on {node} fails: its GPU reports an error ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.storage": (
        "Container {container} of pod {pod} ({user}) on {node} fails: its storage is full, read-only or failing ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.network": (
        "Container {container} of pod {pod} ({user}) on {node} fails: a server that it needs rejects it or does "
        "not answer ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.limit": (
        "Container {container} of pod {pod} ({user}) on {node} fails: a limit of processes, files or the kernel is "
        "reached ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.distributed": (
        "Container {container} of pod {pod} ({user}) on {node} fails: it lost the other processes of its job ("
        "{restarts:restart|restarts})."
    ),
    "pod-start-failed.others": "{count:other pod|other pods} of the job failed because of it.",
}
