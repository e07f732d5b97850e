"""The commands about alerts. What a command needs is imported when it runs, so that `gpuwarden --help` is quick."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

import click

from monitor.cli.base import (
    PROBLEM_EXIT_CODE,
    or_exit,
    config_option,
    json_option,
    lang_option,
    load_config,
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
    """See what fires, silence it, and test who is told."""


@alerts.command("list")
@click.option("--all", "everything", is_flag=True, help="Show also what is pending, over, or explained by others.")
@lang_option
@config_option
@json_option
def list_alerts(everything: bool, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Show what fires, and what is silenced. Exit code 1 if something fires that nobody has silenced."""
    config = load_config(config_path)
    from monitor.alert.silences import Silence
    from monitor.cli.ask import call_daemon
    from monitor.present import alerts as overview_alerts

    query = urlencode({"lang": _language(lang)})
    found = or_exit(lambda: call_daemon(config, "GET", f"/v1/alerts?{query}", tuple[overview_alerts.LocalizedAlert, ...]))
    silences = or_exit(lambda: call_daemon(config, "GET", "/v1/silences", tuple[Silence, ...]))
    now = time.time()
    show(
        {"alerts": found, "silences": silences},
        as_json,
        overview_alerts.alerts_table(found, now, everything),
        *([overview_alerts.silences_table(silences, now)] if silences else []),
    )
    sys.exit(PROBLEM_EXIT_CODE if overview_alerts.has_urgent(found) else 0)


@alerts.command()
@click.argument("matchers", metavar="MATCHER...", nargs=-1, required=True)
@click.option("--for", "duration", metavar="TIME", required=True, help="For how long: 30m, 2h, 1d.")
@click.option("--comment", default="", help="Why.")
@click.option("--author", help="Who. Default: the user who runs this.")
@config_option
@json_option
def silence(
    matchers: tuple[str, ...], duration: str, comment: str, author: str | None, config_path: str | None, as_json: bool
) -> None:
    """Tell nobody for a while about alerts that meet every MATCHER: node=gpu1, 'user=~zhang|li', alertname=DiskFull."""
    config = load_config(config_path)
    from monitor.alert.silences import Silence
    from monitor.cli.ask import call_daemon
    from monitor.queries.alerts import SilenceRequest, make_silence

    wanted = SilenceRequest(
        matchers=matchers, duration=duration, author=author if author is not None else user_name(), comment=comment
    )
    try:
        make_silence(wanted, "", 0.0)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    made = or_exit(lambda: call_daemon(config, "POST", "/v1/silences", Silence, wanted))
    if as_json:
        print_json(made)
    else:
        until = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(made.ends_at))
        click.echo(f"silenced until {until}; to end it: gpuwarden alerts unsilence {made.id}")


@alerts.command()
@click.argument("silence_id", metavar="ID")
@config_option
@json_option
def unsilence(silence_id: str, config_path: str | None, as_json: bool) -> None:
    """End a silence. `gpuwarden alerts list` shows their ids."""
    config = load_config(config_path)
    from monitor.cli.ask import call_daemon

    path = f"/v1/silences/{quote(silence_id, safe='')}"
    ended = or_exit(lambda: call_daemon(config, "DELETE", path, dict[str, str]))
    if as_json:
        print_json(ended)
    else:
        click.echo(f"silence {silence_id} is ended")


@alerts.command()
@click.option("--since", default="24h", show_default=True, metavar="TIME", help="How far back: 2h, 7d.")
@click.option("--messages", is_flag=True, help="Show the messages that were sent instead, and what became of them.")
@lang_option
@config_option
@json_option
def history(since: str, messages: bool, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Show what fired and was resolved, or with --messages what was sent to whom."""
    config = load_config(config_path)
    from monitor.alert.store import Delivery
    from monitor.base.units import parse_duration
    from monitor.cli.ask import call_daemon
    from monitor.present import alerts as overview_alerts

    try:
        seconds = parse_duration(since)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if messages:
        sent = or_exit(lambda: call_daemon(config, "GET", "/v1/deliveries", tuple[Delivery, ...]))
        sent = tuple(each for each in sent if each.at >= time.time() - seconds)
        show({"deliveries": sent}, as_json, overview_alerts.deliveries_table(sent))
        return
    path = f"/v1/alerts/history?{urlencode({'since': since, 'lang': _language(lang)})}"
    events = or_exit(lambda: call_daemon(config, "GET", path, tuple[overview_alerts.LocalizedAlertEvent, ...]))
    show({"events": events}, as_json, overview_alerts.history_table(events))


@alerts.command()
@click.option("--receiver", metavar="R", help="To whom. Default: to every receiver that is configured.")
@click.option("--rule", metavar="X", help="About what, for example disk-full.")
@config_option
@json_option
def test(receiver: str | None, rule: str | None, config_path: str | None, as_json: bool) -> None:
    """Send a test message, and show the receiver's own answer. Exit code 1 if one was not accepted."""
    config = load_config(config_path)
    from monitor.present import alerts as overview_alerts

    if not config.daemon.alerts.receivers:
        raise click.UsageError("no receiver is configured; add one to daemon.alerts.receivers")
    tried = or_exit(lambda: send_test(config, receiver, rule))
    show({"results": tried}, as_json, overview_alerts.receiver_tests_table(tried))
    sys.exit(0 if all(each.ok for each in tried) else PROBLEM_EXIT_CODE)


def send_test(config: Config, receiver: str | None, rule: str | None) -> tuple[ReceiverTestResult, ...]:
    """Have the daemon send, because its network and its proxies are what counts; send from here if there is none."""
    from monitor.cli.ask import NoDaemonError, call_daemon
    from monitor.present.alerts import ReceiverTestResult
    from monitor.queries.alerts import send_samples

    wanted = {"receiver": receiver, "rule": rule}
    try:
        return call_daemon(config, "POST", "/v1/alerts/test", tuple[ReceiverTestResult, ...], wanted, TEST_TIMEOUT_SECONDS)
    except NoDaemonError:
        pass
    try:
        settings = config.daemon.alerts.receiver_settings(f"http://{config.daemon.listen}")
        return send_samples(settings, receiver, rule, time.time())
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _language(lang: str | None) -> str:
    from monitor.cli.ask import locale_language

    return lang or locale_language(os.environ)
