"""The cluster view as tables of text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping

from monitor.base.localtime import local_instant
from monitor.base.units import format_duration, format_ratio, format_size
from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder, NodeView, SourceView
from monitor.facts.text import Evidence
from monitor.i18n import say
from monitor.i18n.figures import brief_duration
from monitor.i18n.notes import sentence
from monitor.present.rows import ClusterIndex, evidence_texts, users_by_gpus, waiting_by_user, waiting_pods
from monitor.present.shares import gpus_cell, holder_share, queue_free, share_lines
from monitor.present.table import Rows, TextTable, make_limited_table, page_word, table_list, table_text, table_word

NORMAL_STATES = (GpuState.FREE, GpuState.BUSY)
# States that need attention, worst first; the GPUs of silent nodes are last, they would hide all others.
URGENCY = (*(state for state in GpuState if state not in (GpuState.UNKNOWN, *NORMAL_STATES)), GpuState.UNKNOWN)
MAX_NAMED_NODES = 8


def headline(view: ClusterView, timezone: str = "UTC", lang: str = "en") -> str:
    """One line: number of nodes, and of GPUs by state."""
    counts = Counter(gpu.state for gpu in view.gpus)
    named = [(counts[state], page_word(lang, "state", state.value)) for state in GpuState if counts[state]]
    states = [say(lang, "top.state", {"count": count, "state": state}) for count, state in named]
    return table_text(
        lang,
        "view",
        at=local_instant(view.at, timezone),
        nodes=len(view.nodes),
        gpus=len(view.gpus),
        states=table_list(lang, states) or table_text(lang, "none-seen"),
    )


def needs_attention(view: ClusterView) -> bool:
    """Whether a GPU is in an abnormal state or a source is failing."""
    return any(gpu.state not in NORMAL_STATES for gpu in view.gpus) or any(not source.ok for source in view.sources)


def tables(view: ClusterView, lang: str = "en") -> tuple[TextTable, ...]:
    """All tables of a view, without empty ones except that of the nodes. Headings and codes stay English."""
    optional = (
        _failing_sources(view, lang), _attention(view, lang), _shared(view, lang), _pending(view, lang),
        _free(view, lang), _shares(view, lang), _queues(view, lang), _users(view, lang),
    )  # fmt: skip
    return (_nodes(view, lang), *(table for table in optional if table.rows))


def _for(view: ClusterView, since: float | None, lang: str) -> str:
    """Duration until now; empty if the start is unknown."""
    return "" if since is None else brief_duration(max(0.0, view.at - since), lang)


def _failing_sources(view: ClusterView, lang: str) -> TextTable:
    """One row per reason: if the API server is down, all its resources fail for the same one."""
    sources = defaultdict(list)
    for source in view.sources:
        if not source.ok:
            sources[_common_reason(source_reason(source, lang))].append(source)
    rows: Rows = [
        (
            ", ".join(source.name for source in group),
            reason,
            _for(view, _oldest(source.since for source in group), lang),
        )
        for reason, group in sources.items()
    ]
    return make_limited_table("Failing sources", "source | reason | for", rows)


def source_reason(source: SourceView, lang: str) -> str:
    """Why a source fails, in one language if the reason is a sentence of ours."""
    return (source.why or "") if source.text is None else sentence(source.text, lang)


def _common_reason(reason: str) -> str:
    """The reason without what one missing resource means, if no response of the API server is the reason."""
    head, found, rest = reason.partition("no response from the API server: ")
    return head + found + rest.partition("; ")[0] if found else reason


def _oldest(times: Iterable[float | None]) -> float | None:
    return min((at for at in times if at is not None), default=None)


def _nodes(view: ClusterView, lang: str) -> TextTable:
    gpus = ClusterIndex(view).gpus_by_node
    rows: Rows = [
        (
            node.name,
            node.model,
            node_state(node, view, lang),
            _count(node.free),
            _count(node.cards if node.allocatable is None else node.allocatable),
            " ".join(f"{gpu.index}:{page_word(lang, 'state', gpu.state.value)}" for gpu in gpus.get(node.name, ())),
        )
        for node in view.nodes
    ]
    note = "no nodes known: neither Kubernetes nor an agent responds"
    return make_limited_table("Nodes", "node | model | state | free | GPUs | GPU states", rows, note)


def _count(number: int | None) -> str | None:
    return None if number is None else str(number)


def node_state(node: NodeView, view: ClusterView, lang: str = "en") -> str:
    """What is unusual about a node, else `ok`."""
    states = []
    if node.in_kubernetes and not node.ready:
        states.append("not ready")
    elif node.in_kubernetes and not node.schedulable:
        states.append("cordoned")
    if node.silent_since is not None:
        states.append(table_text(lang, "silent", time=_for(view, node.silent_since, lang)))
    elif not node.has_agent:
        states.append("no agent")
    return table_list(lang, (table_word(state, lang) for state in states or ["ok"]))


def _attention(view: ClusterView, lang: str) -> TextTable:
    """GPUs that are neither free nor busy."""
    abnormal = [gpu for gpu in view.gpus if gpu.state not in NORMAL_STATES]
    inference = {pod.uid for pod in view.pods if pod.identity.inference}
    abnormal.sort(key=lambda gpu: (URGENCY.index(gpu.state), gpu.node, gpu.index))
    rows: Rows = [
        (
            f"{gpu.node}/{gpu.index}",
            gpu.state.value,
            _for(view, gpu.since, lang),
            _holders(gpu, lang, inference),
            _evidence_of(gpu, view, lang),
        )
        for gpu in abnormal
    ]
    return make_limited_table("GPUs that need attention", "GPU | state | for | held by | evidence", rows)


def _holders(gpu: GpuView, lang: str, inference: Container[str] = ()) -> str:
    return table_list(lang, (_holder(holder, lang, inference) for holder in gpu.holders))


def _holder(holder: Holder, lang: str, inference: Container[str]) -> str:
    pod, share = holder.pod or holder.pod_uid or "?", holder_share(holder, lang)
    serves = holder.pod_uid is not None and holder.pod_uid in inference
    text = f"{holder.user or '?'} ({holder.namespace or '?'}/{pod}{', ' + share if share else ''})"
    return table_text(lang, "inference", holder=text) if serves else text


def _shared(view: ClusterView, lang: str) -> TextTable:
    """GPUs that several pods hold, or that a pod holds in part."""
    shared = (gpu for gpu in view.gpus if len(gpu.holders) > 1 or any(holder.slots for holder in gpu.holders))
    rows: Rows = [(f"{gpu.node}/{gpu.index}", str(len(gpu.holders)), _holders(gpu, lang)) for gpu in shared]
    return make_limited_table("Shared GPUs", "GPU | pods | held by", rows)


def _shares(view: ClusterView, lang: str) -> TextTable:
    """Shares of GPUs and other accelerators, which no count of GPUs contains."""
    rows: Rows = [(node.name, *line) for node in view.nodes for line in share_lines(node, lang)]
    return make_limited_table("Shares of GPUs and other accelerators", "node | resource | used", rows)


def _evidence_of(gpu: GpuView, view: ClusterView, lang: str) -> str:
    """Sentences; in English the codes and figures themselves."""
    if lang != "en":
        return "; ".join(evidence_texts(gpu, lang))
    return "; ".join(_evidence(evidence, view) for evidence in gpu.evidence)


def _evidence(evidence: Evidence, view: ClusterView) -> str:
    values = (f"{key}={_value(key, value, view)}" for key, value in evidence.values.items() if value != "")
    return " ".join((evidence.key, *values))


def _value(key: str, value: str | float, view: ClusterView) -> str:
    """A number with its unit; a time as how long ago it was."""
    if isinstance(value, str):
        return value
    if key in ("since", "at"):
        return f"{format_duration(max(0.0, view.at - value))} ago"
    if key == "bytes":
        return format_size(int(value))
    return format_ratio(value) if key == "ratio" else str(value)


def _pending(view: ClusterView, lang: str) -> TextTable:
    waiting = waiting_pods(view)
    waiting.sort(key=lambda pod: pod.created_at or 0.0)
    rows: Rows = [
        (
            f"{pod.namespace}/{pod.name}",
            pod.identity.user,
            pod.identity.queue or "",
            gpus_cell(pod.requested_gpus, pod.gpu_shares, lang),
            _for(view, pod.created_at, lang),
            f"gpuwarden why -n {pod.namespace} {pod.name}",
        )
        for pod in waiting
    ]
    return make_limited_table("Pending pods", "pod | user | queue | GPUs | for | why", rows)


def _free(view: ClusterView, lang: str) -> TextTable:
    rows: Rows = [
        (free.model, str(free.total), str(free.free), str(free.largest_on_one_node), _where(free.on, lang))
        for free in view.free
    ]
    return make_limited_table("Free GPUs", "model | GPUs | free | largest job on one node | where", rows)


def _where(free_on: Mapping[str, int], lang: str) -> str:
    """The nodes with the most free GPUs, and their number."""
    most = sorted(free_on.items(), key=lambda item: (-item[1], item[0]))
    nodes = ", ".join(f"{node}: {free}" for node, free in most[:MAX_NAMED_NODES])
    unnamed = len(most) - MAX_NAMED_NODES
    return table_text(lang, "more-nodes", nodes=nodes, count=unnamed) if unnamed > 0 else nodes


def _queues(view: ClusterView, lang: str) -> TextTable:
    rows: Rows = [
        (
            q.name,
            q.state or "",
            gpus_cell(q.used, q.used_shares, lang),
            gpus_cell(q.waiting, q.waiting_shares, lang),
            queue_free(q, lang),
        )
        for q in view.queues
    ]
    return make_limited_table("Queues", "queue | state | GPUs used | GPUs waiting | free", rows)


def _users(view: ClusterView, lang: str) -> TextTable:
    waiting = waiting_by_user(view)
    rows: Rows = [
        (
            user,
            gpus_cell(use.gpus, use.gpu_shares, lang),
            gpus_cell(*waiting.get(user, (0.0, {})), lang),
            None if use.gpu_utilization_ratio is None else format_ratio(use.gpu_utilization_ratio),
            None if use.gpu_memory_bytes is None else format_size(use.gpu_memory_bytes),
            None if use.cpu_cores is None else f"{use.cpu_cores:.1f}",
            None if use.memory_bytes is None else format_size(use.memory_bytes),
            None if use.shm_bytes is None else format_size(use.shm_bytes),
            None if use.disk_bytes is None else format_size(use.disk_bytes),
        )
        for user, use in users_by_gpus(view)
    ]
    return make_limited_table(
        "Users", "user | GPUs | GPUs waiting | util | GPU memory | CPU cores | memory | shm | disk", rows
    )
