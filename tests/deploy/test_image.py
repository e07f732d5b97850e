"""`make image` takes the base image by digest, and explains how to find the digest."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DIGEST = f"sha256:{'0123456789abcdef' * 4}"


def make_image(folder: Path, **variables: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run `make image` with a stand-in for docker; return the result and the arguments that docker received."""
    docker, received = folder / "docker", folder / "received"
    docker.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {received}\n')
    docker.chmod(0o755)
    environ = {name: value for name, value in os.environ.items() if name not in ("BASE", "UNPINNED", "MAKEFLAGS")}
    environ["PATH"] = f"{folder}:{environ['PATH']}"
    given = [f"{name}={value}" for name, value in variables.items()]
    done = subprocess.run(
        ["make", "image", *given], cwd=REPOSITORY, env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    return done, received.read_text().splitlines() if received.exists() else []


def test_a_base_by_digest_is_built_on(tmp_path: Path) -> None:
    done, arguments = make_image(tmp_path, BASE=f"harbor.lab/python:3.13@{DIGEST}")
    assert done.returncode == 0, done.stderr
    assert f"BASE=harbor.lab/python:3.13@{DIGEST}" in arguments


@pytest.mark.parametrize(
    "base", ["", "python:3.13-slim-bookworm", "python@sha256:123", f"python@{DIGEST}0", f"python@{DIGEST.upper()}"]
)
def test_any_other_base_is_refused_with_the_way_to_the_digest(tmp_path: Path, base: str) -> None:
    done, arguments = make_image(tmp_path, **({"BASE": base} if base else {}))
    assert done.returncode != 0
    assert arguments == []
    for words in ("imagetools inspect", "docker pull", "UNPINNED=yes"):
        assert words in done.stderr


def test_a_base_of_this_machine_has_to_be_asked_for(tmp_path: Path) -> None:
    done, arguments = make_image(tmp_path, BASE="local/python:1", UNPINNED="yes")
    assert (done.returncode, "BASE=local/python:1" in arguments) == (0, True)
    assert make_image(tmp_path, UNPINNED="yes")[0].returncode != 0


def test_the_dockerfile_names_no_base_of_its_own() -> None:
    """No digest is invented, and no tag is a default."""
    text = (REPOSITORY / "deploy/Dockerfile").read_text()
    assert re.findall(r"^ARG BASE.*$", text, re.MULTILINE) == ["ARG BASE"]
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"${BASE}"}
