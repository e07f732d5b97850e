"""XIDs, the driver's word for what went wrong on a card, from both places where it says so.

Events reach us at once and only while we listen, and some codes (79, 119, 120) never come as one. The kernel log has
all of them, also those from before the agent was started. It is read first and never waits for the driver.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from monitor.agent.collectors import AbsentError
from monitor.agent.gpu import nvml
from monitor.agent.guard import Guard, HungError
from monitor.agent.kmsg import KernelLog, KernelMessage
from monitor.base.clock import Clock
from monitor.facts import XidCount, XidEvent, XidFacts

RECENT = 50
SAME_INCIDENT_SECONDS = 10.0
FALLEN_OFF_THE_BUS = 79
MOST_DIGITS = 10
DRIVER_LIMIT = 3.0
KERNEL, DRIVER, BOTH = "kernel", "nvml", "both"
_Placed = TypeVar("_Placed", XidCount, XidEvent)


class XidCollector:
    """Reads the kernel log and the driver's events, and counts each incident once."""

    name = "xid"

    def __init__(
        self, kmsg: str, clock: Clock = time, booted_at: float | None = None, driver_limit: float = DRIVER_LIMIT
    ) -> None:
        self._clock = clock
        self._log = KernelLog(kmsg, "NVRM: ", booted_at, clock)
        self._listener = nvml.XidListener(nvml.Session(clock))
        self._driver_limit = driver_limit
        # A driver that hangs is when the kernel log matters most, so the driver is asked on a thread of its own. What
        # is heard there waits here: a call that comes back too late has still heard it.
        self._guard = Guard("xid", clock)
        self._heard: deque[XidEvent] = deque()
        self._uuids: dict[str, str] = {}
        self._facts = XidFacts()

    def collect(self) -> XidFacts:
        """Return all that is known. Raise AbsentError when there is neither a driver nor a kernel log to read."""
        news, log_error = self._read_log()
        driver_error = self._ask_driver()
        if log_error is not None and driver_error is not None:
            if isinstance(driver_error, nvml.DriverMissingError):
                raise AbsentError(f"{driver_error}, and its kernel log cannot be read: {log_error}")
            raise driver_error
        while self._heard:
            news.append(self._heard.popleft())
        self._facts = with_uuids(merge(self._facts, news), self._uuids)
        return self._facts

    def _read_log(self) -> tuple[list[XidEvent], OSError | None]:
        try:
            messages = self._log.read()
        except OSError as error:
            return [], error
        self._uuids |= dict(found for message in messages if (found := parse_uuid(message.text)) is not None)
        return [event for message in messages if (event := parse_xid(message)) is not None], None

    def _ask_driver(self) -> Exception | None:
        try:
            self._guard.call("driver", self._listen, self._driver_limit)
        except (nvml.NvmlError, HungError) as error:
            return error
        return None

    def _listen(self) -> None:
        heard = self._listener.drain()
        now = self._clock.time()
        for card in self._listener.session.cards:
            if card.pci_bus_id is not None and card.uuid is not None:
                self._uuids[card.pci_bus_id] = card.uuid
        self._heard.extend(
            XidEvent(at=now, code=code, source=DRIVER, gpu_uuid=card.uuid, pci_bus_id=card.pci_bus_id)
            for card, code in heard
        )


def parse_xid(message: KernelMessage) -> XidEvent | None:
    """Given a message of the kernel, return the XID that it reports, if it reports one.

    NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.
    NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 31, pid='<unknown>', name=<unknown>, Ch 0000001e      (a MIG instance)
    NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.                                         (79, without saying so)
    """
    _, found, report = message.text.partition("NVRM: Xid (")
    if not found:
        return _parse_fallen_off(message)
    place, _, rest = report.partition("): ")
    code, _, words = rest.partition(",")
    address = _address(place.split(" ")[0].removeprefix("PCI:"))
    number = _number(code.strip())
    if address is None or number is None:
        return None
    words = words.strip()
    return XidEvent(
        at=message.at,
        code=number,
        source=KERNEL,
        pci_bus_id=address,
        pid=_pid(words),
        message=words or None,
    )


