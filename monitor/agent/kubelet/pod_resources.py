"""The kubelet's PodResources API: devices allocated to each container.

v1 exists since Kubernetes 1.20, v1alpha1 before that. Older kubelets also list pods that have ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from monitor.agent.grpc_client.status import GrpcError, GrpcStatus
from monitor.agent.kubelet import Allocation

if TYPE_CHECKING:
    from monitor.agent.grpc_client.channel import GrpcChannel

_LIST = "/v1.PodResourcesLister/List"
_LIST_BEFORE_1_20 = "/v1alpha1.PodResourcesLister/List"


class PodResourcesError(Exception):
    """The kubelet did not answer, or refused."""


class PodResourcesClient:
    """A connection to the kubelet's socket, which is opened when needed and survives a restart of the kubelet."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._channel: GrpcChannel | None = None

    def allocations(self, timeout: float) -> tuple[Allocation, ...]:
        """All allocated devices. Raise PodResourcesError, which names the socket."""
        if self._channel is None:
            from monitor.agent.grpc_client.channel import GrpcChannel  # 4 MiB that only nodes with a kubelet need

            self._channel = GrpcChannel(self._socket)
        try:
            return _list_allocations(self._channel, timeout)
        except GrpcError as error:
            raise PodResourcesError(_explain(self._socket, timeout, error)) from error

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()


def _list_allocations(channel: GrpcChannel, timeout: float) -> tuple[Allocation, ...]:
    from monitor.agent.kubelet import podresources_pb2  # with protobuf, which is imported late as well

    messages: Any = podresources_pb2  # its names are created at run time
    request, reply = messages.ListPodResourcesRequest(), messages.ListPodResourcesResponse
    try:
        return _allocations(channel.call(_LIST, request, reply, timeout))
    except GrpcError as error:
        if error.code is not GrpcStatus.UNIMPLEMENTED:
            raise
    return _allocations(channel.call(_LIST_BEFORE_1_20, request, reply, timeout))


def _allocations(response: Any) -> tuple[Allocation, ...]:
    return tuple(
        Allocation(resource, device_id, container.name, None, pod.name, pod.namespace, claim, pool)
        for pod in response.pod_resources
        for container in pod.containers
        for resource, device_id, claim, pool in _devices(container)
    )


def _devices(container: Any) -> Iterator[tuple[str, str, str | None, str | None]]:
    """Devices of a container, from device plugins and then from claims."""
    for devices in container.devices:
        for device_id in devices.device_ids:
            yield devices.resource_name, device_id, None, None
    for claim in container.dynamic_resources:
        for device in claim.claim_resources:
            yield device.driver_name, device.device_name, claim.claim_name, device.pool_name


def _explain(socket: str, timeout: float, error: GrpcError) -> str:
    if error.code is GrpcStatus.DEADLINE_EXCEEDED:
        return f"the kubelet did not answer on {socket} within {timeout:g} s"
    return f"the kubelet failed on {socket}: {error}"
