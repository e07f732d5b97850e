"""Docker, asked by the Docker Engine API over its unix socket.

Each question opens a connection of its own (a unix socket costs 0.05 ms), so threads share nothing that needs a lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from monitor.agent.runtime.api import EngineError
from monitor.agent.runtime.details import TIMEOUT, Details, Listed
from monitor.agent.runtime.docker_json import (
    BuildCacheRow,
    ContainerRow,
    DiskUsage,
    ImageRow,
    Info,
    Inspection,
    Items,
    Version,
    VolumeRow,
    container_fact,
    decode,
    image_fact,
    shared_sizes,
    usage_fact,
)
from monitor.agent.runtime.unix_http import UnixHttp
from monitor.base.clock import Clock
from monitor.facts import ContainerFact, ImageCacheFact, RuntimeUsageFact

# The newest API that is spoken here: Docker 25 and later serve it, Docker 29 nothing older, and later ones rename what
# is read. An engine that has only others is asked in its nearest.
_SPOKEN = (1, 44)
# From here on one can ask for the usage of images alone, which is cheap. Before, the engine walks volumes for it too.
_USAGE_BY_TYPE = (1, 42)
# A list says how long a container is up, counting seconds in its first minute. One that was restarted since the list
# before is therefore told by that, as long as that list is less than a minute old.
_RESTARTS_SHOW_FOR = 50.0

_CONTAINERS = Items(ContainerRow)
_IMAGES = Items(ImageRow)
_VOLUMES = Items(VolumeRow)
_BUILD_CACHE = Items(BuildCacheRow)

T = TypeVar("T")


@dataclass(frozen=True)
class _Engine:
    """Who answers behind the socket, and which API it is asked in."""

    version: str | None
    api: tuple[int, int]


@dataclass(frozen=True)
class _Sharing:
    """What images share, by a walk that is too dear to repeat. True as long as the images are the same ones."""

    images: frozenset[str]
    shared: dict[str, int]
    layers: int | None


def choose_api(newest: str, oldest: str) -> tuple[int, int]:
    """Given the newest and the oldest API an engine serves, return the one to ask in."""
    return max(min(_numbers(newest) or _SPOKEN, _SPOKEN), _numbers(oldest) or (0, 0))


def _numbers(version: str) -> tuple[int, int] | None:
    major, dot, minor = version.partition(".")
    return (int(major), int(minor)) if dot and major.isdecimal() and minor.isdecimal() else None


class DockerRuntime:
    """One Docker engine."""

    name = "docker"

    def __init__(self, socket: str, clock: Clock = time) -> None:
        self.socket = socket
        self.root: str | None = None
        self._engine: _Engine | None = None
        self._sharing: _Sharing | None = None
        self._details: Details[ContainerRow] = Details(clock, max_gap=_RESTARTS_SHOW_FOR)

    def containers(self) -> tuple[ContainerFact, ...]:
        return self._asked(self._containers)

    def images(self) -> ImageCacheFact:
        return self._asked(self._images)

    def usage(self) -> RuntimeUsageFact:
        return self._asked(self._usage)

    def _asked(self, question: Callable[[_Client], T]) -> T:
        """Given a question, return its answer over a connection of its own."""
        with UnixHttp(self.socket) as http:
            try:
                client = _Client(http, self._engine or _meet(http))
                if self._engine is None:
                    self._learn_root(client)
                    self._engine = client.engine
                return question(client)
            except EngineError:
                self._engine = None  # what answers next time may be another version
                raise

    def _learn_root(self, client: _Client) -> None:
        try:
            self.root = decode(client.get("/info", TIMEOUT), Info).docker_root_dir or self.root
        except EngineError:
            return  # an engine with a broken plug-in answers everything but this

    def _containers(self, client: _Client) -> tuple[ContainerFact, ...]:
        def ask(row: ContainerRow) -> ContainerFact:
            return container_fact(row, decode(client.get(f"/containers/{row.id}/json", TIMEOUT), Inspection))

        rows = client.containers()
        return self._details.complete((Listed(row.id, _mark(row), row) for row in rows), ask, container_fact)

    def _images(self, client: _Client) -> ImageCacheFact:
        rows, sharing = client.images()
        ids = frozenset(row.id for row in rows)
        if sharing is None and self._sharing is not None and self._sharing.images == ids:
            sharing = self._sharing
        users = _users(client.containers())  # after the images: who starts one in between is seen
        shared = sharing.shared if sharing else {}
        return ImageCacheFact(
            runtime=self.name,
            images=tuple(image_fact(row, shared.get(row.id), users.get(row.id, ())) for row in rows),
            version=client.engine.version,
            root=self.root,
            total_bytes=sharing.layers if sharing else None,
        )

    def _usage(self, client: _Client) -> RuntimeUsageFact:
        self._learn_root(client)
        usage = decode(client.get("/system/df"), DiskUsage)
        self._sharing = _sharing(_IMAGES.decode(usage.images), usage.layers_size)
        return usage_fact(
            usage.layers_size,
            _CONTAINERS.decode(usage.containers),
            _VOLUMES.decode(usage.volumes),
            _BUILD_CACHE.decode(usage.build_cache),
        )


@dataclass(frozen=True)
class _Client:
    """A connection to an engine, and its lists."""

    http: UnixHttp
    engine: _Engine

    def get(self, target: str, timeout: float | None = None) -> bytes:
        major, minor = self.engine.api
        return self.http.get(f"/v{major}.{minor}{target}", timeout)

    def containers(self) -> list[ContainerRow]:
        return _CONTAINERS.decode(self.get("/containers/json?all=1"))

    def images(self) -> tuple[list[ImageRow], _Sharing | None]:
        """Return the images and, where that is cheap, what they share."""
        if self.engine.api < _USAGE_BY_TYPE:
            return _IMAGES.decode(self.get("/images/json")), None
        usage = decode(self.get("/system/df?type=image"), DiskUsage)
        rows = _IMAGES.decode(usage.images)
        return rows, _sharing(rows, usage.layers_size)


def _meet(http: UnixHttp) -> _Engine:
    """Return who answers. An engine always answers this one in any version."""
    version = decode(http.get("/version"), Version)
    return _Engine(version.version, choose_api(version.api_version, version.min_api_version))


def _mark(row: ContainerRow) -> tuple[object, ...] | None:
    """Given a container as listed, return what changes when it does. None while it is young: it may have restarted."""
    if "second" in (row.status or ""):
        return None
    return (row.state, row.image, tuple(row.names or ()))


def _users(rows: Iterable[ContainerRow]) -> dict[str, list[str]]:
    """Given containers, return their ids by the id of their image."""
    users: dict[str, list[str]] = {}
    for row in rows:
        users.setdefault(row.image_id or "", []).append(row.id)
    return users


def _sharing(rows: list[ImageRow], layers: int | None) -> _Sharing:
    return _Sharing(frozenset(row.id for row in rows), shared_sizes(rows), layers)
