"""The command line: help of every command, and every option with type and default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from click.testing import CliRunner

from monitor.cli.main import main
from tests.golden.text import as_json

WIDTH = 120
PROGRAM = "gpuwarden"


def helps() -> str:
    """Output of `--help` of every command, 120 columns wide."""
    return "\n".join(f"$ {' '.join((PROGRAM, *path))} --help\n{_help(path)}" for path, _ in _commands(main))


def parameters() -> str:
    """Options and arguments of every command in order."""
    return as_json(
        {" ".join((PROGRAM, *path)): [_parameter(each) for each in found.params] for path, found in _commands(main)}
    )


def _commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _commands(command.commands[name], (*path, name))


def _help(path: tuple[str, ...]) -> str:
    given: dict[str, Any] = {"terminal_width": WIDTH, "max_content_width": WIDTH}
    result = CliRunner().invoke(main, [*path, "--help"], prog_name=PROGRAM, **given)
    assert result.exit_code == 0, result.output
    return result.stdout


def _parameter(parameter: click.Parameter) -> dict[str, Any]:
    told: dict[str, Any] = {
        "options": [*parameter.opts, *parameter.secondary_opts] if isinstance(parameter, click.Option) else [],
        "metavar": parameter.metavar,
        "type": repr(parameter.type),
        "required": parameter.required,
        "nargs": parameter.nargs,
        "multiple": parameter.multiple,
        "default": _plain(parameter.default),
        "variable": parameter.envvar,
    }
    if isinstance(parameter, click.Option):
        told |= {"flag": parameter.is_flag, "hidden": parameter.hidden}
    return told


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, (str, int, float, bool, list, tuple)) else "(none)"
