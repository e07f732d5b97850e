"""containerd by its native API, for what CRI lacks: image records, all containers and sandboxes, and leases.

Used only to remove images. Every call has a timeout: on failure the caller has to restore something.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import Message

from monitor.agent.grpc_client.channel import GrpcChannel
from monitor.agent.grpc_client.status import GrpcError, GrpcStatus
from monitor.agent.runtime.api import EngineError, GoneError, NotServedError
from monitor.agent.runtime.proto import containerd_pb2 as pb

NAMESPACE = "k8s.io"  # of the CRI plug-in
_METADATA = (("containerd-namespace", NAMESPACE),)
_TIMEOUT_SECONDS = 20.0
_GC_TIMEOUT_SECONDS = 60.0  # garbage collection walks everything that containerd has
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
        self._channel = GrpcChannel(socket)

    def close(self) -> None:
        self._channel.close()

    def images(self) -> tuple[pb.Image, ...]:
        """Image records, one per name. Raise NotServedError if the server is not containerd."""
        return tuple(self._read("images.v1.Images/List", pb.ListImagesRequest(), pb.ListImagesResponse).images)

    def create_image(self, image: pb.Image) -> None:
        """Create an image record. Raise AlreadyExistsError if its name is taken."""
        self._write("images.v1.Images/Create", pb.CreateImageRequest(image=image))

    def containers(self) -> tuple[pb.Container, ...]:
        """All containers, including those that CRI does not list because it has not created or finished them."""
        reply = self._read("containers.v1.Containers/List", pb.ListContainersRequest(), pb.ListContainersResponse)
        return tuple(reply.containers)

    def sandboxes(self) -> frozenset[str]:
        """Ids of all sandboxes, including those that CRI has not created yet. None before containerd 1.7."""
        try:
            reply = self._read("sandbox.v1.Store/List", pb.ListSandboxesRequest(), pb.ListSandboxesResponse)
        except NotServedError:
            return frozenset()
        return frozenset(sandbox.sandbox_id for sandbox in reply.list)

    def create_lease(self, name: str, expires: str) -> None:
        """Create a lease that expires at a time (RFC 3339)."""
        self._write("leases.v1.Leases/Create", pb.CreateLeaseRequest(id=name, labels={_EXPIRES: expires}))

    def hold(self, lease: str, digests: frozenset[str]) -> None:
        """Add content, and all it refers to, to a lease. Raise GoneError if the lease does not exist."""
        for digest in sorted(digests):
            resource = pb.Resource(id=digest, type=_CONTENT)
            self._write("leases.v1.Leases/AddResource", pb.AddResourceRequest(id=lease, resource=resource))

    def leases(self, since: float) -> frozenset[str]:
        """Leases created since a time. A container being created, a pull, and a pod (containerd 2.1) have one."""
        leases = self._read("leases.v1.Leases/List", pb.ListLeasesRequest(), pb.ListLeasesResponse).leases
        return frozenset(lease.id for lease in leases if lease.created_at.seconds >= since)

    def holds_content(self, lease: str) -> bool:
        """Whether a lease holds content, as that of a pull does. Raise GoneError if the lease does not exist."""
        reply = self._read(
            "leases.v1.Leases/ListResources", pb.ListResourcesRequest(id=lease), pb.ListResourcesResponse
        )
        return any(resource.type in (_CONTENT, _INGESTS) for resource in reply.resources)

    def delete_lease(self, name: str, *, collect: bool) -> None:
        """Delete a lease; with `collect`, wait until garbage collection has removed unreferenced content."""
        request = pb.DeleteLeaseRequest(id=name, sync=collect)
        self._write("leases.v1.Leases/Delete", request, _GC_TIMEOUT_SECONDS if collect else _TIMEOUT_SECONDS)

    def _read(self, method: str, request: Message, reply: type[Reply]) -> Reply:
        return self._call(method, request, reply, _TIMEOUT_SECONDS, repeatable=True)

    def _write(self, method: str, request: Message, timeout: float = _TIMEOUT_SECONDS) -> None:
        """Call a method that is not repeated if the connection is lost: having succeeded, it would appear to fail."""
        self._call(method, request, pb.Empty, timeout, repeatable=False)

    def _call(self, method: str, request: Message, reply: type[Reply], timeout: float, *, repeatable: bool) -> Reply:
        path = f"/containerd.services.{method}"
        try:
            return self._channel.call(path, request, reply, timeout, metadata=_METADATA, repeatable=repeatable)
        except GrpcError as error:
            raise _translated(f"{self._socket}: {path}", error) from error


def _translated(target: str, error: GrpcError) -> Exception:
    text = f"{target}: {error}"
    match error.code:
        case GrpcStatus.UNIMPLEMENTED:
            return NotServedError(text)
        case GrpcStatus.ALREADY_EXISTS:
            return AlreadyExistsError(text)
        case GrpcStatus.NOT_FOUND:
            return GoneError(text)
    return EngineError(text)
