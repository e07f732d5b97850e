"""mount-lost: an expected mount is missing, hung, read-only or failing."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind, whole_cluster
from monitor.detect.labels import label_value
from monitor.detect.lib.storage import MAX_REMEMBERED_NODES, NodeReports, memory_sections, node_reports
from monitor.detect.subjects import NodeReport
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.kube import PodFact
from monitor.facts.storage import MountFact
from monitor.facts.text import Text, Value

CAUSES = ("missing", "hung", "read-only", "stale")
# Any other error (dead FUSE process, I/O errors) affects pods like a stale handle and has the same remedy.
CAUSE_OF_STATE = {cause: cause for cause in CAUSES} | {"failing": "stale"}
STUCK_RULES = ("pod-stuck-creating", "pod-stuck-terminating")
_PATH_VOLUMES = frozenset({"hostPath", "local"})
_NETWORK_VOLUMES = frozenset({"nfs", "persistentVolumeClaim", "csi", "cephfs", "glusterfs", "flexVolume"})
_MAX_EXPLAINED_PODS = 100


@dataclass(frozen=True)
class Limits:
    """How long it has to persist, and on how many nodes at once the server is at fault."""

    after: Seconds = 30.0
    everywhere: int = 3


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Lost mounts by node, and those lost on most nodes."""
    (previous,) = memory_sections(memory, "everywhere")
    reports = node_reports(context)
    findings = []
    lost: defaultdict[str, list[tuple[NodeReport, MountFact]]] = defaultdict(list)
    expected: Counter[str] = Counter()
    for report in reports.nodes.values():
        for mount in report.section("mounts") or ():
            expected[mount.path] += 1
            if mount.state in CAUSE_OF_STATE and _lasts(context, report, mount):
                lost[mount.path].append((report, mount))
                findings.append(_finding(context, report, mount))
    everywhere = {
        path: [report.node for report, _ in hit[:MAX_REMEMBERED_NODES]]
        for path, hit in lost.items()
        if _is_everywhere(context, path, len(hit), expected[path])
    }
    findings += [_everywhere_finding(context, path, lost[path], expected[path]) for path in everywhere]
    unsure = {
        path: nodes for path, nodes in previous.items() if path not in everywhere and _recovery_unknown(nodes, reports)
    }
    blind = (*reports.blind_scopes("mounts"), *(Scope(labels={"mount": label_value(path)}) for path in unsure))
    return RuleResult(findings=tuple(findings), memory={"everywhere": unsure | everywhere}, blind=blind)


def _recovery_unknown(nodes: list[str], reports: NodeReports) -> bool:
    """Whether too few of the affected nodes report to tell that a mount is back."""
    return 2 * sum(reports.any_hidden((node,), "mounts") for node in nodes) > len(nodes)


def _seconds(context: RuleContext, report: NodeReport, mount: MountFact) -> float:
    return max(0.0, context.now - (mount.since + report.skew))


def _lasts(context: RuleContext, report: NodeReport, mount: MountFact) -> bool:
    limits: Limits = context.limits.of({"node": report.node, "mount": mount.path})
    return _seconds(context, report, mount) >= limits.after


def _is_everywhere(context: RuleContext, path: str, lost: int, expected: int) -> bool:
    limits: Limits = context.limits.of({"mount": path})
    return lost >= limits.everywhere and 2 * lost > expected


def _finding(context: RuleContext, report: NodeReport, mount: MountFact) -> Finding:
    cause, seconds = CAUSE_OF_STATE[mount.state], _seconds(context, report, mount)
    pods = [pod for pod in context.facts.bound.get(report.node, ()) if may_use(pod, mount.path)]
    where: dict[str, Value] = {"node": report.node, "mount": mount.path}
    evidence = [Text(key="mount-lost.since", values={"seconds": seconds})]
    evidence += [Text(key="mount-lost.pods", values={"count": len(pods), "node": report.node})] if pods else []
    return Finding(
        rule="mount-lost",
        severity=Severity.CRITICAL,
        cause=cause,
        labels={"node": label_value(report.node), "mount": label_value(mount.path)},
        headline=Text(
            key=f"mount-lost.{cause}", values=where | {"seconds": seconds, "error": mount.error or mount.state}
        ),
        evidence=tuple(evidence),
        advice=(Text(key=f"mount-lost.{cause}.advice", values=where),),
        since=mount.since + report.skew,
        explains=_explains(pods),
        raw=mount.error,
    )


def may_use(pod: PodFact, path: str) -> bool:
    """Whether a pod may use a mount of its node. Which mount serves a claim is unknown."""
    return any(
        (volume.kind in _PATH_VOLUMES and _within(volume.path or "", path)) or volume.kind in _NETWORK_VOLUMES
        for volume in pod.volumes
    )


def _within(path: str, mount: str) -> bool:
    return path == mount or path.startswith(mount.rstrip("/") + "/")


def _explains(pods: list[PodFact]) -> tuple[Scope, ...]:
    """Scopes of the pods stuck on the mount: not started, or not terminating."""
    stuck = [pod for pod in pods if pod.phase == "Pending" or pod.deletion_at is not None]
    return tuple(
        Scope(labels={"namespace": label_value(pod.namespace), "pod": label_value(pod.name)}, rules=STUCK_RULES)
        for pod in stuck[:_MAX_EXPLAINED_PODS]
    )


def _everywhere_finding(
    context: RuleContext, path: str, lost: list[tuple[NodeReport, MountFact]], expected: int
) -> Finding:
    """One finding in place of those of all nodes."""
    state = Counter(CAUSE_OF_STATE[mount.state] for _, mount in lost).most_common(1)[0][0]
    report, first = min(lost, key=lambda item: (item[1].since + item[0].skew, item[0].node))
    values: dict[str, Value] = {"mount": path, "count": len(lost), "total": expected, "state": state}
    return Finding(
        rule="mount-lost",
        severity=Severity.CRITICAL,
        cause=state,
        labels={"mount": label_value(path)},
        headline=Text(key="mount-lost.everywhere", values=values),
        evidence=(Text(key="mount-lost.since", values={"seconds": _seconds(context, report, first)}),),
        advice=(Text(key="mount-lost.everywhere.advice", values={"mount": path, "node": report.node}),),
        since=first.since + report.skew,
        explains=(Scope(labels={"mount": label_value(path)}, rules=("mount-lost",)), *_pods_of(context.facts, lost)),
        raw=first.error,
    )


def _pods_of(facts: ClusterFacts, lost: list[tuple[NodeReport, MountFact]]) -> tuple[Scope, ...]:
    """Scopes of the pods that the findings of the nodes explain, which are symptoms themselves."""
    pods = [pod for report, mount in lost for pod in facts.bound.get(report.node, ()) if may_use(pod, mount.path)]
    return _explains(pods)


RULE = Rule(
    "mount-lost",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    latency={ANY_CAUSE: Latency("after", collector="mounts")},
)
