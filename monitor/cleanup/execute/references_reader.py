"""Reads the references of pods and templates from the API server: a watched copy is not current enough.

A failed list leaves the references unknown, and unknown is never taken for permission.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from monitor.cleanup.plan.references import References, Template, VolumeUse, image_references, volume_uses
from monitor.cleanup.plan.workload_templates import KINDS, TemplateKind, claims_of, images, template_of, with_claims
from monitor.facts.kube import TERMINAL_PHASES, PodFact
from monitor.kube.client import ApiBodyTooLargeError, ApiConnectionError, ApiError, KubeApi
from monitor.kube.decode.stream import MalformedResponseError, decode_pod_list

log = logging.getLogger(__name__)
JSON = "application/json"
TIMEOUT_SECONDS = 30.0
PAGE_ITEMS = 500
FAILURES = (ApiError, ApiConnectionError, MalformedResponseError, msgspec.MsgspecError, UnicodeError, RecursionError)


@dataclass(frozen=True)
class TemplateList:
    """All pod templates, and the resources that could not be listed."""

    items: tuple[Template, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class VolumeList:
    """All directories that live pods and templates mount, and the resources that could not be listed."""

    uses: tuple[VolumeUse, ...] = ()
    unknown: tuple[str, ...] = ()


class ReferencesReader:
    """Reads from one API server."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    def references(self, node: str) -> References:
        """Images that a node has to keep now: for pods bound to it or pending, and for templates."""
        templates, unknown = self.templates(), []
        pods: list[PodFact] = []
        extra: list[Template] = []
        # In this order: a pod that is bound between the two lists is in the first, a pod bound before in the second.
        for selector in ("status.phase=Pending", f"spec.nodeName={node}"):
            try:
                for body in self._bodies("/api/v1/pods", {"fieldSelector": selector}):
                    pods += _pods(body)
                    extra += _extra_images(body, node)
            except FAILURES as error:
                unknown.append(_unlisted("pods", error))
        missing = tuple(dict.fromkeys((*templates.unknown, *unknown)))
        return image_references(node, pods, (*templates.items, *extra), missing)

    def templates(self) -> TemplateList:
        """All pod templates."""
        templates: list[Template] = []
        unknown: list[str] = []
        served: dict[str, frozenset[str] | None] = {}
        for kind in KINDS:
            try:
                if kind.group not in served:
                    served[kind.group] = self._versions(kind.group)
                listed = self._of_kind(kind, served[kind.group])
                templates += [template for template in listed if template is not None]
            except FAILURES as error:
                unknown.append(_unlisted(kind.name, error))
        return TemplateList(tuple(templates), tuple(unknown))

    def volumes(self) -> VolumeList:
        """All directories that live pods and templates mount."""
        templates = self.templates()
        unknown = list(templates.unknown)
        pods: list[PodFact] = []
        lists: dict[str, list[dict[str, Any]]] = {"persistentvolumeclaims": [], "persistentvolumes": []}
        try:
            for body in self._bodies("/api/v1/pods", {}):
                pods += map(with_claims, _pods(body))
        except FAILURES as error:
            unknown.append(_unlisted("pods", error))
        for plural, listed in lists.items():
            try:
                for body in self._bodies(f"/api/v1/{plural}", {}):
                    listed.extend(_items(body))
            except FAILURES as error:
                unknown.append(_unlisted(plural, error))
        claims = claims_of(lists["persistentvolumeclaims"], lists["persistentvolumes"])
        return VolumeList(volume_uses(pods, templates.items, claims), tuple(unknown))

    def _versions(self, group: str) -> frozenset[str] | None:
        """Served versions of an API group: empty if it is absent, None if access is forbidden."""
        try:
            listed = msgspec.json.decode(self._api.get(f"/apis/{quote(group)}", {}, JSON, TIMEOUT_SECONDS))
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return frozenset()
            if error.status == HTTPStatus.FORBIDDEN:
                return None
            raise
        versions = listed.get("versions") if isinstance(listed, dict) else None
        return frozenset(str(version.get("version")) for version in versions or ())

    def _of_kind(self, kind: TemplateKind, served: frozenset[str] | None) -> list[Template | None]:
        """All objects of a kind; none if the kind is not installed. Raise FAILURES.

        A served version need not have the kind: Kubernetes 1.20 has batch/v1, but CronJob only in batch/v1beta1.
        """
        if served is not None and not served and kind.optional:
            return []
        versions = [version for version in kind.versions if served is None or version in served] or [kind.versions[0]]
        for version in versions:
            try:
                path = f"/apis/{kind.group}/{version}/{kind.plural}"
                return [template_of(kind.kind, raw) for body in self._bodies(path, {}) for raw in _items(body)]
            except ApiError as error:
                if error.status != HTTPStatus.NOT_FOUND or (version == versions[-1] and not kind.optional):
                    raise
        return []

    def _bodies(self, path: str, query: dict[str, str]) -> Iterator[bytes]:
        """Pages of a list. Raise FAILURES, also if the list expires on the way: half a list is not usable."""
        limit, parameters = PAGE_ITEMS, {**query, "limit": str(PAGE_ITEMS)}
        while True:
            try:
                body = self._api.get(path, parameters, JSON, TIMEOUT_SECONDS)
            except ApiBodyTooLargeError:
                if limit == 1:
                    raise
                limit = max(1, limit // 2)
                parameters["limit"] = str(limit)
                continue
            yield body
            token = msgspec.json.decode(body, type=_ListPage).metadata.continue_
            if not token:
                return
            parameters["continue"] = token


class _ListMetadata(msgspec.Struct):
    continue_: str | None = msgspec.field(default=None, name="continue")


class _ListPage(msgspec.Struct):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)


def _items(body: bytes) -> list[dict[str, Any]]:
    listed = msgspec.json.decode(body)
    items = listed.get("items") if isinstance(listed, dict) else None
    if items is not None and not isinstance(items, list):
        raise MalformedResponseError("not a list")
    return [item for item in items or () if isinstance(item, dict)]


def _pods(body: bytes) -> Iterable[PodFact]:
    """Pods of a list. Raise BrokenError if one cannot be decoded: it may be the one that matters."""
    page = decode_pod_list(body)
    if page.skipped:
        raise MalformedResponseError(f"cannot decode a pod: {page.problem}")
    return page.items


def _extra_images(body: bytes, node: str) -> Iterator[Template]:
    """Images of pods besides those of their containers: debug containers, image volumes."""
    for raw in _items(body):
        spec, status = raw.get("spec") or {}, raw.get("status") or {}
        if status.get("phase") not in TERMINAL_PHASES and spec.get("nodeName") in (None, "", node):
            meta = raw.get("metadata") or {}
            yield Template("Pod", str(meta.get("namespace")), str(meta.get("name")), tuple(images(spec)))


def _unlisted(name: str, error: Exception) -> str:
    log.warning("the references of the cluster are unknown because %s cannot be listed: %s", name, error)
    return name
