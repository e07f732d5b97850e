"""Removes images and build cache. The node's state is read again immediately before each removal.

An image about which information is missing is kept. Nothing is removed through the filesystem or with force.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Callable

from monitor.agent.actions.outcome import ActionOutcome, ActionRefusal, done, failed, refused
from monitor.agent.actions.protect import has_label_pins, in_use_refusal, label_pin_refusal, removal_refusal
from monitor.agent.actions.runtime_images import HoldJournal, RuntimeImages
from monitor.agent.runtime import EngineError, NotServedError, Runtime, Runtimes
from monitor.base.clock import Clock
from monitor.facts import ContainerFact, ImageCacheFact, ImageFact
from monitor.facts.actions import PruneBuildCache, RemoveImage

log = logging.getLogger(__name__)

# Longest time between a runtime's lookup of an image name and the registration of the container created from it.
SETTLE_SECONDS = 2.0
SETTLE_RATIO = 20.0  # at least this many times what the removal of a name took: a busy runtime also creates slowly
MAX_SETTLE_SECONDS = 60.0
GUARD_PREFIX = "gpuwarden-"  # of the tag or lease that holds an image during its removal

KnownImages = Callable[[], tuple[ImageCacheFact, ...] | None]


class ImageActions:
    """Actions on the images of a node. `known_images` returns the collected images with their times of use."""

    def __init__(
        self,
        runtimes: Runtimes,
        known_images: KnownImages,
        holds: HoldJournal,
        rootfs: str = "/",
        clock: Clock = time,
        settle: float = SETTLE_SECONDS,
    ) -> None:
        self._runtimes = runtimes
        self._known_images = known_images
        self._holds = holds
        self._rootfs = rootfs
        self._clock = clock
        self._settle_seconds = settle
        self._interrupted = list(holds.interrupted())
        self._images: dict[Runtime, RuntimeImages] = {}

    def _settle(self, removal_seconds: float) -> None:
        """Wait for container creations in progress, given how long the runtime took to remove a name."""
        time.sleep(max(self._settle_seconds, min(MAX_SETTLE_SECONDS, SETTLE_RATIO * removal_seconds)))

    def remove(self, action: RemoveImage) -> ActionOutcome:
        """Remove an image unless something protects it."""
        return self._on_runtime(action.runtime, lambda runtime: self._remove(runtime, action))

    def prune_build_cache(self, action: PruneBuildCache) -> ActionOutcome:
        """Prune Docker's build cache; other runtimes do not build images."""
        return self._on_runtime(action.runtime, lambda runtime: self._prune(runtime, action))

    def _on_runtime(self, name: str, work: Callable[[Runtime], ActionOutcome]) -> ActionOutcome:
        try:
            return work(self._runtime(name))
        except NotServedError as error:
            return refused("unknown", str(error))
        except EngineError as error:
            return failed("failed", str(error))

    def _prune(self, runtime: Runtime, action: PruneBuildCache) -> ActionOutcome:
        if runtime.name != "docker":
            return refused("unsupported", f"{runtime.name} has no build cache")
        from monitor.agent.actions.docker_images import DockerImages  # not loaded on nodes without Docker

        freed = DockerImages(runtime.socket, self._settle).prune_build_cache(action.unused_seconds)
        return done("removed", freed_bytes=freed)

    def restore_interrupted(self) -> None:
        """Restore image names that an agent removed before it was killed, on runtimes that respond."""
        for name in {hold.runtime for _, hold in self._interrupted}:
            try:
                self._restore_names(self._runtime(name))
            except (EngineError, NotServedError) as error:  # retried before the next removal on that runtime
                log.warning("cannot restore image names on %s: %s", name, error)

    def _restore_names(self, runtime: Runtime) -> None:
        for entry in [entry for entry in self._interrupted if entry[1].runtime == runtime.name]:
            intent_id, hold = entry
            self._images_of(runtime).restore_names(hold)
            self._holds.end(intent_id, "put-back")
            self._interrupted.remove(entry)

    def _remove(self, runtime: Runtime, action: RemoveImage) -> ActionOutcome:
        self._restore_names(runtime)
        image, containers = _read(runtime, action.image_id)
        refusal = removal_refusal(action, image, self._history(action), containers, self._clock.time())
        if refusal is not None or image is None:
            return (refusal or ActionRefusal("gone", action.image_id)).outcome()
        images = self._images_of(runtime)
        if has_label_pins(action) and (pinned := label_pin_refusal(images.labels(image), action)):
            return pinned.outcome()
        free_before = self._free_bytes(runtime)
        guard = f"{GUARD_PREFIX}{uuid.uuid4().hex[:12]}"
        removed = images.remove(image, guard, lambda: self._in_use(action, image), self._holds)
        if isinstance(removed, ActionRefusal):
            return removed.outcome()
        free = self._free_bytes(runtime)
        freed = max(0, free - free_before) if free is not None and free_before is not None else None
        return done("removed", removed or None, freed)

    def _in_use(self, action: RemoveImage, image: ImageFact) -> ActionRefusal | None:
        return in_use_refusal(action, image, self._runtime(action.runtime).containers(), self._clock.time())

    def _history(self, action: RemoveImage) -> ImageFact | None:
        caches = self._known_images() or ()
        images = (image for cache in caches if cache.runtime == action.runtime for image in cache.images)
        return next((image for image in images if image.id == action.image_id), None)

    def _runtime(self, name: str) -> Runtime:
        """Find a runtime by name. A CRI runtime reports its name only after the first call."""
        for runtime in self._runtimes.present():
            if runtime.name not in (name, "cri"):
                continue
            if runtime.name == "cri":
                runtime.containers()
            if runtime.name == name:
                return runtime
        raise NotServedError(f"there is no {name} on this node")

    def _images_of(self, runtime: Runtime) -> RuntimeImages:
        if runtime not in self._images:
            self._images = {runtime: self._connect(runtime)}  # drops that of a replaced runtime
        return self._images[runtime]

    def _connect(self, runtime: Runtime) -> RuntimeImages:
        if runtime.name == "docker":
            from monitor.agent.actions.docker_images import DockerImages  # not loaded on nodes without Docker

            return DockerImages(runtime.socket, self._settle)
        from monitor.agent.actions.cri_images import CriImages  # h2 and protobuf cost 4 MiB

        return CriImages(runtime.socket, runtime.name, self._settle)

    def _free_bytes(self, runtime: Runtime) -> int | None:
        """Free space on the disk of a runtime, or None if unknown."""
        if runtime.root is None:
            return None
        try:
            disk = os.statvfs(f"{self._rootfs.rstrip('/')}{runtime.root}")
        except OSError:
            return None
        return disk.f_bfree * disk.f_frsize


def _read(runtime: Runtime, image_id: str) -> tuple[ImageFact | None, tuple[ContainerFact, ...]]:
    """Read an image and then all containers: in this order, a container started in between is seen."""
    image = next((image for image in runtime.images().images if image.id == image_id), None)
    return image, runtime.containers()
