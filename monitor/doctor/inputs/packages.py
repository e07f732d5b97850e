"""What is installed, and what this version asks for."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from importlib import metadata

from monitor.config.root import Config
from monitor.doctor.checks.packages import Package, PackageFacts
from monitor.doctor.context import Visit

DISTRIBUTION = "gpuwarden"
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*([^;]*)(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def packages(visit: Visit) -> PackageFacts:
    """Return the packages that are needed, by this configuration too, as they are installed."""
    python = platform.python_version()
    try:
        ours = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return PackageFacts(python, None, None)
    extras = set(_extras(visit.request.config))
    found = [package for line in ours.requires or () if (package := _package(line, extras)) is not None]
    wanted = ours.metadata.json.get("requires_python")
    return PackageFacts(python, wanted if isinstance(wanted, str) else None, tuple(found))


def _extras(config: Config | None) -> Iterator[str]:
    """Yield the extras that the configuration makes use of."""
    if config is None:
        return
    if any(receiver.real_kind == "apprise" for receiver in config.daemon.alerts.receivers):
        yield "apprise"
    if any(service.target().kind == "postgresql" for service in config.daemon.services):
        yield "postgresql"


def _package(line: str, extras: set[str]) -> Package | None:
    """Given a requirement, return it as it is installed; None if nobody here asks for it."""
    parts = _REQUIREMENT.match(line)
    if parts is None:
        return None
    name, wanted, marker = parts.groups()
    extra = _EXTRA.search(marker or "")
    if (marker and extra is None) or (extra is not None and extra.group(1) not in extras):
        return None
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        installed = None
    return Package(name, wanted.strip(), installed, extra.group(1) if extra else None)
