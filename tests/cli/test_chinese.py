"""Output in Chinese: no English is left over in what the tables and headlines of commands say themselves."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TextIO

import pytest
from msgspec.structs import replace

from monitor.alert.model import NotificationReason, Phase
from monitor.alert.mute import AlertView
from monitor.alert.store import AlertEvent, AlertEventKind, Delivery
from monitor.cleanup.journal_records import CleanupRun, RunState
from monitor.cli.tables import print_snapshot, print_tables, print_view
from monitor.cluster.sources import agent_sources, kube_sources
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Severity
from monitor.facts.kube import SourceFact
from monitor.facts.text import Evidence
from monitor.present.alerts import (
    alerts_table,
    deliveries_table,
    history_table,
    localize_alerts,
    localize_events,
    receiver_tests_table,
    silences_table,
)
from monitor.present.cleanup import ShownPlan, ShownRun, plan_tables
from monitor.present.cleanup import history_table as runs_table
from monitor.present.findings import LocalizedFinding, findings_table
from monitor.present.top import TopChoice, TopKind, top_frame
from tests.cli.leftovers import english_in
from tests.present.test_alerts import NOW, alert
from tests.present.test_cluster import FULL
from tests.support.snapshots import full_snapshot

def _snapshot(out: TextIO) -> None:
    print_snapshot(full_snapshot(), out, lang="zh")


def _view(out: TextIO) -> None:
    evidence = (
        Evidence(key="pod-finished", values={"pod": "a/b", "pid": 8}),
        Evidence(key="idle", values={"pod": "a/b"}),
    )
    agents = (AgentFact(target="10.0.0.1:9835", node="gpu-03", silent_since=NOW - 60),)
    kube = (SourceFact(resource="nodes", state="stale", stale_since=NOW),)
    sources = (
        *kube_sources(None),
        *kube_sources(kube),
        *agent_sources(agents),
        *agent_sources(agents * 5),
        *agent_sources(()),
    )
    gpus = tuple(replace(gpu, evidence=evidence) for gpu in FULL.gpus)
    print_view(replace(FULL, gpus=gpus, sources=sources), out, lang="zh")


def _findings(out: TextIO) -> None:
    found = LocalizedFinding(
        key="x", rule="disk-full", severity=Severity.CRITICAL, cause="x", labels={"node": "n1", "mount": "/data"},
        headline="磁盘已满。", since=NOW - 90, held=True,
    )  # fmt: skip
    print_tables([findings_table([found], NOW, lang="zh"), findings_table(None, NOW, lang="zh")], out, "zh")


def _alerts(out: TextIO) -> None:
    shown = (
        AlertView(alert=alert("n1"), silenced_by="s1"),
        AlertView(alert=alert("n2"), in_maintenance=True),
        AlertView(alert=alert("n3"), explained_by="f1"),
        AlertView(alert=alert("n4", Phase.RESOLVED, resolved_at=NOW)),
    )
    events = [AlertEvent(at=NOW, what=kind, alert=alert("n1")) for kind in AlertEventKind]
    deliveries = [
        Delivery(id="d", receiver="r1", group="g1", reason=reason, severity=Severity.INFO, at=NOW, subjects=1,
                 state=state, late=2.5, attempts=3, word="0")
        for reason in NotificationReason
        for state in ("sent", "parked")
    ]  # fmt: skip
    tables = [
        alerts_table(localize_alerts(shown, "zh"), NOW, everything=True, lang="zh"),
        history_table(localize_events(events, "zh"), lang="zh"),
        deliveries_table(deliveries, lang="zh"),
        silences_table((), NOW, "zh"),
        receiver_tests_table(()),
    ]
    print_tables(tables, out, "zh")


def _cleanup(out: TextIO) -> None:
    kinds, ends = ("images", "datasets", "pods", "gpus", "registry"), ("done", "low-water", "errors", "interrupted")
    plans = [
        ShownPlan(policy="p1", kind=kind, mode=mode, at=NOW, node=node, needed_bytes=1, next_run_at=NOW,
                  kept_counts={"in-use": 2, "too-young": 1})
        for kind in kinds
        for mode, node in (("enforce", "n1"), ("dry-run", None))
    ]  # fmt: skip
    runs = [
        ShownRun(run=CleanupRun(id="r", policy="p1", kind="pods", mode="enforce", trigger=trigger, started_at=NOW,
                                state=RunState.ENDED, end=end, by="u1"))
        for trigger in ("cron", "high-water", "asked")
        for end in ends
    ]  # fmt: skip
    print_tables([*plan_tables(plans, lang="zh"), *plan_tables((), lang="zh"), runs_table(runs, lang="zh")], out, "zh")


def _top(out: TextIO) -> None:
    for kind in TopKind:
        frame = top_frame(FULL, (), TopChoice(kind=kind), "zh")
        print(frame.summary, frame.alerts, *(row.state_text for row in frame.rows), sep="\n", file=out)


@pytest.mark.parametrize("printed", [_snapshot, _view, _findings, _alerts, _cleanup, _top])
def test_no_english_is_left_over(printed: Callable[[TextIO], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.cli.tables.PLAIN_COLUMNS", 400)
    out = io.StringIO()
    printed(out)
    assert english_in(out.getvalue()) == []
