"""How processes begin: the agent takes the place of the command that checked its configuration."""

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


def become_agent(settings: AgentSettings) -> NoReturn:
    """Replace this process by an agent, which has then never loaded what reading the configuration takes."""
    descriptor = settings_descriptor(settings)
    command = [sys.executable, *interpreter_options(), "-m", "monitor.agent", "--settings-fd", str(descriptor)]
    os.execve(sys.executable, command, agent_environment(os.environ))  # noqa: S606  # a fixed program, no shell


def agent_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Given the environment, return the agent's: without our own variables, which are used up and may be secret."""
    kept = {name: value for name, value in environ.items() if not name.startswith(PREFIX)}
    # The default of eight arenas a core costs an agent with a thread per collector several MiB.
    return {"MALLOC_ARENA_MAX": "2"} | kept


def read_machine_once(settings: AgentSettings, limit: float) -> NodeSnapshot:
    """Given settings, return what the collectors read in their first round, or have read after `limit` seconds."""
    from monitor.agent.main import NodeReader  # here: only `snapshot` needs it in this process

    reader = NodeReader(settings)
    reader.start()
    try:
        wait_for_first_round(reader.snapshot, limit, time.sleep)
        return reader.snapshot()
    finally:
        reader.stop()


def wait_for_first_round(snapshot: Callable[[], NodeSnapshot], limit: float, pause: Callable[[float], object]) -> None:
    """Return when every collector has ended a run or hangs, or after `limit` seconds, or when `pause` is true."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if all(fact.hung_since or fact.outcome != "starting" for fact in snapshot().collectors):
            return
        if pause(0.05):
            return


def settings_descriptor(settings: AgentSettings) -> int:
    """Given settings, return an inheritable file descriptor from which they can be read.

    They hold the token, which must be seen neither in `ps` nor in /proc/<pid>/environ nor in a file.
    """
    descriptor = os.memfd_create("gpuwarden-settings", flags=0)  # no close-on-exec: it is there to be inherited
    content = msgspec.json.encode(settings)
    while content:
        content = content[os.write(descriptor, content) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def interpreter_options() -> list[str]:
    """Return the options under which the interpreter finds the same packages as this one does, and no others.

    `-m` would search the current directory first, which for a daemon may be anybody's; that stays out unless this
    process searches it as well (`python -m monitor.cli` in a source tree).
    """
    if sys.flags.isolated:
        return ["-I"]
    try:
        current = os.getcwd()
    except FileNotFoundError:
        return ["-P"]
    return [] if current in sys.path or "" in sys.path else ["-P"]
