"""The `gpuwarden` command.

Exit codes: 0 success, 1 a problem was found, 2 wrong usage or configuration, 3 the question could not be asked.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import click

import monitor
from monitor.cli.access import hash_password, login_link
from monitor.cli.alerts import alerts
from monitor.cli.base import (
    CONFIG_EXIT_CODE,
    PROBLEM_EXIT_CODE,
    config_loader,
    config_option,
    json_option,
    lang_option,
    language,
    load_config,
    or_exit,
    problem_lines,
)
from monitor.cli.cleanup import cleanup
from monitor.cli.doctor import doctor
from monitor.cli.fits import fits
from monitor.cli.incident import incident
from monitor.cli.init import init
from monitor.cli.keys import keys
from monitor.cli.reload import reload
from monitor.cli.report import report
from monitor.cli.top import top
from monitor.cli.usage import LocalizedGroup

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.config.root import Config

SNAPSHOT_TIMEOUT_SECONDS = 10.0


@click.group(cls=LocalizedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(monitor.__version__, prog_name="gpuwarden")
def main() -> None:
    """Monitoring, alerting and safe cleanup for GPU clusters on Kubernetes."""


main.add_command(init)
main.add_command(alerts)
main.add_command(cleanup)
main.add_command(report)
main.add_command(incident)
main.add_command(top)
main.add_command(fits)
main.add_command(doctor)
main.add_command(reload)
main.add_command(hash_password)
main.add_command(keys)
main.add_command(login_link)


@main.command()
@config_option
def up(config_path: str | None) -> None:
    """Run agent and daemon on this machine, in one process."""
    config = load_config(config_path)
    from monitor.cli.ask import locale_language
    from monitor.cli.tables import print_machine
    from monitor.daemon.main import run_up

    printer = partial(print_machine, timezone=config.daemon.zone, lang=locale_language(os.environ))
    _run(lambda: run_up(config, sys.stdout, printer, config_loader(config_path)), config)


@main.command()
@config_option
def agent(config_path: str | None) -> None:
    """Run the per-node agent."""
    config = load_config(config_path)
    from monitor.daemon.launch import become_agent

    become_agent(config.agent_settings())


@main.command()
@config_option
def daemon(config_path: str | None) -> None:
    """Run the central daemon with its web page."""
    config = load_config(config_path)
    from monitor.daemon.main import run_daemon

    _run(lambda: run_daemon(config, load=config_loader(config_path)), config)


@main.command()
@click.option(
    "--nodes",
    type=click.IntRange(2, 250),
    default=6,
    show_default=True,
    help="Nodes with 8 GPUs each; more than 16 begin without history.",
)
@click.option("--listen", default="127.0.0.1:9836", show_default=True, help="Address of the web page.")
@click.option(
    "--speed",
    type=click.FloatRange(0.5, 20),
    default=1.0,
    show_default=True,
    help="How fast the scenes follow each other: 2 takes half the time.",
)
@lang_option
def demo(nodes: int, listen: str, speed: float, lang: str | None) -> None:
    """Run the daemon on a simulated cluster: seven days of history, and ten outages within ten minutes."""
    from monitor.config.root import Config
    from monitor.config.types import Listen, parse_listen
    from monitor.daemon.main import run_daemon
    from monitor.sim.demo import run_demo
    from monitor.web.context import PageExtras

    def run(config: Config, extras: PageExtras, ready: Callable[[], None]) -> int:
        return run_daemon(config, sys.stdout, extras, lang=language(lang), ready=ready)

    try:
        address = Listen.model_validate(parse_listen(listen))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--listen") from None
    _run(
        lambda: run_demo(run, nodes, address, language(lang), click.echo, speed),
        Config.model_validate({"log_level": "warning"}),
    )


@main.command()
@lang_option
@config_option
@json_option
def snapshot(lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Collect from this machine once and print the result. Exit code 1 if a collector failed."""
    config = load_config(config_path)
    import msgspec

    from monitor.base import logs
    from monitor.cli import tables
    from monitor.daemon import launch
    from monitor.present import node as node_tables

    logs.setup("error")  # failed collectors are in the table
    machine = launch.read_machine_once(config.agent_settings(), SNAPSHOT_TIMEOUT_SECONDS)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(machine)))
    else:
        tables.print_snapshot(machine, sys.stdout, config.daemon.zone, lang=language(lang))
    sys.exit(PROBLEM_EXIT_CODE if node_tables.failed_collectors(machine) else 0)


