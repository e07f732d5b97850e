"""The signal to stop, waited for instead of handled: no handler runs in the middle of something else."""

from __future__ import annotations

import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignal:
    """SIGTERM or SIGINT."""

    def __init__(self) -> None:
        """Hold these signals back from this thread and all that it starts: to be done before the first of them."""
        self._received = False
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)

    def wait(self, seconds: float) -> bool:
        """Wait up to so long. Return whether it has come, now or before."""
        if not self._received:
            came = signal.sigtimedwait(STOP_SIGNALS, seconds)
            # Python up to 3.13 returns rubbish, not None, if we were stopped and continued (SIGSTOP, a debugger, a
            # frozen container) and the time was over by then: that is no reason to end.
            self._received = came is not None and came.si_signo in STOP_SIGNALS
        return self._received
