"""The command that checks an installation."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

import click

from monitor.cli.base import CONFIG_EXIT_CODE, PROBLEM_EXIT_CODE, config_option, json_option, lang_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.config.root import Config
    from monitor.doctor.context import SentMessage
    from monitor.doctor.model import CheckResult


@click.command()
@click.option("--send", is_flag=True, help="Send a test message to every receiver instead of only connecting to it.")
@lang_option
@config_option
@json_option
def doctor(send: bool, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Check the installation, and say how to fix each problem. Exit code 1 if a problem was found."""
    import msgspec

    from monitor.base import logs
    from monitor.cli.ask import locale_language
    from monitor.doctor.present import print_results, rows

    logs.setup("critical")  # failures are printed as results
    lang = lang or locale_language(os.environ)
    encoding = sys.stdout.encoding
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Chinese is one of the problems to report
    results, config_is_invalid = _run_checks(config_path, lang, encoding, send)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(rows(results, lang))).decode())
    else:
        print_results(results, lang, sys.stdout)
    sys.stdout.flush()
    sys.exit(CONFIG_EXIT_CODE if config_is_invalid else PROBLEM_EXIT_CODE if _has_problem(results) else 0)


def _run_checks(config_path: str | None, lang: str, encoding: str, send: bool) -> tuple[tuple[CheckResult, ...], bool]:
    """Results of all checks, and whether the configuration is invalid."""
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
    """Function that sends a message to every receiver, as `alerts test` does."""
    from monitor.cli.alerts import send_test
    from monitor.doctor.context import SentMessage

    return lambda: tuple(
        SentMessage(result.receiver, result.ok, result.answer) for result in send_test(config, None, None)
    )


def _has_problem(results: tuple[CheckResult, ...]) -> bool:
    from monitor.doctor.model import CheckStatus

    return any(result.status is CheckStatus.PROBLEM for result in results)
