"""The incident of an alert: what belongs to it, and the document about it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.alert.model import Acknowledgement, Phase
from monitor.facts.findings import Severity
from monitor.present.alerts import LocalizedAlert, LocalizedAlertEvent
from monitor.present.incident import (
    BEFORE_SECONDS,
    MAX_INCIDENT_ENTRIES,
    Incident,
    IncidentAlert,
    incident,
    neighbourhood,
)
from monitor.present.incident_text import as_html, as_markdown, escape
from monitor.present.timeline import TimelineEntry

AT = 1_700_000_000.0


def alert(fingerprint: str = "f", **more: Any) -> LocalizedAlert:
    given: dict[str, Any] = {
        "rule": "disk-full", "severity": Severity.CRITICAL, "cause": "images", "phase": Phase.FIRING,
        "labels": {"node": "gpu01", "mount": "/data", "user": "zhang"}, "headline": f"headline of {fingerprint}",
        "since": AT, "evidence": ("98 % used",), "advice": ("Delete images",),
    }  # fmt: skip
    return LocalizedAlert(fingerprint=fingerprint, **(given | more))


def entry(at: float, what: str = "fired", **more: Any) -> TimelineEntry:
    return TimelineEntry(at=AT + at, what=what, severity=Severity.CRITICAL, **more)


def event(at: float, fingerprint: str, what: str = "fired") -> LocalizedAlertEvent:
    return LocalizedAlertEvent(
        at=AT + at, what=what, fingerprint=fingerprint, rule="node-down", severity=Severity.WARNING, labels={},
        headline=f"headline of {fingerprint}",
    )  # fmt: skip


def story(own: LocalizedAlert | None = None) -> Incident:
    own = own or alert("own", told=("wecom",), acknowledged=Acknowledgement(by="li", at=AT, comment=""))
    return incident(
        IncidentAlert(alert=own, timeline=(entry(0), entry(5, "notified", who="wecom", state="sent", reason="new"))),
        IncidentAlert(alert=alert("cause", rule="node-down"), timeline=(entry(-9),)),
        [IncidentAlert(alert=alert("symptom", rule="image-pull"), timeline=(entry(2),))],
        [event(-60, "other"), event(3, "own"), event(4, "other", "acknowledged"), event(500, "late")],
        AT + 1000,
    )


def test_everything_is_in_one_timeline_in_order() -> None:
    told = [(each.entry.at - AT, each.fingerprint) for each in story().timeline]
    assert told == [(-60, "other"), (-9, "cause"), (0, "own"), (2, "symptom"), (5, "own"), (500, "late")]


def test_what_happened_after_the_end_does_not_belong_to_it() -> None:
    over = story(alert("own", phase=Phase.RESOLVED, resolved_at=AT + 100))
    assert "late" not in {each.fingerprint for each in over.timeline}


def test_of_too_many_entries_the_latest_are_kept() -> None:
    many = IncidentAlert(alert=alert(), timeline=tuple(entry(at) for at in range(MAX_INCIDENT_ENTRIES + 5)))
    kept = incident(many, None, [], [], AT).timeline
    assert (len(kept), kept[0].entry.at) == (MAX_INCIDENT_ENTRIES, AT + 5)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"node": "a", "pod": "p", "namespace": "n"}, {"node": "a"}),
        ({"pod": "p", "namespace": "n"}, {"namespace": "n", "pod": "p"}),
        ({"namespace": "n", "job": "j"}, {"namespace": "n", "job": "j"}),
        ({"service": "portal"}, {"service": "portal"}),
        ({"queue": "nlp"}, {}),
    ],
)
def test_other_alerts_belong_to_it_by_place(labels: dict[str, str], expected: dict[str, str]) -> None:
    found = neighbourhood(alert(labels=labels))
    assert (found.labels, found.since) == (expected, AT - BEFORE_SECONDS)


def test_the_document_in_english() -> None:
    text = as_markdown(story(), "en", "Asia/Shanghai")
    assert text.startswith("# Disk nearly full: headline of own\n\n- **State**: critical, firing\n")
    for line in (
        "- **Subject**: node gpu01, mount /data\n",
        "- **Owner**: zhang",
        "- **Began**: 2023-11-15 06:13:20 CST",
        "- **Notified**: wecom",
        "- **Acknowledged by**: li",
        "- **Symptom of**: headline of cause",
        "## What to do\n\n- Delete images",
        "- 2023-11-15 06:13:25 CST Notified wecom (new)",
        "- 2023-11-15 06:13:20 CST headline of symptom",
    ):
        assert line in text
    assert "Resolved" not in text


def test_the_subject_is_named_in_the_language_of_the_document() -> None:
    about = {"node": "gpu01", "gpu": "3", "namespace": "nlp", "pod": "bert-0", "job": "bert", "user": "zhang"}
    told = story(alert("own", labels=about))
    assert "- **Subject**: node gpu01, GPU 3, pod nlp/bert-0\n- **Began**" in as_markdown(told, "en", "UTC")
    assert "- **对象**：节点 gpu01、GPU 3、Pod nlp/bert-0\n- **开始时间**" in as_markdown(told, "zh", "UTC")


def test_the_document_about_a_resolved_alert_in_chinese_gives_no_advice() -> None:
    over = replace(alert("own", phase=Phase.RESOLVED, resolved_at=AT + 3600), labels={"node": "gpu01"})
    text = as_markdown(story(over), "zh", "Asia/Shanghai")
    assert "- **恢复时间**：2023-11-15 07:13:20 CST" in text
    assert "- **持续时间**：1 小时" in text
    assert "Delete images" not in text


def test_nothing_from_the_cluster_is_markup() -> None:
    evil = alert("own", headline="<b>x</b> [l](http://x) *y* | # _z_ bert_train\u202e", evidence=("1. x", "# y"))
    text = as_markdown(story(evil), "en", "UTC")
    assert "\\<b\\>x\\</b\\> \\[l\\](http://x) \\*y\\* \\| # \\_z\\_ bert_train\n" in text
    assert "- 1\\. x\n- \\# y" in text
    page = as_html(story(evil), "en", "UTC")
    assert "<b>" not in page
    assert "&lt;b&gt;x" in page


def test_plain_text_stays_readable() -> None:
    assert escape("node gpu-01: 3 of 8 GPUs, bert_train/0") == "node gpu-01: 3 of 8 GPUs, bert_train/0"
