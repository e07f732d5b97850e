"""The image of deploy/Dockerfile for the lab, built offline; base, wheels and result are cached."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.lab.engine import Engine
from tests.lab.layout import cache_dir
from tests.support import need
from tests.support.engines import make_docker

REPOSITORY = Path(__file__).resolve().parents[2]
LOCK = REPOSITORY / "requirements" / "runtime.txt"
DOCKERFILE = REPOSITORY / "deploy" / "Dockerfile"
BASE, IMAGE = "local/python:1", "local/gpuwarden:e2e"
# A Debian with Python replaces the official image, which cannot be pulled here.
SUITE, PYTHON = "bookworm", "3.11"
PACKAGES = "python3,python3-venv,ca-certificates"
CLUTTER = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale", "var/log")
# Inputs of the image. The .dockerignore is included, so excluded files are absent here too.
PARTS = ("pyproject.toml", "README.md", "LICENSE", "monitor", "requirements/runtime.txt", ".dockerignore")
LIMIT = 600


def load_image(engine: Engine) -> str:
    """Load the image of this source tree into an engine and return its name."""
    sources = sorted(_files())
    archive = _cache() / f"image-{_digest((*sources, DOCKERFILE))}.tar"
    if not archive.exists():
        with _builder() as client:
            _build(client, sources)
            _save(client, archive)
    engine.load(archive)
    return IMAGE


def _build(client: Any, sources: Iterable[Path]) -> None:
    client.import_image(str(_base()), repository="local/python", tag="1")
    with tempfile.TemporaryDirectory() as directory:
        context = Path(directory)
        for source in sources:
            target = context / source.relative_to(REPOSITORY)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        shutil.copytree(_wheels(), context / "wheels")
        shutil.copyfile(DOCKERFILE, context / "Dockerfile")
        said = []
        for line in client.build(
            path=str(context), tag=IMAGE, buildargs={"BASE": BASE}, network_mode="none", rm=True, decode=True
        ):
            said.append(str(line.get("stream") or line.get("error") or ""))
            assert "error" not in line, "".join(said)[-3000:]


def _save(client: Any, archive: Path) -> None:
    """Cache the image for the next run and drop those of older trees."""
    for old in archive.parent.glob("image-*.tar"):
        old.unlink()
    with _finished(archive) as fresh, fresh.open("wb") as file:
        for chunk in client.get_image(IMAGE):
            file.write(chunk)


def _base() -> Path:
    """Root filesystem of a small Debian with Python, as an archive."""
    archive = _cache() / f"base-{SUITE}-{hashlib.sha256(PACKAGES.encode()).hexdigest()[:8]}.tar"
    if not archive.exists():
        need(shutil.which("debootstrap") is not None, "debootstrap, to make the base of the image")
        with tempfile.TemporaryDirectory(dir=_cache()) as directory:
            root = Path(directory) / "root"
            _run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root))
            for clutter in CLUTTER:
                shutil.rmtree(root / clutter)
                (root / clutter).mkdir()
            with _finished(archive) as fresh, tarfile.open(fresh, "w") as tar:
                tar.add(root, ".")
    return archive


def _wheels() -> Path:
    """Directory with all locked wheels, verified by hash."""
    directory = _cache() / f"wheels-{_digest((LOCK,))}"
    if not directory.exists():
        with _finished(directory) as fresh:
            wanted = ("--only-binary", ":all:", "--python-version", PYTHON, "--require-hashes", "-r", str(LOCK))
            _run(sys.executable, "-m", "pip", "-q", "download", *wanted, "-d", str(fresh))
    return directory


def _files() -> Iterator[Path]:
    for part in PARTS:
        path = REPOSITORY / part
        found = path.rglob("*") if path.is_dir() else iter((path,))
        yield from (each for each in found if each.is_file() and "__pycache__" not in each.parts)


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.relative_to(REPOSITORY)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _cache() -> Path:
    directory = cache_dir() / "image"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextmanager
def _finished(target: Path) -> Iterator[Path]:
    """A temporary path that is renamed to the target on success."""
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    yield fresh
    fresh.replace(target)


@contextmanager
def _builder() -> Iterator[Any]:
    """Client of a Docker engine that lives only for this build."""
    with tempfile.TemporaryDirectory(dir=_cache(), ignore_cleanup_errors=True) as directory:
        engine = make_docker(Path(directory))
        try:
            engine.start()
            engine.client.api.timeout = LIMIT
            yield engine.client.api
        finally:
            engine.stop()
            engine.clean_up()


def _run(*line: str) -> None:
    done = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, f"{line[0]}: {(done.stdout + done.stderr)[-2000:]}"
