"""Decides whether the container or pod of a process has certainly ended. Missing information protects the process."""

from __future__ import annotations

from collections.abc import Sequence

from monitor.agent.actions.outcome import ActionRefusal
from monitor.agent.cgroup import ContainerOwner
from monitor.facts import ContainerFact

_ENDED = "exited"


def owner_refusal(pid: int, owner: ContainerOwner, containers: Sequence[ContainerFact]) -> ActionRefusal | None:
    """Why a process of a container or pod is not killed, or None; `containers` are those of all runtimes.

    A container that no runtime lists may belong to podman, or to a runtime whose socket is missing. Only of a pod the
    absence proves something, and only if the kubelet's runtime has answered: it then lists other pods that run.
    """
    own = [container for container in containers if _belongs(container, owner)]
    for container in own:
        if container.state != _ENDED:
            return ActionRefusal("in-use", f"{pid} belongs to container {container.name or container.id}")
    if own or (owner.pod_uid is not None and any(map(_runs_in_pod, containers))):
        return None
    whose = f"container {owner.container_id[:12]}" if owner.container_id else f"pod {owner.pod_uid}"
    return ActionRefusal("unknown", f"{pid} belongs to {whose}, and no runtime of this node knows whether it has ended")


def _belongs(container: ContainerFact, owner: ContainerOwner) -> bool:
    return container.id == owner.container_id or (owner.pod_uid is not None and container.pod_uid == owner.pod_uid)


def _runs_in_pod(container: ContainerFact) -> bool:
    return container.pod_uid is not None and container.state != _ENDED
