"""Images and volumes in the specs of objects that pods are created from.

Every kind keeps its pod templates in a different field, and new kinds appear. So every `image` and every list of
`volumes` counts, at any depth: a false match only keeps an image or dataset, a missed one would lose it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from monitor.base.text import MAX_TEXT_CHARS, shorten_name
from monitor.cleanup.plan.references import Template, VolumeUse
from monitor.facts.kube import PodFact, PodVolumeFact
from monitor.kube.decode.volume import volumes as volume_facts

ClaimDirectories = dict[tuple[str, str], tuple[VolumeUse, ...]]


@dataclass(frozen=True)
class TemplateKind:
    """A kind of object that pods are created from. `versions` are the known API versions, preferred first."""

    kind: str
    plural: str
    group: str
    versions: tuple[str, ...] = ("v1",)
    optional: bool = True  # installed by an add-on

    @property
    def name(self) -> str:
        """Name as in RBAC and `kubectl get`."""
        return f"{self.plural}.{self.group}"


KINDS = (
    TemplateKind("Deployment", "deployments", "apps", optional=False),
    TemplateKind("StatefulSet", "statefulsets", "apps", optional=False),
    TemplateKind("DaemonSet", "daemonsets", "apps", optional=False),
    TemplateKind("ReplicaSet", "replicasets", "apps", optional=False),
    TemplateKind("Job", "jobs", "batch", optional=False),
    TemplateKind("CronJob", "cronjobs", "batch", ("v1", "v1beta1"), optional=False),
    TemplateKind("Job (Volcano)", "jobs", "batch.volcano.sh", ("v1alpha1",)),
    TemplateKind("CronJob (Volcano)", "cronjobs", "batch.volcano.sh", ("v1alpha1",)),
    TemplateKind("JobTemplate (Volcano)", "jobtemplates", "flow.volcano.sh", ("v1alpha1",)),
    TemplateKind("PyTorchJob", "pytorchjobs", "kubeflow.org"),
    TemplateKind("TFJob", "tfjobs", "kubeflow.org"),
    TemplateKind("MPIJob", "mpijobs", "kubeflow.org", ("v2beta1", "v1")),
    TemplateKind("XGBoostJob", "xgboostjobs", "kubeflow.org"),
    TemplateKind("PaddleJob", "paddlejobs", "kubeflow.org"),
    TemplateKind("JAXJob", "jaxjobs", "kubeflow.org"),
    TemplateKind("Notebook", "notebooks", "kubeflow.org", ("v1", "v1beta1")),
    TemplateKind("TrainJob", "trainjobs", "trainer.kubeflow.org", ("v1alpha1",)),
    TemplateKind("ClusterTrainingRuntime", "clustertrainingruntimes", "trainer.kubeflow.org", ("v1alpha1",)),
    TemplateKind("TrainingRuntime", "trainingruntimes", "trainer.kubeflow.org", ("v1alpha1",)),
    TemplateKind("JobSet", "jobsets", "jobset.x-k8s.io", ("v1alpha2",)),
    TemplateKind("LeaderWorkerSet", "leaderworkersets", "leaderworkerset.x-k8s.io"),
    TemplateKind("RayCluster", "rayclusters", "ray.io", ("v1", "v1alpha1")),
    TemplateKind("RayJob", "rayjobs", "ray.io", ("v1", "v1alpha1")),
    TemplateKind("RayService", "rayservices", "ray.io", ("v1", "v1alpha1")),
    TemplateKind("InferenceService", "inferenceservices", "serving.kserve.io", ("v1beta1",)),
    TemplateKind("ServingRuntime", "servingruntimes", "serving.kserve.io", ("v1alpha1",)),
    TemplateKind("ClusterServingRuntime", "clusterservingruntimes", "serving.kserve.io", ("v1alpha1",)),
    TemplateKind("Service (Knative)", "services", "serving.knative.dev"),
    TemplateKind("Workflow", "workflows", "argoproj.io", ("v1alpha1",)),
    TemplateKind("CronWorkflow", "cronworkflows", "argoproj.io", ("v1alpha1",)),
    TemplateKind("WorkflowTemplate", "workflowtemplates", "argoproj.io", ("v1alpha1",)),
    TemplateKind("Rollout", "rollouts", "argoproj.io", ("v1alpha1",)),
)


def template_of(kind: str, raw: Mapping[str, Any]) -> Template | None:
    """Template of an object; None for an old ReplicaSet of a Deployment."""
    meta, spec = raw.get("metadata") or {}, raw.get("spec") or {}
    if kind == "ReplicaSet" and spec.get("replicas") == 0 and meta.get("ownerReferences"):
        return None
    return Template(
        kind=kind,
        namespace=str(meta.get("namespace") or ""),
        name=str(meta.get("name") or "?"),
        images=tuple(dict.fromkeys(images(spec))),
        volumes=(*_volumes(spec), *_claim_templates(meta, spec)),
    )


def images(part: object) -> Iterator[str]:
    """Every image name in a part of an object. An image mounted as a volume has a `reference`."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "image" and isinstance(value, str) and value:
                yield shorten_name(value, MAX_TEXT_CHARS)
            elif key == "image" and isinstance(value, dict) and isinstance(value.get("reference"), str):
                yield shorten_name(value["reference"], MAX_TEXT_CHARS)
            else:
                yield from images(value)
    elif isinstance(part, list):
        for element in part:
            yield from images(element)


