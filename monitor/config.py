"""Every setting of gpuwarden, its type and its default. `monitor.config_file` reads a YAML file into `Config`.

Whatever can be wrong with a value is said by a ValueError in plain words: the messages reach the person who wrote it.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from monitor.agent.settings import AgentSettings
from monitor.units import parse_duration, parse_ratio, parse_size, quoted

SHORTEST = 0.1  # seconds; anything that repeats or waits for less would do nothing else


def at_least_the_shortest(seconds: float) -> float:
    """Given seconds, return them. Raise ValueError if a thing could not be done so often or so quickly."""
    if seconds < SHORTEST:
        raise ValueError(f"{seconds:g}s is too short; the least is 100ms")
    return seconds


def parse_path(value: str) -> str:
    """Given an absolute path, return it. Raise ValueError if it depends on where the program was started."""
    if not value.startswith("/"):
        raise ValueError(f"{quoted(value)} is not an absolute path; it has to begin with /")
    return value


Duration = Annotated[float, BeforeValidator(parse_duration)]
Span = Annotated[Duration, AfterValidator(at_least_the_shortest)]
Size = Annotated[int, BeforeValidator(parse_size)]
Ratio = Annotated[float, BeforeValidator(parse_ratio)]
AbsolutePath = Annotated[str, AfterValidator(parse_path)]
LogLevel = Literal["debug", "info", "warning", "error"]


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, values do not change after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _nothing_written_is_the_default(cls, value: object) -> object:
        """`agent:` and `mounts:` with every line below them commented out mean the defaults, not null."""
        if value is None:
            return {}
        if isinstance(value, dict):
            return {key: given for key, given in value.items() if given is not None or key not in cls.model_fields}
        return value


class Listen(Section):
    """An address to serve on, written `127.0.0.1:9835` or `[::1]:9835`."""

    host: Annotated[str, Field(min_length=1)]
    port: int = Field(ge=0, le=65535)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(value: object) -> object:
    """Given `host:port`, return its parts. Raise ValueError that says what to write."""
    if isinstance(value, (dict, Listen)):
        return value
    host, colon, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdecimal() or int(port[:6]) > 65535 or (":" in host and not bracketed):
        raise ValueError(f"{quoted(value)} is not an address; write host:port, for example 127.0.0.1:9835")
    return {"host": host.strip("[]") or "0.0.0.0", "port": int(port)}  # noqa: S104  # ":9835" asks for exactly that


Address = Annotated[Listen, BeforeValidator(parse_listen)]


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


def parse_token(token: str) -> str:
    """Given a token, return it. Raise ValueError, without the token in it, if no HTTP header could carry it."""
    if not token:
        raise ValueError("the token is empty")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ValueError("a token has only letters, digits and ASCII signs, no spaces and no line breaks")
    return token


def read_token_file(path: str) -> str:
    """Given a path, return the token in that file. Raise ValueError, without the token in it, if there is none."""
    try:
        return parse_token(Path(path).read_text(encoding="utf-8").strip())
    except OSError as error:
        raise ValueError(f"cannot read {quoted(path)}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{quoted(path)} holds no text") from None  # the decoder's message quotes the bytes


def _check_token(token: SecretStr) -> SecretStr:
    parse_token(token.get_secret_value())
    return token


class SecretSection(Section):
    """A section with `token`, given inline or by file, never both."""

    token: Annotated[SecretStr, AfterValidator(_check_token)] | None = None
    token_file: str | None = None

    @field_validator("token_file")
    @classmethod
    def _one_source_that_can_be_read(cls, path: str | None, info: ValidationInfo) -> str | None:
        if path is not None and info.data.get("token") is not None:
            raise ValueError("give token or token_file, not both")
        if path is not None:
            read_token_file(path)
        return path

    def read_token(self) -> str | None:
        """Return the token, read from its file if that is where it is. Raise ValueError if the file is gone."""
        if self.token_file is not None:
            return read_token_file(self.token_file)
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
    probe_timeout: Span = 5.0
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
        """Return what the agent is told. Raise ValueError if its token file is gone."""
        agent = self.agent
        plain = agent.model_dump(exclude={"listen", "token", "token_file"})
        plain |= {
            "listen_host": agent.listen.host,
            "listen_port": agent.listen.port,
            "token": agent.read_token(),
            "log_level": self.log_level,
        }
        return msgspec.convert(plain, AgentSettings)
