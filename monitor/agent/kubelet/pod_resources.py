"""The kubelet's PodResources API: devices allocated to each container.

v1 exists since Kubernetes 1.20, v1alpha1 before that. Older kubelets also list pods that have ended.
"""

from __future__ import annotations

from typing import Any

from monitor.agent.kubelet import Allocation

_LIST = "/v1.PodResourcesLister/List"
_LIST_BEFORE_1_20 = "/v1alpha1.PodResourcesLister/List"
CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),  # the kubelet's own limit
    ("grpc.default_authority", "localhost"),  # Go servers refuse a path as host name
    ("grpc.enable_http_proxy", 0),
    # Otherwise a channel inherits the failure and the backoff of an earlier one that is still closing.
    ("grpc.use_local_subchannel_pool", 1),
)


class PodResourcesError(Exception):
    """The kubelet did not answer, or refused."""


def list_allocations(socket: str, timeout: float) -> tuple[Allocation, ...]:
    """All allocated devices. Raise PodResourcesError, which names the socket.

    The channel is opened per call. That costs a millisecond and handles a restarted kubelet, while an idle channel
    would cost as much every second.
    """
    import grpc  # 16 MiB that only nodes with a kubelet need

    try:
        with grpc.insecure_channel(f"unix:{socket}", options=CHANNEL_OPTIONS) as channel:
            try:
                return _allocations(_call(channel, _LIST, timeout))
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                    raise
            return _allocations(_call(channel, _LIST_BEFORE_1_20, timeout))
    except grpc.RpcError as error:
        raise PodResourcesError(_explain(socket, timeout, error)) from error


def _call(channel: Any, method: str, timeout: float) -> Any:
    from monitor.agent.kubelet import podresources_pb2  # 4 MiB

    messages: Any = podresources_pb2  # its names are created at run time
    call = channel.unary_unary(
        method,
        request_serializer=messages.ListPodResourcesRequest.SerializeToString,
        response_deserializer=messages.ListPodResourcesResponse.FromString,
    )
    return call(messages.ListPodResourcesRequest(), timeout=timeout)


def _allocations(response: Any) -> tuple[Allocation, ...]:
    return tuple(
        Allocation(
            resource=devices.resource_name,
            device_id=device_id,
            container=container.name,
            pod_name=pod.name,
            namespace=pod.namespace,
        )
        for pod in response.pod_resources
        for container in pod.containers
        for devices in container.devices
        for device_id in devices.device_ids
    )


def _explain(socket: str, timeout: float, error: Any) -> str:
    if error.code().name == "DEADLINE_EXCEEDED":
        return f"the kubelet did not answer on {socket} within {timeout:g} s"
    return f"the kubelet failed on {socket}: {error.code().name}: {error.details()}"
