"""One run of the doctor: what all checks are given, and what several of them need and one of them reads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from monitor.base.threads import CallOutcome, outcome_of
from monitor.config.root import Config
from monitor.doctor.checks.agents import AgentsFacts
from monitor.doctor.checks.kubernetes import KubeFacts
from monitor.doctor.checks.receivers import Sent

if TYPE_CHECKING:
    from monitor.kube.client import KubeApi


@dataclass(frozen=True)
class Cluster:
    """The API server as it was met, and the way to it, where there is one."""

    facts: KubeFacts
    api: KubeApi | None = None


@dataclass(frozen=True)
class Terminal:
    """Who reads what is printed: in which language, and how their terminal writes."""

    lang: str
    encoding: str


T = TypeVar("T")


class Once(Generic[T]):
    """A value that several checks need, and the first of them makes while the others wait."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: CallOutcome[T] | None = None

    def get(self) -> T:
        """Return the value, or raise what making it raised."""
        with self._lock:
            if self._made is None:
                self._made = outcome_of(self._make)
        if self._made.error is not None:
            raise self._made.error
        assert self._made.value is not None
        return self._made.value


class NoConfigError(Exception):
    """There is no configuration that could be read."""


@dataclass(frozen=True)
class Request:
    """What the doctor was asked to look at. `send` sends a message to each receiver; None: nothing is sent."""

    path: str | None
    config: Config | None
    problems: tuple[str, ...]
    terminal: Terminal
    send: Callable[[], tuple[Sent, ...]] | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)


class Visit:
    """The request, and what is read once for several checks."""

    def __init__(self, request: Request) -> None:
        # Here: the readers need what is defined above.
        from monitor.doctor.inputs.agents import agents
        from monitor.doctor.inputs.kubernetes import cluster
        from monitor.doctor.inputs.node import agent_could_run

        self.request = request
        self.cluster: Once[Cluster] = Once(lambda: cluster(self))
        self.agents: Once[AgentsFacts] = Once(lambda: agents(self))
        self.here: Once[bool] = Once(lambda: agent_could_run(self))

    @property
    def config(self) -> Config:
        """Return the configuration. Raise NoConfigError."""
        if self.request.config is None:
            raise NoConfigError
        return self.request.config

    @property
    def environ(self) -> Mapping[str, str]:
        return self.request.environ
