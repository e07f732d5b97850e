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
        self._received = self._received or signal.sigtimedwait(STOP_SIGNALS, seconds) is not None
        return self._received
