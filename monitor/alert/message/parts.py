"""The parts that messages of every kind are made of. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from monitor.alert.message.document import Span, SpanStyle, TextLine
from monitor.alert.message.locale import Locale
from monitor.alert.model import Batch, Notification, NotificationReason, NotificationSubject, Phase
from monitor.base.text import shorten
from monitor.facts.findings import Severity

MARKS = {Severity.CRITICAL: "🔴", Severity.WARNING: "🟠", Severity.INFO: "🔵"}
RESOLVED_MARK = "✅"
SAMPLE_MARK = "🧪"
SUMMARY_MARK = "📊"
LATE = 60.0  # a message that is later than this says so
SHOWN = 5  # of many subjects
LONGEST_TITLE = 120
LONGEST_SENTENCE = 240
LONGEST_OF_MANY = 110
LONGEST_NAME = 60
_MENTIONED = 10
# What a title names, the first of these that there is; what a pod's alert is about is the pod.
_PLACES = (("pod",), ("node", "gpu", "mount"), ("service",), ("image",), ("queue",), ("job",), ("namespace",))
# What the line about the place names.
WHERE = ("cluster", "node", "gpu", "namespace", "pod", "container", "mount", "service", "image", "queue")


def line(label: str, *spans: Span, order: int) -> TextLine:
    """Return a line that begins with what it is about."""
    return TextLine((Span(label, SpanStyle.MUTED), *spans), order)


def mark(notification: Notification) -> str:
    """Return the sign by which a message is told apart from afar."""
    if notification.sample:
        return SAMPLE_MARK
    return RESOLVED_MARK if notification.resolved else MARKS[notification.severity]


def status(notification: Notification, voice: Locale, kind: str = "reason") -> str:
    """Return how bad it is and why it is told, in a few words; as `short`, only why."""
    firing = [subject for subject in notification.subjects if subject.phase is not Phase.RESOLVED]
    reason, count = notification.reason.value, len(firing)
    if notification.resolved:
        reason = NotificationReason.RESOLVED.value
    elif notification.reason is NotificationReason.RESOLVED:
        reason = "partly"
    elif notification.reason is NotificationReason.MORE:
        count = sum(subject.fresh for subject in firing)
    elif is_notice(notification):
        reason = "notice"
    severity = voice.severity(notification.severity)
    return voice.say(f"{kind}.{reason}", severity=severity, over=len(notification.subjects) - len(firing), count=count)


def is_notice(notification: Notification) -> bool:
    """Return whether it tells of what we did or will do ourselves: nothing that fires and is over some day."""
    return bool(notification.subjects) and all(
        subject.finding.rule.startswith("cleanup-") for subject in notification.subjects
    )


def what(notification: Notification, voice: Locale) -> str:
    """Return what it is about: the rule's name, how many there are, and where if it is one place."""
    rules = list(dict.fromkeys(subject.finding.rule for subject in notification.subjects))
    name = voice.rule(rules[0]) if len(rules) == 1 else voice.say("mixed")
    firing = sum(subject.phase is not Phase.RESOLVED for subject in notification.subjects)
    count = firing or len(notification.subjects)
    if count > 1:
        name = voice.say("title-many", what=name, count=count)
    found = place(common(subject.finding.labels for subject in notification.subjects), voice)
    return name + (voice.say("place", place=found) if found else "")


def common(labels: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Given the labels of several, return those that all of them have alike."""
    sets = [set(each.items()) for each in labels]
    return dict(set.intersection(*sets)) if sets else {}


def place(labels: Mapping[str, str], voice: Locale) -> str:
    """Given labels, return the shortest that tells where it is; empty if they do not say."""
    if "gpu" not in labels and "pod" in labels:
        return shorten(pod_name(labels), LONGEST_NAME)
    for names in _PLACES[1:]:
        parts = [voice.label(name, labels[name]) if name == "gpu" else labels[name] for name in names if name in labels]
        if parts:
            return " ".join(shorten(part, LONGEST_NAME) for part in parts)
    return ""


def pod_name(labels: Mapping[str, str]) -> str:
    """Given the labels of a pod, return its name with its namespace."""
    return f"{labels['namespace']}/{labels['pod']}" if "namespace" in labels else labels["pod"]


def where(subjects: Sequence[NotificationSubject], voice: Locale) -> list[TextLine]:
    """Return the line that names the place: of several subjects, the places that they are spread over."""
    parts = []
    for name in WHERE:
        values = list(dict.fromkeys(s.finding.labels[name] for s in subjects if name in s.finding.labels))
        if name == "cluster" and not values and voice.cluster:
            values = [voice.cluster]
        if values and (len(subjects) == 1 or name not in ("pod", "gpu", "container")):
            parts.append(voice.label(name, voice.names([shorten(value, LONGEST_NAME) for value in values], 3)))
    return [line(voice.say("where"), Span(" · ".join(parts)), order=2)] if parts else []


def affected(notification: Notification, voice: Locale) -> list[TextLine]:
    """Return the line about whom it concerns. Who has something that is wrong now is called by name."""
    users = list(dict.fromkeys((*notification.users, *_owners(notification.subjects))))
    jobs = list(dict.fromkeys(s.finding.labels["job"] for s in notification.subjects if "job" in s.finding.labels))
    if not users and not jobs:
        return []
    spans = names(users, notification.users, voice)
    if jobs:
        told = voice.label("job", voice.names([shorten(job, LONGEST_NAME) for job in jobs], 3))
        spans += [Span(" · ")] if users else []
        spans.append(Span(told))
    return [line(voice.say("affected"), *spans, order=1)]


def names(users: Sequence[str], mentioned: Sequence[str], voice: Locale) -> list[Span]:
    """Given users, return their names, of some of them so that they are notified; no more than one screen takes."""
    spans: list[Span] = []
    for user in users[:_MENTIONED]:
        style = SpanStyle.MENTION if user in mentioned else SpanStyle.PLAIN
        spans += [Span(voice.say("list")), Span(shorten(user, LONGEST_NAME), style, user)]
    if len(users) > _MENTIONED:
        spans.append(Span(voice.say("others", count=len(users))))
    return spans[1:]


def _owners(subjects: Iterable[NotificationSubject]) -> list[str]:
    return sorted({subject.finding.labels["user"] for subject in subjects if "user" in subject.finding.labels})


def symptoms(notification: Notification, voice: Locale, most: int) -> list[TextLine]:
    """Return lines about what is wrong only because of this: it is not told on its own."""
    lines = []
    for each in notification.symptoms[:most]:
        text = voice.say("symptom", what=voice.rule(each.rule), count=each.count)
        names = [name for name in (place(labels, voice) for labels in each.examples[:3]) if name]
        more = voice.say("symptom-examples", names=voice.say("list").join(names)) if names else ""
        lines.append(line(voice.say("symptoms"), Span(text, SpanStyle.BOLD), Span(more), order=2))
    return lines


def late(parcel: Batch, notification: Notification, voice: Locale) -> list[TextLine]:
    """Return a line about how late the message is, if it is."""
    seconds = parcel.at - notification.at
    return [TextLine((Span(voice.say("late", seconds=seconds), SpanStyle.BAD),), 1)] if seconds > LATE else []


def link(address: str | None, voice: Locale) -> list[TextLine]:
    """Return the line that leads to the page, if there is one."""
    return [TextLine((Span(voice.say("link"), SpanStyle.LINK, address),), 1)] if address else []
