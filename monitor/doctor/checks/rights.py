"""What the account may do in Kubernetes, against exactly what the configuration needs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from monitor.doctor.model import Verdicts, not_checked, ok, problem, warning


class ChartRole(StrEnum):
    """A role of the Helm chart, in a release `gpuwarden`; its whole name may begin with the namespace."""

    READ = "gpuwarden-read"
    RELEASE = "gpuwarden-release"
    CLEANUP = "gpuwarden-cleanup"
    LEASE = "gpuwarden-lease"


# The value of the chart that creates and binds it.
VALUES = {
    ChartRole.READ: "rbac.create",
    ChartRole.RELEASE: "rbac.release",
    ChartRole.CLEANUP: "rbac.cleanup",
    ChartRole.LEASE: "daemon.replicas",
}


@dataclass(frozen=True)
class Need:
    """A right. `resource` is as in RBAC, with its group: `pods/eviction`, `jobs.batch`; `role` is what grants it.

    Without a namespace it is about all of them, without a name about all objects.
    """

    verb: str
    resource: str
    role: ChartRole
    namespace: str = ""
    name: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """Return it as a review of access asks for it."""
        plural, _, group = self.resource.partition(".")
        plural, _, subresource = plural.partition("/")
        asked = {"verb": self.verb, "resource": plural, "group": group, "subresource": subresource}
        asked |= {"namespace": self.namespace, "name": self.name}
        return {key: value for key, value in asked.items() if value}


@dataclass(frozen=True)
class Answer:
    """What the API server says of a right; None if it could not be asked, and why."""

    need: Need
    allowed: bool | None
    why: str | None = None


@dataclass(frozen=True)
class RightsFacts:
    """The answers; None without an API server to ask."""

    answers: tuple[Answer, ...] | None


def judge(facts: RightsFacts) -> Verdicts:
    """Given the answers, return each right that is missing, and the role that has it."""
    if facts.answers is None:
        return (not_checked("rights.nobody"),)
    missing: dict[tuple[str, ChartRole], list[str]] = {}
    for each in facts.answers:
        if each.allowed is False:
            missing.setdefault((each.need.resource, each.need.role), []).append(each.need.verb)
    wrong = [
        problem("rights.missing", verbs=", ".join(verbs), resource=resource, role=role.value, value=VALUES[role])
        for (resource, role), verbs in missing.items()
    ]
    unknown = [each for each in facts.answers if each.allowed is None]
    if unknown:
        asked = ", ".join(dict.fromkeys(f"{each.need.verb} {each.need.resource}" for each in unknown))
        wrong.append(warning("rights.unknown", count=len(unknown), rights=asked, why=unknown[0].why or "?"))
    return tuple(wrong) or (ok("rights.ok", count=len(facts.answers)),)
