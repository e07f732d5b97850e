"""Starts the agent: exec in place of the command that validated the configuration, or one read in this process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import NoReturn

import msgspec

from monitor.agent.settings import AgentSettings
from monitor.config.file import PREFIX
from monitor.facts import NodeSnapshot

# glibc's default of eight arenas per core costs several MiB in an agent with one thread per collector. Fixed thresholds
# return the memory of large texts and responses: by default the first large block that is freed raises them.
_MALLOC = {"MALLOC_ARENA_MAX": "2", "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


def become_agent(settings: AgentSettings) -> NoReturn:
    """Replace this process with an agent, which then has none of the configuration code in memory."""
    descriptor = settings_descriptor(settings)
    command = [sys.executable, *interpreter_options(), "-m", "monitor.agent", "--settings-fd", str(descriptor)]
    os.execve(sys.executable, command, agent_environment(os.environ))  # noqa: S606  # a fixed program, no shell


def agent_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Environment of the agent: without the configuration variables, which may contain secrets."""
    others = {name: value for name, value in environ.items() if not name.startswith(PREFIX)}
    return _MALLOC | others


def read_machine_once(settings: AgentSettings, limit: float) -> NodeSnapshot:
    """Snapshot after the first round of all collectors, or after `limit` seconds."""
    from monitor.agent.main import NodeReader  # here: only `snapshot` needs it in this process

    reader = NodeReader(settings)
    reader.start()
    try:
        wait_for_first_round(reader.snapshot, limit, time.sleep)
        return reader.snapshot()
    finally:
        reader.stop()


def wait_for_first_round(snapshot: Callable[[], NodeSnapshot], limit: float, pause: Callable[[float], object]) -> None:
    """Return when every collector has completed a run or hangs, after `limit` seconds, or when `pause` is true."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if all(fact.hung_since or fact.outcome != "starting" for fact in snapshot().collectors):
            return
        if pause(0.05):
            return


def settings_descriptor(settings: AgentSettings) -> int:
    """Inheritable file descriptor with the settings.

    They contain the token, which must not appear in `ps`, /proc/<pid>/environ or a file.
    """
    descriptor = os.memfd_create("gpuwarden-settings", flags=0)  # no close-on-exec: the agent inherits it
    content = msgspec.json.encode(settings)
    while content:
        content = content[os.write(descriptor, content) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def interpreter_options() -> list[str]:
    """Options with which a new interpreter has the same module search path as this one.

    `-m` searches the current directory first, which may be untrusted; it is excluded unless this process searches it
    too (`python -m monitor.cli` in a source tree).
    """
    if sys.flags.isolated:
        return ["-I"]
    try:
        current = os.getcwd()
    except FileNotFoundError:
        return ["-P"]
    return [] if current in sys.path or "" in sys.path else ["-P"]
