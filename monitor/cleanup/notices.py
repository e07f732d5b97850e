"""Notifications about cleanup: to owners in advance, to administrators before the first run and after each run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace as changed

from monitor.alert.model import (
    AnswerLink,
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
    fingerprint_of,
    labels_of,
)
from monitor.alert.routes import Route, routes_for
from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry
from monitor.cleanup.model import CleanupPlan, Item
from monitor.cleanup.policy import CleanupPolicy, DatasetPolicy, GpuPolicy
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text, Value

REPORT, NOTICE, ANNOUNCED = "cleanup-report", "cleanup-notice", "cleanup-announced"
RULES = (REPORT, NOTICE, ANNOUNCED)
MAX_NAMED_ITEMS = 3
_MAX_CHARS = 200
AnswerPath = Callable[[Item, bool], str | None]  # with whether the owner may release the item


@dataclass(frozen=True)
class NoticeRouting:
    """Routes and receivers of alerts, the cluster's name, and the users that a receiver reaches alone, by receiver."""

    routes: tuple[Route, ...] = ()
    receivers: tuple[str, ...] = ()
    cluster: str | None = None
    private: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def receivers_for(self, policy: CleanupPolicy | None, finding: Finding) -> tuple[str, ...]:
        """Receivers that the policy names, otherwise those of the alert routes."""
        named = policy.receivers if policy is not None else ()
        if named:
            return tuple(name for name in named if name in self.receivers)
        routes = routes_for(labels_of(finding, self.cluster), self.routes)
        return tuple(dict.fromkeys(name for route in routes for name in route.receivers if name in self.receivers))


def report(
    policy: CleanupPolicy | None, run: CleanupRun, entries: Sequence[JournalEntry], routing: NoticeRouting
) -> tuple[Notification, ...]:
    """Report on a run that ended; none for a run without items."""
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
    evidence += [_outcome("failed", entry) for entry in failed[:MAX_NAMED_ITEMS]]
    evidence += [_outcome("kept", entry) for entry in left[:MAX_NAMED_ITEMS]]
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
    return _notifications(policy, finding, f"{run.id}", routing, run.ended_at or run.started_at)


def dry_run_report(
    policy: CleanupPolicy, run: CleanupRun, plan: CleanupPlan, routing: NoticeRouting
) -> tuple[Notification, ...]:
    """Report on a plan that was not executed; none for an empty plan."""
    if not plan.items:
        return ()
    values: dict[str, Value] = {"policy": policy.name, "count": len(plan.items), "bytes": plan.frees_bytes}
    finding = Finding(
        rule=REPORT,
        severity=Severity.INFO,
        cause=run.kind,
        labels=_labels(policy.name, run.node),
        headline=Text(key="cleanup.report.dry-run", values=values),
        evidence=_plan_evidence(plan),
        advice=(Text(key="cleanup.report.dry-run.advice", values={"policy": policy.name}),),
        since=run.started_at,
    )
    return _notifications(policy, finding, run.id, routing, run.started_at)


def refusal_report(
    policy: CleanupPolicy, run: CleanupRun, plan: CleanupPlan, routing: NoticeRouting
) -> tuple[Notification, ...]:
    """Report that nothing could be planned, so that a policy that cannot act does not go unnoticed."""
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
    return _notifications(policy, finding, run.id, routing, run.started_at)


def announcement(
    policy: CleanupPolicy, plan: CleanupPlan, routing: NoticeRouting, now: float
) -> tuple[Notification, ...]:
    """Announcement of a policy that is about to be enforced for the first time, with its plan."""
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
        evidence=_plan_evidence(plan),
        advice=(Text(key="cleanup.announced.advice", values={"policy": policy.name}),),
        since=now,
    )
    return _notifications(policy, finding, policy.fingerprint, routing, now)


def notices(
    policy: DatasetPolicy | GpuPolicy,
    items: Iterable[Item],
    routing: NoticeRouting,
    now: float,
    answer: AnswerPath = lambda _item, _may_release: None,
) -> tuple[dict[str, str | None], tuple[Notification, ...]]:
    """Owners by item id, and one notification per owner and receiver; items without a receiver are left out.

    `answer` returns the path of the page where the owner of an item answers, if there is one. Only a message that
    reaches the owner alone permits to release it.
    """
    by_owner: dict[str | None, list[Item]] = {}
    for item in items:
        by_owner.setdefault(item.owner, []).append(item)
    notified: dict[str, str | None] = {}
    messages: list[Notification] = []
    for owner, owned in sorted(by_owner.items(), key=lambda pair: pair[0] or ""):
        finding = _notice(policy, owner, owned, now)
        digest = hashlib.sha256(f"{owner} {now!r}".encode()).hexdigest()[:8]
        created = _notifications(policy, finding, digest, routing, now, owner)
        if owner is not None:
            created = tuple(_with_links(message, owner, owned, routing, answer) for message in created)
        if created:
            notified |= {item.id: owner for item in owned}
            messages += created
    return notified, tuple(messages)


