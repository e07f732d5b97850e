"""What removing an image has in common on all runtimes: what is held meanwhile, and where that is written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from monitor.agent.actions.outcome import ActionRefusal
from monitor.agent.journal import ActionJournal
from monitor.base.msgspec_types import know_types
from monitor.facts import ImageFact

HOLD_ACTION = "hold-image"  # how the journal calls it


class ContainerdImageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One of containerd's records of an image, as it has to be made again."""

    name: str
    media_type: str
    digest: str
    size: int
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ImageHold(msgspec.Struct, frozen=True, kw_only=True):
    """An image whose names are being removed, with all that it takes to put them back.

    `guard` is what holds the image meanwhile: a tag in Docker, a lease in containerd.
    """

    runtime: str
    image_id: str
    guard: str
    names: tuple[str, ...] = ()
    records: tuple[ContainerdImageRecord, ...] = ()

    @property
    def digests(self) -> frozenset[str]:
        """Return the content that the records are of."""
        return frozenset(record.digest for record in self.records)


class RuntimeImages(Protocol):
    """The images of one runtime, to be changed. Each method raises EngineError."""

    def labels(self, image: ImageFact) -> dict[str, str]:
        """Return the labels that whoever built the image gave it."""
        ...

    def remove(
        self, image: ImageFact, guard: str, in_use: Callable[[], ActionRefusal | None], ledger: HoldJournal
    ) -> str | ActionRefusal:
        """Remove an image, all its names. Return what is worth saying about it, or of whom it turned out to be used."""
        ...

    def put_back(self, hold: ImageHold) -> None:
        """Put back the names of an image, as far as that is still to be done."""
        ...


class HoldJournal:
    """What is held, on the disk: an agent that dies in the middle puts the names back when it is started again."""

    def __init__(self, journal: ActionJournal) -> None:
        self._journal = journal

    def begin(self, hold: ImageHold) -> str:
        """Write down what is about to be held, and return by which id to end it. Raise OSError."""
        return self._journal.intend(HOLD_ACTION, {"hold": msgspec.json.encode(hold).decode()})

    def end(self, ident: str, outcome: str) -> None:
        """Write down that nothing is held any more."""
        self._journal.done(ident, outcome)

    def left_behind(self) -> tuple[tuple[str, ImageHold], ...]:
        """Return what an agent that died was holding, with the id of each."""
        return tuple(
            (line.id, msgspec.json.decode(str(line.what["hold"]), type=ImageHold))
            for line in self._journal.open()
            if line.action == HOLD_ACTION
        )


def remove_or_roll_back(
    hold: ImageHold,
    ledger: HoldJournal,
    take_names: Callable[[], ActionRefusal | None],
    put_back: Callable[[ImageHold], None],
) -> ActionRefusal | None:
    """Do what takes the names of an image, and undo it if that fails or somebody turns out to need the image."""
    ident = ledger.begin(hold)
    try:
        refusal = take_names()
    except BaseException:
        put_back(hold)
        ledger.end(ident, "put-back")
        raise
    if refusal is not None:
        put_back(hold)
    ledger.end(ident, "put-back" if refusal else "removed")
    return refusal


know_types(__name__)
