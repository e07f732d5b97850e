"""Compares alerts with outages."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from tests.scorecard.allowed import TOLD_WITHIN, allowed, over_within
from tests.scorecard.model import Episode, May, Occurrence, Tell


@dataclass(frozen=True)
class Verdict:
    """Result of one expected alert. `delay` is from the start of the outage to the notification."""

    occurrence: Occurrence
    tell: Tell
    delay: float | None
    allowed: float
    wrong_causes: tuple[str, ...] = ()
    ended_early: bool = False
    overstayed: bool = False

    @property
    def outcome(self) -> str:
        """One of detected, late, missed."""
        if self.delay is None:
            return "missed"
        return "detected" if self.delay <= self.allowed else "late"

    @property
    def well(self) -> bool:
        return self.outcome == "detected" and not (self.wrong_causes or self.ended_early or self.overstayed)


@dataclass(frozen=True)
class Score:
    """All verdicts, and the alerts without an outage."""

    verdicts: tuple[Verdict, ...]
    false: tuple[Episode, ...]

    @property
    def well(self) -> bool:
        """Whether every alert was in time with the right cause, and there were no others."""
        return not self.false and all(verdict.well for verdict in self.verdicts)


def judge(occurrences: Sequence[Occurrence], episodes: Sequence[Episode]) -> Score:
    """Compare outages with fired alerts."""
    verdicts, accounted = [], set[int]()
    for occurrence in occurrences:
        for tell in occurrence.shape.tells:
            matching = [each for each in episodes if _tells(each, occurrence, tell)]
            accounted |= {id(each) for each in matching}
            verdicts.append(_verdict(occurrence, tell, matching))
        for may in occurrence.shape.may:
            accounted |= {id(each) for each in episodes if _is_symptom(each, occurrence, may)}
    causes = {each.key for each in episodes if id(each) in accounted}
    false = [each for each in episodes if id(each) not in accounted and not _is_behind(each, causes)]
    return Score(tuple(verdicts), tuple(false))


def _allowed(occurrence: Occurrence, tell: Tell) -> float:
    return allowed(tell.rule, tell.cause, urgent=occurrence.urgent)


def _latest_end(occurrence: Occurrence, tell: Tell) -> float:
    return occurrence.end + over_within(tell.rule, tell.cause, urgent=occurrence.urgent)


def _tells(episode: Episode, occurrence: Occurrence, tell: Tell) -> bool:
    begins = occurrence.begin + tell.begins
    return (
        episode.rule == tell.rule
        and occurrence.labels(tell).items() <= episode.labels.items()
        and begins <= episode.fired_at <= _latest_end(occurrence, tell)
    )


def _is_symptom(episode: Episode, occurrence: Occurrence, may: May) -> bool:
    last = occurrence.end + max((over_within(tell.rule, tell.cause) for tell in occurrence.shape.tells), default=0.0)
    return (
        episode.rule == may.rule
        and occurrence.labels(may).items() <= episode.labels.items()
        and occurrence.begin <= episode.fired_at <= last
    )


def _is_behind(episode: Episode, causes: Set[str]) -> bool:
    """Whether the notification was suppressed because of a matching cause."""
    return episode.told_at is None and (episode.explained_by or "") in causes


def _verdict(occurrence: Occurrence, tell: Tell, matching: Sequence[Episode]) -> Verdict:
    limit = _allowed(occurrence, tell)
    told = [each for each in matching if each.told_at is not None]
    if not told:
        return Verdict(occurrence, tell, None, limit)
    first = min(told, key=lambda each: each.fired_at)
    delay = first.fired_at - occurrence.begin - tell.begins
    waited = (first.told_at or first.fired_at) - first.fired_at
    if waited > TOLD_WITHIN:  # only a recent notification of the same group justifies waiting
        delay += waited
    causes = {cause for each in matching for cause in each.causes}
    wrong = causes - {tell.cause}
    return Verdict(
        occurrence,
        tell,
        delay,
        limit,
        tuple(sorted(wrong)),
        ended_early=any(each.resolved_at is not None and each.resolved_at < occurrence.end for each in matching),
        overstayed=any(
            each.resolved_at is None or each.resolved_at > _latest_end(occurrence, tell) for each in matching
        ),
    )
