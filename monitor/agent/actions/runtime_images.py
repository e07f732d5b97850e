"""Image removal common to all runtimes: the interface, and the journal of images that are held during removal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from monitor.agent.actions.outcome import ActionRefusal
from monitor.agent.journal import ActionJournal
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.facts import ImageFact

HOLD_ACTION = "hold-image"  # in the journal


class ContainerdImageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One of containerd's records of an image, with all fields needed to create it again."""

    name: str
    media_type: str
    digest: str
    size: int
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ImageHold(msgspec.Struct, frozen=True, kw_only=True):
    """An image whose names are being removed, with everything needed to restore them.

    `guard` holds the image in the meantime: a tag in Docker, a lease in containerd.
    """

    runtime: str
    image_id: str
    guard: str
    names: tuple[str, ...] = ()
    records: tuple[ContainerdImageRecord, ...] = ()

    @property
    def digests(self) -> frozenset[str]:
        return frozenset(record.digest for record in self.records)


class RuntimeImages(Protocol):
    """Write access to the images of one runtime. Each method raises EngineError."""

    def labels(self, image: ImageFact) -> dict[str, str]:
        """Labels from the image's configuration."""
        ...

    def remove(
        self, image: ImageFact, guard: str, in_use: Callable[[], ActionRefusal | None], holds: HoldJournal
    ) -> str | ActionRefusal:
        """Remove an image with all its names. Return a remark, which may be empty, or why it was kept."""
        ...

    def restore_names(self, hold: ImageHold) -> None:
        """Restore those names of an image that are missing."""
        ...


class HoldJournal:
    """Held images on disk: after a crash in the middle of a removal, the next agent restores the names."""

    def __init__(self, journal: ActionJournal) -> None:
        self._journal = journal

    def begin(self, hold: ImageHold) -> str:
        """Record a hold and return the id to end it with. Raise OSError."""
        return self._journal.intend(HOLD_ACTION, {"hold": msgspec.json.encode(hold).decode()})

    def end(self, intent_id: str, outcome: str) -> None:
        self._journal.done(intent_id, outcome)

    def interrupted(self) -> tuple[tuple[str, ImageHold], ...]:
        """Holds of an agent that was killed, with their ids."""
        return tuple(
            (line.id, msgspec.json.decode(str(line.what["hold"]), type=ImageHold))
            for line in self._journal.open_intents()
            if line.action == HOLD_ACTION
        )


def remove_or_roll_back(
    hold: ImageHold,
    holds: HoldJournal,
    remove_names: Callable[[], ActionRefusal | None],
    restore_names: Callable[[ImageHold], None],
) -> ActionRefusal | None:
    """Remove the names of an image, and restore them if that fails or the image turns out to be in use."""
    intent_id = holds.begin(hold)
    try:
        refusal = remove_names()
    except BaseException:
        restore_names(hold)
        holds.end(intent_id, "put-back")
        raise
    if refusal is not None:
        restore_names(hold)
    holds.end(intent_id, "put-back" if refusal else "removed")
    return refusal


warm_up_msgspec(__name__)
