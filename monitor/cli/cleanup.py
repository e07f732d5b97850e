"""Commands for cleanup."""

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
    from monitor.cleanup.execute.scanner import ScanProgress
    from monitor.config.root import Config
    from monitor.present.cleanup import ShownRun

PLAN_TIMEOUT_SECONDS = 300.0  # reading the references of a large cluster takes many list requests
ACTION_TIMEOUT_SECONDS = 1800.0
POLL_SECONDS = 0.3
DATASETS = "datasets"
ENTRIES = "entries"  # the counter of a scan
WHOLE_CLUSTER = "cluster"  # in the daemon's answer: a policy that is not about nodes


@click.group()
def cleanup() -> None:
    """Plan, run and undo cleanup."""


@cleanup.command()
@click.argument("policy", required=False)
@click.option("--no-scan", is_flag=True, help="Use the last scan of a dataset root instead of a new one.")
@lang_option
@config_option
@json_option
def plan(policy: str | None, no_scan: bool, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Show what each POLICY would do now, without changing anything."""
    config = load_config(config_path)
    from monitor.cli.ask import call_daemon
    from monitor.present import cleanup as cleanup_tables
    from monitor.present.cleanup import ShownPlan

    if not no_scan:
        for name in _to_scan(config, policy):
            _scan(config, name, language(lang), quiet=as_json)
    query = {"lang": language(lang)} | ({"policy": policy} if policy else {})
    path = f"/v1/cleanup/plan?{urlencode(query)}"
    plans = or_exit(lambda: call_daemon(config, "GET", path, tuple[ShownPlan, ...], None, PLAN_TIMEOUT_SECONDS))
    show({"plans": plans}, as_json, *cleanup_tables.plan_tables(plans, config.daemon.zone, language(lang)), lang=lang)
    sys.exit(PROBLEM_EXIT_CODE if any(shown.refused is not None for shown in plans) else 0)


@cleanup.command()
@click.argument("policy")
@click.option("--node", help="Only on this node. Default: wherever the policy applies.")
@lang_option
@config_option
@json_option
def run(policy: str, node: str | None, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Run a POLICY now, in its configured mode: a dry run stays one."""
    config = load_config(config_path)
    from monitor.cli.ask import call_daemon

    request = {"policy": policy, "node": node, "by": user_name()}
    started = or_exit(lambda: call_daemon(config, "POST", "/v1/cleanup/run", dict[str, tuple[str, ...]], request))
    if as_json:
        print_json(started)
    else:
        click.echo(_started_text(policy, started["started"], language(lang)))


@cleanup.command()
@click.argument("policy", required=False)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="Number of runs.")
@click.option("--items", is_flag=True, help="Show the outcome of each item.")
@lang_option
@config_option
@json_option
def history(
    policy: str | None, limit: int, items: bool, lang: str | None, config_path: str | None, as_json: bool
) -> None:
    """Show the latest runs of one POLICY, or of all."""
    config = load_config(config_path)
    from monitor.cli.ask import call_daemon
    from monitor.present import cleanup as cleanup_tables
    from monitor.present.cleanup import ShownRun

    query = {"limit": str(limit)} | ({"policy": policy} if policy else {})
    path = f"/v1/cleanup/history?{urlencode(query)}"
    runs = or_exit(lambda: call_daemon(config, "GET", path, tuple[ShownRun, ...], None, PLAN_TIMEOUT_SECONDS))
    item_tables = [cleanup_tables.items_table(shown, language(lang)) for shown in runs if shown.items] if items else []
    table = cleanup_tables.history_table(runs, config.daemon.zone, language(lang))
    show({"runs": runs}, as_json, table, *item_tables, lang=lang)


