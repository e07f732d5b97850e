"""Settings of the per-node agent."""

from __future__ import annotations

import os
import socket
from itertools import permutations
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from monitor.agent.settings import ActionLimits, TlsSettings
from monitor.base.signing import RequestVerifier
from monitor.base.units import quoted
from monitor.config.derive import DerivedSection
from monitor.config.types import (
    AbsolutePath,
    Address,
    Duration,
    Listen,
    NonEmpty,
    SecretSection,
    Section,
    Size,
    Span,
    read_text_file,
    short_for,
)


class CollectorConfig(Section):
    """Schedule of a collector. A run that takes longer than `limit` is reported as hung."""

    enabled: bool = True
    interval: Span
    limit: Span


def _collector(interval: str, limit: str) -> CollectorConfig:
    return CollectorConfig.model_validate({"interval": interval, "limit": limit})


class CollectorsConfig(Section):
    """The agent's collectors. Cheap collectors run often, expensive ones rarely."""

    host: CollectorConfig = _collector("15s", "5s")
    gpu: CollectorConfig = _collector("5s", "10s")
    gpu_processes: CollectorConfig = _collector("5s", "10s")
    xid: CollectorConfig = _collector("5s", "10s")
    kernel: CollectorConfig = _collector("5s", "10s")
    pod_devices: CollectorConfig = _collector("15s", "10s")
    containers: CollectorConfig = _collector("5s", "15s")
    container_usage: CollectorConfig = _collector("15s", "10s")
    shm: CollectorConfig = _collector("15s", "10s")
    logs: CollectorConfig = _collector("30s", "15s")
    log_tails: CollectorConfig = _collector("2s", "10s")
    disk: CollectorConfig = _collector("15s", "15s")
    disk_io: CollectorConfig = _collector("15s", "5s")
    mounts: CollectorConfig = _collector("30s", "30s")
    images: CollectorConfig = _collector("60s", "30s")
    runtime_usage: CollectorConfig = _collector("10m", "5m")
    kubelet: CollectorConfig = _collector("5m", "15s")
    probes: CollectorConfig = _collector("30s", "60s")

    @model_validator(mode="before")
    @classmethod
    def _merge_defaults(cls, value: object) -> object:
        """`gpu: {interval: 1s}` changes the interval and keeps the default limit."""
        if not isinstance(value, dict):
            return value
        merged = dict(value)
        for name, field in cls.model_fields.items():
            if isinstance(section := value.get(name), dict):
                defaults = field.get_default().model_dump()
                merged[name] = section | {key: item for key, item in defaults.items() if section.get(key) is None}
        return merged


def default_state_dir() -> str:
    """Directory of the state: the system's for root, otherwise the user's."""
    if os.geteuid() == 0:
        return "/var/lib/gpuwarden"
    return str(Path(os.environ.get("XDG_STATE_HOME", "~/.local/state")).expanduser() / "gpuwarden")


class PathsConfig(Section):
    """Paths to the node. In a container they point at the host's directories."""

    proc: AbsolutePath = "/proc"
    sys: AbsolutePath = "/sys"
    rootfs: AbsolutePath = "/"
    kubelet: AbsolutePath = "/var/lib/kubelet"
    kmsg: AbsolutePath = "/dev/kmsg"
    state: AbsolutePath = Field(default_factory=default_state_dir)
    docker_socket: AbsolutePath = "/var/run/docker.sock"
    cri_sockets: tuple[AbsolutePath, ...] = ("/run/containerd/containerd.sock", "/run/crio/crio.sock")


class ExpectedMountConfig(Section):
    """A mount that must exist, such as the NAS with the datasets."""

    path: AbsolutePath
    writable: bool = True
    write_test: bool = False


def parse_url(value: str) -> str:
    """Require `https://host:port` without credentials."""
    scheme, separator, host = value.partition("://")
    if "@" in host:  # URLs appear on pages and in metrics; the error text must not contain the password
        raise ValueError("a registry's address holds no user name or password; write https://host:port")
    plain = host.removesuffix("/")
    if scheme not in ("http", "https") or not separator or not plain or any(c in "/?#" or c.isspace() for c in plain):
        raise ValueError(
            f"{quoted(value)} is not a registry's address; write host:port, or http://host:port without TLS"
        )
    return value


class RegistryTargetConfig(Section):
    """A registry that must be reachable from every node."""

    url: Annotated[str, AfterValidator(parse_url)]
    ca_file: AbsolutePath | None = None
    verify_tls: bool = True


def _parse_registry(value: object) -> object:
    """`harbor.lab:8443` is short for `{url: https://harbor.lab:8443}`."""
    if isinstance(value, str):
        return {"url": value if "://" in value else f"https://{value}"}
    return value


