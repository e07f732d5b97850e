"""Incidents that must be reported: how each starts and ends. Only the GPU driver is fake."""

from __future__ import annotations

import secrets
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes.client.exceptions import ApiException

from tests.chaos.ledger import Trouble
from tests.chaos.scene import Scene
from tests.lab.layout import NODE
from tests.support import need
from tests.support.filesystems import fill
from tests.support.receivers.http_server import says

CGROUPS = Path("/sys/fs/cgroup/memory")


@dataclass
class Open:
    """An active incident and the function that ends it."""

    kind: str
    trouble: Trouble
    end: Callable[[], None]


def pull(scene: Scene, number: int) -> tuple[Trouble, Callable[[], None]]:
    """A pod whose image is not in its registry."""
    name, began = f"pulls-{number}", time.time()
    pod = scene.lab.run_pod(name, image=f"{scene.lab.registry}/nobody/has:{number}", phase=None)
    return Trouble("pull", "ImagePull", {"pod": name}, began), lambda: _delete(scene, pod)


def service(scene: Scene, number: int) -> tuple[Trouble, Callable[[], None]]:
    """A service that responds with an error."""
    place = number % len(scene.services)
    server, began = scene.services[place], time.time()
    server.behave = says(503, b"out of order")

    def end() -> None:
        server.behave = None

    return Trouble("service", "ServiceDown", {"service": f"portal-{place}"}, began), end


def disk(scene: Scene, number: int) -> tuple[Trouble, Callable[[], None]]:
    """Fill a disk."""
    point, began = scene.disks[number % len(scene.disks)], time.time()
    fill(point)
    return Trouble("disk", "DiskFull", {"node": NODE, "mount": str(point)}, began), (point / "full").unlink


def zombie(scene: Scene, number: int) -> tuple[Trouble, Callable[[], None]]:
    """A finished pod whose process stays on a GPU."""
    need(CGROUPS.is_dir(), "cgroups of version 1")
    name, card = f"zombie-{number}", number % len(scene.lab.gpu_ids)
    pod = scene.lab.run_pod(name, gpus=1, command=("true",), phase="Succeeded")
    # Outside the kubelet's cgroups, because the kubelet kills leftovers of a pod.
    group = CGROUPS / f"chaos-{secrets.token_hex(3)}" / "kubepods" / f"pod{pod.metadata.uid}"
    group.mkdir(parents=True)
    process = subprocess.Popen(["sleep", "3600"])
    (group / "cgroup.procs").write_text(str(process.pid))
    began = time.time()
    scene.nvml.process(card, process.pid)

    def end() -> None:
        process.kill()
        process.wait()
        scene.nvml.end_process(card, process.pid)
        for each in (group, group.parent, group.parent.parent):
            each.rmdir()
        _delete(scene, pod)

    return Trouble("zombie", "GpuZombie", {"node": NODE, "pod": name}, began), end


KINDS: dict[str, Callable[[Scene, int], tuple[Trouble, Callable[[], None]]]] = {
    "pull": pull,
    "service": service,
    "disk": disk,
    "zombie": zombie,
}
BY_THE_API = frozenset({"pull", "zombie"})  # these start and end through the API server


def begin(scene: Scene, kind: str, number: int) -> Open:
    """Start an incident; `number` counts earlier ones of its kind."""
    trouble, end = KINDS[kind](scene, number)
    scene.ledger.troubles.append(trouble)
    scene.present.append(trouble)
    return Open(kind, trouble, end)


def finish(scene: Scene, opened: Open) -> None:
    """End an incident."""
    opened.end()
    opened.trouble.ended = time.time()
    scene.present.remove(opened.trouble)


def _delete(scene: Scene, pod: Any) -> None:
    with suppress(ApiException):  # already gone
        scene.lab.cluster.core.delete_namespaced_pod(
            pod.metadata.name, pod.metadata.namespace, grace_period_seconds=0, _request_timeout=60
        )
