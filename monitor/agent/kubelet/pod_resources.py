"""The kubelet's PodResources API: which devices each container was given.

v1 is there since Kubernetes 1.20, v1alpha1 before that. Older kubelets also list pods that have ended, so being listed
does not mean that a pod still runs.
"""

from __future__ import annotations

from typing import Any

from monitor.agent.kubelet import Allocation

_LIST = "/v1.PodResourcesLister/List"
_LIST_BEFORE_1_20 = "/v1alpha1.PodResourcesLister/List"
OPTIONS = (
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),  # what the kubelet itself allows
    ("grpc.default_authority", "localhost"),  # Go servers refuse a path as the name of a host
    ("grpc.enable_http_proxy", 0),
    # Otherwise a channel inherits the failure, and the wait before the next try, of one that is not quite gone yet.
    ("grpc.use_local_subchannel_pool", 1),
)


class PodResourcesError(Exception):
    """The kubelet did not answer, or refused."""


def list_allocations(socket: str, timeout: float) -> tuple[Allocation, ...]:
    """Given the path of the kubelet's socket, return all devices in use. Raise PodResourcesError, naming the socket.

    The channel lives for one call only. That costs a millisecond and makes a restarted kubelet a matter of course,
    while an idle channel would cost as much every second.
    """
    import grpc  # 16 MiB, and only nodes with a kubelet need it

    try:
        with grpc.insecure_channel(f"unix:{socket}", options=OPTIONS) as channel:
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

    messages: Any = podresources_pb2  # its names are made at run time
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
    return f"the kubelet's {socket}: {error.code().name}: {error.details()}"