def _volumes(part: object) -> Iterator[PodVolumeFact]:
    """Volumes listed under `volumes`, at any depth. A list that does not decode is something else."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "volumes" and isinstance(value, list):
                try:
                    yield from volume_facts(msgspec.Raw(msgspec.json.encode(volume)) for volume in value)
                except msgspec.MsgspecError:
                    yield from _volumes(value)
            else:
                yield from _volumes(value)
    elif isinstance(part, list):
        for element in part:
            yield from _volumes(element)


def _claim_templates(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[PodVolumeFact]:
    """Claims of a StatefulSet, `data-db-*` for all of its pods: they outlive the pods."""
    for template in spec.get("volumeClaimTemplates") or ():
        name = (template.get("metadata") or {}).get("name")
        if name:
            yield PodVolumeFact(name=name, kind="persistentVolumeClaim", claim=f"{name}-{meta.get('name')}-*")


def with_claims(pod: PodFact) -> PodFact:
    """A pod whose ephemeral volumes name the claims that Kubernetes created for them."""
    volumes = tuple(
        msgspec.structs.replace(volume, claim=f"{pod.name}-{volume.name}") if volume.kind == "ephemeral" else volume
        for volume in pod.volumes
    )
    return msgspec.structs.replace(pod, volumes=volumes)


def claims_of(claims: Iterable[Mapping[str, Any]], volumes: Iterable[Mapping[str, Any]]) -> ClaimDirectories:
    """Directories of each PersistentVolumeClaim.

    `data-db-0` is also listed as `data-db-*`, the alias for all claims of a StatefulSet.
    """
    by_volume = {_name(volume): use for volume in volumes if (use := _directory(volume.get("spec") or {})) is not None}
    directories: ClaimDirectories = {}
    for claim in claims:
        use = by_volume.get(str((claim.get("spec") or {}).get("volumeName") or ""))
        if use is None:
            continue
        namespace, name = str((claim.get("metadata") or {}).get("namespace") or ""), _name(claim)
        for alias in (name, f"{name.rpartition('-')[0]}-*"):
            directories[namespace, alias] = (*directories.get((namespace, alias), ()), use)
    return directories


def _name(raw: Mapping[str, Any]) -> str:
    return str((raw.get("metadata") or {}).get("name") or "")


def _directory(spec: Mapping[str, Any]) -> VolumeUse | None:
    """Directory of a PersistentVolume; None if it is not on a node or on shared storage."""
    for kind in ("hostPath", "local"):
        if path := (spec.get(kind) or {}).get("path"):
            return VolumeUse(kind, path)
    nfs = spec.get("nfs") or {}
    if nfs.get("path"):
        return VolumeUse("nfs", nfs["path"], nfs.get("server") or "?")
    attributes = (spec.get("csi") or {}).get("volumeAttributes") or {}
    if attributes.get("share"):
        below = attributes.get("subdir") or attributes.get("subDir")
        path = f"{attributes['share'].rstrip('/')}/{below}" if below else attributes["share"]
        return VolumeUse("csi", path, attributes.get("server") or "?")
    return None
