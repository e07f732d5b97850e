"""Results of an action, and the context it runs in."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import msgspec

from monitor.facts.actions import ActionState


@dataclass(frozen=True)
class ActionOutcome:
    """Result of an action. `code` is machine-readable, `message` is for people."""

    state: ActionState
    code: str
    message: str | None = None
    freed_bytes: int | None = None
    result: dict[str, msgspec.Raw] = field(default_factory=dict)


@dataclass(frozen=True)
class ActionRefusal:
    """Why a target is left unchanged."""

    code: str
    detail: str

    def outcome(self) -> ActionOutcome:
        return refused(self.code, self.detail)


@dataclass(frozen=True)
class ActionContext:
    """Stop signal and progress counters of a running action."""

    stop: threading.Event = field(default_factory=threading.Event)
    progress: dict[str, int] = field(default_factory=dict)


def done(code: str, message: str | None = None, freed_bytes: int | None = None) -> ActionOutcome:
    """Outcome of an action that succeeded."""
    return ActionOutcome(ActionState.DONE, code, message, freed_bytes)


def refused(code: str, message: str) -> ActionOutcome:
    """Outcome of an action that was not started because a check failed."""
    return ActionOutcome(ActionState.REFUSED, code, message)


def failed(code: str, message: str) -> ActionOutcome:
    """Outcome of an action that was attempted and failed."""
    return ActionOutcome(ActionState.FAILED, code, message)
