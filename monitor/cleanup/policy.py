"""What may be cleaned up, when, and within which bounds. Everything that a planner needs to be told, and nothing else.

A policy that is not told otherwise only says what it would do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar

from monitor.cleanup.model import Mode

HOUR, DAY = 3600.0, 86400.0
KUBELET_HIGH_RATIO = 0.85  # from here on the kubelet removes images itself, unless it was told another figure
KUBELET_IMAGEFS_RATIO = 0.15  # it evicts pods, and removes all unused images before, when less than this is available
KUBELET_MARGIN_RATIO = 0.05  # how far ahead of the kubelet a mark is that nobody has written
# Programs of the platform that are on cards and belong to no pod. The kernel cuts names after 15 letters.
PLATFORM_PROCESSES = ("nvidia-cuda-mps*", "nvidia-persist*", "nvidia-smi", "nv-hostengine", "Xorg")
# What changes nothing about that which a policy would touch.
_NOT_FINGERPRINTED = ("mode", "announce", "receivers")


@dataclass(frozen=True)
class Caps:
    """How much one run may do. `error_share` is how many of the items may fail before the rest is left alone."""

    items: int = 100
    bytes: int | None = None
    minutes: float = 30.0
    error_share: float = 0.2


@dataclass(frozen=True)
class When:
    """When a policy runs: by crontab, or when a disk is fuller than `high`. It stops at `low`. Shares of the disk.

    Marks that `yield_to_kubelet` are not written by anybody, so they give way where the kubelet would act before.
    """

    cron: str | None = None
    timezone: str = "UTC"
    high: float | None = None
    low: float | None = None
    yield_to_kubelet: bool = False


@dataclass(frozen=True)
class Exempt:
    """Whom a policy never touches, by shell patterns. A label is written `key` or `key=value`."""

    namespaces: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CleanupPolicy:
    """What all policies have. `receivers` are told; none named means those that the routes of alerts lead to.

    `announce` is how long before its first enforcement a policy is announced, with its plan.
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
        """Return what changes when the policy would touch something else: then it has to be announced again."""
        told = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in _NOT_FINGERPRINTED}
        return hashlib.sha256(f"{self.kind} {told!r}".encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class ImagePolicy(CleanupPolicy):
    """Images of the nodes that match. A pin is a pattern of a name, a digest or an id."""

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
    """Directories or files below a root, seen and moved by the agent of one node.

    A quota is what one owner may have below the root. `without_atime` trusts the other times where reading leaves no
    trace. `whole_root_is_use`: a pod that mounts the root itself, or what is above it, uses all that is below.
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
    quotas: Mapping[str, int] = field(default_factory=dict)  # owner -> bytes, where it is another one
    pins: tuple[str, ...] = ()
    owners_kept: tuple[str, ...] = ()
    whole_root_is_use: bool = True
    entries_per_second: int | None = None

    def quota_of(self, owner: str | None) -> int | None:
        """Given an owner, return what he may have; None is without limit."""
        return self.quotas.get(owner or "", self.quota)


@dataclass(frozen=True, kw_only=True)
class PodPolicy(CleanupPolicy):
    """Pods that ended long ago, and pods that should have ended. None switches a half off."""

    kind: ClassVar[str] = "pods"
    finished_after: float | None = 7 * DAY
    keep_newest: int = 3  # of each job
    stuck_after: float | None = 0.5 * HOUR
    exempt: Exempt = Exempt()


@dataclass(frozen=True, kw_only=True)
class GpuPolicy(CleanupPolicy):
    """Cards that are held for nothing: from when on; None leaves that kind of holder alone.

    The owner is told, `notice` passes, the pod is evicted. A disruption budget is respected, for ever unless
    `delete_after` says for how long.
    """

    kind: ClassVar[str] = "gpus"
    zombie_after: float | None = 600.0
    idle_after: float | None = None
    orphan_after: float | None = None
    notice: float = HOUR
    delete_after: float | None = None
    processes: tuple[str, ...] = PLATFORM_PROCESSES
    exempt: Exempt = Exempt()


@dataclass(frozen=True, kw_only=True)
class RegistryPolicy(CleanupPolicy):
    """A Harbor: what its own retention rules and its garbage collection would remove."""

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
