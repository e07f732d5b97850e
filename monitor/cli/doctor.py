"""The command that looks for what is wrong with an installation. What it needs is imported when it runs."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

import click

from monitor.cli.base import PROBLEM_EXIT_CODE, CONFIG_EXIT_CODE, config_option, json_option, lang_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.config.root import Config
    from monitor.doctor.context import SentMessage
    from monitor.doctor.model import CheckResult


@click.command()
@click.option(
    "--send", is_flag=True, help="Send a test message to every receiver. Otherwise they are only connected to."
)
@lang_option
@config_option
@json_option
def doctor(send: bool, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Look for everything an installation can have wrong, and say what to do. Exit code 1 if a problem was found."""
    import msgspec

    from monitor.base import logs
    from monitor.cli.ask import locale_language
    from monitor.doctor.present import print_results, rows

    logs.setup("critical")  # what goes wrong is what is printed
    lang = lang or locale_language(os.environ)
    encoding = sys.stdout.encoding
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # that a terminal cannot write Chinese is one of the things to say
    results, config_is_wrong = _examine(config_path, lang, encoding, send)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(rows(results, lang))).decode())
    else:
        print_results(results, lang, sys.stdout)
    sys.stdout.flush()
    sys.exit(CONFIG_EXIT_CODE if config_is_wrong else PROBLEM_EXIT_CODE if _found(results) else 0)


def _examine(config_path: str | None, lang: str, encoding: str, send: bool) -> tuple[tuple[CheckResult, ...], bool]:
    """Make all checks, and return their results, and whether the configuration is wrong."""
    from monitor.config.file import ConfigError, default_path, load
    from monitor.doctor.context import DoctorContext, DoctorRequest, Terminal
    from monitor.doctor.registry import CHECKS
    from monitor.doctor.run import run

    path, config = config_path or default_path(os.environ), None
    problems: tuple[str, ...] = ()
    try:
        config = load(path, os.environ)
    except ConfigError as error:
        problems = tuple(map(str, error.problems))
    sending = _sending(config) if send and config is not None else None
    context = DoctorContext(DoctorRequest(path, config, problems, Terminal(lang, encoding), sending))
    return run(CHECKS, context), config is None


def _sending(config: Config) -> Callable[[], tuple[SentMessage, ...]]:
    """Return what sends a message to every receiver, as `alerts test` does."""
    from monitor.cli.alerts import send_test
    from monitor.doctor.context import SentMessage

    return lambda: tuple(SentMessage(each.receiver, each.ok, each.answer) for each in send_test(config, None, None))


def _found(results: tuple[CheckResult, ...]) -> bool:
    from monitor.doctor.model import CheckStatus

    return any(result.status is CheckStatus.PROBLEM for result in results)
