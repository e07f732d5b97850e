"""Facts from CRI messages."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from monitor.agent.runtime.api import pod_user
from monitor.agent.runtime.proto import cri_pb2 as pb
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.facts import ContainerFact, ImageFact, RuntimeUsageFact

_STATES = {
    pb.CONTAINER_CREATED: "created",
    pb.CONTAINER_RUNNING: "running",
    pb.CONTAINER_EXITED: "exited",
}
# Expansions of a short name: `pause:3.6` in a configuration is `docker.io/library/pause:3.6` in the list of images.
_PREFIXES = ("", "docker.io/", "docker.io/library/")

T = TypeVar("T")


class PodContainer(NamedTuple):
    """A container and the sandbox of its pod."""

    container: pb.Container
    sandbox: pb.PodSandbox | None


class _VerboseInfo(msgspec.Struct):
    """JSON in the verbose status of a container or a sandbox."""

    pid: int | None = None
    image: str | None = None


class _ContainerdConfig(msgspec.Struct, rename="camel"):
    """JSON in the verbose status of containerd."""

    containerd_root_dir: str | None = None
    sandbox_image: str | None = None


def root_and_sandbox_image(
    info: Mapping[str, str], filesystems: Sequence[pb.FilesystemUsage]
) -> tuple[str | None, str | None]:
    """Root directory and sandbox image of a runtime, from its verbose status and its image filesystems."""
    config = _from_json(info.get("config"), _ContainerdConfig) or _ContainerdConfig()
    # The fallback: in containerd and in CRI-O, images are one directory below the root.
    images = next((usage.fs_id.mountpoint for usage in filesystems), "")
    return config.containerd_root_dir or os.path.dirname(images) or None, config.sandbox_image or None


def container_fact(
    runtime: str, listed: PodContainer, reply: pb.ContainerStatusResponse | None = None
) -> ContainerFact:
    """Fact of a listed container and, if it was inspected, its status."""
    container, pod = listed.container, listed.sandbox.metadata if listed.sandbox else pb.PodSandboxMetadata()
    status, details = (reply.status, _details(reply.info)) if reply else (pb.ContainerStatus(), _VerboseInfo())
    return ContainerFact(
        id=container.id,
        runtime=runtime,
        state=_STATES.get(container.state, "unknown"),
        name=container.metadata.name or None,
        # The list has the requested image, often an id; the status has a name as long as the image has one.
        image=status.image.image or container.image.image or None,
        image_id=container.image_id or container.image_ref or None,
        pid=details.pid or None,
        created_at=_seconds(container.created_at),
        started_at=_seconds(status.started_at),
        finished_at=_seconds(status.finished_at),
        exit_code=status.exit_code if reply and container.state == pb.CONTAINER_EXITED else None,
        pod_uid=pod.uid or None,
        pod_name=pod.name or None,
        namespace=pod.namespace or None,
        container=container.metadata.name or None,
        log_path=status.log_path or None,
    )


def sandbox_fact(
    runtime: str, sandbox: pb.PodSandbox, reply: pb.PodSandboxStatusResponse | None = None
) -> ContainerFact:
    """Fact of a listed sandbox and, if it was inspected, its status."""
    pod, details = sandbox.metadata, _details(reply.info) if reply else _VerboseInfo()
    return ContainerFact(
        id=sandbox.id,
        runtime=runtime,
        state="running" if sandbox.state == pb.SANDBOX_READY else "exited",
        name=pod.name or None,
        image=details.image or None,
        pid=details.pid or None,
        created_at=_seconds(sandbox.created_at),
        sandbox=True,
        pod_uid=pod.uid or None,
        pod_name=pod.name or None,
        namespace=pod.namespace or None,
        user=pod_user(sandbox.labels, sandbox.annotations),
    )


def containers_by_image(images: Iterable[pb.Image], containers: Iterable[pb.Container]) -> dict[str, list[str]]:
    """Container ids by image id.

    A container names its image by id, digest or tag, depending on the runtime and its version.
    """
    ids = {name: image.id for image in images for name in (image.id, *image.repo_digests, *image.repo_tags)}
    users: dict[str, list[str]] = {}
    for container in containers:
        names = (container.image_id, container.image_ref, container.image.image)
        image_id = next((ids[name] for name in names if name in ids), None)
        if image_id is not None:
            users.setdefault(image_id, []).append(container.id)
    return users


def image_fact(image: pb.Image, containers: Iterable[str], sandbox_image: str | None) -> ImageFact:
    """Fact of a listed image and the containers that use it.

    The sandbox image counts as pinned even if the runtime is too old to report it: no pod starts without it.
    """
    names = tuple(image.repo_tags)
    needed = sandbox_image is not None and any(prefix + sandbox_image in names for prefix in _PREFIXES)
    return ImageFact(
        id=image.id,
        names=names,
        digests=tuple(image.repo_digests),
        size_bytes=image.size or None,
        containers=tuple(containers),
        pinned=image.pinned or needed,
        local=bool(names) and not image.repo_digests,
    )


def layers_bytes(filesystems: Iterable[pb.FilesystemUsage]) -> int | None:
    """Bytes of all layers, including writable ones; None if unknown.

    containerd measures every ten seconds and reports 0 until the first measurement.
    """
    return sum(usage.used_bytes.value for usage in filesystems) or None


def usage_fact(runtime: str, stats: Sequence[pb.ContainerStats], layers: int | None) -> RuntimeUsageFact:
    """Usage from container statistics and the bytes of all layers."""
    measured = [stat for stat in stats if stat.writable_layer.timestamp]  # the others are not measured yet
    writable = {stat.attributes.id: stat.writable_layer.used_bytes.value for stat in measured}
    total = sum(writable.values()) if writable or not stats else None
    return RuntimeUsageFact(runtime=runtime, layers_bytes=layers, writable_bytes=total, writable=writable)


def _details(info: Mapping[str, str]) -> _VerboseInfo:
    return _from_json(info.get("info"), _VerboseInfo) or _VerboseInfo()


def _from_json(text: str | None, kind: type[T]) -> T | None:
    """JSON that no API guarantees, as `kind`; None if it is something else."""
    try:
        return msgspec.json.decode(text or "", type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _seconds(nanoseconds: int) -> float | None:
    return nanoseconds / 1e9 if nanoseconds > 0 else None


warm_up_msgspec(__name__)
