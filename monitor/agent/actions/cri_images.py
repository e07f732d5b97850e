"""Removes images from containerd, which silently removes images that are in use, and from CRI-O.

containerd: a lease first holds the image's content and layers, then CRI removes the names. After a pause, in which
container creations that had already looked up a name finish, all containers are read, including those that CRI does not
list yet. If one uses the image, its records are created again and nothing is lost; otherwise the lease is deleted and
unreferenced content is garbage-collected. The lease also expires, in case the agent is killed.

CRI-O has no leases, so containers are only checked before and after the removal, which the outcome states. CRI-O itself
refuses to remove an image that is in use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import msgspec

from monitor.agent.actions.outcome import ActionRefusal
from monitor.agent.actions.runtime_images import ContainerdImageRecord, HoldJournal, ImageHold, remove_or_roll_back
from monitor.agent.runtime.api import EngineError, GoneError, NotServedError
from monitor.agent.runtime.containerd_native import AlreadyExistsError, Containerd
from monitor.agent.runtime.cri_channel import CriChannel
from monitor.agent.runtime.proto import containerd_pb2 as native
from monitor.agent.runtime.proto import cri_pb2 as pb
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.facts import ImageFact

_TIMEOUT_SECONDS = 120.0
_LEASE_DURATION = timedelta(minutes=15)
_RELIST_SECONDS = 10.0  # until CRI lists an image that was created again
_CREATE_SECONDS = 10.0  # for the creation of a container
_STALE_LEASE_SECONDS = 300.0  # an older lease was abandoned: the kubelet gives up after two minutes
_WITHOUT_LEASES = "this runtime has no leases: containers were checked before and after"


class _CriImageConfig(msgspec.Struct):
    labels: dict[str, str] | None = msgspec.field(name="Labels", default=None)


class _CriImageSpec(msgspec.Struct):
    config: _CriImageConfig | None = None


class _CriImageInfo(msgspec.Struct, rename="camel"):
    """The JSON in the verbose status of an image."""

    image_spec: _CriImageSpec | None = None


class CriImages:
    """Write access to the images of one CRI runtime.

    `settle` waits for container creations in progress, given the seconds that the removal of a name took.
    """

    def __init__(self, socket: str, name: str, settle: Callable[[float], object]) -> None:
        self._socket = socket
        self._name = name
        self._settle = settle
        self._channel = CriChannel(socket)
        self._channel.negotiate()

    def labels(self, image: ImageFact) -> dict[str, str]:
        request = pb.ImageStatusRequest(image=pb.ImageSpec(image=image.id), verbose=True)
        reply = self._channel.call("ImageService/ImageStatus", request, pb.ImageStatusResponse, _TIMEOUT_SECONDS)
        try:
            spec = msgspec.json.decode(reply.info.get("info", ""), type=_CriImageInfo).image_spec
        except msgspec.MsgspecError as error:
            raise EngineError(f"{self._socket}: cannot decode the labels of an image: {error}") from error
        if spec is None or spec.config is None:
            raise EngineError(f"{self._socket}: does not return the labels of an image")
        return spec.config.labels or {}

    def remove(
        self, image: ImageFact, guard: str, in_use: Callable[[], ActionRefusal | None], holds: HoldJournal
    ) -> str | ActionRefusal:
        with closing(Containerd(self._socket)) as containerd:
            try:
                records = _records(containerd.images(), image)
            except NotServedError:
                self._remove(image.id)
                return in_use() or _WITHOUT_LEASES
            if not records:
                return ActionRefusal("gone", f"containerd has no record of {image.id}")
            if unlisted := self._unlisted(containerd, records):
                return unlisted
            hold = ImageHold(runtime=self._name, image_id=image.id, guard=guard, records=records)

            def remove_names() -> ActionRefusal | None:
                containerd.create_lease(guard, (datetime.now(UTC) + _LEASE_DURATION).isoformat(timespec="seconds"))
                containerd.hold(guard, hold.digests)
                began = time.monotonic()
                self._remove(image.id)
                self._settle(time.monotonic() - began)
                creating = self._container_in_creation(containerd, hold)
                return creating or self._unlisted(containerd, records) or in_use()

            refusal = remove_or_roll_back(hold, holds, remove_names, self.restore_names)
            if refusal is not None:
                return refusal
            containerd.delete_lease(guard, collect=True)
        return ""

    def restore_names(self, hold: ImageHold) -> None:
        with closing(Containerd(self._socket)) as containerd:
            try:
                containerd.hold(hold.guard, hold.digests)
            except GoneError:  # never created, or expired long ago: there is no content left to name
                return
            for record in hold.records:
                try:
                    containerd.create_image(_image_message(record))
                except AlreadyExistsError:
                    continue
            self._wait_for(hold.image_id)
            containerd.delete_lease(hold.guard, collect=False)

    def _container_in_creation(self, containerd: Containerd, hold: ImageHold) -> ActionRefusal | None:
        """Wait for container creations in progress; refusal if one does not finish in time.

        containerd serializes writes and blocks them during garbage collection: a creation that looked up the image long
        ago may still be waiting to write. Our own write queues behind those, and after it each of them has a lease
        until its container is recorded. A pull has a lease too, but that one holds content. Since containerd 2.1 each
        pod has a lease for life, whose id is that of the sandbox.
        """
        containerd.hold(hold.guard, hold.digests)
        deadline = time.monotonic() + _CREATE_SECONDS
        leases = containerd.leases(since=time.time() - _STALE_LEASE_SECONDS) - {hold.guard}
        while leases := _container_creations(containerd, leases - self._sandbox_ids(containerd)):
            if time.monotonic() > deadline:
                text = f"a container of unknown image has been in creation for {_CREATE_SECONDS:.0f} s"
                return ActionRefusal("in-use", text)
            time.sleep(0.05)
        return None

    def _unlisted(self, containerd: Containerd, records: tuple[ContainerdImageRecord, ...]) -> ActionRefusal | None:
        """Refusal if a container that CRI does not list, being in creation or not created by CRI, uses the image.

        CRI is read first: a container that it finishes later is in the list that the caller reads next.
        """
        containers = self._channel.call(
            "RuntimeService/ListContainers", pb.ListContainersRequest(), pb.ListContainersResponse, _TIMEOUT_SECONDS
        ).containers
        listed = {container.id for container in containers} | self._listed_sandbox_ids()
        names = {record.name for record in records}
        unlisted = (container for container in containerd.containers() if container.id not in listed)
        user = next((container.id for container in unlisted if container.image in names), None)
        return ActionRefusal("in-use", f"used by container {user}, which CRI does not list") if user else None

    def _sandbox_ids(self, containerd: Containerd) -> frozenset[str]:
        """Ids of all sandboxes, including those whose network is being set up: CRI does not list them yet."""
        return self._listed_sandbox_ids() | containerd.sandboxes()

    def _listed_sandbox_ids(self) -> frozenset[str]:
        sandboxes = self._channel.call(
            "RuntimeService/ListPodSandbox", pb.ListPodSandboxRequest(), pb.ListPodSandboxResponse, _TIMEOUT_SECONDS
        ).items
        return frozenset(sandbox.id for sandbox in sandboxes)

    def _remove(self, image_id: str) -> None:
        request = pb.RemoveImageRequest(image=pb.ImageSpec(image=image_id))
        self._channel.call("ImageService/RemoveImage", request, pb.RemoveImageResponse, _TIMEOUT_SECONDS)

    def _wait_for(self, image_id: str) -> None:
        """Wait until CRI lists an image: it learns of new records by events, with a delay."""
        deadline = time.monotonic() + _RELIST_SECONDS
        while time.monotonic() < deadline:
            reply = self._channel.call(
                "ImageService/ListImages", pb.ListImagesRequest(), pb.ListImagesResponse, _TIMEOUT_SECONDS
            )
            if any(image.id == image_id for image in reply.images):
                return
            time.sleep(0.02)
        raise EngineError(f"{self._socket}: the names of {image_id} were restored but are not listed")


def _container_creations(containerd: Containerd, leases: frozenset[str]) -> frozenset[str]:
    return frozenset(lease for lease in leases if _is_container_creation(containerd, lease))


def _is_container_creation(containerd: Containerd, lease: str) -> bool:
    try:
        return not containerd.holds_content(lease)
    except GoneError:
        return False


def _records(images: tuple[native.Image, ...], image: ImageFact) -> tuple[ContainerdImageRecord, ...]:
    """Records of an image: those of its names, and others with the same content, which may be new."""
    names = {image.id, *image.names, *image.digests}
    digests = {record.target.digest for record in images if record.name in names}
    return tuple(
        ContainerdImageRecord(
            name=record.name,
            media_type=record.target.media_type,
            digest=record.target.digest,
            size=record.target.size,
            labels=dict(record.labels),
            annotations=dict(record.target.annotations),
        )
        for record in images
        if record.target.digest in digests
    )


def _image_message(record: ContainerdImageRecord) -> native.Image:
    target = native.Descriptor(
        media_type=record.media_type, digest=record.digest, size=record.size, annotations=record.annotations
    )
    return native.Image(name=record.name, labels=record.labels, target=target)


warm_up_msgspec(__name__)
