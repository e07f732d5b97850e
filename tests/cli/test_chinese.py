"""Output in Chinese: no English is left over in what the tables and headlines of commands say themselves."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TextIO, get_args

import pytest
from msgspec.structs import replace

from monitor.alert.model import NotificationReason, Phase
from monitor.alert.mute import AlertView
from monitor.alert.store import AlertEvent, AlertEventKind, Delivery
from monitor.cleanup.execute.scanner import ScanProgress
from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry, RunState
from monitor.cleanup.model import Risk
from monitor.cleanup.plan import dataset_protection, gpu_holders, image_protection, pods
from monitor.cli.cleanup import scan_text
from monitor.cli.tables import print_snapshot, print_tables, print_view
from monitor.cluster.sources import agent_sources, kube_sources
from monitor.doctor.model import CheckResult, ok, problem, warning
from monitor.doctor.present import print_results
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
from monitor.present.cleanup import ShownItem, ShownPlan, ShownRun, items_table, plan_tables
from monitor.present.cleanup import history_table as runs_table
from monitor.present.findings import LocalizedFinding, findings_table
from monitor.present.incident_text import as_markdown
from monitor.present.top import TopChoice, TopKind, top_frame
from monitor.report.buckets import By
from monitor.report.render import print_tables as print_report
from tests.cleanup.support import item
from tests.cli.leftovers import english_in
from tests.present.test_alerts import NOW, alert
from tests.present.test_cluster import FULL
from tests.present.test_incident import alert as alert_of
from tests.present.test_incident import story
from tests.report.reports import report
from tests.support.snapshots import full_snapshot

# Outcomes of items of a cleanup run, besides protections.
OUTCOMES = """
removed trashed restored purged partly deleted evicted retained collected killed gone changed unknown stuck failed
no-agent not-moved not-restored lost lease-lost interrupted stopped too-many over-limit forbidden refused
"""


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
    protections = {word: 1 for module in (dataset_protection, gpu_holders, image_protection, pods)
                   for word in module.PROTECTIONS}  # fmt: skip
    items = tuple(
        ShownItem(id=risk, name="n1", why="没有标签。", risk=risk, not_before=at)
        for risk in Risk
        for at in (None, NOW, NOW + 60)
    )
    kinds, ends = ("images", "datasets", "pods", "gpus", "registry"), ("done", "low-water", "errors", "interrupted")
    plans = [
        ShownPlan(policy="p1", kind=kind, mode=mode, at=NOW, node=node, needed_bytes=1, next_run_at=NOW,
                  kept_counts=protections, items=items)
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


def _outcomes(out: TextIO) -> None:
    """What `cleanup restore`, `release` and `history --items` show."""
    items = tuple(
        JournalEntry(item=item(), place=0, state=state, outcome=outcome, freed_bytes=1, trash="t-1")
        for state in ItemState
        for outcome in OUTCOMES.split()
    )
    run = CleanupRun(
        id="r",
        policy="p1",
        kind="pods",
        mode="enforce",
        trigger="asked",
        started_at=NOW,
        state=RunState.ENDED,
        end="done",
    )
    print_tables([items_table(ShownRun(run=run, items=items), "zh"), items_table(ShownRun(run=run), "zh")], out, "zh")


def _scan(out: TextIO) -> None:
    begun = ScanProgress(policy="p1", root="/mnt/a", node="n1", started_at=NOW)
    for progress in (begun, replace(begun, counts={"entries": 1234})):
        print(scan_text(progress, "zh"), file=out)


def _report(out: TextIO) -> None:
    for by in get_args(By):
        made = report(by)
        named = tuple(row for row in made.rows if row.name in (None, "li", "gpu01"))
        incidents = tuple(each for each in made.incidents if each.rule != "node-down")  # its cause is invented
        print_report(replace(made, rows=named, incidents=incidents), "zh", out)


def _incident(out: TextIO) -> None:
    labels = {"node": "gpu01", "mount": "/data", "namespace": "n1", "pod": "p0", "user": "li"}
    own = alert_of("own", headline="磁盘已满。", labels=labels, evidence=("已用 98%。",), advice=("删除镜像。",))
    told = story(own)
    named = replace(told, cause=None, symptoms=())
    timeline = tuple(replace(each, headline="节点宕机。") for each in named.timeline)
    print(as_markdown(replace(named, timeline=timeline), "zh", "UTC"), file=out)


def _doctor(out: TextIO) -> None:
    results = [
        CheckResult("config.file", (ok("config.read", path="/etc/a.yml"),)),
        CheckResult("agents.found", (problem("nvml.lost", cards="1"), warning("late", seconds=5))),
    ]
    print_results(results, "zh", out)


def _top(out: TextIO) -> None:
    for kind in TopKind:
        frame = top_frame(FULL, (), TopChoice(kind=kind), "zh")
        print(frame.summary, frame.alerts, *(row.state_text for row in frame.rows), sep="\n", file=out)


PRINTED = (_snapshot, _view, _findings, _alerts, _cleanup, _outcomes, _scan, _report, _incident, _doctor, _top)


@pytest.mark.parametrize("printed", PRINTED)
def test_no_english_is_left_over(printed: Callable[[TextIO], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.cli.tables.PLAIN_COLUMNS", 400)
    out = io.StringIO()
    printed(out)
    assert english_in(out.getvalue()) == []
