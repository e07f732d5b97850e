"""Image caches, with the time each image was first seen and last used.

Runtimes know neither time and cleanup needs both, so they are kept in a small file across restarts of the agent.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from monitor.agent.collectors import AbsentError
from monitor.agent.runtime import Runtimes, Survey
from monitor.base.clock import Clock
from monitor.base.private_files import make_private_directory, replace_file, set_aside
from monitor.facts import ContainerFact, ImageCacheFact, ImageFact

log = logging.getLogger(__name__)

# The file of an image in use may be this old, so that it is not written every minute.
_GRANULARITY_SECONDS = 600.0


class ImageUse(msgspec.Struct, frozen=True):
    """When an image was first seen and last used."""

    first_seen_at: float
    last_used_at: float | None = None


ImageUses = dict[str, dict[str, ImageUse]]  # runtime -> image id -> use


class ImagesCollector:
    """Reads image caches. On a node with several runtimes, each has `timeout` seconds."""

    name = "images"

    def __init__(
        self,
        runtimes: Runtimes,
        containers: Callable[[], tuple[ContainerFact, ...] | None],
        state_dir: str,
        clock: Clock = time,
        timeout: float = 10.0,
    ) -> None:
        self._survey = Survey(self.name, runtimes, timeout)
        self._containers = containers
        self._clock = clock
        self._file = ImageUseFile(os.path.join(state_dir, "images.json"))
        self._uses: ImageUses | None = None

    @property
    def warning(self) -> str | None:
        """Why the last result is incomplete, if it is."""
        return self._survey.warning

    def collect(self) -> tuple[ImageCacheFact, ...]:
        caches = self._survey.query(lambda runtime: runtime.images())
        if not caches:
            raise AbsentError("no container runtime on this node")
        if self._uses is None:
            self._uses = self._file.load()
        now = self._clock.time()
        containers = {container.id: container for container in self._containers() or ()}
        # The uses of a runtime that was not read stay as they are.
        self._uses = self._uses | {
            cache.runtime: updated_uses(self._uses.get(cache.runtime, {}), cache.images, containers, now)
            for cache in caches
        }
        self._file.save(self._uses)
        return tuple(_with_uses(cache, self._uses[cache.runtime]) for cache in caches)


def updated_uses(
    before: dict[str, ImageUse], images: Iterable[ImageFact], containers: dict[str, ContainerFact], now: float
) -> dict[str, ImageUse]:
    """Uses of the current images, given those of the previous pass and the known containers."""
    uses = {}
    for image in images:
        use = before.get(image.id) or ImageUse(first_seen_at=now)
        users = (containers[id_] for id_ in image.containers if id_ in containers)
        used_at = max((at for user in users if (at := _used_at(user, now)) is not None), default=None)
        if used_at is not None and used_at > (use.last_used_at or 0.0):
            use = ImageUse(use.first_seen_at, used_at)
        uses[image.id] = use
    return uses


def _used_at(container: ContainerFact, now: float) -> float | None:
    """When a container last used its image."""
    if container.state in ("running", "paused"):
        return now
    return container.finished_at or container.started_at or container.created_at


def _with_uses(cache: ImageCacheFact, uses: dict[str, ImageUse]) -> ImageCacheFact:
    images = tuple(
        msgspec.structs.replace(image, first_seen_at=use.first_seen_at, last_used_at=use.last_used_at)
        for image in cache.images
        if (use := uses[image.id])
    )
    return msgspec.structs.replace(cache, images=images)


class SavedImageUses(msgspec.Struct, kw_only=True):
    """Content of the file since version 1; before, it was the mapping alone."""

    version: int = 1
    uses: ImageUses


def decode_uses(content: bytes) -> ImageUses:
    """Saved uses of any version. Raise MsgspecError."""
    try:
        return msgspec.json.decode(content, type=SavedImageUses).uses
    except msgspec.ValidationError:
        return msgspec.json.decode(content, type=ImageUses)


class ImageUseFile:
    """Image uses on disk, written only on a noticeable change. A failure costs a warning, never the facts.

    Unlike base.statefile.StateFile it holds a plain mapping, and repeats a write that has failed.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._saved: ImageUses = {}
        self._warned = False

    def load(self) -> ImageUses:
        """Saved uses; none if the file is missing or damaged."""
        try:
            with open(self._path, "rb") as file:
                self._saved = decode_uses(file.read())
        except FileNotFoundError:
            pass
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            log.warning("%s: cannot read image uses, all images count as new: %s", self._path, error)
            with suppress(OSError):
                set_aside(self._path, "damaged")
        return self._saved

    def save(self, uses: ImageUses) -> None:
        """Replace the file atomically if `uses` differs noticeably from it."""
        if not _differs(uses, self._saved):
            return
        try:
            make_private_directory(os.path.dirname(self._path))
            replace_file(self._path, msgspec.json.encode(SavedImageUses(uses=uses)))
        except OSError as error:
            if not self._warned:
                log.warning("%s: cannot write image uses, a restart will lose them: %s", self._path, error)
            self._warned = True
            return
        self._saved, self._warned = uses, False


def _differs(uses: ImageUses, saved: ImageUses) -> bool:
    """Whether images were added or removed, or one was used noticeably later than saved."""
    if uses.keys() != saved.keys():
        return True
    return any(
        images.keys() != saved[runtime].keys()
        or any(_is_later(use.last_used_at, saved[runtime][image].last_used_at) for image, use in images.items())
        for runtime, images in uses.items()
    )


def _is_later(now: float | None, saved: float | None) -> bool:
    return now != saved and (now is None or saved is None or now - saved >= _GRANULARITY_SECONDS)
