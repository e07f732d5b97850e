"""English."""

from __future__ import annotations

from monitor.words.en import (
    alerts,
    cleanup,
    cleanup_runs,
    crashes,
    findings_gpu,
    findings_nodes,
    findings_pods,
    findings_storage,
    images,
    nodes,
    queues,
    report,
    running,
    starting,
)

WORDS = queues.WORDS | nodes.WORDS | images.WORDS | starting.WORDS | crashes.WORDS | running.WORDS
FINDINGS = findings_gpu.WORDS | findings_pods.WORDS | findings_storage.WORDS | findings_nodes.WORDS
ALERTS = alerts.WORDS
CLEANUP = cleanup.WORDS | cleanup_runs.WORDS
REPORT = report.WORDS
