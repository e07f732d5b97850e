"""Docker, by the Docker Engine API over its unix socket.

Each query opens its own connection (0.05 ms on a unix socket), so threads share nothing that needs a lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from monitor.agent.runtime.api import EngineError
from monitor.agent.runtime.docker_json import (
    BuildCacheRow,
    ContainerRow,
    DiskUsage,
    EngineInfo,
    EngineVersion,
    ImageRow,
    Inspection,
    ListDecoder,
    VolumeRow,
    container_fact,
    decode,
    image_fact,
    shared_sizes,
    usage_fact,
)
from monitor.agent.runtime.inspection import INSPECT_TIMEOUT_SECONDS, InspectionCache, ListedContainer
from monitor.agent.runtime.unix_http import UnixHttp
from monitor.base.clock import Clock
from monitor.facts import ContainerFact, ImageCacheFact, RuntimeUsageFact

# The preferred API version: Docker 25 and later serve it, Docker 29 serves nothing older, and newer versions rename
# fields used here. An engine without it is queried in its nearest version.
_API_VERSION = (1, 44)
# Since this version the usage of images alone can be queried, which is cheap. Before, the engine walks volumes as well.
_USAGE_BY_TYPE_VERSION = (1, 42)
# A list shows the uptime of a container in seconds during its first minute. A restart since the previous list is
# detected by that if the previous list is less than a minute old.
_MAX_LIST_GAP_SECONDS = 50.0

_CONTAINERS = ListDecoder(ContainerRow)
_IMAGES = ListDecoder(ImageRow)
_VOLUMES = ListDecoder(VolumeRow)
_BUILD_CACHE = ListDecoder(BuildCacheRow)

T = TypeVar("T")


@dataclass(frozen=True)
class _Engine:
    """EngineVersion of an engine, and API version used with it."""

    version: str | None
    api: tuple[int, int]


@dataclass(frozen=True)
class _SharedLayers:
    """Bytes shared between images, from a walk that is too expensive to repeat. Valid while the images are the same."""

    images: frozenset[str]
    shared: dict[str, int]
    total: int | None


def choose_api(newest: str, oldest: str) -> tuple[int, int]:
    """API version to use with an engine that serves these."""
    return max(min(_numbers(newest) or _API_VERSION, _API_VERSION), _numbers(oldest) or (0, 0))


def _numbers(version: str) -> tuple[int, int] | None:
    major, dot, minor = version.partition(".")
    return (int(major), int(minor)) if dot and major.isdecimal() and minor.isdecimal() else None


class DockerRuntime:
    """A Docker engine."""

    name = "docker"

    def __init__(self, socket: str, clock: Clock = time) -> None:
        self.socket = socket
        self.root: str | None = None
        self._engine: _Engine | None = None
        self._shared_layers: _SharedLayers | None = None
        self._inspections: InspectionCache[ContainerRow] = InspectionCache(clock, max_gap=_MAX_LIST_GAP_SECONDS)

    def containers(self) -> tuple[ContainerFact, ...]:
        return self._query(self._containers)

    def images(self) -> ImageCacheFact:
        return self._query(self._images)

    def usage(self) -> RuntimeUsageFact:
        return self._query(self._usage)

    def _query(self, query: Callable[[_DockerClient], T]) -> T:
        """Result of a query on its own connection."""
        with UnixHttp(self.socket) as http:
            try:
                client = _DockerClient(http, self._engine or _identify(http))
                if self._engine is None:
                    self._read_root(client)
                    self._engine = client.engine
                return query(client)
            except EngineError:
                self._engine = None  # the next engine on this socket may have another version
                raise

    def _read_root(self, client: _DockerClient) -> None:
        try:
            self.root = decode(client.get("/info", INSPECT_TIMEOUT_SECONDS), EngineInfo).docker_root_dir or self.root
        except EngineError:
            return  # an engine with a broken plug-in answers everything else

    def _containers(self, client: _DockerClient) -> tuple[ContainerFact, ...]:
        def inspect(row: ContainerRow) -> ContainerFact:
            return container_fact(
                row, decode(client.get(f"/containers/{row.id}/json", INSPECT_TIMEOUT_SECONDS), Inspection)
            )

        rows = client.containers()
        listed = (ListedContainer(row.id, _revision(row), row) for row in rows)
        return self._inspections.complete(listed, inspect, container_fact)

    def _images(self, client: _DockerClient) -> ImageCacheFact:
        rows, layers = client.images()
        ids = frozenset(row.id for row in rows)
        if layers is None and self._shared_layers is not None and self._shared_layers.images == ids:
            layers = self._shared_layers
        users = _containers_by_image(client.containers())  # after the images, so that one started in between is seen
        shared = layers.shared if layers else {}
        return ImageCacheFact(
            runtime=self.name,
            images=tuple(image_fact(row, shared.get(row.id), users.get(row.id, ())) for row in rows),
            version=client.engine.version,
            root=self.root,
            total_bytes=layers.total if layers else None,
        )

    def _usage(self, client: _DockerClient) -> RuntimeUsageFact:
        self._read_root(client)
        usage = decode(client.get("/system/df"), DiskUsage)
        self._shared_layers = _shared_layers(_IMAGES.decode(usage.images), usage.layers_size)
        return usage_fact(
            usage.layers_size,
            _CONTAINERS.decode(usage.containers),
            _VOLUMES.decode(usage.volumes),
            _BUILD_CACHE.decode(usage.build_cache),
        )


@dataclass(frozen=True)
class _DockerClient:
    """A connection to an engine."""

    http: UnixHttp
    engine: _Engine

    def get(self, target: str, timeout: float | None = None) -> bytes:
        major, minor = self.engine.api
        return self.http.get(f"/v{major}.{minor}{target}", timeout)

    def containers(self) -> list[ContainerRow]:
        return _CONTAINERS.decode(self.get("/containers/json?all=1"))

    def images(self) -> tuple[list[ImageRow], _SharedLayers | None]:
        """Images and, if it is cheap, what they share."""
        if self.engine.api < _USAGE_BY_TYPE_VERSION:
            return _IMAGES.decode(self.get("/images/json")), None
        usage = decode(self.get("/system/df?type=image"), DiskUsage)
        rows = _IMAGES.decode(usage.images)
        return rows, _shared_layers(rows, usage.layers_size)


def _identify(http: UnixHttp) -> _Engine:
    """EngineVersion of the engine. Every engine answers this query without an API version."""
    version = decode(http.get("/version"), EngineVersion)
    return _Engine(version.version, choose_api(version.api_version, version.min_api_version))


def _revision(row: ContainerRow) -> tuple[object, ...] | None:
    """Value that changes with the container; None in its first minute, when it may have restarted."""
    if "second" in (row.status or ""):
        return None
    return (row.state, row.image, tuple(row.names or ()))


def _containers_by_image(rows: Iterable[ContainerRow]) -> dict[str, list[str]]:
    """Container ids by image id."""
    users: dict[str, list[str]] = {}
    for row in rows:
        users.setdefault(row.image_id or "", []).append(row.id)
    return users


def _shared_layers(rows: list[ImageRow], total: int | None) -> _SharedLayers:
    return _SharedLayers(frozenset(row.id for row in rows), shared_sizes(rows), total)
