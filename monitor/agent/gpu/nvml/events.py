"""XIDs as the driver reports them: an event per error, from the moment on when one began to listen."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any, NamedTuple

import pynvml

from monitor.agent.gpu.nvml.errors import VOID, StaleError
from monitor.agent.gpu.nvml.session import Card, Session

_MOST_PER_PASS = 1000  # a card that reports without end must not hold up the kernel log


class CardXid(NamedTuple):
    """One XID of one card."""

    card: Card
    code: int


class XidListener:
    """Listens on every card of a session, which it has for itself."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._set: Any = None
        self._made_under = 0
        self._cards: dict[int | None, Card] = {}

    def drain(self) -> list[CardXid]:
        """Return what was reported since the last pass, without waiting. Raise as Session.reading does."""
        with self.session.reading():
            if self._set is None or self._made_under != self.session.opened:
                self._listen()
            heard: list[CardXid] = []
            while len(heard) < _MOST_PER_PASS and (event := self._next()) is not None:
                card = self._cards.get(_address(event.device))
                if card is not None:
                    heard.append(CardXid(card, event.eventData))
            # A card that cannot be listened to may be back one day.
            self.session.doubtful = len(self._cards) < len(self.session.cards)
        return heard

    def _listen(self) -> None:
        self._stop_listening()
        try:
            self._set = pynvml.nvmlEventSetCreate()
        except pynvml.NVMLError as error:
            raise StaleError(f"the NVIDIA driver reports no events: {error}") from None
        self._made_under = self.session.opened
        for card in self.session.cards:
            try:
                pynvml.nvmlDeviceRegisterEvents(card.handle, pynvml.nvmlEventTypeXidCriticalError, self._set)
            except pynvml.NVMLError as error:
                if error.value in VOID:
                    raise StaleError(f"the NVIDIA driver was unloaded or replaced: {error}") from None
            else:
                self._cards[_address(card.handle)] = card

    def _next(self) -> Any:
        try:
            return pynvml.nvmlEventSetWait(self._set, 0)
        except pynvml.NVMLError as error:
            if error.value in VOID:
                raise StaleError(f"the NVIDIA driver was unloaded or replaced: {error}") from None
            if error.value != pynvml.NVML_ERROR_TIMEOUT:
                # One lost card makes the whole set fail: next time listen to those that are left.
                self._stop_listening()
            return None

    def _stop_listening(self) -> None:
        if self._set is not None and self._made_under == self.session.opened:
            with suppress(pynvml.NVMLError):  # the driver that it belonged to may be gone, and the set with it
                pynvml.nvmlEventSetFree(self._set)
        self._set = None
        self._cards = {}


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value
