"""From when on this node's kubelet removes images itself, and evicts pods: as it was told, not as it would be usual."""

from __future__ import annotations

import os

from monitor.agent.cgroup import Owner, read_owner
from monitor.agent.collectors import AbsentError
from monitor.agent.kubelet.thresholds import (
    SIGNALS,
    Arguments,
    Told,
    parse_arguments,
    parse_config,
    parse_percent,
    parse_threshold,
)
from monitor.agent.mountinfo import below, resolve
from monitor.agent.settings import Paths
from monitor.facts import EvictionFact, KubeletFact

_NAME = b"kubelet\n"
_FILE = "config.yaml"
_MOST = 1 << 20  # bytes; such a file has some hundred lines


class KubeletCollector:
    """Reads the kubelet's configuration file, and its command line, which wins."""

    name = "kubelet"

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def collect(self) -> KubeletFact:
        """Return what the kubelet was told. Raise AbsentError if there is none, OSError or ValueError if it is odd."""
        arguments = self._arguments()
        text = self._config(arguments or Arguments())
        if arguments is None and text is None:
            raise AbsentError(f"no kubelet here: neither a process nor {os.path.join(self._paths.kubelet, _FILE)}")
        flags = arguments.told if arguments is not None else Told()
        return fact(flags.over(parse_config(text) if text is not None else Told()))

    def _arguments(self) -> Arguments | None:
        """Return what the kubelet was started with; None if no process is one.

        Whoever has a container or an account here may call a program so. The node's own is root's, and in neither.
        """
        pids = sorted(int(name) for name in os.listdir(self._paths.proc) if name.isdecimal())
        for pid in pids:
            try:
                if self._is_kubelet(pid) and (line := self._read(pid, "cmdline")):
                    return parse_arguments([os.fsdecode(part) for part in line.split(b"\0")])
            except OSError:
                continue  # it is gone by now
        return None

    def _is_kubelet(self, pid: int) -> bool:
        if self._read(pid, "comm") != _NAME:
            return False
        owner = os.stat(f"{self._paths.proc}/{pid}").st_uid
        return owner in (0, os.geteuid()) and read_owner(self._paths.proc, pid) == Owner(None, None)

    def _read(self, pid: int, name: str) -> bytes:
        with open(f"{self._paths.proc}/{pid}/{name}", "rb") as file:
            return file.read(_MOST)

    def _config(self, arguments: Arguments) -> str | None:
        """Return the content of the file; None if none was named and none is where it usually is."""
        if arguments.config is not None and os.path.isabs(arguments.config):
            return _text(self._on_node(arguments.config))
        try:
            if arguments.root_dir is not None:
                return _text(self._on_node(os.path.join(arguments.root_dir, _FILE)))
            return _text(os.path.join(self._paths.kubelet, _FILE))
        except FileNotFoundError:
            return None

    def _on_node(self, path: str) -> bytes:
        """Given a path as the node's own processes know it, return where the agent finds it."""
        return below(self._paths.rootfs, resolve(self._paths.rootfs, os.fsencode(path)))


def fact(told: Told) -> KubeletFact:
    """Given what is written, return what it means. What cannot be read is not known."""
    return KubeletFact(
        image_gc_high_ratio=parse_percent(told.high),
        image_gc_low_ratio=parse_percent(told.low),
        eviction_hard=None if told.eviction_hard is None else _evictions(told.eviction_hard),
    )


def _evictions(thresholds: dict[str, str]) -> tuple[EvictionFact, ...]:
    found = ((signal, *parse_threshold(thresholds[signal])) for signal in SIGNALS if signal in thresholds)
    return tuple(
        EvictionFact(signal=signal, available_ratio=ratio, available_bytes=size)
        for signal, ratio, size in found
        if ratio is not None or size
    )


def _text(path: str | bytes) -> str:
    with open(path, "rb") as file:
        return file.read(_MOST).decode("utf-8", "replace")
