"""What an action returns, and what it is given while it runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import msgspec

from monitor.facts.actions import ActionState


@dataclass(frozen=True)
class Outcome:
    """How an action ended. `word` is what programs go by, `message` is for people."""

    state: ActionState
    word: str
    message: str | None = None
    freed_bytes: int | None = None
    result: dict[str, msgspec.Raw] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """Why something is left alone."""

    word: str
    detail: str

    def outcome(self) -> Outcome:
        return Outcome(ActionState.REFUSED, self.word, self.detail)


@dataclass(frozen=True)
class Job:
    """One action at work: where it says how far it is, and sees that it should stop."""

    stop: threading.Event = field(default_factory=threading.Event)
    progress: dict[str, int] = field(default_factory=dict)


def done(word: str, message: str | None = None, freed_bytes: int | None = None) -> Outcome:
    """Return that it was done."""
    return Outcome(ActionState.DONE, word, message, freed_bytes)


def refused(word: str, message: str) -> Outcome:
    """Return that it was not begun, because something speaks against it."""
    return Outcome(ActionState.REFUSED, word, message)


def failed(word: str, message: str) -> Outcome:
    """Return that it was tried and did not work."""
    return Outcome(ActionState.FAILED, word, message)
