"""actions-refused: an agent refuses requests to act, because of an invalid signature or request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import UNKNOWN, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_value
from monitor.detect.subjects import NodeSubject
from monitor.facts.actions import ActionsFact
from monitor.facts.findings import Finding
from monitor.facts.text import Text, Value

CAUSES = ("signature", "token", "node", "replayed", "too-many", "expired")  # most severe first
REFRESH_SECONDS = 60.0  # after which the headline states anew how long ago the last refusal was


@dataclass(frozen=True)
class Limits:
    """How long no request may be refused until it resolves."""

    quiet: Seconds = 900.0


def evaluate(node: NodeSubject, context: RuleContext, memory: Any, now: float) -> RuleResult:
    """An agent that recently refused requests. The memory holds counts by reason and their last increase."""
    if node.current is None:
        return UNKNOWN
    actions = node.current.snapshot.actions or ActionsFact(enabled=False)
    limits: Limits = context.limits.of({"node": label_value(node.name)})
    entry = _updated(node.current.snapshot.at, actions, memory, now, limits)
    if entry is None or not entry["at"]:
        return RuleResult(memory=entry)
    next_at = min(now + REFRESH_SECONDS, *(at + limits.quiet for at in entry["at"].values()))
    return RuleResult((_finding(node.name, actions, entry, now),), entry, next_at=next_at)


def _updated(at: float, actions: ActionsFact, memory: Any, now: float, limits: Limits) -> dict[str, Any] | None:
    """Counts, time of each recent increase, and start; None without refusals.

    A restarted agent counts from 0 again. On first sight, only the time of the last refusal is known, in the agent's
    clock.
    """
    counts = {reason: count for reason in CAUSES if (count := actions.refused.get(reason, 0)) > 0}
    if not counts:
        return None
    before = memory if isinstance(memory, dict) and memory.keys() == {"counts", "at", "since"} else None
    known = before or {"counts": {}, "at": {}, "since": None}
    age = max(0.0, at - actions.refused_at) if actions.refused_at is not None else 0.0
    rose = now if before is not None else now - age
    times = known["at"] | {reason: rose for reason, count in counts.items() if count != known["counts"].get(reason)}
    # Times in the future, after the clock was set back, would stay recent for too long.
    times = {reason: min(when, now) for reason, when in times.items() if now < when + limits.quiet}
    since = min(known["since"], now) if known["since"] is not None else min(times.values(), default=None)
    return {"counts": counts, "at": times, "since": since if times else None}


def _finding(node: str, actions: ActionsFact, entry: dict[str, Any], now: float) -> Finding:
    refused_at: dict[str, float] = entry["at"]
    cause, *others = (reason for reason in CAUSES if reason in refused_at)
    counts = {reason: actions.refused.get(reason, 0) for reason in CAUSES}
    values: dict[str, Value] = {"node": node, "count": counts[cause], "ago": max(0.0, now - refused_at[cause])}
    return make_finding(
        "actions-refused", cause, {"node": label_value(node)}, values, advice_values={"node": node},
        evidence=(Text(f"actions-refused.{reason}.too", {"count": counts[reason]}) for reason in others),
        since=entry["since"],
    )  # fmt: skip


RULE = Rule(
    "actions-refused", Limits, CAUSES, evaluate, SubjectKind.NODE, uses=("actions", "agent"),
    latency=Latency(resolve_limit="quiet"),
)  # fmt: skip
