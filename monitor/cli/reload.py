"""`gpuwarden reload`: lets the daemon on this machine load its configuration again, and reports the result."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, NoReturn

import click

from monitor.cli.base import (
    CONFIG_EXIT_CODE,
    PROBLEM_EXIT_CODE,
    UNREACHABLE_EXIT_CODE,
    config_option,
    lang_option,
    language,
    load_config,
)

if TYPE_CHECKING:
    from monitor.base.lockfile import LockOwner
    from monitor.daemon.reload import ReloadResult

TIMEOUT_SECONDS = 90.0
POLL_SECONDS = 0.1


@click.command()
@lang_option
@config_option
def reload(lang: str | None, config_path: str | None) -> None:
    """Let the running daemon load its configuration again. Exit code 2 if it rejects the new one."""
    from monitor.i18n import say

    state, spoken = load_config(config_path).daemon.state, language(lang)
    owner = _running_daemon(state)
    began = time.time()
    try:
        os.kill(owner.pid, signal.SIGHUP)
    except OSError as error:
        _fail(f"{owner} cannot be signalled: {error.strerror}; run this as the user of the daemon")
    result = _wait_for_result(state, began)
    if result is None:
        _fail(f"{owner} has not reloaded within {TIMEOUT_SECONDS:g} s; read its log")
    if result.errors:
        click.echo("\n".join((*result.errors, say(spoken, "cli.reload-rejected", {}))), err=True)
        sys.exit(CONFIG_EXIT_CODE)
    click.echo(say(spoken, "cli.reloaded", {}))
    for setting in result.restart:
        click.echo(say(spoken, "cli.restart-needed", {"setting": setting}))


def _running_daemon(state: str) -> LockOwner:
    """Process of the daemon. Exits if there is none that can be signalled from here."""
    from monitor.base.lockfile import FILE, lock_owner

    try:
        owner = lock_owner(state)
    except OSError as error:
        _fail(f"{os.path.join(state, FILE)} cannot be read: {error.strerror}; run this as the user of the daemon")
    if owner is None:
        _fail(
            f"no daemon runs with the state directory {state}; start one, or name its configuration with --config",
            UNREACHABLE_EXIT_CODE,
        )
    if not owner.is_here:
        _fail(f"the daemon is {owner}, on another machine or in another container; run this there")
    return owner


def _wait_for_result(state: str, since: float) -> ReloadResult | None:
    """Result of a reload that began after `since`; None if there is none in time."""
    from monitor.daemon.reload import result_file

    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        result = result_file(state).load()
        if result.started_at >= since:
            return result
        time.sleep(POLL_SECONDS)
    return None


def _fail(message: str, code: int = PROBLEM_EXIT_CODE) -> NoReturn:
    click.echo(f"gpuwarden: {message}", err=True)
    sys.exit(code)
