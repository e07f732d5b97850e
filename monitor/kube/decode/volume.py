"""Decoding of pod volumes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from monitor.facts.kube import PodVolumeFact
from monitor.kube.decode.values import Wire, parse_quantity

# Every pod has one with a random name: the token and certificate of its service account.
_TOKEN = b'{"name":"kube-api-access-'


class WireSource(Wire):
    """Body of a volume source; a union of the fields of all kinds."""

    claim_name: str | None = None  # persistentVolumeClaim
    path: str | None = None  # hostPath, nfs, cephfs, glusterfs
    server: str | None = None  # nfs
    endpoints: str | None = None  # glusterfs
    monitors: list[str] | None = None  # cephfs
    driver: str | None = None  # csi, flexVolume
    name: str | None = None  # configMap
    secret_name: str | None = None  # secret
    medium: str | None = None  # emptyDir
    size_limit: str | int | None = None  # emptyDir
    sources: list[dict[str, WireSource | None]] | None = None  # projected


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
)
_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_source = msgspec.json.Decoder(WireSource)


def volumes(raw: Iterable[msgspec.Raw]) -> tuple[PodVolumeFact, ...]:
    """`spec.volumes` as facts, without the service account token. Raise MsgspecError if malformed."""
    encoded = map(bytes, raw)
    return tuple([_volume(volume) for volume in encoded if not volume.startswith(_TOKEN)])


@lru_cache(maxsize=8192)  # most pods of a job, user or cluster share volumes
def _volume(raw: bytes) -> PodVolumeFact:
    fields = _decoder.decode(raw)
    name = msgspec.json.decode(fields.get("name", b'""'), type=str)
    for kind in _KINDS:
        if kind in fields:
            return _fact(name, kind, _source.decode(fields[kind]))
    return PodVolumeFact(name=name, kind="other")


def _fact(name: str, kind: str, source: WireSource) -> PodVolumeFact:
    return PodVolumeFact(
        name=name,
        kind=kind,
        claim=source.claim_name,
        server=source.server or source.endpoints or source.driver or ",".join(source.monitors or ()) or None,
        path=source.path,
        names=tuple(_names(source)),
        medium=source.medium or None,
        size_limit_bytes=parse_quantity(source.size_limit),
    )


def _names(source: WireSource) -> Iterable[str]:
    """Referenced config maps and secrets of a volume."""
    for part in (source, *(projected for entry in source.sources or () for projected in entry.values())):
        if part is not None and (name := part.name or part.secret_name):
            yield name
