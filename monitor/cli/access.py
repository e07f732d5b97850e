"""Commands for users and login."""

from __future__ import annotations

import sys

import click

from monitor.cli.base import CONFIG_EXIT_CODE, config_option, load_config, or_exit

MIN_PASSWORD_CHARS = 8


@click.command("hash-password")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the password from the first line of standard input.")
def hash_password(from_stdin: bool) -> None:
    """Ask for a password and print its hash, for `password_hash` of a user in daemon.access.users."""
    from monitor.access.passwords import hash_password as hashed

    if from_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    if len(password) < MIN_PASSWORD_CHARS:
        click.echo(f"gpuwarden: the password must have at least {MIN_PASSWORD_CHARS} characters", err=True)
        sys.exit(CONFIG_EXIT_CODE)
    try:
        click.echo(hashed(password))
    except ValueError as error:
        click.echo(f"gpuwarden: {error}", err=True)
        sys.exit(CONFIG_EXIT_CODE)


@click.command("login-link")
@config_option
def login_link(config_path: str | None) -> None:
    """Print a link that signs a browser in as admin, once and within an hour."""
    config = load_config(config_path)
    from monitor.base.net import connect_host
    from monitor.cli.ask import call_daemon
    from monitor.config.types import Listen

    listen = config.daemon.listen
    link = or_exit(lambda: call_daemon(config, "POST", "/v1/login-link", dict[str, str], {}))
    click.echo(f"http://{Listen(host=connect_host(listen.host), port=listen.port)}{link['path']}")
