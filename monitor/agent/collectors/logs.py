"""How large the containers' logs are, and when they were last written.

A log is the file that the runtime names and, beside it, those that rotation has made of it: `x-json.log.1` and
`x-json.log.2.gz` for Docker, `0.log.20240501-101500` and the same with `.gz` for CRI. No line of them is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from monitor.agent.collectors import AbsentError
from monitor.facts import ContainerFact, LogFact


class LogsCollector:
    """Reads the logs of the containers that another collector has found."""

    name = "logs"

    def __init__(self, containers: Callable[[], tuple[ContainerFact, ...] | None], rootfs: str) -> None:
        self._containers = containers
        self._rootfs = rootfs

    def collect(self) -> tuple[LogFact, ...]:
        containers = self._containers()
        if containers is None:
            raise AbsentError("which containers this node has is not known")
        return tuple(
            _log_fact(one.id, os.path.join(self._rootfs, one.log_path.lstrip("/")))
            for one in containers
            if one.log_path is not None and not one.sandbox
        )


def _log_fact(container_id: str, path: str) -> LogFact:
    """Given a log's path, return the size of its files together and the time of the newest, or why that is unknown."""
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
    """Return the size and times of a file, or None if rotation has removed it since it was listed."""
    try:
        return entry.stat()
    except FileNotFoundError:
        return None
