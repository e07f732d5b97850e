"""English: the one-line results of commands."""

from __future__ import annotations

_RESULTS = {
    "cleanup.started": "{policy} runs on {nodes}; see gpuwarden cleanup history",
    "cleanup.started-cluster": "{policy} runs; see gpuwarden cleanup history",
    "cleanup.started-nowhere": "{policy} applies to no node that has an agent; nothing was started",
    "cleanup.scanning": "scanning {root} on {node}",
    "cleanup.scanning-entries": "scanning {root} on {node}: {entries:entry|entries}",
    "cleanup.not-scanned": "{root} on {node} was not scanned: {error}",
    "silenced": "silenced until {until}; to end it: gpuwarden alerts unsilence {id}",
    "unsilenced": "silence {id} is ended",
    "no-receiver": "no receiver is configured; add one to daemon.alerts.receivers",
    "reloaded": "reloaded",
    "restart-needed": "{setting} has changed; restart the daemon to apply that",
    "reload-rejected": "rejected; the running configuration stays in use",
    "config-ok": "ok: {path}",
    "config-errors": "{count:error|errors}",
}

WORDS: dict[str, str] = {f"cli.{key}": text for key, text in _RESULTS.items()}
