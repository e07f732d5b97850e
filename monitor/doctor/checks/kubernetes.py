"""The API server: whether there is one, knows us, and is of a version that is understood."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monitor.doctor.model import Verdicts, not_checked, ok, problem, warning

OLDEST = (1, 20)
UNAUTHORIZED = 401


@dataclass(frozen=True)
class KubeFacts:
    """The API server as it was met.

    `enabled` is the setting: auto, yes or no. `no_credentials`, `lost` and `refused` (with `status`) say why there is
    no answer. `offset` is how many seconds its clock is ahead of ours, to about a second.
    """

    enabled: str
    no_credentials: str | None = None
    host: str = ""
    context: str | None = None
    user: str | None = None
    version: str | None = None
    offset: float | None = None
    lost: str | None = None
    refused: str | None = None
    status: int | None = None

    @property
    def reached(self) -> bool:
        return self.version is not None


def judge(facts: KubeFacts) -> Verdicts:
    """Given how the API server was met, return what is wrong with it or with how we come to it."""
    if facts.enabled == "no":
        return (not_checked("kubernetes.off"),)
    if facts.no_credentials is not None:
        say = problem if facts.enabled == "yes" else not_checked
        return (say("kubernetes.no-credentials", why=facts.no_credentials),)
    if facts.lost is not None:
        return (problem("kubernetes.lost", host=facts.host, why=facts.lost),)
    if facts.status == UNAUTHORIZED:
        return (problem("kubernetes.unauthorized", host=facts.host),)
    if facts.version is None:
        return (problem("kubernetes.refused", host=facts.host, why=facts.refused or "?"),)
    known = {"host": facts.host, "version": facts.version, "context": facts.context or "in-cluster"}
    met = ok("kubernetes.as", user=facts.user, **known) if facts.user else ok("kubernetes.ok", **known)
    if _minor(facts.version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return (warning("kubernetes.old", host=facts.host, version=facts.version, oldest=oldest),)
    return (met,)


def _minor(version: str) -> tuple[int, ...]:
    """Given `v1.28.3+k3s1`, return (1, 28). What cannot be read counts as new."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    return tuple(map(int, found.groups())) if found else OLDEST
