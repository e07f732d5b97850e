"""The settings of the per-node agent, and their defaults."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from monitor.base.units import quoted
from monitor.config.types import AbsolutePath, Address, Listen, SecretSection, Section, Span


class CollectorConfig(Section):
    """One collector's schedule. A run that takes longer than `limit` is reported as hung."""

    enabled: bool = True
    interval: Span
    limit: Span


def _collector(interval: str, limit: str) -> CollectorConfig:
    return CollectorConfig.model_validate({"interval": interval, "limit": limit})


class CollectorsConfig(Section):
    """The agent's collectors. What is cheap and decides quickly runs often, what is dear runs rarely."""

    host: CollectorConfig = _collector("15s", "5s")
    gpu: CollectorConfig = _collector("5s", "10s")
    gpu_processes: CollectorConfig = _collector("5s", "10s")
    xid: CollectorConfig = _collector("5s", "10s")
    pod_devices: CollectorConfig = _collector("15s", "10s")
    containers: CollectorConfig = _collector("15s", "15s")
    container_usage: CollectorConfig = _collector("15s", "10s")
    shm: CollectorConfig = _collector("15s", "10s")
    logs: CollectorConfig = _collector("30s", "15s")
    disk: CollectorConfig = _collector("15s", "15s")
    disk_io: CollectorConfig = _collector("15s", "5s")
    mounts: CollectorConfig = _collector("30s", "30s")
    images: CollectorConfig = _collector("60s", "30s")
    runtime_usage: CollectorConfig = _collector("10m", "5m")
    kubelet: CollectorConfig = _collector("5m", "15s")
    probes: CollectorConfig = _collector("30s", "60s")

    @model_validator(mode="before")
    @classmethod
    def _keep_the_defaults_not_given(cls, value: object) -> object:
        """`gpu: {interval: 1s}` changes the interval and keeps the default limit."""
        if not isinstance(value, dict):
            return value
        merged = dict(value)
        for name, field in cls.model_fields.items():
            if isinstance(given := value.get(name), dict):
                defaults = field.get_default().model_dump()
                merged[name] = given | {key: default for key, default in defaults.items() if given.get(key) is None}
        return merged


def default_state_dir() -> str:
    """Return where state is kept: the system's place for root, the user's own otherwise."""
    if os.geteuid() == 0:
        return "/var/lib/gpuwarden"
    return str(Path(os.environ.get("XDG_STATE_HOME", "~/.local/state")).expanduser() / "gpuwarden")


class PathsConfig(Section):
    """Where the node is found. In a container these point at the host's directories."""

    proc: AbsolutePath = "/proc"
    sys: AbsolutePath = "/sys"
    rootfs: AbsolutePath = "/"
    kubelet: AbsolutePath = "/var/lib/kubelet"
    kmsg: AbsolutePath = "/dev/kmsg"
    state: AbsolutePath = Field(default_factory=default_state_dir)
    docker_socket: AbsolutePath = "/var/run/docker.sock"
    cri_sockets: tuple[AbsolutePath, ...] = ("/run/containerd/containerd.sock", "/run/crio/crio.sock")


class ExpectedMountConfig(Section):
    """A mount that has to be there, such as the NAS with the datasets."""

    path: AbsolutePath
    writable: bool = True
    write_test: bool = False


def parse_url(value: str) -> str:
    """Given `https://host:port`, return it. Raise ValueError if it is something else, or carries a password."""
    scheme, separator, host = value.partition("://")
    if "@" in host:  # the address is shown on pages and in metrics: the value is not even quoted here
        raise ValueError("a registry's address holds no user name or password; write https://host:port")
    plain = host.removesuffix("/")
    if scheme not in ("http", "https") or not separator or not plain or any(c in "/?#" or c.isspace() for c in plain):
        raise ValueError(
            f"{quoted(value)} is not a registry's address; write host:port, or http://host:port without TLS"
        )
    return value


class RegistryConfig(Section):
    """A registry that every node has to reach. `http://` for one without TLS."""

    url: Annotated[str, AfterValidator(parse_url)]
    ca_file: AbsolutePath | None = None
    verify_tls: bool = True


