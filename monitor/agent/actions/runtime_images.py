"""What removing an image has in common on all runtimes: what is held meanwhile, and where that is written down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from monitor.agent.actions.outcome import Refusal
from monitor.agent.journal import Journal
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.facts import ImageFact

HOLD = "hold-image"  # how the journal calls it


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One of containerd's records of an image, as it has to be made again."""

    name: str
    media_type: str
    digest: str
    size: int
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """An image whose names are being removed, with all that it takes to put them back.

    `guard` is what holds the image meanwhile: a tag in Docker, a lease in containerd.
    """

    runtime: str
    image_id: str
    guard: str
    names: tuple[str, ...] = ()
    records: tuple[Record, ...] = ()

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
        self, image: ImageFact, guard: str, in_use: Callable[[], Refusal | None], ledger: Ledger
    ) -> str | Refusal:
        """Remove an image, all its names. Return what is worth saying about it, or of whom it turned out to be used."""
        ...

    def put_back(self, hold: Hold) -> None:
        """Put back the names of an image, as far as that is still to be done."""
        ...


class Ledger:
    """What is held, on the disk: an agent that dies in the middle puts the names back when it is started again."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def begin(self, hold: Hold) -> str:
        """Write down what is about to be held, and return by which id to end it. Raise OSError."""
        return self._journal.intend(HOLD, {"hold": msgspec.json.encode(hold).decode()})

    def end(self, ident: str, outcome: str) -> None:
        """Write down that nothing is held any more."""
        self._journal.done(ident, outcome)

    def left_behind(self) -> tuple[tuple[str, Hold], ...]:
        """Return what an agent that died was holding, with the id of each."""
        return tuple(
            (line.id, msgspec.json.decode(str(line.what["hold"]), type=Hold))
            for line in self._journal.open()
            if line.action == HOLD
        )


def guarded(
    hold: Hold,
    ledger: Ledger,
    take_names: Callable[[], Refusal | None],
    put_back: Callable[[Hold], None],
) -> Refusal | None:
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


warm_up_msgspec(__name__)
