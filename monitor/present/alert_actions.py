"""What can be done about an alert: the actions that its rule and subject allow, and the scopes of a silence. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from monitor.access.principal import Principal
from monitor.alert.matchers import exact_matcher
from monitor.alert.model import Phase, alertname
from monitor.facts.alert_identity import identifying_labels
from monitor.facts.cluster import PodView
from monitor.present.alerts import LocalizedAlert
from monitor.present.rows import ClusterIndex, GpuRow

MAX_STOPPED_PODS = 50
# Rules about a node that takes no more jobs while it is repaired.
CORDON_RULES = frozenset(
    {
        "agent-silent", "disk-full", "disk-io-saturated", "gpu-fault", "gpu-hot", "gpu-wedged", "image-pull",
        "kernel-fault", "mount-lost", "node-condition", "node-down", "registry-unreachable",
    }
)  # fmt: skip
# Rules about what cleanup of images removes.
CLEANUP_RULES = frozenset({"disk-filling", "disk-full", "image-cache-large", "image-oversize"})


@dataclass(frozen=True)
class AlertAction:
    """An action: release-gpu, delete-pods, cordon or cleanup-run, with its targets and their owners."""

    kind: str
    targets: tuple[str, ...]
    owners: tuple[str | None, ...] = (None,)
    node: str = ""

    def allowed_to(self, principal: Principal) -> bool:
        return all(principal.may_act_on(owner) for owner in self.owners)


@dataclass(frozen=True)
class SilenceScope:
    """Matchers of a silence, and its name: alert, rule-on-node or rule."""

    name: str
    matchers: tuple[str, ...]


def alert_actions(alert: LocalizedAlert, index: ClusterIndex, policies: Iterable[str] = ()) -> list[AlertAction]:
    """The actions for a firing alert. `policies` are those that clean up images on its node."""
    if alert.phase is not Phase.FIRING:
        return []
    actions = [*_release(alert.labels, index), *_stop(alert, index), *_cordon(alert, index)]
    if alert.rule in CLEANUP_RULES:
        node = alert.labels.get("node", "")
        actions += [AlertAction("cleanup-run", (policy,), node=node) for policy in policies]
    return actions


def silence_scopes(alert: LocalizedAlert) -> list[SilenceScope]:
    """The scopes of a silence, from the narrowest: this alert, its rule on its node, its rule."""
    rule = exact_matcher("alertname", alertname(alert.rule))
    subject = identifying_labels(alert.rule, alert.labels)
    exact = tuple(exact_matcher(name, value) for name, value in sorted(subject.items()))
    scopes = [SilenceScope("alert", (rule, *exact))]
    if "node" in alert.labels and subject.keys() != {"node"}:
        scopes.append(SilenceScope("rule-on-node", (rule, exact_matcher("node", alert.labels["node"]))))
    return [*scopes, SilenceScope("rule", (rule,))]


def _release(labels: Mapping[str, str], index: ClusterIndex) -> list[AlertAction]:
    gpus = index.gpus_by_node.get(labels.get("node", ""), ())
    rows = [GpuRow(gpu, ()) for gpu in gpus if str(gpu.index) == labels.get("gpu")]
    return [
        AlertAction("release-gpu", (f"{row.gpu.node}/{row.gpu.index}",), (row.owner,)) for row in rows if row.releasable
    ]


def _stop(alert: LocalizedAlert, index: ClusterIndex) -> list[AlertAction]:
    """Stopping the pod of an alert, or the pods of its job."""
    pods = index.pods_by_namespace.get(alert.labels.get("namespace", ""), [])
    pods = [pod for pod in pods if _is_of(pod, alert.labels)][:MAX_STOPPED_PODS]
    if not pods:
        return []
    names = tuple(f"{pod.namespace}/{pod.name}" for pod in pods)
    return [AlertAction("delete-pods", names, tuple(dict.fromkeys(pod.identity.user for pod in pods)))]


def _is_of(pod: PodView, labels: Mapping[str, str]) -> bool:
    if "pod" in labels:
        return pod.name == labels["pod"]
    return pod.identity.job is not None and pod.identity.job == labels.get("job")


def _cordon(alert: LocalizedAlert, index: ClusterIndex) -> list[AlertAction]:
    node = index.nodes.get(alert.labels.get("node", ""))
    if alert.rule not in CORDON_RULES or node is None or not node.in_kubernetes or not node.schedulable:
        return []
    return [AlertAction("cordon", (node.name,))]
