"""What the agent is told. No defaults here: every default is in `monitor.config.root`, which the agent does not import.

The command line validates the configuration file and hands the agent one of these, so that the agent's process never
pays for the validation library.
"""

from __future__ import annotations

import msgspec


class SettingsStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the structs below."""


class CollectorSchedule(SettingsStruct, frozen=True, kw_only=True):
    """When a collector runs, and after how many seconds a run counts as hung."""

    enabled: bool
    interval: float
    limit: float


class Paths(SettingsStruct, frozen=True, kw_only=True):
    """Where the node is found. In a container these point at the host's directories."""

    proc: str
    sys: str
    rootfs: str
    kubelet: str
    kmsg: str
    state: str
    docker_socket: str
    cri_sockets: tuple[str, ...]


class ExpectedMount(SettingsStruct, frozen=True, kw_only=True):
    """A mount that has to be there. `write_test` writes and removes a small file each time."""

    path: str
    writable: bool
    write_test: bool


class RegistryTarget(SettingsStruct, frozen=True, kw_only=True):
    """A registry that this node has to reach."""

    url: str
    ca_file: str | None
    verify_tls: bool


class TlsSettings(SettingsStruct, frozen=True, kw_only=True):
    """The server's certificate. With a client CA, whoever connects has to have a certificate of it."""

    cert_file: str
    key_file: str
    client_ca_file: str | None


class ActionSettings(SettingsStruct, frozen=True, kw_only=True):
    """Whether the agent does anything but read, and for whom."""

    enabled: bool
    token: str | None
    per_minute: int
    dataset_roots: tuple[str, ...]
    tls: TlsSettings | None

    def __repr__(self) -> str:
        """Show no token, wherever this ends up being printed."""
        return f"ActionSettings(enabled={self.enabled})"


class AgentSettings(SettingsStruct, frozen=True, kw_only=True):
    """Everything the agent needs to know."""

    node_name: str
    listen_host: str
    listen_port: int
    token: str | None
    log_level: str
    paths: Paths
    collectors: dict[str, CollectorSchedule]
    mounts: tuple[ExpectedMount, ...]
    registries: tuple[RegistryTarget, ...]
    probe_timeout: float
    device_resources: tuple[str, ...]
    actions: ActionSettings

    def __repr__(self) -> str:
        """Show no token, wherever this ends up being printed."""
        return f"AgentSettings(node_name={self.node_name!r}, listen={self.listen_host}:{self.listen_port})"
