"""Running pods: busy, idle, waiting for data, silent, or on an unhealthy GPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.explain import crash
from monitor.explain.fit import gpu_request, gpus_in_words, requested_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus, pod_values, running_containers
from monitor.explain.quote import quote
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.gpu_requests import whole_gpus
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Evidence, Text, Value
from monitor.facts.workload import ContainerUsageFact, LogFact

LOG_STOPPED_SECONDS = 1800.0  # without log output while the GPUs are busy
LOG_EMPTY_SECONDS = 600.0
LOW_USE_RATIO = 0.3
CPU_AT_LIMIT_RATIO = 0.9
SHM_NEARLY_FULL_RATIO = 0.85


def running(pod: PodFact, facts: ClusterFacts, now: float) -> PodDiagnosis:
    """Diagnosis of a running pod, with utilization figures."""
    node = facts.node_by_name.get(pod.node or "")
    if node is not None and node.ready is not True:
        advice = (Text(Key.NODE_BACK_ADVICE, {"nodes": node.name}),)
        return PodDiagnosis(
            PodStatus.RUNNING, "node-not-ready", Text(Key.RUNNING_NODE_DOWN, pod_values(pod)), advice=advice
        )
    requested, gpus = requested_gpus(pod, facts), facts.gpus_by_pod.get(pod.uid, ())
    if not requested and not gpus:
        return PodDiagnosis(PodStatus.RUNNING, "running", Text(Key.RUNNING, pod_values(pod)), tuple(_restarts(pod)))
    if not gpus or all(gpu.state is GpuState.UNKNOWN for gpu in gpus):
        return _not_seen(pod, facts)
    return (
        _unhealthy(pod, gpus)
        or _idle(pod, gpus, facts, now)
        or _silent(pod, gpus, facts, now)
        or _busy(pod, gpus, facts)
    )


def _held(pod: PodFact, gpus: Sequence[GpuView], facts: ClusterFacts) -> Value:
    """What the pod holds: as many GPUs as are seen, or the shares of them that it requested."""
    whole = whole_gpus(gpu_request(pod, facts), facts.resource) or not requested_gpus(pod, facts)
    return len(gpus) if whole else gpus_in_words(pod, facts)


def _not_seen(pod: PodFact, facts: ClusterFacts) -> PodDiagnosis:
    """The pod's GPUs are not visible: report that instead of guessing."""
    values = pod_values(pod) | {"gpus": gpus_in_words(pod, facts)}
    node = facts.view_of_node.get(pod.node or "")
    why = Key.AGENT_SILENT if node and node.silent_since is not None else Key.CARDS_UNKNOWN
    advice = (Text(Key.AGENT_ADVICE, values),)
    return PodDiagnosis(
        PodStatus.RUNNING, "not-seen", Text(Key.RUNNING_NOT_SEEN, values), (Text(why, values), *_restarts(pod)), advice
    )


def _restarts(pod: PodFact) -> Iterable[Text]:
    for status in pod.statuses:
        if status.restart_count and status.last is not None and status.last.exit_code:
            values: dict[str, Value] = {"container": status.name, "restarts": status.restart_count}
            yield Text(Key.RESTARTED_BEFORE, values | {"code": status.last.exit_code})


def _unhealthy(pod: PodFact, gpus: Sequence[GpuView]) -> PodDiagnosis | None:
    unhealthy = [gpu for gpu in gpus if gpu.state in (GpuState.FAULTY, GpuState.WEDGED)]
    if not unhealthy:
        return None
    symptoms = {_symptom(evidence) for gpu in unhealthy for evidence in gpu.evidence}
    values = pod_values(pod) | {
        "count": len(unhealthy),
        "cards": ", ".join(str(gpu.index) for gpu in unhealthy),
        "what": quote(", ".join(sorted(symptoms)) or "?"),
    }
    key, advice = Key.CARD_FAULTY, Key.CARD_FAULTY_ADVICE
    if all(gpu.state is GpuState.WEDGED for gpu in unhealthy):
        key, advice = Key.CARD_WEDGED, Key.CARD_WEDGED_ADVICE
    return PodDiagnosis(
        PodStatus.RUNNING, f"gpu-{unhealthy[0].state.value}", Text(key, values), advice=(Text(advice, values),)
    )


