"""A pod that runs: well, idle, waiting for data, silent, or on a card that is ill."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.explain import crash
from monitor.explain.fit import requested_gpus
from monitor.explain.keys import Key
from monitor.explain.model import PodDiagnosis, PodStatus
from monitor.explain.quote import quote
from monitor.facts.cluster import GpuState, GpuView
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.kube import PodFact
from monitor.facts.node import NodeSnapshot
from monitor.facts.text import Text, Value
from monitor.facts.workload import LogFact

LOG_STOPPED_SECONDS = 1800.0  # a log that has not grown for so long, while the cards work, has stopped
LOG_EMPTY_SECONDS = 600.0
LOW_USE_RATIO = 0.3
CPU_AT_LIMIT_RATIO = 0.9
SHM_NEARLY_FULL_RATIO = 0.85


def running(pod: PodFact, facts: ClusterFacts, now: float) -> PodDiagnosis:
    """Given a pod that runs, return whether it does anything, with the figures."""
    node = facts.node_by_name.get(pod.node or "")
    if node is not None and node.ready is not True:
        advice = (Text(Key.NODE_BACK_ADVICE, {"nodes": node.name}),)
        return PodDiagnosis(
            PodStatus.RUNNING, "node-not-ready", Text(Key.RUNNING_NODE_DOWN, _where(pod)), advice=advice
        )
    requested, cards = requested_gpus(pod, facts), facts.cards.get(pod.uid, ())
    if not requested and not cards:
        return PodDiagnosis(PodStatus.RUNNING, "running", Text(Key.RUNNING, _where(pod)), tuple(_restarts(pod)))
    if not cards or all(card.state is GpuState.UNKNOWN for card in cards):
        return _not_seen(pod, requested, facts)
    return (
        _ill(pod, cards) or _idle(pod, cards, facts, now) or _silent(pod, cards, facts, now) or _busy(pod, cards, facts)
    )


def _where(pod: PodFact) -> dict[str, Value]:
    return {"pod": pod.name, "namespace": pod.namespace, "node": pod.node or "?"}


def _not_seen(pod: PodFact, requested: int, facts: ClusterFacts) -> PodDiagnosis:
    """Its cards cannot be seen: say so instead of guessing."""
    values = _where(pod) | {"gpus": requested}
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


def _ill(pod: PodFact, cards: Sequence[GpuView]) -> PodDiagnosis | None:
    ill = [card for card in cards if card.state in (GpuState.FAULTY, GpuState.WEDGED)]
    if not ill:
        return None
    what = (
        ", ".join(sorted({_symptom(evidence.key, evidence.values) for card in ill for evidence in card.evidence}))
        or "?"
    )
    values = _where(pod) | {"count": len(ill), "cards": ", ".join(str(card.index) for card in ill), "what": quote(what)}
    key, advice = Key.CARD_FAULTY, Key.CARD_FAULTY_ADVICE
    if all(card.state is GpuState.WEDGED for card in ill):
        key, advice = Key.CARD_WEDGED, Key.CARD_WEDGED_ADVICE
    return PodDiagnosis(
        PodStatus.RUNNING, f"gpu-{ill[0].state.value}", Text(key, values), advice=(Text(advice, values),)
    )


def _symptom(what: str, values: dict[str, Value]) -> str:
    detail = values.get("code") or values.get("state") or values.get("action")
    return f"{what} {detail}" if detail else what


def _idle(pod: PodFact, cards: Sequence[GpuView], facts: ClusterFacts, now: float) -> PodDiagnosis | None:
    """Return that none of its cards does anything, for long enough to be said aloud or only just."""
    if any(card.idle_since is None for card in cards):
        return None
    since = max(card.idle_since or now for card in cards)
    values = _where(pod) | {"gpus": len(cards), "seconds": max(0.0, now - since), "user": facts.user(pod)}
    memory = sum(card.memory_used_bytes or 0 for card in cards)
    held = (Text(Key.IDLE_MEMORY, {"size": memory}),) if memory else ()
    if all(card.state is GpuState.IDLE_HELD for card in cards):
        advice = Text(Key.IDLE_ADVICE, values)
        return PodDiagnosis(
            PodStatus.IDLE, "idle", Text(Key.IDLE, values), (*held, *_cpu_at_limit(pod, facts)), (advice,)
        )
    evidence = (*held, *_cpu_at_limit(pod, facts), *_restarts(pod))
    return PodDiagnosis(PodStatus.RUNNING, "waiting", Text(Key.IDLE_JUST_NOW, values), evidence, ())


def _silent(pod: PodFact, cards: Sequence[GpuView], facts: ClusterFacts, now: float) -> PodDiagnosis | None:
    """Return that the cards work and the log says nothing: empty all the time, or stopped."""
    started = [
        status.started_at
        for status in pod.statuses
        if status.state == "running" and not status.init and status.started_at
    ]
    logs = _logs(pod, facts.snapshots.get(pod.node or ""))
    if not logs or not started or not any(card.utilization_ratio for card in cards):
        return None
    age = now - min(started)
    values = _where(pod)
    advice = (Text(Key.SILENT_ADVICE, values),)
    if age > LOG_EMPTY_SECONDS and all(log.size_bytes == 0 for log in logs):
        return PodDiagnosis(
            PodStatus.SILENT,
            "log-empty",
            Text(Key.LOG_EMPTY, values | {"seconds": age}),
            tuple(_use(pod, cards, facts)),
            advice,
        )
    written = [log.written_at for log in logs if log.written_at is not None]
    if len(written) == len(logs) and now - max(written) > LOG_STOPPED_SECONDS:
        values |= {"seconds": now - max(written)}
        return PodDiagnosis(
            PodStatus.SILENT, "log-stopped", Text(Key.LOG_STOPPED, values), tuple(_use(pod, cards, facts)), advice
        )
    return None


def _logs(pod: PodFact, snapshot: NodeSnapshot | None) -> list[LogFact]:
    ids = {status.container_id for status in pod.statuses if status.state == "running" and not status.init}
    logs = [log for log in (snapshot.logs or ()) if log.container_id in ids] if snapshot else []
    return logs if len(logs) == len(ids) and all(log.error is None for log in logs) else []


def _busy(pod: PodFact, cards: Sequence[GpuView], facts: ClusterFacts) -> PodDiagnosis:
    """Return the figures, and what may slow it down if they are low. A full /dev/shm is said in any case."""
    ratios = [card.utilization_ratio for card in cards if card.utilization_ratio is not None]
    mean = sum(ratios) / len(ratios) if ratios else None
    unused = sum(card.state is GpuState.IDLE_HELD for card in cards)
    shm = tuple(_shm_full(pod, facts))
    evidence = (*_use(pod, cards, facts), *_restarts(pod), *shm)
    advice = [Text(Key.CRASH_SHM_ADVICE)] if shm else []
    values = _where(pod) | {"gpus": len(cards), "unused": unused, "ratio": mean or 0.0}
    if unused:
        advice.append(Text(Key.PARTLY_IDLE_ADVICE, values))
        return PodDiagnosis(PodStatus.RUNNING, "partly-idle", Text(Key.PARTLY_IDLE, values), evidence, tuple(advice))
    if mean is None or mean >= LOW_USE_RATIO:
        return PodDiagnosis(PodStatus.RUNNING, "busy", Text(Key.BUSY, values), evidence, tuple(advice))
    cpu = tuple(_cpu_at_limit(pod, facts))
    if not cpu and not shm:
        advice.append(Text(Key.LOW_USE_ADVICE))
    return PodDiagnosis(PodStatus.RUNNING, "low-use", Text(Key.LOW_USE, values), (*evidence, *cpu), tuple(advice))


def _use(pod: PodFact, cards: Sequence[GpuView], facts: ClusterFacts) -> Iterable[Text]:
    ratios = [card.utilization_ratio for card in cards if card.utilization_ratio is not None]
    used = [card.memory_used_bytes for card in cards if card.memory_used_bytes is not None]
    if ratios and used:
        yield Text(Key.GPU_USE, {"ratio": sum(ratios) / len(ratios), "size": sum(used)})
    view = next((pod_view for pod_view in (facts.view.pods if facts.view else ()) if pod_view.uid == pod.uid), None)
    if view is not None and view.usage.cpu_cores is not None and view.usage.memory_bytes is not None:
        yield Text(Key.HOST_USE, {"cores": round(view.usage.cpu_cores, 1), "memory": view.usage.memory_bytes})


def _cpu_at_limit(pod: PodFact, facts: ClusterFacts) -> Iterable[Text]:
    """Yield that its CPU is at the limit: then the cards wait for it."""
    snapshot, ids = facts.snapshots.get(pod.node or ""), _containers(pod)
    for use in (snapshot.container_usage or ()) if snapshot else ():
        cores, limit = use.cpu_cores, use.cpu_limit_cores
        if use.container_id in ids and cores and limit and cores >= CPU_AT_LIMIT_RATIO * limit:
            yield Text(Key.CPU_AT_LIMIT, {"cores": round(cores, 1), "limit": round(limit, 1)})


def _shm_full(pod: PodFact, facts: ClusterFacts) -> Iterable[Text]:
    """Yield that a /dev/shm of its is nearly full, and how large it may be."""
    snapshot, ids = facts.snapshots.get(pod.node or ""), _containers(pod)
    for shm in (snapshot.shm or ()) if snapshot else ():
        if shm.container_id in ids and shm.size_bytes and shm.used_bytes >= SHM_NEARLY_FULL_RATIO * shm.size_bytes:
            yield Text(Key.SHM_NEARLY_FULL, {"used": shm.used_bytes, "size": shm.size_bytes})
            yield crash.shm_size(pod)


def _containers(pod: PodFact) -> set[str]:
    return {status.container_id for status in pod.statuses if status.container_id}
