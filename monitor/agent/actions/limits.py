"""Limits that the agent enforces itself: no request can lower or exceed them, whoever signed it."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

from monitor.agent.actions.dispatcher import ActionHandler
from monitor.agent.actions.outcome import ActionContext, ActionOutcome, refused
from monitor.agent.settings import ActionLimits
from monitor.base.clock import Clock
from monitor.facts.actions import ActionState

WINDOW_SECONDS = 3600.0
OVER_LIMIT = "over-limit"


class HourlyBudget:
    """An amount that may be spent in any hour; `setting` is where the node's owner can raise it. Thread-safe."""

    def __init__(self, setting: str, most: int, clock: Clock = time) -> None:
        self._setting = setting
        self._most = most
        self._clock = clock
        self._spent: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()

    def refusal(self, amount: int = 1) -> str | None:
        """Why an amount cannot be spent now, or None."""
        with self._lock:
            now = self._clock.monotonic()
            while self._spent and now - self._spent[0][0] >= WINDOW_SECONDS:
                self._spent.popleft()
            if sum(spent for _, spent in self._spent) + amount <= self._most:
                return None
        return f"this node allows {self._most} per hour: agent.actions.limits.{self._setting}"

    def spend(self, amount: int = 1) -> None:
        with self._lock:
            self._spent.append((self._clock.monotonic(), amount))

    def limited(self, handler: ActionHandler) -> ActionHandler:
        """A handler that refuses actions over the budget. An action that the re-check refuses costs nothing."""

        def handle(action: Any, context: ActionContext) -> ActionOutcome:
            text = self.refusal()
            if text is not None:
                return refused(OVER_LIMIT, text)
            outcome = handler(action, context)
            if outcome.state is not ActionState.REFUSED:
                self.spend()
            return outcome

        return handle


class PurgeLimits:
    """Limits of permanent deletion: time in the trash, datasets per hour and bytes per hour."""

    def __init__(self, limits: ActionLimits, clock: Clock = time) -> None:
        self.min_trash_seconds = limits.min_trash
        self._count = HourlyBudget("purges_per_hour", limits.purges_per_hour, clock)
        self._bytes = HourlyBudget("purge_bytes_per_hour", limits.purge_bytes_per_hour, clock)

    def refusal(self, size_bytes: int) -> str | None:
        """Why a dataset of this size is not purged now, or None."""
        return self._count.refusal() or self._bytes.refusal(size_bytes)

    def spend(self, size_bytes: int) -> None:
        self._count.spend()
        self._bytes.spend(size_bytes)
