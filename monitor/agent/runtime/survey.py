"""One question to every runtime of the node. What happens when one does not answer: see the package."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from monitor.agent.guard import Guard, HungError
from monitor.agent.runtime.api import EngineError, NotServedError, Runtime
from monitor.agent.runtime.runtimes import Runtimes

log = logging.getLogger(__name__)

T = TypeVar("T")


class Survey:
    """Asks for one collector, from its thread. `patience` is how long each of several runtimes may take."""

    def __init__(self, name: str, runtimes: Runtimes, patience: float) -> None:
        self._name = name
        self._runtimes = runtimes
        self._patience = patience
        self._guard = Guard(name)
        self.trouble: str | None = None

    def ask(self, question: Callable[[Runtime], T]) -> tuple[T, ...]:
        """Given a question, return the answers, () if the node has no runtime. Raise EngineError if all failed."""
        present = self._runtimes.present()
        answers: list[T] = []
        troubles: list[str] = []
        for runtime in present:
            try:
                answers.append(self._one(runtime, question, alone=len(present) == 1))
            except NotServedError:
                self._runtimes.dismiss(runtime)
            except Exception as error:  # whatever is wrong with one runtime, the others are still read
                troubles.append(_in_words(runtime, error))
        if troubles and not answers:
            raise EngineError("; ".join(troubles))
        self._note("; ".join(troubles) or None)
        return tuple(answers)

    def _one(self, runtime: Runtime, question: Callable[[Runtime], T], *, alone: bool) -> T:
        if alone:
            return question(runtime)
        return self._guard.call(runtime.socket, lambda: question(runtime), self._patience)

    def _note(self, trouble: str | None) -> None:
        if trouble is not None and trouble != self.trouble:
            log.warning("%s: read without %s", self._name, trouble)
        self.trouble = trouble


def _in_words(runtime: Runtime, error: Exception) -> str:
    match error:
        case HungError(since=since):
            when = datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")
            return f"{runtime.socket}: no answer since {when}"
        case EngineError():
            return str(error)
    return f"{runtime.socket}: {type(error).__name__}: {error}"
