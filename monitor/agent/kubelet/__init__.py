"""What the kubelet knows about devices: by its PodResources socket, or by the file it keeps for itself.

May import nothing of monitor. `grpc` and `google.protobuf` are imported only while the socket is there to be asked.
"""

from __future__ import annotations

from typing import NamedTuple


class Allocation(NamedTuple):
    """One device that the kubelet gave to a container. The socket names the pod, the file gives its uid."""

    resource: str
    device_id: str
    container: str
    pod_uid: str | None = None
    pod_name: str | None = None
    namespace: str | None = None
