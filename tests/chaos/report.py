"""The figures of a run, as bench/CHAOS.md and bench/chaos.json."""

from __future__ import annotations

import json
import os
import platform
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.chaos.driver import RECOVERY, Course
from tests.chaos.ledger import LATE

BENCH = Path(__file__).resolve().parents[2] / "bench"
HEAD = """\
# Chaos

Written by `make chaos`; do not edit.

{date}, {machine}, {minutes:.0f} minutes, seed {seed} (`make chaos ARGS="--seed {seed}"` repeats the order).

The whole product in the real lab: API server, kubelet, engine on a small disk, registry; three real agents, one
of them behind its own virtual network cable and one behind a forging proxy; the daemon with its state on a small disk
and its own clock; a WeCom bot and a webhook. During every fault one incident ends and another starts: a failing image
pull, a service that is down, a full disk, a GPU held by a finished pod.

An incident is *told* when the webhook has accepted its notification. An alert is *wrong* unless an incident, or the
fault itself, accounts for it, from its start until {late:.0f} s after its end: a notification may be delayed by its
receiver. After each fault the product must recover within {recovery:.0f} s: every source healthy, no findings other
than the active incidents, no messages pending for the webhook.
Alerts about disks outside the run, and the rules about this machine's own load, are excluded.
"""


def figures(course: Course) -> dict[str, Any]:
    """Figures of a run."""
    recoveries: dict[str, list[float | None]] = defaultdict(list)
    for step in course.steps:
        recoveries[step.fault].append(step.recovery)
    verdict = course.verdict
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}",
        "seed": course.seed,
        "minutes": course.seconds / 60,
        "faults": {
            name: {"times": len(each), "longest_recovery_s": max((e for e in each if e is not None), default=None)}
            for name, each in sorted(recoveries.items())
        },
        "troubles": dict(sorted(course.troubles.items())),
        "explained_by_the_fault": dict(sorted(verdict.explained.items())),
        "told": verdict.told,
        "ends_told": verdict.ends,
        "slowest_word_s": round(verdict.slowest, 1),
        "lost": len(verdict.lost),
        "ends_not_told": len(verdict.unended),
        "wrong": len(verdict.wrong),
        "told_again": len(verdict.again),
        "repeated_with_the_same_id": verdict.same_id,
        "images_removed": course.images_removed,
        "deleted_outside_a_plan": len(course.unplanned),
        "went_on_in_memory": course.in_memory,
        "messages_to_the_group": course.group_messages,
        "failures": course.failures,
    }


def page(found: dict[str, Any]) -> str:
    """The page of these figures."""
    rows = [f"| {name} | {each['times']} | {each['longest_recovery_s']} |" for name, each in found["faults"].items()]
    plain = [
        name for name, value in found.items() if isinstance(value, (int, float)) and name not in ("seed", "minutes")
    ]
    failures = [f"- {each}" for each in found["failures"]] or ["None."]
    return "\n".join(
        [
            HEAD.format(**found, late=LATE, recovery=RECOVERY),
            "| fault | times | longest recovery, s |",
            "|---|---|---|",
            *rows,
            "",
            "| figure | value |",
            "|---|---|",
            *(f"| incident: {name} | {count} |" for name, count in found["troubles"].items()),
            *(
                f"| reported because of the fault: {name} | {count} |"
                for name, count in found["explained_by_the_fault"].items()
            ),
            *(f"| {name.replace('_', ' ')} | {found[name]} |" for name in plain),
            "",
            "## Failures",
            "",
            *failures,
            "",
        ]
    )


def write(course: Course, folder: Path = BENCH) -> None:
    """Write both files."""
    found = figures(course)
    (folder / "chaos.json").write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    (folder / "CHAOS.md").write_text(page(found))
