"""Parts shared by all messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from monitor.alert.message.document import Span, SpanStyle, TextLine
from monitor.alert.message.locale import Locale
from monitor.alert.model import (
    EXTERNAL,
    JOB_RESULTS,
    Batch,
    Notification,
    NotificationReason,
    NotificationSubject,
    Phase,
)
from monitor.base.text import shorten
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text

MARKS = {Severity.CRITICAL: "🔴", Severity.WARNING: "🟠", Severity.INFO: "🔵"}
RESOLVED_MARK = "✅"
SAMPLE_MARK = "🧪"
SUMMARY_MARK = "📊"
LATE_SECONDS = 60.0  # lateness from which a message mentions it
MAX_SUBJECTS_SHOWN = 5
MAX_TITLE_CHARS = 120
MAX_ANSWER_CHARS = 60
MAX_ANSWERS = 6
MAX_SENTENCE_CHARS = 240
MAX_LIST_ENTRY_CHARS = 110
MAX_NAME_CHARS = 60
MAX_NAMES_SHOWN = 3
_MAX_USERS_SHOWN = 10
# Labels that a title names: the first group with any label present. For a pod's alert, that is the pod.
_PLACES = (("node", "gpu", "mount", "condition"), ("service",), ("image",), ("queue",), ("job",), ("namespace",))
WHERE = ("cluster", "node", "gpu", "namespace", "pod", "container", "mount", "service", "condition", "image", "queue")


def labelled(label: str, *spans: Span, order: int) -> TextLine:
    """Line that starts with a label."""
    return TextLine((Span(label, SpanStyle.MUTED), *spans), order)


def mark(notification: Notification) -> str:
    """Symbol at the start of a title."""
    if notification.sample:
        return SAMPLE_MARK
    return RESOLVED_MARK if notification.resolved else MARKS[notification.severity]


def status(notification: Notification, locale: Locale, kind: str = "reason") -> str:
    """Severity and reason in a few words; with kind `short`, only the reason."""
    firing = [subject for subject in notification.subjects if subject.phase is not Phase.RESOLVED]
    reason, count = notification.reason.value, len(firing) + notification.omitted
    if notification.resolved:
        reason = NotificationReason.RESOLVED.value
    elif notification.reason is NotificationReason.RESOLVED:
        reason = "partly"
    elif notification.reason is NotificationReason.MORE:
        count = sum(subject.fresh for subject in firing) + notification.omitted
    elif is_notice(notification):
        reason = "notice"
    severity = locale.severity(notification.severity)
    resolved = len(notification.subjects) - len(firing)
    return locale.say(f"{kind}.{reason}", severity=severity, over=resolved, count=count)


def is_notice(notification: Notification) -> bool:
    """Whether it reports an action of this program or the end of a job, which neither fires nor resolves."""
    return bool(notification.subjects) and all(
        subject.finding.rule.startswith("cleanup-") or is_job_result(subject) for subject in notification.subjects
    )


def is_job_result(subject: NotificationSubject) -> bool:
    """Whether it is the end of a job."""
    return subject.finding.rule in JOB_RESULTS


def topic(notification: Notification, locale: Locale) -> str:
    """Name of the rule, number of alerts, and their place if they share one."""
    rules = list(dict.fromkeys(subject.finding.rule for subject in notification.subjects))
    name = (
        locale.rule(rules[0])
        if len(rules) == 1
        else locale.say("mixed-notices" if is_notice(notification) else "mixed")
    )
    firing = sum(subject.phase is not Phase.RESOLVED for subject in notification.subjects)
    count = (firing or len(notification.subjects)) + notification.omitted
    if count > 1:
        name = locale.say("title-many", what=name, count=count)
    shared = place(common_labels(subject.finding.labels for subject in notification.subjects), locale)
    return name + (locale.say("place", place=shared) if shared else "")


def past(finding: Finding, locale: Locale, *, named: bool = False) -> str:
    """What a problem was, without a verb: a resolved message must not say that it is. `named` adds its place."""
    if finding.headline.key == EXTERNAL:
        return locale.text(finding.headline)  # not our sentence
    cause = locale.cause(finding.cause)
    name = locale.rule(finding.rule) if finding.cause == finding.rule else cause
    where_it_was = place(finding.labels, locale) if named else ""
    return where_it_was + locale.say("place", place=name) if where_it_was else name


def merged_gpus(subjects: Sequence[NotificationSubject]) -> list[tuple[NotificationSubject, int]]:
    """Subjects, those that differ only in the GPU of one pod as one that names all of these GPUs; and their number."""
    groups: dict[object, list[NotificationSubject]] = {}
    for subject in subjects:
        finding, labels = subject.finding, dict(subject.finding.labels)
        gpu = labels.pop("gpu", None)
        if gpu is None or "pod" not in labels:
            groups[subject.fingerprint] = [subject]
        else:
            key = finding.headline.key, subject.phase, tuple(sorted(labels.items()))
            groups.setdefault(key, []).append(subject)
    return [(_of_all_gpus(group), len(group)) for group in groups.values()]


def _of_all_gpus(group: Sequence[NotificationSubject]) -> NotificationSubject:
    first = group[0]
    if len(group) == 1:
        return first
    names = sorted({subject.finding.labels["gpu"] for subject in group}, key=lambda name: (len(name), name))
    gpus, headline = ", ".join(names), first.finding.headline
    labels = {**first.finding.labels, "gpu": gpus}
    values = {**headline.values, "gpu": gpus} if "gpu" in headline.values else headline.values
    finding = structs.replace(first.finding, labels=labels, headline=Text(headline.key, dict(values)))
    return structs.replace(first, finding=finding, since=min(subject.since for subject in group))


def common_labels(label_sets: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Labels that all sets have with the same value."""
    sets = [set(labels.items()) for labels in label_sets]
    return dict(set.intersection(*sets)) if sets else {}


