"""Builds the programs of platforms from Go modules, and keeps the manifests of their sources beside them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.lab.building import is_complete
from tests.lab.errors import LabError
from tests.lab.go_module import BUILD_LIMIT, Module, build_environment, digest, wanted_go
from tests.lab.layout import cache_dir
from tests.lab.lock import locked
from tests.lab.modern.go import find_go
from tests.lab.platforms.catalogue import PLATFORMS
from tests.lab.platforms.platform import Paths, Platform

MANIFESTS = "manifests"
DOWNLOAD_LIMIT_SECONDS = 600.0


def platforms_cache() -> Path:
    """Directory of the programs of all platforms."""
    return cache_dir() / "platforms"


def programs_dir(platform: Platform, cache: Path) -> Path:
    """Directory of the programs of this version of a platform, and of its manifests."""
    return cache / f"{platform.name}-{digest([platform.module])}"


def is_built(platform: Platform, cache: Path) -> bool:
    """Whether the programs of this version are there."""
    return is_complete(platform.module.programs, programs_dir(platform, cache))


def build_all(cache: Path, say: Callable[[str], None], platforms: Iterable[Platform] = PLATFORMS) -> None:
    """Build what is missing; LabError if a step fails."""
    for platform in platforms:
        if not is_built(platform, cache):
            with locked(cache / "build.lock", limit=BUILD_LIMIT):
                if not is_built(platform, cache):  # another process built it meanwhile
                    _build(platform, cache, say)


def _build(platform: Platform, cache: Path, say: Callable[[str], None]) -> None:
    module, began = platform.module, time.monotonic()
    go = find_go(wanted_go([module]), cache.parent / "modern")
    work = cache / "build"
    (work / "bin").mkdir(parents=True, exist_ok=True)
    say(f"compiling {module.name} {module.version()}; output in {work / f'{module.name}.log'}")
    for program in module.programs:
        module.compile(go, program, work)
    copy_files(source_of(module, go), platform.files, work / "bin" / MANIFESTS)
    for old in cache.glob(f"{platform.name}-*"):
        shutil.rmtree(old)
    (work / "bin").rename(programs_dir(platform, cache))
    shutil.rmtree(work)
    say(f"{module.name} in {time.monotonic() - began:.0f} s")


def source_of(module: Module, go: Path) -> Path:
    """Directory of the source of a module, downloaded if necessary; LabError if that fails."""
    done = subprocess.run(
        [str(go), "mod", "download", "-json", module.module],
        cwd=module.directory,
        env=build_environment(go, os.environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=DOWNLOAD_LIMIT_SECONDS,
    )
    if done.returncode != 0:
        raise LabError(f"the source of {module.module} cannot be downloaded:\n{(done.stdout + done.stderr)[-2000:]}")
    return Path(json.loads(done.stdout)["Dir"])


def copy_files(source: Path, patterns: Paths, target: Path) -> None:
    """Copy files of a source under the same relative paths; LabError if a pattern matches none."""
    for pattern in patterns:
        found = sorted(source.glob(pattern))
        if not found:
            raise LabError(f"{source} has no {pattern}")
        for path in found:
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())  # files of the module cache are read-only
