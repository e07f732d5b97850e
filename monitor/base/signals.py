"""Stop signals, waited for instead of handled, so that no handler interrupts other code."""

from __future__ import annotations

import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignal:
    """SIGTERM or SIGINT."""

    def __init__(self) -> None:
        """Block the signals in this thread and its children. Call it before starting threads."""
        self._received = False
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds`, and return whether a signal has arrived."""
        if not self._received:
            came = signal.sigtimedwait(STOP_SIGNALS, seconds)
            # Python up to 3.13 returns garbage instead of None if the process was stopped and continued (SIGSTOP, a
            # debugger, a frozen container) and the timeout expired meanwhile.
            self._received = came is not None and came.si_signo in STOP_SIGNALS
        return self._received
