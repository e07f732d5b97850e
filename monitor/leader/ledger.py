"""What replicas tell each other on their Lease: which runs have begun, and what must not be done again. Pure.

It is written in the same update that renews the lease: what is on it was written by whoever held it then.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

BEFORE = " before"  # no policy has a name with a space
MOST_BYTES, MOST_MARKS = 120 * 1024, 200  # annotations may have 256 KiB; what is oldest goes first


class Ran(msgspec.Struct, frozen=True, array_like=True):
    """A run of a policy on a node: when it began, why, and whether it is under way or about to be.

    Of one that deletes: its id, how much goes or went, below which root (None: images), and when that ended.
    """

    at: float
    trigger: str
    is_open: bool = True
    id: str | None = None
    bytes: int = 0
    path: str | None = None
    ended_at: float | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is on the Lease: runs by policy and node ("" is the whole cluster), and when other things were last done."""

    runs: dict[str, dict[str, Ran]] = msgspec.field(default_factory=dict)
    marks: dict[str, float] = msgspec.field(default_factory=dict)

    def ran(self, policy: str, node: str | None) -> Ran | None:
        """Return the last run of a policy on a node."""
        return self.runs.get(policy, {}).get(node or "")

    def all_runs(self) -> Iterable[tuple[str, str | None, Ran]]:
        """Yield every run, with its policy and node."""
        for policy, nodes in self.runs.items():
            for node, ran in nodes.items():
                yield policy, node or None, ran


def read(text: str | None) -> Record:
    """Given what is on the Lease, return it. What cannot be understood is nothing: it was not written by us."""
    try:
        return msgspec.json.decode(text, type=Record) if text else Record()
    except (msgspec.MsgspecError, UnicodeError):
        return Record()


def written(record: Record) -> str:
    """Return a record as it is put on the Lease, without what is too old to have room there."""
    runs = sorted(record.all_runs(), key=lambda each: (each[2].is_open, each[2].at))
    marks = dict(sorted(record.marks.items(), key=lambda each: each[1])[-MOST_MARKS:])
    text = _encoded(runs, marks)
    while len(text) > MOST_BYTES and runs:
        runs = runs[len(runs) // 10 + 1 :]
        text = _encoded(runs, marks)
    return text.decode()


def _encoded(runs: Iterable[tuple[str, str | None, Ran]], marks: dict[str, float]) -> bytes:
    kept: dict[str, dict[str, Ran]] = {}
    for policy, node, ran in runs:
        kept.setdefault(policy, {})[node or ""] = ran
    return msgspec.json.encode(Record(runs=kept, marks=marks))


def with_runs(record: Record, policy: str, nodes: Iterable[str | None], ran: Ran) -> Record:
    """Return a record in which this is the last run of a policy on these nodes.

    What the run before it has deleted is still missed by who looks for losses: that is kept beside it.
    """
    where, known = [node or "" for node in nodes], record.runs.get(policy, {})
    before = {
        node: replace(old, is_open=False, ended_at=old.ended_at or ran.at)
        for node in where
        if (old := known.get(node)) is not None and old.id is not None and old.id != ran.id
    }
    runs = record.runs | {policy: known | dict.fromkeys(where, ran)}
    if before:
        runs |= {policy + BEFORE: runs.get(policy + BEFORE, {}) | before}
    return Record(runs=runs, marks=record.marks)


def with_mark(record: Record, name: str, at: float) -> Record:
    """Return a record that says when something was last done."""
    return Record(runs=record.runs, marks=record.marks | {name: at})
