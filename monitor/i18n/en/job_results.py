"""English: messages about how jobs ended."""

from __future__ import annotations

WORDS: dict[str, str] = {
    "rule.job-finished": "Job finished",
    "rule.job-failed": "Job failed",
    "rule.job-stopped": "Job stopped",
    "rule.job-not-started": "Job does not start",
    "job-finished.done": "The job has finished without an error.",
    "job-stopped.deleted": "It was deleted before it finished.",
    "job-stopped.unseen": "It is gone: it finished or was deleted while gpuwarden could not see it.",
    "job-result.gpu-hours": "It used {hours:GPU hour|GPU hours}.",
    "job-result.gpu-hours-used": "It used {hours:GPU hour|GPU hours}, at {ratio:percent} utilisation on average.",
    "job-result.pods": "All {count} pods are done.",
    "job-result.pod-of": "Of {count} pods, {pod} on {node} was the first.",
    "job-result.first-of": "Of {count} pods, {pod} on {node} failed first; {others:other|others} failed after it.",
}
