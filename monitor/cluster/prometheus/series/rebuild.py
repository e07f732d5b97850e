"""Rebuilds a NodeSnapshot from samples, by the tables. Unknown series of newer agents are ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any, NamedTuple

import msgspec

from monitor.cluster.prometheus.series import table_node, table_storage
from monitor.cluster.prometheus.series.thing import Record, Take, Thing
from monitor.facts.base import Fact
from monitor.facts.node import NodeSnapshot

Labels = Mapping[str, str]
Sample = tuple[str, Labels, float]  # name, labels, value
KNOWN = "gpuwarden_part_known"
EMPTY: dict[str, Callable[[], Any]] = {"gpu": lambda: {"gpus": []}, "xid": dict, "kubelet": dict}
# Single facts that are dropped unless their required fields are known.
WHOLE = {thing.path: thing.fact for thing in (table_node.HOST, table_storage.ACTIONS)}

FAST: tuple[Thing, ...] = (*table_node.THINGS, *table_storage.THINGS)
SLOW: tuple[Thing, ...] = table_storage.SLOW_THINGS
FAST_FAMILIES = (KNOWN, *(family for thing in FAST for family in thing.takes))
SLOW_FAMILIES = (
    *table_node.NODE.takes, KNOWN, *(family for thing in SLOW for family in thing.takes),
)  # fmt: skip


class SeriesError(Exception):
    """The series of a node do not make a snapshot."""


def rebuild(samples: Iterable[Sample]) -> NodeSnapshot:
    """Snapshot from which the samples of one agent were rendered. Raise SeriesError."""
    draft = _SnapshotDraft()
    try:
        for name, labels, value in samples:
            draft.take(name, labels, value)
    except KeyError as error:
        raise SeriesError(f"one of its series has no label {error}") from None
    return draft.finish()


def merge(fast: NodeSnapshot, slow: NodeSnapshot | None) -> NodeSnapshot:
    """Snapshot `fast` with the slow parts of `slow`. Parts that are unknown in `fast` stay unknown."""
    if slow is None:
        return msgspec.structs.replace(fast, **dict.fromkeys(table_storage.SLOW_PARTS))
    parts = {part: getattr(slow, part) for part in table_storage.SLOW_PARTS if getattr(fast, part) is not None}
    return msgspec.structs.replace(fast, **parts)


class _SnapshotDraft:
    """Snapshot under construction."""

    def __init__(self) -> None:
        self._root: Record = {}
        self._known: set[str] = set()
        # Repeated objects: kind, parent, field of the parent, and records.
        self._many: list[tuple[Thing, Record, str, dict[tuple[str, ...], Record]]] = []

    def take(self, name: str, labels: Labels, value: float) -> None:
        """Add one sample."""
        if name == KNOWN:
            self._known.add(labels.get("part", ""))
            return
        found = _BY_FAMILY.get(name)
        if found is not None:
            _apply(found, self._record(found.place, labels), labels, value)

    def _record(self, place: _Place, labels: Labels) -> Record:
        """Record that the labels identify; it is created if needed."""
        record = self._root
        for name, keys, thing in place:
            records = record.get(name)
            if records is None:
                records = record[name] = {}
                if thing is not None and keys:
                    self._many.append((thing, record, name, records))
            if not keys:
                record = records
                continue
            key = tuple([labels.get(label, "") for label in keys])
            found = records.get(key)
            if found is None:
                named = thing.named.items() if thing is not None else ()
                found = records[key] = {field: labels[label] for field, label in named if labels.get(label)}
            record = found
        return record

    def finish(self) -> NodeSnapshot:
        for thing, owner, name, records in reversed(self._many):
            owner[name] = [records[key] for key in sorted(records, key=_natural) if _complete(records[key], thing)]
        root = self._root
        for part in msgspec.structs.fields(NodeSnapshot):
            if part.name in _ALWAYS:
                continue
            if part.name not in self._known:
                root.pop(part.name, None)
            else:
                root.setdefault(part.name, EMPTY.get(part.name, list)())
        self._mend(root)
        try:
            return msgspec.convert(root, NodeSnapshot, strict=False)
        except msgspec.ValidationError as error:
            raise SeriesError(f"its series make no snapshot: {error}") from None

    def _mend(self, root: Record) -> None:
        """Add empty parts that have no series, and drop parts without their required fields."""
        if "gpu" in root:
            root["gpu"].setdefault("gpus", [])
        if "host" in root and isinstance(root["host"], dict):
            root["host"].setdefault("cpu_seconds_total", {})
        if "kubelet_eviction_hard" in self._known and "kubelet" in root:
            root["kubelet"].setdefault("eviction_hard", [])
        for name, fact in WHOLE.items():
            if name in root and not (isinstance(root[name], dict) and _REQUIRED[fact] <= root[name].keys()):
                del root[name]
        if recent := root.get("xid", {}).get("recent"):
            recent.sort(key=lambda event: event["at"])


def _apply(rule: _FamilyRule, record: Record, labels: Labels, value: float) -> None:
    if rule.last is not None:
        holder = record if rule.way is None else record.setdefault(rule.way, {})
        holder[rule.last.format_map(labels) if rule.spelled else rule.last] = int(value) if rule.truth else value
    for field, label in rule.words:
        if text := labels.get(label):
            record[field] = text
    if rule.known is not None:
        record.setdefault(rule.known, [])
    if rule.each is not None:
        record.setdefault(rule.each[0], []).append(labels.get(rule.each[1], ""))


def _complete(record: Record, thing: Thing) -> bool:
    """Finish a record, and return whether it has all required fields."""
    for part, fact in thing.parts.items():
        if part in record and not _REQUIRED[fact] <= record[part].keys():
            del record[part]
    for take in thing.takes.values():
        if take.each is not None and take.each[0] in record:
            record[take.each[0]] = sorted(record[take.each[0]])
    if thing.tidy is not None:
        thing.tidy(record)
    return _REQUIRED[thing.fact] <= record.keys()


def _natural(key: tuple[str, ...]) -> tuple[tuple[int, str], ...]:
    """Sort 10 behind 9."""
    return tuple((len(text) if text.isdecimal() else 0, text) for text in key)


_Place = tuple[tuple[str, tuple[str, ...], Thing | None], ...]  # field, labels that identify the object, kind
_ALWAYS = ("node", "at", "agent_version", "schema", "boot_id", "collectors")
_BY_PATH = {thing.path: thing for thing in (*FAST, *SLOW)}


def _place(path: str) -> _Place:
    """Steps of a path of the tables."""
    steps = []
    walked = ""
    for step in path.split(".") if path else ():
        walked = f"{walked}.{step}" if walked else step
        name, _, keys = step.partition("[")
        steps.append((name, tuple(keys.rstrip("]").split(",")) if keys else (), _BY_PATH.get(walked)))
    return tuple(steps)


def _required(fact: type[Fact]) -> frozenset[str]:
    return frozenset(field.name for field in msgspec.structs.fields(fact) if field.required)


class _FamilyRule(NamedTuple):
    """A `Take` compiled for one family."""

    place: _Place
    way: str | None  # part of the object that contains the field
    last: str | None  # the field
    spelled: bool  # whether labels are in the name of the field
    truth: bool
    words: tuple[tuple[str, str], ...]
    known: str | None
    each: tuple[str, str] | None


def _rule(path: str, take: Take) -> _FamilyRule:
    way, _, last = (take.value or "").rpartition(".")
    words = tuple(take.words.items())
    return _FamilyRule(_place(path), way or None, last or None, "{" in last, take.truth, words, take.known, take.each)


def _reads(thing: Thing, take: Take) -> frozenset[str]:
    """Labels of a family that are read."""
    spelled = (name for _, name, _, _ in Formatter().parse(take.value or "") if name)
    told_apart = (label for _, keys, _ in _place(thing.path) for label in keys)
    return frozenset((*told_apart, *thing.named.values(), *take.words.values(), *(take.each or ())[1:], *spelled))


# Labels that are read, by family and in total.
READS = {KNOWN: frozenset({"part"})} | {
    family: _reads(thing, take) for thing in (*FAST, *SLOW) for family, take in thing.takes.items()
}
OWN_LABELS = frozenset().union(*READS.values())

_BY_FAMILY = {family: _rule(thing.path, take) for thing in (*FAST, *SLOW) for family, take in thing.takes.items()}
_REQUIRED: dict[type[Fact], frozenset[str]] = {
    fact: _required(fact) for thing in (*FAST, *SLOW) for fact in (thing.fact, *thing.parts.values())
}
