"""English: what runs of cleanup tell: reports, notices to owners, announcements."""

from __future__ import annotations

_REPORT: dict[str, str] = {
    "cleanup.report.done": "{policy}: {freed:bytes} freed, {done:item|items} done, {left} left alone, {failed} failed.",
    "cleanup.report.dry-run": (
        "{policy} would do {count:item|items} and free {bytes:bytes}. It is a dry run: nothing was done."
    ),
    "cleanup.report.release": (
        "{by} had GPU {gpu} of {node} released: {done:item|items} done, {left} left alone, {failed} failed."
    ),
    "cleanup.report.disk": "The disk was {before:percent} full and is {after:percent} full now.",
    "cleanup.report.item": "{name}: {bytes:bytes}.",
    "cleanup.report.kept": "Left alone: {name} ({outcome}).",
    "cleanup.report.failed": "Failed: {name} ({outcome}): {message}",
    "cleanup.end.done": "All of the plan was gone through.",
    "cleanup.end.low-water": "It stopped at the low-water mark.",
    "cleanup.end.minutes": "It stopped because its time was over.",
    "cleanup.end.bytes": "It stopped at its cap on bytes.",
    "cleanup.end.errors": "It stopped because too much failed. See gpuwarden cleanup history.",
    "cleanup.end.unmeasured": "It stopped because how full the disk is could not be read any more.",
    "cleanup.end.lease-lost": "It stopped because another replica acts now: this one has lost the lease.",
    "cleanup.end.interrupted": (
        "The daemon was stopped in the middle of it; what was begun was asked for, nothing was done twice."
    ),
    "cleanup.report.advice": "See gpuwarden cleanup history.",
    "cleanup.report.dry-run.advice": "To have it done, set mode: enforce for {policy}.",
}

_NOTICE: dict[str, str] = {
    "cleanup.notice.datasets": (
        "{owner}: {count:dataset|datasets} ({bytes:bytes}) below "
        "{root} will be moved to the trash in {seconds:duration}."
    ),
    "cleanup.notice.gpus": "{owner}: {count:job|jobs} of yours will lose the GPU in {seconds:duration}.",
    "cleanup.notice.nobody": (
        "{count:item|items} of {policy} have no owner that is known; they will be dealt with in {seconds:duration}."
    ),
    "cleanup.notice.item": "{name} ({bytes:bytes}, last used {seconds:duration} ago)",
    "cleanup.notice.datasets.advice": (
        "To keep one, use it, or put a file named .keep into it. From the trash it can be restored for a while."
    ),
    "cleanup.notice.gpus.advice": "To keep it, let it work; if it is done, delete it.",
}

_ANNOUNCED: dict[str, str] = {
    "cleanup.announced": (
        "{policy} will begin to act in {seconds:duration}. By its plan of now: {count:item|items}, {bytes:bytes}."
    ),
    "cleanup.announced.advice": "See gpuwarden cleanup plan. To stop it, set mode: dry-run for {policy}.",
}

_PLANS: dict[str, str] = {
    "cleanup.why.restore": "{by} asked for it.",
    "cleanup.why.retention": "The retention rules of {project} would remove {count:tag|tags} of {total}.",
    "cleanup.why.gc": "What no tag needs any more in {registry}: {blobs:blob|blobs}.",
    "cleanup.why.gc-bytes": "What no tag needs any more in {registry}: {bytes:bytes} in {blobs:blob|blobs}.",
    "cleanup.refused.not-scanned": (
        "There is no plan yet: {root} on {node} has not been scanned since the daemon started."
    ),
    "cleanup.refused.scan-failed": "There is no plan: {root} on {node} could not be scanned: {error}",
    "cleanup.refused.not-tried": (
        "There is no plan yet: {registry} has not been asked for a dry run since the daemon started."
    ),
    "cleanup.refused.registry-failed": "There is no plan: {registry} could not be asked: {error}",
}

_NAMES: dict[str, str] = {
    "rule.cleanup-report": "Cleanup report",
    "rule.cleanup-notice": "Cleanup ahead",
    "rule.cleanup-announced": "A cleanup policy will act",
}

WORDS: dict[str, str] = _REPORT | _NOTICE | _ANNOUNCED | _PLANS | _NAMES