def _parse_fallen_off(message: KernelMessage) -> XidEvent | None:
    if "fallen off the bus" not in message.text:
        return None
    for word in message.text.split():
        if (address := _address(word.strip(":,"))) is not None:
            words = "GPU has fallen off the bus."
            return XidEvent(at=message.at, code=FALLEN_OFF_THE_BUS, source=KERNEL, pci_bus_id=address, message=words)
    return None


def parse_uuid(text: str) -> tuple[str, str] | None:
    """Given a message of the kernel, return address and uuid of a card, if that is what it tells.

    NVRM: GPU at PCI:0000:3b:00: GPU-2e2b6342-3996-51b9-5480-e20df571e09c
    """
    _, found, rest = text.partition("NVRM: GPU at PCI:")
    place, _, uuid = rest.partition(": ")
    address = _address(place) if found and uuid.startswith("GPU-") else None
    return (address, uuid.strip()) if address is not None else None


def _address(text: str) -> str | None:
    try:
        return nvml.normal_pci(text)
    except ValueError:
        return None


def _pid(words: str) -> int | None:
    _, found, rest = words.partition("pid=")
    pid = rest.partition(",")[0].strip("'\" ")
    return _number(pid) if found else None


def _number(text: str) -> int | None:
    """Given digits, return their value; what has more of them than any code or pid is neither."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def merge(facts: XidFacts, news: Iterable[XidEvent]) -> XidFacts:
    """Given what is known and what is new, return both, each incident once. `recent` has the oldest first.

    An incident is one report, or two of the same code and card at about the same time if one is the kernel's and one
    the driver's. A card falls off the bus once, whoever says so and however often.
    """
    recent = list(facts.recent)
    counts = {(_card(count), count.code): count for count in facts.counts}
    for event in sorted(news, key=lambda event: event.at):
        place = _same_incident(recent, event)
        if place is not None:
            recent[place] = _joined(recent[place], event)
            continue
        recent.append(event)
        key = (_card(event), event.code)
        counts[key] = _counted(counts.get(key), event)
    recent.sort(key=lambda event: event.at)
    return XidFacts(counts=tuple(counts.values()), recent=tuple(recent[-RECENT:]))


def with_uuids(facts: XidFacts, uuids: Mapping[str, str]) -> XidFacts:
    """Given the uuids of cards by address, return the facts with those filled in that were not known before."""
    return XidFacts(
        counts=tuple(_with_uuid(count, uuids) for count in facts.counts),
        recent=tuple(_with_uuid(event, uuids) for event in facts.recent),
    )


def _with_uuid(fact: _Placed, uuids: Mapping[str, str]) -> _Placed:
    uuid = uuids.get(fact.pci_bus_id or "")
    return msgspec.structs.replace(fact, gpu_uuid=uuid) if fact.gpu_uuid is None and uuid is not None else fact


def _card(fact: XidCount | XidEvent) -> str | None:
    return fact.pci_bus_id or fact.gpu_uuid


def _same_incident(recent: list[XidEvent], event: XidEvent) -> int | None:
    """Return where the incident of this event is among the recent ones, the newest that fits."""
    for place in range(len(recent) - 1, -1, -1):
        other = recent[place]
        if other.code != event.code or _card(other) != _card(event):
            continue
        told_by_another = {other.source, event.source} == {KERNEL, DRIVER}
        near = abs(other.at - event.at) <= SAME_INCIDENT_SECONDS
        if near and (told_by_another or event.code == FALLEN_OFF_THE_BUS):
            return place
    return None


def _joined(one: XidEvent, other: XidEvent) -> XidEvent:
    """The kernel says more than the driver does, and says it first."""
    told, silent = (one, other) if one.message is not None else (other, one)
    return msgspec.structs.replace(
        told,
        at=min(one.at, other.at),
        source=one.source if one.source == other.source else BOTH,
        gpu_uuid=told.gpu_uuid or silent.gpu_uuid,
        pid=told.pid if told.pid is not None else silent.pid,
    )


def _counted(count: XidCount | None, event: XidEvent) -> XidCount:
    return XidCount(
        code=event.code,
        count=count.count + 1 if count else 1,
        last_at=max(count.last_at, event.at) if count else event.at,
        gpu_uuid=event.gpu_uuid or (count.gpu_uuid if count else None),
        pci_bus_id=event.pci_bus_id,
    )
