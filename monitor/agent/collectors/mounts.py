"""Expected mounts: is the NAS there, does it answer, can it be written to."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import NamedTuple

from monitor.agent.collectors import AbsentError
from monitor.agent.guard import Guard, HungError
from monitor.agent.mountinfo import Mount, Mounts, MountTable, below, label, on_node, resolve
from monitor.agent.settings import ExpectedMount, Paths
from monitor.base.clock import Clock
from monitor.facts import MountFact

# When many hang at once (one NAS, many exports), those after the first few get less time, so that the pass ends.
_PATIENCE_SECONDS = 15.0
_SHORT_LIMIT_SECONDS = 1.0
_STATE_OF_ERROR = {errno.ESTALE: "stale", errno.EROFS: "read-only"}


class _Finding(NamedTuple):
    """How one mount was found. `since` is None when that is to be told from the findings before."""

    state: str
    since: float | None = None
    latency: float | None = None
    error: str | None = None


class MountsCollector:
    """Tries every mount that the configuration expects, each under a limit and never twice at once."""

    name = "mounts"

    def __init__(
        self,
        paths: Paths,
        expected: tuple[ExpectedMount, ...],
        clock: Clock = time,
        per_mount_limit: float = 5.0,
    ) -> None:
        self._rootfs = paths.rootfs
        self._expected = expected
        self._clock = clock
        self._limit_seconds = per_mount_limit
        self._guard = Guard("mounts", clock)
        self._table = MountTable(paths.proc, clock)
        self._test_file = os.fsencode(f".gpuwarden-write-test-{os.uname().nodename}")
        self._states: dict[str, tuple[str, float]] = {}
        self._began = 0.0

    def collect(self) -> tuple[MountFact, ...]:
        """Return one fact a mount, in the order of the configuration. Raise AbsentError when none is."""
        if not self._expected:
            raise AbsentError("no mounts are expected; list them under agent.mounts")
        self._began = self._clock.monotonic()
        mounts = self._table.read()
        return tuple(self._fact(expected, mounts) for expected in self._expected)

    def _fact(self, expected: ExpectedMount, mounts: Mounts) -> MountFact:
        found = self._find(expected, mounts)
        state, since = self._states.get(expected.path, (None, 0.0))
        if state != found.state:
            since = self._clock.time() if found.since is None else found.since
            self._states[expected.path] = found.state, since
        return MountFact(
            path=expected.path, state=found.state, since=since, latency_seconds=found.latency, error=found.error
        )

    def _find(self, expected: ExpectedMount, mounts: Mounts) -> _Finding:
        try:
            mount = self._mount_at(on_node(self._rootfs, expected.path), mounts)
            return self._try(expected, mount) if mount else _Finding("missing")
        except HungError as hung:
            return _Finding("hung", since=hung.since)
        except OSError as error:
            state = _STATE_OF_ERROR.get(error.errno or 0, "failing")
            return _Finding(state, error=error.strerror or str(error))

    def _mount_at(self, path: bytes, mounts: Mounts) -> Mount | None:
        """Given a path, return what is mounted there, or where a link leads, or what the automounter now mounts."""
        if (mount := mounts.at(path)) is not None and mount.fstype != b"autofs":
            return mount
        try:
            # Looking at a path makes the automounter mount it. It can hang like any other look.
            real = self._guard.call(f"find {label(path)}", lambda: self._look(path), self._limit())
        except FileNotFoundError:
            return None
        mount = self._table.read().at(real)
        return mount if mount is not None and mount.fstype != b"autofs" else None

    def _look(self, path: bytes) -> bytes:
        real = resolve(self._rootfs, path)
        os.statvfs(below(self._rootfs, real))
        return real

    def _try(self, expected: ExpectedMount, mount: Mount) -> _Finding:
        """Given a mount, return how it behaves. Raise HungError or the OSError that it gives."""
        # The device number is part of the key: a mount made anew must not wait for a call into the dead one.
        key = f"{label(mount.number)} {label(mount.point)}"
        path = below(self._rootfs, mount.point)
        test_file = path + b"/" + self._test_file if expected.write_test else None
        began = self._clock.monotonic()
        read_only = self._guard.call(key, lambda: _probe(mount, path, test_file), self._limit())
        latency = self._clock.monotonic() - began
        if expected.writable and (read_only or mount.read_only):
            return _Finding("read-only", latency=latency)
        return _Finding("ok", latency=latency)

    def _limit(self) -> float:
        spent = self._clock.monotonic() - self._began
        return self._limit_seconds if spent < _PATIENCE_SECONDS else _SHORT_LIMIT_SECONDS


def _probe(mount: Mount, path: bytes, test_file: bytes | None) -> bool:
    """Given a mount and where it is seen, return whether it is read-only. Raise OSError when it does not work."""
    mount.check_seen_as(os.stat(path).st_dev)  # stat gives ESTALE where statvfs may still answer
    read_only = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    if test_file is not None and not read_only:
        _write_test(test_file)
    return read_only


def _write_test(path: bytes) -> None:
    """Write, flush and remove a file. Raise OSError when that fails.

    The name can be guessed and the directory may be everybody's: a file that is already there (of an agent that was
    killed, or a link put there by somebody) is removed, never opened.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, b"gpuwarden checks that this can be written to\n")
        os.fsync(file)
    finally:
        os.close(file)
        os.unlink(path)
