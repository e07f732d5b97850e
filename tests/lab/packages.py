"""Debian packages: check and install."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable

from tests.lab.errors import LabError

APT_LIMIT = 900.0


def missing_packages(wanted: Iterable[str]) -> list[str]:
    """Packages that are not installed; LabError on a system without dpkg."""
    if shutil.which("dpkg-query") is None:
        raise LabError("this is no Debian system: give the programs by KUBE_BIN_DIR and PATH instead of building them")
    listing = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return not_installed(wanted, listing.stdout)


def not_installed(wanted: Iterable[str], listing: str) -> list[str]:
    """Wanted packages that the `name status` lines do not list as installed."""
    installed = {
        name for name, _, status in (line.partition(" ") for line in listing.splitlines()) if status == "installed"
    }
    return [name for name in wanted if name not in installed]


def install(wanted: Iterable[str]) -> None:
    """Install missing packages; LabError names them if that is not permitted or fails."""
    missing = missing_packages(wanted)
    if not missing:
        return
    command = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    if os.geteuid() != 0:
        raise LabError(f"missing Debian packages; as root: {' '.join(command)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["apt-get", "update", "--quiet"], command):
        done = subprocess.run(
            step,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=APT_LIMIT,
        )
        if done.returncode != 0:
            raise LabError(f"`{' '.join(step)}` failed:\n{(done.stdout + done.stderr)[-2000:]}")