@cleanup.command()
@click.argument("trash_id", metavar="ID")
@lang_option
@config_option
@json_option
def restore(trash_id: str, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Restore an item from the trash. `gpuwarden cleanup history --items` shows the ids."""
    config = load_config(config_path)
    _act(config, f"/v1/cleanup/restore/{quote(trash_id, safe='')}", {"by": user_name()}, lang, as_json)


@cleanup.command()
@click.argument("node")
@click.argument("gpu")
@lang_option
@config_option
@json_option
def release(node: str, gpu: str, lang: str | None, config_path: str | None, as_json: bool) -> None:
    """Release a GPU (index or uuid) of a NODE that is held without use: by an idle or dead pod, or an orphan."""
    config = load_config(config_path)
    _act(config, "/v1/cleanup/release", {"node": node, "gpu": gpu, "by": user_name()}, lang, as_json)


def _act(config: Config, path: str, request: dict[str, str], lang: str | None, as_json: bool) -> None:
    """Request an action and show its outcome. Exit code 1 unless every item succeeded."""
    from monitor.cleanup.journal_records import ItemState
    from monitor.cli.ask import call_daemon
    from monitor.present import cleanup as cleanup_tables
    from monitor.present.cleanup import ShownRun

    shown: ShownRun = or_exit(lambda: call_daemon(config, "POST", path, ShownRun, request, ACTION_TIMEOUT_SECONDS))
    show(shown, as_json, cleanup_tables.items_table(shown, language(lang)), lang=lang)
    sys.exit(0 if shown.items and all(item.state is ItemState.DONE for item in shown.items) else PROBLEM_EXIT_CODE)


def _to_scan(config: Config, policy: str | None) -> list[str]:
    """Dataset policies among the selected ones: their plan needs a scan."""
    policies = config.daemon.cleanup.policies
    return [each.name for each in policies if each.kind == DATASETS and policy in (None, each.name)]


def _started_text(policy: str, nodes: tuple[str, ...], lang: str) -> str:
    """Where a policy has begun to run."""
    from monitor.i18n import say
    from monitor.present.table import table_list

    if not nodes:
        return say(lang, "cli.cleanup.started-nowhere", {"policy": policy})
    if nodes == (WHOLE_CLUSTER,):
        return say(lang, "cli.cleanup.started-cluster", {"policy": policy})
    return say(lang, "cli.cleanup.started", {"policy": policy, "nodes": table_list(lang, nodes)})


def _scan(config: Config, policy: str, lang: str, *, quiet: bool) -> None:
    """Scan the root of a policy and show the progress. Ctrl-C stops the scan."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from monitor.cleanup.execute.scanner import ScanProgress
    from monitor.cli.ask import call_daemon
    from monitor.i18n import say

    path = f"/v1/cleanup/scan?{urlencode({'policy': policy})}"
    scan = or_exit(lambda: call_daemon(config, "POST", "/v1/cleanup/scan", ScanProgress, {"policy": policy}))
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=quiet) as bar:
        task = bar.add_task(scan_text(scan, lang), total=None)
        try:
            while scan.finished_at is None:
                time.sleep(POLL_SECONDS)
                scan = or_exit(lambda: call_daemon(config, "GET", path, ScanProgress))
                bar.update(task, description=scan_text(scan, lang))
        except KeyboardInterrupt:
            or_exit(lambda: call_daemon(config, "POST", "/v1/cleanup/scan/stop", dict[str, bool], {"policy": policy}))
            raise
    if scan.error is not None:
        values = {"root": scan.root, "node": scan.node, "error": scan.error}
        click.echo(f"gpuwarden: {say(lang, 'cli.cleanup.not-scanned', values)}", err=True)


def scan_text(progress: ScanProgress, lang: str) -> str:
    """What a scan reads, and how much it has read."""
    from monitor.i18n import Value, say

    values: dict[str, Value] = {"root": progress.root, "node": progress.node}
    entries = progress.counts.get(ENTRIES)
    if entries is None:
        return say(lang, "cli.cleanup.scanning", values)
    return say(lang, "cli.cleanup.scanning-entries", values | {"entries": entries})
