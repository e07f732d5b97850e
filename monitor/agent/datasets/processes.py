"""Files that a process refers to: open and mapped files, working directories, roots and its executable.

The kernel shows each as a path in the mount namespace in which it was opened. The process may have left that namespace
since, and the mount may have been detached lazily; therefore the mount id is read as well where the kernel reports it.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from typing import NamedTuple

from monitor.agent.datasets.mounts import mount_id, parse_mount_id

PROCESS_GONE = (FileNotFoundError, ProcessLookupError)


class FileReference(NamedTuple):
    """A path that a process refers to. `mount` is None where the kernel does not report it.

    `device` is the device number, set only if no known namespace has the mount.
    """

    how: str
    path: bytes
    mount: int | None = None
    device: bytes | None = None


def file_references(proc: str, pid: int, known_mounts: Container[int]) -> Iterator[FileReference]:
    """All references of a process; `known_mounts` are the mount ids of all namespaces. Raise OSError."""
    base = f"{proc}/{pid}"
    threads = os.listdir(f"{base}/task")
    yield from _directories(base, threads, known_mounts)
    exe = _target(f"{base}/exe")
    if exe is not None:
        yield FileReference("exe", exe)
    # After the main thread has ended, files are only visible in the other threads.
    for table in [f"{base}/task/{thread}" for thread in threads] if _is_zombie(base) else [base]:
        yield from _open_files(table, known_mounts)
        yield from _maps(f"{table}/maps")


def _directories(base: str, threads: list[str], known_mounts: Container[int]) -> Iterator[FileReference]:
    """Working directories and roots of all threads: each thread can have its own."""
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
            yield FileReference(how, path, mount, None if mount in known_mounts else _device(link))


def _open_files(table: str, known_mounts: Container[int]) -> Iterator[FileReference]:
    for number in _list_directory(f"{table}/fd"):
        link = f"{table}/fd/{number}"
        path = _target(link)
        if path is None:
            continue
        try:
            with open(f"{table}/fdinfo/{number}", "rb", buffering=0) as file:
                mount = parse_mount_id(file.read())
            yield FileReference("open", path, mount, None if mount in known_mounts else _device(link))
        except PROCESS_GONE:
            continue  # closed in the meantime


def _maps(path: str) -> Iterator[FileReference]:
    try:
        with open(path, "rb") as file:
            mapped = {line[line.index(b"/") :].rstrip(b"\n") for line in file if b"/" in line}
    except PROCESS_GONE:
        return
    for name in mapped:
        yield FileReference("map", name)
        if b"\\012" in name:  # an escaped newline, or these four characters
            yield FileReference("map", name.replace(b"\\012", b"\n"))


def _target(link: str) -> bytes | None:
    """Target of a link in /proc, or None if it was closed, is a socket, or belongs to a kernel thread."""
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
    """Whether a process has ended, in which case its files may have been closed while they were listed."""
    try:
        return _is_zombie(f"{proc}/{pid}")
    except PROCESS_GONE:
        return True


def _is_zombie(base: str) -> bool:
    with open(f"{base}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")


def _list_directory(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except PROCESS_GONE:
        return []
