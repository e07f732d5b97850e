"""The command that prints the usage report."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click

from monitor.cli.base import config_option, json_option, lang_option, load_config, or_exit

if TYPE_CHECKING:
    from monitor.config.root import Config
    from monitor.report.model import Report

REPORT_TIMEOUT_SECONDS = 60.0  # a year of a thousand nodes takes a while


@click.command()
@click.option("--since", default="7d", show_default=True, metavar="TIME", help="Time range: 24h, 7d, 30d.")
@click.option(
    "--by",
    type=click.Choice(["user", "queue", "node"]),
    default="user",
    show_default=True,
    help="Grouping of the rows.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json", "csv", "html"]), default="table", show_default=True,
    help="Output format.",
)  # fmt: skip
@lang_option
@config_option
@json_option
def report(since: str, by: str, form: str, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Show GPU hours allocated, used and wasted, disk by owner, cleanup results, and incidents by cause."""
    config = load_config(config_path)
    from monitor.base.units import parse_duration
    from monitor.cli.ask import locale_language
    from monitor.report import render

    try:
        parse_duration(since)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    content = or_exit(lambda: _fetch(config, since, by))
    lang = lang or locale_language(os.environ)
    if as_json or form == "json":
        click.echo(render.as_json(content), nl=False)
    elif form == "csv":
        sys.stdout.write(render.as_csv(content))
    elif form == "html":
        click.echo(render.as_html(content, lang, config.daemon.zone))
    else:
        render.print_tables(content, lang, sys.stdout, config.daemon.zone)


def _fetch(config: Config, since: str, by: str) -> Report:
    """Report of the daemon. Raise QueryError."""
    from monitor.cli.ask import NoDaemonError, UnreachableError, call_daemon
    from monitor.report.model import Report

    try:
        return call_daemon(
            config, "GET", f"/v1/report?{urlencode({'since': since, 'by': by})}", Report, None, REPORT_TIMEOUT_SECONDS
        )
    except NoDaemonError:
        raise UnreachableError(
            f"no daemon answers on {config.daemon.listen}, and the report needs its usage records; start one with "
            "gpuwarden daemon, or correct daemon.listen"
        ) from None
