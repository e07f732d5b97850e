"""Checks an item against the state of the cluster immediately before it is executed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from monitor.cleanup.execute.references_reader import VolumeList
from monitor.cleanup.execute.run_plan import OVER_QUOTA
from monitor.cleanup.inputs import Planner, policy_disk
from monitor.cleanup.journal_records import CleanupRun
from monitor.cleanup.model import Item, PodWrite
from monitor.cleanup.on_demand import RELEASE, RESTORE
from monitor.cleanup.plan.dataset_protection import DatasetUses, mounted_paths
from monitor.cleanup.plan.keeps import keep_protection
from monitor.cleanup.policy import Caps, CleanupPolicy, DatasetPolicy, GpuPolicy, PodPolicy
from monitor.facts.actions import KillProcess, TrashUnit

VOLUMES_VALID_SECONDS = 15.0


class Recheck:
    """Re-checks items. `release` is the policy for releases that a user requests."""

    def __init__(self, planner: Planner, policies: Mapping[str, CleanupPolicy], release: GpuPolicy) -> None:
        self._planner = planner
        self._policies = policies
        self._release = release
        self._volumes: tuple[float, VolumeList] = (float("-inf"), VolumeList())

    def __call__(self, run: CleanupRun, item: Item) -> str | None:
        """The protection that now applies to an item; None if there is none. The agent re-checks images."""
        if run.policy == RESTORE:
            return None
        policy = self._release if run.policy == RELEASE else self._policies.get(run.policy)
        if policy is None:
            return "unknown"
        if isinstance(item.act, TrashUnit) and isinstance(policy, DatasetPolicy):
            return self._kept(item) or self._mounted(policy, item.act)
        if isinstance(item.act, (PodWrite, KillProcess)) and isinstance(policy, (PodPolicy, GpuPolicy)):
            return self._still_planned(policy, item)
        return None

    def _kept(self, item: Item) -> str | None:
        """Whether the owner has answered since the plan was made."""
        if item.why.key == OVER_QUOTA:
            return None
        protection = keep_protection(self._planner.keeps(), item.id, time.time())
        return None if protection is None else protection.protection

    def _still_planned(self, policy: PodPolicy | GpuPolicy, item: Item) -> str | None:
        """Plan again: an item that is no longer planned is in use, gone or protected by now."""
        plan = self._planner.plan(replace(policy, caps=Caps(items=1_000_000)), None)
        if plan.refused is not None:
            return "unknown"
        if any(planned.id == item.id and planned.act == item.act for planned in plan.items):
            return None
        return next((kept.protection for kept in plan.kept if kept.name == item.name), "changed")

    def _mounted(self, policy: DatasetPolicy, act: TrashUnit) -> str | None:
        if time.monotonic() - self._volumes[0] > VOLUMES_VALID_SECONDS:
            self._volumes = (time.monotonic(), self._planner.volumes())
        volumes = self._volumes[1]
        if volumes.unknown:
            return "unknown"
        agent = self._planner.agents().get(policy.node)
        disk = policy_disk(policy, agent.snapshot) if agent is not None and agent.snapshot is not None else None
        user = mounted_paths(policy, DatasetUses(volumes=volumes.uses), disk).user_of(act.path)
        return "needed" if user is not None else None
