"""English: the summary of a configuration, and the questions of `gpuwarden init`."""

from __future__ import annotations

_SUMMARY = {
    "zone": "Time zone: {zone}, where it is {now}.",
    "agent": (
        "Agent: node {node}, on {listen} with a token, {running} of {collectors:collector|collectors}, "
        "{mounts:mount|mounts}, {registries:registry|registries}."
    ),
    "agent-without-token": (
        "Agent: node {node}, on {listen} without a token, {running} of {collectors:collector|collectors}, "
        "{mounts:mount|mounts}, {registries:registry|registries}."
    ),
    "page": "Page: on {listen}; log level {level}.",
    "receivers": "Alerts: to {names}.",
    "no-receivers": "Alerts: not sent, because no receiver is configured.",
    "cleanup": "Cleanup: {policy} ({kind}, {mode}), next run {next}.",
    "cleanup-high": "Cleanup: {policy} ({kind}, {mode}), runs when a disk is fuller than {high:percent}.",
    "cleanup-both": (
        "Cleanup: {policy} ({kind}, {mode}), next run {next}, and when a disk is fuller than {high:percent}."
    ),
    "no-cleanup": "Cleanup: no policy is configured.",
    "report": "Report: to {names}, next one {next}.",
    "report-to-no-receiver": "Report: not sent, because no receiver is configured.",
    "no-report": "Report: not scheduled.",
    "digest": "Digest of alerts: next one {next}.",
    "maintenance": "Maintenance: next window {next}, for {length:duration}.",
}

WORDS: dict[str, str] = {f"config.{key}": text for key, text in _SUMMARY.items()}