def parse_registry(value: object) -> object:
    """`harbor.lab:8443` is short for `{url: https://harbor.lab:8443}`."""
    if isinstance(value, str):
        return {"url": value if "://" in value else f"https://{value}"}
    return value


def parse_mount(value: object) -> object:
    """`/mnt/share` is short for `{path: /mnt/share}`."""
    return {"path": value} if isinstance(value, str) else value


# What no cleanup has any business in.
SYSTEM_DIRECTORIES = frozenset(
    {
        "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin",
        "/sys", "/usr", "/var", "/var/lib", "/var/log", "/var/run",
    }
)  # fmt: skip
SYSTEM_TREES = ("/bin/", "/boot/", "/dev/", "/etc/", "/lib/", "/lib64/", "/proc/", "/run/", "/sbin/", "/sys/", "/usr/")


def parse_dataset_root(value: str) -> str:
    """Given the directory that holds datasets, return it. Raise ValueError if anything but datasets may be in it."""
    if os.path.normpath(value) != value:
        raise ValueError(f"{quoted(value)}: write it without . and .. and without / at its end")
    if value in SYSTEM_DIRECTORIES or value.startswith(SYSTEM_TREES):
        raise ValueError(f"{quoted(value)} belongs to the system; name the directory with the datasets, as /mnt/share")
    return value


def apart(roots: tuple[str, ...]) -> tuple[str, ...]:
    """Given dataset roots, return them. Raise ValueError if one is inside another: each has a trash of its own."""
    for one in roots:
        for other in roots:
            if other.startswith(f"{one}/"):
                raise ValueError(f"{quoted(other)} is inside {quoted(one)}; name one of them")
    return roots


DatasetRoot = Annotated[AbsolutePath, AfterValidator(parse_dataset_root)]


class TlsConfig(Section):
    """The certificate that the agent shows, for all of its pages. `client_ca_file` asks for one of whoever connects."""

    cert_file: AbsolutePath
    key_file: AbsolutePath
    client_ca_file: AbsolutePath | None = None


class ActionsConfig(SecretSection):
    """What the agent may be asked to do: remove images, end orphan processes, clean datasets. Off unless enabled."""

    enabled: bool = False
    per_minute: Annotated[int, Field(ge=1, le=6000)] = 60
    dataset_roots: Annotated[tuple[DatasetRoot, ...], AfterValidator(apart)] = ()
    tls: TlsConfig | None = None

    @model_validator(mode="after")
    def _only_with_a_token(self) -> Self:
        if self.enabled and self.token is None and self.token_file is None:
            raise ValueError("is enabled without a token; write token_file: /etc/gpuwarden/action-token")
        return self

    def settings(self) -> dict[str, object]:
        """Return what the agent is told. Raise ValueError if the token's file is gone."""
        plain = self.model_dump(exclude={"token", "token_file"})
        return plain | {"token": self.read_token() if self.enabled else None}


class AgentConfig(SecretSection):
    """The per-node agent."""

    listen: Address = Listen(host="127.0.0.1", port=9835)
    node_name: Annotated[str, Field(min_length=1)] = Field(
        default_factory=lambda: os.environ.get("NODE_NAME") or socket.gethostname()
    )
    paths: PathsConfig = PathsConfig()
    collectors: CollectorsConfig = CollectorsConfig()
    mounts: tuple[Annotated[ExpectedMountConfig, BeforeValidator(parse_mount)], ...] = ()
    registries: tuple[Annotated[RegistryConfig, BeforeValidator(parse_registry)], ...] = ()
    probe_timeout: Span = 5.0
    device_resources: tuple[str, ...] = ("nvidia.com/",)
    actions: ActionsConfig = ActionsConfig()

    @field_validator("actions")
    @classmethod
    def _a_token_of_its_own(cls, actions: ActionsConfig, info: ValidationInfo) -> ActionsConfig:
        """Whoever may read metrics may not thereby delete."""
        reading = cls.model_construct(token=info.data.get("token"), token_file=info.data.get("token_file"))
        if actions.enabled and actions.read_token() == reading.read_token():
            raise ValueError("has the token of the agent's pages, which all who read metrics have; write another one")
        return actions
