"""The command that asks what is needed to begin, and writes a commented configuration file."""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import TYPE_CHECKING, NoReturn, TypeVar

import click

from monitor.cli.base import CONFIG_EXIT_CODE, PROBLEM_EXIT_CODE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from monitor.cli.interview import Interview
    from monitor.config.root import Config
    from monitor.config.starter import StarterAnswers, StarterReceiver

T = TypeVar("T")
FROM_STDIN = "-"
MAX_ADDRESS_CHARS = 4096


@click.command()
@click.option(
    "--config",
    "path",
    metavar="F",
    help="File to write. Default: $GPUWARDEN_CONFIG, else /etc/gpuwarden/gpuwarden.yml.",
)
@click.option("--lang", metavar="LANG", help="Language of questions and messages: en or zh.")
@click.option("--timezone", metavar="ZONE", help="Time zone, such as Asia/Shanghai. Default: that of this machine.")
@click.option(
    "--receiver", metavar="URL", help="Address of the robot or webhook; none for no messages, - to read it from stdin."
)
@click.option("--secret-file", metavar="F", help="File with the signing secret of a DingTalk or Feishu robot.")
@click.option("--kubernetes", metavar="K", help="auto, none, or a kubeconfig.")
@click.option("--dataset-roots", metavar="DIRS", help="Directories with datasets, separated by commas, or none.")
@click.option("--node", metavar="NODE", help="Node whose agent sees these directories. Default: this machine.")
@click.option("--cleanup", metavar="YES", help="Whether to plan a cleanup every night: yes or no.")
@click.option("--report-day", metavar="DAY", help="Day of the weekly report, such as mon, or none.")
@click.option("--sample", metavar="YES", help="Whether to send a sample message: yes or no. Without a terminal: no.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def init(path: str | None, lang: str | None, force: bool, **options: str | None) -> None:
    """Ask what is needed to begin, write a commented configuration file, and send a sample message.

    In a terminal, only questions without an option are asked. Without one, --receiver is required.
    """
    from monitor.cli.answers import parse_language
    from monitor.cli.ask import locale_language
    from monitor.cli.interview import Interview
    from monitor.config.file import DEFAULT_PATH, PATH_VARIABLE
    from monitor.config.summary import schedule_lines
    from monitor.i18n import LANGUAGES, say

    target = os.path.abspath(path or os.environ.get(PATH_VARIABLE) or DEFAULT_PATH)
    interactive = sys.stdin.isatty() and options["receiver"] != FROM_STDIN
    first = Interview(locale_language(os.environ), interactive)
    if not interactive and options["receiver"] is None:
        _refuse(first.say("no-terminal", options="--receiver"))
    question = " / ".join(say(each, "init.question.language", {}) for each in LANGUAGES)
    try:
        interview = Interview(first.answer(question, first.lang, parse_language, lang, "--lang"), interactive)
        _check_target(interview, target, force)
        answers, sample = _ask(interview, options)
    except (click.Abort, KeyboardInterrupt):
        click.echo()
        _refuse(first.say("aborted"))
    config = _write(interview, target, answers, force)
    click.echo(interview.say("written", path=target))
    accepted = not sample or _send_sample(interview, target, config)
    for line in schedule_lines(config.daemon, interview.lang, time.time()):
        click.echo(line)
    click.echo(interview.say("start", path=target))
    sys.exit(0 if accepted else PROBLEM_EXIT_CODE)


def _ask(interview: Interview, options: Mapping[str, str | None]) -> tuple[StarterAnswers, bool]:
    """The answers, and whether to send a sample message."""
    from monitor.base.localtime import local_timezone
    from monitor.cli import answers as of
    from monitor.config.starter import StarterAnswers

    def ask(name: str, default: str, parse: Callable[[str], T]) -> T:
        given = options[name.replace("-", "_")]
        return interview.ask(name, default, parse, _read_address() if given == FROM_STDIN else given)

    if interview.interactive:
        click.echo(interview.say("enter"))
    timezone = ask("timezone", local_timezone(), of.parse_timezone)
    receiver = ask("receiver", of.NONE, of.parse_receiver)
    if receiver is not None and receiver.kind in of.SIGNED_KINDS:
        receiver = _with_secret(interview, receiver, options["secret_file"])
    kubernetes = ask("kubernetes", of.default_kubernetes(os.environ), of.parse_kubernetes)
    roots = ask("dataset-roots", of.NONE, of.parse_roots)
    node = ask("node", socket.gethostname(), of.parse_node) if roots else ""
    cleanup = ask("cleanup", "yes", of.parse_yes)
    day = ask("report-day", "mon", of.parse_day) if receiver is not None else None
    sample = receiver is not None and ask("sample", "yes" if interview.interactive else "no", of.parse_yes)
    return StarterAnswers(interview.lang, timezone, receiver, roots, node, cleanup, day, kubernetes), sample


def _read_address() -> str:
    """An address from standard input: as an option, every user of this machine could read it."""
    return sys.stdin.readline(MAX_ADDRESS_CHARS)


def _with_secret(interview: Interview, receiver: StarterReceiver, file: str | None) -> StarterReceiver:
    from dataclasses import replace

    from monitor.cli.answers import NONE, parse_secret
    from monitor.config.types import read_text_file

    try:
        given = None if file is None else read_text_file(os.path.abspath(file))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--secret-file") from None
    return replace(receiver, secret=interview.ask("secret", NONE, parse_secret, given))


def _check_target(interview: Interview, target: str, force: bool) -> None:
    """Refuse before the first question what could not be written after the last."""
    if os.path.lexists(target) and not force:
        _refuse(interview.say("exists", path=target))
    directory = os.path.dirname(target)
    while not os.path.lexists(directory):
        directory = os.path.dirname(directory)
    if not os.path.isdir(directory) or not os.access(directory, os.W_OK | os.X_OK):
        _refuse(interview.say("cannot-write", path=target, reason=directory))


def _write(interview: Interview, target: str, answers: StarterAnswers, force: bool) -> Config:
    """Write the file, complete or not at all, and return its configuration."""
    from monitor.base.private_files import create_file, replace_file
    from monitor.config.file import ConfigError, load
    from monitor.config.starter import starter_file

    text = starter_file(answers, target).encode("utf-8", "replace")
    draft = f"{target}.draft-{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        create_file(draft, text)
        try:
            config = load(draft, os.environ)
        finally:
            os.unlink(draft)
        (replace_file if force else create_file)(target, text)
    except ConfigError as error:  # of a GPUWARDEN_ variable
        click.echo(str(error), err=True)
        sys.exit(CONFIG_EXIT_CODE)
    except FileExistsError:
        _refuse(interview.say("exists", path=target))
    except OSError as error:
        _refuse(interview.say("cannot-write", path=target, reason=error.strerror or str(error)))
    return config


def _send_sample(interview: Interview, target: str, config: Config) -> bool:
    """Send a sample message to the receiver, and say whether it was accepted."""
    from monitor.cli.alerts import send_test_from_here

    accepted = True
    for result in send_test_from_here(config, None, None):
        key = "accepted" if result.ok else "rejected"
        values = {"receiver": result.receiver} | ({} if result.ok else {"answer": result.answer, "path": target})
        click.echo(interview.say(key, **values))
        accepted = accepted and result.ok
    return accepted


def _refuse(message: str) -> NoReturn:
    click.echo(f"gpuwarden: {message}", err=True)
    sys.exit(CONFIG_EXIT_CODE)
