"""What a process refers to: open and mapped files, working directories, roots, its executable.

The kernel shows each as a path in the mount namespace it was opened in. That need not be where its process is now, and
the mount may have been taken away lazily; so the id of the mount is read too where the kernel tells it.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from typing import NamedTuple

from monitor.agent.datasets.mounts import mount_id, parse_mount_id

PROCESS_GONE = (FileNotFoundError, ProcessLookupError)


class FileReference(NamedTuple):
    """How a process refers to which path. `mount` is None where the kernel does not tell it.

    `device` is the device number, read only when no namespace has a mount of that id.
    """

    how: str
    path: bytes
    mount: int | None = None
    device: bytes | None = None


def file_references(proc: str, pid: int, known: Container[int]) -> Iterator[FileReference]:
    """Given a process and the ids of the mounts of all namespaces, yield what it refers to. Raise OSError."""
    base = f"{proc}/{pid}"
    threads = os.listdir(f"{base}/task")
    yield from _directories(base, threads, known)
    exe = _target(f"{base}/exe")
    if exe is not None:
        yield FileReference("exe", exe)
    # When its first thread has ended, a process's files are only found with the others.
    for table in [f"{base}/task/{thread}" for thread in threads] if _is_zombie(base) else [base]:
        yield from _open_files(table, known)
        yield from _maps(f"{table}/maps")


def _directories(base: str, threads: list[str], known: Container[int]) -> Iterator[FileReference]:
    """Yield working directories and roots: a thread can have its own."""
    for how in ("cwd", "root"):
        links = {_target(f"{base}/task/{thread}/{how}"): f"{base}/task/{thread}/{how}" for thread in threads}
        for path, link in links.items():
            if path is None:
                continue
            try:
                descriptor = os.open(link, os.O_PATH | os.O_CLOEXEC)
            except PROCESS_GONE:
                continue
            try:
                mount = mount_id("/proc", descriptor)
            finally:
                os.close(descriptor)
            yield FileReference(how, path, mount, None if mount in known else _device(link))


def _open_files(table: str, known: Container[int]) -> Iterator[FileReference]:
    for number in _listed(f"{table}/fd"):
        path = _target(f"{table}/fd/{number}")
        if path is None:
            continue
        try:
            with open(f"{table}/fdinfo/{number}", "rb", buffering=0) as file:
                mount = parse_mount_id(file.read())
            yield FileReference("open", path, mount, None if mount in known else _device(f"{table}/fd/{number}"))
        except PROCESS_GONE:
            continue  # closed meanwhile


def _maps(path: str) -> Iterator[FileReference]:
    try:
        with open(path, "rb") as file:
            mapped = {line[line.index(b"/") :].rstrip(b"\n") for line in file if b"/" in line}
    except PROCESS_GONE:
        return
    for name in mapped:
        yield FileReference("map", name)
        if b"\\012" in name:  # a newline in a name, or just what it looks like
            yield FileReference("map", name.replace(b"\\012", b"\n"))


def _target(link: str) -> bytes | None:
    """Return the path a link of /proc shows, or None: closed meanwhile, a socket, or a kernel thread's."""
    try:
        target = os.readlink(os.fsencode(link))
    except PROCESS_GONE:
        return None
    return target if target.startswith(b"/") else None


def _device(link: str) -> bytes | None:
    try:
        device = os.stat(link).st_dev
    except PROCESS_GONE:
        return None
    return b"%d:%d" % (os.major(device), os.minor(device))


def has_ended(proc: str, pid: int) -> bool:
    """Return whether a process has ended, so that its files may have been closed while they were listed."""
    try:
        return _is_zombie(f"{proc}/{pid}")
    except PROCESS_GONE:
        return True


def _is_zombie(base: str) -> bool:
    with open(f"{base}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except PROCESS_GONE:
        return []
