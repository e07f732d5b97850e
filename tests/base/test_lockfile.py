from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from monitor.base.lockfile import FILE, LockHeldError, LockOwner, lock_directory, lock_owner

OURS = LockOwner(os.getpid(), socket.gethostname(), os.readlink("/proc/self/ns/pid"))


def test_one_holder_at_a_time_known_by_name(tmp_path: Path) -> None:
    directory = str(tmp_path / "state")
    lock = lock_directory(directory)
    assert lock_owner(directory) == OURS
    assert OURS.is_here
    with pytest.raises(LockHeldError, match=f"process {os.getpid()} on ") as refused:
        lock_directory(directory, wait=0.0)
    assert refused.value.owner == OURS
    lock.release()
    lock.release()  # harmless
    assert lock_owner(directory) is None
    lock_directory(directory).release()


def test_it_is_private_whatever_the_umask_and_the_modes_before(tmp_path: Path) -> None:
    directory, old = tmp_path / "state", os.umask(0)
    try:
        lock_directory(str(directory)).release()
        (directory / FILE).chmod(0o666)
        lock_directory(str(directory)).release()
    finally:
        os.umask(old)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / FILE).stat().st_mode) == 0o600


def test_a_pid_of_another_container_is_another_process() -> None:
    assert not LockOwner(1, socket.gethostname(), "pid:[1]").is_here  # with the network of the host, its name is ours
    assert not LockOwner(OURS.pid, "another", OURS.namespace).is_here


def test_an_owner_that_wrote_no_name(tmp_path: Path) -> None:
    lock = lock_directory(str(tmp_path))
    (tmp_path / FILE).write_bytes(b"\xff nonsense")
    assert lock_owner(str(tmp_path)) is None
    with pytest.raises(LockHeldError, match="another process"):
        lock_directory(str(tmp_path), wait=0.0)
    lock.release()


def test_a_place_where_there_can_be_no_lock(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"File exists|Not a directory"):
        lock_directory(str(tmp_path / "file"))
    assert lock_owner(str(tmp_path / "none")) is None
