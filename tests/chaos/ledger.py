"""Incidents, notifications, and whether they match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Ours = Callable[[Mapping[str, str]], bool]  # whether labels name something that belongs to the run
FLAPS, FLAP_WINDOW = 4, 1800.0  # firings within seconds that count as flapping: the alert resolves later
LATE = 90.0  # seconds after the end of an incident in which its notification may still arrive, delayed by a receiver
EARLY = 1.0  # clock difference of two threads
REPORT = "CleanupReport"


@dataclass
class Trouble:
    """A real incident from `began` to `ended`. If it need not be reported, it only accounts for notifications.

    Without alert name or labels it matches any.
    """

    what: str
    alert: str | None
    labels: Mapping[str, str]
    began: float
    ended: float | None = None
    must: bool = True

    def fits(self, told: Told) -> bool:
        """Whether this is the incident of a notification, regardless of time."""
        same = self.alert is None or self.alert == told.alert
        return same and all(told.labels.get(name) == value for name, value in self.labels.items())

    def covers(self, told: Told) -> bool:
        """Whether this is the incident of a notification at a valid time."""
        if not self.fits(told) or told.at < self.began - EARLY:
            return False
        return not told.firing or self.ended is None or told.at <= self.ended + LATE


@dataclass(frozen=True)
class Told:
    """One alert in a message that a receiver accepted. Repeated deliveries share the `message` id."""

    at: float
    message: str
    group: str
    firing: bool
    alert: str
    labels: Mapping[str, str]
    since: str = ""

    @property
    def subject(self) -> tuple[str, ...]:
        """Labels without severity and cause.

        A cleanup report is about one run with its start time: the next run on the same node is another subject.
        """
        kept = (f"{name}={value}" for name, value in self.labels.items() if name not in ("severity", "cause"))
        return self.alert, self.since if self.alert == REPORT else "", *sorted(kept)


@dataclass(frozen=True)
class Verdict:
    """Deviations. `same_id` is allowed, because the response to a message may be lost."""

    lost: tuple[str, ...] = ()
    unended: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    explained: Mapping[str, int] = field(default_factory=dict)  # alerts that only a fault accounts for, by its name
    same_id: int = 0
    told: int = 0
    ends: int = 0
    slowest: float = 0.0  # seconds from the start of an incident to its first notification


@dataclass
class Ledger:
    """All incidents and notifications, in order."""

    troubles: list[Trouble] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    def words_of(self, trouble: Trouble) -> list[Told]:
        """Notifications of an incident, without those of a later one of the same kind and subject."""
        after = [each.began for each in self.troubles if each.must and _alike(each, trouble, later=True)]
        until = min(after, default=float("inf"))
        return [each for each in tuple(self.told) if trouble.covers(each) and each.at < until]

    def is_asked_for(self, trouble: Trouble) -> bool:
        """Whether start and end must be reported: not if recurrences may count as flapping."""
        since = trouble.began - FLAP_WINDOW
        before = [each for each in self.troubles if _alike(each, trouble, later=False) and since < each.began]
        return trouble.must and len(before) <= FLAPS - 1  # including itself

    def is_told(self, trouble: Trouble) -> bool:
        return bool(self.words_of(trouble))

    def is_told_over(self, trouble: Trouble) -> bool:
        """Whether the last notification of an incident is its resolution."""
        words = self.words_of(trouble)
        return bool(words) and not words[-1].firing

    def unended(self) -> list[Trouble]:
        """Ended incidents whose last notification is not a resolution."""
        over = [each for each in self.troubles if each.ended is not None and self.is_asked_for(each)]
        return [each for each in over if not self.is_told_over(each)]

    def _only_by_a_fault(self, told: Told) -> str | None:
        """Reason for an alert that no reportable incident accounts for."""
        reasons = [each for each in self.troubles if each.covers(told)]
        if not reasons or not told.firing or any(each.must for each in reasons):
            return None
        return f"{reasons[0].what}: {told.alert}"

    def judge(self) -> Verdict:
        """Compare notifications with incidents."""
        needed = [each for each in self.troubles if self.is_asked_for(each)]
        told = [each for each in needed if self.is_told(each)]
        news, same_id = _without_repetitions(self.told)
        return Verdict(
            lost=tuple(_named(each) for each in needed if not self.is_told(each)),
            unended=tuple(_named(each) for each in self.unended() if each in told),
            wrong=tuple(_shown(each) for each in news if not any(trouble.covers(each) for trouble in self.troubles)),
            again=tuple(_again(news)),
            explained=Counter(why for each in news if (why := self._only_by_a_fault(each))),
            same_id=same_id,
            told=len(told),
            ends=sum(self.is_told_over(each) for each in told),
            slowest=max((self.words_of(each)[0].at - each.began for each in told), default=0.0),
        )


def _alike(one: Trouble, other: Trouble, *, later: bool) -> bool:
    return (one.alert, one.labels) == (other.alert, other.labels) and (one.began > other.began) is later


def _without_repetitions(told: Sequence[Told]) -> tuple[list[Told], int]:
    """Notifications without repeated message ids, and the number of repetitions."""
    seen: set[tuple[object, ...]] = set()
    news = []
    for each in told:
        key = each.message, each.group, each.subject, each.firing
        if key not in seen:
            seen.add(key)
            news.append(each)
    return news, len(told) - len(news)


def _again(news: Iterable[Told]) -> Iterable[str]:
    """Duplicate notifications: same severity and cause as the last one, and not resolved in between."""
    known: dict[tuple[str, ...], tuple[bool, str | None, str | None]] = {}
    for each in news:
        now = each.firing, each.labels.get("severity"), each.labels.get("cause")
        if each.firing and known.get(each.subject) == now:
            yield _shown(each)
        known[each.subject] = now


def _named(trouble: Trouble) -> str:
    return f"{trouble.what} at {trouble.began:.0f}: {trouble.alert} {dict(trouble.labels)}"


def _shown(told: Told) -> str:
    return f"{'firing' if told.firing else 'resolved'} at {told.at:.0f}: {told.alert} {dict(told.labels)}"
