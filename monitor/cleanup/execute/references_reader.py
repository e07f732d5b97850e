"""Reads anew from the API server what the cluster needs: no copy that is followed is current enough for this.

A list that fails leaves it unknown what is needed, and what is unknown is never taken for permission.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from monitor.cleanup.plan.references import Needs, Template, VolumeUse, needs_of, volume_uses
from monitor.cleanup.plan.templates import KINDS, Kind, claims_of, images, template_of, with_claims
from monitor.facts.kube import TERMINAL_PHASES, PodFact
from monitor.kube.client import ApiConnectionError, ApiError, KubeApi
from monitor.kube.decode.stream import MalformedResponseError, decode_pod_list

log = logging.getLogger(__name__)
JSON = "application/json"
SECONDS = 30.0
PAGE = 500
FAILURES = (ApiError, ApiConnectionError, MalformedResponseError, msgspec.MsgspecError, UnicodeError, RecursionError)


@dataclass(frozen=True)
class Templates:
    """All objects that pods are made from, and the kinds of which nothing is known."""

    found: tuple[Template, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Volumes:
    """All directories that live pods and templates have as volumes, and what could not be listed."""

    uses: tuple[VolumeUse, ...] = ()
    unknown: tuple[str, ...] = ()


class NeedsReader:
    """Asks one API server."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    def needs(self, node: str) -> Needs:
        """Return the images that a node has to keep, as of now: for pods bound to it or pending, and for templates."""
        templates, unknown = self.templates(), []
        pods: list[PodFact] = []
        extra: list[Template] = []
        # In this order: a pod that is bound between the two lists is in the first, and one bound before in the second.
        for selector in ("status.phase=Pending", f"spec.nodeName={node}"):
            try:
                for body in self._bodies("/api/v1/pods", {"fieldSelector": selector}):
                    pods += _pods(body)
                    extra += _also_named(body, node)
            except FAILURES as error:
                unknown.append(_said("pods", error))
        return needs_of(node, pods, (*templates.found, *extra), tuple(dict.fromkeys((*templates.unknown, *unknown))))

    def templates(self) -> Templates:
        """Return all objects that pods are made from."""
        found: list[Template] = []
        unknown: list[str] = []
        served: dict[str, frozenset[str] | None] = {}
        for kind in KINDS:
            try:
                if kind.group not in served:
                    served[kind.group] = self._versions(kind.group)
                found += [each for each in self._of_kind(kind, served[kind.group]) if each is not None]
            except FAILURES as error:
                unknown.append(_said(kind.name, error))
        return Templates(tuple(found), tuple(unknown))

    def volumes(self) -> Volumes:
        """Return all directories that live pods and templates have."""
        templates = self.templates()
        unknown = list(templates.unknown)
        pods: list[PodFact] = []
        lists: dict[str, list[dict[str, Any]]] = {"persistentvolumeclaims": [], "persistentvolumes": []}
        try:
            for body in self._bodies("/api/v1/pods", {}):
                pods += map(with_claims, _pods(body))
        except FAILURES as error:
            unknown.append(_said("pods", error))
        for plural, listed in lists.items():
            try:
                for body in self._bodies(f"/api/v1/{plural}", {}):
                    listed.extend(_items(body))
            except FAILURES as error:
                unknown.append(_said(plural, error))
        claims = claims_of(lists["persistentvolumeclaims"], lists["persistentvolumes"])
        return Volumes(volume_uses(pods, templates.found, claims), tuple(unknown))

    def _versions(self, group: str) -> frozenset[str] | None:
        """Return the versions of a group that are served: none if it is absent. None if nobody may ask."""
        try:
            listed = msgspec.json.decode(self._api.get(f"/apis/{quote(group)}", {}, JSON, SECONDS))
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return frozenset()
            if error.status == HTTPStatus.FORBIDDEN:
                return None
            raise
        versions = listed.get("versions") if isinstance(listed, dict) else None
        return frozenset(str(each.get("version")) for each in versions or ())

    def _of_kind(self, kind: Kind, served: frozenset[str] | None) -> list[Template | None]:
        """Return all objects of a kind; none where its group, or it in that group, is not there. Raise FAILURES.

        A version of the group need not have the kind: 1.20 has batch/v1, and CronJobs in batch/v1beta1 only.
        """
        if served is not None and not served and kind.optional:
            return []
        known = [version for version in kind.versions if served is None or version in served] or [kind.versions[0]]
        for version in known:
            try:
                path = f"/apis/{kind.group}/{version}/{kind.plural}"
                return [template_of(kind.kind, raw) for body in self._bodies(path, {}) for raw in _items(body)]
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND or (version == known[-1] and not kind.optional):
                    raise
        return []

    def _bodies(self, path: str, query: dict[str, str]) -> Iterator[bytes]:
        """Yield the pages of a list. Raise FAILURES, also when it expires on the way: half a list is none."""
        asked = {**query, "limit": str(PAGE)}
        while True:
            body = self._api.get(path, asked, JSON, SECONDS)
            yield body
            token = msgspec.json.decode(body, type=_Page).metadata.continue_
            if not token:
                return
            asked["continue"] = token


class _PageMeta(msgspec.Struct):
    continue_: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct):
    metadata: _PageMeta = msgspec.field(default_factory=_PageMeta)


def _items(body: bytes) -> list[dict[str, Any]]:
    listed = msgspec.json.decode(body)
    items = listed.get("items") if isinstance(listed, dict) else None
    if items is not None and not isinstance(items, list):
        raise MalformedResponseError("not a list")
    return [each for each in items or () if isinstance(each, dict)]


def _pods(body: bytes) -> Iterable[PodFact]:
    """Return the pods of a list. Raise BrokenError if one cannot be understood: it may be the one that counts."""
    page = decode_pod_list(body)
    if page.skipped:
        raise MalformedResponseError(f"a pod that cannot be understood: {page.problem}")
    return page.items


def _also_named(body: bytes, node: str) -> Iterator[Template]:
    """Yield what pods name beside the images of their containers: debug containers, images that are volumes."""
    for raw in _items(body):
        spec, status = raw.get("spec") or {}, raw.get("status") or {}
        if status.get("phase") not in TERMINAL_PHASES and spec.get("nodeName") in (None, "", node):
            meta = raw.get("metadata") or {}
            yield Template("Pod", str(meta.get("namespace")), str(meta.get("name")), tuple(images(spec)))


def _said(name: str, error: Exception) -> str:
    log.warning("what the cluster needs is not known, because %s cannot be listed: %s", name, error)
    return name
