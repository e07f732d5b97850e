"""Input of a doctor run, and the values that several checks share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from monitor.base.threads import CallOutcome, outcome_of
from monitor.config.root import Config

T = TypeVar("T")


@dataclass(frozen=True)
class SentMessage:
    """Test message to a receiver, and the receiver's answer without secrets."""

    name: str
    ok: bool
    answer: str


@dataclass(frozen=True)
class Terminal:
    """Language and character encoding of the output."""

    lang: str
    encoding: str


@dataclass(frozen=True)
class DoctorRequest:
    """Input of a doctor run. `problems` are the errors of the configuration, each `file:line: setting: message`.

    `send` sends a test message to each receiver; None: send nothing.
    """

    path: str | None
    config: Config | None
    problems: tuple[str, ...]
    terminal: Terminal
    send: Callable[[], tuple[SentMessage, ...]] | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)


class NoConfigError(Exception):
    """The configuration could not be read."""


class CachedValue(Generic[T]):
    """A value that the first caller reads while the others wait."""

    def __init__(self, read: Callable[[], T]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._outcome: CallOutcome[T] | None = None

    def get(self) -> T:
        """Return the value, or raise what reading it raised."""
        with self._lock:
            if self._outcome is None:
                self._outcome = outcome_of(self._read)
        if self._outcome.error is not None:
            raise self._outcome.error
        return self._outcome.value  # type: ignore[return-value]  # None only if that is what was read


class DoctorContext:
    """The request, and everything read for it so far."""

    def __init__(self, request: DoctorRequest) -> None:
        self.request = request
        self._lock = threading.Lock()
        self._values: dict[Callable[[DoctorContext], Any], CachedValue[Any]] = {}

    def cached(self, read: Callable[[DoctorContext], T]) -> T:
        """Value of `read`, which is called once per run."""
        with self._lock:
            value: CachedValue[T] = self._values.setdefault(read, CachedValue(partial(read, self)))
        return value.get()

    @property
    def config(self) -> Config:
        """Return the configuration. Raise NoConfigError."""
        if self.request.config is None:
            raise NoConfigError
        return self.request.config

    @property
    def in_pod(self) -> bool:
        return "KUBERNETES_SERVICE_HOST" in self.request.environ
