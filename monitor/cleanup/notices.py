"""What is told of cleanup: to owners ahead of it, to administrators before its first act and after each run. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from monitor.alert.model import Notification, NotificationReason, NotificationSubject, Phase, fingerprint_of, labels_of
from monitor.alert.routes import Route, routes_for
from monitor.cleanup.journal import Entry, ItemState, Run
from monitor.cleanup.model import Item, Plan
from monitor.cleanup.policy import DatasetPolicy, GpuPolicy, Policy
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

REPORT, NOTICE, ANNOUNCED = "cleanup-report", "cleanup-notice", "cleanup-announced"
RULES = (REPORT, NOTICE, ANNOUNCED)
SHOWN = 3
_LONGEST = 200


@dataclass(frozen=True)
class Address:
    """Who may be told: the routes of alerts, who receives anything at all, and the cluster's name."""

    routes: tuple[Route, ...] = ()
    receivers: tuple[str, ...] = ()
    cluster: str | None = None

    def to(self, policy: Policy | None, finding: Finding) -> tuple[str, ...]:
        """Return who is told: those that the policy names, else those that the routes lead to."""
        named = policy.receivers if policy is not None else ()
        if named:
            return tuple(each for each in named if each in self.receivers)
        routes = routes_for(labels_of(finding, self.cluster), self.routes)
        return tuple(dict.fromkeys(each for route in routes for each in route.receivers if each in self.receivers))


def report(policy: Policy | None, run: Run, entries: Sequence[Entry], address: Address) -> tuple[Notification, ...]:
    """Given a run that is over, return what is told of it; nothing of one that had nothing to do."""
    if not entries:
        return ()
    failed = [entry for entry in entries if entry.state is ItemState.FAILED]
    left = [entry for entry in entries if entry.state in (ItemState.REFUSED, ItemState.LATER)]
    counts: dict[str, Value] = {
        "policy": run.policy,
        "freed": run.freed_bytes,
        "done": sum(entry.state is ItemState.DONE for entry in entries),
        "left": len(left),
        "failed": len(failed),
    }
    evidence = [Text(key=f"cleanup.end.{run.end}")]
    if run.before is not None and run.after is not None:
        evidence.insert(0, Text(key="cleanup.report.disk", values={"before": run.before, "after": run.after}))
    evidence += [_outcome("failed", entry) for entry in failed[:SHOWN]]
    evidence += [_outcome("kept", entry) for entry in left[:SHOWN]]
    finding = Finding(
        rule=REPORT,
        severity=Severity.WARNING if failed or run.end in ("errors", "unmeasured") else Severity.INFO,
        cause=run.kind,
        labels=_labels(run.policy, run.node),
        headline=_headline(run, entries, counts),
        evidence=tuple(evidence),
        advice=(Text(key="cleanup.report.advice"),),
        since=run.started_at,
    )
    return _notifications(policy, finding, f"{run.id}", address, run.ended_at or run.started_at)


def dry_run_report(policy: Policy, run: Run, plan: Plan, address: Address) -> tuple[Notification, ...]:
    """Given a plan that is not carried out, return what is told of it; nothing if it is empty."""
    if not plan.items:
        return ()
    values: dict[str, Value] = {"policy": policy.name, "count": len(plan.items), "bytes": plan.frees_bytes}
    finding = Finding(
        rule=REPORT,
        severity=Severity.INFO,
        cause=run.kind,
        labels=_labels(policy.name, run.node),
        headline=Text(key="cleanup.report.dry-run", values=values),
        evidence=_planned(plan),
        advice=(Text(key="cleanup.report.dry-run.advice", values={"policy": policy.name}),),
        since=run.started_at,
    )
    return _notifications(policy, finding, run.id, address, run.started_at)


def refusal_report(policy: Policy, run: Run, plan: Plan, address: Address) -> tuple[Notification, ...]:
    """Given that there is no plan, return what is told of that: a policy that cannot act should not go unnoticed."""
    if plan.refused is None:
        return ()
    finding = Finding(
        rule=REPORT,
        severity=Severity.WARNING,
        cause=run.kind,
        labels=_labels(policy.name, run.node),
        headline=plan.refused,
        advice=(Text(key="cleanup.report.advice"),),
        since=run.started_at,
    )
    return _notifications(policy, finding, run.id, address, run.started_at)


def announcement(policy: Policy, plan: Plan, address: Address, now: float) -> tuple[Notification, ...]:
    """Given a policy that is about to act for the first time, and its plan, return what is told of that."""
    values: dict[str, Value] = {
        "policy": policy.name,
        "seconds": policy.announce,
        "count": len(plan.items),
        "bytes": plan.frees_bytes,
    }
    finding = Finding(
        rule=ANNOUNCED,
        severity=Severity.WARNING,
        cause=policy.kind,
        labels=_labels(policy.name, plan.node),
        headline=Text(key="cleanup.announced", values=values),
        evidence=_planned(plan),
        advice=(Text(key="cleanup.announced.advice", values={"policy": policy.name}),),
        since=now,
    )
    return _notifications(policy, finding, policy.fingerprint, address, now)