def _symptom(evidence: Evidence) -> str:
    values = evidence.values
    detail = values.get("code") or values.get("state") or values.get("action")
    return f"{evidence.key} {detail}" if detail else evidence.key


def _idle(pod: PodFact, gpus: Sequence[GpuView], facts: ClusterFacts, now: float) -> PodDiagnosis | None:
    """Diagnosis if all GPUs are idle: long enough to report, or only recently."""
    if any(gpu.idle_since is None for gpu in gpus):
        return None
    since = max(gpu.idle_since or now for gpu in gpus)
    values = pod_values(pod) | {
        "gpus": _held(pod, gpus, facts),
        "seconds": max(0.0, now - since),
        "user": facts.user(pod),
    }
    memory = sum(gpu.memory_used_bytes or 0 for gpu in gpus)
    held = (Text(Key.IDLE_MEMORY, {"size": memory}),) if memory else ()
    if facts.identity(pod).inference:
        advice = Text(Key.SERVICE_WAITS_ADVICE, values)
        return PodDiagnosis(
            PodStatus.RUNNING,
            "waiting-for-requests",
            Text(Key.SERVICE_WAITS, values),
            (*held, *_restarts(pod)),
            (advice,),
        )
    if all(gpu.state is GpuState.IDLE_HELD for gpu in gpus):
        advice = Text(Key.IDLE_ADVICE, values)
        return PodDiagnosis(
            PodStatus.IDLE, "idle", Text(Key.IDLE, values), (*held, *_cpu_at_limit(pod, facts)), (advice,)
        )
    evidence = (*held, *_cpu_at_limit(pod, facts), *_restarts(pod))
    return PodDiagnosis(PodStatus.RUNNING, "waiting", Text(Key.IDLE_JUST_NOW, values), evidence, ())


def _silent(pod: PodFact, gpus: Sequence[GpuView], facts: ClusterFacts, now: float) -> PodDiagnosis | None:
    """Diagnosis if the GPUs are busy but the log is empty or has stopped growing."""
    started = [status.started_at for status in running_containers(pod) if status.started_at]
    logs = _logs(pod, facts.snapshots.get(pod.node or ""))
    if not logs or not started or not any(gpu.utilization_ratio for gpu in gpus):
        return None
    age = now - min(started)
    values = pod_values(pod)
    advice = (Text(Key.SILENT_ADVICE, values),)
    evidence = tuple(_use(pod, gpus, facts))
    if age > LOG_EMPTY_SECONDS and all(log.size_bytes == 0 for log in logs):
        headline = Text(Key.LOG_EMPTY, values | {"seconds": age})
        return PodDiagnosis(PodStatus.SILENT, "log-empty", headline, evidence, advice)
    written = [log.written_at for log in logs if log.written_at is not None]
    if len(written) == len(logs) and now - max(written) > LOG_STOPPED_SECONDS:
        values |= {"seconds": now - max(written)}  # in place: the advice has the same values
        return PodDiagnosis(PodStatus.SILENT, "log-stopped", Text(Key.LOG_STOPPED, values), evidence, advice)
    return None


def _logs(pod: PodFact, snapshot: NodeSnapshot | None) -> list[LogFact]:
    ids = {status.container_id for status in running_containers(pod)}
    logs = [log for log in (snapshot.logs or ()) if log.container_id in ids] if snapshot else []
    return logs if len(logs) == len(ids) and all(log.error is None for log in logs) else []


