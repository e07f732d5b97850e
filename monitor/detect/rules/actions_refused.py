"""actions-refused: somebody wants an agent to act and may not: by a wrong token, by a request that is not good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, Seconds
from monitor.detect.lib.storage import NodeReport, node_reports
from monitor.detect.visibility import label_value
from monitor.facts.actions import ActionsFact
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

CAUSES = ("token", "replayed", "too-many", "expired")  # the gravest first


@dataclass(frozen=True)
class Limits:
    """For how long nothing may be refused until it is over."""

    quiet: Seconds = 900.0


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Find the agents that refused to act lately. Remember how often each has, and for which reasons since when."""
    before: dict[str, Any] = memory if isinstance(memory, dict) else {}
    reports = node_reports(context)
    after = {node: kept for node, kept in before.items() if node in reports.silent}
    findings = []
    for node, report in reports.nodes.items():
        actions = report.snapshot.actions
        if actions is None:
            continue
        labels = {"node": label_value(node)}
        limits: Limits = context.limits.of(labels)
        kept = _kept(report.snapshot.at, actions, before.get(node), context.now, limits)
        if kept is None:
            continue
        after[node] = kept
        if kept["at"]:
            findings.append(_finding(context.now, report, actions, kept))
    return RuleResult(findings=tuple(findings), memory=after, blind=reports.blind_scopes())


def _kept(at: float, actions: ActionsFact, before: Any, now: float, limits: Limits) -> dict[str, Any] | None:
    """Return what to remember of an agent: its counts, when each lately rose, and since when this has been going on.

    An agent that was restarted counts from 0 again. Of one that is seen for the first time it is only known when the
    last of its counts rose, by its own clock.
    """
    counts = {reason: count for reason in CAUSES if (count := actions.refused.get(reason, 0)) > 0}
    if not counts:
        return None
    known = before if isinstance(before, dict) else {"counts": {}, "at": {}, "since": None}
    age = max(0.0, at - actions.refused_at) if actions.refused_at is not None else 0.0
    rose = now if isinstance(before, dict) else now - age
    times = known["at"] | {reason: rose for reason, count in counts.items() if count != known["counts"].get(reason)}
    # A clock that was set back leaves times that are yet to come: they would be lately for as long as it was ahead.
    times = {reason: min(when, now) for reason, when in times.items() if now - when < limits.quiet}
    since = min(known["since"], now) if known["since"] is not None else min(times.values(), default=None)
    return {"counts": counts, "at": times, "since": since if times else None}


def _finding(now: float, report: NodeReport, actions: ActionsFact, kept: dict[str, Any]) -> Finding:
    lately: dict[str, float] = kept["at"]
    cause, *others = (reason for reason in CAUSES if reason in lately)
    seconds = max(0.0, now - lately[cause])
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
        since=kept["since"],
    )


RULE = Rule("actions-refused", Limits, CAUSES, detect, latency={ANY_CAUSE: Latency(resolve_limit="quiet")})
