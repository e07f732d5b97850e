"""Options, exit codes and output shared by all commands.

Commands import what they need when they run, which keeps `gpuwarden --help` fast.
"""

from __future__ import annotations

import getpass
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.config.file import ConfigError
    from monitor.config.root import Config
    from monitor.present.table import TextTable

T = TypeVar("T")
PROBLEM_EXIT_CODE = 1
CONFIG_EXIT_CODE = 2
UNREACHABLE_EXIT_CODE = 3

config_option = click.option(
    "--config",
    "config_path",
    metavar="F",
    help="Configuration file. Default: $GPUWARDEN_CONFIG, else /etc/gpuwarden/gpuwarden.yml if there is one.",
)
lang_option = click.option("--lang", type=click.Choice(["en", "zh"]), help="Language. Default: from the locale.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def config_loader(path: str | None) -> Callable[[], Config]:
    """What loads the configuration, now and again on SIGHUP. It raises ConfigError."""
    from monitor.config.file import default_path, load

    return lambda: load(path or default_path(os.environ), os.environ)


def load_config(path: str | None) -> Config:
    """The configuration. Exits with all its errors if it is invalid."""
    from monitor.config.file import ConfigError

    try:
        return config_loader(path)()
    except ConfigError as error:
        click.echo(problem_lines(error, _spoken()), err=True)
        sys.exit(CONFIG_EXIT_CODE)


def problem_lines(error: ConfigError, lang: str) -> str:
    """All problems of a configuration in one language, one per line."""
    from monitor.i18n.phrases import translated

    return "\n".join(str(replace(each, message=translated(each.message, lang))) for each in error.problems)


def _spoken() -> str:
    """The language of the running command."""
    context = click.get_current_context(silent=True)
    return language(context.params.get("lang") if context is not None else None)


def or_exit(query: Callable[[], T]) -> T:
    """Result of a query. Exits with its error message if it fails."""
    from monitor.cli.ask import QueryError, UnreachableError
    from monitor.i18n.phrases import translated

    try:
        return query()
    except QueryError as error:
        click.echo(f"gpuwarden: {translated(str(error), _spoken())}", err=True)
        sys.exit(UNREACHABLE_EXIT_CODE if isinstance(error, UnreachableError) else PROBLEM_EXIT_CODE)


def user_name() -> str:
    """Name of the current user, for the audit log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, the user may have no name
        return str(os.getuid())


def language(lang: str | None) -> str:
    """The requested language, else that of the locale."""
    from monitor.cli.ask import locale_language

    return lang or locale_language(os.environ)


def show(content: object, as_json: bool, *tables: TextTable, lang: str | None = None) -> None:
    """Print `content` as JSON, or the tables in one language."""
    if as_json:
        print_json(content)
        return
    from monitor.cli.tables import print_tables

    print_tables(tables, sys.stdout, language(lang))


def print_json(content: object) -> None:
    """Print indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(content)))
