"""Container and pod of a process, from the cgroup names that runtimes and the kubelet choose.

/kubepods/burstable/pod<uid>/<id>                                                  cgroupfs driver
/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope     systemd
/system.slice/containerd.service/kubepods-pod<uid>.slice:cri-containerd:<id>       mixed drivers
/docker/<id>    /system.slice/docker-<id>.scope    /machine.slice/libpod-<id>.scope/container       no pod
"""

from __future__ import annotations

import os
from typing import NamedTuple

_HEX = "0123456789abcdef"
_ID_CHARS = 64
_MAX_FILE_BYTES = 32768
_DELETED = " (deleted)"  # appended by the kernel to a removed cgroup that still contains a dead process


class ContainerOwner(NamedTuple):
    """Container and pod that a process belongs to. Both are None for a process of the host.

    For a static pod `pod_uid` is the hash of its manifest, which the API server shows as the annotation
    `kubernetes.io/config.hash` and not as the uid.
    """

    container_id: str | None
    pod_uid: str | None


_HOST = ContainerOwner(None, None)


def read_owner(proc: str, pid: int) -> ContainerOwner | None:
    """Owner of a process; None if it cannot be read, for example because the process has ended.

    With cgroup v1 the kernel shows a zombie at "/": read the owner while the process is alive.
    """
    try:
        file = os.open(f"{proc}/{pid}/cgroup", os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = os.read(file, _MAX_FILE_BYTES)
        finally:
            os.close(file)
    except OSError:
        return None
    return parse_owner(content.decode("utf-8", "replace"))


def parse_owner(text: str) -> ContainerOwner:
    """Most specific owner in the content of /proc/<pid>/cgroup."""
    best, seen = _HOST, {"/"}  # the lines of cgroup v1 mostly repeat one path
    for line in text.split("\n"):
        path = line.split(":", 2)[-1].removesuffix(_DELETED)
        if path in seen:
            continue
        seen.add(path)
        owner = _owner_of_path(path)
        if owner.pod_uid and owner.container_id:
            return owner
        if not best.pod_uid and (owner.pod_uid or not best.container_id):
            best = owner
    return best


def _owner_of_path(path: str) -> ContainerOwner:
    """Owner by the path of a cgroup.

    Of nested pods (a cluster inside a container) the innermost counts, and below it the outermost container: the
    node's runtime and Kubernetes do not know the containers that a container starts.
    """
    names = path.replace(":", "/").split("/")
    for index in range(len(names) - 1, -1, -1):
        if "pod" in names[index] and (pod_uid := _pod_uid(names[index])):
            return ContainerOwner(_outermost_container(names[index + 1 :]), pod_uid)
    return ContainerOwner(_outermost_container(names), None)


def _outermost_container(names: list[str]) -> str | None:
    parent = ""
    for name in names:
        # A bare id directly below libpod_parent is a podman pod; its containers are `libpod-<id>`.
        podman_pod = parent == "libpod_parent" and len(name) == _ID_CHARS
        if not podman_pod and (container_id := _container_id(name)):
            return container_id
        parent = name
    return None


def _pod_uid(name: str) -> str | None:
    """Pod UID in the name of one cgroup."""
    if name.endswith(".slice"):
        # Any prefix: a kubelet with its own cgroup root creates `kubelet-kubepods-pod<uid>.slice`.
        prefix, _, uid = name[: -len(".slice")].rpartition("-pod")
        if not prefix.endswith(("kubepods", "kubepods-burstable", "kubepods-besteffort")):
            return None
        uid = uid.replace("_", "-")
    elif name.startswith("pod"):
        uid = name[len("pod") :]
    else:
        return None
    uid = uid.lower()
    return uid if _is_uid(uid) else None


def _is_uid(text: str) -> bool:
    """Whether this is a UUID or, for static pods, 32 hexadecimal digits."""
    if len(text) == 36:
        return [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12] and not text.strip(_HEX + "-")
    return len(text) == 32 and not text.strip(_HEX)


def _container_id(name: str) -> str | None:
    """Container id in the name of one cgroup: `<id>`, `docker-<id>.scope`, `crio-<id>`."""
    if len(name) < _ID_CHARS:
        return None
    prefix, _, container_id = name.removesuffix(".scope").rpartition("-")
    if len(container_id) != _ID_CHARS or container_id.strip(_HEX):
        return None
    # `crio-conmon-<id>.scope` has the process that monitors the container, which is not inside it.
    return None if prefix.endswith("conmon") else container_id
