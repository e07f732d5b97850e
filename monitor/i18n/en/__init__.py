"""English."""

from __future__ import annotations

from monitor.i18n.en import (
    access,
    alerts,
    cleanup,
    cleanup_runs,
    commands,
    crashes,
    demo,
    device_claims,
    doctor,
    findings_conditions,
    findings_gpu,
    findings_gpu_health,
    findings_images,
    findings_kernel,
    findings_logs,
    findings_monitor,
    findings_nodes,
    findings_pods,
    findings_storage,
    fits,
    images,
    incident,
    job_results,
    keep,
    log_tails,
    nodes,
    page,
    page_charts,
    page_work,
    queues,
    report,
    running,
    scheduling,
    setup,
    starting,
    tables,
)

WORDS = (
    queues.WORDS
    | nodes.WORDS
    | scheduling.WORDS
    | device_claims.WORDS
    | images.WORDS
    | starting.WORDS
    | crashes.WORDS
    | log_tails.WORDS
    | running.WORDS
    | fits.WORDS
)
FINDINGS = (
    findings_gpu.WORDS
    | findings_gpu_health.WORDS
    | findings_images.WORDS
    | findings_pods.WORDS
    | findings_logs.WORDS
    | findings_storage.WORDS
    | findings_nodes.WORDS
    | findings_conditions.WORDS
    | findings_kernel.WORDS
    | findings_monitor.WORDS
)
ALERTS = alerts.WORDS | job_results.WORDS
CLEANUP = cleanup.WORDS | cleanup_runs.WORDS
REPORT = report.WORDS | incident.WORDS
ACCESS = access.WORDS | keep.WORDS
DOCTOR = doctor.WORDS
SETUP = setup.WORDS | demo.WORDS
PAGE = page.WORDS | page_charts.WORDS | page_work.WORDS
TABLES = tables.WORDS | commands.WORDS
