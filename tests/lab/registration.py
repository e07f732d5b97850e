"""Whether the device plugin is registered with the current kubelet rather than an earlier one."""

from __future__ import annotations

import os
from pathlib import Path


def identity(kubelet_socket: Path) -> tuple[int, int] | None:
    """Identity of the kubelet behind the socket, None if there is none."""
    try:
        found = os.stat(kubelet_socket)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_ctime_ns


def notice_of(plugin_pid: int, kubelet: tuple[int, int]) -> str:
    """Marker that a plugin leaves once the kubelet knows its devices."""
    return f"{plugin_pid} {kubelet}"


def is_registered(notice: Path, plugin_pid: int, kubelet_socket: Path) -> bool:
    """Whether this plugin process is registered with the kubelet behind this socket."""
    kubelet = identity(kubelet_socket)
    try:
        return kubelet is not None and notice.read_text() == notice_of(plugin_pid, kubelet)
    except FileNotFoundError:
        return False
