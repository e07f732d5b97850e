"""Decoding of pod volumes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from monitor.base.text import MAX_TEXT_CHARS, shorten_name
from monitor.facts.base import BoundedText
from monitor.facts.kube import PodVolumeFact
from monitor.kube.decode.values import Wire, cached_if_small, parse_quantity

# Every pod has one with a random name: the token and certificate of its service account.
_TOKEN = b'{"name":"kube-api-access-'


class WireSource(Wire):
    """Body of a volume source; a union of the fields of all kinds."""

    claim_name: BoundedText | None = None  # persistentVolumeClaim
    path: BoundedText | None = None  # hostPath, nfs, cephfs, glusterfs
    server: BoundedText | None = None  # nfs
    endpoints: BoundedText | None = None  # glusterfs
    monitors: list[BoundedText] | None = None  # cephfs
    driver: BoundedText | None = None  # csi, flexVolume
    name: BoundedText | None = None  # configMap
    secret_name: BoundedText | None = None  # secret
    medium: BoundedText | None = None  # emptyDir
    size_limit: BoundedText | int | None = None  # emptyDir
    reference: BoundedText | None = None  # image
    sources: list[dict[BoundedText, WireSource | None]] | None = None  # projected


_KINDS = (
    "persistentVolumeClaim",
    "nfs",
    "hostPath",
    "emptyDir",
    "configMap",
    "secret",
    "projected",
    "downwardAPI",
    "ephemeral",
    "csi",
    "flexVolume",
    "cephfs",
    "glusterfs",
    "image",
)
_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_source = msgspec.json.Decoder(WireSource)


def volumes(raw: Iterable[msgspec.Raw]) -> tuple[PodVolumeFact, ...]:
    """`spec.volumes` as facts, without the service account token. Raise MsgspecError if malformed."""
    encoded = map(bytes, raw)
    return tuple([_volume(volume) for volume in encoded if not volume.startswith(_TOKEN)])


@cached_if_small(8192)  # most pods of a job, user or cluster share volumes
def _volume(raw: bytes) -> PodVolumeFact:
    fields = _decoder.decode(raw)
    name = msgspec.json.decode(fields.get("name", b'""'), type=BoundedText)
    for kind in _KINDS:
        if kind in fields:
            return _fact(name, kind, _source.decode(fields[kind]))
    return PodVolumeFact(name=name, kind="other")


def _fact(name: str, kind: str, source: WireSource) -> PodVolumeFact:
    return PodVolumeFact(
        name=name,
        kind=kind,
        claim=source.claim_name,
        server=source.server
        or source.endpoints
        or source.driver
        or shorten_name(",".join(source.monitors or ()), MAX_TEXT_CHARS)
        or None,
        path=source.path,
        image=source.reference,
        names=tuple(_names(source)),
        medium=source.medium or None,
        size_limit_bytes=parse_quantity(source.size_limit),
    )


def _names(source: WireSource) -> Iterable[str]:
    """Referenced config maps and secrets of a volume."""
    for part in (source, *(projected for entry in source.sources or () for projected in entry.values())):
        if part is not None and (name := part.name or part.secret_name):
            yield name
