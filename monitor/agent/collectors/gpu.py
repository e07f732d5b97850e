"""Cards: what the driver says of each, and which of them it no longer says anything of."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import msgspec

from monitor.agent.collectors import AbsentError
from monitor.agent.gpu import nvml
from monitor.base.clock import Clock
from monitor.facts import GpuFact, GpuInventory

# Error counters, modes and limits are dear to read and change rarely: what is told of them may be this old.
COUNTERS_SECONDS = 60.0


class GpuCollector:
    """Reads all cards. Once seen, a card that stops answering or is not found again stays in the inventory as lost."""

    name = "gpu"

    def __init__(self, clock: Clock = time) -> None:
        self._clock = clock
        self._session = nvml.Session(clock)
        self._known: dict[str, GpuFact] = {}

    def collect(self) -> GpuInventory:
        """Return the cards. Raise AbsentError without a driver, NvmlError when there is one that does not answer."""
        session = self._session
        try:
            with session.reading():
                read = [self._read(card) for card in session.cards]
                gpus = add_missing(read, session.unreadable, self._known.values())
        except nvml.DriverMissingError as missing:
            raise AbsentError(str(missing)) from missing
        self._known |= {fact.uuid: identity_of(fact) for fact in read if fact.uuid is not None}
        return GpuInventory(gpus=gpus, driver_version=session.driver_version, cuda_version=session.cuda_version)

    def _read(self, card: nvml.Card) -> GpuFact:
        try:
            return nvml.read_gauges(card, self._counters(card))
        except nvml.CardLostError as lost:
            return GpuFact(
                index=card.index,
                uuid=card.uuid,
                pci_bus_id=card.pci_bus_id,
                model=card.model,
                serial=card.serial,
                lost=True,
                error=str(lost),
            )

    def _counters(self, card: nvml.Card) -> GpuFact:
        now = self._clock.monotonic()
        if card.counters is None or now - card.counters[0] >= COUNTERS_SECONDS:
            card.counters = (now, nvml.read_counters(card))
        return card.counters[1]


def identity_of(fact: GpuFact) -> GpuFact:
    """Given a card, return what is left to say of it when it is lost."""
    return GpuFact(
        index=fact.index,
        uuid=fact.uuid,
        pci_bus_id=fact.pci_bus_id,
        model=fact.model,
        serial=fact.serial,
        lost=True,
    )


def add_missing(
    read: Iterable[GpuFact], unreadable: Mapping[int, nvml.Unreadable], known: Iterable[GpuFact]
) -> tuple[GpuFact, ...]:
    """Given the cards that were read, those only counted, and those seen before, return all of them by index.

    A card that is counted and not readable is taken to be the one that was seen before at that index.
    """
    facts = list(read)
    here = {fact.uuid for fact in facts}
    missing = [fact for fact in known if fact.uuid not in here]
    for index, trouble in unreadable.items():
        before = next((fact for fact in missing if fact.index == index), None)
        if before is not None:
            missing.remove(before)
        fact = before or GpuFact(index=index)
        facts.append(msgspec.structs.replace(fact, lost=trouble.lost, error=trouble.error))
    facts += [msgspec.structs.replace(fact, error="the driver no longer lists this card") for fact in missing]
    return tuple(sorted(facts, key=lambda fact: (fact.index, fact.uuid or "")))
