"""Changes of the lab outside its state directory, recorded before and reverted afterwards.

The kubelet uses fixed paths for device plugins and container log links, sets kernel parameters and creates cgroups;
containerd uses a fixed path for sockets of shims.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from tests.lab.errors import LabError
from tests.lab.layout import CHECKPOINT, DEVICE_PLUGINS, KUBELET_SOCKET, PLUGIN_SOCKET, Layout

PARAMETERS = Path("/proc/sys")
SYSCTLS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
FILES = (KUBELET_SOCKET, PLUGIN_SOCKET, CHECKPOINT, DEVICE_PLUGINS / "DEPRECATION")
LOG_LINKS = (Path("/var/log/containers"), Path("/var/log/pods"))
SHIM_SOCKETS = Path("/run/containerd/s")
# Innermost first, in the order of removal.
DIRECTORIES = (
    DEVICE_PLUGINS,
    DEVICE_PLUGINS.parent,
    *LOG_LINKS,
    SHIM_SOCKETS,
    SHIM_SOCKETS.parent,
    Path("/run/docker/plugins"),
    Path("/run/docker"),
)
CGROUPS = Path("/sys/fs/cgroup")


class HostRecord(msgspec.Struct, frozen=True):
    """State of the machine before the lab: kernel parameters and which of the lab's paths were absent."""

    sysctls: dict[str, str] = {}
    files: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    cgroups: tuple[str, ...] = ()


def remember() -> HostRecord:
    """Record the current state; LabError if another kubelet runs here, whose state the lab would destroy."""
    taken = [str(path) for path in (KUBELET_SOCKET, CHECKPOINT) if path.exists()]
    taken += [str(path) for path in _pod_cgroups() if _has_processes(path)]
    if taken:
        raise LabError(
            f"another kubelet lives on this machine ({', '.join(taken)}): the lab would take its devices and its pods. "
            "If that kubelet is gone for good, remove what it left"
        )
    return HostRecord(
        sysctls={name: (PARAMETERS / name).read_text() for name in SYSCTLS if (PARAMETERS / name).exists()},
        files=_absent(FILES),
        directories=_absent(DIRECTORIES),
        cgroups=_absent(_pod_cgroups()),
    )


def restore(record: HostRecord, layout: Layout, shim_sockets: Iterable[Path] = ()) -> None:
    """Restore the machine's state; call only when all lab processes have ended."""
    for name, value in record.sysctls.items():
        if (PARAMETERS / name).read_text() != value:
            (PARAMETERS / name).write_text(value)
    sockets = [socket for socket in shim_sockets if socket.is_relative_to(SHIM_SOCKETS)]
    for path in [*map(Path, record.files), *_log_links(layout), *sockets]:
        path.unlink(missing_ok=True)
    cgroups = [directory for top in record.cgroups for directory in _innermost_first(top)]
    logs = [directory for top in LOG_LINKS for directory in _innermost_first(top)[:-1]]
    for directory in [*cgroups, *logs, *record.directories]:
        with suppress(OSError):  # not empty: used by another program, or a busy cgroup, which `leftovers` reports
            os.rmdir(directory)


def leftovers(record: HostRecord) -> list[str]:
    """Everything that still differs from the recorded state."""
    changed = [name for name, value in record.sysctls.items() if (PARAMETERS / name).read_text() != value]
    paths = [path for path in (*record.files, *record.cgroups) if Path(path).exists()]
    return [f"kernel parameter {name}" for name in changed] + [f"file {path}" for path in paths]


def _absent(paths: tuple[Path, ...]) -> tuple[str, ...]:
    return tuple(str(path) for path in paths if not path.exists())


def _pod_cgroups() -> tuple[Path, ...]:
    """Paths of the cgroup of all pods: one per hierarchy (v1), or a single one (v2)."""
    hierarchies = [path for path in CGROUPS.iterdir() if (path / "cgroup.procs").exists()] if CGROUPS.is_dir() else []
    return tuple(path / "kubepods" for path in (CGROUPS, *hierarchies))


def _has_processes(cgroup: Path) -> bool:
    return any((Path(directory) / "cgroup.procs").read_text() for directory in _innermost_first(cgroup))


def _innermost_first(top: Path | str) -> list[str]:
    return [directory for directory, _, _ in os.walk(top, topdown=False)]


def _log_links(layout: Layout) -> list[Path]:
    """Links to this lab's container logs: links to links that end in the state directory."""
    found = [Path(parent) / name for top in LOG_LINKS for parent, _, names in os.walk(top) for name in names]
    return [path for path in found if path.is_symlink() and os.path.realpath(path).startswith(f"{layout.root}/")]
