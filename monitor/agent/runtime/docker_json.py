"""Responses of the Docker Engine API, and facts from them.

Every field has a default, and null is allowed wherever an engine sends it: versions differ in what they omit. A list is
decoded as a whole, which is fast, and item by item if that fails, so that an invalid item costs only itself.
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
_JSON_ERRORS = (msgspec.MsgspecError, UnicodeError, RecursionError)

_STATES = {
    "created": "created",
    "running": "running",
    "paused": "paused",
    "restarting": "exited",  # between two runs: no process
    "removing": "exited",
    "exited": "exited",
}
_UNNAMED = ("<none>:<none>", "<none>@<none>")

T = TypeVar("T")


class _DockerBody(msgspec.Struct, rename="pascal"):
    """Base of the structs below: `image_name` is `ImageName` on the wire, and unknown keys are ignored."""


class EngineVersion(_DockerBody):
    """/version."""

    version: str | None = None
    api_version: str = ""
    min_api_version: str = msgspec.field(name="MinAPIVersion", default="")


class EngineInfo(_DockerBody):
    """/info."""

    docker_root_dir: str | None = None


class ContainerRow(_DockerBody):
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


class ContainerState(_DockerBody):
    """`State` of an inspected container."""

    status: str | None = None
    pid: int | None = None
    started_at: str | None = None
    finished_at: str | None = None
    exit_code: int | None = None


class ContainerConfig(_DockerBody):
    """`Config` of an inspected container."""

    image: str | None = None


class Inspection(_DockerBody):
    """/containers/{id}/json."""

    state: ContainerState | None = None
    config: ContainerConfig | None = None
    log_path: str | None = None


class ImageRow(_DockerBody):
    """An item of /images/json, and of `Images` in /system/df. A size of -1 is unknown."""

    id: str
    repo_tags: list[str] | None = None
    repo_digests: list[str] | None = None
    created: float | None = None
    size: int | None = None
    shared_size: int | None = None


class VolumeUsage(_DockerBody):
    """`UsageData` of a volume. -1 is unknown."""

    size: int | None = None
    ref_count: int | None = None


class VolumeRow(_DockerBody):
    """An item of `Volumes` in /system/df."""

    name: str
    usage_data: VolumeUsage | None = None


class BuildCacheRow(_DockerBody):
    """An item of `BuildCache` in /system/df. A shared item is part of an image and not freed with the cache."""

    size: int | None = None
    in_use: bool = False
    shared: bool = False


_NULL = msgspec.Raw(b"null")


class DiskUsage(_DockerBody):
    """/system/df. A type that was not requested is null."""

    layers_size: int | None = None
    images: msgspec.Raw = _NULL
    containers: msgspec.Raw = _NULL
    volumes: msgspec.Raw = _NULL
    build_cache: msgspec.Raw = _NULL


class ListDecoder(Generic[T]):
    """Decodes lists of one type of item."""

    def __init__(self, item: type[T]) -> None:
        self._name = item.__name__
        self._list = msgspec.json.Decoder(list[item] | None)  # type: ignore[valid-type]  # a type is a value here
        self._item = msgspec.json.Decoder(item)
        self._last_error = ""

    def decode(self, body: bytes | msgspec.Raw) -> list[T]:
        """Valid items of a JSON list or null. Raise EngineError if it is neither."""
        try:
            return self._list.decode(body) or []
        except msgspec.ValidationError:
            pass
        except _JSON_ERRORS as error:
            raise EngineError(f"{self._name}: not a valid Docker response: {error}") from error
        return list(self._valid(decode(body, list[msgspec.Raw])))

    def _valid(self, items: Iterable[msgspec.Raw]) -> Iterable[T]:
        for raw in items:
            try:
                yield self._item.decode(raw)
            except (msgspec.ValidationError, UnicodeError) as error:
                if (message := str(error)) != self._last_error:
                    log.warning("ignored an invalid %s: %s: %s", self._name, message, bytes(raw)[:200])
                    self._last_error = message


def decode(body: bytes | msgspec.Raw, kind: type[T]) -> T:
    """JSON as `kind`. Raise EngineError if it is something else."""
    try:
        return msgspec.json.decode(body, type=kind)
    except _JSON_ERRORS as error:
        raise EngineError(f"{kind.__name__}: not a valid Docker response: {error}") from error


def parse_time(text: str | None) -> float | None:
    """Unix time of a time as Docker writes it; None for year 1, which means "never"."""
    if not text or text.startswith("0001-"):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def container_fact(row: ContainerRow, inspection: Inspection | None = None) -> ContainerFact:
    """Fact of a listed container and, if it was inspected, its inspection."""
    labels = row.labels or {}
    sandbox = labels.get("io.kubernetes.docker.type") == "podsandbox"
    details = inspection or Inspection()
    now = details.state or ContainerState()
    state = _STATES.get(now.status or row.state or "", "unknown")
    config = details.config or ContainerConfig()
    # A linked container has further names, `/other/alias`.
    names = sorted((name.lstrip("/") for name in row.names or ()), key=lambda name: name.count("/"))
    return ContainerFact(
        id=row.id,
        runtime="docker",
        state=state,
        name=names[0] if names else None,
        image=config.image or row.image or None,  # the list has an id once the name has moved to another image
        image_id=row.image_id or None,
        pid=now.pid or None,
        created_at=row.created,
        started_at=parse_time(now.started_at),
        # While it runs, this is the end of the previous run.
        finished_at=None if state in ("running", "paused") else parse_time(now.finished_at),
        exit_code=now.exit_code if state == "exited" else None,
        sandbox=sandbox,
        pod_uid=labels.get("io.kubernetes.pod.uid") or None,
        pod_name=labels.get("io.kubernetes.pod.name") or None,
        namespace=labels.get("io.kubernetes.pod.namespace") or None,
        container=None if sandbox else labels.get("io.kubernetes.container.name") or None,
        user=_sandbox_user(labels) if sandbox else None,
        log_path=details.log_path or None,
    )


def _sandbox_user(labels: dict[str, str]) -> str | None:
    """User of a pod. The kubelet copies the pod's labels to the sandbox, and its annotations with a prefix."""
    prefix = "annotation."
    return pod_user(
        labels, {key.removeprefix(prefix): value for key, value in labels.items() if key.startswith(prefix)}
    )


