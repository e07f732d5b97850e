"""XID errors from both of their sources, the kernel log and the driver's events.

Events arrive at once, but only while subscribed, and some codes (79, 119, 120) never come as events. The kernel log has
all of them, including those from before the agent started. It is read first and never waits for the driver.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from monitor.agent.collectors import AbsentError
from monitor.agent.gpu import DriverMissingError, GpuDriverError, GpuEvents, new_events, normalize_pci_address
from monitor.agent.guard import HungCallGuard, HungError
from monitor.agent.kmsg import KernelMessage, SharedKernelLog
from monitor.base.clock import Clock
from monitor.base.text import MAX_TEXT_CHARS, shorten
from monitor.facts import XidCount, XidEvent, XidFacts

MAX_RECENT = 50
SAME_INCIDENT_SECONDS = 10.0
OFF_THE_BUS_CODE = 79
MAX_DIGITS = 10
DRIVER_TIMEOUT_SECONDS = 3.0
KERNEL, DRIVER, BOTH = "kernel", "nvml", "both"
_Xid = TypeVar("_Xid", XidCount, XidEvent)


class XidCollector:
    """Reads the kernel log and the driver's events, and counts each incident once."""

    name = "xid"

    def __init__(
        self,
        log: SharedKernelLog,
        clock: Clock = time,
        driver_timeout: float = DRIVER_TIMEOUT_SECONDS,
        events: GpuEvents | None = None,
    ) -> None:
        self._clock = clock
        self._read_messages = log.subscribe()
        self._events = events or new_events(clock)
        self._driver_timeout = driver_timeout
        # The kernel log matters most when the driver hangs, so the driver is read on another thread. Events are
        # queued here: a call that returns too late still delivers them.
        self._guard = HungCallGuard("xid", clock)
        self._queue: deque[XidEvent] = deque()
        self._uuids: dict[str, str] = {}
        self._facts = XidFacts()

    def collect(self) -> XidFacts:
        """All XIDs so far. Raise AbsentError if there is neither a driver nor a readable kernel log."""
        events, log_error = self._read_log()
        driver_error = self._read_driver()
        if log_error is not None and driver_error is not None:
            if isinstance(driver_error, DriverMissingError):
                raise AbsentError(f"{driver_error}, and the kernel log cannot be read: {log_error}")
            raise driver_error
        while self._queue:
            events.append(self._queue.popleft())
        self._facts = with_uuids(merge_events(self._facts, events), self._uuids)
        return self._facts

    def _read_log(self) -> tuple[list[XidEvent], OSError | None]:
        try:
            messages = self._read_messages()
        except OSError as error:
            return [], error
        self._uuids |= dict(pair for message in messages if (pair := parse_uuid(message.text)) is not None)
        return [event for message in messages if (event := parse_xid(message)) is not None], None

    def _read_driver(self) -> Exception | None:
        try:
            self._guard.call("driver", self._drain_events, self._driver_timeout)
        except (GpuDriverError, HungError) as error:
            return error
        return None

    def _drain_events(self) -> None:
        xids = self._events.drain()
        now = self._clock.time()
        for gpu in (gpu.identity for gpu in self._events.gpus):
            if gpu.pci_bus_id is not None and gpu.uuid is not None:
                self._uuids[gpu.pci_bus_id] = gpu.uuid
        self._queue.extend(
            XidEvent(at=now, code=code, source=DRIVER, gpu_uuid=gpu.identity.uuid, pci_bus_id=gpu.identity.pci_bus_id)
            for gpu, code in xids
        )


def parse_xid(message: KernelMessage) -> XidEvent | None:
    """XID that a kernel message reports, if any.

    NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.
    NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 31, pid='<unknown>', name=<unknown>, Ch 0000001e      (a MIG instance)
    NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.                                         (79, without the code)
    """
    _, marker, report = message.text.partition("NVRM: Xid (")
    if not marker:
        return _parse_fallen_off(message)
    location, _, rest = report.partition("): ")
    code, _, text = rest.partition(",")
    address = _address(location.split(" ")[0].removeprefix("PCI:"))
    number = _number(code.strip())
    if address is None or number is None:
        return None
    pid, text = _pid(text.strip()), shorten(text.strip(), MAX_TEXT_CHARS)
    return XidEvent(at=message.at, code=number, source=KERNEL, pci_bus_id=address, pid=pid, message=text or None)


