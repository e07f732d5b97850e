"""One finding about what several failing pods have in common: the driver of their node, or a storage server."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from monitor.detect.findings import make_finding
from monitor.detect.labels import label_value
from monitor.explain.keys import Key
from monitor.explain.volumes import server_of
from monitor.facts.findings import Finding, Scope
from monitor.facts.text import Text, Value

MIN_PODS = 2
_MAX_NAMED_PODS = 5
_MAX_EXPLAINED_PODS = 1000
# Faults of the driver and its toolkit that no GPU container of the node escapes.
NODE_FAULTS = frozenset(
    {
        Key.START_DRIVER_MISMATCH,
        Key.START_DRIVER_NOT_LOADED,
        Key.START_DRIVER_BROKEN,
        Key.START_TOOLKIT_BROKEN,
        Key.START_CDI,
    }
)
# How mounts fail whose server does not answer or rejects its clients; a wrong path fails alone.
SERVER_FAULTS = frozenset(
    {
        Key.MOUNT_NFS_UNREACHABLE,
        Key.MOUNT_NFS_REFUSED,
        Key.MOUNT_UNREACHABLE,
        Key.MOUNT_ACCESS_DENIED,
        Key.MOUNT_STORAGE_DENIED,
        Key.MOUNT_TIMED_OUT,
    }
)


def explain_by_node(findings: Sequence[Finding]) -> Sequence[Finding]:
    """The findings, and one about each node on which several pods cannot start for the same fault of its driver."""
    by_fault: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        node = finding.labels.get("node")
        if node and (fault := next(_of(finding, NODE_FAULTS), None)) is not None:
            by_fault[node, fault.key].append(finding)
    by_node: dict[str, list[Finding]] = {}
    for (node, _), alike in by_fault.items():
        if _pods(alike) >= max(MIN_PODS, _pods(by_node.get(node, ())) + 1):
            by_node[node] = alike
    return [*findings, *(_node_finding(node, alike) for node, alike in by_node.items())]


def explain_by_server(findings: Sequence[Finding]) -> Sequence[Finding]:
    """The findings, and one about each storage server from which several pods cannot mount their volumes."""
    by_server: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        fault = next(_of(finding, SERVER_FAULTS), None)
        server = server_of(str(fault.values.get("source", ""))) if fault is not None else None
        if server is not None:
            by_server[server].append(finding)
    shared = [(server, alike) for server, alike in by_server.items() if _pods(alike) >= MIN_PODS]
    return [*findings, *(_server_finding(server, alike) for server, alike in shared)]


def _of(finding: Finding, faults: frozenset[Key]) -> Iterator[Text]:
    """Statements of the finding that name one of the faults."""
    return (text for text in finding.evidence if text.key in faults)


def _pods(findings: Sequence[Finding]) -> int:
    return len({(finding.labels["namespace"], finding.labels["pod"]) for finding in findings})


def _node_finding(node: str, alike: Sequence[Finding]) -> Finding:
    first = _first(alike)
    values: dict[str, Value] = {"node": first.headline.values["node"], "count": _pods(alike)}
    evidence = (*(text for text in first.evidence if text.key in (*NODE_FAULTS, Key.RUNTIME_SAYS)), _names(alike))
    return _shared(first, alike, {"node": node}, "node", values, evidence)


def _server_finding(server: str, alike: Sequence[Finding]) -> Finding:
    first = _first(alike)
    nodes = len({finding.labels.get("node") for finding in alike})
    values: dict[str, Value] = {"server": server, "count": _pods(alike), "nodes": nodes}
    evidence = (*(text for text in first.evidence if text.key in (*SERVER_FAULTS, Key.MOUNT_SAYS)), _names(alike))
    return _shared(first, alike, {"service": label_value(server)}, "server", values, evidence)


def _first(alike: Sequence[Finding]) -> Finding:
    return min(alike, key=lambda finding: (finding.since or 0.0, finding.key))


def _shared(
    first: Finding,
    alike: Sequence[Finding],
    labels: dict[str, str],
    kind: str,
    values: dict[str, Value],
    evidence: tuple[Text, ...],
) -> Finding:
    """The finding about what the pods share, which explains theirs."""
    names = sorted({(finding.labels["namespace"], finding.labels["pod"]) for finding in alike})[:_MAX_EXPLAINED_PODS]
    scopes = [Scope(labels={"namespace": namespace, "pod": pod}, rules=(first.rule,)) for namespace, pod in names]
    return make_finding(
        first.rule, Counter(finding.cause for finding in alike).most_common(1)[0][0], labels, values,
        key=f"{first.rule}.{kind}", evidence=evidence, advice=first.advice[:1], since=first.since, explains=scopes,
        held=all(finding.held for finding in alike), raw=first.raw,
    )  # fmt: skip


def _names(alike: Sequence[Finding]) -> Text:
    names = sorted({f"{finding.labels['namespace']}/{finding.labels['pod']}" for finding in alike})
    more = " …" if len(names) > _MAX_NAMED_PODS else ""
    return Text(f"{alike[0].rule}.pods", {"pods": ", ".join(names[:_MAX_NAMED_PODS]) + more})
