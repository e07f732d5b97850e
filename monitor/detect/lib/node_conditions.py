"""What conditions and taints of nodes mean that other tools set: a table, and a convention for names that it lacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from monitor.base.globs import matches_any_glob, matches_glob
from monitor.facts.findings import Scope, Severity
from monitor.facts.kube import ConditionFact, TaintFact

RULE_NAME = "node-condition"
# The cause of a condition or taint is its meaning, and decides what to do.
SEVERITIES = {
    "gpu-missing": Severity.CRITICAL,
    "gpu-memory": Severity.CRITICAL,
    "gpu-error": Severity.CRITICAL,
    "gpu-link": Severity.WARNING,
    "gpu-driver": Severity.WARNING,
    "gpu-throttled": Severity.WARNING,
    "gpu-unhealthy": Severity.WARNING,
    "kernel": Severity.CRITICAL,
    "filesystem": Severity.CRITICAL,
    "runtime": Severity.WARNING,
    "kubelet": Severity.WARNING,
    "network": Severity.WARNING,
    "processes": Severity.WARNING,
    "inodes": Severity.WARNING,
    "clock": Severity.WARNING,
    "isolated": Severity.WARNING,
    "reported": Severity.WARNING,
    "maintenance": Severity.INFO,
}
CAUSES = tuple(SEVERITIES)
GPU_CAUSES = tuple(cause for cause in CAUSES if cause.startswith("gpu-"))

# Types, or shell patterns of types, whose status True is a fault. In this order: the first that matches counts.
_FAULTS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "gpu-missing": ("GPUMissing", "NodeGPULostCard", "NT_?PU_CARD_LOSE", "SysLogsGPUFallenOff"),
    "gpu-memory": ("GpuMemWatch", "NodeGPUECCFail", "NT_?PU_ECC*"),
    "gpu-error": (
        "GpuXidError", "GpuXidWatch", "SysLogsXIDError", "XIDErrors", "XidCriticalError", "NvidiaXidError",
        "NodeHasNvidiaXidError", "NodeGPUXIDError", "GpuPcieWatch",
    ),
    "gpu-link": (
        "GpuNvlinkWatch", "GpuNvswitch*Watch", "SysLogsSXIDError", "NVLinkStatusInactive", "IBLinkFlapping",
        "NT_?PU_NET",
    ),
    "gpu-driver": ("GpuDriverWatch", "NodeNvidiaSmiError", "UnhealthyNvidiaDevicePlugin", "GpuDcgmConnectivityFailure"),
    "gpu-throttled": ("GpuThermalWatch", "GpuPowerWatch", "GPUClockThrottling"),
    "gpu-unhealthy": ("Gpu*Watch", "NT_GPU_*", "NT_NPU_*"),
    "kernel": ("KernelDeadlock", "CperHardwareErrorFatal", "PSProcessIsHung"),
    "filesystem": (
        "ReadonlyFilesystem", "FilesystemCorruptionProblem", "XfsShutdown", "CorruptDockerOverlay2", "DiskBadBlock",
        "NT_KUBE_DISK_READONLY_CHECK",
    ),
    "runtime": (
        "ContainerRuntimeUnhealthy", "ContainerRuntimeProblem", "FrequentContainerdRestart", "FrequentDockerRestart",
        "DockerHung", "DockerOffline", "RuntimeOffline", "CRIProblem",
    ),
    "kubelet": ("KubeletUnhealthy", "KubeletProblem", "FrequentKubeletRestart", "SystemdOffline"),
    "network": ("FrequentUnregisterNetDevice", "KubeProxyUnhealthy", "CNIProblem", "ConntrackFullProblem"),
    "processes": ("NodePIDPressure", "PIDProblem", "NodeHasFDPressure", "FDProblem"),
    "inodes": ("InodesPressure",),
    "clock": ("NTPProblem", "NTPIsDown", "NT_NET_NTP_CHECK"),
    "maintenance": ("VMEventScheduled", "InstanceExpired"),
    "reported": ("NT_*",),
})  # fmt: skip
# Types whose status False is a fault.
_EXPECTED: Mapping[str, str] = MappingProxyType({
    "AcceleratedHardwareReady": "gpu-unhealthy",
    "KernelReady": "kernel",
    "StorageReady": "filesystem",
    "ContainerRuntimeReady": "runtime",
    "NetworkingReady": "network",
    "SufficientIP": "network",
})  # fmt: skip
# Of the kubelet and the cloud's network, which node-down reports, and those that are never a fault.
_NOT_REPORTED = frozenset({
    "Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "OutOfDisk", "EtcdIsVoter",
})  # fmt: skip
# Keys of taints that tools set on broken nodes; a `*` stands for anything.
_TAINTS: Mapping[str, str] = MappingProxyType({
    "AggregatedNodeHealth": "isolated",
    "nvidia.com/gpu-*-error": "isolated",
    "alibabacloud.com/node-anomaly": "isolated",
    "sagemaker.amazonaws.com/node-health-status": "maintenance",
    "cloud.google.com/impending-node-termination": "maintenance",
})  # fmt: skip
_ISOLATION_CODE = re.compile(r"\bA05\d{4}\b")  # of ModelArts, in the key or value of a taint
_REPELLING = ("NoSchedule", "NoExecute")
_GOOD_NAME = re.compile(r"(Ready|Healthy|OK|Ok)$")
_BAD_NAME = re.compile(r"(Problem|Errors?|Fault|Failure|Failed|Unhealthy|Offline|Deadlock|Hung)$")
_NO_FAULT = re.compile(r"No[A-Z]")  # a reason such as NoXidErrors


@dataclass(frozen=True)
class ReportedFault:
    """A condition or taint that means a fault. `name` is its type or key."""

    name: str
    cause: str
    says: str = ""
    since: float | None = None
    taint: bool = False


def condition_fault(condition: ConditionFact, extra: Mapping[str, str]) -> ReportedFault | None:
    """The fault that a condition means, None if it means none or if its meaning is unknown.

    `extra` are causes by `TYPE=True` or `TYPE=False`, and override the table.
    """
    cause = _cause(condition, extra)
    if cause is None:
        return None
    says = ": ".join(part for part in (condition.reason, condition.message) if part)
    return ReportedFault(condition.type, cause, says, condition.since)


def _cause(condition: ConditionFact, extra: Mapping[str, str]) -> str | None:
    kind, status = condition.type, condition.status
    if status is None or kind in _NOT_REPORTED:
        return None
    if f"{kind}=True" in extra or f"{kind}=False" in extra:
        return extra.get(f"{kind}={status}")
    if kind in _EXPECTED:
        return None if status else _EXPECTED[kind]
    fault = next((cause for cause, kinds in _FAULTS.items() if matches_any_glob(kind, kinds)), None)
    if fault is not None:
        return fault if status else None
    return _by_convention(condition)


def _by_convention(condition: ConditionFact) -> str | None:
    """Whether the name says which status is a fault: SomethingUnhealthy, SomethingReady."""
    if _BAD_NAME.search(condition.type):
        harmless = condition.reason is not None and _NO_FAULT.match(condition.reason)
        return "reported" if condition.status and not harmless else None
    if _GOOD_NAME.search(condition.type):
        return None if condition.status else "reported"
    return None


def taint_fault(taint: TaintFact, extra: Iterable[str]) -> ReportedFault | None:
    """The fault for which a tool has set a taint; `extra` are patterns of further keys."""
    if taint.effect not in _REPELLING:
        return None
    patterns = {**_TAINTS, **dict.fromkeys(extra, "isolated")}
    cause = next((cause for pattern, cause in patterns.items() if matches_glob(taint.key, pattern)), None)
    says = f"{taint.key}={taint.value}" if taint.value else taint.key
    if cause is None and _ISOLATION_CODE.search(says):
        cause = "isolated"
    return None if cause is None else ReportedFault(taint.key, cause, says, taint.since, taint=True)


def same_fault(labels: Mapping[str, str], *causes: str) -> tuple[Scope, ...]:
    """Scopes of what other tools report with these causes about the node that the labels of a finding name."""
    node = labels.get("node")
    return () if node is None else (Scope(labels={"node": node}, rules=(RULE_NAME,), causes=causes),)
