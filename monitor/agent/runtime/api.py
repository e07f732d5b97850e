"""What a container runtime offers, and how it fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from monitor.facts import ContainerFact, ImageCacheFact, RuntimeUsageFact

# Labels and annotations in which platforms name the user of a pod. Runtimes keep them on the pod's sandbox.
USER_KEYS = ("userName", "hub.jupyter.org/username", "arena.kubeflow.org/username", "user", "owner")


def pod_user(*words: Mapping[str, str]) -> str | None:
    """Given a pod's labels and annotations, return the user that they name, or None."""
    return next((each[key] for key in USER_KEYS for each in words if each.get(key)), None)


class EngineError(Exception):
    """The runtime is there and could not be read. The text names its socket and, where there is one, the remedy."""


class NoAnswerError(EngineError):
    """A question that is limited in time was not answered within it."""


class GoneError(EngineError):
    """What was asked for (a container that the list still had) no longer exists."""


class ConflictError(EngineError):
    """The runtime refuses: what should go is in use."""


class NotServedError(Exception):
    """There is no such runtime here: no socket, or one behind which nobody speaks this protocol. Not a fault."""


class Runtime(Protocol):
    """One runtime. Its methods may be called from several threads; each raises EngineError or NotServedError."""

    @property
    def name(self) -> str:
        """Return "docker", "containerd" or "cri-o"."""
        ...

    @property
    def socket(self) -> str:
        """Return the path of its socket."""
        ...

    @property
    def root(self) -> str | None:
        """Return the directory that holds its images and containers, once it is known."""
        ...

    def containers(self) -> tuple[ContainerFact, ...]:
        """Return all containers and pod sandboxes. Asks about one alone only when it is new or has changed."""
        ...

    def images(self) -> ImageCacheFact:
        """Return the image cache. Each image names the containers that use it; when it was used is not known here."""
        ...

    def usage(self) -> RuntimeUsageFact:
        """Return what else fills the root. Dear: the runtime walks directories for it."""
        ...
