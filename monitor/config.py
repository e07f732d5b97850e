"""Every setting of gpuwarden, its type and its default. `monitor.config_file` reads a YAML file into `Config`."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated, Literal, Self

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from monitor.agent.settings import AgentSettings
from monitor.units import parse_duration, parse_ratio, parse_size

Duration = Annotated[float, BeforeValidator(parse_duration)]
Size = Annotated[int, BeforeValidator(parse_size)]
Ratio = Annotated[float, BeforeValidator(parse_ratio)]
LogLevel = Literal["debug", "info", "warning", "error"]


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, values do not change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class Listen(BaseModel):
    """An address to serve on, written `127.0.0.1:9835` or `[::1]:9835`."""

    model_config = ConfigDict(frozen=True)
    host: str
    port: int = Field(ge=0, le=65535)


def parse_listen(value: object) -> object:
    """Given `host:port`, return its parts. Raise ValueError that says what to write."""
    if not isinstance(value, str):
        return value
    host, colon, port = value.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"{value!r} is not an address; write host:port, for example 127.0.0.1:9835")
    return {"host": host.strip("[]") or "0.0.0.0", "port": int(port)}  # noqa: S104  # ":9835" asks for exactly that


Address = Annotated[Listen, BeforeValidator(parse_listen)]


class CollectorConfig(Section):
    """One collector's schedule. A run that takes longer than `limit` is reported as hung."""

    enabled: bool = True
    interval: Annotated[Duration, Field(ge=0.1)]
    limit: Annotated[Duration, Field(gt=0)]


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
                merged[name] = {**field.get_default().model_dump(), **given}
        return merged


def default_state_dir() -> str:
    """Return where state is kept: the system's place for root, the user's own otherwise."""
    if os.geteuid() == 0:
        return "/var/lib/gpuwarden"
    return str(Path(os.environ.get("XDG_STATE_HOME", "~/.local/state")).expanduser() / "gpuwarden")


class PathsConfig(Section):
    """Where the node is found. In a container these point at the host's directories."""

    proc: str = "/proc"
    sys: str = "/sys"
    rootfs: str = "/"
    kubelet: str = "/var/lib/kubelet"
    kmsg: str = "/dev/kmsg"
    state: str = Field(default_factory=default_state_dir)
    docker_socket: str = "/var/run/docker.sock"
    cri_sockets: tuple[str, ...] = ("/run/containerd/containerd.sock", "/run/crio/crio.sock")


class ExpectedMountConfig(Section):
    """A mount that has to be there, such as the NAS with the datasets."""

    path: Annotated[str, Field(pattern="^/")]
    writable: bool = True
    write_test: bool = False


class RegistryConfig(Section):
    """A registry that every node has to reach. `http://` for one without TLS."""

    url: Annotated[str, Field(pattern=r"^https?://[^/\s]+/?$")]
    ca_file: str | None = None
    verify_tls: bool = True


def parse_registry(value: object) -> object:
    """`harbor.lab:8443` is short for `{url: https://harbor.lab:8443}`."""
    if isinstance(value, str):
        return {"url": value if "://" in value else f"https://{value}"}
    return value


def parse_mount(value: object) -> object:
    """`/mnt/share` is short for `{path: /mnt/share}`."""
    return {"path": value} if isinstance(value, str) else value


class SecretSection(Section):
    """A section with `token`, given inline or by file, never both."""

    token: SecretStr | None = None
    token_file: str | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.token is not None and self.token_file is not None:
            raise ValueError("give token or token_file, not both")
        return self

    def read_token(self) -> str | None:
        """Return the token, read from its file if that is where it is. Raise OSError if the file cannot be read."""
        if self.token_file is not None:
            return Path(self.token_file).read_text(encoding="utf-8").strip()
        return self.token.get_secret_value() if self.token is not None else None


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
    probe_timeout: Duration = 5.0
    device_resources: tuple[str, ...] = ("nvidia.com/",)


class DaemonConfig(Section):
    """The central daemon and its page."""

    listen: Address = Listen(host="127.0.0.1", port=9836)


class Config(Section):
    """The whole configuration file."""

    log_level: LogLevel = "info"
    agent: AgentConfig = AgentConfig()
    daemon: DaemonConfig = DaemonConfig()

    def agent_settings(self) -> AgentSettings:
        """Return what the agent is told. Raise OSError if its token file cannot be read."""
        agent = self.agent
        plain = agent.model_dump(exclude={"listen", "token", "token_file"})
        plain |= {
            "listen_host": agent.listen.host,
            "listen_port": agent.listen.port,
            "token": agent.read_token(),
            "log_level": self.log_level,
        }
        return msgspec.convert(plain, AgentSettings)
