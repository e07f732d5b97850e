"""The command that writes the document about an incident."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import click

from monitor.cli.base import config_option, json_option, lang_option, language, load_config, or_exit, print_json

if TYPE_CHECKING:
    from monitor.config.root import Config
    from monitor.present.incident import Incident


@click.command()
@click.argument("alert", metavar="ALERT")
@click.option(
    "--format", "form", type=click.Choice(["markdown", "html"]), default="markdown", show_default=True,
    help="Output format.",
)  # fmt: skip
@lang_option
@config_option
@json_option
def incident(alert: str, form: str, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Write a document about ALERT, for a ticket or a review: the alert, its cause and symptoms, and their timeline.

    ALERT is an id that `gpuwarden alerts list --all` shows, also of an alert that has resolved.
    """
    config = load_config(config_path)
    from monitor.present.incident_text import as_html, as_markdown

    found = or_exit(lambda: _fetch(config, alert, language(lang)))
    if as_json:
        print_json(found)
        return
    render = as_html if form == "html" else as_markdown
    click.echo(render(found, language(lang), config.daemon.zone), nl=False)


def _fetch(config: Config, alert: str, lang: str) -> Incident:
    """The incident from the daemon. Raise QueryError."""
    from monitor.cli.ask import call_daemon
    from monitor.present.incident import Incident

    return call_daemon(config, "GET", f"/v1/incidents/{quote(alert, safe='')}?{urlencode({'lang': lang})}", Incident)
