"""What the cluster needs: images that its pods and templates name, directories that they have as volumes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from monitor.facts.kube import PodFact, PodVolumeFact

FINISHED = ("Succeeded", "Failed")
_HUB = "docker.io"


@dataclass(frozen=True)
class Template:
    """Something that pods are made from: a Job, CronJob, Deployment, StatefulSet, DaemonSet, vcjob, PyTorchJob, ..."""

    kind: str
    namespace: str
    name: str
    images: tuple[str, ...] = ()
    volumes: tuple[PodVolumeFact, ...] = ()

    @property
    def text(self) -> str:
        """What it is called in a sentence."""
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class References:
    """The images that one node has to keep: each name, and by whom it is needed.

    `unknown` are the kinds of object that could not be listed: as long as there is one, nobody knows.
    """

    names: dict[str, str]
    unknown: tuple[str, ...] = ()

    def needed_by(self, forms: Iterable[str]) -> str | None:
        """Given the forms of an image's names, return who needs it, if anybody does."""
        return next((self.names[form] for form in forms if form in self.names), None)

    def akin(self, forms: Iterable[str]) -> tuple[str, ...]:
        """Given the forms of an image's names, return the needed ones of the same repositories: its next names."""
        repositories = {_without_tag(form.partition("@")[0]) for form in forms if "/" in form}
        return tuple(sorted(name for name in self.names if _without_tag(name.partition("@")[0]) in repositories))


@dataclass(frozen=True)
class VolumeUse:
    """A directory that a pod or a template has: as a node sees it, or, with a server, as that server exports it."""

    who: str
    path: str
    server: str | None = None


def image_references(
    node: str, pods: Iterable[PodFact], templates: Iterable[Template], unknown: tuple[str, ...] = ()
) -> References:
    """Given a node, all pods and all templates, return the images that the node has to keep.

    A pod that waits for a node may come to this one; a template's pods as well.
    """
    names: dict[str, str] = {}
    for template in templates:
        for image in template.images:
            names |= dict.fromkeys(name_forms(image), template.text)
    for pod in pods:
        if pod.phase not in FINISHED and pod.node in (None, node):
            for image in _images(pod):
                names |= dict.fromkeys(name_forms(image), f"Pod {pod.namespace}/{pod.name}")
    return References(names, unknown)


def _images(pod: PodFact) -> Iterator[str]:
    """Yield what a pod calls its images, and what the kubelet found under these names."""
    for container in pod.containers:
        if container.image:
            yield container.image
    for status in pod.statuses:
        if status.image_id:
            yield status.image_id


def name_forms(name: str) -> frozenset[str]:
    """Given a name, a digest or an id of an image, return all forms by which it may be met.

    `nginx` is `docker.io/library/nginx:latest`. What is named by digest is the same under every name.
    """
    # docker-pullable://harbor.lab/x@sha256:... is how kubelets on Docker write it
    plain = name.strip().rpartition("://")[2]
    repository, at, digest = plain.partition("@")
    if not plain:
        return frozenset()
    if digits := _id_digits(plain):
        return frozenset({f"sha256:{digits}"})
    found = {f"{_repository(repository)}@{digest}", digest} if at else set()
    bare, _, tag = repository.rpartition(":")
    if tag and bare and "/" not in tag:
        found.add(f"{_repository(bare)}:{tag}")
    elif not at:
        found.add(f"{_repository(repository)}:latest")
    return frozenset(found)


def _id_digits(text: str) -> str | None:
    """Return the digits of an id, `sha256:...` or these alone; None if it is a name."""
    digits = text.removeprefix("sha256:").lower()
    return digits if len(digits) == 64 and not set(digits) - set("0123456789abcdef") else None


def _repository(name: str) -> str:
    """Given a repository as people write it, return it in full and without tag."""
    host, slash, rest = name.partition("/")
    if not slash:
        return f"{_HUB}/library/{_without_tag(name)}"
    if "." in host or ":" in host or host == "localhost":
        known = _HUB if host == "index.docker.io" else host
        inner = f"library/{rest}" if known == _HUB and "/" not in rest else rest
        return f"{known}/{_without_tag(inner)}"
    return f"{_HUB}/{_without_tag(name)}"


def _without_tag(path: str) -> str:
    head, colon, tag = path.rpartition(":")
    return head if colon and "/" not in tag else path


def volume_uses(
    pods: Iterable[PodFact], templates: Iterable[Template], claims: dict[tuple[str, str], tuple[VolumeUse, ...]]
) -> tuple[VolumeUse, ...]:
    """Given pods, templates and where each claim (namespace, name) leads, return all directories that are in use.

    Pods that have finished use nothing. A claim that is not in `claims` leads to no directory that a node could share.
    """
    found: list[VolumeUse] = []
    for pod in pods:
        if pod.phase not in FINISHED:
            found += _volumes(f"Pod {pod.namespace}/{pod.name}", pod.namespace, pod.volumes, claims)
    for template in templates:
        found += _volumes(template.text, template.namespace, template.volumes, claims)
    return tuple(found)


def _volumes(
    who: str,
    namespace: str,
    volumes: Iterable[PodVolumeFact],
    claims: dict[tuple[str, str], tuple[VolumeUse, ...]],
) -> Iterator[VolumeUse]:
    for volume in volumes:
        if volume.kind == "hostPath" and volume.path:
            yield VolumeUse(who, volume.path)
        elif volume.path and volume.server:
            yield VolumeUse(who, volume.path, volume.server)
        for use in claims.get((namespace, volume.claim or ""), ()):
            yield VolumeUse(who, use.path, use.server)
