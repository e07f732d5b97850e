"""One query to every runtime of the node. The package describes what happens if one does not answer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from monitor.agent.guard import HungCallGuard, HungError
from monitor.agent.runtime.api import EngineError, NotServedError, Runtime
from monitor.agent.runtime.runtimes import Runtimes

log = logging.getLogger(__name__)

T = TypeVar("T")


class Survey:
    """Queries runtimes for one collector, on its thread. Of several runtimes, each has `timeout` seconds."""

    def __init__(self, name: str, runtimes: Runtimes, timeout: float) -> None:
        self._name = name
        self._runtimes = runtimes
        self._timeout = timeout
        self._guard = HungCallGuard(name)
        self.warning: str | None = None

    def query(self, query: Callable[[Runtime], T]) -> tuple[T, ...]:
        """Results of all runtimes; () if the node has none. Raise EngineError if all failed."""
        present = self._runtimes.present()
        results: list[T] = []
        errors: list[str] = []
        for runtime in present:
            try:
                results.append(self._query_one(runtime, query, alone=len(present) == 1))
            except NotServedError:
                self._runtimes.dismiss(runtime)
            except Exception as error:  # a failure of one runtime must not affect the others
                errors.append(_message(runtime, error))
        if errors and not results:
            raise EngineError("; ".join(errors))
        self._warn("; ".join(errors) or None)
        return tuple(results)

    def _query_one(self, runtime: Runtime, query: Callable[[Runtime], T], *, alone: bool) -> T:
        if alone:
            return query(runtime)
        return self._guard.call(runtime.socket, lambda: query(runtime), self._timeout)

    def _warn(self, warning: str | None) -> None:
        if warning is not None and warning != self.warning:
            log.warning("%s: incomplete result: %s", self._name, warning)
        self.warning = warning


def _message(runtime: Runtime, error: Exception) -> str:
    match error:
        case HungError(since=since):
            when = datetime.fromtimestamp(since, UTC).isoformat(timespec="seconds")
            return f"{runtime.socket}: no answer since {when}"
        case EngineError():
            return str(error)
    return f"{runtime.socket}: {type(error).__name__}: {error}"
