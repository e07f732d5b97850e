"""The timeline of an alert: events, notifications, silences and actions, oldest first."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.access.audit import AuditEntry
from monitor.alert.delivery.mentions import Mention
from monitor.alert.matchers import parse_matcher
from monitor.alert.model import Acknowledgement, Alert, NotificationReason, Phase
from monitor.alert.mute import AlertView
from monitor.alert.silences import Silence
from monitor.alert.store import AlertEvent, AlertEventKind
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from monitor.present.alerts import LocalizedAlert, localize_alerts
from monitor.present.timeline import MAX_ENTRIES, action_entries, alert_timeline, in_order

AT = 1_700_000_000.0
LABELS = {"node": "gpu01", "gpu": "3", "pod": "bert-0", "namespace": "nlp", "user": "zhang"}


def alert(**more: Any) -> Alert:
    headline = Text(key="node-down.kubelet-silent", values={"node": "gpu01", "seconds": 90.0})
    finding = Finding(
        rule="gpu-zombie", severity=Severity.CRITICAL, cause="x", labels=LABELS, headline=headline, since=AT - 60
    )
    given: dict[str, Any] = {"phase": Phase.FIRING, "first_seen_at": AT, "seen_at": AT, "fired_at": AT}
    return Alert(fingerprint="f", finding=finding, **(given | more))


def event(at: float, what: AlertEventKind, **more: Any) -> AlertEvent:
    return AlertEvent(at=AT + at, what=what, alert=alert(**more))


def mention(at: float, receiver: str, reason: str = "new", state: str = "sent", answer: str | None = None) -> Mention:
    return Mention(receiver=receiver, reason=NotificationReason(reason), at=AT + at, state=state, answer=answer)


def silence(begin: float, end: float, matcher: str = "node=gpu01") -> Silence:
    return Silence(
        id="s", matchers=(parse_matcher(matcher),), starts_at=AT + begin, ends_at=AT + end, author="li", comment="fans"
    )


def story(over: float | None = None, **more: Any) -> list[tuple[float, str, str]]:
    """Time, event and person of each entry, as of 1000 s after the alert fired."""
    resolved = {} if over is None else {"phase": Phase.RESOLVED, "resolved_at": AT + over}
    given = {"events": (), "mentions": (), "silences": ()} | more
    begun = alert(**resolved)
    begun = replace(begun, finding=replace(begun.finding, since=more.get("since", AT - 60)))
    entries = alert_timeline(begun, given["events"], given["mentions"], given["silences"], AT + 1000)
    return [(entry.at - AT, entry.what, entry.who) for entry in entries]


STORIES: list[tuple[str, dict[str, Any], list[tuple[float, str, str]]]] = [
    ("the problem is older than the alert", {}, [(-60, "began", "")]),
    (
        "events keep their order",
        {"events": (event(300, AlertEventKind.RESOLVED), event(0, AlertEventKind.FIRED)), "over": 300},
        [(-60, "began", ""), (0, "fired", ""), (300, "resolved", "")],
    ),
    (
        "receivers of one notification are one entry",
        {"mentions": (mention(9, "mail"), mention(5, "wecom"), mention(400, "wecom", "repeat"))},
        [(-60, "began", ""), (5, "notified", "wecom, mail"), (400, "notified", "wecom")],
    ),
    (
        "one that was rejected is an entry of its own",
        {"mentions": (mention(5, "wecom"), mention(6, "mail", state="parked", answer="550"))},
        [(-60, "began", ""), (5, "notified", "wecom"), (6, "notified", "mail")],
    ),
    (
        "a silence that has ended",
        {"silences": (silence(100, 200),)},
        [(-60, "began", ""), (100, "silenced", "li"), (200, "unsilenced", "")],
    ),
    (
        "a silence that was there before",
        {"silences": (silence(-500, 5000),)},
        [(-60, "began", ""), (0, "silenced", "li")],
    ),
    ("the alert fired at once", {"since": AT - 0.5}, []),
    ("a silence of others", {"silences": (silence(1, 2, "node=gpu02"),)}, [(-60, "began", "")]),
    ("a silence after its end", {"silences": (silence(400, 500),), "over": 300}, [(-60, "began", "")]),
    (
        "who takes care of it",
        {"events": (event(7, AlertEventKind.ACKNOWLEDGED, acknowledged=Acknowledgement(at=AT + 7, by="root")),)},
        [(-60, "began", ""), (7, "acknowledged", "root")],
    ),
]


@pytest.mark.parametrize(("given", "expect"), [row[1:] for row in STORIES], ids=[row[0] for row in STORIES])
def test_what_happened(given: dict[str, Any], expect: list[tuple[float, str, str]]) -> None:
    assert story(**given) == expect


def test_an_answer_is_shown_only_if_it_was_not_delivered() -> None:
    mentions = (mention(1, "wecom", answer="ok"), mention(100, "mail", state="open", answer="timed out"))
    entries = alert_timeline(alert(), (), mentions, (), AT + 1000)
    assert [entry.detail for entry in entries] == ["", "", "timed out"]


def test_of_very_many_entries_the_latest_are_shown() -> None:
    mentions = [mention(100.0 * number, "wecom", "repeat") for number in range(MAX_ENTRIES + 5)]
    entries = alert_timeline(alert(), (), mentions, (), AT + 1_000_000)
    assert len(entries) == MAX_ENTRIES
    assert entries[-1].at == mentions[-1].at


def audited(at: float, what: str, on: str, result: str = "done") -> AuditEntry:
    return AuditEntry(
        id=1, at=AT + at, who="root", role="admin", how="session", peer="", what=what, on=on, result=result
    )


ACTIONS = [
    (audited(5, "release-gpu", "kill python3 on gpu01/3"), True),
    (audited(5, "release-gpu", "kill python3 on gpu01/33"), False),
    (audited(5, "release-gpu", "evict nlp/bert-0 on gpu02/7"), True),
    (audited(5, "release-gpu", "nlp/bert-0 on gpu01/3", "begun"), False),
    (audited(5, "release-gpu", "gpu01/3", "refused"), True),
    (audited(5, "delete-pods", "delete nlp/bert-0"), True),
    (audited(5, "delete-pods", "delete nlp/bert-00"), False),
    (audited(5, "cordon", "cordon gpu01"), True),
    (audited(5, "cordon", "cordon gpu02"), False),
    (audited(5, "cleanup-run", "policy=node-images node=gpu01"), True),
    (audited(5, "sign-in", "gpu01"), False),
    (audited(-600, "cordon", "cordon gpu01"), False),
    (audited(2000, "cordon", "cordon gpu01"), False),
]


def localized() -> LocalizedAlert:
    return localize_alerts((AlertView(alert=alert()),), "en")[0]


@pytest.mark.parametrize(("entry", "expect"), ACTIONS, ids=[f"{row[0].on} at {row[0].at - AT:g}" for row in ACTIONS])
def test_actions_on_the_subject_of_an_alert(entry: AuditEntry, expect: bool) -> None:
    found = in_order(action_entries((entry,), localized(), AT + 1000))
    assert [(each.what, each.who, each.state) for each in found] == (
        [(entry.what, "root", entry.result)] if expect else []
    )
