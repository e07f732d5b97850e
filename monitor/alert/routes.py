"""Routes: who is told about what, how soon and how often."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from monitor.alert.matchers import Matcher, matches
from monitor.alert.windows import QuietHours


@dataclass(frozen=True)
class Route:
    """What meets the matchers goes to these receivers, and to later routes as well if `go_on`.

    `group_wait` is for how long after the first alert of a group others are waited for, `group_interval` the least time
    between two messages about more of the same, `repeat` after how long what still fires is told again. In `quiet`
    hours only what is critical is told. Raise ValueError when a time makes no sense.
    """

    receivers: tuple[str, ...]
    matchers: tuple[Matcher, ...] = ()
    repeat: float = 14400.0
    group_wait: float = 0.5
    group_interval: float = 30.0
    quiet: QuietHours | None = None
    continue_matching: bool = False

    def __post_init__(self) -> None:
        if self.repeat <= 0 or self.group_wait < 0 or self.group_interval < 0:
            raise ValueError("repeat must be more than 0 seconds; group_wait and group_interval not less than 0")


def routes_for(labels: Mapping[str, str], routes: Iterable[Route]) -> tuple[Route, ...]:
    """Given the labels of an alert, return the routes it takes: the first that it meets, and more where one goes on."""
    taken = []
    for route in routes:
        if matches(route.matchers, labels):
            taken.append(route)
            if not route.continue_matching:
                break
    return tuple(taken)


def receivers_of(routes: Iterable[Route]) -> frozenset[str]:
    """Return everybody who is told anything at all by these routes."""
    return frozenset(receiver for route in routes for receiver in route.receivers)


def shortest_intervals(routes: Collection[Route]) -> Route:
    """Given the routes of the alerts of one group, at least one, return one that waits no longer than any of them."""
    return Route(
        receivers=(),
        repeat=min(route.repeat for route in routes),
        group_wait=min(route.group_wait for route in routes),
        group_interval=min(route.group_interval for route in routes),
    )
