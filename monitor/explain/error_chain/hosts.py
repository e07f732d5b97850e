"""Hosts of an image pull: registries, mirrors and the requests that a message names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

DEFAULT_REGISTRY = "docker.io"
# Registries with several hosts.
_FAMILIES = ((".docker.io", ".docker.com", "docker.io"), ("k8s.gcr.io", "registry.k8s.io"))
_LOOPBACK = ("127.", "localhost", "[::1]")
# An address counts if a request was made to it; a message may also refer to documentation.
_REQUEST = re.compile(
    r"(?:\b(?:get|head|post|put|patch|to|code|registry|at|from|fetch(?:ing)?|ping(?:ing)?)\W{1,3})"
    r"(https?://(?:[^\s/@\"]*@)?[^\s\"]+)",
    re.IGNORECASE,
)
_NAMED_HOST = re.compile(
    r"(?:pinging (?:container|docker) registry|pulling from host|registry endpoint) \"?([\w.-]+(?::\d+)?)",
    re.IGNORECASE,
)
_CONTENT_PATH = re.compile(r"^/v2/(.+)/(?:manifests|blobs|tags|referrers)/")


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request that the message names. `mirror`: it went to a mirror of the image's registry."""

    host: str
    path: str = ""
    mirror: bool = False

    @property
    def is_content(self) -> bool:
        """Whether it asked for a layer, which takes long, rather than for a small document."""
        return "/blobs/" in self.path


def registry_of(image: str) -> str:
    """Registry host of an image name."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else DEFAULT_REGISTRY


def repository_of(image: str) -> str:
    """Repository of an image name without registry, tag and digest."""
    registry = registry_of(image)
    name = image.partition("@")[0]
    name = name.removeprefix(f"{registry}/")
    head, slash, tail = name.rpartition("/")
    name = f"{head}{slash}{tail.partition(':')[0]}"
    return f"library/{name}" if registry == DEFAULT_REGISTRY and "/" not in name else name


def is_same_registry(host: str, registry: str) -> bool:
    """Whether the host is the registry; Docker Hub has several."""
    host, registry = host.lower().removesuffix(":443"), registry.lower().removesuffix(":443")
    if host == registry or host.endswith(f".{registry}"):
        return True
    return any(host.endswith(family) and registry.endswith(family) for family in _FAMILIES)


def find_request(text: str, image: str | None) -> Request | None:
    """The request that a clause names, or None."""
    if match := _REQUEST.search(text):
        return _of_url(match[1], image)
    if match := _NAMED_HOST.search(text):
        return Request(match[1], mirror=_is_named_mirror(match[1], image))
    return None


def _of_url(url: str, image: str | None) -> Request:
    try:
        parts = urlsplit(url)
    except ValueError:  # brackets that do not enclose an IPv6 address
        return Request(url.partition("://")[2].partition("/")[0])
    host = parts.netloc.rpartition("@")[2]
    return Request(host, parts.path, _is_mirror(host, parts.path, parts.query, image))


def _is_mirror(host: str, path: str, query: str, image: str | None) -> bool:
    """Whether a request for an image went to another host than its registry.

    containerd names the registry in `ns`. A redirection goes to another host too, but to another path.
    """
    if "ns=" in query and (namespace := parse_qs(query).get("ns")):
        return not is_same_registry(host, namespace[0])
    if image is None or is_same_registry(host, registry_of(image)):
        return False
    if host.startswith(_LOOPBACK):
        return True
    if path in ("/v2", "/v2/"):  # runtimes ask this of registries and mirrors only
        return True
    match = _CONTENT_PATH.match(path)
    return match is not None and match[1] == repository_of(image)


def _is_named_mirror(host: str, image: str | None) -> bool:
    """A short name may be completed with any registry; only a complete one tells where the image belongs."""
    if image is None:
        return False
    registry = registry_of(image)
    return (registry != DEFAULT_REGISTRY or image.startswith(DEFAULT_REGISTRY) or "mirror" in host) and not (
        is_same_registry(host, registry)
    )
