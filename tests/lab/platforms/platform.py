"""What a platform consists of, and where it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.go_module import Module
from tests.lab.layout import LOOPBACK

Command = list[str]
HERE = Path(__file__).parent


@dataclass(frozen=True)
class Place:
    """A platform's directory in that of a running lab, its programs, and its ports by name."""

    directory: Path
    programs: Path
    kubeconfig: Path
    ports: Mapping[str, int]

    def address(self, port: str) -> str:
        return f"{LOOPBACK}:{self.ports[port]}"

    @property
    def config(self) -> Path:
        return self.directory / "config.yaml"

    @property
    def certificates(self) -> Path:
        """Directory of the certificate of webhooks, `tls.crt` and `tls.key`."""
        return self.directory / "certificates"


Paths = tuple[str, ...]


@dataclass(frozen=True)
class Platform:
    """A platform: its programs, the manifests in its source, and the command lines of its processes.

    `health` is the path of a health check of each process that has one; its port has the name of the process.
    `webhooks` are the names of the webhooks that the lab registers, `pod_label` the label of pods that they see.
    """

    module: Module
    commands: Callable[[Place], dict[str, Command]]
    # Patterns of files in the source: definitions of resources, webhooks, and a configuration.
    definitions: Paths = ()
    hooks: Paths = ()
    sample: str | None = None
    health: Mapping[str, str] = field(default_factory=dict)
    webhooks: Paths = ()
    webhook_configuration: str | None = None
    pod_label: str | None = None
    config: Callable[[Place], str] | None = None
    namespace: str | None = None
    # Whether its webhooks use a certificate of the lab.
    certificate: bool = False
    # Fixed directory where it expects a certificate, and the secret in which it writes that itself, if it does.
    mounted: Path | None = None
    secret: str | None = None
    # Names of definitions whose versions its webhook converts.
    converted: Paths = ()
    # Names of the definitions that the platform creates itself.
    defines: Paths = ()

    @property
    def name(self) -> str:
        return self.module.name

    @property
    def files(self) -> Paths:
        """Patterns of all files that the lab needs of the source."""
        return (*self.definitions, *self.hooks, *((self.sample,) if self.sample else ()))

    @property
    def ports(self) -> Paths:
        """Names of its ports."""
        return (*self.health, "webhooks")
