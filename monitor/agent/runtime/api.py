"""The protocol of container runtimes, and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from monitor.facts import ContainerFact, ImageCacheFact, RuntimeUsageFact

# Labels and annotations in which platforms name the user of a pod. Runtimes store them on the pod's sandbox.
USER_KEYS = ("userName", "hub.jupyter.org/username", "arena.kubeflow.org/username", "user", "owner")


def pod_user(*metadata: Mapping[str, str]) -> str | None:
    """User named by the labels or annotations of a pod."""
    return next((values[key] for key in USER_KEYS for values in metadata if values.get(key)), None)


class EngineError(Exception):
    """The runtime exists but could not be read. The message names its socket and, if there is one, the remedy."""


class NoAnswerError(EngineError):
    """A query was not answered within its timeout."""


class GoneError(EngineError):
    """The object (for example a container that was just listed) no longer exists."""


class ConflictError(EngineError):
    """The runtime refuses to remove an object that is in use."""


class NotServedError(Exception):
    """The node does not have this runtime: no socket, or its server does not speak the protocol. Not a fault."""


class Runtime(Protocol):
    """A runtime. Its methods may be called from several threads and raise EngineError or NotServedError."""

    @property
    def name(self) -> str:
        """One of docker, containerd and cri-o."""
        ...

    @property
    def socket(self) -> str:
        """Path of its socket."""
        ...

    @property
    def root(self) -> str | None:
        """Directory of its images and containers, once known."""
        ...

    def containers(self) -> tuple[ContainerFact, ...]:
        """All containers and pod sandboxes. Only new or changed ones are inspected."""
        ...

    def images(self) -> ImageCacheFact:
        """Image cache. Each image names the containers that use it; the time of use is unknown here."""
        ...

    def usage(self) -> RuntimeUsageFact:
        """What else fills the root. Expensive: the runtime walks directories."""
        ...
