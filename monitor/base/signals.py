"""Signals, waited for instead of handled, so that no handler interrupts other code."""

from __future__ import annotations

import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
RELOAD_SIGNAL = signal.SIGHUP
WAITED_SIGNALS = (*STOP_SIGNALS, RELOAD_SIGNAL)


class StopSignal:
    """SIGTERM or SIGINT; and SIGHUP, which asks for a reload instead of ending the process."""

    def __init__(self) -> None:
        """Block the signals in this thread and its children. Call it before starting threads."""
        self._received = False
        self._reload = False
        signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_SIGNALS)

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`, and return whether a stop signal has arrived. A request to reload ends the wait too."""
        if not self._received:
            came = signal.sigtimedwait(WAITED_SIGNALS, seconds)
            # Python up to 3.13 returns garbage instead of None if the process was stopped and continued (SIGSTOP, a
            # debugger, a frozen container) and the timeout expired meanwhile.
            self._received = came is not None and came.si_signo in STOP_SIGNALS
            self._reload = self._reload or (came is not None and came.si_signo == RELOAD_SIGNAL)
        return self._received

    def take_reload(self) -> bool:
        """Whether a reload was requested since the last call."""
        requested, self._reload = self._reload, False
        return requested
