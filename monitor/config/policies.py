"""The settings of each kind of cleanup policy, and what they mean."""

from __future__ import annotations

import posixpath
import re
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from monitor.base.cron import cron_trigger
from monitor.base.units import format_duration, quoted
from monitor.cleanup import policy as of
from monitor.cleanup.model import Mode
from monitor.config.types import AbsolutePath, Duration, Ratio, Section, Size

# Neither one of these, nor one of the others and what is below it, is ever a root of datasets.
_TOO_WIDE = ("/", "/home", "/mnt", "/media", "/srv", "/var", "/opt")
_SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr",
    "/var/lib", "/var/log", "/var/run",
)  # fmt: skip


def parse_list(value: object) -> object:
    """`gpu-*` is short for `[gpu-*]`."""
    return (value,) if isinstance(value, str) else value


def parse_off(value: object) -> object:
    """`off` switches a limit off: nothing written means the default."""
    return None if value is False or value == "off" else value


def at_least(least: float) -> AfterValidator:
    """Return what refuses shorter durations."""

    def check(seconds: float) -> float:
        if seconds < least:
            raise ValueError(f"{format_duration(seconds)} is too short; the least is {format_duration(least)}")
        return seconds

    return AfterValidator(check)


def parse_name(name: str) -> str:
    """Given the name of a policy, return it. Raise ValueError if it could not stand in an address or a command."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) is None:
        raise ValueError(f"{quoted(name)} cannot be a policy's name; use letters, digits, '-', '_' and '.'")
    return name


def parse_root(path: str) -> str:
    """Given the root of datasets, return it. Raise ValueError if nobody would want to lose what is there."""
    plain = posixpath.normpath(path)
    if plain != path.rstrip("/") and path != "/":
        raise ValueError(f"{quoted(path)} is not a plain path; write {plain}")
    if plain in _TOO_WIDE:
        raise ValueError(f"{quoted(path)} is too wide to be a root of datasets; name the directory that holds them")
    if any(plain == each or plain.startswith(f"{each}/") for each in _SYSTEM):
        raise ValueError(f"{quoted(path)} belongs to the system and cannot be a root of datasets")
    return plain


def parse_pattern(pattern: str) -> str:
    """Given the pattern of units, return it. Raise ValueError if it leads anywhere but down from the root."""
    parts = pattern.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{quoted(pattern)} is not a pattern below the root; write for example */datasets/*")
    if "**" in parts:
        raise ValueError(f"{quoted(pattern)} has no fixed depth; write one * for each level")
    return pattern


Words = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(parse_list)]
Root = Annotated[AbsolutePath, AfterValidator(parse_root)]
Limit = Annotated[Duration | None, BeforeValidator(parse_off)]
Share = Annotated[Ratio | None, BeforeValidator(parse_off)]
Pattern = Annotated[str, AfterValidator(parse_pattern)]


class CapsConfig(Section):
    """How much one run may do."""

    items: Annotated[int, Field(ge=1, le=100_000)] = of.Caps.items
    bytes: Size | None = of.Caps.bytes
    minutes: Annotated[float, Field(gt=0, le=24 * 60)] = of.Caps.minutes
    error_share: Ratio = of.Caps.error_share


class ExemptConfig(Section):
    """Whom a policy never touches."""

    namespaces: Words = ()
    labels: Words = ()
    users: Words = ()


class PolicyConfig(Section):
    """What all policies have. When it runs is written beside the rest: `cron`, `timezone`, `high`, `low`."""

    made: ClassVar[type[of.CleanupPolicy]]
    marks: ClassVar[bool] = False  # whether there is a disk that it could go by

    kind: str
    name: Annotated[str, AfterValidator(parse_name)]
    mode: Literal["dry-run", "enforce"] = Mode.DRY_RUN.value
    cron: str | None = None
    timezone: str = of.When.timezone
    high: Share = None
    low: Share = None
    caps: CapsConfig = CapsConfig()
    announce: Duration = of.DAY
    receivers: Words = ()

    @model_validator(mode="after")
    def _runs_at_some_time(self) -> Self:
        if self.cron is not None:
            cron_trigger(self.cron, self.timezone)
        if (self.high is not None or self.low is not None) and not self.marks:
            raise ValueError(f"high and low say nothing about {self.kind}; give cron")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError("low has to be below high: it is where a run stops, high is where it begins")
        if self.high is not None and self.low is None:
            raise ValueError("high is given without low; say where a run stops, for example low: 70%")
        if self.cron is None and self.high is None:
            wanted = "cron, or high and low" if self.marks else "cron"
            raise ValueError(f'it would never run; give {wanted}, for example cron: "0 3 * * *"')
        return self

    def policy(self) -> of.CleanupPolicy:
        """Return the policy as planners take it."""
        ours = self.made.when.yield_to_kubelet and "high" not in self.model_fields_set
        when = of.When(self.cron, self.timezone, self.high, self.low, yield_to_kubelet=ours)
        plain: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        for name in ("kind", "cron", "timezone", "high", "low"):
            del plain[name]
        plain |= {"mode": Mode(self.mode), "when": when, "caps": of.Caps(**self.caps.model_dump())}
        if isinstance(exempt := plain.get("exempt"), ExemptConfig):
            plain["exempt"] = of.Exempt(**exempt.model_dump())
        return self.made(**plain)


class ImagesConfig(PolicyConfig):
    """Images on nodes."""

    made = of.ImagePolicy
    marks = True

    kind: Literal["images"]
    high: Share = of.ImagePolicy.when.high
    low: Share = of.ImagePolicy.when.low
    nodes: Words = of.ImagePolicy.nodes
    min_age: Duration = of.ImagePolicy.min_age
    protect_stopped: bool = of.ImagePolicy.protect_stopped
    protect_local: bool = of.ImagePolicy.protect_local
    pins: Words = ()
    build_cache_unused: Duration = of.ImagePolicy.build_cache_unused


class DatasetsConfig(PolicyConfig):
    """Directories or files below a root."""

    made = of.DatasetPolicy
    marks = True

    kind: Literal["datasets"]
    root: Root
    node: Annotated[str, Field(min_length=1)]
    pattern: Pattern = of.DatasetPolicy.pattern
    files: bool = of.DatasetPolicy.files
    min_age: Annotated[Duration, at_least(of.DAY)] = of.DatasetPolicy.min_age
    without_atime: bool = of.DatasetPolicy.without_atime
    notice: Duration = of.DatasetPolicy.notice
    trash_grace: Duration = of.DatasetPolicy.trash_grace
    quota: Size | None = None
    quotas: dict[str, Size] = Field(default_factory=dict)
    pins: Words = ()
    owners_kept: Words = ()
    whole_root_is_use: bool = of.DatasetPolicy.whole_root_is_use
    entries_per_second: Annotated[int, Field(ge=1)] | None = None


class PodsConfig(PolicyConfig):
    """Pods that ended, or should have."""

    made = of.PodPolicy

    kind: Literal["pods"]
    finished_after: Limit = of.PodPolicy.finished_after
    keep_newest: Annotated[int, Field(ge=0)] = of.PodPolicy.keep_newest
    stuck_after: Limit = of.PodPolicy.stuck_after
    exempt: ExemptConfig = ExemptConfig()


class GpusConfig(PolicyConfig):
    """Cards that are held for nothing."""

    made = of.GpuPolicy

    kind: Literal["gpus"]
    zombie_after: Limit = of.GpuPolicy.zombie_after
    idle_after: Annotated[Duration, at_least(600.0)] | None = None
    orphan_after: Annotated[Duration, at_least(60.0)] | None = None
    notice: Duration = of.GpuPolicy.notice
    delete_after: Limit = None
    processes: Words = of.GpuPolicy.processes
    exempt: ExemptConfig = ExemptConfig()


class RegistryConfig(PolicyConfig):
    """A Harbor."""

    made = of.RegistryPolicy

    kind: Literal["registry"]
    url: str
    username: str | None = None
    password_file: AbsolutePath | None = None
    ca_file: AbsolutePath | None = None
    verify_tls: bool = True
    projects: Words = of.RegistryPolicy.projects
    retention: bool = True
    gc: bool = True

    @model_validator(mode="after")
    def _an_address_and_something_to_do(self) -> Self:
        parts = urlsplit(self.url)
        if parts.password is not None:
            raise ValueError("an address holds no password; use password_file")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{quoted(self.url)} is not the address of a Harbor; write for example https://harbor.lab")
        if (self.username is None) is not (self.password_file is None):
            raise ValueError("username and password_file go together; give both")
        if not self.retention and not self.gc:
            raise ValueError("it would do nothing; leave retention or gc on")
        return self