@main.command()
@click.option("--all", "everything", is_flag=True, help="Also show findings that another one explains.")
@lang_option
@config_option
@json_option
def status(everything: bool, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Show the cluster: findings, nodes, GPUs, owners, waiting pods. Exit code 1 if something needs attention."""
    config = load_config(config_path)
    import msgspec

    from monitor.cli import tables
    from monitor.cli.ask import findings_now, view_now
    from monitor.present import cluster as cluster_tables
    from monitor.present import findings as finding_tables

    view = or_exit(lambda: view_now(config))
    findings = findings_now(config, language(lang))
    if as_json:
        content = msgspec.to_builtins(view) | {"findings": findings}
        click.echo(msgspec.json.format(msgspec.json.encode(content)))
    else:
        shown = finding_tables.findings_table(findings, view.at, everything, language(lang))
        tables.print_view(view, sys.stdout, shown, timezone=config.daemon.zone, lang=language(lang))
    sys.exit(PROBLEM_EXIT_CODE if cluster_tables.needs_attention(view) or finding_tables.has_urgent(findings) else 0)


@main.command()
@click.argument("name", metavar="NAME")
@click.option("-n", "--namespace", help="Namespace. Default: all of them.")
@lang_option
@config_option
@json_option
def why(name: str, namespace: str | None, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Explain why a pod, a job or the pods of a user are not running, idle or stuck. Exit code 1 if one is unhealthy.

    NAME is of a pod (also NAMESPACE/POD), a job or a user, or a part of the name of a pod.
    """
    config = load_config(config_path)
    import json

    from monitor.cli.ask import why_now

    answer = or_exit(lambda: why_now(config, name, namespace, language(lang)))
    click.echo(json.dumps(answer.as_dict(), ensure_ascii=False) if as_json else "\n".join(answer.lines))
    sys.exit(0 if answer.well else PROBLEM_EXIT_CODE)


@main.command("check-config")
@click.argument("path", metavar="F")
@lang_option
@json_option
def check_config(path: str, lang: str | None, as_json: bool) -> None:
    """Report all errors in a configuration file and the environment variables, or summarise the configuration."""
    import json

    from monitor.config.file import ConfigError, ConfigProblem, load
    from monitor.config.summary import summary_lines
    from monitor.i18n import say

    problems: tuple[ConfigProblem, ...] = ()
    spoken = language(lang)
    try:
        lines = summary_lines(load(path, os.environ), spoken, time.time())
        verdict = "\n".join((say(spoken, "cli.config-ok", {"path": path}), *lines))
    except ConfigError as error:
        problems = error.problems
        verdict = "\n".join((problem_lines(error, spoken), say(spoken, "cli.config-errors", {"count": len(problems)})))
    if as_json:
        verdict = json.dumps({"file": path, "ok": not problems, "problems": [vars(problem) for problem in problems]})
    click.echo(verdict, err=bool(problems) and not as_json)
    sys.exit(CONFIG_EXIT_CODE if problems else 0)


def _run(serve: Callable[[], int], config: Config) -> NoReturn:
    """Exit with the exit code of `serve`, or with the message of a StartError."""
    from monitor.base import logs
    from monitor.base.process import end_process
    from monitor.daemon.listen import StartError

    logs.setup(config.log_level)
    try:
        code = serve()
    except StartError as error:
        click.echo(f"gpuwarden: {error}", err=True)
        sys.exit(error.exit_code)
    end_process(code)
