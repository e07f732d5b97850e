"""What the Docker Engine API says, and the facts in it. Pure: bytes in, facts out.

Every field has a default and null is allowed wherever an engine was seen to send it: versions differ in what they leave
out. A list is decoded as a whole, which is fast, and item by item if that fails, so that an odd item costs only itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from monitor.agent.runtime.api import EngineError, pod_user
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.facts import ContainerFact, ImageFact, RuntimeUsageFact, VolumeFact

log = logging.getLogger(__name__)
_NO_JSON = (msgspec.MsgspecError, UnicodeError, RecursionError)

_STATES = {
    "created": "created",
    "running": "running",
    "paused": "paused",
    "restarting": "exited",  # between two runs, without a process
    "removing": "exited",
    "exited": "exited",
}
_NOT_NAMED = ("<none>:<none>", "<none>@<none>")

T = TypeVar("T")


class _Body(msgspec.Struct, rename="pascal"):
    """Base of the structs below: `image_name` is `ImageName` on the wire, and keys not named here are skipped."""


class Version(_Body):
    """/version."""

    version: str | None = None
    api_version: str = ""
    min_api_version: str = msgspec.field(name="MinAPIVersion", default="")


class Info(_Body):
    """/info."""

    docker_root_dir: str | None = None


class ContainerRow(_Body):
    """An item of /containers/json, and of `Containers` in /system/df."""

    id: str
    names: list[str] | None = None
    image: str | None = None
    image_id: str | None = msgspec.field(name="ImageID", default=None)
    created: float | None = None
    state: str | None = None
    status: str | None = None
    labels: dict[str, str] | None = None
    size_rw: int | None = None


class ContainerState(_Body):
    """`State` of an inspected container."""

    status: str | None = None
    pid: int | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerConfig(_Body):
    """`Config` of an inspected container."""

    image: str | None = None


class Inspection(_Body):
    """/containers/{id}/json."""

    state: ContainerState | None = None
    config: ContainerConfig | None = None
    log_path: str | None = None


class ImageRow(_Body):
    """An item of /images/json, and of `Images` in /system/df. Sizes of -1 were not worked out."""

    id: str
    repo_tags: list[str] | None = None
    repo_digests: list[str] | None = None
    created: float | None = None
    size: int | None = None
    shared_size: int | None = None


class VolumeUsage(_Body):
    """`UsageData` of a volume. -1 is unknown."""

    size: int | None = None
    ref_count: int | None = None


class VolumeRow(_Body):
    """An item of `Volumes` in /system/df."""

    name: str
    usage_data: VolumeUsage | None = None


class BuildCacheRow(_Body):
    """An item of `BuildCache` in /system/df. What is shared is part of an image and not freed with the cache."""

    size: int | None = None
    in_use: bool = False
    shared: bool = False


_NULL = msgspec.Raw(b"null")


class DiskUsage(_Body):
    """/system/df. A type that was not asked for is null."""

    layers_size: int | None = None
    images: msgspec.Raw = _NULL
    containers: msgspec.Raw = _NULL
    volumes: msgspec.Raw = _NULL
    build_cache: msgspec.Raw = _NULL


class Items(Generic[T]):
    """Decodes lists of one kind of item."""

    def __init__(self, item: type[T]) -> None:
        self._name = item.__name__
        self._list = msgspec.json.Decoder(list[item] | None)  # type: ignore[valid-type]  # a type is a value here
        self._item = msgspec.json.Decoder(item)
        self._last_oddity = ""

    def decode(self, body: bytes | msgspec.Raw) -> list[T]:
        """Given a JSON list or null, return its items without the odd ones. Raise EngineError if it is neither."""
        try:
            return self._list.decode(body) or []
        except msgspec.ValidationError:
            pass
        except _NO_JSON as error:
            raise EngineError(f"{self._name}: not what a Docker engine says: {error}") from error
        return list(self._good(decode(body, list[msgspec.Raw])))

    def _good(self, items: Iterable[msgspec.Raw]) -> Iterable[T]:
        for raw in items:
            try:
                yield self._item.decode(raw)
            except (msgspec.ValidationError, UnicodeError) as error:
                if (oddity := str(error)) != self._last_oddity:
                    log.warning("left out an odd %s: %s: %s", self._name, oddity, bytes(raw)[:200])
                    self._last_oddity = oddity


def decode(body: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Given JSON, return it as `kind`. Raise EngineError if it is something else."""
    try:
        return msgspec.json.decode(body, type=kind)
    except _NO_JSON as error:
        raise EngineError(f"{kind.__name__}: not what a Docker engine says: {error}") from error


