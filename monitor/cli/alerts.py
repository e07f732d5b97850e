"""Commands for alerts, silences and receivers."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import click

from monitor.cli.base import (
    PROBLEM_EXIT_CODE,
    config_option,
    json_option,
    lang_option,
    language,
    load_config,
    or_exit,
    print_json,
    show,
    user_name,
)

if TYPE_CHECKING:
    from monitor.config.root import Config
    from monitor.present.alerts import ReceiverTestResult

TEST_TIMEOUT_SECONDS = 120.0  # seconds for all receivers together


@click.group()
def alerts() -> None:
    """List alerts, silence them, and test receivers."""


@alerts.command("list")
@click.option("--all", "everything", is_flag=True, help="Also show pending, resolved and explained alerts.")
@lang_option
@config_option
@json_option
def list_alerts(everything: bool, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Show firing alerts and silences. Exit code 1 if an alert fires that is not silenced."""
    config = load_config(config_path)
    from monitor.alert.silences import Silence
    from monitor.cli.ask import call_daemon
    from monitor.present import alerts as alert_tables

    query = urlencode({"lang": language(lang)})
    active = or_exit(lambda: call_daemon(config, "GET", f"/v1/alerts?{query}", tuple[alert_tables.LocalizedAlert, ...]))
    silences = or_exit(lambda: call_daemon(config, "GET", "/v1/silences", tuple[Silence, ...]))
    now = time.time()
    show(
        {"alerts": active, "silences": silences},
        as_json,
        alert_tables.alerts_table(active, now, everything, language(lang)),
        *([alert_tables.silences_table(silences, now, language(lang))] if silences else []),
        lang=lang,
    )
    sys.exit(PROBLEM_EXIT_CODE if alert_tables.has_urgent(active) else 0)


@alerts.command()
@click.argument("matchers", metavar="MATCHER...", nargs=-1, required=True)
@click.option("--for", "duration", metavar="TIME", required=True, help="Duration: 30m, 2h, 1d.")
@click.option("--comment", default="", help="Reason for the silence.")
@click.option("--author", help="Creator of the silence. Default: the current user.")
@lang_option
@config_option
@json_option
def silence(
    matchers: tuple[str, ...],
    duration: str,
    comment: str,
    author: str | None,
    lang: str | None,
    config_path: str | None,
    as_json: bool,
) -> None:
    """Mute alerts that match every MATCHER: node=gpu1, 'user=~zhang|li', alertname=DiskFull."""
    config = load_config(config_path)
    from monitor.alert.silences import Silence
    from monitor.cli.ask import call_daemon
    from monitor.queries.alerts import SilenceRequest, make_silence

    request = SilenceRequest(
        matchers=matchers, duration=duration, author=author if author is not None else user_name(), comment=comment
    )
    try:
        make_silence(request, "", 0.0)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    created = or_exit(lambda: call_daemon(config, "POST", "/v1/silences", Silence, request))
    if as_json:
        print_json(created)
    else:
        from monitor.base.localtime import local_instant
        from monitor.i18n import say

        values = {"until": local_instant(created.ends_at, config.daemon.zone), "id": created.id}
        click.echo(say(language(lang), "cli.silenced", values))


@alerts.command()
@click.argument("silence_id", metavar="ID")
@lang_option
@config_option
@json_option
def unsilence(silence_id: str, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """End a silence. `gpuwarden alerts list` shows the ids."""
    config = load_config(config_path)
    from monitor.cli.ask import call_daemon

    path = f"/v1/silences/{quote(silence_id, safe='')}"
    ended = or_exit(lambda: call_daemon(config, "DELETE", path, dict[str, str]))
    if as_json:
        print_json(ended)
    else:
        from monitor.i18n import say

        click.echo(say(language(lang), "cli.unsilenced", {"id": silence_id}))


@alerts.command()
@click.option("--since", default="24h", show_default=True, metavar="TIME", help="Time range: 2h, 7d.")
@click.option("--messages", is_flag=True, help="Show notifications and their delivery instead.")
@lang_option
@config_option
@json_option
def history(since: str, messages: bool, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Show when alerts fired and were resolved, or with --messages which notifications were sent."""
    config = load_config(config_path)
    from monitor.alert.store import Delivery
    from monitor.base.units import parse_duration
    from monitor.cli.ask import call_daemon
    from monitor.present import alerts as alert_tables

    try:
        seconds = parse_duration(since)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if messages:
        deliveries = or_exit(lambda: call_daemon(config, "GET", "/v1/deliveries", tuple[Delivery, ...]))
        deliveries = tuple(delivery for delivery in deliveries if delivery.at >= time.time() - seconds)
        show(
            {"deliveries": deliveries},
            as_json,
            alert_tables.deliveries_table(deliveries, config.daemon.zone, language(lang)),
            lang=lang,
        )
        return
    path = f"/v1/alerts/history?{urlencode({'since': since, 'lang': language(lang)})}"
    events = or_exit(lambda: call_daemon(config, "GET", path, tuple[alert_tables.LocalizedAlertEvent, ...]))
    table = alert_tables.history_table(events, config.daemon.zone, language(lang))
    show({"events": events}, as_json, table, lang=lang)


@alerts.command()
@click.option("--receiver", metavar="R", help="Receiver to test. Default: all of them.")
@click.option("--rule", metavar="X", help="Rule of the sample alert, for example disk-full.")
@lang_option
@config_option
@json_option
def test(receiver: str | None, rule: str | None, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Send a test message, and show the response of each receiver. Exit code 1 if one fails."""
    config = load_config(config_path)
    from monitor.present import alerts as alert_tables

    if not config.daemon.alerts.receivers:
        from monitor.i18n import say

        raise click.UsageError(say(language(lang), "cli.no-receiver", {}))
    results = or_exit(lambda: send_test(config, receiver, rule))
    show({"results": results}, as_json, alert_tables.receiver_tests_table(results), lang=lang)
    sys.exit(0 if all(result.ok for result in results) else PROBLEM_EXIT_CODE)


def send_test(config: Config, receiver: str | None, rule: str | None) -> tuple[ReceiverTestResult, ...]:
    """Send test messages from the daemon, whose network and proxies matter; without a daemon, from here."""
    from monitor.cli.ask import NoDaemonError, call_daemon
    from monitor.present.alerts import ReceiverTestResult

    request = {"receiver": receiver, "rule": rule}
    form = tuple[ReceiverTestResult, ...]
    try:
        return call_daemon(config, "POST", "/v1/alerts/test", form, request, TEST_TIMEOUT_SECONDS)
    except NoDaemonError:
        return send_test_from_here(config, receiver, rule)


def send_test_from_here(config: Config, receiver: str | None, rule: str | None) -> tuple[ReceiverTestResult, ...]:
    """Send test messages from this process, whatever daemon runs here."""
    from monitor.queries.alerts import send_samples

    try:
        settings = config.daemon.alerts.receiver_settings(f"http://{config.daemon.listen}")
        return send_samples(settings, receiver, rule, time.time())
    except ValueError as error:
        raise click.UsageError(str(error)) from None
