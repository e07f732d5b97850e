"""Whether an item still holds at the moment at which it would be done, by what only the cluster knows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from monitor.cleanup.execute.references_reader import VolumeList
from monitor.cleanup.inputs import Planner, policy_disk
from monitor.cleanup.journal import CleanupRun
from monitor.cleanup.model import Item, PodWrite
from monitor.cleanup.on_demand import RELEASE, RESTORE
from monitor.cleanup.plan.dataset_protection import DatasetUses, mounted_paths
from monitor.cleanup.policy import Caps, CleanupPolicy, DatasetPolicy, GpuPolicy, PodPolicy
from monitor.facts.actions import KillProcess, TrashUnit

VOLUMES_VALID_SECONDS = 15.0  # for how long the volumes of pods and templates are taken to be as they were read


class Recheck:
    """Looks again. `release` is the policy of what a person asked for."""

    def __init__(self, gatherer: Planner, policies: Mapping[str, CleanupPolicy], release: GpuPolicy) -> None:
        self._gatherer = gatherer
        self._policies = policies
        self._release = release
        self._volumes: tuple[float, VolumeList] = (float("-inf"), VolumeList())

    def __call__(self, run: CleanupRun, item: Item) -> str | None:
        """Return as a word what speaks against an item now; None if nothing does. Images are the agent's to judge."""
        if run.policy == RESTORE:
            return None
        policy = self._release if run.policy == RELEASE else self._policies.get(run.policy)
        if policy is None:
            return "unknown"
        if isinstance(item.act, TrashUnit) and isinstance(policy, DatasetPolicy):
            return self._mounted(policy, item.act)
        if isinstance(item.act, (PodWrite, KillProcess)) and isinstance(policy, (PodPolicy, GpuPolicy)):
            return self._still_planned(policy, item)
        return None

    def _still_planned(self, policy: PodPolicy | GpuPolicy, item: Item) -> str | None:
        """Plan anew: what is not in that plan any more has begun to work, has ended, or is protected by now."""
        plan = self._gatherer.plan(replace(policy, caps=Caps(items=1_000_000)), None)
        if plan.refused is not None:
            return "unknown"
        if any(each.id == item.id and each.act == item.act for each in plan.items):
            return None
        return next((kept.protection for kept in plan.kept if kept.name == item.name), "changed")

    def _mounted(self, policy: DatasetPolicy, act: TrashUnit) -> str | None:
        if time.monotonic() - self._volumes[0] > VOLUMES_VALID_SECONDS:
            self._volumes = (time.monotonic(), self._gatherer.volumes())
        volumes = self._volumes[1]
        if volumes.unknown:
            return "unknown"
        fact = self._gatherer.agents().get(policy.node)
        disk = policy_disk(policy, fact.snapshot) if fact is not None and fact.snapshot is not None else None
        in_use = mounted_paths(policy, DatasetUses(volumes=volumes.uses), disk).user_of(act.path)
        return "needed" if in_use is not None else None
