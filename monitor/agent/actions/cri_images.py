"""Removing an image from containerd, which removes one that is in use without a word; and from CRI-O.

containerd: a lease first holds the image's content and layers. Then CRI removes its names. When whoever had looked up a
name before has got his container, all containers are looked at, also those that CRI has not finished making. If one
uses the image, the records of its names are made again, and nothing was lost; else the lease is dropped and what nobody
refers to is collected. The lease expires by itself, should nobody be left to drop it.

CRI-O has no leases: it is looked before and after, and said so. It refuses by itself to remove an image in use.
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
from monitor.agent.runtime.containerd_native import AlreadyThereError, Containerd
from monitor.agent.runtime.cri_channel import CriChannel
from monitor.agent.runtime.proto import containerd_pb2 as native
from monitor.agent.runtime.proto import cri_pb2 as pb
from monitor.base.msgspec_types import know_types
from monitor.facts import ImageFact

_TIMEOUT_SECONDS = 120.0
_LEASE_DURATION = timedelta(minutes=15)
_RELIST_SECONDS = 10.0  # seconds within which CRI has noticed that an image is back
_CREATE_SECONDS = 10.0  # seconds that making a container may take
_STALE_LEASE_SECONDS = 300.0  # a lease that is older was left behind: the kubelet gives up after two minutes
_WITHOUT_LEASES = "this runtime has no leases: looked before and after"


class _CriImageConfig(msgspec.Struct):
    labels: dict[str, str] | None = msgspec.field(name="Labels", default=None)


class _CriImageSpec(msgspec.Struct):
    config: _CriImageConfig | None = None


class _CriImageInfo(msgspec.Struct, rename="camel"):
    """The JSON in a verbose status of an image."""

    image_spec: _CriImageSpec | None = None


class CriImages:
    """The images of one CRI runtime, to be changed. `settle` waits until what was begun can be seen."""

    def __init__(self, socket: str, name: str, settle: Callable[[], object]) -> None:
        self._socket = socket
        self._name = name
        self._settle = settle
        self._channel = CriChannel(socket)
        self._channel.meet()

    def labels(self, image: ImageFact) -> dict[str, str]:
        request = pb.ImageStatusRequest(image=pb.ImageSpec(image=image.id), verbose=True)
        reply = self._channel.call("ImageService/ImageStatus", request, pb.ImageStatusResponse, _TIMEOUT_SECONDS)
        try:
            spec = msgspec.json.decode(reply.info.get("info", ""), type=_CriImageInfo).image_spec
        except msgspec.MsgspecError as error:
            raise EngineError(f"{self._socket}: does not tell the labels of an image: {error}") from error
        if spec is None or spec.config is None:
            raise EngineError(f"{self._socket}: does not tell the labels of an image")
        return spec.config.labels or {}

    def remove(
        self, image: ImageFact, guard: str, in_use: Callable[[], ActionRefusal | None], ledger: HoldJournal
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

            def take_names() -> ActionRefusal | None:
                containerd.create_lease(guard, (datetime.now(UTC) + _LEASE_DURATION).isoformat(timespec="seconds"))
                containerd.hold(guard, hold.digests)
                self._remove(image.id)
                self._settle()
                return self._being_made(containerd, hold) or self._unlisted(containerd, records) or in_use()

            refusal = remove_or_roll_back(hold, ledger, take_names, self.put_back)
            if refusal is not None:
                return refusal
            containerd.delete_lease(guard, collect=True)
        return ""

    def put_back(self, hold: ImageHold) -> None:
        with closing(Containerd(self._socket)) as containerd:
            try:
                containerd.hold(hold.guard, hold.digests)
            except GoneError:  # it was never taken, or so long ago that there is nothing left to give names to
                return
            for record in hold.records:
                try:
                    containerd.create_image(_message(record))
                except AlreadyThereError:
                    continue
            self._wait_for(hold.image_id)
            containerd.delete_lease(hold.guard, collect=False)

    def _being_made(self, containerd: Containerd, hold: ImageHold) -> ActionRefusal | None:
        """Wait for the containers that are being made, and return that somebody does not get done with his.

        containerd writes one thing after the other, and stands still while it collects garbage: a container whose image
        was looked up long ago may be waiting for its turn. A write of our own comes after those that were waiting, and
        then each of them has a lease, until his container is recorded. A pull has one too, which holds content.
        """
        containerd.hold(hold.guard, hold.digests)
        deadline = time.monotonic() + _CREATE_SECONDS
        waiting = set(containerd.leases(since=time.time() - _STALE_LEASE_SECONDS) - {hold.guard})
        while waiting := {lease for lease in waiting if _makes_a_container(containerd, lease)}:
            if time.monotonic() > deadline:
                return ActionRefusal(
                    "in-use", f"somebody is making a container for {_CREATE_SECONDS:.0f} s, of what is not known"
                )
            time.sleep(0.05)
        return None

    def _unlisted(self, containerd: Containerd, records: tuple[ContainerdImageRecord, ...]) -> ActionRefusal | None:
        """Return which container uses the image and is not on CRI's list: being made just now, or not made by CRI.

        CRI is asked first: what it finishes after that is on the list that whoever asks next gets.
        """
        containers = self._channel.call(
            "RuntimeService/ListContainers", pb.ListContainersRequest(), pb.ListContainersResponse, _TIMEOUT_SECONDS
        ).containers
        sandboxes = self._channel.call(
            "RuntimeService/ListPodSandbox", pb.ListPodSandboxRequest(), pb.ListPodSandboxResponse, _TIMEOUT_SECONDS
        ).items
        listed = {one.id for one in containers} | {one.id for one in sandboxes}
        names = {record.name for record in records}
        user = next((one.id for one in containerd.containers() if one.id not in listed and one.image in names), None)
        return ActionRefusal("in-use", f"container {user}, which CRI does not list, is made of it") if user else None

    def _remove(self, image_id: str) -> None:
        request = pb.RemoveImageRequest(image=pb.ImageSpec(image=image_id))
        self._channel.call("ImageService/RemoveImage", request, pb.RemoveImageResponse, _TIMEOUT_SECONDS)

    def _wait_for(self, image_id: str) -> None:
        """Return when CRI lists an image. It follows the records by events, a moment later."""
        deadline = time.monotonic() + _RELIST_SECONDS
        while time.monotonic() < deadline:
            reply = self._channel.call(
                "ImageService/ListImages", pb.ListImagesRequest(), pb.ListImagesResponse, _TIMEOUT_SECONDS
            )
            if any(image.id == image_id for image in reply.images):
                return
            time.sleep(0.02)
        raise EngineError(f"{self._socket}: the names of {image_id} were put back, and are not listed")


def _makes_a_container(containerd: Containerd, lease: str) -> bool:
    try:
        return not containerd.holds_content(lease)
    except GoneError:
        return False


def _records(images: tuple[native.Image, ...], image: ImageFact) -> tuple[ContainerdImageRecord, ...]:
    """Return the records of an image: those of its names, and others of the same content, which may have just come."""
    names = {image.id, *image.names, *image.digests}
    digests = {one.target.digest for one in images if one.name in names}
    return tuple(
        ContainerdImageRecord(
            name=one.name,
            media_type=one.target.media_type,
            digest=one.target.digest,
            size=one.target.size,
            labels=dict(one.labels),
            annotations=dict(one.target.annotations),
        )
        for one in images
        if one.target.digest in digests
    )


def _message(record: ContainerdImageRecord) -> native.Image:
    target = native.Descriptor(
        media_type=record.media_type, digest=record.digest, size=record.size, annotations=record.annotations
    )
    return native.Image(name=record.name, labels=record.labels, target=target)


know_types(__name__)
