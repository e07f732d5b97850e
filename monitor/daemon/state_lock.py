"""The lock of the state directory: one daemon at a time."""

from __future__ import annotations

import logging
import os

from monitor.base.lockfile import FILE, DirectoryLock, LockHeldError, lock_directory
from monitor.base.state_problems import StateProblem, StateProblemKind
from monitor.daemon.listen import StartError

log = logging.getLogger(__name__)


class StateInUseError(StartError):
    """Another daemon uses the state directory."""

    exit_code = 2


class StateLock:
    """Lock of a state directory, held until release() or the end of the process.

    Where there can be no lock, as in a read-only directory, the daemon runs without one and `problem` says why.
    """

    def __init__(self, directory: str) -> None:
        """Raise StateInUseError."""
        self._lock: DirectoryLock | None = None
        self.problem: StateProblem | None = None
        try:
            self._lock = lock_directory(directory)
        except LockHeldError as error:
            raise StateInUseError(
                f"another daemon uses {directory}: {error}; stop it, or set daemon.state "
                "(or the variable GPUWARDEN_DAEMON__STATE) to another directory"
            ) from None
        except OSError as error:
            path = os.path.join(directory, FILE)
            self.problem = StateProblem(StateProblemKind.UNWRITABLE, path, error.strerror or str(error))
            log.error("cannot lock %s, a second daemon would not be noticed: %s", directory, error)

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
