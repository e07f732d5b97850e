"""The settings of the per-node agent, and their defaults."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from monitor.config_types import AbsolutePath, Address, Listen, SecretSection, Section, Span
from monitor.units import quoted


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
