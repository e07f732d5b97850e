"""Paths of the Docker engine below a state directory."""

from __future__ import annotations

from pathlib import Path

from tests.lab.layout import Layout


def docker_socket(layout: Layout) -> Path:
    return layout.root / "docker.sock"


def docker_root(layout: Layout) -> Path:
    """Directory of images and containers."""
    return layout.root / "docker"


def docker_exec(layout: Layout) -> Path:
    return layout.root / "docker-exec"


def docker_config(layout: Layout) -> Path:
    return layout.root / "daemon.json"


def runtime(layout: Layout) -> Path:
    return layout.root / "runc-without-negative-oom-score"
