"""The page of commands, from the click command tree."""

from __future__ import annotations

from collections.abc import Iterator

import click

from docs.generate.tables import code, intro, table
from monitor.cli.main import main

NOTHING = "\u2013"


def page() -> str:
    """The page."""
    return intro("commands", "en") + "".join(
        _section(path, command) for path, command in commands(main, ("gpuwarden",))
    )


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every leaf command with its path, in alphabetical order."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in sorted(command.commands):
        yield from commands(command.commands[name], (*path, name))


def _section(path: tuple[str, ...], command: click.Command) -> str:
    arguments = [param for param in command.params if isinstance(param, click.Argument)]
    options = [param for param in command.params if isinstance(param, click.Option) and not param.hidden]
    usage = " ".join((*path, *(_argument(argument) for argument in arguments), *(["[OPTIONS]"] if options else [])))
    text = f"\n## {' '.join(path)}\n\n{code(usage)}\n\n{_sentence(command)}\n"
    return text + (
        "\n" + table(("option", "default", "meaning"), [_option(option) for option in options]) if options else ""
    )


def _argument(argument: click.Argument) -> str:
    name = argument.human_readable_name
    return name if argument.required else f"[{name}]"


def _option(option: click.Option) -> tuple[str, str, str]:
    value = "" if option.is_flag else f" {option.metavar or option.type.name.upper()}"
    choices = f" ({', '.join(map(str, option.type.choices))})" if isinstance(option.type, click.Choice) else ""
    required = "required" if option.required else NOTHING
    default = code(str(option.default)) if option.show_default and option.default is not None else required
    names = ", ".join(sorted(option.opts, key=len))
    return code(names + value), default, (option.help or "") + choices


def _sentence(command: click.Command) -> str:
    return " ".join((command.help or "").split())
