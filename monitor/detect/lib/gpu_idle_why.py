"""Why a GPU held by a live pod is idle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from monitor.detect.base import RuleContext
from monitor.detect.visibility import clock_skew
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuView
from monitor.facts.kube import PodFact
from monitor.facts.text import Text

NOTEBOOK_PLATFORMS = ("jupyterhub", "kubeflow-notebook")
NOTEBOOK_KINDS = ("Notebook", "notebook")
LOG_STOPPED_SECONDS = 900.0  # a job that still logs does not hang


@dataclass(frozen=True)
class IdleCause:
    """A cause and its evidence."""

    cause: str
    evidence: tuple[Text, ...] = ()


def whole_minutes(seconds: float) -> float:
    """Seconds without the rest of a minute, so that a text does not change with every evaluation."""
    return seconds // 60 * 60


def is_notebook(pod: PodFact, context: RuleContext) -> bool:
    """Whether a pod is interactive, according to its platform."""
    identity = context.facts.identity(pod)
    return identity.platform in NOTEBOOK_PLATFORMS or identity.workload_kind in NOTEBOOK_KINDS


def is_inference(gpus: Iterable[GpuView], context: RuleContext) -> bool:
    """Whether GPUs belong to an inference service: it may wait for requests."""
    pods = context.facts.pod_by_uid
    held = {holder.pod_uid for gpu in gpus for holder in gpu.holders if holder.live}
    return any(context.facts.identity(pods[uid]).inference for uid in held if uid in pods)


def diagnose_idle(
    pod: PodFact,
    gpu: GpuView,
    context: RuleContext,
    agent: AgentFact | None,
    waiting: Mapping[str, float],
    io_wait_cores: float,
) -> IdleCause:
    """The most likely cause of an idle GPU that the facts support."""
    if is_notebook(pod, context):
        return IdleCause("idle-notebook")
    if evidence := _waits(pod, gpu, agent, waiting, io_wait_cores):
        return IdleCause("waiting-for-data", evidence)
    log_age = _seconds_since_log(pod, agent, context.now)
    # A job that has closed the GPU is done or has not begun; a hung job still holds it.
    if log_age is not None and log_age >= LOG_STOPPED_SECONDS and gpu.pids:
        age = whole_minutes(log_age)
        return IdleCause("hung-job", (Text(key="gpu-idle.log-stopped", values={"log_age": age}),))
    return IdleCause("idle-job")


def _waits(
    pod: PodFact, gpu: GpuView, agent: AgentFact | None, waiting: Mapping[str, float], io_wait_cores: float
) -> tuple[Text, ...]:
    """Evidence that a process of the pod waits for a disk or NAS now, or that the node's CPUs do."""
    snapshot = agent.snapshot if agent else None
    for process in (snapshot.gpu_processes or ()) if snapshot else ():
        if process.pod_uid == pod.uid and process.state == "D":
            return (Text(key="gpu-idle.process-waits", values={"pid": process.pid, "process": process.name or "?"}),)
    cores = waiting.get(gpu.node, 0.0)
    return (Text(key="gpu-idle.node-waits", values={"cores": round(cores, 1)}),) if cores >= io_wait_cores else ()


def _seconds_since_log(pod: PodFact, agent: AgentFact | None, now: float) -> float | None:
    """Seconds since any container of a pod logged; None if unknown or if it never did."""
    snapshot = agent.snapshot if agent else None
    ids = {status.container_id for status in pod.statuses if status.state == "running" and not status.init}
    logs = [log for log in (snapshot.logs or ()) if log.container_id in ids] if snapshot else []
    written = [log.written_at for log in logs if log.written_at is not None and log.error is None and log.size_bytes]
    if not ids or len(logs) < len(ids) or any(log.error is not None for log in logs) or not written:
        return None
    return max(0.0, now - max(written) - clock_skew(agent))
