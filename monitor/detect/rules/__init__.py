"""All rules. CONTRIBUTING.md lists what a new one needs."""

from __future__ import annotations

from monitor.detect.base import Rule
from monitor.detect.rules import (
    actions_refused,
    agent_silent,
    capacity_mismatch,
    disk_filling,
    disk_full,
    disk_io_saturated,
    gpu_fault,
    gpu_fragmented,
    gpu_ghost,
    gpu_hot,
    gpu_idle,
    gpu_orphan,
    gpu_phantom,
    gpu_underused,
    gpu_wedged,
    gpu_zombie,
    image_cache_large,
    image_oversize,
    image_pull,
    image_pull_slow,
    kernel_fault,
    mass_deletion,
    mount_lost,
    node_condition,
    node_down,
    pod_pending,
    pod_silent,
    pod_start_failed,
    pod_stuck_creating,
    pod_stuck_terminating,
    quota_exhausted,
    registry_unreachable,
    service_down,
    shm_pressure,
)

RULES: tuple[Rule, ...] = (
    gpu_zombie.RULE, gpu_idle.RULE, gpu_orphan.RULE, gpu_ghost.RULE, gpu_wedged.RULE, gpu_phantom.RULE,
    gpu_fault.RULE, gpu_hot.RULE, gpu_underused.RULE, gpu_fragmented.RULE, capacity_mismatch.RULE,
    image_pull.RULE, image_pull_slow.RULE, registry_unreachable.RULE,
    pod_pending.RULE, pod_stuck_creating.RULE, pod_start_failed.RULE, pod_stuck_terminating.RULE, pod_silent.RULE,
    quota_exhausted.RULE, shm_pressure.RULE,
    disk_full.RULE, disk_filling.RULE, disk_io_saturated.RULE, image_cache_large.RULE, image_oversize.RULE,
    mass_deletion.RULE, mount_lost.RULE,
    node_down.RULE, node_condition.RULE, kernel_fault.RULE, agent_silent.RULE, actions_refused.RULE, service_down.RULE,
)  # fmt: skip
