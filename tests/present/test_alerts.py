"""Alerts as views and tables."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.alert.matchers import Matcher, parse_matcher
from monitor.alert.model import Alert, NotificationReason, Phase
from monitor.alert.mute import AlertView
from monitor.alert.silences import Silence
from monitor.alert.store import AlertEvent, AlertEventKind, Delivery
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from monitor.present.alerts import (
    LocalizedAlert,
    ReceiverTestResult,
    alerts_table,
    deliveries_table,
    has_urgent,
    history_table,
    localize_alerts,
    localize_events,
    receiver_tests_table,
    silences_table,
)
from monitor.present.table import MAX_ROWS, TextTable, heading

NOW = 1_700_000_000.0


def alert(node: str, phase: Phase = Phase.FIRING, severity: Severity = Severity.WARNING, **more: Any) -> Alert:
    headline = Text(key="node-down.kubelet-silent", values={"node": node, "seconds": 90.0})
    finding = Finding(rule="node-down", severity=severity, cause="x", labels={"node": node}, headline=headline)
    return Alert(fingerprint=f"fp-{node}", finding=finding, phase=phase, first_seen_at=NOW - 90, seen_at=NOW, **more)


def views(*shown: AlertView) -> tuple[LocalizedAlert, ...]:
    return localize_alerts(shown, "en")


def column(table: TextTable, name: str) -> list[str]:
    return [row[table.columns.index(name)] for row in table.rows]


def test_what_fires_and_is_worst_comes_first() -> None:
    alerts = views(
        AlertView(alert=alert("over", Phase.RESOLVED, resolved_at=NOW)),
        AlertView(alert=alert("symptom", severity=Severity.CRITICAL), explained_by="fp-cause"),
        AlertView(alert=alert("mild")),
        AlertView(alert=alert("waiting", Phase.PENDING)),
        AlertView(alert=alert("bad", severity=Severity.CRITICAL), told=("wecom",)),
    )
    assert [each.labels["node"] for each in alerts] == ["bad", "mild", "symptom", "waiting", "over"]
    assert column(alerts_table(alerts, NOW), "subject") == ["node bad", "node mild"]
    assert column(alerts_table(alerts, NOW, everything=True), "notified") == [
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
    assert has_urgent(views(*shown)) is expect


def test_of_very_many_the_first_are_shown() -> None:
    table = alerts_table(views(*(AlertView(alert=alert(f"n{number}")) for number in range(MAX_ROWS + 5))), NOW)
    assert (len(table.rows), heading(table, "en")) == (MAX_ROWS, f"Alerts (the first {MAX_ROWS} of {MAX_ROWS + 5})")


def test_other_tables() -> None:
    silence = Silence(
        id="s1", matchers=(parse_matcher("node=~n.*"),), starts_at=NOW, ends_at=NOW + 60, author="li", comment="why"
    )
    assert silences_table([silence], NOW).rows == (("s1", "node=~n.*", "1m", "li", "why", "active"),)
    disabled = replace(silence, matchers=(Matcher(name="node", op="=~", value="("),))
    assert column(silences_table([disabled], NOW), "state")[0].startswith("disabled: invalid pattern '('")
    event = AlertEvent(at=NOW, what=AlertEventKind.FIRED, alert=alert("n1"))
    assert column(history_table(localize_events([event], "zh")), "at (UTC)") == ["2023-11-14 22:13:20"]
    shanghai = history_table(localize_events([event], "zh"), "Asia/Shanghai")
    assert column(shanghai, "at (Asia/Shanghai)") == ["2023-11-15 06:13:20"]
    delivery = Delivery(
        id="d", receiver="wecom", group="g", reason=NotificationReason.NEW, severity=Severity.INFO, at=NOW, subjects=1,
        state="parked", late=2.5, attempts=3, word="no\nway",
    )  # fmt: skip
    (row,) = deliveries_table([delivery], "Asia/Shanghai").rows
    assert row[0] == "2023-11-15 06:13:20"
    assert row[1:] == ("wecom", "new", "g", "parked", "2.5s", "3", "no\\nway")
    result = ReceiverTestResult(receiver="w", kind="wecom", ok=False, answer="93000")
    assert receiver_tests_table([result]).rows == (("w", "wecom", "failed", "93000"),)
    for empty in (alerts_table([], NOW), silences_table([], NOW), history_table([]), deliveries_table([])):
        assert empty.note
