"""Expected mounts: whether each is mounted, responds and is writable."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from typing import NamedTuple

from monitor.agent.collectors import AbsentError
from monitor.agent.guard import HungCallGuard, HungError
from monitor.agent.mountinfo import MountPoint, Mounts, MountTable, decoded, host_path, node_path, resolve_links
from monitor.agent.settings import ExpectedMount, Paths
from monitor.base.clock import Clock
from monitor.facts import MountFact

# When many hang at once (one NAS, many exports), those after the first few get less time, so that the pass ends.
_PASS_BUDGET_SECONDS = 15.0
_SHORT_TIMEOUT_SECONDS = 1.0
_STATE_OF_ERROR = {errno.ESTALE: "stale", errno.EROFS: "read-only"}


class _MountState(NamedTuple):
    """State of one mount. Without `since`, it began with the first pass that found it."""

    state: str
    since: float | None = None
    latency: float | None = None
    error: str | None = None


class MountsCollector:
    """Tests every mount that the configuration expects, each with a timeout and never twice at once."""

    name = "mounts"

    def __init__(
        self,
        paths: Paths,
        expected: tuple[ExpectedMount, ...],
        clock: Clock = time,
        per_mount_timeout: float = 5.0,
    ) -> None:
        self._rootfs = paths.rootfs
        self._expected = expected
        self._clock = clock
        self._per_mount_timeout = per_mount_timeout
        self._guard = HungCallGuard("mounts", clock)
        self._table = MountTable(paths.proc, clock)
        self._test_file = os.fsencode(f".gpuwarden-write-test-{os.uname().nodename}")
        self._states: dict[str, tuple[str, float]] = {}
        self._started = 0.0

    def collect(self) -> tuple[MountFact, ...]:
        """One fact per mount, in the order of the configuration. Raise AbsentError if none is configured."""
        if not self._expected:
            raise AbsentError("no expected mounts are configured; list them under agent.mounts")
        self._started = self._clock.monotonic()
        mounts = self._table.read()
        return tuple(self._fact(expected, mounts) for expected in self._expected)

    def _fact(self, expected: ExpectedMount, mounts: Mounts) -> MountFact:
        now = self._test(expected, mounts)
        state, since = self._states.get(expected.path, (None, 0.0))
        if state != now.state:
            since = self._clock.time() if now.since is None else now.since
            self._states[expected.path] = now.state, since
        return MountFact(path=expected.path, state=now.state, since=since, latency_seconds=now.latency, error=now.error)

    def _test(self, expected: ExpectedMount, mounts: Mounts) -> _MountState:
        try:
            mount = self._mount_at(node_path(self._rootfs, expected.path), mounts)
            return self._test_mount(expected, mount) if mount else _MountState("missing")
        except HungError as hung:
            return _MountState("hung", since=hung.since)
        except OSError as error:
            state = _STATE_OF_ERROR.get(error.errno or 0, "failing")
            return _MountState(state, error=error.strerror or str(error))

    def _mount_at(self, path: bytes, mounts: Mounts) -> MountPoint | None:
        """Mount at a path, behind a link, or as the automounter now mounts it."""
        if (mount := mounts.at(path)) is not None and mount.fstype != b"autofs":
            return mount
        try:
            # Accessing a path makes the automounter mount it, which can hang like any other access.
            real = self._guard.call(f"find {decoded(path)}", lambda: self._access(path), self._timeout())
        except FileNotFoundError:
            return None
        mount = self._table.read().at(real)
        return mount if mount is not None and mount.fstype != b"autofs" else None

    def _access(self, path: bytes) -> bytes:
        real = resolve_links(self._rootfs, path)
        os.statvfs(host_path(self._rootfs, real))
        return real

    def _test_mount(self, expected: ExpectedMount, mount: MountPoint) -> _MountState:
        """State of a mount. Raise HungError, or OSError if it fails."""
        # The device number is part of the key: a new mount must not wait for a call into the dead one.
        key = f"{decoded(mount.number)} {decoded(mount.point)}"
        path = host_path(self._rootfs, mount.point)
        test_file = path + b"/" + self._test_file if expected.write_test else None
        started = self._clock.monotonic()
        read_only = self._guard.call(key, lambda: _probe(mount, path, test_file), self._timeout())
        latency = self._clock.monotonic() - started
        if expected.writable and (read_only or mount.read_only):
            return _MountState("read-only", latency=latency)
        return _MountState("ok", latency=latency)

    def _timeout(self) -> float:
        spent = self._clock.monotonic() - self._started
        return self._per_mount_timeout if spent < _PASS_BUDGET_SECONDS else _SHORT_TIMEOUT_SECONDS


def _probe(mount: MountPoint, path: bytes, test_file: bytes | None) -> bool:
    """Whether the mount at `path` is read-only. Raise OSError if it does not work."""
    mount.check_device(os.stat(path).st_dev)  # stat returns ESTALE where statvfs may still succeed
    read_only = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    if test_file is not None and not read_only:
        _write_test(test_file)
    return read_only


def _write_test(path: bytes) -> None:
    """Write, flush and remove a file. Raise OSError if that fails.

    The name is predictable and the directory may be world-writable: an existing file (of a killed agent, or a link
    planted by a user) is removed, never opened.
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
