"""Image garbage collection and eviction thresholds of this node's kubelet, as configured, without defaults."""

from __future__ import annotations

import os

from monitor.agent.cgroup import ContainerOwner, read_owner
from monitor.agent.collectors import AbsentError
from monitor.agent.kubelet.thresholds import (
    SIGNALS,
    KubeletArguments,
    KubeletThresholds,
    parse_arguments,
    parse_config,
    parse_percent,
    parse_threshold,
)
from monitor.agent.mountinfo import host_path, resolve_links
from monitor.agent.settings import Paths
from monitor.facts import EvictionFact, KubeletFact

_NAME = b"kubelet\n"
_FILE = "config.yaml"
_DROP_IN = ".conf"
_MAX_FILE_BYTES = 1 << 20  # such a file has a few hundred lines
_MAX_DROP_INS = 64


class KubeletCollector:
    """Reads the kubelet's configuration file, its drop-in files and its command line; the latter take precedence."""

    name = "kubelet"

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def collect(self) -> KubeletFact:
        """Thresholds of the kubelet. Raise AbsentError without one, OSError or ValueError if its file is unreadable."""
        arguments = self._arguments()
        text = self._config(arguments or KubeletArguments())
        if arguments is None and text is None:
            raise AbsentError(
                f"no kubelet on this node: neither a process nor {os.path.join(self._paths.kubelet, _FILE)}"
            )
        flags = arguments or KubeletArguments()
        configured = parse_config(text) if text is not None else KubeletThresholds()
        for drop_in in self._drop_ins(flags.config_dir):
            configured = parse_config(_text(drop_in)).merged_into(configured)
        return fact(flags.thresholds.with_defaults(configured))

    def _drop_ins(self, config_dir: str | None) -> list[bytes]:
        """Drop-in files of a directory and those below it, in the order in which the kubelet merges them."""
        if config_dir is None or not os.path.isabs(config_dir):
            return []
        top = os.fsdecode(self._on_node(config_dir))
        paths: list[str] = []
        for count, (directory, _, names) in enumerate(os.walk(top, onerror=_raise), 1):
            below = os.path.relpath(directory, top)
            paths += [os.path.join(below, name) for name in names if name.endswith(_DROP_IN)]
            if max(count, len(paths)) > _MAX_DROP_INS:
                raise ValueError(f"{config_dir} has more than {_MAX_DROP_INS} drop-in files or directories")
        paths.sort(key=lambda path: path.split(os.sep))
        return [self._on_node(os.path.normpath(os.path.join(config_dir, path))) for path in paths]

    def _arguments(self) -> KubeletArguments | None:
        """Arguments of the running kubelet; None if it does not run.

        Any user or container can name a program so. The node's kubelet runs as root and outside of containers.
        """
        pids = sorted(int(name) for name in os.listdir(self._paths.proc) if name.isdecimal())
        for pid in pids:
            try:
                if self._is_kubelet(pid) and (line := self._read(pid, "cmdline")):
                    return parse_arguments([os.fsdecode(part) for part in line.split(b"\0")])
            except OSError:
                continue  # it has ended
        return None

    def _is_kubelet(self, pid: int) -> bool:
        if self._read(pid, "comm") != _NAME:
            return False
        owner = os.stat(f"{self._paths.proc}/{pid}").st_uid
        return owner in (0, os.geteuid()) and read_owner(self._paths.proc, pid) == ContainerOwner(None, None)

    def _read(self, pid: int, name: str) -> bytes:
        with open(f"{self._paths.proc}/{pid}/{name}", "rb") as file:
            return file.read(_MAX_FILE_BYTES)

    def _config(self, arguments: KubeletArguments) -> str | None:
        """Content of the configuration file; None if none is named and the usual one does not exist."""
        if arguments.config is not None and os.path.isabs(arguments.config):
            return _text(self._on_node(arguments.config))
        try:
            if arguments.root_dir is not None:
                return _text(self._on_node(os.path.join(arguments.root_dir, _FILE)))
            return _text(os.path.join(self._paths.kubelet, _FILE))
        except FileNotFoundError:
            return None

    def _on_node(self, path: str) -> bytes:
        """Where the agent finds a path of the node."""
        return host_path(self._paths.rootfs, resolve_links(self._paths.rootfs, os.fsencode(path)))


def _raise(error: OSError) -> None:
    raise error


def fact(thresholds: KubeletThresholds) -> KubeletFact:
    """Parsed thresholds. A value that cannot be parsed is None."""
    return KubeletFact(
        image_gc_high_ratio=parse_percent(thresholds.high),
        image_gc_low_ratio=parse_percent(thresholds.low),
        eviction_hard=None if thresholds.eviction_hard is None else _evictions(thresholds.eviction_hard),
    )


def _evictions(thresholds: dict[str, str]) -> tuple[EvictionFact, ...]:
    parsed = ((signal, *parse_threshold(thresholds[signal])) for signal in SIGNALS if signal in thresholds)
    return tuple(
        EvictionFact(signal=signal, available_ratio=ratio, available_bytes=size)
        for signal, ratio, size in parsed
        if ratio is not None or size
    )


def _text(path: str | bytes) -> str:
    with open(path, "rb") as file:
        return file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
