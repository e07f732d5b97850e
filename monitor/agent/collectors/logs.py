"""Size and last write of the containers' logs.

A log is the file that the runtime names plus its rotated files: `x-json.log.1` and `x-json.log.2.gz` for Docker,
`0.log.20240501-101500` and the same with `.gz` for CRI. Their content is not read.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from monitor.agent.collectors import AbsentError
from monitor.facts import ContainerFact, LogFact


class LogsCollector:
    """Reads the logs of the containers that `containers` returns."""

    name = "logs"

    def __init__(self, containers: Callable[[], tuple[ContainerFact, ...] | None], rootfs: str) -> None:
        self._containers = containers
        self._rootfs = rootfs

    def collect(self) -> tuple[LogFact, ...]:
        containers = self._containers()
        if containers is None:
            raise AbsentError("the containers of this node are unknown")
        return tuple(
            _log_fact(container.id, os.path.join(self._rootfs, container.log_path.lstrip("/")))
            for container in containers
            if container.log_path is not None and not container.sandbox
        )


def _log_fact(container_id: str, path: str) -> LogFact:
    """Total size of the log's files and time of the newest, or why they are unknown."""
    directory, name = os.path.split(path)
    try:
        with os.scandir(directory) as entries:
            files = [file for entry in entries if _belongs(entry.name, name) and (file := _stat(entry)) is not None]
    except OSError as error:
        return LogFact(container_id=container_id, error=f"{error.filename or directory}: {error.strerror}")
    if not files:
        return LogFact(container_id=container_id, error=f"{path}: no such file")
    return LogFact(
        container_id=container_id,
        size_bytes=sum(file.st_size for file in files),
        written_at=max(file.st_mtime for file in files),
    )


def _belongs(file: str, log: str) -> bool:
    return file == log or file.startswith(f"{log}.")


def _stat(entry: os.DirEntry[str]) -> os.stat_result | None:
    """Size and times of a file; None if rotation has removed it since it was listed."""
    try:
        return entry.stat()
    except FileNotFoundError:
        return None
