from __future__ import annotations

from typing import Any

import pytest

from monitor.alert.matchers import parse_matcher
from monitor.alert.model import Alert, NotificationReason, Phase
from monitor.alert.mute import AlertView
from monitor.alert.silences import Silence
from monitor.alert.store import AlertEvent, AlertEventKind, Delivery
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from monitor.present.alerts import (
    SHOWN,
    SaidAlert,
    Tried,
    alert_table,
    alerts_table,
    deliveries_table,
    history_table,
    say_alerts,
    say_events,
    silences_table,
    tried_table,
    urgent,
)
from monitor.present.node import Table

NOW = 1_700_000_000.0


def alert(node: str, phase: Phase = Phase.FIRING, severity: Severity = Severity.WARNING, **more: Any) -> Alert:
    note = Text(key="node-down.kubelet-silent", values={"node": node, "seconds": 90.0})
    finding = Finding(rule="node-down", severity=severity, cause="x", labels={"node": node}, headline=note)
    return Alert(fingerprint=f"fp-{node}", finding=finding, phase=phase, first_seen_at=NOW - 90, seen_at=NOW, **more)


def said(*shown: AlertView) -> tuple[SaidAlert, ...]:
    return say_alerts(shown, "en")


def column(table: Table, name: str) -> list[str]:
    return [row[table.columns.index(name)] for row in table.rows]


def test_what_fires_and_is_worst_comes_first() -> None:
    alerts = said(
        AlertView(alert=alert("over", Phase.RESOLVED, resolved_at=NOW)),
        AlertView(alert=alert("symptom", severity=Severity.CRITICAL), explained_by="fp-cause"),
        AlertView(alert=alert("mild")),
        AlertView(alert=alert("waiting", Phase.PENDING)),
        AlertView(alert=alert("bad", severity=Severity.CRITICAL), told=("wecom",)),
    )
    assert [each.labels["node"] for each in alerts] == ["bad", "mild", "symptom", "waiting", "over"]
    assert column(alerts_table(alerts, NOW), "subject") == ["node bad", "node mild"]
    assert column(alerts_table(alerts, NOW, everything=True), "told") == [
        "wecom", "", "explained by fp-cause", "", "",
    ]  # fmt: skip
    assert column(alerts_table(alerts, NOW), "for") == ["1m30s", "1m30s"]


@pytest.mark.parametrize(
    ("shown", "expect"),
    [
        ([], False),
        ([AlertView(alert=alert("a"))], True),
        ([AlertView(alert=alert("a"), silenced_by="s")], False),
        ([AlertView(alert=alert("a", severity=Severity.INFO))], False),
        ([AlertView(alert=alert("a", Phase.RESOLVED)), AlertView(alert=alert("b", Phase.PENDING))], False),
    ],
)
def test_what_needs_somebody(shown: list[AlertView], expect: bool) -> None:
    assert urgent(said(*shown)) is expect


def test_of_very_many_the_first_are_shown() -> None:
    table = alerts_table(said(*(AlertView(alert=alert(f"n{number}")) for number in range(SHOWN + 5))), NOW)
    assert (len(table.rows), table.title) == (SHOWN, f"Alerts (the first {SHOWN} of {SHOWN + 5})")


def test_all_about_one_alert_and_how_to_silence_it() -> None:
    table = alert_table(said(AlertView(alert=alert("n1", flapping=True), in_maintenance=True))[0], NOW)
    about = {row[0]: row[1] for row in table.rows}
    assert about["where"] == "node n1"
    assert about["told"] == "maintenance"
    assert about["phase"] == "firing, warning, comes and goes"
    assert about["to silence"].endswith("'alertname=NodeDown' 'node=n1'")


def test_other_tables() -> None:
    silence = Silence(
        id="s1", matchers=(parse_matcher("node=~n.*"),), starts_at=NOW, ends_at=NOW + 60, author="li", comment="why"
    )
    assert silences_table([silence], NOW).rows == (("s1", "node=~n.*", "1m", "li", "why"),)
    event = AlertEvent(at=NOW, what=AlertEventKind.FIRED, alert=alert("n1"))
    assert column(history_table(say_events([event], "zh")), "at (UTC)") == ["2023-11-14 22:13:20"]
    delivery = Delivery(
        id="d", receiver="wecom", group="g", reason=NotificationReason.NEW, severity=Severity.INFO, at=NOW, subjects=1,
        state="parked", late=2.5, attempts=3, word="no\nway",
    )  # fmt: skip
    (row,) = deliveries_table([delivery]).rows
    assert row[1:] == ("wecom", "new", "g", "parked", "2.5s", "3", "no\\nway")
    tried = Tried(receiver="w", kind="wecom", ok=False, answer="93000")
    assert tried_table([tried]).rows == (("w", "wecom", "failed", "93000"),)
    for empty in (alerts_table([], NOW), silences_table([], NOW), history_table([]), deliveries_table([])):
        assert empty.note
