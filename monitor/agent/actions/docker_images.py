"""Removes images from Docker: name by name, never with force, and reversible until the last step.

Docker refuses to remove the last name of an image that a container uses, but removes any other name silently, and a
container under construction counts only once it is registered. Therefore the image first gets a guard tag in each of
its repositories, which holds it (and its digests, which could not be restored) while its own names are removed. After a
pause, in which a container whose creation had already looked up a name becomes registered, the containers are read
again: if one uses the image, its names are restored; otherwise the guard tags are removed, which Docker checks again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import quote, urlencode

import msgspec

from monitor.agent.actions.outcome import ActionRefusal
from monitor.agent.actions.runtime_images import HoldJournal, ImageHold, remove_or_roll_back
from monitor.agent.runtime.api import ConflictError, GoneError
from monitor.agent.runtime.docker_json import decode
from monitor.agent.runtime.unix_http import UnixHttp
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.facts import ImageFact
from monitor.facts.image_names import split_reference

_TIMEOUT_SECONDS = 120.0  # removing 60 GB of small files takes long


class _DockerImageConfig(msgspec.Struct, rename="pascal"):
    labels: dict[str, str] | None = None


class _ImageInspection(msgspec.Struct, rename="pascal"):
    """/images/{id}/json."""

    id: str
    config: _DockerImageConfig | None = None


class _BuildPruneReply(msgspec.Struct, rename="pascal"):
    """/build/prune."""

    space_reclaimed: int = 0


class DockerImages:
    """Write access to the images of one Docker engine.

    `settle` waits for container creations in progress, given the seconds that the removal of a name took.
    """

    def __init__(self, socket: str, settle: Callable[[float], object]) -> None:
        self._socket = socket
        self._settle = settle

    def labels(self, image: ImageFact) -> dict[str, str]:
        config = decode(self._send("GET", _path(image.id, "/json")), _ImageInspection).config
        return (config.labels if config else None) or {}

    def remove(
        self, image: ImageFact, guard: str, in_use: Callable[[], ActionRefusal | None], holds: HoldJournal
    ) -> str | ActionRefusal:
        hold = ImageHold(runtime="docker", image_id=image.id, guard=guard, names=image.names)

        def remove_names() -> ActionRefusal | None:
            for tag in _guard_tags(hold):
                self._tag(image.id, tag)
            began = time.monotonic()
            for name in hold.names:
                if self._id_of(name) == image.id:  # not if it was moved to another image
                    self._untag(name)
            self._settle((time.monotonic() - began) / max(1, len(hold.names)))
            return in_use() or self._remove_rest(image, hold)

        return remove_or_roll_back(hold, holds, remove_names, self.restore_names) or ""

    def restore_names(self, hold: ImageHold) -> None:
        if self._id_of(hold.image_id) is None:
            return
        for name in hold.names:
            if self._id_of(name) is None:  # otherwise it was pulled again
                self._tag(hold.image_id, name)
        for tag in _guard_tags(hold):
            self._untag(tag)

    def prune_build_cache(self, unused_seconds: float) -> int:
        """Prune build cache that was not used for this time. Return the freed bytes."""
        filters = msgspec.json.encode({"unused-for": [f"{int(unused_seconds)}s"]}).decode()
        query = urlencode({"all": "1", "filters": filters})
        return decode(self._send("POST", f"/build/prune?{query}"), _BuildPruneReply).space_reclaimed

    def _remove_rest(self, image: ImageFact, hold: ImageHold) -> ActionRefusal | None:
        """Remove the remaining references. Docker removes the last one only if no container uses the image."""
        guarded = {split_reference(name)[0] for name in hold.names}
        rest = [digest for digest in image.digests if split_reference(digest)[0] not in guarded]
        rest += _guard_tags(hold)
        try:
            for name in rest or [image.id]:
                self._untag(name)
        except ConflictError as error:
            return ActionRefusal("in-use", str(error))
        return None

    def _id_of(self, name: str) -> str | None:
        """Id of the image with this name or id, or None."""
        try:
            return decode(self._send("GET", _path(name, "/json")), _ImageInspection).id
        except GoneError:
            return None

    def _tag(self, image_id: str, name: str) -> None:
        repository, _, tag = name.rpartition(":")
        query = urlencode({"repo": repository, "tag": tag})
        self._send("POST", _path(image_id, f"/tag?{query}"))

    def _untag(self, name: str) -> None:
        try:
            self._send("DELETE", _path(name, "?force=false&noprune=false"))
        except GoneError:
            return

    def _send(self, method: str, target: str) -> bytes:
        with UnixHttp(self._socket) as http:
            return http.send(method, target, _TIMEOUT_SECONDS)


def _path(name: str, rest: str) -> str:
    return f"/images/{quote(name, safe='/:@')}{rest}"


def _guard_tags(hold: ImageHold) -> tuple[str, ...]:
    """One guard tag for each repository in which the image has a tag."""
    repositories = dict.fromkeys(name.rpartition(":")[0] for name in hold.names)
    return tuple(f"{repository}:{hold.guard}" for repository in repositories)


warm_up_msgspec(__name__)
