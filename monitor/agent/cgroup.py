"""Process -> container -> pod, by the names that runtimes and the kubelet give to cgroups.

/kubepods/burstable/pod<uid>/<id>                                                  cgroupfs driver
/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope     systemd
/system.slice/containerd.service/kubepods-pod<uid>.slice:cri-containerd:<id>       the two disagreeing
/docker/<id>    /system.slice/docker-<id>.scope    /machine.slice/libpod-<id>.scope/container       no pod
"""

from __future__ import annotations

import os
from typing import NamedTuple

_HEX = "0123456789abcdef"
_ID_LENGTH = 64
_FILE_SIZE = 32768
_DELETED = " (deleted)"  # the kernel's words behind a cgroup that was removed while a dead process is still in it


class Owner(NamedTuple):
    """Whose process it is. Both are None for a process of the host.

    `pod_uid` is as Kubernetes writes it. For a static pod it is the hash of its manifest, which the API server shows
    as the annotation `kubernetes.io/config.hash` and not as the uid.
    """

    container_id: str | None
    pod_uid: str | None


_HOST = Owner(None, None)


def read_owner(proc: str, pid: int) -> Owner | None:
    """Given the root of /proc and a pid, return the owner, or None when it cannot be read, as when it is gone.

    With cgroup v1 the kernel shows a zombie at "/": an owner that is to outlive the process has to be remembered.
    """
    try:
        file = os.open(f"{proc}/{pid}/cgroup", os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = os.read(file, _FILE_SIZE)
        finally:
            os.close(file)
    except OSError:
        return None
    return parse_owner(content.decode("utf-8", "replace"))


def parse_owner(text: str) -> Owner:
    """Given the content of /proc/<pid>/cgroup, return the owner that its lines name best."""
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


def _owner_of_path(path: str) -> Owner:
    """Given a cgroup's path, return its owner.

    Of nested pods (a cluster inside a container) the innermost counts. Of nested containers the outermost below that
    counts: what a container starts inside itself is unknown to the node's runtime and to Kubernetes.
    """
    names = path.replace(":", "/").split("/")
    for place in range(len(names) - 1, -1, -1):
        if "pod" in names[place] and (pod_uid := _pod_uid(names[place])):
            return Owner(_outermost_container(names[place + 1 :]), pod_uid)
    return Owner(_outermost_container(names), None)


def _outermost_container(names: list[str]) -> str | None:
    parent = ""
    for name in names:
        # A bare id directly below libpod_parent is one of podman's own pods; its containers are `libpod-<id>`.
        podman_pod = parent == "libpod_parent" and len(name) == _ID_LENGTH
        if not podman_pod and (container_id := _container_id(name)):
            return container_id
        parent = name
    return None


def _pod_uid(name: str) -> str | None:
    """Given the name of one cgroup, return the uid if it is a pod's."""
    if name.endswith(".slice"):
        # Any prefix: a kubelet with a cgroup root of its own makes `kubelet-kubepods-pod<uid>.slice`.
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
    """Tell whether this is a UUID or, as static pods have it, 32 hexadecimal digits."""
    if len(text) == 36:
        return [len(part) for part in text.split("-")] == [8, 4, 4, 4, 12] and not text.strip(_HEX + "-")
    return len(text) == 32 and not text.strip(_HEX)


def _container_id(name: str) -> str | None:
    """Given the name of one cgroup, return the id if it is a container's: `<id>`, `docker-<id>.scope`, `crio-<id>`."""
    if len(name) < _ID_LENGTH:
        return None
    prefix, _, container_id = name.removesuffix(".scope").rpartition("-")
    if len(container_id) != _ID_LENGTH or container_id.strip(_HEX):
        return None
    # `crio-conmon-<id>.scope` holds the process that watches the container, which is not inside it.
    return None if prefix.endswith("conmon") else container_id