def place(labels: Mapping[str, str], locale: Locale) -> str:
    """Shortest description of where an alert is; empty if its labels do not tell."""
    if "gpu" not in labels and "pod" in labels:
        return shorten(pod_name(labels), MAX_NAME_CHARS)
    for names in _PLACES:
        parts = [
            locale.label(name, labels[name]) if name == "gpu" else labels[name] for name in names if name in labels
        ]
        if parts:
            return " ".join(shorten(part, MAX_NAME_CHARS) for part in parts)
    return ""


def pod_name(labels: Mapping[str, str]) -> str:
    """Name of a pod, with its namespace if known."""
    return f"{labels['namespace']}/{labels['pod']}" if "namespace" in labels else labels["pod"]


def where(subjects: Sequence[NotificationSubject], locale: Locale) -> list[TextLine]:
    """Line that names the place, or the places of several subjects."""
    parts = []
    for name in WHERE:
        values = list(dict.fromkeys(s.finding.labels[name] for s in subjects if name in s.finding.labels))
        if name == "cluster" and not values and locale.cluster:
            values = [locale.cluster]
        if values and (len(subjects) == 1 or name not in ("pod", "gpu", "container")):
            parts.append(locale.label(name, _names(values, locale)))
    return [labelled(locale.say("where"), Span(" · ".join(parts)), order=2)] if parts else []


def affected(notification: Notification, locale: Locale) -> list[TextLine]:
    """Line about the affected users and jobs; owners of firing alerts are mentioned."""
    users = list(dict.fromkeys((*notification.users, *_owners(notification.subjects))))
    jobs = list(dict.fromkeys(s.finding.labels["job"] for s in notification.subjects if "job" in s.finding.labels))
    if not users and not jobs:
        return []
    spans = user_names(users, notification.users, locale)
    if jobs:
        spans += [Span(" · ")] if users else []
        spans.append(Span(locale.label("job", _names(jobs, locale))))
    return [labelled(locale.say("affected"), *spans, order=1)]


def acknowledged(notification: Notification, locale: Locale) -> list[TextLine]:
    """Line about who takes care of the firing alerts, if it is known."""
    firing = (subject for subject in notification.subjects if subject.phase is not Phase.RESOLVED)
    people = list(dict.fromkeys(subject.acknowledged_by for subject in firing if subject.acknowledged_by))
    return [labelled(locale.say("acknowledged"), Span(_names(people, locale)), order=1)] if people else []


def user_names(users: Sequence[str], mentioned: Sequence[str], locale: Locale) -> list[Span]:
    """Names of users, some of them mentioned, up to a limit."""
    spans: list[Span] = []
    for user in users[:_MAX_USERS_SHOWN]:
        style = SpanStyle.MENTION if user in mentioned else SpanStyle.PLAIN
        spans += [Span(locale.say("list")), Span(shorten(user, MAX_NAME_CHARS), style, user)]
    if len(users) > _MAX_USERS_SHOWN:
        spans.append(Span(locale.say("others", count=len(users))))
    return spans[1:]


def _names(names: Sequence[str], locale: Locale) -> str:
    return locale.names([shorten(name, MAX_NAME_CHARS) for name in names], MAX_NAMES_SHOWN)


def _owners(subjects: Iterable[NotificationSubject]) -> list[str]:
    return sorted({subject.finding.labels["user"] for subject in subjects if "user" in subject.finding.labels})


def symptoms(notification: Notification, locale: Locale, limit: int) -> list[TextLine]:
    """Lines about inhibited symptoms, which have no notification of their own."""
    lines = []
    for entry in notification.symptoms[:limit]:
        text = locale.say("symptom", what=locale.rule(entry.rule), count=entry.count)
        names = [name for name in (place(labels, locale) for labels in entry.examples[:MAX_NAMES_SHOWN]) if name]
        more = locale.say("symptom-examples", names=locale.say("list").join(names)) if names else ""
        lines.append(labelled(locale.say("symptoms"), Span(text, SpanStyle.BOLD), Span(more), order=2))
    return lines


def lateness(batch: Batch, notification: Notification, locale: Locale) -> list[TextLine]:
    """Line about the lateness of a message, if it is late."""
    seconds = batch.at - notification.due_at
    return [TextLine((Span(locale.say("late", seconds=seconds), SpanStyle.BAD),), 1)] if seconds > LATE_SECONDS else []


def link(url: str | None, locale: Locale) -> list[TextLine]:
    """Line with a link to the page, if there is one."""
    return [TextLine((Span(locale.say("link"), SpanStyle.LINK, url),), 1)] if url else []


def answer_links(batch: Batch, locale: Locale) -> list[TextLine]:
    """Lines with the links at which owners answer.

    A message about several users may reach all of them, so that each may keep, but none release.
    """
    users = {user for notification in batch.notifications for user in notification.users}
    answers = [answer for notification in batch.notifications for answer in notification.answers]
    lines = []
    for answer in [answer for answer in answers if len(users) <= 1 or not answer.may_release][:MAX_ANSWERS]:
        text = locale.say("answer-any" if answer.may_release else "answer", name=shorten(answer.name, MAX_ANSWER_CHARS))
        if (url := locale.page_url(answer.path)) is not None:
            lines.append(TextLine((Span(text, SpanStyle.LINK, url),), 1))
    return lines
