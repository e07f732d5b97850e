"""Facts out of what a CRI runtime says. Pure: messages in, facts out."""

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
# What a short name stands for: `pause:3.6` in a configuration is `docker.io/library/pause:3.6` in the list of images.
_PREFIXES = ("", "docker.io/", "docker.io/library/")

T = TypeVar("T")


class InPod(NamedTuple):
    """A container and the sandbox of its pod."""

    container: pb.Container
    sandbox: pb.PodSandbox | None


class _Details(msgspec.Struct):
    """The JSON in a verbose status of a container or a sandbox."""

    pid: int | None = None
    image: str | None = None


class _Config(msgspec.Struct, rename="camel"):
    """The JSON in a verbose status of a runtime, as containerd has it."""

    containerd_root_dir: str | None = None
    sandbox_image: str | None = None


def configuration(info: Mapping[str, str], filesystems: Sequence[pb.FilesystemUsage]) -> tuple[str | None, str | None]:
    """Given a runtime's verbose status and where its images are, return its root and the image its sandboxes run."""
    config = _from_json(info.get("config"), _Config) or _Config()
    # Without a word on it: images are one directory below the root, in containerd as in CRI-O.
    below = next((usage.fs_id.mountpoint for usage in filesystems), "")
    return config.containerd_root_dir or os.path.dirname(below) or None, config.sandbox_image or None


def container_fact(runtime: str, one: InPod, reply: pb.ContainerStatusResponse | None = None) -> ContainerFact:
    """Given a container as listed and, if it was asked about alone, its status, return its fact."""
    container, pod = one.container, one.sandbox.metadata if one.sandbox else pb.PodSandboxMetadata()
    status, details = (reply.status, _details(reply.info)) if reply else (pb.ContainerStatus(), _Details())
    return ContainerFact(
        id=container.id,
        runtime=runtime,
        state=_STATES.get(container.state, "unknown"),
        name=container.metadata.name or None,
        # The list has what was asked for, often an id; the status has a name as long as the image has one.
        image=status.image.image or container.image.image or None,
        image_id=container.image_id or container.image_ref or None,
        pid=details.pid or None,
        created_at=_seconds(container.created_at),
        started_at=_seconds(status.started_at),
        finished_at=_seconds(status.finished_at),
        pod_uid=pod.uid or None,
        pod_name=pod.name or None,
        namespace=pod.namespace or None,
        container=container.metadata.name or None,
        log_path=status.log_path or None,
    )


def sandbox_fact(
    runtime: str, sandbox: pb.PodSandbox, reply: pb.PodSandboxStatusResponse | None = None
) -> ContainerFact:
    """Given a pod's sandbox as listed and, if it was asked about alone, its status, return its fact."""
    pod, details = sandbox.metadata, _details(reply.info) if reply else _Details()
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


def users(images: Iterable[pb.Image], containers: Iterable[pb.Container]) -> dict[str, list[str]]:
    """Given images and containers, return the containers' ids by the id of their image.

    A container names its image by id, by digest or by tag: runtimes and versions differ.
    """
    ids = {name: image.id for image in images for name in (image.id, *image.repo_digests, *image.repo_tags)}
    found: dict[str, list[str]] = {}
    for container in containers:
        named = (container.image_id, container.image_ref, container.image.image)
        image_id = next((ids[name] for name in named if name in ids), None)
        if image_id is not None:
            found.setdefault(image_id, []).append(container.id)
    return found


def image_fact(image: pb.Image, containers: Iterable[str], sandbox_image: str | None) -> ImageFact:
    """Given an image as listed and who uses it, return its fact.

    The image that sandboxes run is pinned, whether this runtime says so or is too old to: no pod starts without it.
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
    """Given where images are kept, return the bytes of all layers, those that containers write to included.

    containerd measures every ten seconds and says 0 until it first has.
    """
    return sum(usage.used_bytes.value for usage in filesystems) or None


def usage_fact(runtime: str, stats: Sequence[pb.ContainerStats], layers: int | None) -> RuntimeUsageFact:
    """Given the containers' statistics and the bytes of all layers, return the fact."""
    # A layer that has no time was not measured yet.
    measured = [one for one in stats if one.writable_layer.timestamp]
    writable = {one.attributes.id: one.writable_layer.used_bytes.value for one in measured}
    total = sum(writable.values()) if writable or not stats else None
    return RuntimeUsageFact(runtime=runtime, layers_bytes=layers, writable_bytes=total, writable=writable)


def _details(info: Mapping[str, str]) -> _Details:
    return _from_json(info.get("info"), _Details) or _Details()


def _from_json(text: str | None, kind: type[T]) -> T | None:
    """Given JSON that no interface promises, return it as `kind`, or None if it is something else."""
    try:
        return msgspec.json.decode(text or "", type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _seconds(nanoseconds: int) -> float | None:
    return nanoseconds / 1e9 if nanoseconds > 0 else None


warm_up_msgspec(__name__)