def _notice(policy: DatasetPolicy | GpuPolicy, owner: str | None, items: Sequence[Item], now: float) -> Finding:
    key = "nobody" if owner is None else policy.kind
    values: dict[str, Value] = {"policy": policy.name, "count": len(items), "seconds": policy.notice}
    values |= {"owner": owner or "?", "bytes": sum(item.frees_bytes or 0 for item in items)}
    evidence = [item.why for item in items[:MAX_NAMED_ITEMS]]
    if isinstance(policy, DatasetPolicy):
        values |= {"root": policy.root}
        evidence = [_item_with_age(item, now) for item in items[:MAX_NAMED_ITEMS]]
    labels = _labels(policy.name, items[0].node) | ({"user": owner[:_MAX_CHARS]} if owner else {})
    return Finding(
        rule=NOTICE,
        severity=Severity.WARNING,
        cause=policy.kind,
        labels=labels,
        headline=Text(key=f"cleanup.notice.{key}", values=values),
        evidence=tuple(evidence),
        advice=(Text(key=f"cleanup.notice.{policy.kind}.advice"),),
        since=now,
    )


def _with_links(
    message: Notification, owner: str, items: Sequence[Item], routing: NoticeRouting, answer: AnswerPath
) -> Notification:
    """The notice with links for the first items."""
    private = owner in routing.private.get(message.receiver, ())
    paths = ((item.name[:_MAX_CHARS], answer(item, private)) for item in items[:MAX_NAMED_ITEMS])
    links = tuple(AnswerLink(name=name, path=path, may_release=private) for name, path in paths if path is not None)
    if not links:
        return message
    (subject,) = message.subjects
    finding = changed(subject.finding, advice=(*subject.finding.advice, Text(key="cleanup.notice.keep")))
    return changed(message, subjects=(changed(subject, finding=finding),), answers=links)


def _headline(run: CleanupRun, entries: Sequence[JournalEntry], counts: dict[str, Value]) -> Text:
    if run.trigger != "release":
        return Text(key="cleanup.report.done", values=counts)
    gpu = entries[0].item.why.values.get("gpu", "?")
    return Text(
        key="cleanup.report.release", values=counts | {"by": run.by or "?", "gpu": gpu, "node": run.node or "?"}
    )


def _outcome(key: str, entry: JournalEntry) -> Text:
    values: dict[str, Value] = {"name": entry.item.name[:_MAX_CHARS], "outcome": entry.outcome or "?"}
    if key == "failed":
        values["message"] = (entry.message or "?")[:_MAX_CHARS]
    return Text(key=f"cleanup.report.{key}", values=values)


def _item_with_size(item: Item) -> Text:
    if item.frees_bytes is None:
        return item.why
    return Text(key="cleanup.report.item", values={"name": item.name[:_MAX_CHARS], "bytes": item.frees_bytes})


def _plan_evidence(plan: CleanupPlan) -> tuple[Text, ...]:
    """Distinct warnings, which several nodes may share, and the first items."""
    warnings: list[Text] = []
    for warning in plan.warnings:
        if warning not in warnings:
            warnings.append(warning)
    return (*warnings[:MAX_NAMED_ITEMS], *(_item_with_size(item) for item in plan.items[:MAX_NAMED_ITEMS]))


def _item_with_age(item: Item, now: float) -> Text:
    values: dict[str, Value] = {"name": item.name[:_MAX_CHARS], "bytes": item.frees_bytes or 0}
    return Text(key="cleanup.notice.item", values=values | {"seconds": max(0.0, now - (item.last_used_at or now))})


def _labels(policy: str, node: str | None) -> dict[str, str]:
    return {"service": f"cleanup/{policy}"} | ({"node": node} if node is not None else {})


def _notifications(
    policy: CleanupPolicy | None,
    finding: Finding,
    digest: str,
    routing: NoticeRouting,
    now: float,
    owner: str | None = None,
) -> tuple[Notification, ...]:
    """One notification per receiver, each in its own group: pending notifications are not merged."""
    group = f"{finding.key}|{digest}"
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
            users=(owner,) if owner is not None else (),
        )
        for receiver in routing.receivers_for(policy, finding)
    )
