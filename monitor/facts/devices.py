"""Dynamic Resource Allocation (`resource.k8s.io`) as facts: claims, the devices that drivers offer, device classes."""

from __future__ import annotations

from monitor.facts.base import Fact
from monitor.facts.gpu_drivers import is_gpu_driver
from monitor.facts.kube import ConditionFact, ObjectFact

WHOLE_GPU_TYPES = (None, "gpu")  # attribute `type` of a device; others are parts of a GPU or the same one again
DeviceKey = tuple[str, str, str]  # driver, pool and device
ClaimKey = tuple[str, str]  # namespace and name


class DeviceRequestFact(Fact, frozen=True, kw_only=True):
    """One of the requests of a claim. `count` None: all matching devices of a node.

    Of alternatives (`firstAvailable`), the preferred one. `selectors` are CEL expressions.
    """

    name: str
    device_class: str | None = None
    count: int | None = 1
    admin: bool = False  # access for monitoring, which does not reserve the device
    selectors: tuple[str, ...] = ()


class AllocatedDeviceFact(Fact, frozen=True, kw_only=True):
    """A device that is allocated to a claim."""

    driver: str
    pool: str
    device: str
    request: str | None = None
    admin: bool = False

    @property
    def key(self) -> DeviceKey:
        return self.driver, self.pool, self.device


class ClaimConsumerFact(Fact, frozen=True, kw_only=True):
    """A pod for which a claim is reserved."""

    name: str
    uid: str


class ResourceClaimFact(ObjectFact, frozen=True, kw_only=True):
    """A ResourceClaim. `node` is the only one on which its devices are; None if there is no such restriction.

    `conditions` are those of its devices that are not true, as their drivers report them.
    """

    name: str
    namespace: str
    created_at: float | None = None
    deletion_at: float | None = None
    requests: tuple[DeviceRequestFact, ...] = ()
    allocated: bool = False
    devices: tuple[AllocatedDeviceFact, ...] = ()
    node: str | None = None
    reserved_for: tuple[ClaimConsumerFact, ...] = ()
    conditions: tuple[ConditionFact, ...] = ()

    @property
    def key(self) -> ClaimKey:
        return self.namespace, self.name


class DeviceFact(Fact, frozen=True, kw_only=True):
    """A device in a ResourceSlice. `tainted`: its taints keep claims without a toleration off."""

    name: str
    uuid: str | None = None
    parent_uuid: str | None = None  # of the GPU of a MIG device
    type: str | None = None
    model: str | None = None
    memory_bytes: float | None = None
    tainted: bool = False


class ResourceSliceFact(ObjectFact, frozen=True, kw_only=True):
    """A ResourceSlice: devices of a driver's pool. Only the latest generation of a pool counts."""

    name: str
    driver: str
    pool: str
    generation: int = 0
    node: str | None = None
    devices: tuple[DeviceFact, ...] = ()


class DeviceClassFact(ObjectFact, frozen=True, kw_only=True):
    """A DeviceClass. `drivers` and `types` are those that its CEL expressions name."""

    name: str
    drivers: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    extended_resource: str | None = None


class DeviceFacts(Fact, frozen=True, kw_only=True):
    """All facts of Dynamic Resource Allocation. `known`: claims, slices and classes can all be read."""

    claims: tuple[ResourceClaimFact, ...] = ()
    slices: tuple[ResourceSliceFact, ...] = ()
    classes: tuple[DeviceClassFact, ...] = ()
    known: bool = False

    def serves(self, resource: str) -> bool:
        """Whether the scheduler makes claims for pods that request an extended resource."""
        return any(each.extended_resource == resource for each in self.classes)


NO_DEVICES = DeviceFacts()


def is_gpu(driver: str, device: DeviceFact | None) -> bool:
    """Whether a device is a GPU or a part of one; None: its slice is not known."""
    return is_gpu_driver(driver) or bool(device is not None and device.uuid and device.uuid.startswith("GPU-"))


def is_whole_gpu(driver: str, device: DeviceFact | None) -> bool:
    """Whether a device is a GPU of its own, not a part of one."""
    return is_gpu(driver, device) and (device is None or device.type in WHOLE_GPU_TYPES)
