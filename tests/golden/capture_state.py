"""Persistent state: databases, state files, the Lease."""

from __future__ import annotations

import os
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from monitor.access import audit
from monitor.agent.actions.auth import UsedIds
from monitor.agent.actions.build import JOURNAL_FILE, USED_IDS_FILE
from monitor.agent.collectors.images import ImagesCollector, ImageUse
from monitor.agent.journal import ActionJournal as AgentJournal
from monitor.agent.runtime import Runtimes
from monitor.alert import store as alert_store
from monitor.alert.alertmanager.callback import NotificationLog
from monitor.alert.model import NotificationLogEntry
from monitor.cleanup import journal as cleanup_journal
from monitor.cluster import view_memory
from monitor.cluster.node_join import GpuMemory
from monitor.cluster.view import ViewMemory
from monitor.daemon.history_files import FINDINGS_FILE, MEMORY_FILE, HistoryFiles
from monitor.detect.base import RuleContext
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules import RULES
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.findings import Severity
from monitor.history import store as history_store
from monitor.leader.elector import LEDGER_ANNOTATION, RELAYED_ANNOTATION
from monitor.leader.lease import LeaseClaim, held_body
from monitor.leader.ledger import ActionLedger, RecordedRun, encode_ledger, with_mark, with_runs
from monitor.report import store as record_store
from tests.cluster.builders import node as card_node
from tests.detect import builders_gpu, builders_nodes, builders_storage
from tests.explain import builders
from tests.golden.text import as_json, of_json
from tests.support.snapshots import AT, GIB, full_snapshot

# File name of each database and the function that opens it.
DATABASES: tuple[tuple[str, Callable[[str], Any]], ...] = (
    (alert_store.FILE, alert_store.AlertStore),
    (cleanup_journal.FILE, cleanup_journal.CleanupJournal),
    (record_store.FILE, record_store.UsageStore),
    (audit.FILE, audit.AuditLog),
    (history_store.FILE, history_store.HistoryStore),
)


def databases() -> str:
    """Tables, indexes and version of every database."""
    with _folder() as folder:
        return "".join(_database(folder / name, opened) for name, opened in DATABASES)


def _database(path: Path, opened: Callable[[str], Any]) -> str:
    opened(str(path)).close()
    with closing(sqlite3.connect(path)) as file:
        (version,) = file.execute("PRAGMA user_version").fetchone()
        mode = file.execute("PRAGMA journal_mode").fetchone()[0]
        found = file.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name").fetchall()
    head = f"-- {path.name} (version {version}, journal mode {mode}, file mode {os.stat(path).st_mode & 0o777:o})\n"
    return head + "".join(f"{sql};\n" for (sql,) in found) + "\n"


def findings_file() -> str:
    """State file of the rules after two evaluations of a cluster with many problems."""
    history = DetectionHistory()
    for now in (AT, AT + 300):
        history = detect(RULES, {}, _situation(now), history).history
    units = {rule: dict(sorted(units.items())) for rule, units in history.units.items()}  # evaluated in any order
    history = msgspec.structs.replace(history, units=units)
    with _folder() as folder:
        HistoryFiles(str(folder)).save(history)
        return "".join(of_json((folder / name).read_bytes()) for name in (FINDINGS_FILE, MEMORY_FILE))


def view_file() -> str:
    """State file of the view."""
    cards = {
        "n1/GPU-a": GpuMemory(state=GpuState.IDLE_HELD, since=AT - 60, idle_since=AT - 90),
        "n1/GPU-b": GpuMemory(state=GpuState.FREE, since=AT - 30),
    }
    with _folder() as folder:
        view_memory.ViewMemoryFile(str(folder), lambda: AT).save(ViewMemory(cards=cards, missing={"uid-1": AT - 9}))
        return of_json((folder / view_memory.FILE).read_bytes())


def agent_files() -> str:
    """State files of an agent: image memory, journal, used action ids."""
    with _folder() as folder:
        images = ImagesCollector(Runtimes("", ()), lambda: None, str(folder))
        images._file.save({"docker": {"sha256:1": ImageUse(AT - 900, AT - 60), "sha256:2": ImageUse(AT - 9)}})
        book = AgentJournal(str(folder / JOURNAL_FILE), _Clock())
        book.done(book.intend("remove-image", {"image": "sha256:1", "bytes": GIB}), "removed", {"freed": GIB})
        UsedIds(str(folder / USED_IDS_FILE), AT).add("a1", AT + 60, AT)
        texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.iterdir())}
    ids = list(dict.fromkeys(re.findall(r'"id":"([0-9a-f]{32})"', texts[JOURNAL_FILE])))
    assert len(ids) == 1
    return "".join(f"-- {name}\n{text.replace(ids[0], 'ID').rstrip()}\n" for name, text in texts.items())


def lease() -> str:
    """The acquired Lease with the annotations of a fixed record."""
    record = with_runs(
        ActionLedger(), "images", ("n1", None), RecordedRun(AT - 60, "cron", id="run-1", bytes=GIB, path="/data")
    )
    record = with_runs(record, "images", ("n1",), RecordedRun(AT, "asked", is_open=False, id="run-2", ended_at=AT + 5))
    record = with_mark(with_mark(record, "digest", AT - 5), "report", AT - 6)
    told = NotificationLog(
        told=(NotificationLogEntry(receiver="ops", group="DiskFull/images", at=AT, firing={"f": Severity.CRITICAL}),)
    )
    annotations = {LEDGER_ANNOTATION: encode_ledger(record), RELAYED_ANNOTATION: msgspec.json.encode(told).decode()}
    return as_json(held_body(None, "gpuwarden", LeaseClaim("gpuwarden-0_0a1b2c3d", 15.0), AT, annotations))


def _situation(now: float) -> RuleContext:
    """A cluster with an unhealthy node, a full disk, a silent agent, pending pods and a failing service."""
    storage = builders_storage
    full = storage.disk("/", 98)
    agents = (
        AgentFact(target="gpu-01:9835", node="gpu-01", snapshot=full_snapshot(), received_at=now),
        storage.agent("n2", full, storage.hung(), storage.nas(99.5), at=now, images=(storage.cache(total=80),)),
        storage.silent("n3"),
    )
    short = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
    pods = (
        builders.pod("bert-0", gpus=8, age=7200, conditions=builders.unschedulable(short)),
        builders.pod("vit-0", node="n2", age=7200, statuses=(builders.waiting("ImagePullBackOff", "Back-off"),)),
        builders.pod("loop-0", node="n2", phase="Running", age=7200, statuses=(builders.looping(127),)),
        builders.pod("old-0", node="n3", phase="Running", age=90_000, deletion_at=now - 7200),
    )
    events = (
        builders.event("FailedScheduling", short),
        builders.event("Failed", "Failed to pull image: harbor.lab/nlp/bert:1: not found", about=pods[1]),
    )
    nodes = (card_node("gpu-01", 2), card_node("n2", 0), card_node("n3", 8), builders.node("n4", ready=False))
    view = builders_gpu.rule_context(*agents, pods=pods, nodes=nodes, now=now).view
    world = make_cluster_facts(pods=pods, nodes=nodes, events=events, agents=agents, view=view)
    return RuleContext(world, now, (builders_nodes.service(),))


class _Clock:
    """A fixed clock."""

    def time(self) -> float:
        return AT

    def monotonic(self) -> float:
        return 0.0


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
