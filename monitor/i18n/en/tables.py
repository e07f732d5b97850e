"""English: headings and words of the tables in the terminal. The English word is the key."""

from __future__ import annotations

_HEADINGS = (
    "node", "model", "state", "free", "GPUs", "GPU states", "source", "reason", "for", "GPU", "held by", "evidence",
    "pods", "resource", "used", "pod", "user", "queue", "why", "largest job on one node", "where", "GPUs used",
    "GPUs waiting", "util", "GPU memory", "job", "CPU cores", "memory", "shm", "disk", "severity", "rule", "subject",
    "headline", "phase", "notified", "id", "matchers", "author", "comment", "at", "at (UTC)", "event", "receiver",
    "group", "took", "attempts", "response", "kind", "result", "name", "every", "message", "#", "temp", "power",
    "processes", "mount", "device", "type", "role", "size", "used %", "inodes %", "container", "runtime", "version",
    "root", "images", "image", "containers", "code", "gpu", "count", "last", "path", "address", "WHAT", "OWNER",
    "FREES", "RISK", "WHEN", "WHY", "WHEN (UTC)", "POLICY", "NODE", "TRIGGER", "END", "DONE", "LEFT", "FAILED",
    "FREED", "STATE", "OUTCOME", "TRASH ID", "MESSAGE", "Nodes", "Failing sources", "GPUs that need attention",
    "Shared GPUs", "Shares of GPUs and other accelerators", "Pending pods", "Free GPUs", "Queues", "Users",
    "Findings", "Alerts", "Silences", "History", "Deliveries", "Test messages", "Collectors", "Disks",
    "Shared memory (/dev/shm)", "Image caches", "Largest images", "GPU errors (XID)", "Expected mounts",
    "Registries", "CLEANUP", "CLEANUP RUNS", "no findings", "no alert is firing", "no active silences", "no events",
    "no deliveries", "no receivers configured", "nothing has run yet", "nothing to do", "nothing was done",
    "no nodes known: neither Kubernetes nor an agent responds", "firing", "pending", "resolved", "ok", "not ready",
    "cordoned", "no agent", "accepted", "failed", "active", "done", "refused", "later",
    "unknown: no daemon answers, or it has not evaluated its rules yet; start one with gpuwarden daemon",
)  # fmt: skip
_REMARKS: dict[str, str] = {
    "table.first": "the first {shown} of {count}",
    "table.explained": "{count} more explained by these",
    "table.titled": "{title} ({remarks})",
}

_TOP: dict[str, str] = {
    "top.summary": "{nodes:node|nodes}, {gpus:GPU|GPUs}: {states}",
    "top.state": "{count} {state}",
    "top.mean": "mean utilisation {ratio:percent}",
    "top.alerts": "{critical} critical, {warnings:warning|warnings}, {info} info: {headline}",
    "top.calm": "No alert is firing.",
    "top.blind": "Alerts are unknown: no daemon answers.",
    "top.sources": "Failing sources: {names}",
    "top.keys": "q:quit tab:nodes n:name u:util m:mem t:temp p:power o:user s:state r:reverse",
    "top.shown": "{first}-{last} of {count}, by {key}",
    "top.silent": "No answer for {seconds:duration}: {error}",
}

WORDS: dict[str, str] = {f"table.{heading}": heading for heading in _HEADINGS} | _REMARKS | _TOP
