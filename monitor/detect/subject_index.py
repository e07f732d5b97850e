"""The interface of an index: which subjects of one kind there are, and which have changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Set
from typing import Any

from monitor.detect.observation import Observation
from monitor.facts.changes import Changes

WHOLE_CLUSTER = ""
Subjects = Mapping[str, Any]  # by key, unique among the subjects of a rule; None: nothing is known about it


class SubjectIndex(ABC):
    """Subjects of one kind. `shared`: several nodes describe a unit, and those that did are remembered."""

    shared = False

    def update(self, changes: Changes, seen: Observation) -> None:  # noqa: B027  # most have nothing to update
        """Take over changes, before any other call of an evaluation."""

    @abstractmethod
    def changed(self, changes: Changes, parts: Set[str]) -> Iterable[str]:
        """Units that a rule which reads these parts has to evaluate."""

    @abstractmethod
    def subjects(self, unit: str, seen: Observation) -> Subjects:
        """Subjects of a unit; none if it is gone."""

    def observers(self, unit: str) -> tuple[str, ...]:
        """Nodes whose snapshots describe a unit."""
        return (unit,)
