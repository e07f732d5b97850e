"""Watched resources: API paths, versions and decoding."""

from __future__ import annotations

from typing import Any

import msgspec

from monitor.facts.base import BoundedText
from monitor.kube.decode import stream
from monitor.kube.decode.pod import PodFieldFilter
from monitor.kube.decode.stream import ObjectKind
from monitor.kube.decode.values import Wire

_JSON = "application/json"
_METADATA_LIST = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{_JSON}"
_METADATA = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{_JSON}"


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """One resource.

    `versions` are the supported ones, best first. `optional` resources belong to an add-on and may be absent.
    `metadata_only` requests only the metadata of each object. `without` names what is missing without the resource.
    """

    plural: str
    kind: ObjectKind[Any]
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    optional: bool = False
    metadata_only: bool = False
    without: str | None = None

    @property
    def name(self) -> str:
        """Name as in RBAC and `kubectl get`: `pods`, `queues.scheduling.volcano.sh`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_path(self) -> str:
        """Path of the API group, which lists the served versions."""
        return f"/apis/{self.group}"

    def path(self, version: str) -> str:
        """Path of the objects of all namespaces."""
        return f"{self.group_path if self.group else '/api'}/{version}/{self.plural}"

    def accept(self, *, listing: bool) -> str:
        """Accept header for lists or watches."""
        if not self.metadata_only:
            return _JSON
        return _METADATA_LIST if listing else _METADATA


class WireGroupVersion(Wire):
    """One version of an API group."""

    version: BoundedText = ""


class WireGroup(Wire):
    """An API group."""

    preferred_version: WireGroupVersion | None = None
    versions: list[WireGroupVersion] | None = None


def served_version(resource: Resource, group: bytes) -> str:
    """The version to request, given the API server's description of the group.

    The best supported version; if none is served, the preferred one: later versions keep most fields.
    Raise MalformedResponseError if `group` is not a group description.
    """
    try:
        known = msgspec.json.decode(group, type=WireGroup)
    except (msgspec.MsgspecError, ValueError) as error:
        raise stream.MalformedResponseError(f"not an API group: {error}") from error
    served = {entry.version for entry in known.versions or ()}
    for version in resource.versions:
        if version in served:
            return version
    preferred = known.preferred_version.version if known.preferred_version else ""
    return preferred or resource.versions[0]


_VOLCANO = "scheduling.volcano.sh"
_KUEUE = "kueue.x-k8s.io"
_KUEUE_VERSIONS = ("v1beta2", "v1beta1")
_DRA = "resource.k8s.io"
_DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")

NODES = Resource(plural="nodes", kind=stream.NODES, without="node states and free GPUs by Kubernetes")
EVENTS = Resource(plural="events", kind=stream.EVENTS, without="reasons that only events give, such as failed pulls")
QUOTAS = Resource(plural="resourcequotas", kind=stream.QUOTAS, without="which quota holds a job back")
NAMESPACES = Resource(
    plural="namespaces",
    kind=stream.NAMESPACES,
    metadata_only=True,
    without="owners of Kubeflow namespaces: the namespace's name stands for its user",
)
REPLICA_SETS = Resource(
    plural="replicasets",
    kind=stream.OWNERS,
    group="apps",
    metadata_only=True,
    without="Deployments: they are guessed from the names of their pods",
)
JOBS = Resource(
    plural="jobs",
    kind=stream.OWNERS,
    group="batch",
    metadata_only=True,
    without="CronJobs: they are guessed from the names of their jobs",
)
ENDING_JOBS = Resource(plural="jobs", kind=stream.JOBS, group="batch", without="CronJobs, and how Jobs end")
VOLCANO_QUEUES = Resource(
    plural="queues", kind=stream.VOLCANO_QUEUES, group=_VOLCANO, versions=("v1beta1",), optional=True
)
POD_GROUPS = Resource(plural="podgroups", kind=stream.POD_GROUPS, group=_VOLCANO, versions=("v1beta1",), optional=True)
CLUSTER_QUEUES = Resource(
    plural="clusterqueues", kind=stream.KUEUE_QUEUES, group=_KUEUE, versions=_KUEUE_VERSIONS, optional=True
)
LOCAL_QUEUES = Resource(
    plural="localqueues", kind=stream.KUEUE_QUEUES, group=_KUEUE, versions=_KUEUE_VERSIONS, optional=True
)
WORKLOADS = Resource(plural="workloads", kind=stream.WORKLOADS, group=_KUEUE, versions=_KUEUE_VERSIONS, optional=True)
RESOURCE_CLAIMS = Resource(
    plural="resourceclaims",
    kind=stream.RESOURCE_CLAIMS,
    group=_DRA,
    versions=_DRA_VERSIONS,
    optional=True,
    without="GPUs that pods hold or wait for by resource claims",
)
RESOURCE_SLICES = Resource(
    plural="resourceslices",
    kind=stream.RESOURCE_SLICES,
    group=_DRA,
    versions=_DRA_VERSIONS,
    optional=True,
    without="GPUs that DRA drivers offer",
)
DEVICE_CLASSES = Resource(
    plural="deviceclasses",
    kind=stream.DEVICE_CLASSES,
    group=_DRA,
    versions=_DRA_VERSIONS,
    optional=True,
    without="which resource claims ask for GPUs: it is guessed from the names of their classes",
)
DEVICE_RESOURCES = (RESOURCE_CLAIMS, RESOURCE_SLICES, DEVICE_CLASSES)


def pods(keep: PodFieldFilter) -> Resource:
    """The pods resource, with the annotations and variables to keep."""
    return Resource(plural="pods", kind=stream.pods(keep), without="pods, their owners and what they ask for")
