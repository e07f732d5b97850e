"""What a reload of the configuration changes, and its result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from monitor.base.statefile import StateFile
from monitor.config.root import Config

RESULT_FILE = "reload.json"
LoadConfig = Callable[[], Config]


class ReloadResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the last reload, kept in the state directory for `gpuwarden reload`.

    `errors` are empty if the new configuration is in use; `restart` names changed settings that a reload cannot apply.
    """

    started_at: float = 0.0
    errors: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReloadStatus:
    """Whether the last reload succeeded, and when the configuration in use was loaded (Unix time)."""

    successful: bool
    success_at: float


def result_file(state: str) -> StateFile[ReloadResult]:
    """File with the result of the last reload."""
    return StateFile(state, RESULT_FILE, ReloadResult, "the result of the last reload")


def first_status() -> ReloadStatus:
    """Status right after the start: the configuration was loaded then."""
    return ReloadStatus(successful=True, success_at=time.time())


def with_fixed_settings(old: Config, new: Config, with_agent: bool) -> tuple[Config, tuple[str, ...]]:
    """New configuration with the old values of settings that need a restart, and the names of those that differ.

    The socket and the lock of the state directory stay open through a reload. `with_agent`: the agent of this process
    keeps its settings too.
    """
    fixed = {name: getattr(old.daemon, name) for name in ("listen", "state")}
    restart = tuple(f"daemon.{name}" for name, value in fixed.items() if getattr(new.daemon, name) != value)
    config = new.model_copy(update={"daemon": new.daemon.model_copy(update=fixed)})
    if with_agent and new.agent != old.agent:
        restart = (*restart, "agent")
        config = config.model_copy(update={"agent": old.agent})
    return config, restart