def image_fact(row: ImageRow, shared: int | None, containers: Iterable[str]) -> ImageFact:
    """Fact of a listed image, the bytes it shares with others and the containers that use it."""
    size = _known(row.size)
    names, digests = (
        tuple(name for name in listed or () if name not in _UNNAMED) for listed in (row.repo_tags, row.repo_digests)
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
    """Shared bytes by image id, for images whose shared size is known."""
    return {row.id: shared for row in rows if (shared := _known(row.shared_size)) is not None}


def usage_fact(
    layers: int | None, containers: Iterable[ContainerRow], volumes: Iterable[VolumeRow], cache: Iterable[BuildCacheRow]
) -> RuntimeUsageFact:
    """Usage from the parts of /system/df. There, and only there, an omitted size_rw means 0."""
    writable = {row.id: row.size_rw or 0 for row in containers}
    unshared = [row for row in cache if not row.shared]
    return RuntimeUsageFact(
        runtime="docker",
        layers_bytes=_known(layers),
        writable_bytes=sum(writable.values()),
        writable=writable,
        build_cache_bytes=sum(row.size or 0 for row in unshared),
        build_cache_reclaimable_bytes=sum(row.size or 0 for row in unshared if not row.in_use),
        volumes=tuple(_volume_fact(row) for row in volumes),
    )


def _volume_fact(row: VolumeRow) -> VolumeFact:
    usage = row.usage_data or VolumeUsage()
    return VolumeFact(name=row.name, size_bytes=_known(usage.size), references=_known(usage.ref_count))


def _known(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


warm_up_msgspec(__name__)
