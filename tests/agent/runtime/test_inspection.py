"""When a container is inspected, and when the inspection is reused."""

from __future__ import annotations

import pytest

from monitor.agent.runtime.api import EngineError, GoneError, NoAnswerError
from monitor.agent.runtime.inspection import RETRY_SECONDS, InspectionCache, ListedContainer
from monitor.facts import ContainerFact
from tests.support.clock import FakeClock

BROKEN = EngineError("HTTP 500")
SILENT = NoAnswerError("no answer")
GONE = GoneError("HTTP 404")


class Engine:
    """An engine that counts inspections. Only a fact from an inspection has a pid."""

    def __init__(self, *, max_gap: float = 60.0) -> None:
        self.clock = FakeClock()
        self.details: InspectionCache[str] = InspectionCache(self.clock, max_gap)
        self.errors: dict[str, EngineError] = {}
        self.asked: list[str] = []

    def list(self, **revisions: object) -> dict[str, int | None]:
        """List containers by id and revision; return the pid of each."""
        listed = [ListedContainer(name, mark, name) for name, mark in revisions.items()]
        facts = self.details.complete(listed, self._inspect, lambda name: _fact(name, None))
        return {fact.id: fact.pid for fact in facts}

    def _inspect(self, name: str) -> ContainerFact:
        self.asked.append(name)
        if name in self.errors:
            raise self.errors[name]
        return _fact(name, len(self.asked))


def _fact(name: str, pid: int | None) -> ContainerFact:
    return ContainerFact(id=name, runtime="test", state="running", pid=pid)


@pytest.fixture
def engine() -> Engine:
    return Engine()


def test_one_that_does_not_change_is_asked_once(engine: Engine) -> None:
    assert engine.list(a="up", b="up") == {"a": 1, "b": 2}
    engine.clock.advance(15)
    assert engine.list(a="up", b="up") == {"a": 1, "b": 2}
    assert engine.asked == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "first", "then", "asked"),
    [
        ("unchanged", "up", "up", 1),
        ("changed", "up", "exited", 2),
        ("one that may have changed unseen", None, None, 2),
        ("no longer in doubt", None, "up", 2),
    ],
)
def test_a_change_is_asked_about(name: str, first: object, then: object, asked: int, engine: Engine) -> None:
    engine.list(a=first)
    engine.list(a=then)
    assert len(engine.asked) == asked


def test_one_that_is_gone_is_forgotten(engine: Engine) -> None:
    engine.list(a="up")
    assert engine.list() == {}
    assert engine.list(a="up") == {"a": 2}


def test_after_a_long_gap_nothing_is_remembered(engine: Engine) -> None:
    engine.list(a="up")
    engine.clock.advance(60)
    assert engine.list(a="up") == {"a": 2}


def test_one_that_went_since_it_was_listed_is_left_out(engine: Engine) -> None:
    engine.errors["a"] = GONE
    assert engine.list(a="up", b="up") == {"b": 2}


def test_one_that_cannot_be_asked_is_known_as_listed_and_asked_again_later(engine: Engine) -> None:
    engine.errors["a"] = BROKEN
    assert engine.list(a="up", b="up") == {"a": None, "b": 2}
    engine.clock.advance(15)
    assert engine.list(a="up", b="up") == {"a": None, "b": 2}
    assert engine.asked == ["a", "b"]
    engine.errors.clear()
    for _ in range(int(RETRY_SECONDS // 15)):
        engine.clock.advance(15)
        pids = engine.list(a="up", b="up")
    assert pids == {"a": 3, "b": 2}


def test_one_that_hangs_delays_the_others_once(engine: Engine) -> None:
    engine.errors["a"] = SILENT
    assert engine.list(a="up", b="up", c="up") == {"a": None, "b": None, "c": None}
    assert engine.asked == ["a"]
    assert engine.list(a="up", b="up", c="up") == {"a": None, "b": 2, "c": 3}
    assert engine.asked == ["a", "b", "c"]
