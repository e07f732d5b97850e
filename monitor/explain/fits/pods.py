"""The pods that a job would consist of, as facts, so that they are judged like pods that exist."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from monitor.cluster.node_join import MODEL_LABELS
from monitor.explain.fits.model import FitsRequest, Workers
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.gpu_sharing import has_gpus
from monitor.facts.kube import NodeFact, NodeRequirementFact, PodFact, TolerationFact

MILLI_FACTOR = 1000
_Terms = tuple[tuple[NodeRequirementFact, ...], ...]


def asked_workers(request: FitsRequest) -> Workers:
    """The pods as requested."""
    return Workers(
        pods=request.pods,
        gpus=request.gpus_per_pod,
        cpu_millicores=request.cpu_millicores,
        memory_bytes=request.memory_bytes,
    )


def split_workers(request: FitsRequest, pods: int, gpus: int) -> Workers:
    """Pods of another size: their CPU and memory are in proportion to their GPUs, rounded up for one GPU."""
    cpu, memory = request.cpu_millicores, request.memory_bytes
    return Workers(
        pods=pods,
        gpus=gpus,
        cpu_millicores=None if cpu is None else gpus * per_gpu(cpu, request),
        memory_bytes=None if memory is None else gpus * per_gpu(memory, request),
    )


def per_gpu(amount: int, request: FitsRequest) -> int:
    """The part of a pod's amount that one of its GPUs stands for, rounded up."""
    return -(-amount // request.gpus_per_pod)


def worker_pod(request: FitsRequest, workers: Workers, facts: ClusterFacts, *, claims: bool = False) -> PodFact:
    """One of the pods. `claims`: it asks for GPUs in a ResourceClaim."""
    requests = {request.resource or facts.resource: float(workers.gpus)}
    if workers.cpu_millicores is not None:
        requests["cpu"] = workers.cpu_millicores / MILLI_FACTOR
    if workers.memory_bytes is not None:
        requests["memory"] = float(workers.memory_bytes)
    return PodFact(
        uid="",
        name="",
        namespace=request.namespace or "",
        phase="Pending",
        requests=requests,
        node_affinity=model_terms(request.model, facts) if request.model else (),
        tolerations=tuple(toleration(text) for text in request.tolerations),
        claimed_gpus=float(workers.gpus) if claims else 0.0,
    )


def toleration(text: str) -> TolerationFact:
    """The toleration of a taint in kubectl's syntax: `key`, `key:effect`, `key=value` or `key=value:effect`."""
    taint, _, effect = text.partition(":")
    key, equals, value = taint.partition("=")
    operator = "Equal" if equals else "Exists"
    return TolerationFact(key=key, operator=operator, value=value or None, effect=effect or None)


def model_terms(model: str, facts: ClusterFacts) -> _Terms:
    """Node affinity for GPUs of a model: by the label that names it, or by the nodes whose agents report it.

    Without such a node, a term that matches none.
    """
    labels: defaultdict[str, set[str]] = defaultdict(set)
    names = set[str]()
    for node in nodes_of_model(model, facts):
        key = next((key for key in MODEL_LABELS if key in node.labels), None)
        if key is not None and matches_model(node.labels[key], model):
            labels[key].add(node.labels[key])
        else:
            names.add(node.name)
    terms = [
        (NodeRequirementFact(key=key, operator="In", values=tuple(sorted(values))),)
        for key, values in sorted(labels.items())
    ]
    if names or not terms:
        values = tuple(sorted(names))
        terms.append((NodeRequirementFact(key="metadata.name", operator="In", values=values, field=True),))
    return tuple(terms)


def nodes_of_model(model: str, facts: ClusterFacts) -> list[NodeFact]:
    """Nodes whose GPUs are of a model."""
    return [node for node in facts.nodes if matches_model(model_of(node, facts) or "", model)]


def model_of(node: NodeFact, facts: ClusterFacts) -> str | None:
    """Model of the GPUs of a node: by its label, else by its agent."""
    label = next((node.labels[key] for key in MODEL_LABELS if key in node.labels), None)
    view = facts.view_of_node.get(node.name)
    return label or (view.model if view is not None else None)


def matches_model(name: str, wanted: str) -> bool:
    """Whether a model's name contains the wanted one, whatever separates its words: `A100 80GB`, `a100`."""
    return _plain(wanted) in _plain(name)


def _plain(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def without_model(facts: ClusterFacts) -> list[str]:
    """Nodes with GPUs whose model is not known."""
    return [node.name for node in facts.nodes if has_gpus(node, facts.resource) and model_of(node, facts) is None]


def known_models(facts: ClusterFacts) -> Iterable[str]:
    """Models of the GPUs of the cluster."""
    return sorted({model for node in facts.nodes if (model := model_of(node, facts)) is not None})
