"""Why a card that a live pod has does nothing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from monitor.detect.base import RuleContext
from monitor.detect.lib.gpus import clock_skew
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuView
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

NOTEBOOK_PLATFORMS = ("jupyterhub", "kubeflow-notebook")
NOTEBOOK_KINDS = ("Notebook", "notebook")
LOG_STOPPED_SECONDS = 900.0  # a log that is still written to belongs to a job that does something


@dataclass(frozen=True)
class IdleCause:
    """A cause, and what it is concluded from."""

    cause: str
    evidence: tuple[Text, ...] = ()


def is_notebook(pod: PodFact, context: RuleContext) -> bool:
    """Return whether a person sits behind a pod, by the platform that made it."""
    who = context.facts.identity(pod)
    return who.platform in NOTEBOOK_PLATFORMS or who.workload_kind in NOTEBOOK_KINDS


def diagnose_idle(
    pod: PodFact,
    gpu: GpuView,
    context: RuleContext,
    agent: AgentFact | None,
    waiting: Mapping[str, float],
    io_wait_cores: float,
) -> IdleCause:
    """Given an idle card and its pod, return the likeliest reason that the facts allow."""
    if is_notebook(pod, context):
        return IdleCause("idle-notebook")
    if evidence := _waits(pod, gpu, agent, waiting, io_wait_cores):
        return IdleCause("waiting-for-data", evidence)
    quiet = _seconds_since_log(pod, agent, context.now)
    # A job that has closed the card is through with it, or never began: what hangs still holds it.
    if quiet is not None and quiet >= LOG_STOPPED_SECONDS and gpu.pids:
        return IdleCause("hung-job", (Text(key="gpu-idle.log-stopped", values={"seconds": quiet}),))
    return IdleCause("idle-job")


def _waits(
    pod: PodFact, gpu: GpuView, agent: AgentFact | None, waiting: Mapping[str, float], io_wait_cores: float
) -> tuple[Text, ...]:
    """Return that one of the pod's processes waits for a disk or a NAS right now, or that the node's CPUs do."""
    snapshot = agent.snapshot if agent else None
    for process in (snapshot.gpu_processes or ()) if snapshot else ():
        if process.pod_uid == pod.uid and process.state == "D":
            return (Text(key="gpu-idle.process-waits", values={"pid": process.pid, "process": process.name or "?"}),)
    cores = waiting.get(gpu.node, 0.0)
    return (Text(key="gpu-idle.node-waits", values={"cores": round(cores, 1)}),) if cores >= io_wait_cores else ()


def _seconds_since_log(pod: PodFact, agent: AgentFact | None, now: float) -> float | None:
    """Return for how long no container of a pod has logged; None if that is not known, or it never has."""
    snapshot = agent.snapshot if agent else None
    ids = {each.container_id for each in pod.statuses if each.state == "running" and not each.init}
    logs = [log for log in (snapshot.logs or ()) if log.container_id in ids] if snapshot else []
    written = [log.written_at for log in logs if log.written_at is not None and log.error is None and log.size_bytes]
    if not ids or len(logs) < len(ids) or any(log.error is not None for log in logs) or not written:
        return None
    return max(0.0, now - max(written) - clock_skew(agent))