def _parse_fallen_off(message: KernelMessage) -> XidEvent | None:
    if "fallen off the bus" not in message.text:
        return None
    for word in message.text.split():
        if (address := _address(word.strip(":,"))) is not None:
            text = "GPU has fallen off the bus."
            return XidEvent(at=message.at, code=OFF_THE_BUS_CODE, source=KERNEL, pci_bus_id=address, message=text)
    return None


def parse_uuid(text: str) -> tuple[str, str] | None:
    """PCI address and UUID of a GPU, if a kernel message reports them.

    NVRM: GPU at PCI:0000:3b:00: GPU-2e2b6342-3996-51b9-5480-e20df571e09c
    """
    _, marker, rest = text.partition("NVRM: GPU at PCI:")
    location, _, uuid = rest.partition(": ")
    address = _address(location) if marker and uuid.startswith("GPU-") else None
    return (address, uuid.strip()) if address is not None else None


def _address(text: str) -> str | None:
    try:
        return normalize_pci_address(text)
    except ValueError:
        return None


def _pid(text: str) -> int | None:
    _, marker, rest = text.partition("pid=")
    pid = rest.partition(",")[0].strip("'\" ")
    return _number(pid) if marker else None


def _number(text: str) -> int | None:
    """Value of a decimal number; None if it is longer than any code or pid."""
    return int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None


def merge_events(facts: XidFacts, events: Iterable[XidEvent]) -> XidFacts:
    """Add new events, counting each incident once. `recent` is sorted, oldest first.

    An incident is one report, or one of the kernel and one of the driver with the same code and GPU at about the same
    time. Any number of reports that a GPU has fallen off the bus are one incident.
    """
    recent = list(facts.recent)
    counts = {(_gpu(count), count.code): count for count in facts.counts}
    for event in sorted(events, key=lambda event: event.at):
        index = _same_incident(recent, event)
        if index is not None:
            recent[index] = _joined(recent[index], event)
            continue
        recent.append(event)
        key = (_gpu(event), event.code)
        counts[key] = _counted(counts.get(key), event)
    recent.sort(key=lambda event: event.at)
    return XidFacts(counts=tuple(counts.values()), recent=tuple(recent[-MAX_RECENT:]))


def with_uuids(facts: XidFacts, uuids: Mapping[str, str]) -> XidFacts:
    """Fill in missing UUIDs, given the UUIDs of GPUs by PCI address."""
    return XidFacts(
        counts=tuple(_with_uuid(count, uuids) for count in facts.counts),
        recent=tuple(_with_uuid(event, uuids) for event in facts.recent),
    )


def _with_uuid(fact: _Xid, uuids: Mapping[str, str]) -> _Xid:
    uuid = uuids.get(fact.pci_bus_id or "")
    return msgspec.structs.replace(fact, gpu_uuid=uuid) if fact.gpu_uuid is None and uuid is not None else fact


def _gpu(fact: XidCount | XidEvent) -> str | None:
    return fact.pci_bus_id or fact.gpu_uuid


def _same_incident(recent: list[XidEvent], event: XidEvent) -> int | None:
    """Index of the newest recent event that reports the same incident."""
    for index in range(len(recent) - 1, -1, -1):
        other = recent[index]
        if other.code != event.code or _gpu(other) != _gpu(event):
            continue
        other_source = {other.source, event.source} == {KERNEL, DRIVER}
        near = abs(other.at - event.at) <= SAME_INCIDENT_SECONDS
        if near and (other_source or event.code == OFF_THE_BUS_CODE):
            return index
    return None


def _joined(one: XidEvent, other: XidEvent) -> XidEvent:
    """One event of two, preferring the one with a message: the kernel reports more than the driver."""
    main, extra = (one, other) if one.message is not None else (other, one)
    return msgspec.structs.replace(
        main,
        at=min(one.at, other.at),
        source=one.source if one.source == other.source else BOTH,
        gpu_uuid=main.gpu_uuid or extra.gpu_uuid,
        pid=main.pid if main.pid is not None else extra.pid,
    )


def _counted(count: XidCount | None, event: XidEvent) -> XidCount:
    return XidCount(
        code=event.code,
        count=count.count + 1 if count else 1,
        last_at=max(count.last_at, event.at) if count else event.at,
        gpu_uuid=event.gpu_uuid or (count.gpu_uuid if count else None),
        pci_bus_id=event.pci_bus_id,
    )
