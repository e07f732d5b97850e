"""Finds uses of a dataset: open and mapped files, working directories, roots and executables of processes; and mounts.

A container sees a dataset under its own path, so paths are not compared directly: the mounts tell where in which
filesystem a path is. Where a path is ambiguous all interpretations count, and a process that cannot be read is assumed
to use everything: an error must not free a dataset. Not detected are a thread with its own file table and, after a
bind mount was detached lazily, files that are only mapped through it or lie in a part of a unit that it showed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from monitor.agent.datasets.mounts import FsLocation, MountEntry, join_path, read_mountinfo
from monitor.agent.datasets.processes import PROCESS_GONE, FileReference, file_references, has_ended
from monitor.agent.guard import HungCallGuard, HungError
from monitor.facts.datasets import UseFact

READ_LIMIT_SECONDS = 2.0
MAX_USES = 16
_MAX_PASSES = 20


class InUse:
    """Reads all processes below `proc`, their mounts, and the loop devices below `sys`."""

    def __init__(self, proc: str = "/proc", sys: str = "/sys", limit: float = READ_LIMIT_SECONDS) -> None:
        self._proc = proc
        self._sys = sys
        self._limit = limit

    def __call__(self, locations: Sequence[FsLocation]) -> Mapping[FsLocation, tuple[UseFact, ...]]:
        """Uses of each location that is in use. Raise OSError if /proc cannot be read."""
        table, namespaces = _UseTable(locations), _MountNamespaces(self._proc)
        guard = HungCallGuard("in-use")
        seen = {int(os.readlink(f"{self._proc}/self"))}  # this process only has files open to scan
        try:
            # Repeat while processes end before they are read: a child may have inherited their files.
            for _ in range(_MAX_PASSES):
                new = sorted({int(name) for name in os.listdir(self._proc) if name.isdigit()} - seen)
                seen.update(new)
                if self._read_processes(new, table, namespaces, guard):
                    break
            else:
                table.add_to_all(UseFact(how="unknown"))  # processes are forked faster than they can be read
        finally:
            guard.close()
        self._read_loop_devices(table, namespaces)
        return table.uses()

    def _read_processes(
        self, pids: Sequence[int], table: _UseTable, namespaces: _MountNamespaces, guard: HungCallGuard
    ) -> bool:
        """Add the uses of processes, and return whether all of them still existed.

        All mounts are read first: a file can belong to another namespace than its process.
        """
        for pid in pids:
            try:
                for mount in namespaces.add(pid):
                    table.add(mount.locations(b""), UseFact(how="mount", pid=pid))
            except PROCESS_GONE:
                continue
            except OSError:
                table.add_to_all(UseFact(how="unknown", pid=pid))
        gone = [pid for pid in pids if not self._read_process(pid, table, namespaces, guard)]
        return not gone

    def _read_process(self, pid: int, table: _UseTable, namespaces: _MountNamespaces, guard: HungCallGuard) -> bool:
        """Add the uses of one process, and return whether it existed.

        Some files in /proc wait for a lock that a stuck process holds, hence the guard.
        """
        try:
            references = guard.call(
                str(pid), lambda: list(file_references(self._proc, pid, namespaces.mounts)), self._limit
            )
        except PROCESS_GONE:
            return False
        except (OSError, HungError):
            table.add_to_all(UseFact(how="unknown", pid=pid))
            return True
        for reference in references:
            self._add(reference, pid, table, namespaces)
        return not has_ended(self._proc, pid)

    def _add(self, reference: FileReference, pid: int, table: _UseTable, namespaces: _MountNamespaces) -> None:
        use = UseFact(how=reference.how, pid=pid)
        if reference.mount is None:
            table.add(namespaces.locations(pid, reference.path), use)
        elif reference.device is None:
            table.add(namespaces.on_mount(reference.mount, reference.path), use)
        elif reference.device not in table.filesystems:
            return  # such as memory files: the kernel has internal mounts for them
        elif namespaces.has(reference.mount, pid):
            table.add(namespaces.on_mount(reference.mount, reference.path), use)
        else:
            table.add_by_suffix(reference.device, reference.path, use)

    def _read_loop_devices(self, table: _UseTable, namespaces: _MountNamespaces) -> None:
        """Add backing files of loop devices, which no process has open."""
        for name in os.listdir(f"{self._sys}/block"):
            if not name.startswith("loop"):
                continue
            try:
                with open(f"{self._sys}/block/{name}/loop/backing_file", "rb") as file:
                    path = file.read().rstrip(b"\n")
            except FileNotFoundError:
                continue  # an unused loop device
            table.add(namespaces.locations_anywhere(path), UseFact(how="loop"))


class _UseTable:
    def __init__(self, locations: Sequence[FsLocation]) -> None:
        self._uses: dict[FsLocation, dict[UseFact, None]] = {location: {} for location in locations}
        self.filesystems = frozenset(location.filesystem for location in locations)

    def add(self, locations: Iterable[FsLocation], use: UseFact) -> None:
        """Add a use, given its possible locations, to each unit that equals or contains one of them."""
        for location in locations:
            if location.filesystem in self.filesystems:
                for path in _self_and_parents(location.path):
                    self._add(FsLocation(location.filesystem, path), use)

    def add_by_suffix(self, filesystem: bytes, path: bytes, use: UseFact) -> None:
        """Add a use, given its path on a detached mount, to each unit that the mount may have shown at that path.

        The path is relative to the unknown root of the mount, so a unit matches if its path ends with the first part of
        `path`. (dockerd causes this: it keeps files open on a bind mount of its own directory.)
        """
        suffixes = tuple(prefix for prefix in _self_and_parents(path) if prefix != b"/")
        for location in self._uses:
            if location.filesystem == filesystem and location.path.endswith(suffixes):
                self._add(location, use)

    def add_to_all(self, use: UseFact) -> None:
        for location in self._uses:
            self._add(location, use)

    def uses(self) -> Mapping[FsLocation, tuple[UseFact, ...]]:
        return {location: tuple(uses) for location, uses in self._uses.items() if uses}

    def _add(self, location: FsLocation, use: UseFact) -> None:
        uses = self._uses.get(location)
        if uses is not None and len(uses) < MAX_USES:
            uses[use] = None


class _MountNamespace:
    """The mounts of a namespace, at the paths under which the kernel shows their files."""

    def __init__(self, mounts: Iterable[MountEntry], root: bytes) -> None:
        # Paths in mountinfo are relative to the root of the process, paths of files to that of the namespace.
        self.points = [(join_path(root, mount.mount.point), mount) for mount in mounts]
        self._mounts_at: dict[bytes, list[MountEntry]] = {}
        for point, mount in self.points:
            self._mounts_at.setdefault(point, []).append(mount)

    def locations(self, path: bytes) -> Iterator[FsLocation]:
        """Possible locations of a path: on the mount that contains it, or on one that this mount hides."""
        for parent in _self_and_parents(path):
            for mount in self._mounts_at.get(parent, ()):
                yield from mount.locations(path.removeprefix(parent.rstrip(b"/")))


class _MountNamespaces:
    """Mount namespaces, each read once: the kernel takes a millisecond to format one."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._by_key: dict[tuple[str, bytes], _MountNamespace] = {}
        self._by_pid: dict[int, _MountNamespace] = {}
        self.mounts: dict[int, tuple[bytes, MountEntry]] = {}

    def add(self, pid: int) -> Iterable[MountEntry]:
        """Read the namespace of a process and return its mounts if it is new. Raise OSError, such as PROCESS_GONE."""
        base = f"{self._proc}/{pid}"
        key = (os.readlink(f"{base}/ns/mnt"), os.readlink(os.fsencode(f"{base}/root")))
        known = self._by_key.get(key)
        if known is not None:
            self._by_pid[pid] = known
            return ()
        new = self._by_key[key] = self._by_pid[pid] = self._read(pid, key[1])
        return [mount for _, mount in new.points]

    def has(self, ident: int, pid: int) -> bool:
        """Whether a process has this mount by now: it may have entered the namespace only a moment ago."""
        try:
            self._read(pid, os.readlink(os.fsencode(f"{self._proc}/{pid}/root")))
        except OSError:
            return False
        return ident in self.mounts

    def locations(self, pid: int, path: bytes) -> Iterator[FsLocation]:
        """Possible locations of a path that a process refers to."""
        return self._by_pid[pid].locations(path) if pid in self._by_pid else self.locations_anywhere(path)

    def locations_anywhere(self, path: bytes) -> Iterator[FsLocation]:
        for namespace in self._by_key.values():
            yield from namespace.locations(path)

    def on_mount(self, ident: int, path: bytes) -> Iterator[FsLocation]:
        point, mount = self.mounts[ident]
        return mount.locations(path.removeprefix(point.rstrip(b"/")))

    def _read(self, pid: int, root: bytes) -> _MountNamespace:
        namespace = _MountNamespace(read_mountinfo(f"{self._proc}/{pid}/mountinfo"), root)
        self.mounts.update((mount.id, (point, mount)) for point, mount in namespace.points)
        return namespace


def _self_and_parents(path: bytes) -> Iterator[bytes]:
    """An absolute path and all its parents, up to /."""
    while path not in (b"/", b""):
        yield path
        path = path[: path.rindex(b"/")]
    yield b"/"
