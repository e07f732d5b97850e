"""Bounded summary of the kernel events of a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import structs

from monitor.agent.kernel.lines import KernelLine
from monitor.facts.kernel import KernelCount, KernelEvent, KernelFacts

MAX_RECENT = 200
SAME_EVENT_SECONDS = 60.0


def add_lines(facts: KernelFacts, lines: Iterable[tuple[float, KernelLine]], skipped_lines: int) -> KernelFacts:
    """Facts with further lines and their times, oldest first. Equal lines within a minute are one event."""
    recent = {_key(event): event for event in facts.recent}
    counts = {count.kind: count for count in facts.counts}
    for at, line in lines:
        _add(recent, at, line)
        known = counts.get(line.kind)
        counts[line.kind] = KernelCount(
            kind=line.kind, count=known.count + 1 if known else 1, last_at=max(at, known.last_at) if known else at
        )
    events = sorted(recent.values(), key=lambda event: event.at)
    return KernelFacts(counts=tuple(counts.values()), recent=_newest(events), skipped_lines=skipped_lines)


def _key(event: KernelEvent) -> tuple[object, ...]:
    minute = event.since // SAME_EVENT_SECONDS
    return event.kind, event.device, event.code, event.fatal, event.container_id, event.pod_uid, minute


def _add(recent: dict[tuple[object, ...], KernelEvent], at: float, line: KernelLine) -> None:
    event = KernelEvent(
        kind=line.kind,
        since=at,
        at=at,
        device=line.device,
        code=line.code,
        fatal=line.fatal,
        container_id=line.owner.container_id,
        pod_uid=line.owner.pod_uid,
        message=line.message,
    )
    known = recent.get(_key(event))
    if known is not None:
        event = structs.replace(event, since=known.since, at=max(at, known.at), count=known.count + 1)
    recent[_key(event)] = event


def _newest(events: list[KernelEvent]) -> tuple[KernelEvent, ...]:
    """At most MAX_RECENT events. The kind with the most events loses its oldest first: a flood hides no other kind."""
    excess = len(events) - MAX_RECENT
    if excess <= 0:
        return tuple(events)
    number = Counter(event.kind for event in events)
    dropped: Counter[str] = Counter()
    for _ in range(excess):
        dropped[max(number, key=lambda kind: number[kind] - dropped[kind])] += 1
    kept = []
    for event in events:
        if dropped[event.kind] > 0:
            dropped[event.kind] -= 1
        else:
            kept.append(event)
    return tuple(kept)
