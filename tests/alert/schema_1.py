"""The recorded alerts database of schema 1, and the findings behind its alerts as the present version finds them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from monitor.alert.store import AlertStore
from monitor.facts.findings import Finding

FIXTURE = Path(__file__).parents[1] / "fixtures" / "alerts-schema-1" / "alerts.sql"
RECORDED_UNTIL = 1_795_000_705.0  # Unix time
FIRED_AT = 1_795_000_000.0
SHM, SHM_QUEUED = "29e6814422f3c6bf", "3e56539fcf33bbb6"  # one pod, without and with job and queue
CRASH, FOLLOWS = "bd94f7427a769241", "090f3e7c0d6940fe"
IDLE, DISK, WEDGED = "921dc21c85bc61a2", "2375e6473a9a7eb1", "806c4967fe5852bf"
QUEUED = {"job": "train", "queue": "batch"}


def restore(path: Path) -> None:
    """Write the recorded database."""
    with closing(sqlite3.connect(path)) as file:
        file.executescript(FIXTURE.read_text(encoding="utf-8"))


def findings(store: AlertStore) -> dict[str, Finding]:
    """Findings behind the firing alerts of a migrated store, by fingerprint; those of pods have job and queue."""
    found = {name: alert.finding for name, alert in store.load().alerts.items() if name != WEDGED}
    return {
        name: replace(finding, labels=finding.labels | (QUEUED if name != DISK else {}))
        for name, finding in found.items()
    }
