"""The image caches, and since when each image is here and when it was last used.

Runtimes know neither time, and cleanup turns on both, so they are kept in a small file across restarts of the agent.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable

import msgspec

from monitor.agent.collectors import AbsentError
from monitor.agent.runtime import Runtimes, Survey
from monitor.base.clock import Clock
from monitor.facts import ContainerFact, ImageCacheFact, ImageFact

log = logging.getLogger(__name__)

# A file that says "used ten minutes ago" of an image that is in use is near enough, and is not written every minute.
_GRANULARITY = 600.0


class Seen(msgspec.Struct, frozen=True):
    """What is remembered of one image."""

    first_seen_at: float
    last_used_at: float | None = None


# runtime -> image id -> what is remembered
Memory = dict[str, dict[str, Seen]]


class ImagesCollector:
    """Reads image caches. `patience` is how long each of several runtimes may take."""

    name = "images"

    def __init__(
        self,
        runtimes: Runtimes,
        containers: Callable[[], tuple[ContainerFact, ...] | None],
        state_dir: str,
        clock: Clock = time,
        patience: float = 10.0,
    ) -> None:
        self._survey = Survey(self.name, runtimes, patience)
        self._containers = containers
        self._clock = clock
        self._file = StateFile(os.path.join(state_dir, "images.json"))
        self._memory: Memory | None = None

    @property
    def trouble(self) -> str | None:
        """Return which runtime the last reading is without, and why, or None if it is complete."""
        return self._survey.trouble

    def collect(self) -> tuple[ImageCacheFact, ...]:
        caches = self._survey.ask(lambda runtime: runtime.images())
        if not caches:
            raise AbsentError("this node has no container runtime that can be asked")
        if self._memory is None:
            self._memory = self._file.load()
        now = self._clock.time()
        containers = {one.id: one for one in self._containers() or ()}
        # A runtime that was not read keeps what is remembered of its images.
        self._memory = self._memory | {
            cache.runtime: remember(self._memory.get(cache.runtime, {}), cache.images, containers, now)
            for cache in caches
        }
        self._file.save(self._memory)
        return tuple(_dated(cache, self._memory[cache.runtime]) for cache in caches)


def remember(
    before: dict[str, Seen], images: Iterable[ImageFact], containers: dict[str, ContainerFact], now: float
) -> dict[str, Seen]:
    """Given what was remembered, the images here now and what is known of containers, return what to remember now."""
    after = {}
    for image in images:
        seen = before.get(image.id) or Seen(first_seen_at=now)
        users = (containers[one] for one in image.containers if one in containers)
        used = max((at for user in users if (at := _used_at(user, now)) is not None), default=None)
        if used is not None and used > (seen.last_used_at or 0.0):
            seen = Seen(seen.first_seen_at, used)
        after[image.id] = seen
    return after


def _used_at(container: ContainerFact, now: float) -> float | None:
    """Given a container, return when it last used its image."""
    if container.state in ("running", "paused"):
        return now
    return container.finished_at or container.started_at or container.created_at


def _dated(cache: ImageCacheFact, memory: dict[str, Seen]) -> ImageCacheFact:
    images = tuple(
        msgspec.structs.replace(image, first_seen_at=seen.first_seen_at, last_used_at=seen.last_used_at)
        for image in cache.images
        if (seen := memory[image.id])
    )
    return msgspec.structs.replace(cache, images=images)


class StateFile:
    """The file in which the memory outlives the agent. One that cannot be used costs a warning, never the facts."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._saved: Memory = {}
        self._warned = False

    def load(self) -> Memory:
        """Return what the file says, or nothing if there is none or it is damaged."""
        try:
            with open(self._path, "rb") as file:
                self._saved = msgspec.json.decode(file.read(), type=Memory)
        except FileNotFoundError:
            pass
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("%s: cannot be read, images count as new: %s", self._path, error)
        return self._saved

    def save(self, memory: Memory) -> None:
        """Write `memory` if it says something else than the file, in one step that a crash cannot leave half done."""
        if not _differs(memory, self._saved):
            return
        temporary = f"{self._path}.new"
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(msgspec.json.encode(memory))
            os.replace(temporary, self._path)
        except OSError as error:
            if not self._warned:
                log.warning("%s: cannot be written, a restart will forget when images were used: %s", self._path, error)
            self._warned = True
            return
        self._saved, self._warned = memory, False


def _differs(memory: Memory, saved: Memory) -> bool:
    """Return whether images came or went, or one was used noticeably later than the file says."""
    if memory.keys() != saved.keys():
        return True
    return any(
        images.keys() != saved[runtime].keys()
        or any(_moved(seen.last_used_at, saved[runtime][image].last_used_at) for image, seen in images.items())
        for runtime, images in memory.items()
    )


def _moved(now: float | None, saved: float | None) -> bool:
    return now != saved and (now is None or saved is None or now - saved >= _GRANULARITY)