def _busy(pod: PodFact, gpus: Sequence[GpuView], facts: ClusterFacts) -> PodDiagnosis:
    """Diagnosis with figures, and likely bottlenecks if utilization is low. A full /dev/shm is always reported."""
    ratios = [gpu.utilization_ratio for gpu in gpus if gpu.utilization_ratio is not None]
    mean = sum(ratios) / len(ratios) if ratios else None
    unused = sum(gpu.state is GpuState.IDLE_HELD for gpu in gpus)
    shm, inference = tuple(_shm_full(pod, facts)), facts.identity(pod).inference
    service = (Text(Key.IS_SERVICE),) if inference else ()
    evidence = (*service, *_use(pod, gpus, facts), *_restarts(pod), *shm)
    advice = [Text(Key.CRASH_SHM_ADVICE)] if shm else []
    values = pod_values(pod) | {"gpus": len(gpus), "unused": unused, "ratio": mean or 0.0}
    if unused and not inference:
        advice.append(Text(Key.PARTLY_IDLE_ADVICE, values))
        return PodDiagnosis(PodStatus.RUNNING, "partly-idle", Text(Key.PARTLY_IDLE, values), evidence, tuple(advice))
    values = values | {"gpus": _held(pod, gpus, facts)}
    if mean is None or mean >= LOW_USE_RATIO or inference:
        return PodDiagnosis(PodStatus.RUNNING, "busy", Text(Key.BUSY, values), evidence, tuple(advice))
    cpu = tuple(_cpu_at_limit(pod, facts))
    if not cpu and not shm:
        advice.append(Text(Key.LOW_USE_ADVICE))
    return PodDiagnosis(PodStatus.RUNNING, "low-use", Text(Key.LOW_USE, values), (*evidence, *cpu), tuple(advice))


def _use(pod: PodFact, gpus: Sequence[GpuView], facts: ClusterFacts) -> Iterable[Text]:
    ratios = [gpu.utilization_ratio for gpu in gpus if gpu.utilization_ratio is not None]
    used = [gpu.memory_used_bytes for gpu in gpus if gpu.memory_used_bytes is not None]
    if ratios and used:
        yield Text(Key.GPU_USE, {"ratio": sum(ratios) / len(ratios), "size": sum(used)})
    usage = _container_usage(pod, facts.snapshots.get(pod.node or ""))
    cores = [use.cpu_cores for use in usage if use.cpu_cores is not None]
    memory = [use.memory_bytes for use in usage if use.memory_bytes is not None]
    if cores and memory:
        yield Text(Key.HOST_USE, {"cores": round(sum(cores), 1), "memory": sum(memory)})


def _container_usage(pod: PodFact, snapshot: NodeSnapshot | None) -> list[ContainerUsageFact]:
    ids = {container.id for container in snapshot.containers or () if container.pod_uid == pod.uid} if snapshot else ()
    return [use for use in (snapshot.container_usage or ()) if use.container_id in ids] if snapshot else []


def _cpu_at_limit(pod: PodFact, facts: ClusterFacts) -> Iterable[Text]:
    """Containers at their CPU limit, which starves their GPUs."""
    snapshot, ids = facts.snapshots.get(pod.node or ""), _containers(pod)
    for use in (snapshot.container_usage or ()) if snapshot else ():
        cores, limit = use.cpu_cores, use.cpu_limit_cores
        if use.container_id in ids and cores and limit and cores >= CPU_AT_LIMIT_RATIO * limit:
            yield Text(Key.CPU_AT_LIMIT, {"cores": round(cores, 1), "limit": round(limit, 1)})


def _shm_full(pod: PodFact, facts: ClusterFacts) -> Iterable[Text]:
    """Containers with a nearly full /dev/shm, and its size limit."""
    snapshot, ids = facts.snapshots.get(pod.node or ""), _containers(pod)
    for shm in (snapshot.shm or ()) if snapshot else ():
        if shm.container_id in ids and shm.size_bytes and shm.used_bytes >= SHM_NEARLY_FULL_RATIO * shm.size_bytes:
            yield Text(Key.SHM_NEARLY_FULL, {"used": shm.used_bytes, "size": shm.size_bytes})
            yield crash.shm_size(pod)


def _containers(pod: PodFact) -> set[str]:
    return {status.container_id for status in pod.statuses if status.container_id}
