"""What all commands share: options, exit codes, reading the configuration, and asking the daemon."""

from __future__ import annotations

import getpass
import os
import sys
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.config.root import Config
    from monitor.present.table import TextTable

T = TypeVar("T")
PROBLEM_EXIT_CODE = 1
CONFIG_EXIT_CODE = 2

config_option = click.option(
    "--config",
    "config_path",
    metavar="F",
    help="Configuration file. Default: $GPUWARDEN_CONFIG, else /etc/gpuwarden/gpuwarden.yml if there is one.",
)
lang_option = click.option("--lang", type=click.Choice(["en", "zh"]), help="Language. Default: that of the locale.")
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON for programs instead of text for people."
)


def load_config(path: str | None) -> Config:
    """Return the configuration, or end with everything that is wrong with it."""
    from monitor.config.file import ConfigError, default_path, load

    try:
        return load(path or default_path(os.environ), os.environ)
    except ConfigError as error:
        click.echo(str(error), err=True)
        sys.exit(CONFIG_EXIT_CODE)


def or_exit(ask: Callable[[], T]) -> T:
    """Return the answer, or end with the sentence that says why there is none."""
    from monitor.cli.ask import QueryError

    try:
        return ask()
    except QueryError as error:
        click.echo(f"gpuwarden: {error}", err=True)
        sys.exit(PROBLEM_EXIT_CODE)


def user_name() -> str:
    """Return who runs this command, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user has no name
        return str(os.getuid())


def show(whole: object, as_json: bool, *tables: TextTable) -> None:
    """Print it as JSON, or as tables."""
    if as_json:
        print_json(whole)
        return
    from monitor.cli.tables import print_tables

    print_tables(tables, sys.stdout)


def print_json(content: object) -> None:
    """Print it as JSON that a person can read too."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(content)))
