"""Cause of a failed image pull, classified from messages of Docker, containerd, CRI-O and the kubelet."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monitor.explain.error_chain.causes import PullFailureCause
from monitor.explain.error_chain.hosts import registry_of
from monitor.explain.error_chain.pulls import classify_pull
from monitor.explain.quote import redact

PULL_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ImageInspectError",
        "ErrImageNeverPull",
        "InvalidImageName",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
UNNAMED_PROXY = "HTTPS_PROXY"  # the setting, where the message does not name the proxy
_BY_REASON = {"InvalidImageName": PullFailureCause.BAD_NAME, "ErrImageNeverPull": PullFailureCause.NEVER_PULL}
_BY_REASON_ALONE = {
    "RegistryUnavailable": PullFailureCause.REGISTRY_ERROR,
    "SignatureValidationFailed": PullFailureCause.POLICY,
}
_IMAGE = re.compile(r"(?:image|reference|manifest for|repository) \\?\"([^\"\\\s]+)\\?\"")


@dataclass(frozen=True)
class PullFailure:
    """A classified message. `host` is the host that failed: not always the registry (a proxy, a mirror)."""

    cause: PullFailureCause
    message: str
    image: str | None = None
    registry: str | None = None
    host: str | None = None


def classify(reason: str | None, message: str | None, image: str | None = None) -> PullFailure:
    """Cause of a failed pull from a waiting reason or an event message; unknown messages yield UNKNOWN."""
    match = _IMAGE.search(message or "")
    name = image or (match.group(1) if match else None)
    answer = classify_pull(message, name)
    cause = _BY_REASON.get(reason or "", answer.cause)
    if cause is PullFailureCause.UNKNOWN:
        cause = _BY_REASON_ALONE.get(reason or "", cause)
    registry = registry_of(name) if name else None
    unnamed = UNNAMED_PROXY if cause is PullFailureCause.PROXY else registry
    return PullFailure(cause, redact(message), name, registry, answer.host or unnamed)
