"""Routes and the notification policy: which receivers are notified about which alerts, how soon and how often."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from monitor.alert.matchers import Matcher, matches
from monitor.alert.owner_preferences import OwnerBook
from monitor.alert.silences import Silence
from monitor.alert.windows import MaintenanceWindow, QuietHours


@dataclass(frozen=True)
class Route:
    """Receivers of the alerts that match; with `continue_matching` later routes apply as well.

    `group_wait` is how long to wait for more alerts before the first notification about a group, `group_interval` the
    minimum time between notifications about changes, `repeat` the interval of reminders. During `quiet` hours only
    critical alerts are sent. Raise ValueError for invalid intervals.
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


@dataclass(frozen=True)
class NotifyPolicy:
    """Routes, silences and maintenance windows.

    A resolved cause inhibits its symptoms for another `linger` seconds. A resolved alert is kept for `remember`
    seconds, so that its return is recognised. `owners` says which messages owners want.
    """

    routes: tuple[Route, ...]
    silences: tuple[Silence, ...] = ()
    windows: tuple[MaintenanceWindow, ...] = ()
    cluster: str | None = None
    linger: float = 60.0
    remember: float = 1800.0
    owners: OwnerBook = field(default_factory=OwnerBook)


def routes_for(labels: Mapping[str, str], routes: Iterable[Route]) -> tuple[Route, ...]:
    """Routes that an alert takes: the first match, and later matches as long as each says to continue."""
    taken = []
    for route in routes:
        if matches(route.matchers, labels):
            taken.append(route)
            if not route.continue_matching:
                break
    return tuple(taken)


def routes_by_receiver(labels: Mapping[str, str], routes: Iterable[Route]) -> dict[str, Route]:
    """First route of an alert to each receiver. A receiver is never notified about its own failure."""
    by_receiver: dict[str, Route] = {}
    for route in routes_for(labels, routes):
        for receiver in route.receivers:
            if labels.get("service") != f"receiver/{receiver}":
                by_receiver.setdefault(receiver, route)
    return by_receiver


def shortest_intervals(routes: Sequence[Route]) -> Route:
    """Route with the shortest of each interval: the timing of a group whose alerts take several routes."""
    if len(routes) == 1:
        return routes[0]
    return Route(
        receivers=(),
        repeat=min(route.repeat for route in routes),
        group_wait=min(route.group_wait for route in routes),
        group_interval=min(route.group_interval for route in routes),
    )
