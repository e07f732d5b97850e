"""Who uses a dataset: processes by open and mapped files, working directories, roots and executables; and mounts.

A container sees a dataset under a path of its own, so paths are not compared: the mounts say where in which filesystem
a path is. Where two readings are possible both count, and a process that cannot be read uses everything: a mistake must
not free a dataset. Not seen are: a thread with a table of open files of its own; and, once a bind mount was taken away
lazily, files that are only mapped through it, or that it showed of a part of a unit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

from monitor.agent.datasets.mounts import FsLocation, MountEntry, join_path, read_mountinfo
from monitor.agent.datasets.processes import PROCESS_GONE, FileReference, file_references, has_ended
from monitor.agent.guard import Guard, HungError
from monitor.facts.datasets import UseFact

READ_LIMIT_SECONDS = 2.0
MAX_USES = 16
_MAX_PASSES = 20


class InUse:
    """Looks at all processes below `proc`, at their mounts, and at the loop devices below `sys`."""

    def __init__(self, proc: str = "/proc", sys: str = "/sys", limit: float = READ_LIMIT_SECONDS) -> None:
        self._proc = proc
        self._sys = sys
        self._limit = limit

    def __call__(self, places: Sequence[FsLocation]) -> Mapping[FsLocation, tuple[UseFact, ...]]:
        """Given places, return the uses of each that is used. Raise OSError when there is no /proc to look at."""
        wanted, namespaces = _UseTable(places), _MountNamespaces(self._proc)
        guard = Guard("in-use")
        seen = {int(os.readlink(f"{self._proc}/self"))}  # what this process reads, it reads to find this out
        try:
            # Again while some were gone before they were looked at: what they had, a child may have inherited.
            for _ in range(_MAX_PASSES):
                fresh = sorted({int(name) for name in os.listdir(self._proc) if name.isdigit()} - seen)
                seen.update(fresh)
                if self._look_at_all(fresh, wanted, namespaces, guard):
                    break
            else:
                wanted.add_to_all(UseFact(how="unknown"))  # something forks faster than it can be looked at
        finally:
            guard.close()
        self._look_at_loops(wanted, namespaces)
        return wanted.found()

    def _look_at_all(self, pids: Sequence[int], wanted: _UseTable, namespaces: _MountNamespaces, guard: Guard) -> bool:
        """Note what processes use, and return whether all of them were still there.

        All their mounts first: a file can be of another namespace than its process.
        """
        for pid in pids:
            try:
                for mount in namespaces.add(pid):
                    wanted.add(mount.places(b""), UseFact(how="mount", pid=pid))
            except PROCESS_GONE:
                continue
            except OSError:
                wanted.add_to_all(UseFact(how="unknown", pid=pid))
        gone = [pid for pid in pids if not self._look_at(pid, wanted, namespaces, guard)]
        return not gone

    def _look_at(self, pid: int, wanted: _UseTable, namespaces: _MountNamespaces, guard: Guard) -> bool:
        """Note what one process uses, and return whether it was there.

        Some of /proc waits for a lock that a stuck process holds, hence the guard.
        """
        try:
            found = guard.call(str(pid), lambda: list(file_references(self._proc, pid, namespaces.mounts)), self._limit)
        except PROCESS_GONE:
            return False
        except (OSError, HungError):
            wanted.add_to_all(UseFact(how="unknown", pid=pid))
            return True
        for reference in found:
            self._note(reference, pid, wanted, namespaces)
        return not has_ended(self._proc, pid)

    def _note(self, reference: FileReference, pid: int, wanted: _UseTable, namespaces: _MountNamespaces) -> None:
        use = UseFact(how=reference.how, pid=pid)
        if reference.mount is None:
            wanted.add(namespaces.places(pid, reference.path), use)
        elif reference.device is None:
            wanted.add(namespaces.on_mount(reference.mount, reference.path), use)
        elif reference.device not in wanted.filesystems:
            return  # memory files among others: the kernel has mounts of its own for them
        elif namespaces.has(reference.mount, pid):
            wanted.add(namespaces.on_mount(reference.mount, reference.path), use)
        else:
            wanted.add_by_end(reference.device, reference.path, use)

    def _look_at_loops(self, wanted: _UseTable, namespaces: _MountNamespaces) -> None:
        """Note files that serve as a disk: no process has them open."""
        for name in os.listdir(f"{self._sys}/block"):
            if not name.startswith("loop"):
                continue
            try:
                with open(f"{self._sys}/block/{name}/loop/backing_file", "rb") as file:
                    path = file.read().rstrip(b"\n")
            except FileNotFoundError:
                continue  # a loop device without a file
            wanted.add(namespaces.places_anywhere(path), UseFact(how="loop"))


class _UseTable:
    """The places that are asked for, and the uses found so far."""

    def __init__(self, places: Sequence[FsLocation]) -> None:
        self._uses: dict[FsLocation, dict[UseFact, None]] = {place: {} for place in places}
        self.filesystems = frozenset(place.filesystem for place in places)

    def add(self, places: Iterable[FsLocation], use: UseFact) -> None:
        """Given what a use may refer to, note it at each unit that is that or holds that."""
        for place in places:
            if place.filesystem in self.filesystems:
                for path in _self_and_above(place.path):
                    self._note(FsLocation(place.filesystem, path), use)

    def add_by_end(self, filesystem: bytes, path: bytes, use: UseFact) -> None:
        """Given a path on a mount that nobody has any more, note it at each unit that may have been seen there so.

        It begins at what the mount showed, which is not known: the end of the unit's path must be the path's beginning.
        (dockerd does that to itself: it keeps files open on a bind mount of its own directory.)
        """
        ends = tuple(above for above in _self_and_above(path) if above != b"/")
        for place in self._uses:
            if place.filesystem == filesystem and place.path.endswith(ends):
                self._note(place, use)

    def add_to_all(self, use: UseFact) -> None:
        for place in self._uses:
            self._note(place, use)

    def found(self) -> Mapping[FsLocation, tuple[UseFact, ...]]:
        return {place: tuple(uses) for place, uses in self._uses.items() if uses}

    def _note(self, place: FsLocation, use: UseFact) -> None:
        uses = self._uses.get(place)
        if uses is not None and len(uses) < MAX_USES:
            uses[use] = None


class _MountNamespace:
    """The mounts that some processes see, at the paths by which the kernel shows their files."""

    def __init__(self, mounts: Iterable[MountEntry], root: bytes) -> None:
        # A mountinfo has paths as seen from the root of its process; files are shown from that of the namespace.
        self.points = [(join_path(root, mount.mount.point), mount) for mount in mounts]
        self._at: dict[bytes, list[MountEntry]] = {}
        for point, mount in self.points:
            self._at.setdefault(point, []).append(mount)

    def places(self, path: bytes) -> Iterator[FsLocation]:
        """Given a path, yield where it may lie: on the mount that holds it, or on one that this hides."""
        for above in _self_and_above(path):
            for mount in self._at.get(above, ()):
                yield from mount.places(path.removeprefix(above.rstrip(b"/")))


class _MountNamespaces:
    """Mount namespaces, each read once: the kernel takes a millisecond to write one out."""

    def __init__(self, proc: str) -> None:
        self._proc = proc
        self._known: dict[tuple[str, bytes], _MountNamespace] = {}
        self._of: dict[int, _MountNamespace] = {}
        self.mounts: dict[int, tuple[bytes, MountEntry]] = {}

    def add(self, pid: int) -> Iterable[MountEntry]:
        """Read that of a process. Return its mounts if they are new. Raise OSError, one of GONE when there is none."""
        base = f"{self._proc}/{pid}"
        key = (os.readlink(f"{base}/ns/mnt"), os.readlink(os.fsencode(f"{base}/root")))
        known = self._known.get(key)
        if known is not None:
            self._of[pid] = known
            return ()
        fresh = self._known[key] = self._of[pid] = _MountNamespace(read_mountinfo(f"{base}/mountinfo"), key[1])
        self.mounts.update((mount.id, (point, mount)) for point, mount in fresh.points)
        return [mount for _, mount in fresh.points]

    def has(self, ident: int, pid: int) -> bool:
        """Return whether a process has that mount by now: it may have got it, or its namespace, a moment ago."""
        try:
            fresh = _MountNamespace(
                read_mountinfo(f"{self._proc}/{pid}/mountinfo"), os.readlink(os.fsencode(f"{self._proc}/{pid}/root"))
            )
        except OSError:
            return False
        self.mounts.update((mount.id, (point, mount)) for point, mount in fresh.points)
        return ident in self.mounts

    def places(self, pid: int, path: bytes) -> Iterator[FsLocation]:
        """Given a path that a process refers to, yield where it may lie."""
        return self._of[pid].places(path) if pid in self._of else self.places_anywhere(path)

    def places_anywhere(self, path: bytes) -> Iterator[FsLocation]:
        for namespace in self._known.values():
            yield from namespace.places(path)

    def on_mount(self, ident: int, path: bytes) -> Iterator[FsLocation]:
        """Given the mount that a path is on, yield its place."""
        point, mount = self.mounts[ident]
        return mount.places(path.removeprefix(point.rstrip(b"/")))


def _self_and_above(path: bytes) -> Iterator[bytes]:
    """Given an absolute path, yield it and what holds it, up to /."""
    while path not in (b"/", b""):
        yield path
        path = path[: path.rindex(b"/")]
    yield b"/"
