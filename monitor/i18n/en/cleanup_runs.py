"""English: what runs of cleanup tell: reports, notices to owners, announcements."""

from __future__ import annotations

_REPORT: dict[str, str] = {
    "cleanup.report.done": "{policy}: {freed:bytes} freed, {done:item|items} done, {left} skipped, {failed} failed.",
    "cleanup.report.dry-run": (
        "{policy} would process {count:item|items} and free {bytes:bytes}. This is a dry run: nothing was changed."
    ),
    "cleanup.report.release": (
        "{by} released GPU {gpu} of {node}: {done:item|items} done, {left} skipped, {failed} failed."
    ),
    "cleanup.report.disk": "Disk usage went from {before:percent} to {after:percent}.",
    "cleanup.report.item": "{name}: {bytes:bytes}.",
    "cleanup.report.kept": "Skipped: {name} ({outcome:code}).",
    "cleanup.report.failed": "Failed: {name} ({outcome:code}): {message}",
    "cleanup.end.done": "The plan is complete.",
    "cleanup.end.low-water": "It stopped at the low-water mark.",
    "cleanup.end.minutes": "It stopped at its time limit.",
    "cleanup.end.bytes": "It stopped at its byte limit.",
    "cleanup.end.errors": "It stopped after too many failures. See gpuwarden cleanup history.",
    "cleanup.end.unmeasured": "It stopped because the disk usage became unreadable.",
    "cleanup.end.lease-lost": "It stopped because another replica acts now: this one has lost the lease.",
    "cleanup.end.interrupted": (
        "The daemon was stopped in the middle of it; what was begun was asked for, nothing was done twice."
    ),
    "cleanup.report.advice": "See gpuwarden cleanup history.",
    "cleanup.report.dry-run.advice": "To apply it, set mode: enforce for {policy}.",
}

_NOTICE: dict[str, str] = {
    "cleanup.notice.datasets": (
        "{owner}: {count:dataset|datasets} ({bytes:bytes}) below "
        "{root} will be moved to the trash in {seconds:duration}."
    ),
    "cleanup.notice.gpus": "{owner}: {count:job|jobs} of yours will lose the GPU in {seconds:duration}.",
    "cleanup.notice.nobody": (
        "{count:item|items} of {policy} have no known owner; they will be cleaned up in {seconds:duration}."
    ),
    "cleanup.notice.item": "{name} ({bytes:bytes}, last used {seconds:duration} ago)",
    "cleanup.notice.datasets.advice": (
        "To keep a dataset, use it, or put a file named .keep into it. It can be restored from the trash for a while."
    ),
    "cleanup.notice.keep": "To keep it for now, open its link.",
    "cleanup.kept-by": "{name} keeps it for {seconds:duration}.",
    "cleanup.kept-by-because": "{name} keeps it for {seconds:duration}: {reason}",
    "cleanup.notice.gpus.advice": "To keep the GPU, use it; if the job is done, delete it.",
}

_ANNOUNCED: dict[str, str] = {
    "cleanup.announced": (
        "{policy} takes effect in {seconds:duration}. Current plan: {count:item|items}, {bytes:bytes}."
    ),
    "cleanup.announced.advice": "See gpuwarden cleanup plan. To stop it, set mode: dry-run for {policy}.",
}

_PLANS: dict[str, str] = {
    "cleanup.why.restore": "Requested by {by}.",
    "cleanup.why.retention": "The retention rules of {project} would remove {count:tag|tags} of {total}.",
    "cleanup.why.gc": "Unreferenced in {registry}: {blobs:blob|blobs}.",
    "cleanup.why.gc-bytes": "Unreferenced in {registry}: {bytes:bytes} in {blobs:blob|blobs}.",
    "cleanup.refused.not-scanned": "No plan yet: {root} on {node} has not been scanned since the daemon started.",
    "cleanup.refused.scan-failed": "No plan: scanning {root} on {node} failed: {error}",
    "cleanup.refused.not-tried": "No plan yet: {registry} has had no dry run since the daemon started.",
    "cleanup.refused.registry-failed": "No plan: querying {registry} failed: {error}",
}

_NAMES: dict[str, str] = {
    "rule.cleanup-report": "Cleanup report",
    "rule.cleanup-notice": "Upcoming cleanup",
    "rule.cleanup-announced": "Cleanup policy takes effect soon",
}

WORDS: dict[str, str] = _REPORT | _NOTICE | _ANNOUNCED | _PLANS | _NAMES