def notices(
    policy: DatasetPolicy | GpuPolicy, items: Iterable[Item], address: Address, now: float
) -> tuple[dict[str, str | None], tuple[Notification, ...]]:
    """Given items whose owners have to be told, return whom that concerns, by item, and the messages: one an owner.

    What nobody can be told of is not among them.
    """
    by_owner: dict[str | None, list[Item]] = {}
    for item in items:
        by_owner.setdefault(item.owner, []).append(item)
    told: dict[str, str | None] = {}
    messages: list[Notification] = []
    for owner, theirs in sorted(by_owner.items(), key=lambda each: each[0] or ""):
        finding = _notice(policy, owner, theirs, now)
        mark = hashlib.sha256(f"{owner} {now!r}".encode()).hexdigest()[:8]
        made = _notifications(policy, finding, mark, address, now, (owner,) if owner is not None else ())
        if made:
            told |= {item.id: owner for item in theirs}
            messages += made
    return told, tuple(messages)


def _notice(policy: DatasetPolicy | GpuPolicy, owner: str | None, items: Sequence[Item], now: float) -> Finding:
    what = "nobody" if owner is None else policy.kind
    values: dict[str, Value] = {"policy": policy.name, "count": len(items), "seconds": policy.notice}
    values |= {"owner": owner or "?", "bytes": sum(item.frees_bytes or 0 for item in items)}
    evidence = [item.why for item in items[:SHOWN]]
    if isinstance(policy, DatasetPolicy):
        values |= {"root": policy.root}
        evidence = [_aged(item, now) for item in items[:SHOWN]]
    labels = _labels(policy.name, items[0].node) | ({"user": owner[:_LONGEST]} if owner else {})
    return Finding(
        rule=NOTICE,
        severity=Severity.WARNING,
        cause=policy.kind,
        labels=labels,
        headline=Text(key=f"cleanup.notice.{what}", values=values),
        evidence=tuple(evidence),
        advice=(Text(key=f"cleanup.notice.{policy.kind}.advice"),),
        since=now,
    )


def _headline(run: Run, entries: Sequence[Entry], counts: dict[str, Value]) -> Text:
    if run.trigger != "release":
        return Text(key="cleanup.report.done", values=counts)
    gpu = entries[0].item.why.values.get("gpu", "?")
    return Text(
        key="cleanup.report.release", values=counts | {"by": run.by or "?", "gpu": gpu, "node": run.node or "?"}
    )


def _outcome(what: str, entry: Entry) -> Text:
    values: dict[str, Value] = {"name": entry.item.name[:_LONGEST], "outcome": entry.outcome or "?"}
    if what == "failed":
        values["message"] = (entry.message or "?")[:_LONGEST]
    return Text(key=f"cleanup.report.{what}", values=values)


def _sized(item: Item) -> Text:
    if item.frees_bytes is None:
        return item.why
    return Text(key="cleanup.report.item", values={"name": item.name[:_LONGEST], "bytes": item.frees_bytes})


def _planned(plan: Plan) -> tuple[Text, ...]:
    """Return what is wrong with a policy, each once though it is so on many nodes, and the first of what would go."""
    warnings: list[Text] = []
    for note in plan.warnings:
        if note not in warnings:
            warnings.append(note)
    return (*warnings[:SHOWN], *(_sized(item) for item in plan.items[:SHOWN]))


def _aged(item: Item, now: float) -> Text:
    values: dict[str, Value] = {"name": item.name[:_LONGEST], "bytes": item.frees_bytes or 0}
    return Text(key="cleanup.notice.item", values=values | {"seconds": max(0.0, now - (item.last_used_at or now))})


def _labels(policy: str, node: str | None) -> dict[str, str]:
    return {"service": f"cleanup/{policy}"} | ({"node": node} if node is not None else {})


def _notifications(
    policy: Policy | None, finding: Finding, mark: str, address: Address, now: float, users: tuple[str, ...] = ()
) -> tuple[Notification, ...]:
    """Return one message for each receiver. Each is a group of its own: no two become one while they wait."""
    group = f"{finding.key}|{mark}"
    subject = NotificationSubject(fingerprint=fingerprint_of(finding), finding=finding, phase=Phase.FIRING, since=now)
    return tuple(
        Notification(
            id=hashlib.sha256(f"{receiver} {group} {now!r}".encode("utf-8", "surrogatepass")).hexdigest()[:24],
            receiver=receiver,
            group=group,
            reason=NotificationReason.NEW,
            severity=finding.severity,
            at=now,
            subjects=(subject,),
            users=users,
        )
        for receiver in address.to(policy, finding)
    )
