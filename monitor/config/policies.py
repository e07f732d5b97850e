"""Settings of each kind of cleanup policy."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from monitor.base.cron import cron_trigger
from monitor.base.units import format_duration, quoted
from monitor.cleanup import policy as of
from monitor.cleanup.model import Mode
from monitor.config.derive import DerivedSection, build
from monitor.config.routes import Zone
from monitor.config.types import AbsolutePath, Duration, NonEmpty, Ratio, Size, parse_list, require

# Never dataset roots; system directories including everything below them.
_TOO_WIDE = ("/", "/home", "/mnt", "/media", "/srv", "/var", "/opt")
_SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr",
    "/var/lib", "/var/log", "/var/run",
)  # fmt: skip


def _parse_off(value: object) -> object:
    """`off` disables a limit, because null means the default."""
    return None if value is False or value == "off" else value


def _at_least(minimum: float) -> AfterValidator:
    def check(seconds: float) -> float:
        if seconds < minimum:
            raise ValueError(f"{format_duration(seconds)} is too short; the least is {format_duration(minimum)}")
        return seconds

    return AfterValidator(check)


def _parse_root(path: str) -> str:
    plain = posixpath.normpath(path)
    if plain != path.rstrip("/") and path != "/":
        raise ValueError(f"{quoted(path)} is not a plain path; write {plain}")
    if plain in _TOO_WIDE:
        raise ValueError(f"{quoted(path)} is too wide to be a root of datasets; name the directory that holds them")
    if any(plain == directory or plain.startswith(f"{directory}/") for directory in _SYSTEM):
        raise ValueError(f"{quoted(path)} belongs to the system and cannot be a root of datasets")
    return plain


def _check_pattern(pattern: str) -> str:
    parts = pattern.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{quoted(pattern)} is not a pattern below the root; write for example */datasets/*")
    if "**" in parts:
        raise ValueError(f"{quoted(pattern)} has no fixed depth; write one * for each level")
    return pattern


Patterns = Annotated[tuple[NonEmpty, ...], BeforeValidator(parse_list)]
Root = Annotated[AbsolutePath, AfterValidator(_parse_root)]
Limit = Annotated[Duration | None, BeforeValidator(_parse_off)]
PolicyName = Annotated[  # appears in URLs and commands
    str,
    require(
        re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}").fullmatch,
        "{} cannot be a policy's name; use letters, digits, '-', '_' and '.'",
    ),
]
UsedRatio = Annotated[Ratio | None, BeforeValidator(_parse_off)]
# Type of a policy's field -> type of its setting.
_TYPES = {
    float: Duration,
    float | None: Limit,
    int | None: Size | None,
    tuple[str, ...]: Patterns,
    Mapping[str, int]: dict[str, Size],
}


class CapsConfig(DerivedSection, settings=of.Caps, types=_TYPES):
    """Limits of one run."""

    items: Annotated[int, Field(ge=1, le=100_000)] = of.Caps.items
    minutes: Annotated[float, Field(gt=0, le=24 * 60)] = of.Caps.minutes
    error_share: Ratio = of.Caps.error_share


class ExemptConfig(DerivedSection, settings=of.Exempt, types=_TYPES):
    """Pods that a policy never touches."""


class PolicyConfig(DerivedSection):
    """Settings of all policies, including the schedule: `cron`, `timezone`, `high`, `low`."""

    settings_class: ClassVar[type[of.CleanupPolicy]]
    has_disk: ClassVar[bool] = False  # whether `high` and `low` apply

    kind: str
    name: PolicyName
    mode: Literal["dry-run", "enforce"] = Mode.DRY_RUN.value
    cron: str | None = None
    timezone: Zone | None = None
    high: UsedRatio = None
    low: UsedRatio = None
    caps: CapsConfig = CapsConfig()
    announce: Duration = of.DAY
    receivers: Patterns = ()

    def check(self) -> None:
        if self.cron is not None:
            cron_trigger(self.cron, self.timezone or of.When.timezone)
        if (self.high is not None or self.low is not None) and not self.has_disk:
            raise ValueError(f"high and low say nothing about {self.kind}; give cron")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError("low has to be below high: it is where a run stops, high is where it begins")
        if self.high is not None and self.low is None:
            raise ValueError("high is given without low; say where a run stops, for example low: 70%")
        if self.cron is None and self.high is None:
            wanted = "cron, or high and low" if self.has_disk else "cron"
            raise ValueError(f'it would never run; give {wanted}, for example cron: "0 3 * * *"')

    def policy(self, timezone: str) -> of.CleanupPolicy:
        """The policy for the planner; `timezone` is the default of its schedule."""
        yields = self.settings_class.when.yield_to_kubelet and "high" not in self.model_fields_set
        values: dict[str, Any] = {
            "mode": Mode(self.mode),
            "when": build(
                of.When,
                self,
                timezone=self.timezone or timezone,
                own_timezone=self.timezone is not None,
                yield_to_kubelet=yields,
            ),
            "caps": build(of.Caps, self.caps),
        }
        if isinstance(exempt := getattr(self, "exempt", None), ExemptConfig):
            values["exempt"] = build(of.Exempt, exempt)
        return build(self.settings_class, self, **values)


class ImagePolicyConfig(PolicyConfig, settings=of.ImagePolicy, types=_TYPES, omit=("when",)):
    """Images on nodes."""

    has_disk = True

    kind: Literal["images"]
    high: UsedRatio = of.ImagePolicy.when.high
    low: UsedRatio = of.ImagePolicy.when.low


class DatasetPolicyConfig(PolicyConfig, settings=of.DatasetPolicy, types=_TYPES, omit=("when",)):
    """Directories or files below a root."""

    has_disk = True

    kind: Literal["datasets"]
    root: Root
    node: NonEmpty
    pattern: Annotated[str, AfterValidator(_check_pattern)] = of.DatasetPolicy.pattern
    min_age: Annotated[Duration, _at_least(of.DAY)] = of.DatasetPolicy.min_age
    entries_per_second: Annotated[int, Field(ge=1)] | None = None


class PodPolicyConfig(PolicyConfig, settings=of.PodPolicy, types=_TYPES, omit=("when",)):
    """Finished pods, and pods stuck in deletion."""

    kind: Literal["pods"]
    keep_newest: Annotated[int, Field(ge=0)] = of.PodPolicy.keep_newest
    exempt: ExemptConfig = ExemptConfig()


class GpuPolicyConfig(PolicyConfig, settings=of.GpuPolicy, types=_TYPES, omit=("when",)):
    """GPUs held without being used."""

    kind: Literal["gpus"]
    idle_after: Annotated[Duration, _at_least(600.0)] | None = None
    orphan_after: Annotated[Duration, _at_least(60.0)] | None = None
    delete_after: Limit = None
    exempt: ExemptConfig = ExemptConfig()


class RegistryPolicyConfig(PolicyConfig, settings=of.RegistryPolicy, types=_TYPES, omit=("when",)):
    """A Harbor registry."""

    kind: Literal["registry"]
    url: str
    username: str | None = None
    password_file: AbsolutePath | None = None
    ca_file: AbsolutePath | None = None
    retention: bool = True
    gc: bool = True

    def check(self) -> None:
        super().check()
        parts = urlsplit(self.url)
        if parts.password is not None:
            raise ValueError("an address holds no password; use password_file")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{quoted(self.url)} is not the address of a Harbor; write for example https://harbor.lab")
        if (self.username is None) is not (self.password_file is None):
            raise ValueError("username and password_file go together; give both")
        if not self.retention and not self.gc:
            raise ValueError("it would do nothing; leave retention or gc on")
