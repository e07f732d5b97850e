"""Programs built from Go modules, once per set of versions.

A directory with go.mod and go.sum names versions and checksums. Where modules come from is up to the Go environment of
the machine.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.building import run_logged
from tests.lab.errors import LabError
from tests.lab.modern.go import Version, parse_version

BUILD_LIMIT = 5400.0


@dataclass(frozen=True)
class Module:
    """A directory with a go.mod and go.sum, and the programs built from it."""

    directory: Path
    module: str
    # Programs, and the package of each, below the module.
    programs: Mapping[str, str]
    # Link-time variables with parts of the version; without them the programs report a development version.
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.directory.name

    @property
    def requirements(self) -> str:
        return (self.directory / "go.mod").read_text()

    def version(self) -> str:
        """The required version, such as v1.2.3; LabError if go.mod names none."""
        found = re.search(rf"^(?:require)?\s+{re.escape(self.module)} (v[\d.]+)", self.requirements, re.MULTILINE)
        if found is None:
            raise LabError(f"{self.directory / 'go.mod'} does not require {self.module}")
        return found.group(1)

    def compile(self, go: Path, program: str, work: Path) -> None:
        """Build one program into `work/bin`, reusing compiled packages."""
        parts = self.version().removeprefix("v").split(".")
        settings = [f"-X {name}={value.format(*parts)}" for name, value in self.variables.items()]
        package = f"{self.module}/{self.programs[program]}".removesuffix("/")
        line = [str(go), "build", "-trimpath", f"-ldflags={' '.join(['-s -w', *settings])}"]
        run_logged(
            [*line, f"-o={work / 'bin' / program}", package],
            work / f"{self.name}.log",
            BUILD_LIMIT,
            cwd=self.directory,
            environment=build_environment(go, os.environ),
        )


def digest(modules: Iterable[Module]) -> str:
    """Identifies these versions."""
    digest = hashlib.sha256()
    for module in modules:
        for name in ("go.mod", "go.sum"):
            digest.update((module.directory / name).read_bytes())
    return digest.hexdigest()[:12]


def wanted_go(modules: Iterable[Module]) -> Version:
    """The oldest Go that every module accepts."""
    versions = [parse_version(line) for module in modules for line in module.requirements.splitlines()[:5]]
    return max(version for version in versions if version is not None)


def build_environment(go: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """Environment of the build: the machine's own, with static programs and no download of another toolchain."""
    path = f"{go.parent}{os.pathsep}{inherited.get('PATH', os.defpath)}"
    return {**inherited, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "PATH": path}
