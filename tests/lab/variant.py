"""What differs between the labs: versions, their build, the container engine and the kubelet."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tests.lab.engine import Engine
from tests.lab.errors import LabError
from tests.lab.layout import Layout
from tests.lab.packages import install
from tests.lab.ports import Ports
from tests.lab.programs import (
    KUBERNETES,
    SYSTEM,
    Programs,
    executable,
    kubernetes_program,
    missing_words,
    system_program,
)

Command = list[str]
# The kubelet and container engines look for these.
NETWORK_PACKAGES = ("iproute2", "iptables")


class Variant(ABC):
    """Versions that work together in a lab."""

    # As the variable LAB names it.
    name: str
    # System programs beyond those of every variant, with their packages, and programs built beside Kubernetes.
    system: Mapping[str, str] = MappingProxyType({})
    built: Sequence[str] = ()
    # API of CronJobs.
    cron_jobs = "batch/v1"
    # Components that run only when a test starts them.
    optional: Sequence[str] = ()

    @abstractmethod
    def bin_dir(self) -> Path:
        """Directory of the built programs."""

    @abstractmethod
    def build(self, say: Callable[[str], None]) -> None:
        """Build all programs that are missing; LabError if a step fails."""

    @abstractmethod
    def engine(self, layout: Layout) -> Engine:
        """The container engine of a lab."""

    @abstractmethod
    def write_files(self, layout: Layout, ports: Ports, programs: Programs) -> None:
        """Write the configuration of container engine and kubelet."""

    @abstractmethod
    def commands(self, layout: Layout, ports: Ports, programs: Programs, gpu_ids: Sequence[str]) -> dict[str, Command]:
        """Command lines of container engine, kubelet and components that only this variant has."""

    def readiness(self, layout: Layout) -> dict[str, Callable[[], bool]]:
        """Readiness checks of components that only this variant has."""
        return {}

    def options(self, component: str) -> Command:
        """Options of a component of every variant that only this one needs."""
        return []

    def install(self) -> None:
        """Install the missing packages that a running lab needs; LabError if that fails."""
        install(sorted({*(SYSTEM | dict(self.system)).values(), *NETWORK_PACKAGES}))

    def find_programs(self, environment: Mapping[str, str] = os.environ) -> Programs:
        """Every program the lab runs; LabError lists all missing ones and how to install them."""
        system = SYSTEM | dict(self.system)
        found = self.built_programs(environment) | {name: system_program(name) for name in system}
        missing = missing_words(found, system)
        if missing:
            advice = f"`LAB={self.name} python -m tests.lab build` (as root) installs and builds what is missing"
            raise LabError("; ".join([*missing, advice]))
        return Programs({name: path for name, path in found.items() if path is not None})

    def built_programs(self, environment: Mapping[str, str] = os.environ) -> dict[str, Path | None]:
        """The built programs, None for each that is missing."""
        built = self.bin_dir()
        kubernetes = {name: kubernetes_program(name, built, environment) for name in KUBERNETES}
        return kubernetes | {name: executable(built / name) for name in self.built}
