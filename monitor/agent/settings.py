"""Settings of the agent, without defaults: those are in `monitor.config.agent`, which the agent does not import.

The command line validates the configuration file and passes the agent these structs, so that the agent's process does
not load the validation library.
"""

from __future__ import annotations

import msgspec


class SettingsStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of the settings."""


class CollectorSchedule(SettingsStruct, frozen=True, kw_only=True):
    """Seconds between two runs of a collector, and seconds after which a run counts as hung."""

    enabled: bool
    interval: float
    limit: float


class Paths(SettingsStruct, frozen=True, kw_only=True):
    """Paths to the node. In a container they point at the host's directories."""

    proc: str
    sys: str
    rootfs: str
    kubelet: str
    kmsg: str
    state: str
    docker_socket: str
    cri_sockets: tuple[str, ...]


class ExpectedMount(SettingsStruct, frozen=True, kw_only=True):
    """A mount that must exist. `write_test` writes and removes a small file in each run."""

    path: str
    writable: bool
    write_test: bool


class RegistryTarget(SettingsStruct, frozen=True, kw_only=True):
    """A registry that must be reachable from this node."""

    url: str
    ca_file: str | None
    verify_tls: bool


class TlsSettings(SettingsStruct, frozen=True, kw_only=True):
    """Certificate of the server. With `client_ca_file`, clients must present a certificate of that CA."""

    cert_file: str
    key_file: str
    client_ca_file: str | None


class ActionLimits(SettingsStruct, frozen=True, kw_only=True):
    """Limits that no request can change: seconds in the trash and after SIGTERM, and amounts in any hour."""

    min_trash: float
    min_grace: float
    images_per_hour: int
    processes_per_hour: int
    datasets_per_hour: int
    purges_per_hour: int
    purge_bytes_per_hour: int


class ActionSettings(SettingsStruct, frozen=True, kw_only=True):
    """Whether the agent accepts actions, and whose: `public_keys` is the text of the daemon's public keys."""

    enabled: bool
    public_keys: str | None
    per_minute: int
    dataset_roots: tuple[str, ...]
    tls: TlsSettings | None
    limits: ActionLimits


class AgentSettings(SettingsStruct, frozen=True, kw_only=True):
    """All settings of the agent."""

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
    log_lines: bool
    actions: ActionSettings

    def __repr__(self) -> str:
        """Omit the token."""
        return f"AgentSettings(node_name={self.node_name!r}, listen={self.listen_host}:{self.listen_port})"
