"""Ledger of non-repeatable actions, which replicas share as an annotation of their Lease.

It is written in the same update that renews the Lease, so every entry was written by the holder at that time.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

PREVIOUS_RUN_SUFFIX = " before"  # policy names contain no space
MAX_LEDGER_BYTES, MAX_MARKS = 120 * 1024, 200  # annotations may have 256 KiB; the oldest entries are dropped first


class RecordedRun(msgspec.Struct, frozen=True, array_like=True):
    """A run of a policy on a node: when it began, its trigger, and whether it is pending or in progress.

    For a run that deletes: its id, the bytes to delete or deleted, the root (None: images), and the end of the run.
    """

    at: float
    trigger: str
    is_open: bool = True
    id: str | None = None
    bytes: int = 0
    path: str | None = None
    ended_at: float | None = None


class ActionLedger(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Runs by policy and node ("": the whole cluster), and times of other actions by mark."""

    runs: dict[str, dict[str, RecordedRun]] = msgspec.field(default_factory=dict)
    marks: dict[str, float] = msgspec.field(default_factory=dict)

    def ran(self, policy: str, node: str | None) -> RecordedRun | None:
        """Last run of a policy on a node."""
        return self.runs.get(policy, {}).get(node or "")

    def all_runs(self) -> Iterable[tuple[str, str | None, RecordedRun]]:
        """Policy, node and run of every entry."""
        for policy, nodes in self.runs.items():
            for node, run in nodes.items():
                yield policy, node or None, run


def decode_ledger(text: str | None) -> ActionLedger:
    """Ledger from the annotation; empty if it cannot be decoded, since then another program wrote it."""
    try:
        return msgspec.json.decode(text, type=ActionLedger) if text else ActionLedger()
    except (msgspec.MsgspecError, UnicodeError):
        return ActionLedger()


def encode_ledger(ledger: ActionLedger) -> str:
    """Ledger as an annotation, without the oldest entries if it is too large."""
    runs = sorted(ledger.all_runs(), key=lambda entry: (entry[2].is_open, entry[2].at))
    marks = dict(sorted(ledger.marks.items(), key=lambda mark: mark[1])[-MAX_MARKS:])
    text = _encode(runs, marks)
    while len(text) > MAX_LEDGER_BYTES and runs:
        runs = runs[len(runs) // 10 + 1 :]
        text = _encode(runs, marks)
    return text.decode()


def _encode(runs: Iterable[tuple[str, str | None, RecordedRun]], marks: dict[str, float]) -> bytes:
    by_policy: dict[str, dict[str, RecordedRun]] = {}
    for policy, node, run in runs:
        by_policy.setdefault(policy, {})[node or ""] = run
    return msgspec.json.encode(ActionLedger(runs=by_policy, marks=marks))


def with_runs(ledger: ActionLedger, policy: str, nodes: Iterable[str | None], run: RecordedRun) -> ActionLedger:
    """Ledger in which `run` is the last run of a policy on these nodes.

    The previous run is kept beside it if it deleted something: rules that look for data loss still need it.
    """
    keys, known = [node or "" for node in nodes], ledger.runs.get(policy, {})
    previous = {
        node: replace(old, is_open=False, ended_at=old.ended_at or run.at)
        for node in keys
        if (old := known.get(node)) is not None and old.id is not None and old.id != run.id
    }
    runs = ledger.runs | {policy: known | dict.fromkeys(keys, run)}
    if previous:
        runs |= {policy + PREVIOUS_RUN_SUFFIX: runs.get(policy + PREVIOUS_RUN_SUFFIX, {}) | previous}
    return ActionLedger(runs=runs, marks=ledger.marks)


def with_mark(ledger: ActionLedger, name: str, at: float) -> ActionLedger:
    """Ledger that records when something was last done."""
    return ActionLedger(runs=ledger.runs, marks=ledger.marks | {name: at})
