"""The kubelet's device allocations, from its PodResources socket or its checkpoint file, and its thresholds.

`h2` and `google.protobuf` are imported only if the socket exists.
"""

from __future__ import annotations

from typing import NamedTuple


class Allocation(NamedTuple):
    """One device allocated to a container. The socket has the name of the pod, the checkpoint its UID.

    Of a device that a claim holds, `resource` is the driver and `device_id` the name within the driver's `pool`.
    """

    resource: str
    device_id: str
    container: str
    pod_uid: str | None = None
    pod_name: str | None = None
    namespace: str | None = None
    claim: str | None = None
    pool: str | None = None
