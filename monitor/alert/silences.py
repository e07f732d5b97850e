"""Silences: alerts about which no notifications are sent for a while."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import force_setattr

from monitor.alert.matchers import Matcher, matches
from monitor.facts.base import Fact


class Silence(Fact, frozen=True, kw_only=True):
    """Suppresses notifications about alerts that match, from `starts_at` until before `ends_at`.

    `disabled` is why a silence matches nothing: a pattern that an older version or an Alertmanager accepted is invalid
    here. Raise ValueError without matchers: that would silence everything, including the alert that says so.
    """

    id: str
    matchers: tuple[Matcher, ...]
    starts_at: float
    ends_at: float
    author: str
    comment: str
    disabled: str | None = None

    def __post_init__(self) -> None:
        if not self.matchers:
            raise ValueError("a silence needs at least one matcher; alertname=~.+ silences everything")
        problems = (matcher.problem for matcher in self.matchers)
        force_setattr(self, "disabled", next((problem for problem in problems if problem), None))

    def active(self, now: float) -> bool:
        """Whether the silence is in force; one that is disabled or was ended before its start never is."""
        return self.disabled is None and self.starts_at <= now < self.ends_at


def active_silences(silences: Iterable[Silence], now: float) -> tuple[Silence, ...]:
    """Silences that are in force."""
    return tuple(silence for silence in silences if silence.active(now))


def matching_silence(labels: Mapping[str, str], active: Iterable[Silence]) -> Silence | None:
    """First of the active silences that an alert matches."""
    return next((silence for silence in active if matches(silence.matchers, labels)), None)
