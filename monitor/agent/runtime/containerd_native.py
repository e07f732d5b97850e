"""containerd by its own interface, for what CRI cannot say: records of images, all containers, and leases.

Only used to remove an image. Every call has a time limit: whoever asks has something to put back if it fails.
"""

from __future__ import annotations

from typing import TypeVar

import grpc
from google.protobuf.message import Message

from monitor.agent.runtime.api import EngineError, GoneError, NotServedError
from monitor.agent.runtime.proto import containerd_pb2 as pb

NAMESPACE = "k8s.io"  # where the CRI plug-in keeps what it has
_TIMEOUT = 20.0
_COLLECTING = 60.0  # a collection of garbage walks everything that containerd has
_OPTIONS = (
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.use_local_subchannel_pool", 1),  # a new connection tries for itself, whatever another has just met
)
# Content that is leased keeps what it refers to: the layers of a manifest and, by a label, their unpacked snapshots.
_CONTENT, _ARRIVING = "content", "ingests"
_EXPIRES = "containerd.io/gc.expire"

Reply = TypeVar("Reply", bound=Message)


class AlreadyThereError(EngineError):
    """What was to be made exists."""


class Containerd:
    """A connection to one containerd, in the namespace of Kubernetes. To be closed."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._channel = grpc.insecure_channel(f"unix://{socket}", options=_OPTIONS)

    def close(self) -> None:
        self._channel.close()

    def images(self) -> tuple[pb.Image, ...]:
        """Return the records of images: one for each name. Raise NotServedError if this is no containerd."""
        return tuple(self._call("images.v1.Images/List", pb.ListImagesRequest(), pb.ListImagesResponse).images)

    def create_image(self, image: pb.Image) -> None:
        """Make a record of an image. Raise AlreadyThereError if its name is taken."""
        self._call("images.v1.Images/Create", pb.CreateImageRequest(image=image), pb.Empty)

    def containers(self) -> tuple[pb.Container, ...]:
        """Return all containers: also those that CRI does not list, because it has not made them or not finished."""
        reply = self._call("containers.v1.Containers/List", pb.ListContainersRequest(), pb.ListContainersResponse)
        return tuple(reply.containers)

    def create_lease(self, name: str, expires: str) -> None:
        """Make a lease that ends by itself at a time (as in RFC 3339)."""
        self._call("leases.v1.Leases/Create", pb.CreateLeaseRequest(id=name, labels={_EXPIRES: expires}), pb.Empty)

    def hold(self, lease: str, digests: frozenset[str]) -> None:
        """Hold content, and all that it refers to, by a lease. Raise GoneError if there is no such lease."""
        for digest in sorted(digests):
            resource = pb.Resource(id=digest, type=_CONTENT)
            self._call("leases.v1.Leases/AddResource", pb.AddResourceRequest(id=lease, resource=resource), pb.Empty)

    def leases(self, since: float) -> frozenset[str]:
        """Return the leases that were made since a time. Who makes a container or pulls an image has one meanwhile."""
        leases = self._call("leases.v1.Leases/List", pb.ListLeasesRequest(), pb.ListLeasesResponse).leases
        return frozenset(lease.id for lease in leases if lease.created_at.seconds >= since)

    def holds_content(self, lease: str) -> bool:
        """Return whether a lease holds content, as that of a pull does. Raise GoneError if there is no such lease."""
        reply = self._call(
            "leases.v1.Leases/ListResources", pb.ListResourcesRequest(id=lease), pb.ListResourcesResponse
        )
        return any(resource.type in (_CONTENT, _ARRIVING) for resource in reply.resources)

    def delete_lease(self, name: str, *, collect: bool) -> None:
        """Let go of what a lease holds and, if asked to, wait until what nobody needs is gone from the disk."""
        request = pb.DeleteLeaseRequest(id=name, sync=collect)
        self._call("leases.v1.Leases/Delete", request, pb.Empty, _COLLECTING if collect else _TIMEOUT)

    def _call(self, method: str, request: Message, reply: type[Reply], timeout: float = _TIMEOUT) -> Reply:
        path = f"/containerd.services.{method}"
        call = self._channel.unary_unary(
            path, request_serializer=type(request).SerializeToString, response_deserializer=reply.FromString
        )
        try:
            return call(request, timeout=timeout, metadata=(("containerd-namespace", NAMESPACE),))
        except grpc.RpcError as error:
            raise _explained(f"{self._socket}: {path}", error) from error


def _explained(asked: str, error: grpc.RpcError) -> Exception:
    code = error.code()
    text = f"{asked}: {code.name}: {error.details()}"
    match code:
        case grpc.StatusCode.UNIMPLEMENTED:
            return NotServedError(text)
        case grpc.StatusCode.ALREADY_EXISTS:
            return AlreadyThereError(text)
        case grpc.StatusCode.NOT_FOUND:
            return GoneError(text)
    return EngineError(text)
