"""The golden files: name and producer of each, independent of clock, machine and locale."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.golden import (
    capture_cli,
    capture_config,
    capture_metrics,
    capture_names,
    capture_receivers,
    capture_schemas,
    capture_state,
)

FILES = Path(__file__).parent / "files"
UPDATE = "python -m tests.golden --update"
GOLDEN: Mapping[str, Callable[[], str]] = {
    "agent.prom": capture_metrics.agent_metrics,
    "agent-metrics.txt": capture_metrics.agent_names,
    "agent-pages.json": capture_schemas.agent_pages,
    "agent-state-files.txt": capture_state.agent_files,
    "daemon.prom": capture_metrics.daemon_metrics,
    "daemon-metrics.txt": capture_metrics.daemon_names,
    "daemon-areas.txt": capture_metrics.daemon_areas,
    "openapi.json": capture_schemas.openapi,
    "openapi-components.txt": capture_schemas.openapi_components,
    "routes.txt": capture_schemas.routes,
    "snapshot.json": capture_schemas.snapshot,
    "snapshot.schema.json": capture_schemas.snapshot_schema,
    "actions.schema.json": capture_schemas.action_schemas,
    "callback.schema.json": capture_schemas.callback_schema,
    "kept.schema.json": capture_schemas.kept_schemas,
    "config.schema.json": capture_config.schema,
    "config-variables.txt": capture_config.variable_names,
    "config-errors.json": capture_config.errors,
    "cli-help.txt": capture_cli.helps,
    "cli-parameters.json": capture_cli.parameters,
    "databases.sql": capture_state.databases,
    "findings.json": capture_state.findings_file,
    "view.json": capture_state.view_file,
    "lease.json": capture_state.lease,
    "rules.json": capture_names.rules,
    "receivers.txt": capture_names.receivers,
    "collectors.txt": capture_names.collectors,
    "words.txt": capture_names.words,
    "wecom.sent.json": capture_receivers.wecom,
    "wecom-text.sent.json": capture_receivers.wecom_text,
    "dingtalk.sent.json": capture_receivers.dingtalk,
    "feishu.sent.json": capture_receivers.feishu,
    "slack.sent.json": capture_receivers.slack,
    "webhook.sent.json": capture_receivers.webhook,
    "alertmanager.sent.json": capture_receivers.alertmanager,
    "mail.sent.json": capture_receivers.mail,
    "console.sent.json": capture_receivers.console,
    "apprise.sent.json": capture_receivers.apprise,
    "template.json": capture_receivers.template,
}


def update() -> None:
    """Write every golden file and remove obsolete ones."""
    FILES.mkdir(exist_ok=True)
    for path in FILES.iterdir():
        if path.name not in GOLDEN:
            path.unlink()
    for name, produce in GOLDEN.items():
        (FILES / name).write_text(produce(), encoding="utf-8", newline="")


def stored(name: str) -> str:
    """Text of a golden file on disk; empty if absent."""
    path = FILES / name
    return path.read_bytes().decode() if path.exists() else ""


def difference(name: str, before: str, after: str) -> str:
    """Unified diff; empty if both texts are equal."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"{name} before", f"{name} now", lineterm="")
    return "\n".join(lines) or ("" if before == after else f"{name}: only line ends differ")
