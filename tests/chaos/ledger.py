"""What was wrong, what was told of it, and whether the two agree. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Ours = Callable[[Mapping[str, str]], bool]  # given labels, whether they name something that belongs to the run
FLAPS, FLAP_WINDOW = 4, 1800.0  # what fires so often in so many seconds is flapping: it goes on, and ends later
LATE = 90.0  # seconds after the end of a trouble in which word of it may still arrive: it waited for a receiver
EARLY = 1.0  # clocks of two threads
REPORT = "CleanupReport"


@dataclass
class Trouble:
    """Something that really is wrong, from `began` to `ended`. One that need not be told only explains what was told.

    Without an alert's name, or without labels, any explains.
    """

    what: str
    alert: str | None
    labels: Mapping[str, str]
    began: float
    ended: float | None = None
    must: bool = True

    def fits(self, told: Told) -> bool:
        """Return whether this is what was told, whenever that was."""
        same = self.alert is None or self.alert == told.alert
        return same and all(told.labels.get(name) == value for name, value in self.labels.items())

    def covers(self, told: Told) -> bool:
        """Return whether this is what was told, at a time at which it may be."""
        if not self.fits(told) or told.at < self.began - EARLY:
            return False
        return not told.firing or self.ended is None or told.at <= self.ended + LATE


@dataclass(frozen=True)
class Told:
    """One alert in one message that a receiver took. `message` is the id that a repetition has again."""

    at: float
    message: str
    group: str
    firing: bool
    alert: str
    labels: Mapping[str, str]
    since: str = ""

    @property
    def subject(self) -> tuple[str, ...]:
        """Return what it is about: all labels but those that say how bad it is and why.

        A report is about one run, which began at its time: the next run on the same node has its own.
        """
        kept = (f"{name}={value}" for name, value in self.labels.items() if name not in ("severity", "cause"))
        return self.alert, self.since if self.alert == REPORT else "", *sorted(kept)


@dataclass(frozen=True)
class Verdict:
    """What was not as it should be. `same_id` is allowed: the answer to a message may get lost."""

    lost: tuple[str, ...] = ()
    unended: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    explained: Mapping[str, int] = field(default_factory=dict)  # how often only a fault was the reason, by its name
    same_id: int = 0
    told: int = 0
    ends: int = 0
    slowest: float = 0.0  # seconds from the beginning of a trouble to the first word of it


@dataclass
class Ledger:
    """All troubles and all that was told, in order."""

    troubles: list[Trouble] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    def words_of(self, trouble: Trouble) -> list[Told]:
        """Return all that was told of a trouble, and not of a later one of the same kind and subject."""
        after = [each.began for each in self.troubles if each.must and _alike(each, trouble, later=True)]
        until = min(after, default=float("inf"))
        return [each for each in tuple(self.told) if trouble.covers(each) and each.at < until]

    def is_asked_for(self, trouble: Trouble) -> bool:
        """Return whether its beginning and end have to be told: not of what comes so often that it may be flapping."""
        since = trouble.began - FLAP_WINDOW
        before = [each for each in self.troubles if _alike(each, trouble, later=False) and since < each.began]
        return trouble.must and len(before) <= FLAPS - 1  # itself among them

    def is_told(self, trouble: Trouble) -> bool:
        return bool(self.words_of(trouble))

    def is_told_over(self, trouble: Trouble) -> bool:
        """Return whether the last word of a trouble is that it is over."""
        words = self.words_of(trouble)
        return bool(words) and not words[-1].firing

    def unended(self) -> list[Trouble]:
        """Return the troubles that are over, and of which that is not what was told last."""
        over = [each for each in self.troubles if each.ended is not None and self.is_asked_for(each)]
        return [each for each in over if not self.is_told_over(each)]

    def _only_by_a_fault(self, told: Told) -> str | None:
        """Return what explains an alert if no trouble does that has to be told."""
        reasons = [each for each in self.troubles if each.covers(told)]
        if not reasons or not told.firing or any(each.must for each in reasons):
            return None
        return f"{reasons[0].what}: {told.alert}"

    def judge(self) -> Verdict:
        """Return how what was told compares with what was."""
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
    """Return what was told without what came again under the same id, and how often that was."""
    seen: set[tuple[object, ...]] = set()
    news = []
    for each in told:
        key = each.message, each.group, each.subject, each.firing
        if key not in seen:
            seen.add(key)
            news.append(each)
    return news, len(told) - len(news)


def _again(news: Iterable[Told]) -> Iterable[str]:
    """Yield what was told although its receiver knew it: as bad, for the same reason, and not over in between."""
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