# Never dataset roots.
SYSTEM_DIRECTORIES = frozenset(
    {
        "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin",
        "/sys", "/usr", "/var", "/var/lib", "/var/log", "/var/run",
    }
)  # fmt: skip
SYSTEM_TREES = ("/bin/", "/boot/", "/dev/", "/etc/", "/lib/", "/lib64/", "/proc/", "/run/", "/sbin/", "/sys/", "/usr/")


def _check_root(value: str) -> str:
    if os.path.normpath(value) != value:
        raise ValueError(f"{quoted(value)}: write it without . and .. and without / at its end")
    if value in SYSTEM_DIRECTORIES or value.startswith(SYSTEM_TREES):
        raise ValueError(f"{quoted(value)} belongs to the system; name the directory with the datasets, as /mnt/share")
    return value


def _check_separate(roots: tuple[str, ...]) -> tuple[str, ...]:
    """No root may contain another, because each has its own trash."""
    for outer, inner in permutations(roots, 2):
        if inner.startswith(f"{outer}/"):
            raise ValueError(f"{quoted(inner)} is inside {quoted(outer)}; name one of them")
    return roots


def _check_public_keys(path: str) -> str:
    """Text of a file of public keys. Raise ValueError if it is unreadable or holds anything else."""
    text = read_text_file(path)
    try:
        RequestVerifier("", text)
    except ValueError as error:
        raise ValueError(f"{quoted(path)} {error}") from None
    return text


DatasetRoot = Annotated[AbsolutePath, AfterValidator(_check_root)]
PerHour = Annotated[int, Field(ge=1)]


class AgentTlsConfig(DerivedSection, settings=TlsSettings, types={str: AbsolutePath}):
    """Certificate of the agent. With `client_ca_file`, clients must present a certificate of that CA."""

    client_ca_file: AbsolutePath | None = None


class ActionLimitsConfig(DerivedSection, settings=ActionLimits):
    """Limits that the agent enforces itself; no request can lower or exceed them."""

    min_trash: Duration = 24 * 3600.0
    min_grace: Duration = 10.0
    images_per_hour: PerHour = 500
    processes_per_hour: PerHour = 100
    datasets_per_hour: PerHour = 200
    purges_per_hour: PerHour = 200
    purge_bytes_per_hour: Size = 10 << 40


_KEYS_INSTEAD = (
    "agents no longer accept a shared token; create keys with gpuwarden keys, and write "
    "public_key_file: /etc/gpuwarden/action-public-key"
)


class ActionsConfig(Section):
    """Actions of the agent: removing images, terminating orphan processes, cleaning datasets. Disabled by default."""

    removed_settings: ClassVar = {"token": _KEYS_INSTEAD, "token_file": _KEYS_INSTEAD}

    enabled: bool = False
    public_key_file: AbsolutePath | None = None
    per_minute: Annotated[int, Field(ge=1, le=6000)] = 60
    dataset_roots: Annotated[tuple[DatasetRoot, ...], AfterValidator(_check_separate)] = ()
    tls: AgentTlsConfig | None = None
    limits: ActionLimitsConfig = ActionLimitsConfig()

    @field_validator("public_key_file")
    @classmethod
    def _check_keys(cls, path: str | None) -> str | None:
        if path is not None:
            _check_public_keys(path)
        return path

    def check(self) -> None:
        if self.enabled and self.public_key_file is None:
            raise ValueError("is enabled without a key; write public_key_file: /etc/gpuwarden/action-public-key")

    def settings(self) -> dict[str, object]:
        """Settings of the agent. Raise ValueError if the file of public keys is unreadable."""
        keys = _check_public_keys(self.public_key_file) if self.enabled and self.public_key_file else None
        return self.model_dump(exclude={"public_key_file"}) | {"public_keys": keys}


class AgentConfig(SecretSection):
    """The per-node agent."""

    listen: Address = Listen(host="127.0.0.1", port=9835)
    node_name: NonEmpty = Field(default_factory=lambda: os.environ.get("NODE_NAME") or socket.gethostname())
    paths: PathsConfig = PathsConfig()
    collectors: CollectorsConfig = CollectorsConfig()
    mounts: tuple[Annotated[ExpectedMountConfig, short_for("path")], ...] = ()
    registries: tuple[Annotated[RegistryTargetConfig, BeforeValidator(_parse_registry)], ...] = ()
    probe_timeout: Span = 5.0
    device_resources: tuple[str, ...] = ("nvidia.com/",)
    log_lines: bool = True
    actions: ActionsConfig = ActionsConfig()
