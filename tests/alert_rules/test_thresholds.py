"""The rule files for agents alone judge by the same figures as the daemon's detectors do by default."""

from __future__ import annotations

import pytest

from monitor.base.units import parse_duration
from monitor.detect.lib.xids import codes_of_cause
from monitor.detect.meta.receivers import RETRYING_AFTER_SECONDS
from monitor.detect.rules import (
    actions_refused,
    agent_silent,
    disk_filling,
    disk_full,
    disk_io_saturated,
    gpu_fault,
    gpu_hot,
    gpu_idle,
    gpu_orphan,
    gpu_wedged,
    image_cache_large,
    image_oversize,
    kernel_fault,
    mount_lost,
    pod_silent,
    shm_pressure,
)
from tests.alert_rules.rules import RuleText, alerts

HOUR, GIB, MIB = 3600, 1024**3, 1024**2


def codes(*classes: tuple[int, ...]) -> str:
    return "|".join(str(code) for group in classes for code in group)


XID_CAUSES = (
    "xid-off-bus", "xid-memory", "xid-driver", "xid-reset", "xid-reboot", "xid-nvlink", "xid-memory-contained",
    "xid-vendor", "xid-software", "xid-power",
)  # fmt: skip
# Without an alert: application errors, and what needs no action.
OTHER_XIDS = (codes_of_cause("xid-application"), codes_of_cause(None))
FULL, FILLING, IDLE, SHM = disk_full.Limits(), disk_filling.Limits(), gpu_idle.Limits(), shm_pressure.Limits()
IO, FAULT, MOUNT = disk_io_saturated.Limits(), gpu_fault.Limits(), mount_lost.Limits()
KERNEL = kernel_fault.Limits()
HOLD = f"< {FAULT.xid_hold:.0f}"

# alert, severity, cause, what its expression has to say
FIGURES = (
    ("DiskFull", "critical", "space", [f">= {FULL.critical:.2f}"]),
    ("DiskFull", "warning", "space", [f">= {FULL.warning:.2f} < {FULL.critical:.2f}"]),
    ("DiskFull", "critical", "inodes", [f">= {FULL.critical:.2f}"]),
    ("DiskFull", "warning", "inodes", [f">= {FULL.warning:.2f} < {FULL.critical:.2f}"]),
    ("DiskFilling", "critical", None, [f"< {FILLING.critical / HOUR:.0f} * 3600"]),
    ("DiskFilling", "warning", None, [f"< {FILLING.warning / HOUR:.0f} * 3600"]),
    ("DiskIoSaturated", "warning", None, [f"> {IO.busy:.2f}", f">= {IO.queue:.0f}"]),
    ("MountLost", "critical", "stale", [f">= {MOUNT.everywhere}"]),
    ("ImageCacheLarge", "warning", None, [f"> {image_cache_large.Limits().share}"]),
    ("ImageOversize", "warning", None, [f"> {image_oversize.Limits().size / GIB:.0f} * 1024 ^ 3"]),
    *(("GpuFault", gpu_fault.SEVERITIES[cause].value, cause, [f'"{codes(codes_of_cause(cause))}"', HOLD])
      for cause in XID_CAUSES),
    ("GpuFault", "warning", "xid-unknown", [f'xid!~"{codes(*map(codes_of_cause, XID_CAUSES), *OTHER_XIDS)}"', HOLD]),
    ("KernelFault", "critical", None, [f"< {KERNEL.cpu_lockup.window:.0f}", f"< {KERNEL.pcie_error.window:.0f}"]),
    ("KernelFault", "warning", None, [f"< {KERNEL.hung_task.window:.0f}", f"< {KERNEL.nfs_not_responding.window:.0f}"]),
    ("GpuHot", "warning", "thermal", ["|".join(r for r, c in gpu_hot.REASONS.items() if c == gpu_hot.THERMAL)]),
    ("GpuHot", "warning", "power-brake", [r for r, c in gpu_hot.REASONS.items() if c == gpu_hot.BRAKE]),
    ("GpuWedged", "warning", None, [f"> {gpu_wedged.Limits().after:.0f}", "|".join(gpu_wedged.STATES)]),
    ("GpuOrphan", "warning", None, ["|".join(gpu_orphan.Limits().allowed).replace("*", ".*")]),
    ("GpuIdle", "critical", None,
     [f"[{IDLE.critical_after / HOUR:.0f}h]", f"> {IDLE.power_times} *", f"> {IDLE.power_share} *"]),
    ("GpuIdle", "warning", None,
     [f"[{IDLE.warning_after / 60:.0f}m]", f"> {IDLE.power_times} *", f"> {IDLE.power_share} *"]),
    ("ShmPressure", "critical", "nearly-full", [f">= {SHM.critical:.2f}"]),
    ("ShmPressure", "warning", "nearly-full", [f">= {SHM.nearly_full:.2f} < {SHM.critical:.2f}"]),
    ("ShmPressure", "warning", "default-size", [f"<= {SHM.default_size / MIB:.0f} * 1024 ^ 2"]),
    ("PodSilent", "warning", "log-unreadable", [f"> {pod_silent.Limits().empty:.0f}"]),
    ("ActionsRefused", "warning", None,
     [f"[{actions_refused.Limits().quiet / 60:.0f}m]", "|".join(actions_refused.CAUSES)]),
    ("ReceiverFailing", "warning", "retrying", [f">= {RETRYING_AFTER_SECONDS:.0f}"]),
)  # fmt: skip

# alert, cause, for how long it has to last
WAITS = (
    ("DiskIoSaturated", None, IO.after),
    ("MountLost", "stale", MOUNT.after),
    ("GpuFault", "driver-hung", FAULT.hung_after),
    ("GpuHot", "thermal", gpu_hot.Limits().after),
    ("GpuHot", "power-brake", gpu_hot.Limits().after),
    ("GpuOrphan", None, gpu_orphan.Limits().after),
    ("AgentSilent", "agent-down", agent_silent.Limits().silent_after),
    ("AgentSilent", "collector-hung", agent_silent.Limits().collector_after),
    ("AgentSilent", "collector-failing", agent_silent.Limits().collector_after),
)


def rules_of(name: str, severity: str | None, cause: str | None) -> list[RuleText]:
    return [
        rule
        for rule in alerts()
        if rule.group != "gpuwarden-findings"
        and rule.name == name
        and severity in (None, rule.labels.get("severity"))
        and cause in (None, rule.labels.get("cause"))
    ]


@pytest.mark.parametrize(("name", "severity", "cause", "says"), FIGURES)
def test_figures_are_those_of_the_detectors(name: str, severity: str, cause: str | None, says: list[str]) -> None:
    found = rules_of(name, severity, cause)
    assert len(found) == 1
    assert [text for text in says if text not in found[0].expr] == []


@pytest.mark.parametrize(("name", "cause", "seconds"), WAITS)
def test_what_has_to_last_lasts_as_long_as_for_the_daemon(name: str, cause: str | None, seconds: float) -> None:
    found = [rule for rule in rules_of(name, None, cause) if rule.labels.get("service") != "agents"]
    assert [parse_duration(rule.wait) for rule in found] == [seconds] * len(found)
    assert found
