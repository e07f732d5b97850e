"""Silences: what somebody does not want to be told about for a while, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from monitor.alert.matchers import Matcher, matches
from monitor.facts.base import Fact


class Silence(Fact, frozen=True, kw_only=True):
    """From `starts_at` until before `ends_at`, nothing is told about alerts that meet all matchers.

    Raise ValueError when there are no matchers: that would silence everything, and nobody would be told that.
    """

    id: str
    matchers: tuple[Matcher, ...]
    starts_at: float
    ends_at: float
    author: str
    comment: str

    def __post_init__(self) -> None:
        if not self.matchers:
            raise ValueError("a silence needs at least one matcher; alertname=~.+ silences everything")

    def active(self, now: float) -> bool:
        """Return whether it is in force. One that was ended before it began never is."""
        return self.starts_at <= now < self.ends_at


def active_silences(silences: Iterable[Silence], now: float) -> tuple[Silence, ...]:
    """Return the silences that are in force."""
    return tuple(silence for silence in silences if silence.active(now))


def matching_silence(labels: Mapping[str, str], silences: Iterable[Silence], now: float) -> Silence | None:
    """Given the labels of an alert, return the first silence in force that it falls under."""
    return next((each for each in silences if each.active(now) and matches(each.matchers, labels)), None)
