"""Simulates a week: scheduled events happen, and the product evaluates every few seconds around changes."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from monitor.detect.base import Limits, Rule
from monitor.detect.rules import RULES
from tests.scorecard import everyday
from tests.scorecard.allowed import ALWAYS, KEEP, allowed, collector_seconds, latency_of, limit_seconds, over_within
from tests.scorecard.model import Happening, Occurrence, Tell
from tests.scorecard.product import LOOK, POLL, Product
from tests.scorecard.record import Record
from tests.scorecard.scene import BEGIN, NODES, Scene
from tests.scorecard.week import WEEK

STEP = 300.0  # seconds between evaluations while nothing changes: the longest gap that some rules' history allows ...
CLOSE = 100.0  # ... and while a job needs evaluations less than two minutes apart
CHANGE = 15.0  # seconds after a change with every regular evaluation
LONGEST_CLOSE = 120.0

Action = Callable[[], object]
Done = Callable[[], bool]


class Stage:
    """Scheduled actions, and the intervals with evaluations at the regular rate."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._numbers = itertools.count()
        self._actions: list[tuple[float, int, Action]] = []
        self._close: list[tuple[float, float, Done]] = []

    def at(self, moment: float, action: Action) -> None:
        """Schedule an action."""
        heapq.heappush(self._actions, (moment, next(self._numbers), action))

    def watch(self, start: float, end: float, done: Done = lambda: False) -> None:
        """Evaluate at the regular rate between two times, or until `done`."""
        self._close.append((start, end, done))

    def act_until(self, moment: float) -> None:
        """Execute all actions due by a time."""
        while self._actions and self._actions[0][0] <= moment:
            at, _, action = heapq.heappop(self._actions)
            self._scene.pass_to(at)
            action()
        self._scene.pass_to(moment)

    def next_look(self, now: float, step: float) -> float:
        """Time of the next evaluation, a multiple of LOOK."""
        self._close = [each for each in self._close if each[1] >= now and not (each[0] <= now and each[2]())]
        upcoming = BEGIN + ((now - BEGIN) // step + 1) * step
        for start, _, _ in self._close:
            if start <= now + LOOK:
                return now + LOOK
            upcoming = min(upcoming, BEGIN + (start - BEGIN) // LOOK * LOOK)
        return max(upcoming, now + LOOK)

    def run(self, going: Generator[float | None] | Iterator[float | None], end: float, after: Action) -> None:
        """Run a generator that yields waiting times; None waits until the end."""
        now = self._scene.clock.now
        try:
            waits = next(going)
        except StopIteration:
            after()
            return
        until = end if waits is None else now + waits
        self.watch(until, until + CHANGE)
        self.at(until, lambda: self.run(going, end, after))


def play(
    occurrences: Sequence[Occurrence],
    seed: int,
    *,
    length: float = WEEK,
    rules: Sequence[Rule] = RULES,
    limits: Mapping[str, Limits[Any]] | None = None,
) -> Record:
    """Simulate the occurrences and return the product's record."""
    scene = Scene(seed)
    product = Product(scene, rules, limits)
    scene.populate()
    stage = Stage(scene)
    _schedule_everyday(scene, stage, length, occurrences)
    for each in occurrences:
        _schedule(scene, stage, product.record, each)
    now, end = BEGIN, BEGIN + length
    while now < end:
        stage.act_until(now)
        product.look()
        now = stage.next_look(now, CLOSE if _needs_watching(occurrences, now) else STEP)
    return product.record


def _needs_watching(occurrences: Iterable[Occurrence], now: float) -> bool:
    """Whether an underused job runs: its utilisation is unknown for periods without evaluations."""
    return any(
        each.begin <= now <= each.end and any(tell.rule == "gpu-underused" for tell in each.shape.tells)
        for each in occurrences
    )


def _schedule(scene: Scene, stage: Stage, record: Record, each: Occurrence) -> None:
    """Schedule an outage, with regular evaluations around the expected start and end of its alerts."""

    def begin() -> None:
        happening = Happening(scene, each)
        stage.run(each.shape.act(happening), each.end, happening.clear)

    stage.at(each.begin, begin)
    stage.watch(each.begin - POLL, each.begin + CHANGE)
    for tell in each.shape.tells:
        latency, begin_at = latency_of(tell.rule, tell.cause, urgent=each.urgent), each.begin + tell.begins
        due = begin_at + (limit_seconds(tell.rule, latency.limit) if isinstance(latency.limit, str) else 0.0)
        latest = begin_at + allowed(tell.rule, tell.cause, urgent=each.urgent)
        if latest - due <= LONGEST_CLOSE:  # the time within a longer span is unknown
            stage.watch(due - LOOK, latest + LOOK, partial(_fires, record, each, tell))
            stage.watch(begin_at, begin_at + latest - due - collector_seconds(latency) - ALWAYS)
        gone = each.end + over_within(tell.rule, tell.cause, urgent=each.urgent) - KEEP - ALWAYS - LOOK
        stage.watch(gone, gone + ALWAYS)
        stage.watch(gone + KEEP, gone + KEEP + ALWAYS, partial(_is_over, record, each, tell))


def _fires(record: Record, each: Occurrence, tell: Tell) -> bool:
    """Whether an expected alert fires."""
    labels = each.labels(tell).items()
    return any(one.rule == tell.rule and labels <= one.labels.items() for one in record.firing.values())


def _is_over(record: Record, each: Occurrence, tell: Tell) -> bool:
    return not _fires(record, each, tell)


def _schedule_everyday(scene: Scene, stage: Stage, length: float, occurrences: Sequence[Occurrence]) -> None:
    chance = random.Random(scene.seed + 7)
    for number, moment in enumerate(everyday.arrivals(chance, length)):
        stage.at(BEGIN + moment, partial(everyday.submit_something, scene, number))
    for hour in range(int(length // 3600)):
        stage.at(BEGIN + hour * 3600 + 1800, partial(everyday.tidy, scene))
        stage.at(BEGIN + hour * 3600 + 2700, partial(everyday.breathe, scene))
    for harmless, often in everyday.HARMLESS:
        for _ in range(max(1, round(often * length / WEEK))):
            _schedule_harmless(scene, stage, harmless, chance, length, occurrences)


def _schedule_harmless(
    scene: Scene, stage: Stage, harmless: everyday.Harmless, chance: random.Random, length: float,
    occurrences: Sequence[Occurrence],
) -> None:  # fmt: skip
    """Schedule a harmless event on a node without an outage at that time."""
    while True:
        moment, name = BEGIN + chance.randint(600, int(length) - 600), f"gpu{chance.randint(1, NODES):02d}"
        if not any(name in each.locks and each.begin - 7 * 3600 < moment < each.end + 900 for each in occurrences):
            break
    stage.watch(moment - POLL, moment + CHANGE)

    def begin() -> None:
        stage.run(harmless(scene, scene.cluster.nodes[name]), BEGIN + length, lambda: None)

    stage.at(moment, begin)
