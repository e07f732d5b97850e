"""References of pods and pod templates: to images by name, to directories by volume."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from monitor.base.text import shortened_prefix
from monitor.facts.image_names import reference_keys, split_reference
from monitor.facts.kube import PodFact, PodVolumeFact


@dataclass(frozen=True)
class Template:
    """An object that pods are created from: Job, CronJob, Deployment, StatefulSet, DaemonSet, vcjob, PyTorchJob, ..."""

    kind: str
    namespace: str
    name: str
    images: tuple[str, ...] = ()
    volumes: tuple[PodVolumeFact, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class References:
    """Images that a node has to keep, by name, with the pod or template that refers to them.

    `unknown` are the resources that could not be listed: unless it is empty, the references are incomplete. `prefixes`
    are the beginnings of names that were too long to be kept: what they referred to is unknown, so every image that
    begins like one is kept.
    """

    names: dict[str, str]
    unknown: tuple[str, ...] = ()
    prefixes: dict[str, str] = field(default_factory=dict)

    def referrer(self, forms: Iterable[str]) -> str | None:
        """The pod or template that refers to an image with these name forms, or may do so."""
        forms = tuple(forms)
        exact = next((self.names[form] for form in forms if form in self.names), None)
        if exact is not None or not self.prefixes:
            return exact
        return next((self.prefixes[prefix] for prefix in self.prefixes if _any_begins(forms, prefix)), None)

    def same_repository(self, forms: Iterable[str]) -> tuple[str, ...]:
        """Referenced names in the repositories of an image: a pull may give the image one of them next."""
        repositories = {split_reference(form)[0] for form in forms if "/" in form}
        return tuple(sorted(name for name in self.names if "/" in name and split_reference(name)[0] in repositories))


@dataclass(frozen=True)
class VolumeUse:
    """A directory that a pod or template mounts: a path on the node, or with a server the path that it exports."""

    referrer: str
    path: str
    server: str | None = None


class ClusterReferences:
    """Images that each node of a cluster has to keep; what all nodes have in common is determined once."""

    def __init__(self, pods: Iterable[PodFact], templates: Iterable[Template], unknown: tuple[str, ...] = ()) -> None:
        self._common = References({}, unknown)
        self._pods: defaultdict[str, list[PodFact]] = defaultdict(list)
        for template in templates:
            for image in template.images:
                _refer(self._common, image, template.text)
        for pod in pods:
            if pod.finished:
                continue
            if pod.node is None:
                _refer_to_images(self._common, pod)
            else:
                self._pods[pod.node].append(pod)

    def on(self, node: str) -> References:
        """References on a node: pods without a node, and the future pods of templates, may be placed on it."""
        common = self._common
        references = References(dict(common.names), common.unknown, dict(common.prefixes))
        for pod in self._pods.get(node, ()):
            _refer_to_images(references, pod)
        return references


def image_references(
    node: str, pods: Iterable[PodFact], templates: Iterable[Template], unknown: tuple[str, ...] = ()
) -> References:
    """Images that one node has to keep."""
    return ClusterReferences(pods, templates, unknown).on(node)


def _refer_to_images(references: References, pod: PodFact) -> None:
    for image in _images(pod):
        _refer(references, image, f"Pod {pod.namespace}/{pod.name}")


def _refer(references: References, image: str, referrer: str) -> None:
    prefix = shortened_prefix(image)
    if prefix is not None:
        repository, _, _ = split_reference(prefix.rpartition("://")[2])
        references.prefixes[repository] = referrer
    references.names.update(dict.fromkeys(reference_keys(image), referrer))


def _any_begins(forms: Iterable[str], prefix: str) -> bool:
    return any(form.startswith(prefix) for form in forms)


def _images(pod: PodFact) -> Iterator[str]:
    """Image names in a pod's spec, also of volumes, and the image ids that the kubelet resolved them to."""
    for volume in pod.volumes:
        if volume.image:
            yield volume.image
    for container in pod.containers:
        if container.image:
            yield container.image
    for status in pod.statuses:
        if status.image_id:
            yield status.image_id


def volume_uses(
    pods: Iterable[PodFact], templates: Iterable[Template], claims: dict[tuple[str, str], tuple[VolumeUse, ...]]
) -> tuple[VolumeUse, ...]:
    """Directories in use by unfinished pods and templates.

    `claims` maps namespace and name of a claim to its directories; a claim without any is not on shared storage.
    """
    uses: list[VolumeUse] = []
    for pod in pods:
        if not pod.finished:
            uses += _volumes(f"Pod {pod.namespace}/{pod.name}", pod.namespace, pod.volumes, claims)
    for template in templates:
        uses += _volumes(template.text, template.namespace, template.volumes, claims)
    return tuple(uses)


def _volumes(
    referrer: str,
    namespace: str,
    volumes: Iterable[PodVolumeFact],
    claims: dict[tuple[str, str], tuple[VolumeUse, ...]],
) -> Iterator[VolumeUse]:
    for volume in volumes:
        if volume.kind == "hostPath" and volume.path:
            yield VolumeUse(referrer, volume.path)
        elif volume.path and volume.server:
            yield VolumeUse(referrer, volume.path, volume.server)
        for use in claims.get((namespace, volume.claim or ""), ()):
            yield VolumeUse(referrer, use.path, use.server)
