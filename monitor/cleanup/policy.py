"""Cleanup policies: what may be cleaned up, when, and within which limits. The default mode is a dry run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import ClassVar

from monitor.base.cron import next_run
from monitor.cleanup.model import Mode

HOUR, DAY = 3600.0, 86400.0
KUBELET_HIGH_RATIO = 0.85  # the kubelet's default imageGCHighThresholdPercent
KUBELET_IMAGEFS_RATIO = 0.15  # its default imagefs.available: below it, it removes unused images, then evicts
KUBELET_MARGIN_RATIO = 0.05  # distance that default marks keep from the kubelet's threshold
# Platform programs that use GPUs outside of pods. The kernel truncates names to 15 characters.
PLATFORM_PROCESSES = ("nvidia-cuda-mps*", "nvidia-persist*", "nvidia-smi", "nv-hostengine", "Xorg")
# Fields that do not change what a policy would touch.
_NOT_FINGERPRINTED = ("mode", "announce", "receivers")


@dataclass(frozen=True)
class Caps:
    """Limits of one run. A run stops when more than `error_share` of its items have failed."""

    items: int = 100
    bytes: int | None = None
    minutes: float = 30.0
    error_share: float = 0.2


@dataclass(frozen=True)
class When:
    """When a policy runs: on a cron schedule, or when the used share of a disk exceeds `high`, down to `low`.

    Marks that `yield_to_kubelet` are defaults: they are lowered where the kubelet would act first.
    """

    cron: str | None = None
    timezone: str = "UTC"
    high: float | None = None
    low: float | None = None
    yield_to_kubelet: bool = False
    own_timezone: bool = field(default=True, repr=False, compare=False)  # not that of the daemon

    def next_run(self, now: float) -> float | None:
        """When the schedule fires next; None if there is none."""
        return None if self.cron is None else next_run(self.cron, self.timezone, now)


# Namespaces of the platform: tenants cannot create pods there.
SYSTEM_NAMESPACES = (
    "kube-*", "*-system", "*-operator", "openshift-*", "nvidia-*", "gpuwarden", "monitoring", "logging",
    "ingress-nginx", "cert-manager", "rook-ceph",
)  # fmt: skip


@dataclass(frozen=True)
class Exempt:
    """Pods that a policy never touches, by shell patterns. A label is written `key` or `key=value`.

    DaemonSet and static pods are exempt in `system_namespaces` that have no owner: elsewhere, tenants may create them.
    """

    namespaces: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    system_namespaces: tuple[str, ...] = SYSTEM_NAMESPACES


@dataclass(frozen=True, kw_only=True)
class CleanupPolicy:
    """Common fields of all policies. Without `receivers`, notices follow the alert routes.

    A policy and its plan are announced `announce` seconds before the policy is first enforced.
    """

    kind: ClassVar[str] = ""
    name: str
    mode: Mode = Mode.DRY_RUN
    when: When = When()
    caps: Caps = Caps()
    announce: float = DAY
    receivers: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Identifies what the policy would touch: when it changes, the policy is announced again.

        It depends on the class and field names in the repr: renaming Caps, When or Exempt changes every fingerprint.
        """
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in _NOT_FINGERPRINTED}
        if not self.when.own_timezone:  # another time zone of the daemon does not change what a policy touches
            values["when"] = replace(self.when, timezone=When.timezone)
        return hashlib.sha256(f"{self.kind} {values!r}".encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class ImagePolicy(CleanupPolicy):
    """Images on the matching nodes. A pin is a pattern for a name, digest or id."""

    kind: ClassVar[str] = "images"
    when: When = When(high=0.80, low=0.70, yield_to_kubelet=True)
    nodes: tuple[str, ...] = ("*",)
    min_age: float = DAY
    protect_stopped: bool = True
    protect_local: bool = True
    pins: tuple[str, ...] = ()
    build_cache_unused: float = DAY


@dataclass(frozen=True, kw_only=True)
class DatasetPolicy(CleanupPolicy):
    """Directories or files below a root, scanned and moved by the agent of one node.

    A quota limits the bytes of one owner below the root. `without_atime` relies on the other timestamps where access
    times are not recorded. `whole_root_is_use`: a pod that mounts the root or a parent of it uses everything below.
    """

    kind: ClassVar[str] = "datasets"
    root: str
    node: str
    pattern: str = "*"
    files: bool = False
    min_age: float = 60 * DAY
    without_atime: bool = False
    notice: float = 7 * DAY
    trash_grace: float = 7 * DAY
    quota: int | None = None
    quotas: Mapping[str, int] = field(default_factory=dict)  # owner -> bytes, overrides `quota`
    pins: tuple[str, ...] = ()
    owners_kept: tuple[str, ...] = ()
    whole_root_is_use: bool = True
    entries_per_second: int | None = None

    def quota_of(self, owner: str | None) -> int | None:
        """Quota of an owner in bytes; None is unlimited."""
        return self.quotas.get(owner or "", self.quota)


@dataclass(frozen=True, kw_only=True)
class PodPolicy(CleanupPolicy):
    """Pods that finished long ago, and pods stuck in deletion. None disables either part."""

    kind: ClassVar[str] = "pods"
    finished_after: float | None = 7 * DAY
    keep_newest: int = 3  # per job
    stuck_after: float | None = 0.5 * HOUR
    exempt: Exempt = Exempt()


@dataclass(frozen=True, kw_only=True)
class GpuPolicy(CleanupPolicy):
    """GPUs held without being used: the age at which each kind of holder is released; None leaves that kind alone.

    The owner is notified, and the pod is evicted after `notice`. Disruption budgets are respected, without limit unless
    `delete_after` is set. Idle inference services are left alone unless `inference` is set.
    """

    kind: ClassVar[str] = "gpus"
    zombie_after: float | None = 600.0
    idle_after: float | None = None
    orphan_after: float | None = None
    inference: bool = False
    notice: float = HOUR
    delete_after: float | None = None
    processes: tuple[str, ...] = PLATFORM_PROCESSES
    exempt: Exempt = Exempt()


@dataclass(frozen=True, kw_only=True)
class RegistryPolicy(CleanupPolicy):
    """A Harbor registry: its retention rules and its garbage collection."""

    kind: ClassVar[str] = "registry"
    url: str
    username: str | None = None
    password_file: str | None = None
    ca_file: str | None = None
    verify_tls: bool = True
    projects: tuple[str, ...] = ("*",)
    retention: bool = True
    gc: bool = True


AnyPolicy = ImagePolicy | DatasetPolicy | PodPolicy | GpuPolicy | RegistryPolicy
