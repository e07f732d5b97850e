"""What an action returns, and what it is given while it runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import msgspec

from monitor.facts.actions import ActionState


@dataclass(frozen=True)
class ActionOutcome:
    """How an action ended. `word` is what programs go by, `message` is for people."""

    state: ActionState
    word: str
    message: str | None = None
    freed_bytes: int | None = None
    result: dict[str, msgspec.Raw] = field(default_factory=dict)


@dataclass(frozen=True)
class ActionRefusal:
    """Why something is left alone."""

    word: str
    detail: str

    def outcome(self) -> ActionOutcome:
        return ActionOutcome(ActionState.REFUSED, self.word, self.detail)


@dataclass(frozen=True)
class ActionContext:
    """One action at work: where it says how far it is, and sees that it should stop."""

    stop: threading.Event = field(default_factory=threading.Event)
    progress: dict[str, int] = field(default_factory=dict)


def done(word: str, message: str | None = None, freed_bytes: int | None = None) -> ActionOutcome:
    """Return that it was done."""
    return ActionOutcome(ActionState.DONE, word, message, freed_bytes)


def refused(word: str, message: str) -> ActionOutcome:
    """Return that it was not begun, because something speaks against it."""
    return ActionOutcome(ActionState.REFUSED, word, message)


def failed(word: str, message: str) -> ActionOutcome:
    """Return that it was tried and did not work."""
    return ActionOutcome(ActionState.FAILED, word, message)
