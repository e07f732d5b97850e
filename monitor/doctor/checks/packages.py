"""Installed Python packages against the requirements of this version."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from monitor.config.root import Config
from monitor.doctor.context import DoctorContext
from monitor.doctor.model import Check, Verdicts, not_checked, ok, problem

DISTRIBUTION = "gpuwarden"
_BOUND = re.compile(r"(>=|<=|==|!=|<|>|~=)\s*([0-9][0-9A-Za-z.+!-]*)")
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*([^;]*)(?:;(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


@dataclass(frozen=True)
class Package:
    """A required package. `wanted` is a range such as `>=3.11,<4`; `extra` is the extra that requires it, if any."""

    name: str
    wanted: str
    installed: str | None
    extra: str | None = None


@dataclass(frozen=True)
class PackageFacts:
    """Python and the packages; None if gpuwarden is not installed as a package, which leaves requirements unknown."""

    python: str
    python_wanted: str | None
    packages: tuple[Package, ...] | None


def judge(facts: PackageFacts) -> Verdicts:
    """Packages that are missing or have the wrong version."""
    if facts.packages is None:
        return (not_checked("packages.unknown"),)
    verdicts = []
    if facts.python_wanted and not satisfies(facts.python, facts.python_wanted):
        verdicts.append(problem("packages.python", version=facts.python, wanted=facts.python_wanted))
    for package in facts.packages:
        name, installed = package.name, package.installed
        if installed is None and package.extra is not None:
            verdicts.append(problem("packages.extra", name=name, extra=package.extra))
        elif installed is None:
            verdicts.append(problem("packages.missing", name=name))
        elif not satisfies(installed, package.wanted):
            verdicts.append(problem("packages.version", name=name, version=installed, wanted=package.wanted))
    return tuple(verdicts) or (ok("packages.ok", version=facts.python, count=len(facts.packages)),)


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version is in a range such as `>=3.11,<4`. Bounds that cannot be parsed are ignored."""
    return all(_compare(_numbers(version), sign, _numbers(bound)) for sign, bound in _BOUND.findall(wanted))


def _compare(version: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    length = max(len(version), len(bound))
    left, right = (numbers + (0,) * (length - len(numbers)) for numbers in (version, bound))
    return {
        ">=": left >= right,
        "<=": left <= right,
        ">": left > right,
        "<": left < right,
        "==": left == right,
        "!=": left != right,
        "~=": left >= right and left[: len(bound) - 1] == right[: len(bound) - 1],
    }[sign]


def _numbers(version: str) -> tuple[int, ...]:
    """Epoch and leading numbers of a version: 3.11.0rc1 counts as 0, 3, 11, 0."""
    leading = re.match(r"(?:([0-9]+)!)?([0-9.]*)", version)
    epoch, numbers = leading.groups(default="0") if leading else ("0", "")
    return (int(epoch), *(int(part) for part in numbers.split(".") if part))


def read(context: DoctorContext) -> PackageFacts:
    """Packages required by this version and this configuration, and their installed versions."""
    python = platform.python_version()
    try:
        distribution = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return PackageFacts(python, None, None)
    extras = set(_extras(context.request.config))
    required = (_package(line, extras) for line in distribution.requires or ())
    wanted = distribution.metadata.json.get("requires_python")
    return PackageFacts(python, wanted if isinstance(wanted, str) else None, tuple(filter(None, required)))


def _extras(config: Config | None) -> Iterator[str]:
    if config is None:
        return
    if any(receiver.effective_kind == "apprise" for receiver in config.daemon.alerts.receivers):
        yield "apprise"
    if any(service.target().kind == "postgresql" for service in config.daemon.services):
        yield "postgresql"


def _package(line: str, extras: set[str]) -> Package | None:
    """The package of a requirement line; None if the requirement does not apply."""
    match = _REQUIREMENT.match(line)
    if match is None:
        return None
    name, wanted, marker = match.groups()
    extra = _EXTRA.search(marker or "")
    if (marker and extra is None) or (extra is not None and extra.group(1) not in extras):
        return None
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        installed = None
    return Package(name, wanted.strip(), installed, extra.group(1) if extra else None)


CHECKS = (Check("packages.versions", read, judge),)
