"""mount-lost: an expected mount is missing, hung, read-only or failing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import AGE, Latency, Rule, RuleContext, RuleResult, Seconds, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_value
from monitor.detect.lib.node_conditions import same_fault
from monitor.detect.lib.pods import pod_identity
from monitor.detect.lib.storage import is_within
from monitor.detect.subjects import NodeSubject
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
_SINCE = Text("mount-lost.since", {AGE: 0.0})


@dataclass(frozen=True)
class Limits:
    """How long it has to persist, and on how many nodes at once the server is at fault."""

    after: Seconds = 30.0
    everywhere: int = 3


def evaluate(node: NodeSubject, context: RuleContext, _memory: Any, now: float) -> RuleResult:
    """Mounts that a node has lost for a while."""
    findings, due = [], []
    lost = (mount for mount in node.report.snapshot.mounts or () if mount.state in CAUSE_OF_STATE)
    for mount in lost:
        limits: Limits = context.limits.of({"node": node.name, "mount": mount.path})
        since = mount.since + node.report.skew
        if now >= since + limits.after:
            findings.append(_finding(context.facts, node.name, mount, since))
        else:
            due.append(since + limits.after)
    return RuleResult(tuple(findings), next_at=min(due, default=None))


def _finding(facts: ClusterFacts, node: str, mount: MountFact, since: float) -> Finding:
    cause, pods = CAUSE_OF_STATE[mount.state], [pod for pod in facts.bound.get(node, ()) if may_use(pod, mount.path)]
    where: dict[str, Value] = {"node": node, "mount": mount.path}
    users = Text("mount-lost.pods", {"count": len(pods), "node": node})
    labels = {"node": label_value(node), "mount": label_value(mount.path)}
    same = same_fault(labels, "filesystem") if cause == "read-only" else ()
    return make_finding(
        "mount-lost", cause, labels, where | {"error": mount.error or mount.state}, advice_values=where,
        severity=Severity.CRITICAL, evidence=(_SINCE, users) if pods else (_SINCE,),
        since=since, explains=(Scope(labels=labels, rules=("kernel-fault",)), *same, *_explains(pods)), raw=mount.error,
    )  # fmt: skip


def may_use(pod: PodFact, path: str) -> bool:
    """Whether a pod may use a mount of its node. Which mount serves a claim is unknown."""
    paths = (volume.path or "" for volume in pod.volumes if volume.kind in _PATH_VOLUMES)
    return any(is_within(used, path) for used in paths) or any(v.kind in _NETWORK_VOLUMES for v in pod.volumes)


def _explains(pods: list[PodFact]) -> tuple[Scope, ...]:
    """Scopes of the pods stuck on the mount: not started, or not terminating."""
    stuck = [pod for pod in pods if pod.phase == "Pending" or pod.deletion_at is not None]
    return tuple(Scope(labels=pod_identity(pod), rules=STUCK_RULES) for pod in stuck[:_MAX_EXPLAINED_PODS])


def correlate(findings: Sequence[Finding], context: RuleContext) -> Sequence[Finding]:
    """The lost mounts, and one finding about each mount that most nodes have lost."""
    by_path: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_path[str(finding.headline.values["mount"])].append(finding)
    servers = []
    for path, lost in by_path.items():
        limits: Limits = context.limits.of({"mount": path})
        total = _expecting(path, lost, context.facts) if len(lost) >= limits.everywhere else 0
        if total and 2 * len(lost) > total:
            servers.append(_everywhere_finding(path, lost, total))
    return [*findings, *servers]


def _expecting(path: str, lost: list[Finding], facts: ClusterFacts) -> int:
    """Number of nodes that expect a mount, including those that have lost it and no longer report."""
    reporting = {
        node for node, snapshot in facts.snapshots.items() if any(mount.path == path for mount in snapshot.mounts or ())
    }
    return len(reporting | {finding.headline.values["node"] for finding in lost})


def _everywhere_finding(path: str, lost: list[Finding], total: int) -> Finding:
    """One finding in place of those of all nodes."""
    cause = Counter(finding.cause for finding in lost).most_common(1)[0][0]
    first = min(lost, key=lambda finding: (finding.since or 0.0, finding.labels["node"]))
    values: dict[str, Value] = {"mount": path, "count": len(lost), "total": total, "state": cause}
    pods = [scope for finding in lost for scope in finding.explains if scope.rules == STUCK_RULES]
    labels = {"mount": label_value(path)}
    return make_finding(
        "mount-lost", cause, labels, values, severity=Severity.CRITICAL, key="mount-lost.everywhere",
        evidence=(_SINCE,), advice_values={"mount": path, "node": first.headline.values["node"]}, since=first.since,
        explains=(Scope(labels=labels, rules=("mount-lost", "kernel-fault")), *pods[:_MAX_EXPLAINED_PODS]),
        held=2 * sum(finding.held for finding in lost) > len(lost), raw=first.raw,
    )  # fmt: skip


RULE = Rule(
    "mount-lost", Limits, CAUSES, evaluate, SubjectKind.NODE, needs=("mounts",), uses=("pods",), correlate=correlate,
    latency=Latency("after", collector="mounts"),
)  # fmt: skip
