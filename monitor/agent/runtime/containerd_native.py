"""containerd by its native API, for what CRI lacks: image records, all containers, and leases.

Used only to remove images. Every call has a timeout: on failure the caller has to restore something.
"""

from __future__ import annotations

from typing import TypeVar

import grpc
from google.protobuf.message import Message

from monitor.agent.runtime.api import EngineError, GoneError, NotServedError
from monitor.agent.runtime.proto import containerd_pb2 as pb

NAMESPACE = "k8s.io"  # of the CRI plug-in
_TIMEOUT_SECONDS = 20.0
_GC_TIMEOUT_SECONDS = 60.0  # garbage collection walks everything that containerd has
_OPTIONS = (
    ("grpc.max_receive_message_length", 16 << 20),
    ("grpc.use_local_subchannel_pool", 1),  # do not inherit the backoff of another connection
)
# Leased content keeps what it refers to: the layers of a manifest and, by a label, their unpacked snapshots.
_CONTENT, _INGESTS = "content", "ingests"
_EXPIRES = "containerd.io/gc.expire"

Reply = TypeVar("Reply", bound=Message)


class AlreadyExistsError(EngineError):
    """The object to be created already exists."""


class Containerd:
    """A connection to one containerd, in the namespace of Kubernetes. The caller closes it."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._channel = grpc.insecure_channel(f"unix://{socket}", options=_OPTIONS)

    def close(self) -> None:
        self._channel.close()

    def images(self) -> tuple[pb.Image, ...]:
        """Image records, one per name. Raise NotServedError if the server is not containerd."""
        return tuple(self._call("images.v1.Images/List", pb.ListImagesRequest(), pb.ListImagesResponse).images)

    def create_image(self, image: pb.Image) -> None:
        """Create an image record. Raise AlreadyExistsError if its name is taken."""
        self._call("images.v1.Images/Create", pb.CreateImageRequest(image=image), pb.Empty)

    def containers(self) -> tuple[pb.Container, ...]:
        """All containers, including those that CRI does not list because it has not created or finished them."""
        reply = self._call("containers.v1.Containers/List", pb.ListContainersRequest(), pb.ListContainersResponse)
        return tuple(reply.containers)

    def create_lease(self, name: str, expires: str) -> None:
        """Create a lease that expires at a time (RFC 3339)."""
        self._call("leases.v1.Leases/Create", pb.CreateLeaseRequest(id=name, labels={_EXPIRES: expires}), pb.Empty)

    def hold(self, lease: str, digests: frozenset[str]) -> None:
        """Add content, and all it refers to, to a lease. Raise GoneError if the lease does not exist."""
        for digest in sorted(digests):
            resource = pb.Resource(id=digest, type=_CONTENT)
            self._call("leases.v1.Leases/AddResource", pb.AddResourceRequest(id=lease, resource=resource), pb.Empty)

    def leases(self, since: float) -> frozenset[str]:
        """Leases created since a time. Creating a container or pulling an image holds one."""
        leases = self._call("leases.v1.Leases/List", pb.ListLeasesRequest(), pb.ListLeasesResponse).leases
        return frozenset(lease.id for lease in leases if lease.created_at.seconds >= since)

    def holds_content(self, lease: str) -> bool:
        """Whether a lease holds content, as that of a pull does. Raise GoneError if the lease does not exist."""
        reply = self._call(
            "leases.v1.Leases/ListResources", pb.ListResourcesRequest(id=lease), pb.ListResourcesResponse
        )
        return any(resource.type in (_CONTENT, _INGESTS) for resource in reply.resources)

    def delete_lease(self, name: str, *, collect: bool) -> None:
        """Delete a lease; with `collect`, wait until garbage collection has removed unreferenced content."""
        request = pb.DeleteLeaseRequest(id=name, sync=collect)
        self._call("leases.v1.Leases/Delete", request, pb.Empty, _GC_TIMEOUT_SECONDS if collect else _TIMEOUT_SECONDS)

    def _call(self, method: str, request: Message, reply: type[Reply], timeout: float = _TIMEOUT_SECONDS) -> Reply:
        path = f"/containerd.services.{method}"
        call = self._channel.unary_unary(
            path, request_serializer=type(request).SerializeToString, response_deserializer=reply.FromString
        )
        try:
            return call(request, timeout=timeout, metadata=(("containerd-namespace", NAMESPACE),))
        except grpc.RpcError as error:
            raise _translated(f"{self._socket}: {path}", error) from error


def _translated(target: str, error: grpc.RpcError) -> Exception:
    code = error.code()
    text = f"{target}: {code.name}: {error.details()}"
    match code:
        case grpc.StatusCode.UNIMPLEMENTED:
            return NotServedError(text)
        case grpc.StatusCode.ALREADY_EXISTS:
            return AlreadyExistsError(text)
        case grpc.StatusCode.NOT_FOUND:
            return GoneError(text)
    return EngineError(text)
