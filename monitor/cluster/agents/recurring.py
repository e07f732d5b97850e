"""Strings that recur in snapshots are kept once in memory: the same images, namespaces and collectors on every node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import intern  # frees a string with its last user
from typing import Any

from msgspec.structs import force_setattr

from monitor.facts.node import CollectorFact
from monitor.facts.storage import ImageCacheFact
from monitor.facts.workload import ContainerFact

_OF_CONTAINERS = ("runtime", "state", "image", "image_id", "pod_uid", "pod_name", "namespace", "container")
_OF_COLLECTORS = ("name", "outcome")


def share_strings(parts: Mapping[str, Any]) -> None:
    """Replace recurring strings in parts of a snapshot that has just been decoded and has no other user."""
    _share(parts.get("collectors") or (), _OF_COLLECTORS)
    _share(parts.get("containers") or (), _OF_CONTAINERS)
    for cache in parts.get("images") or ():
        _share_images(cache)


def _share(facts: Iterable[CollectorFact | ContainerFact], fields: tuple[str, ...]) -> None:
    for fact in facts:
        for field in fields:
            value = getattr(fact, field)
            if value is not None:
                force_setattr(fact, field, intern(value))


def _share_images(cache: ImageCacheFact) -> None:
    for image in cache.images:
        force_setattr(image, "id", intern(image.id))
        force_setattr(image, "names", tuple(map(intern, image.names)))
        force_setattr(image, "digests", tuple(map(intern, image.digests)))
