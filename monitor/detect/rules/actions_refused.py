"""actions-refused: an agent refuses requests to act, because of an invalid signature or request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.labels import label_value
from monitor.detect.lib.storage import node_reports
from monitor.detect.subjects import NodeReport
from monitor.facts.actions import ActionsFact
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

CAUSES = ("signature", "token", "node", "replayed", "too-many", "expired")  # most severe first


@dataclass(frozen=True)
class Limits:
    """How long no request may be refused until it resolves."""

    quiet: Seconds = 900.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Agents that recently refused requests. The memory holds counts by reason and their last increase."""
    before: dict[str, Any] = memory if isinstance(memory, dict) else {}
    reports = node_reports(context)
    after = {node: entry for node, entry in before.items() if node in reports.silent}
    findings = []
    for node, report in reports.nodes.items():
        actions = report.snapshot.actions
        if actions is None:
            continue
        labels = {"node": label_value(node)}
        limits: Limits = context.limits.of(labels)
        entry = _updated(report.snapshot.at, actions, before.get(node), context.now, limits)
        if entry is None:
            continue
        after[node] = entry
        if entry["at"]:
            findings.append(_finding(context.now, report, actions, entry))
    return RuleResult(findings=tuple(findings), memory=after, blind=reports.blind_scopes())


def _updated(at: float, actions: ActionsFact, before: Any, now: float, limits: Limits) -> dict[str, Any] | None:
    """Counts, time of each recent increase, and start; None without refusals.

    A restarted agent counts from 0 again. On first sight, only the time of the last refusal is known, in the agent's
    clock.
    """
    counts = {reason: count for reason in CAUSES if (count := actions.refused.get(reason, 0)) > 0}
    if not counts:
        return None
    known = before if isinstance(before, dict) else {"counts": {}, "at": {}, "since": None}
    age = max(0.0, at - actions.refused_at) if actions.refused_at is not None else 0.0
    rose = now if isinstance(before, dict) else now - age
    times = known["at"] | {reason: rose for reason, count in counts.items() if count != known["counts"].get(reason)}
    # Times in the future, after the clock was set back, would stay recent for too long.
    times = {reason: min(when, now) for reason, when in times.items() if now - when < limits.quiet}
    since = min(known["since"], now) if known["since"] is not None else min(times.values(), default=None)
    return {"counts": counts, "at": times, "since": since if times else None}


def _finding(now: float, report: NodeReport, actions: ActionsFact, entry: dict[str, Any]) -> Finding:
    refused_at: dict[str, float] = entry["at"]
    cause, *others = (reason for reason in CAUSES if reason in refused_at)
    seconds = max(0.0, now - refused_at[cause])
    return Finding(
        rule="actions-refused",
        severity=Severity.WARNING,
        cause=cause,
        labels={"node": label_value(report.node)},
        headline=Text(
            key=f"actions-refused.{cause}",
            values={"node": report.node, "count": actions.refused.get(cause, 0), "seconds": seconds},
        ),
        evidence=tuple(
            Text(key=f"actions-refused.{reason}.too", values={"count": actions.refused.get(reason, 0)})
            for reason in others
        ),
        advice=(Text(key=f"actions-refused.{cause}.advice", values={"node": report.node}),),
        since=entry["since"],
    )


RULE = Rule(
    "actions-refused",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    latency={ANY_CAUSE: Latency(resolve_limit="quiet")},
)
