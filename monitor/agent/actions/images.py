"""Removing images and build cache: everything is looked at anew where it is, then one image goes, or stays.

What cannot be known is a reason to leave an image alone. Nothing is removed through the filesystem, nothing by force.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable
from functools import partial

from monitor.agent.actions.outcome import ActionOutcome, ActionRefusal, done, failed, refused
from monitor.agent.actions.protect import has_label_pins, in_use_refusal, label_pin_refusal, removal_refusal
from monitor.agent.actions.runtime_images import HoldJournal, RuntimeImages
from monitor.agent.runtime import EngineError, NotServedError, Runtime, Runtimes
from monitor.base.clock import Clock
from monitor.facts import ContainerFact, ImageCacheFact, ImageFact
from monitor.facts.actions import PruneBuildCache, RemoveImage

log = logging.getLogger(__name__)

# How long a runtime may take between looking up the name of an image and having the container that was made of it.
SETTLE_SECONDS = 2.0
GUARD_PREFIX = "gpuwarden-"  # how the name begins under which an image is kept meanwhile

KnownImages = Callable[[], tuple[ImageCacheFact, ...] | None]


class ImageActions:
    """What is done to the images of a node. `remembered` is what the agent knows of when images were used."""

    def __init__(
        self,
        runtimes: Runtimes,
        remembered: KnownImages,
        ledger: HoldJournal,
        rootfs: str = "/",
        clock: Clock = time,
        settle: float = SETTLE_SECONDS,
    ) -> None:
        self._runtimes = runtimes
        self._remembered = remembered
        self._ledger = ledger
        self._rootfs = rootfs
        self._clock = clock
        self._settle = partial(time.sleep, settle)
        self._left_behind = list(ledger.left_behind())
        self._images: dict[Runtime, RuntimeImages] = {}

    def remove(self, action: RemoveImage) -> ActionOutcome:
        """Remove an image if nothing speaks against it now."""
        try:
            runtime = self._runtime(action.runtime)
            self._put_back(runtime)
            return self._remove(runtime, action)
        except NotServedError as error:
            return refused("unknown", str(error))
        except EngineError as error:
            return failed("failed", str(error))

    def prune_build_cache(self, action: PruneBuildCache) -> ActionOutcome:
        """Remove what builds left behind in Docker; other runtimes build nothing."""
        from monitor.agent.actions.docker_images import DockerImages  # where there is no Docker, it is not paid for

        try:
            runtime = self._runtime(action.runtime)
            if runtime.name != "docker":
                return refused("unsupported", f"{runtime.name} has no build cache")
            freed = DockerImages(runtime.socket, self._settle).prune_build_cache(action.unused_seconds)
        except NotServedError as error:
            return refused("unknown", str(error))
        except EngineError as error:
            return failed("failed", str(error))
        return done("removed", freed_bytes=freed)

    def put_back_left_behind(self) -> None:
        """Put back the names that an agent which died had taken from images, on runtimes that answer now."""
        for name in {hold.runtime for _, hold in self._left_behind}:
            try:
                self._put_back(self._runtime(name))
            except (EngineError, NotServedError) as error:  # tried again before the next image is removed there
                log.warning("names of images could not be put back: %s", error)

    def _put_back(self, runtime: Runtime) -> None:
        for entry in [entry for entry in self._left_behind if entry[1].runtime == runtime.name]:
            ident, hold = entry
            self._images_of(runtime).put_back(hold)
            self._ledger.end(ident, "put-back")
            self._left_behind.remove(entry)

    def _remove(self, runtime: Runtime, action: RemoveImage) -> ActionOutcome:
        image, containers = _look(runtime, action.image_id)
        against = removal_refusal(action, image, self._seen(action), containers, self._clock.time())
        if against is not None or image is None:
            return (against or ActionRefusal("gone", action.image_id)).outcome()
        images = self._images_of(runtime)
        if has_label_pins(action) and (pinned := label_pin_refusal(images.labels(image), action)):
            return pinned.outcome()
        free = self._free_bytes(runtime)
        said = images.remove(
            image, f"{GUARD_PREFIX}{uuid.uuid4().hex[:12]}", lambda: self._used(action, image), self._ledger
        )
        if isinstance(said, ActionRefusal):
            return said.outcome()
        after = self._free_bytes(runtime)
        freed = max(0, after - free) if free is not None and after is not None else None
        return done("removed", said or None, freed)

    def _used(self, action: RemoveImage, image: ImageFact) -> ActionRefusal | None:
        return in_use_refusal(action, image, self._runtime(action.runtime).containers(), self._clock.time())

    def _seen(self, action: RemoveImage) -> ImageFact | None:
        caches = self._remembered() or ()
        images = (image for cache in caches if cache.runtime == action.runtime for image in cache.images)
        return next((image for image in images if image.id == action.image_id), None)

    def _runtime(self, name: str) -> Runtime:
        """Return a runtime by its name. One that speaks CRI says its name only when it is asked something."""
        present = self._runtimes.present()
        for runtime in present:
            if runtime.name not in (name, "cri"):
                continue
            if runtime.name == "cri":
                runtime.containers()
            if runtime.name == name:
                return runtime
        raise NotServedError(f"there is no {name} on this node")

    def _images_of(self, runtime: Runtime) -> RuntimeImages:
        if runtime not in self._images:
            self._images = {runtime: self._make(runtime)}  # one that was replaced is not kept
        return self._images[runtime]

    def _make(self, runtime: Runtime) -> RuntimeImages:
        if runtime.name == "docker":
            from monitor.agent.actions.docker_images import DockerImages  # where there is no Docker, it is not paid for

            return DockerImages(runtime.socket, self._settle)
        from monitor.agent.actions.cri_images import CriImages  # grpc costs 13 MiB

        return CriImages(runtime.socket, runtime.name, self._settle)

    def _free_bytes(self, runtime: Runtime) -> int | None:
        """Return how much room there is on the disk of a runtime, or None if that cannot be told."""
        if runtime.root is None:
            return None
        try:
            disk = os.statvfs(f"{self._rootfs.rstrip('/')}{runtime.root}")
        except OSError:
            return None
        return disk.f_bfree * disk.f_frsize


def _look(runtime: Runtime, image_id: str) -> tuple[ImageFact | None, tuple[ContainerFact, ...]]:
    """Ask a runtime for an image and, after that, for all containers: who starts one in between is seen."""
    image = next((image for image in runtime.images().images if image.id == image_id), None)
    return image, runtime.containers()