def parse_time(text: str | None) -> float | None:
    """Given a time as Docker writes it, return seconds since the epoch. Year 1 is how it writes "never"."""
    if not text or text.startswith("0001-"):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def container_fact(row: ContainerRow, inspection: Inspection | None = None) -> ContainerFact:
    """Given a container as listed and, if it was asked about alone, as inspected, return its fact."""
    labels = row.labels or {}
    sandbox = labels.get("io.kubernetes.docker.type") == "podsandbox"
    details = inspection or Inspection()
    now = details.state or ContainerState()
    state = _STATES.get(now.status or row.state or "", "unknown")
    config = details.config or ContainerConfig()
    # A container that is linked to has further names, `/other/alias`.
    names = sorted((name.lstrip("/") for name in row.names or ()), key=lambda name: name.count("/"))
    return ContainerFact(
        id=row.id,
        runtime="docker",
        state=state,
        name=names[0] if names else None,
        image=config.image or row.image or None,  # the list shows an id once the name has moved to another image
        image_id=row.image_id or None,
        pid=now.pid or None,
        created_at=row.created,
        started_at=parse_time(now.started_at),
        # While it runs, this is the end of the run before.
        finished_at=None if state in ("running", "paused") else parse_time(now.finished_at),
        sandbox=sandbox,
        pod_uid=labels.get("io.kubernetes.pod.uid") or None,
        pod_name=labels.get("io.kubernetes.pod.name") or None,
        namespace=labels.get("io.kubernetes.pod.namespace") or None,
        container=None if sandbox else labels.get("io.kubernetes.container.name") or None,
        user=_sandbox_user(labels) if sandbox else None,
        log_path=details.log_path or None,
    )


def _sandbox_user(labels: dict[str, str]) -> str | None:
    """The kubelet gives the sandbox the pod's labels as they are, and its annotations with this prefix."""
    prefix = "annotation."
    return pod_user(
        labels, {key.removeprefix(prefix): value for key, value in labels.items() if key.startswith(prefix)}
    )


def image_fact(row: ImageRow, shared: int | None, containers: Iterable[str]) -> ImageFact:
    """Given an image as listed, what it shares with others and who uses it, return its fact."""
    size = _known(row.size)
    names, digests = (
        tuple(name for name in given or () if name not in _NOT_NAMED) for given in (row.repo_tags, row.repo_digests)
    )
    return ImageFact(
        id=row.id,
        names=names,
        digests=digests,
        size_bytes=size,
        unique_bytes=size - shared if size is not None and shared is not None else None,
        created_at=row.created,
        containers=tuple(containers),
        local=bool(names) and not digests,
    )


def shared_sizes(rows: Iterable[ImageRow]) -> dict[str, int]:
    """Given images as listed, return how much of each is shared, where the engine has worked that out."""
    return {row.id: shared for row in rows if (shared := _known(row.shared_size)) is not None}


def usage_fact(
    layers: int | None, containers: Iterable[ContainerRow], volumes: Iterable[VolumeRow], cache: Iterable[BuildCacheRow]
) -> RuntimeUsageFact:
    """Given the parts of /system/df, return the fact. There, and only there, a size_rw that is left out is 0."""
    writable = {row.id: row.size_rw or 0 for row in containers}
    own = [row for row in cache if not row.shared]
    return RuntimeUsageFact(
        runtime="docker",
        layers_bytes=_known(layers),
        writable_bytes=sum(writable.values()),
        writable=writable,
        build_cache_bytes=sum(row.size or 0 for row in own),
        build_cache_reclaimable_bytes=sum(row.size or 0 for row in own if not row.in_use),
        volumes=tuple(_volume_fact(row) for row in volumes),
    )


def _volume_fact(row: VolumeRow) -> VolumeFact:
    usage = row.usage_data or VolumeUsage()
    return VolumeFact(name=row.name, size_bytes=_known(usage.size), references=_known(usage.ref_count))


def _known(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


warm_up_msgspec(__name__)
